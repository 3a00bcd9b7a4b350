//! What can be done about what was found, each repair by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::examine::{Examined, short};
use super::unlisted::{Group, Unlisted};
use super::{Missing, Options};
use crate::archive::SnapshotId;
use crate::engine::free_book_name::clone_name;
use crate::rules::{Code, Finding, LibraryFacts, TimelineFacts};
use crate::st::{Library, LibraryPath, TimelineName, chat_name, lorebook_path};
use crate::verbs::{Error, Result};

/// One thing that can be repaired.
#[derive(Clone, Debug)]
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
    mends: Vec<String>,
    pub(super) step: RepairStep,
}

/// What will be done.
#[derive(Clone, Debug)]
pub(super) enum RepairStep {
    /// Give a timeline a copy of its lorebook under a name of its own.
    OwnBook { timeline: TimelineName, old: String, new: String, path: LibraryPath },
    /// Let a timeline go without its lorebook.
    Detach { timeline: TimelineName, book: String },
    /// Let a timeline's running recap say that it belongs to it.
    OwnRecap { timeline: TimelineName },
    /// Write a missing lorebook.
    WriteBook { path: LibraryPath, source: Source },
    /// List a chat in its group, with the metadata that the group's file had of it.
    ListInGroup { timeline: TimelineName, group: LibraryPath, metadata: Option<Vec<u8>> },
    /// Remove a lorebook that nothing uses.
    Remove { path: LibraryPath },
}

/// Where a missing lorebook comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Snapshot(SnapshotId),
    Empty,
    CopyOf(LibraryPath),
}

