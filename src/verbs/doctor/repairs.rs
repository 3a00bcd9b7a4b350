//! What can be done about what was found, each repair by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::examine::{Examined, is_lorebook};
use super::unlisted::{Group, Unlisted};
use super::{Missing, Options};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::free_names::free_lorebook;
use crate::engine::{Workspace, files};
use crate::history::latest_valid::described;
use crate::rules::{Code, Finding, LibraryFacts, TimelineFacts, UnusedBook};
use crate::st::{self, Library, LibraryPath, TimelineName, chat_name, lorebook_path};
use crate::verbs::{Error, Result};

/// One thing that can be repaired.
#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    /// The code of the finding that it is about.
    pub code: Code,
    /// What is repaired: a timeline or a file.
    pub subject: String,
    /// What will be done, as words that can follow "would".
    pub what: String,
    /// The files that will be written or removed.
    pub files: Vec<LibraryPath>,
    /// The subjects of the findings that are done with then.
    #[serde(skip)]
    mends: Vec<String>,
    #[serde(skip)]
    pub(super) step: RepairStep,
}

/// What will be done.
#[derive(Clone, Debug)]
pub(super) enum RepairStep {
    /// Give a timeline a copy of its lorebook under a name of its own.
    OwnBook { timeline: TimelineName, book: OwnBook },
    /// Let a timeline go without its lorebook.
    Detach { timeline: TimelineName, book: String },
    /// Let a timeline's running recap say that it belongs to it.
    OwnRecap { timeline: TimelineName },
    /// Write a lorebook that is missing, or a file that is damaged.
    Write { path: LibraryPath, source: Source, users: Vec<TimelineName> },
    /// List a chat in its group, with the metadata that the group's file had of it.
    ListInGroup { timeline: TimelineName, group: LibraryPath, metadata: Option<Vec<u8>> },
    /// Remove a lorebook that nothing uses, and what these chats' maps of checkpoints say of it.
    Remove { path: LibraryPath, mapped_in: Vec<TimelineName> },
}

/// A lorebook of its own for a timeline.
#[derive(Clone, Debug)]
pub(super) struct OwnBook {
    /// The name of the lorebook that it has now, and that is copied.
    pub old: String,
    pub new: String,
    /// The file of the new one.
    pub path: LibraryPath,
}

/// Where the new content of a file comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Snapshot(SnapshotId),
    Empty,
    CopyOf(LibraryPath),
}

impl Repair {
    /// Plans a repair after which nothing is left of the finding about `subject`.
    fn new(
        code: Code,
        subject: impl ToString,
        what: String,
        files: Vec<LibraryPath>,
        step: RepairStep,
    ) -> Self {
        let subject = subject.to_string();
        Self { code, what, files, mends: vec![subject.clone()], subject, step }
    }

    /// Whether nothing is left of this finding once it is done.
    pub(super) fn mends(&self, finding: &Finding) -> bool {
        finding.code == self.code && self.mends.contains(&finding.subject)
    }

    /// Say how the repair is made, where the rule that found it knows of none.
    pub(super) fn advise(&self, finding: &mut Finding) {
        if let RepairStep::OwnRecap { .. } = self.step {
            finding.remedy = Some("`stvc doctor --fix` tells it this chat's name".into());
        }
    }
}

/// Plans all repairs, and finds what cannot be planned before somebody chooses.
pub(super) fn plan(
    library: &Library,
    examined: &Examined,
    options: &Options,
) -> Result<(Vec<Repair>, Vec<Undecided>)> {
    let facts = &examined.facts;
    let mut repairs = damaged_files(examined);
    let (missing, undecided) = missing_books(library, examined, options.missing.as_ref())?;
    repairs.extend(missing);
    let written = repairs.iter().flat_map(|repair| &repair.files);
    let mut taken: BTreeSet<String> = written.map(|path| path.as_str().to_lowercase()).collect();
    for fork in facts.shared().iter().flat_map(|book| &book.forks) {
        let book = fork.book.as_ref().filter(|book| facts.may_be_copied(book));
        if let (Some(metadata_in), Some(_)) = (&fork.metadata_in, book) {
            repairs.push(own_book(library, facts, fork, metadata_in, &mut taken)?);
        }
    }
    repairs.extend(facts.timelines.iter().filter_map(|timeline| own_recap(facts, timeline)));
    repairs.extend(list_in_groups(examined, options)?);
    if facts.unknown.is_empty() {
        let chosen = facts.unused.iter().filter(|book| book.leftover || options.orphans);
        repairs.extend(chosen.map(|book| remove(facts, book)));
    }
    Ok((repairs, undecided))
}

