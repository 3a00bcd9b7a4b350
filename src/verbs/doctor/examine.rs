//! Reads the library, one chat at a time, and collects the facts that the rules need.

use std::collections::{BTreeMap, BTreeSet};

use super::unlisted::{self, Group, Unlisted};
use crate::archive::Snapshot;
use crate::auto_recap::{running_recap, settings_hash};
use crate::engine::files;
use crate::engine::free_names::free_restored;
use crate::engine::unused_lorebooks::{by_book, unused_lorebooks};
use crate::history::History;
use crate::history::latest_valid::{Part, described, first_valid, stored_version};
use crate::history::owner_of_snapshot::Owners;
use crate::progress::Monitor;
use crate::rules::{self, BookFacts, CharacterFacts, Code, Finding, LibraryFacts, TimelineFacts};
use crate::st::{
    self, Category, Chat, Damage, Disk, Library, LibraryPath, Message, Raw, References, Scan,
    TimelineFiles, TimelineName, User, lorebook_path,
};
use crate::store::Store;
use crate::verbs::Result;

pub(super) struct Examination {
    pub facts: LibraryFacts,
    pub findings: Vec<Finding>,
    pub lorebooks: usize,
    /// Snapshots with the latest valid version of each missing or damaged lorebook, and of each
    /// other damaged file that is not a chat.
    pub stored: BTreeMap<LibraryPath, Snapshot>,
    pub unlisted: Vec<Unlisted>,
    pub groups: Vec<Group>,
}

/// Examines the library. If `only` is not empty, findings about single timelines are limited to the
/// timelines in `only`.
pub(super) fn examine(
    library: &Library,
    scan: Scan,
    store: Option<&Store>,
    only: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Examination> {
    let scan_is_whole = scan.unreadable.is_empty();
    let (mut unread, mut unlisted) = (Vec::new(), Vec::new());
    let (seen, facts, findings) = Default::default();
    let mut look = Examiner { library, only, seen, facts, findings };
    if only.is_empty() {
        look.findings.extend(scan.unreadable.iter().map(|(subject, why)| unreadable(subject, why)));
    }
    monitor.begin("checking chats", Some(scan.chats.len() as u64));
    for name in &scan.chats {
        match st::capture(library, &scan.groups, name, &Disk) {
            Ok(captured) => {
                let chat = captured.files.split();
                look.at_chat(&captured.files, &chat);
                unlisted.extend(Unlisted::read(name, &chat, &scan));
            }
            Err(error) => {
                unread.push((name.file().to_string(), error.to_string()));
                if only.is_empty() || only.contains(name) {
                    look.findings.push(unreadable(name.as_str(), &error.to_string()));
                }
            }
        }
        monitor.advance(1);
    }
    monitor.begin("checking lorebooks", None);
    // If the folder of lorebooks cannot be listed, the scan reports the folder, and no lorebook
    // counts as missing.
    let books = library.lorebooks().ok();
    look.facts.is_partial |= books.is_none();
    look.at_other_books(books.as_deref().unwrap_or_default());
    if only.is_empty() {
        look.at_single_files(&scan);
    }
    let Examiner { mut facts, mut findings, .. } = look;
    let references = library.references(&scan);
    let mut characters = character_facts(&scan, &references, books.as_deref());
    let books = books.unwrap_or_default();
    let history = match store {
        // The history does not contain undone snapshots, which must not serve as evidence.
        Some(store) => History::load(store)?,
        None => History::default(),
    };
    let owners = history.owners();
    for timeline in &mut facts.timelines {
        let origin = history.head(&timeline.name).and_then(|head| history.own(head).1);
        timeline.origin = origin.map(|origin| owners.of_snapshot(origin).clone());
    }
    let chats = history.heads().map(|(name, _)| name).filter(|name| name.is_chat());
    let (may_be_here, gone): (Vec<_>, Vec<_>) = chats.partition(|name| scan.may_have(name));
    facts.here = scan.chats.iter().chain(may_be_here).cloned().collect();
    facts.deleted = gone.into_iter().cloned().collect();
    let stored = match store {
        Some(store) => find_stored(&mut facts, &history, owners, store)?,
        None => BTreeMap::new(),
    };
    let groups = unlisted::groups(library, &scan);
    for chat in &mut unlisted {
        let stored = store.map(|store| (store, &history));
        chat.find_groups(&groups, &facts, &scan, stored)?;
    }
    facts.unused = unused_lorebooks(&references, &books, &facts.here, &history, owners);
    facts.is_partial |= !unread.is_empty() || !scan_is_whole;
    if only.is_empty() {
        // Unreadable chats were already reported above.
        let is_new = |(subject, _): &&(String, String)| unread.iter().all(|(it, _)| it != subject);
        let unread = references.unread.iter().filter(is_new);
        findings.extend(unread.map(|(subject, why)| unreadable(subject, why)));
        let stored = history.heads().filter(|(name, _)| name.category() == Category::Card);
        characters.stored = stored.map(|(name, _)| name.chat().to_owned()).collect();
        findings.extend(rules::characters(&characters));
    }
    facts.unknown = references.unreadable;
    // If the folder `chats` is missing, its chats may come back and may use any lorebook.
    if history.heads().any(|(name, _)| name.is_chat())
        && st::is_absent(&library.root().join("chats")).unwrap_or(true)
    {
        facts.unknown.push(("chats".into(), "the folder does not exist".into()));
    }
    unread.retain(|(subject, _)| facts.unknown.iter().all(|(known, _)| known != subject));
    facts.unknown.append(&mut unread);
    for finding in &mut findings {
        facts.advise(finding);
        advise_unreadable(finding, &history, library);
    }
    Ok(Examination { facts, findings, lorebooks: books.len(), stored, unlisted, groups })
}

struct Examiner<'l> {
    library: &'l Library,
    /// Timelines to report findings about. An empty set selects all timelines.
    only: &'l BTreeSet<TimelineName>,
    seen: BTreeSet<LibraryPath>,
    facts: LibraryFacts,
    findings: Vec<Finding>,
}

