//! Plans the import of a backup. Writes nothing.
//!
//! Local changes are not overwritten: if a timeline changed locally and in the backup, both
//! versions are kept. If a timeline changed only in the backup, its files are updated. Otherwise
//! the next snapshot would treat the old files as newer than the imported state.

use std::collections::BTreeMap;

use super::future_library::FutureLibrary;
use super::incoming::Incoming;
use super::plan::{BranchMove, Outcome, Plan, Policy, TimelinePlan, all_tags, free_tag, plan_tags};
use super::sides::Sides;
use crate::archive::message_identity::Chain;
use crate::archive::{self, Snapshot, SnapshotId, Tree, branch, erasure_marks, read_manifest};
use crate::engine::free_names::free_timeline;
use crate::engine::{Result, changed_timelines};
use crate::history::origin::without_blank_end;
use crate::st::{self, Disk, TimelineName};
use crate::store::{Erasures, Loss, RefName};

pub(super) fn plan<'s>(sides: &'s Sides<'s>, incoming: &Incoming) -> Result<Plan<'s>> {
    let Sides { ours, theirs, store, .. } = *sides;
    let day = incoming.header.day();
    let owners = ours.owners();
    let mut names = sides.names();
    let mut tags = all_tags([ours, theirs]);
    let mut moved: BTreeMap<TimelineName, SnapshotId> = BTreeMap::new();
    let (mut timelines, mut following) = (Vec::new(), Vec::new());
    // The name of a timeline is in its latest snapshot. The name of the branch is ignored.
    for head in theirs.without_renamed(&incoming.heads) {
        let past = theirs.past([head.id]);
        let current = match moved.get(&head.timeline) {
            Some(id) => Some(*id),
            None => store.ref_target(&branch(&head.timeline))?.map(SnapshotId),
        };
        let is_own = |known: &Snapshot| ours.head(owners.of_snapshot(known)).is_some();
        // A timeline is also known if it continues in this store under another name, or if this
        // store has rewritten its snapshots.
        let is_known = ours.get(head.id).is_some_and(is_own)
            || current == Some(head.id)
            || current.is_some() && !store.find_former(&head.id.to_string())?.is_empty();
        let continues = !is_known && current.is_none_or(|current| past.contains(&current));
        let on_disk = if continues { on_disk(sides, &head)? } else { OnDisk::Other };
        let outcome = match (current, on_disk) {
            _ if is_known => Outcome::Known,
            (None, OnDisk::Free) => Outcome::New,
            (Some(_), OnDisk::Free | OnDisk::Stored) => Outcome::Forward,
            _ if is_newer(sides, &head)? => {
                let tag = free_tag(&tag_beside(&head.timeline, day), head.id, &tags);
                let is_new = |tag: &String| !ours.tags().any(|known| known == (tag, head.id));
                match tag.filter(is_new) {
                    Some(tag) => {
                        tags.insert(tag.clone(), head.id);
                        Outcome::Tagged(tag)
                    }
                    None => Outcome::Known,
                }
            }
            _ => {
                let (what, library) = ("from backup", sides.library);
                Outcome::Beside(free_timeline(&head.timeline, what, day, library, &mut names)?)
            }
        };
        let mut step = TimelinePlan::new(head.clone(), None);
        step.entry.snapshots = past.iter().filter(|id| ours.get(**id).is_none()).count();
        if let Outcome::New | Outcome::Forward = outcome {
            moved.insert(head.timeline.clone(), head.id);
            step.branch = BranchMove::There;
        }
        if outcome == Outcome::Forward && on_disk == OnDisk::Stored {
            following.push(head);
        }
        step.entry.outcome = outcome;
        timelines.push(step);
    }
    timelines.sort_by(|a, b| a.entry.timeline.cmp(&b.entry.timeline));
    Ok(Plan {
        erasures: wanted_again(sides, &timelines)?,
        timelines,
        tags: plan_tags(ours, theirs, Policy::KeepLocal),
        files: following_files(sides, incoming, following)?,
        findings: Vec::new(),
        postponed: 0,
    })
}

/// The state of the local file of a timeline that would be imported. The timeline's branch must not
/// move if the old file would then look newer than the imported state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    /// The branch can move: there is no file, or the file is equal to the imported state or newer.
    Free,
    /// The file equals the latest local snapshot, so it can be updated.
    Stored,
    /// The branch must not move.
    Other,
}