fn remove(facts: &LibraryFacts, book: &UnusedBook) -> Repair {
    let owners = book.mapped_in.iter().filter_map(|owner| facts.timeline(owner));
    let owners = owners.filter_map(|owner| Some((&owner.name, owner.metadata_in.clone()?)));
    let (mapped_in, metadata_in): (Vec<_>, Vec<_>) = owners.unzip();
    let mut what = format!("remove {}, which nothing uses", book.path);
    if !mapped_in.is_empty() {
        let names: Vec<_> = mapped_in.iter().map(|name| name.as_str()).collect();
        what.push_str(&format!(", and its entry in the checkpoint map of {}", names.join(", ")));
    }
    let mut files = vec![book.path.clone()];
    for file in metadata_in {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mapped_in = mapped_in.into_iter().cloned().collect();
    let step = RepairStep::Remove { path: book.path.clone(), mapped_in };
    Repair::new(Code::LorebookOrphaned, &book.path, what, files, step)
}

/// Damaged lorebooks, groups and other single files of which a valid version is stored.
fn damaged_files(examined: &Examined) -> Vec<Repair> {
    let facts = &examined.facts;
    // Every chat that has a lorebook ends with a snapshot of both, so all have to be known.
    let is_damaged = |(path, _): &(&LibraryPath, _)| {
        facts.damaged.contains_key(*path) && (!facts.is_partial || !is_lorebook(path))
    };
    let damaged = examined.stored.iter().filter(is_damaged);
    let users = |path: &LibraryPath| {
        let has_it = |timeline: &&TimelineFacts| {
            timeline.book.as_ref().is_some_and(|book| book.path.as_ref() == Some(path))
        };
        facts.timelines.iter().filter(has_it).map(|timeline| timeline.name.clone()).collect()
    };
    let repair = |(path, snapshot): (&LibraryPath, &Snapshot)| {
        let code = if is_lorebook(path) { Code::LorebookBroken } else { Code::FileDamaged };
        let what = format!(
            "write {path} as it was in {} of {}, the latest in which it is valid",
            described(snapshot),
            snapshot.timeline
        );
        let (source, users) = (Source::Snapshot(snapshot.id), users(path));
        let step = RepairStep::Write { path: path.clone(), source, users };
        Repair::new(code, path, what, vec![path.clone()], step)
    };
    damaged.map(repair).collect()
}

fn own_book(
    library: &Library,
    facts: &LibraryFacts,
    fork: &TimelineFacts,
    metadata_in: &LibraryPath,
    taken: &mut BTreeSet<String>,
) -> Result<Repair> {
    let old = fork.book.as_ref().map(|book| book.name.clone()).unwrap_or_default();
    let parent = facts.parent(fork);
    let said = fork.main_chat.as_deref().and_then(chat_name);
    let mut known = vec![fork.name.chat()];
    known.extend(said.as_deref());
    known.extend(parent.as_ref().map(TimelineName::chat));
    let new = free_lorebook(library, &old, &known, fork.name.chat(), taken)?;
    taken.insert(new.to_lowercase());
    let why = "no lorebook can be called that";
    let path = lorebook_path(&new).ok_or_else(|| Error::BadName { name: new.clone(), why })?;
    let what = format!("give {} a lorebook of its own, {new:?}, a copy of {old:?}", fork.name);
    let files = vec![path.clone(), metadata_in.clone()];
    let book = OwnBook { old, new, path };
    let step = RepairStep::OwnBook { timeline: fork.name.clone(), book };
    let repair = Repair::new(Code::LorebookShared, &fork.name, what, files, step);
    // The lorebook may be shared with other forks.
    Ok(Repair { mends: Vec::new(), ..repair })
}

/// A chat that was renamed has a running recap under its old name, which the extension would wipe.
fn own_recap(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Repair> {
    let id = timeline.recap_of.as_deref()?;
    let metadata_in = timeline.metadata_in.clone()?;
    let name = &timeline.name;
    let is_own = id == name.chat() || chat_name(id).as_deref() == Some(name.chat());
    if is_own || timeline.main_chat.is_some() || facts.chat_called(name, id).is_some() {
        return None;
    }
    let what =
        format!("tell the running recap of {name} that it belongs to this chat, not to {id:?}");
    let step = RepairStep::OwnRecap { timeline: name.clone() };
    let repair = Repair::new(Code::RecapForeign, name, what, vec![metadata_in], step);
    Some(Repair { mends: vec![name.file().to_string()], ..repair })
}

/// A missing lorebook, and the chats that are bound to it.
#[derive(Clone, Debug)]
struct MissingBook<'f> {
    name: &'f str,
    /// Its file; none if the name gives no file name.
    path: Option<&'f LibraryPath>,
    users: Vec<&'f TimelineFacts>,
}

/// A missing lorebook that no snapshot has: a person has to say what takes its place.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// Its name, as the chats have it.
    pub book: String,
    /// The chats that are bound to it.
    pub users: Vec<TimelineName>,
    /// What can be done without another name, and the repairs that it takes.
    pub ways: Vec<(Missing, Vec<Repair>)>,
    path: Option<LibraryPath>,
}

