//! Finds the latest valid version of a timeline whose last snapshots contain a damaged file.
//! [`st::damage`](crate::st::damage()) decides whether a file is damaged.

use super::at_message::read_book;
use super::moment::{Book, Moment};
use super::pairs::Pairs;
use super::state_then::{NeedBook, StateThen};
use super::{History, Result};
use crate::archive::{Snapshot, Tree};
use crate::rules::{self, Code, Finding, StoredVersion};
use crate::st::{TimelineName, book_damage, damage, damage_of_files};
use crate::store::{Reader, Store, unless_lost};
use crate::words::short;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Own,
    /// The lorebook, in a snapshot of a lorebook or of a chat.
    Book,
}

/// The latest snapshot with a valid file, and the newer snapshots that were skipped, each with the
/// reason.
pub(crate) struct ValidVersion<'h> {
    pub snapshot: &'h Snapshot,
    pub passed_over: Vec<(&'h Snapshot, &'static str)>,
}

pub(crate) fn first_valid<'h>(
    reader: &Reader,
    part: Part,
    candidates: impl IntoIterator<Item = &'h Snapshot>,
) -> Result<Option<ValidVersion<'h>>> {
    let mut passed_over = Vec::new();
    for snapshot in candidates {
        match why_not(reader, part, snapshot)? {
            None => return Ok(Some(ValidVersion { snapshot, passed_over })),
            Some(why) => passed_over.push((snapshot, why)),
        }
    }
    Ok(None)
}

/// Returns the reason why a snapshot has no valid version of a file; `None` if it has one.
fn why_not(reader: &Reader, part: Part, snapshot: &Snapshot) -> Result<Option<&'static str>> {
    let found = match part {
        Part::Book => read_book(reader, snapshot)?.map(|bytes| book_damage(&bytes)),
        Part::Own => {
            let own = |tree: Tree| -> crate::archive::Result<_> {
                let record = tree.manifest.file(tree.manifest.main_role()).cloned();
                record.map(|record| tree.rebuild(reader, &record)).transpose()
            };
            let bytes = unless_lost(Tree::open(reader, snapshot.tree).and_then(own))?.flatten();
            bytes.map(|bytes| damage(&snapshot.timeline, &bytes))
        }
    };
    Ok(match found {
        Some(damage) => damage.map(|damage| damage.words()),
        None => Some("is missing from the store or damaged there"),
    })
}

/// Returns the moment that replaces `latest` if its files are damaged: the latest valid version of
/// each file, and findings about these versions. Commands that write files use this if the user
/// typed only the name of a timeline. `None` if the files are valid, or the store has no better
/// version.
pub(crate) fn instead_of(
    store: &Store,
    latest: &Moment,
    rebuilt: &StateThen,
    need: NeedBook,
) -> Result<Option<(Moment, Vec<Finding>)>> {
    let files = &rebuilt.contents.files;
    let found = match need {
        NeedBook::No => damage(&files.timeline, &files.main.bytes),
        NeedBook::Yes | NeedBook::IfKnown => damage_of_files(files),
    };
    if found.is_none() {
        return Ok(None);
    }
    let mut history = History::load(store)?;
    history.add(store, [latest.snapshot.id])?;
    let Some(head) = history.get(latest.snapshot.id) else { return Ok(None) };
    let reader = store.reader();
    let Some(own) = first_valid(&reader, Part::Own, history.own(head).0)? else { return Ok(None) };
    let mut moment = Moment::recorded(own.snapshot.clone(), latest.timeline.clone());
    let mut findings = Vec::new();
    if !own.passed_over.is_empty() {
        findings.push(passed_over(&latest.timeline, "file", &own));
    }
    if own.snapshot.timeline.is_chat() {
        let pairs = Pairs::new(store, &history);
        let book = first_valid(&reader, Part::Book, pairs.books_of(own.snapshot)?)?;
        if let Some(book) = &book
            && book.snapshot.id != own.snapshot.id
        {
            moment.book = Book::Snapshot(Box::new(book.snapshot.clone()));
        }
        let is_damaged = |book: &&ValidVersion<'_>| !book.passed_over.is_empty();
        let book = book.filter(|_| need != NeedBook::No);
        findings.extend(
            book.iter()
                .filter(is_damaged)
                .map(|book| passed_over(&latest.timeline, "lorebook", book)),
        );
    }
    Ok((!findings.is_empty()).then_some((moment, findings)))
}

/// Adds the latest valid version to each finding about a damaged file, or says that the store has
/// no valid version.
pub(crate) fn advise(findings: &mut [Finding], store: Option<&Store>) -> Result<()> {
    if findings.iter().all(|finding| rules::damaged_timeline(finding).is_none()) {
        return Ok(());
    }
    let history = store.map(History::load).transpose()?.unwrap_or_default();
    let reader = store.map(Store::reader);
    for finding in findings {
        let Some(name) = rules::damaged_timeline(finding) else { continue };
        let own = history.head(&name).map(|head| history.own(head).0).unwrap_or_default();
        let valid = match &reader {
            Some(reader) => first_valid(reader, Part::Own, own)?,
            None => None,
        };
        let stored = valid.map(|valid| stored_version(valid.snapshot, &name));
        rules::advise_damaged(finding, &name, stored.as_ref());
    }
    Ok(())
}

pub(crate) fn stored_version(snapshot: &Snapshot, name: &TimelineName) -> StoredVersion {
    StoredVersion {
        words: described(snapshot),
        moment: snapshot.id.to_string(),
        is_own: snapshot.timeline.category() == name.category(),
    }
}

fn passed_over(timeline: &TimelineName, part: &str, valid: &ValidVersion<'_>) -> Finding {
    const SHOWN: usize = 3;
    let passed = &valid.passed_over;
    let mut ids: Vec<_> = passed.iter().take(SHOWN).map(|(it, _)| short(it.id)).collect();
    if passed.len() > SHOWN {
        ids.push(format!("and {} more", passed.len() - SHOWN));
    }
    let why = passed.first().map(|(_, why)| *why).unwrap_or_default();
    let (newer, skipped) = match passed.len() {
        1 => ("1 newer snapshot".to_owned(), "is skipped because its"),
        n => (format!("{n} newer snapshots"), "are skipped because their"),
    };
    let message = format!(
        "the {part} of {} is used; {newer} {skipped} {part} {why}: {}",
        described(valid.snapshot),
        ids.join(", ")
    );
    let subject = timeline.as_str();
    let remedy = "run `stvc restore ID` to restore exactly the snapshot with that id";
    Finding::new(Code::DamagePassedOver, subject, message).remedy(remedy)
}

/// Returns a description such as `snapshot 0123456789 of 2026-11-01 18:30`.
pub(crate) fn described(snapshot: &Snapshot) -> String {
    let id = short(snapshot.id);
    match snapshot.time.moment() {
        Some(time) => format!("snapshot {id} of {}", time.format("%Y-%m-%d %H:%M")),
        None => format!("snapshot {id}"),
    }
}