fn on_disk(sides: &Sides<'_>, head: &Snapshot) -> Result<OnDisk> {
    let name = &head.timeline;
    let is_there = |library: &&st::Library| name.file().under(library.root()).exists();
    let Some(library) = sides.library.filter(is_there) else { return Ok(OnDisk::Free) };
    let captured = st::capture(library, &sides.groups, name, &Disk)?;
    let stored = changed_timelines::head(sides.store, name)?.0;
    let is_stored = match &stored {
        Some(stored) => {
            changed_timelines::changed_parts(&captured, &sides.here, stored)?.is_stored()
        }
        None => false,
    };
    let here = captured.files.split();
    // A chat without a header has its metadata in the group's file, which is not updated.
    if is_stored && (!name.is_chat() || here.header.is_some()) {
        return Ok(OnDisk::Stored);
    }
    if !name.is_chat() {
        // A file without local snapshots counts as newer than the imported state. The user decides
        // whether to replace the file.
        return Ok(if stored.is_some() { OnDisk::Other } else { OnDisk::Free });
    }
    let contents = Tree::open(&sides.there, head.tree)?.materialise(&sides.there)?;
    let comes = Chain::of(without_blank_end(&contents.files.split().messages));
    let here = Chain::of(without_blank_end(&here.messages));
    let same_book = captured.files.book_bytes() == contents.files.book_bytes();
    let continues = comes.shared_with(&here) == comes.len();
    // If the messages are equal and the lorebooks differ, it is unknown which state is newer.
    let is_newer = here.len() > comes.len() || same_book;
    Ok(if continues && is_newer { OnDisk::Free } else { OnDisk::Other })
}

/// Plans the files of fast-forwarded timelines. If several chats share a lorebook, its latest
/// version is written.
fn following_files(
    sides: &Sides<'_>,
    incoming: &Incoming,
    mut following: Vec<Snapshot>,
) -> Result<FutureLibrary> {
    let mut future = FutureLibrary::new(sides.library, incoming.store.reader());
    following.sort_by(|a, b| {
        a.time.seconds.cmp(&b.time.seconds).then_with(|| b.timeline.cmp(&a.timeline))
    });
    for head in following {
        let files = Tree::open(&sides.there, head.tree)?.materialise(&sides.there)?.files;
        future.put(&files.main.path, Some(files.main.bytes.to_vec()))?;
        if let Some(book) = files.book() {
            // If the lorebook has its own timeline in the backup, it is imported with that
            // timeline.
            let own = TimelineName::of_file(book.path);
            if own.is_none_or(|own| sides.theirs.head(&own).is_none()) {
                future.put(book.path, Some(book.bytes.to_vec()))?;
            }
        }
    }
    Ok(future)
}

/// Returns the recorded erasures without those of the imported timelines, because the user wants
/// these timelines again.
fn wanted_again(sides: &Sides<'_>, timelines: &[TimelinePlan<'_>]) -> Result<Erasures> {
    let mut erasures = sides.store.erasures()?;
    if erasures.is_empty() {
        return Ok(erasures);
    }
    for snapshot in sides.theirs.walk_from(timelines.iter().map(|step| step.entry.head.id)) {
        erasures.withdraw(&snapshot.id.to_string());
        for mark in erasure_marks(&sides.there, snapshot)? {
            erasures.withdraw(&mark);
        }
    }
    Ok(erasures)
}

/// Returns the tag `<chat> (from backup 2026-11-15)` with the date `day`. Shortens the chat's name
/// if the tag with a number would be too long.
fn tag_beside(timeline: &TimelineName, day: &str) -> String {
    let mut chat = timeline.chat().to_owned();
    loop {
        let name = format!("{} (from backup {day})", chat.trim_end());
        if RefName::tag(&format!("{name} (1000)")).is_some() || chat.pop().is_none() {
            return name;
        }
    }
}

fn is_newer(sides: &Sides<'_>, head: &Snapshot) -> Result<bool> {
    match read_manifest(&sides.there, head.tree) {
        Err(archive::Error::NewerFormat { .. }) => Ok(true),
        Err(error) if !error.is_loss() => Err(error.into()),
        _ => Ok(false),
    }
}