impl Undecided {
    /// Whether a copy of another lorebook can take its place.
    pub fn can_be_written(&self) -> bool {
        self.path.is_some()
    }

    /// Plans to put a copy of another lorebook in its place.
    pub fn copy_of(&self, workspace: &Workspace, name: &str) -> Result<Vec<Repair>> {
        let other = chosen_book(&workspace.library()?, name)?;
        let repair = |path| write(path, &self.users, Source::CopyOf(other), copied(path, name));
        Ok(self.path.as_ref().map(repair).into_iter().collect())
    }
}

fn missing_books(
    library: &Library,
    examined: &Examined,
    how: Option<&Missing>,
) -> Result<(Vec<Repair>, Vec<Undecided>)> {
    let facts = &examined.facts;
    let mut missing: BTreeMap<(bool, &str), MissingBook<'_>> = BTreeMap::new();
    for timeline in &facts.timelines {
        let Some(book) = timeline.book.as_ref().filter(|book| !book.exists) else { continue };
        let (name, path) = (book.name.as_str(), book.path.as_ref());
        let key = (path.is_none(), path.map_or(name, LibraryPath::as_str));
        let found = missing.entry(key).or_insert(MissingBook { name, path, users: Vec::new() });
        found.users.push(timeline);
    }
    let (mut repairs, mut undecided) = (Vec::new(), Vec::new());
    for book in missing.values() {
        let stored = || {
            let path = book.path?;
            let snapshot = examined.stored.get(path)?;
            let from = format!("from {} of {}", described(snapshot), snapshot.timeline);
            let what = format!("bring {path} back {from}");
            Some(write(path, &names(&book.users), Source::Snapshot(snapshot.id), what))
        };
        let mut chosen = match how {
            Some(how) => ways(library, facts, book, how)?,
            None => Vec::new(),
        };
        if chosen.is_empty() && matches!(how, None | Some(Missing::Clone)) {
            chosen.extend(stored());
        }
        if chosen.is_empty() && how.is_none() {
            let mut possible = Vec::new();
            for how in [Missing::Empty, Missing::Clone, Missing::Detach] {
                let repairs = ways(library, facts, book, &how)?;
                if !repairs.is_empty() {
                    possible.push((how, repairs));
                }
            }
            undecided.push(Undecided {
                book: book.name.to_owned(),
                users: names(&book.users),
                ways: possible,
                path: book.path.cloned(),
            });
        }
        repairs.extend(chosen);
    }
    Ok((repairs, undecided))
}

fn names(timelines: &[&TimelineFacts]) -> Vec<TimelineName> {
    timelines.iter().map(|timeline| timeline.name.clone()).collect()
}