impl Examiner<'_> {
    fn at_chat(&mut self, files: &TimelineFiles, chat: &Chat<'_>) {
        let (library, name) = (self.library, &files.timeline);
        if self.only.is_empty() || self.only.contains(name) {
            let found = rules::of_files(files, chat, rules::ALL, library.book_template());
            // A missing lorebook is reported once for the library, together with the possible
            // repairs.
            self.findings.extend(found.into_iter().filter(|f| f.code != Code::LorebookMissing));
            let named = st::attachments(chat, files.metadata(chat));
            let is_gone = |path: &LibraryPath| {
                st::is_absent(&path.under(library.root())).is_ok_and(|gone| gone)
            };
            let gone: Vec<_> = named.into_iter().filter(is_gone).collect();
            self.findings.extend(rules::missing_attachments(name, &gone));
        }
        self.note_damage(&files.main.path, st::chat_damage(chat, rules::ALL));
        if let Some(book) = files.book() {
            self.seen.insert(book.path.clone());
            self.note_damage(book.path, st::book_damage(book.bytes));
        }
        self.facts.timelines.push(timeline_facts(files, chat));
    }

    fn note_damage(&mut self, path: &LibraryPath, damage: Option<Damage>) {
        if damage.is_some() {
            self.facts.damaged.insert(path.clone(), None);
        }
    }

    fn at_other_books(&mut self, books: &[String]) {
        for book in books {
            let Ok(path) = LibraryPath::parse(&format!("worlds/{book}.json")) else { continue };
            let name = TimelineName::of_file(&path).filter(|_| !self.seen.contains(&path));
            let Some(name) = name else { continue };
            match files::read(self.library.root(), &path) {
                Ok(Some(bytes)) => {
                    self.note_damage(&path, st::book_damage(&bytes));
                    if self.only.is_empty() {
                        let files = TimelineFiles::alone(&name, bytes);
                        let (chat, template) = (files.split(), self.library.book_template());
                        self.findings.extend(rules::of_files(&files, &chat, rules::ALL, template));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.facts.is_partial = true;
                    if self.only.is_empty() {
                        self.findings.push(unreadable(path.as_str(), &error.to_string()));
                    }
                }
            }
        }
    }

    fn at_single_files(&mut self, scan: &Scan) {
        for name in scan.others.iter().filter(|name| name.category() != Category::Lorebook) {
            // Unreadable files are already reported by the scan or with the references.
            if let Ok(Some(damage)) = st::damage_on_disk(self.library.root(), name) {
                self.findings.push(rules::damaged(name, damage.words()));
                self.note_damage(&name.file(), Some(damage));
            }
        }
    }
}

/// Adds to a finding about an unreadable chat the command that restores the chat's latest snapshot.
/// The snapshot is restored as a new chat, because a restore never replaces files that could not be
/// stored. If the library cannot be listed, the snapshot is restored into another folder.
fn advise_unreadable(finding: &mut Finding, history: &History, library: &Library) {
    if finding.code == Code::Unreadable
        && let Ok(name) = TimelineName::parse(&finding.subject)
        && let Some(head) = history.head(&name).filter(|_| name.is_chat())
    {
        let (name, snapshot) = (head.timeline.as_str(), described(head));
        let can_be_listed = library.lorebooks().is_ok();
        let free = can_be_listed.then(|| free_restored(&head.timeline, library, history));
        let command = match free.flatten() {
            Some(free) => format!(
                "run `stvc restore {name:?} --as {free:?}` to restore {snapshot} as a new chat"
            ),
            None => {
                format!(
                    "run `stvc restore {name:?} --to FOLDER` to restore {snapshot} into another folder"
                )
            }
        };
        finding.remedy = Some(format!("check its name, its permissions and the disk; {command}"));
    }
}

fn unreadable(subject: &str, why: &str) -> Finding {
    Finding::new(Code::Unreadable, subject, why)
        .remedy("check its name, its permissions and the disk")
}

