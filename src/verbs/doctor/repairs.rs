//! Plans repairs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::examine::Examination;
use super::unlisted::{Group, Unlisted};
use super::{MissingBookRepair, Options};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::free_names::free_lorebook;
use crate::engine::{Workspace, files};
use crate::history::latest_valid::described;
use crate::rules::{Code, Finding, LibraryFacts, TimelineFacts, UnusedBook};
use crate::st::{self, Library, LibraryPath, TimelineName, chat_name, lorebook_path};
use crate::verbs::{Error, Result};

/// A planned repair.
#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    /// The finding that the repair resolves.
    pub code: Code,
    /// The timeline or file to repair.
    pub subject: String,
    /// Description that starts with a verb, for example "restore worlds/x.json".
    pub what: String,
    /// Files that the repair changes.
    pub files: Vec<LibraryPath>,
    /// Subjects of the findings that this repair resolves.
    #[serde(skip)]
    mends: Vec<String>,
    #[serde(skip)]
    pub(super) step: RepairStep,
}

#[derive(Clone, Debug)]
pub(super) enum RepairStep {
    /// Gives a timeline a copy of its lorebook under a new name.
    OwnBook {
        timeline: TimelineName,
        book: OwnBook,
    },
    Detach {
        timeline: TimelineName,
        book: String,
    },
    /// Writes the timeline's name into its running recap.
    OwnRecap {
        timeline: TimelineName,
    },
    /// Writes a missing lorebook or a damaged file.
    Write {
        path: LibraryPath,
        source: Source,
        users: Vec<TimelineName>,
    },
    /// Adds a chat to its group's list of chats. `metadata` is the chat's metadata from an earlier
    /// version of the group's file.
    ListInGroup {
        timeline: TimelineName,
        group: LibraryPath,
        metadata: Option<Vec<u8>>,
    },
    /// Removes an unused lorebook, and its entries in the checkpoint maps of the chats in
    /// `mapped_in`.
    Remove {
        path: LibraryPath,
        mapped_in: Vec<TimelineName>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct OwnBook {
    pub old: String,
    pub new: String,
    pub path: LibraryPath,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    Snapshot(SnapshotId),
    Empty,
    CopyOf(LibraryPath),
}

impl Repair {
    /// Plans a repair that resolves the finding about `subject`.
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

    pub(super) fn repairs_finding(&self, finding: &Finding) -> bool {
        finding.code == self.code && self.mends.contains(&finding.subject)
    }

    pub(super) fn advise(&self, finding: &mut Finding) {
        if let RepairStep::OwnRecap { .. } = self.step {
            finding.remedy =
                Some("run `stvc doctor --fix` to write this chat's name into the recap".into());
        }
    }
}

pub(super) fn plan(
    library: &Library,
    examined: &Examination,
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

fn damaged_files(examined: &Examination) -> Vec<Repair> {
    let facts = &examined.facts;
    // After a lorebook is repaired, a snapshot is created of each chat that uses the lorebook. If
    // some chats are unreadable, these users are not all known, and lorebooks are not repaired.
    let is_damaged = |(path, _): &(&LibraryPath, _)| {
        facts.damaged.contains_key(*path) && (!facts.is_partial || !path.is_lorebook())
    };
    let damaged = examined.stored.iter().filter(is_damaged);
    let users = |path: &LibraryPath| {
        let has_it = |timeline: &&TimelineFacts| {
            timeline.book.as_ref().is_some_and(|book| book.path.as_ref() == Some(path))
        };
        facts.timelines.iter().filter(has_it).map(|timeline| timeline.name.clone()).collect()
    };
    let repair = |(path, snapshot): (&LibraryPath, &Snapshot)| {
        let code = if path.is_lorebook() { Code::LorebookBroken } else { Code::FileDamaged };
        let what = format!(
            "restore {path} from {} in {}, the latest valid version",
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
    let why = "it is not a valid lorebook name";
    let path = lorebook_path(&new).ok_or_else(|| Error::BadName { name: new.clone(), why })?;
    let what = format!("give {} its own lorebook {new:?}, a copy of {old:?}", fork.name);
    let files = vec![path.clone(), metadata_in.clone()];
    let book = OwnBook { old, new, path };
    let step = RepairStep::OwnBook { timeline: fork.name.clone(), book };
    let repair = Repair::new(Code::LorebookShared, &fork.name, what, files, step);
    // This repair alone does not resolve the finding: other forks may share the lorebook, too.
    Ok(Repair { mends: Vec::new(), ..repair })
}

/// Plans to write the name of a renamed chat into its running recap. ST-Auto-Recap would delete a
/// recap that has the chat's old name.
fn own_recap(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Repair> {
    let id = timeline.recap_of.as_deref()?;
    let metadata_in = timeline.metadata_in.clone()?;
    let name = &timeline.name;
    let is_own = id == name.chat() || chat_name(id).as_deref() == Some(name.chat());
    if is_own || timeline.main_chat.is_some() || facts.chat_called(name, id).is_some() {
        return None;
    }
    let what = format!("assign the running recap of {name} to this chat instead of {id:?}");
    let step = RepairStep::OwnRecap { timeline: name.clone() };
    let repair = Repair::new(Code::RecapForeign, name, what, vec![metadata_in], step);
    Some(Repair { mends: vec![name.file().to_string()], ..repair })
}

struct MissingBook<'f> {
    name: &'f str,
    /// `None` if the lorebook's name is not a valid file name.
    path: Option<&'f LibraryPath>,
    users: Vec<&'f TimelineFacts>,
}

impl MissingBook<'_> {
    fn names(&self) -> Vec<TimelineName> {
        self.users.iter().map(|user| user.name.clone()).collect()
    }
}

/// A missing lorebook that no snapshot contains. The user has to choose a replacement.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// Name of the missing lorebook.
    pub book: String,
    /// Chats that are bound to it.
    pub users: Vec<TimelineName>,
    /// Possible replacements, each with the repairs that carry it out.
    pub ways: Vec<(MissingBookRepair, Vec<Repair>)>,
    path: Option<LibraryPath>,
}

impl Undecided {
    /// Returns whether the missing lorebook can be replaced by a copy. False if its name is not a
    /// valid file name.
    pub fn can_be_written(&self) -> bool {
        self.path.is_some()
    }

    /// Plans to replace the missing lorebook by a copy of the lorebook `name`.
    pub fn copy_of(&self, workspace: &Workspace, name: &str) -> Result<Vec<Repair>> {
        let other = chosen_book(&workspace.library()?, name)?;
        let repair = |path| write(path, &self.users, Source::CopyOf(other), copied(path, name));
        Ok(self.path.as_ref().map(repair).into_iter().collect())
    }
}

fn missing_books(
    library: &Library,
    examined: &Examination,
    how: Option<&MissingBookRepair>,
) -> Result<(Vec<Repair>, Vec<Undecided>)> {
    let facts = &examined.facts;
    let mut missing = BTreeMap::new();
    for timeline in &facts.timelines {
        let Some(book) = timeline.book.as_ref().filter(|book| !book.exists) else { continue };
        let (name, path) = (book.name.as_str(), book.path.as_ref());
        let new = MissingBook { name, path, users: Vec::new() };
        missing.entry(path.ok_or(name)).or_insert(new).users.push(timeline);
    }
    let (mut repairs, mut undecided) = (Vec::new(), Vec::new());
    for book in missing.values() {
        let mut chosen = match how {
            Some(how) => ways(library, facts, book, how)?,
            None => Vec::new(),
        };
        if chosen.is_empty()
            && matches!(how, None | Some(MissingBookRepair::Clone))
            && let Some(path) = book.path
            && let Some(snapshot) = examined.stored.get(path)
        {
            let from = format!("from {} in {}", described(snapshot), snapshot.timeline);
            let what = format!("restore {path} {from}");
            chosen.push(write(path, &book.names(), Source::Snapshot(snapshot.id), what));
        }
        if chosen.is_empty() && how.is_none() {
            let mut possible = Vec::new();
            for how in
                [MissingBookRepair::Empty, MissingBookRepair::Clone, MissingBookRepair::Detach]
            {
                let repairs = ways(library, facts, book, &how)?;
                if !repairs.is_empty() {
                    possible.push((how, repairs));
                }
            }
            let (users, path) = (book.names(), book.path.cloned());
            undecided.push(Undecided { book: book.name.to_owned(), users, ways: possible, path });
        }
        repairs.extend(chosen);
    }
    Ok((repairs, undecided))
}

/// Plans the chosen replacement of a missing lorebook. Returns an empty list if this replacement is
/// impossible.
fn ways(
    library: &Library,
    facts: &LibraryFacts,
    book: &MissingBook<'_>,
    how: &MissingBookRepair,
) -> Result<Vec<Repair>> {
    if *how == MissingBookRepair::Detach {
        return Ok(book.users.iter().filter_map(|user| detach(user, book.name)).collect());
    }
    let Some(path) = book.path else { return Ok(Vec::new()) };
    let chosen = match how {
        MissingBookRepair::Empty => Some((Source::Empty, format!("create {path} without entries"))),
        MissingBookRepair::CloneOf(name) => {
            Some((Source::CopyOf(chosen_book(library, name)?), copied(path, name)))
        }
        MissingBookRepair::Clone => book.users.iter().find_map(|user| copy(facts, user)),
        MissingBookRepair::Detach => None,
    };
    let repair = |(source, what)| write(path, &book.names(), source, what);
    Ok(chosen.map(repair).into_iter().collect())
}

fn copied(path: &LibraryPath, name: &str) -> String {
    format!("create {path} as a copy of {name:?}")
}

fn write(path: &LibraryPath, users: &[TimelineName], source: Source, what: String) -> Repair {
    let step = RepairStep::Write { path: path.clone(), source, users: users.to_vec() };
    let repair = Repair::new(Code::LorebookMissing, path, what, vec![path.clone()], step);
    Repair { mends: users.iter().map(TimelineName::to_string).collect(), ..repair }
}

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

fn copy(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<(Source, String)> {
    let parent = facts.timeline(&facts.parent(timeline)?)?;
    let book = parent.book.as_ref().filter(|book| facts.may_be_copied(book))?;
    let missing = timeline.book.as_ref()?.path.as_ref()?;
    let what =
        format!("create {missing} as a copy of {:?}, the lorebook of {}", book.name, parent.name);
    Some((Source::CopyOf(book.path.clone()?), what))
}

fn detach(timeline: &TimelineFacts, book: &str) -> Option<Repair> {
    let what = format!("unbind {} from its lorebook {book:?}", timeline.name);
    let files = vec![timeline.metadata_in.clone()?];
    let step = RepairStep::Detach { timeline: timeline.name.clone(), book: book.to_owned() };
    Some(Repair::new(Code::LorebookMissing, &timeline.name, what, files, step))
}

fn list_in_groups(examined: &Examination, options: &Options) -> Result<Vec<Repair>> {
    let chosen = match &options.group {
        Some(wanted) => {
            let file = format!("{wanted}.json");
            let is_it = |group: &&Group| group.name == *wanted || group.path.file_name() == file;
            let found: Vec<_> = examined.groups.iter().filter(is_it).collect();
            match found[..] {
                [group] => Some(group),
                [] => return Err(Error::NoSuchGroup { name: wanted.clone() }),
                _ => return Err(Error::SeveralGroups { name: wanted.clone() }),
            }
        }
        None => None,
    };
    let repair = |chat: &Unlisted| {
        let group = if let [group] = &chat.groups[..] { group } else { chosen? };
        let what = format!("list {} in the group {:?}", chat.chat, group.name);
        let (timeline, path) = (chat.chat.clone(), group.path.clone());
        let metadata = chat.metadata.clone();
        let step = RepairStep::ListInGroup { timeline, group: path.clone(), metadata };
        Some(Repair::new(Code::GroupChatUnlisted, &chat.chat, what, vec![path], step))
    };
    Ok(examined.unlisted.iter().filter_map(repair).collect())
}