/// Plans what takes the place of a missing lorebook, in one way; empty if it cannot be done so.
fn ways(
    library: &Library,
    facts: &LibraryFacts,
    book: &MissingBook<'_>,
    how: &Missing,
) -> Result<Vec<Repair>> {
    if *how == Missing::Detach {
        return Ok(book.users.iter().filter_map(|user| detach(user, book.name)).collect());
    }
    let Some(path) = book.path else { return Ok(Vec::new()) };
    let chosen = match how {
        Missing::Empty => Some((Source::Empty, format!("make {path}, with no entries"))),
        Missing::CloneOf(name) => {
            Some((Source::CopyOf(chosen_book(library, name)?), copied(path, name)))
        }
        Missing::Clone => book.users.iter().find_map(|user| copy(facts, user)),
        Missing::Detach => None,
    };
    let users = names(&book.users);
    Ok(chosen.map(|(source, what)| write(path, &users, source, what)).into_iter().collect())
}

fn copied(path: &LibraryPath, name: &str) -> String {
    format!("make {path}, a copy of {name:?}")
}

fn write(path: &LibraryPath, users: &[TimelineName], source: Source, what: String) -> Repair {
    let step = RepairStep::Write { path: path.clone(), source, users: users.to_vec() };
    let repair = Repair::new(Code::LorebookMissing, path, what, vec![path.clone()], step);
    Repair { mends: users.iter().map(TimelineName::to_string).collect(), ..repair }
}

/// The lorebook that the user calls so, which must be there and valid.
fn chosen_book(library: &Library, name: &str) -> Result<LibraryPath> {
    let there = library.lorebooks()?;
    let path = lorebook_path(name)
        .filter(|path| there.iter().any(|book| path.file_name() == format!("{book}.json")));
    let path = path.ok_or_else(|| Error::NoSuchLorebook { name: name.to_owned() })?;
    let bytes = files::read(library.root(), &path)?;
    match bytes.as_deref().and_then(st::book_damage) {
        Some(damage) => Err(Error::DamagedLorebook { path: path.to_string(), why: damage.words() }),
        None => Ok(path),
    }
}

/// The lorebook of the chat that this one was forked from, under the missing name.
fn copy(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<(Source, String)> {
    let parent = facts.timeline(&facts.parent(timeline)?)?;
    let book = parent.book.as_ref().filter(|book| facts.may_be_copied(book))?;
    let missing = timeline.book.as_ref()?.path.as_ref()?;
    let what =
        format!("make {missing}, a copy of {:?}, the lorebook of {}", book.name, parent.name);
    Some((Source::CopyOf(book.path.clone()?), what))
}

fn detach(timeline: &TimelineFacts, book: &str) -> Option<Repair> {
    let what = format!("let {} go without its lorebook {book:?}", timeline.name);
    let files = vec![timeline.metadata_in.clone()?];
    let step = RepairStep::Detach { timeline: timeline.name.clone(), book: book.to_owned() };
    Some(Repair::new(Code::LorebookMissing, &timeline.name, what, files, step))
}

/// Lists group chats that no group lists in their group: of several the user must name one.
fn list_in_groups(examined: &Examined, options: &Options) -> Result<Vec<Repair>> {
    let find = |wanted: &String| {
        let is_it = |group: &&Group| {
            group.name == *wanted || group.path.file_name() == format!("{wanted}.json")
        };
        let found: Vec<_> = examined.groups.iter().filter(is_it).collect();
        match found[..] {
            [group] => Ok(group),
            [] => Err(Error::NoSuchGroup { name: wanted.clone() }),
            _ => Err(Error::SeveralGroups { name: wanted.clone() }),
        }
    };
    let chosen = options.group.as_ref().map(find).transpose()?;
    let repair = |chat: &Unlisted| match &chat.groups[..] {
        [group] => Some(list_in_group(chat, group)),
        _ => chosen.map(|group| list_in_group(chat, group)),
    };
    Ok(examined.unlisted.iter().filter_map(repair).collect())
}

fn list_in_group(chat: &Unlisted, group: &Group) -> Repair {
    let what = format!("list {} in the group {:?}", chat.chat, group.name);
    let (timeline, path) = (chat.chat.clone(), group.path.clone());
    let metadata = chat.metadata.clone();
    let step = RepairStep::ListInGroup { timeline, group: path.clone(), metadata };
    Repair::new(Code::GroupChatUnlisted, &chat.chat, what, vec![path], step)
}