impl Repair {
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

/// Plan all repairs.
pub(super) fn plan(
    library: &Library,
    examined: &Examined,
    options: &Options,
) -> Result<Vec<Repair>> {
    let facts = &examined.facts;
    let mut repairs = missing_books(library, examined, options.missing.as_ref())?;
    let written = repairs.iter().flat_map(|repair| &repair.files);
    let mut taken: BTreeSet<String> = written.map(|path| path.as_str().to_lowercase()).collect();
    for fork in facts.shared().iter().flat_map(|book| &book.forks) {
        if let Some(metadata_in) = &fork.metadata_in {
            repairs.push(own_book(library, facts, fork, metadata_in, &mut taken)?);
        }
    }
    repairs.extend(facts.timelines.iter().filter_map(|timeline| own_recap(facts, timeline)));
    repairs.extend(list_in_groups(examined, options)?);
    if facts.unknown.is_empty() {
        let chosen = facts.unused.iter().filter(|book| book.leftover || options.orphans);
        repairs.extend(chosen.map(|book| Repair {
            code: Code::LorebookOrphaned,
            subject: book.path.to_string(),
            what: format!("remove {}, which nothing uses", book.path),
            files: vec![book.path.clone()],
            mends: vec![book.path.to_string()],
            step: RepairStep::Remove { path: book.path.clone() },
        }));
    }
    Ok(repairs)
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
    let (new, path) = free_name(library, &old, &known, fork.name.chat(), taken)?;
    Ok(Repair {
        code: Code::LorebookShared,
        subject: fork.name.to_string(),
        what: format!("give {} a lorebook of its own, {new:?}, a copy of {old:?}", fork.name),
        files: vec![path.clone(), metadata_in.clone()],
        mends: Vec::new(),
        step: RepairStep::OwnBook { timeline: fork.name.clone(), old, new, path },
    })
}

/// A name for a copy that is free on the disk and among those that are planned.
fn free_name(
    library: &Library,
    book: &str,
    known: &[&str],
    chat: &str,
    taken: &mut BTreeSet<String>,
) -> Result<(String, LibraryPath)> {
    let name = clone_name(library, book, known, chat, taken)?;
    taken.insert(name.to_lowercase());
    let path = lorebook_path(&name)
        .ok_or(Error::BadName { name: name.clone(), why: "no lorebook can be called that" })?;
    Ok((name, path))
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
    Some(Repair {
        code: Code::RecapForeign,
        subject: name.to_string(),
        what: format!(
            "tell the running recap of {name} that it belongs to this chat, not to {id:?}"
        ),
        files: vec![metadata_in],
        mends: vec![name.file().to_string()],
        step: RepairStep::OwnRecap { timeline: name.clone() },
    })
}

fn missing_books(
    library: &Library,
    examined: &Examined,
    how: Option<&Missing>,
) -> Result<Vec<Repair>> {
    let facts = &examined.facts;
    let other = match how {
        Some(Missing::CloneOf(name)) => Some(chosen_book(library, name)?),
        _ => None,
    };
    let mut missing: BTreeMap<&LibraryPath, Vec<&TimelineFacts>> = BTreeMap::new();
    let mut repairs = Vec::new();
    for timeline in &facts.timelines {
        let Some(book) = timeline.book.as_ref().filter(|book| !book.exists) else { continue };
        match &book.path {
            Some(path) if how != Some(&Missing::Detach) => {
                missing.entry(path).or_default().push(timeline);
            }
            _ if how == Some(&Missing::Detach) => repairs.extend(detach(timeline, &book.name)),
            _ => {}
        }
    }
    for (path, users) in missing {
        let stored = || {
            let snapshot = examined.stored.get(path)?;
            let from = format!("from snapshot {} of {}", short(snapshot.id), snapshot.timeline);
            Some((Source::Snapshot(snapshot.id), format!("bring {path} back {from}")))
        };
        let chosen = match how {
            Some(Missing::Empty) => Some((Source::Empty, format!("make {path}, with no entries"))),
            Some(Missing::CloneOf(name)) => other
                .clone()
                .map(|other| (Source::CopyOf(other), format!("make {path}, a copy of {name:?}"))),
            Some(Missing::Clone) => users.iter().find_map(|user| copy(facts, user)).or_else(stored),
            _ => stored(),
        };
        repairs.extend(chosen.map(|(source, what)| Repair {
            code: Code::LorebookMissing,
            subject: path.to_string(),
            what,
            files: vec![path.clone()],
            mends: users.iter().map(|user| user.name.to_string()).collect(),
            step: RepairStep::WriteBook { path: path.clone(), source },
        }));
    }
    Ok(repairs)
}

/// The lorebook that the user calls so, which must be there.
fn chosen_book(library: &Library, name: &str) -> Result<LibraryPath> {
    let there = library.lorebooks()?;
    let path = lorebook_path(name)
        .filter(|path| there.iter().any(|book| path.file_name() == format!("{book}.json")));
    path.ok_or_else(|| Error::NoSuchLorebook { name: name.to_owned() })
}

/// The lorebook of the chat that this one was forked from, under the missing name.
fn copy(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<(Source, String)> {
    let parent = facts.timeline(&facts.parent(timeline)?)?;
    let book = parent.book.as_ref().filter(|book| book.exists)?;
    let missing = timeline.book.as_ref()?.path.as_ref()?;
    let what =
        format!("make {missing}, a copy of {:?}, the lorebook of {}", book.name, parent.name);
    Some((Source::CopyOf(book.path.clone()?), what))
}

fn detach(timeline: &TimelineFacts, book: &str) -> Option<Repair> {
    Some(Repair {
        code: Code::LorebookMissing,
        subject: timeline.name.to_string(),
        what: format!("let {} go without its lorebook {book:?}", timeline.name),
        files: vec![timeline.metadata_in.clone()?],
        mends: vec![timeline.name.to_string()],
        step: RepairStep::Detach { timeline: timeline.name.clone(), book: book.to_owned() },
    })
}

/// Lists group chats that no group lists in their group: of several the user must name one.
fn list_in_groups(examined: &Examined, options: &Options) -> Result<Vec<Repair>> {
    let chosen = match &options.group {
        None => None,
        Some(wanted) => {
            let is_it = |group: &&Group| {
                group.name == *wanted || group.path.file_name() == format!("{wanted}.json")
            };
            let found: Vec<_> = examined.groups.iter().filter(is_it).collect();
            match found[..] {
                [group] => Some(group),
                [] => return Err(Error::NoSuchGroup { name: wanted.clone() }),
                _ => return Err(Error::SeveralGroups { name: wanted.clone() }),
            }
        }
    };
    let repair = |chat: &Unlisted| match (&chat.groups[..], chosen) {
        ([group], _) => Some(list_in_group(chat, group)),
        (_, chosen) => chosen.map(|group| list_in_group(chat, group)),
    };
    Ok(examined.unlisted.iter().filter_map(repair).collect())
}

fn list_in_group(chat: &Unlisted, group: &Group) -> Repair {
    let (timeline, path) = (chat.chat.clone(), group.path.clone());
    let metadata = chat.metadata.clone();
    Repair {
        code: Code::GroupChatUnlisted,
        subject: timeline.to_string(),
        what: format!("list {timeline} in the group {:?}", group.name),
        files: vec![path.clone()],
        mends: vec![timeline.to_string()],
        step: RepairStep::ListInGroup { timeline, group: path, metadata },
    }
}