/// Collects the facts about all characters. If the list of lorebooks is `None`, no lorebook counts
/// as missing.
fn character_facts(
    scan: &Scan,
    references: &References,
    books: Option<&[String]>,
) -> CharacterFacts {
    let mut facts = CharacterFacts::default();
    let cards = scan.others.iter().filter(|name| name.category() == Category::Card);
    facts.cards = cards.map(|name| name.chat().to_owned()).collect();
    for folder in scan.chats.iter().filter_map(|name| name.folder()) {
        *facts.chats.entry(folder.to_owned()).or_default() += 1;
    }
    let is_there = |book: &str| {
        let path = lorebook_path(book);
        let file = path.as_ref().map(|path| path.file_name());
        books.is_none_or(|books| books.iter().any(|name| file == Some(&format!("{name}.json"))))
    };
    for reference in &references.list {
        if let User::Card(card) = &reference.user
            && !is_there(&reference.book)
        {
            facts.missing_books.push((card.clone(), reference.book.clone()));
        }
    }
    facts
}

fn timeline_facts(files: &TimelineFiles, chat: &Chat<'_>) -> TimelineFacts {
    let metadata = files.metadata(chat);
    let recap = metadata.and_then(running_recap).filter(|recap| recap.exists());
    let group = files.group.as_ref().map(|group| group.path.clone());
    let is_in_header =
        |metadata: &Raw<'_>| !metadata.span_in(chat.header.unwrap_or_default()).is_empty();
    TimelineFacts {
        name: files.timeline.clone(),
        book: files.lorebook.as_ref().map(|book| BookFacts {
            name: book.name.clone(),
            path: book.path.clone(),
            exists: book.bytes.is_some(),
            stored: None,
        }),
        main_chat: metadata.and_then(st::main_chat),
        origin: None,
        links: chat.messages.iter().enumerate().filter_map(link).collect(),
        settings_hash: metadata.and_then(settings_hash).map(str::to_owned),
        recap_of: recap.and_then(|recap| recap.chat_id),
        metadata_in: match metadata {
            Some(metadata) if is_in_header(&metadata) => Some(files.main.path.clone()),
            Some(_) => group.clone(),
            None => None,
        },
        group,
    }
}

fn link((number, line): (usize, &&[u8])) -> Option<(usize, String)> {
    // Few messages have a link, and searching for the key is much cheaper than parsing every
    // message.
    memchr::memmem::find(line, b"bookmark_link")?;
    let link = Message::read(line)?.extra()?.get("bookmark_link")?.string()?;
    (!link.is_empty()).then_some((number, link))
}

/// Finds the latest valid version of each missing or damaged file, and adds it to the facts. A
/// lorebook is looked up in its own timeline first, then in the snapshots of the chats that use it,
/// then in all other snapshots.
fn find_stored(
    facts: &mut LibraryFacts,
    history: &History,
    owners: Owners<'_>,
    store: &Store,
) -> Result<BTreeMap<LibraryPath, Snapshot>> {
    let reader = store.reader();
    let mut users: BTreeMap<_, BTreeSet<TimelineName>> = BTreeMap::new();
    for path in facts.damaged.keys().filter(|path| path.is_lorebook()) {
        users.entry(path.clone()).or_default();
    }
    for timeline in &facts.timelines {
        if let Some(book) = &timeline.book
            && let Some(path) = &book.path
            && (!book.exists || facts.damaged.contains_key(path))
        {
            users.entry(path.clone()).or_default().insert(timeline.name.clone());
        }
    }
    let own = |name: &TimelineName| {
        history.head(name).map(|head| history.own(head).0).unwrap_or_default()
    };
    let by_book = if users.is_empty() { BTreeMap::new() } else { by_book(history) };
    let mut stored = BTreeMap::new();
    for (path, users) in users {
        let mut snapshots = by_book.get(&path).cloned().unwrap_or_default();
        snapshots.sort_by_key(|snapshot| !users.contains(owners.of_snapshot(snapshot)));
        let own = TimelineName::of_file(&path).map(|name| own(&name)).unwrap_or_default();
        if let Some(valid) = first_valid(&reader, Part::Book, own.into_iter().chain(snapshots))? {
            stored.insert(path, valid.snapshot.clone());
        }
    }
    for book in facts.timelines.iter_mut().filter_map(|timeline| timeline.book.as_mut()) {
        let snapshot = book.path.as_ref().and_then(|path| stored.get(path));
        book.stored = snapshot.map(described);
    }
    for (path, version) in &mut facts.damaged {
        let Some(name) = TimelineName::of_file(path) else { continue };
        if !path.is_lorebook()
            && let Some(valid) = first_valid(&reader, Part::Own, own(&name))?
        {
            *version = Some(stored_version(valid.snapshot, &name));
            if !name.is_chat() {
                stored.insert(path.clone(), valid.snapshot.clone());
            }
        } else if let Some(snapshot) = stored.get(path) {
            *version = Some(stored_version(snapshot, &name));
        }
    }
    Ok(stored)
}
