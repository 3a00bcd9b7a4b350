//! The plan for everything that a backup or a remote has, and its results for reports.

use std::collections::BTreeMap;

use super::future_library::FutureLibrary;
use crate::archive::merge::{self, Side, merge_books};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::device::Device;
use crate::history::History;
use crate::rules::Finding;
use crate::st::{LibraryPath, TimelineFiles, TimelineName};
use crate::store::Erasures;

/// The side that gives way where both changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// `import`: local states stay or are fast-forwarded; others get another name.
    KeepLocal,
    /// `sync`: both sides become equal. The first to reach the remote keeps the name.
    Join,
}

pub(super) struct Plan<'h> {
    pub timelines: Vec<TimelinePlan<'h>>,
    pub tags: Vec<ReceivedTag>,
    pub files: FutureLibrary,
    pub findings: Vec<Finding>,
    pub erasures: Erasures,
}

pub(super) struct TimelinePlan<'h> {
    pub entry: ReceivedTimeline,
    pub local: Option<&'h Snapshot>,
    /// The remote has the local state: as an ancestor, or in a timeline that an earlier sync set
    /// aside.
    pub is_stored_there: bool,
    pub branch: BranchMove,
    pub aside: Option<Aside>,
}

impl<'h> TimelinePlan<'h> {
    pub(super) fn new(head: Snapshot, local: Option<&'h Snapshot>) -> Self {
        let entry = ReceivedTimeline::new(head, Outcome::Known);
        Self { entry, local, is_stored_there: false, branch: BranchMove::Stay, aside: None }
    }

    pub(super) fn called(mut self, name: TimelineName) -> Self {
        let local = self.local.map(|local| local.timeline.clone());
        self.entry.former = local.filter(|local| *local != name);
        self.entry.timeline = name;
        self
    }

    pub(super) fn is_moved(&self) -> bool {
        !matches!(self.branch, BranchMove::Stay)
    }
}

pub(super) enum BranchMove {
    Stay,
    /// To the remote snapshot.
    There,
    /// To a new snapshot after that, joined with this local one.
    Made(Box<TimelineFiles>, Option<SnapshotId>),
    /// To a new snapshot of this local state, under another name.
    Renamed(Box<TimelineFiles>),
}

pub(super) struct Aside {
    pub from: Snapshot,
    pub files: TimelineFiles,
    /// The device that set it aside, as the snapshot records it.
    pub source: String,
}

pub(super) enum JoinedBook {
    Theirs,
    Ours,
    Both(Vec<u8>),
    Conflicts(Vec<merge::Conflict>),
}

impl JoinedBook {
    /// `before` is the common ancestor.
    pub(super) fn of(now: Option<&[u8]>, before: Option<&[u8]>, theirs: &[u8]) -> Self {
        let Some(now) = now else { return Self::Theirs };
        if now == theirs || before == Some(now) {
            return Self::Theirs;
        }
        if before == Some(theirs) {
            return Self::Ours;
        }
        match merge_books(before, now, theirs, Side::Ours) {
            Ok(merged)
                if merged.conflicts.is_empty()
                    && merged.not_renumbered.is_empty()
                    && merged.queue_left == 0 =>
            {
                Self::Both(merged.bytes)
            }
            Ok(merged) => Self::Conflicts(merged.conflicts),
            // A file that is not a readable lorebook is not merged.
            Err(_) => Self::Conflicts(Vec::new()),
        }
    }
}

/// The result for a timeline of a backup or remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is here, as new or newer.
    Known,
    New,
    /// It has another name now, and may be updated.
    Renamed,
    /// It was fast-forwarded.
    Forward,
    /// Both sides changed it; conflicts have the remote value.
    Merged,
    /// Both sides changed it: the local state has this name now.
    Apart(TimelineName),
    /// Both sides changed it: the imported state has this name.
    Beside(TimelineName),
    /// Both sides changed it, and the imported state has an unsupported format, which cannot be
    /// renamed: it has this tag.
    Tagged(String),
    /// It was erased here, or elsewhere before it came here; it is removed from the remote.
    Erased,
    /// It was erased on another device. It stays here, and is not sent.
    ErasedElsewhere,
    /// The timeline it was forked from was erased, so its past cannot be exchanged.
    ForkOfErased,
    /// It was left alone, for this reason.
    Left(&'static str),
}

impl Outcome {
    /// Returns the word for it in `--json`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::New => "new",
            Self::Renamed => "renamed",
            Self::Forward => "forward",
            Self::Merged => "merged",
            Self::Apart(_) => "apart",
            Self::Beside(_) => "beside",
            Self::Tagged(_) => "tagged",
            Self::Erased => "erased",
            Self::ErasedElsewhere => "erased-elsewhere",
            Self::ForkOfErased | Self::Left(_) => "left",
        }
    }
}

/// A lorebook that both sides changed in the same places.
pub struct Conflict {
    /// The lorebook that chats use.
    pub book: LibraryPath,
    /// Each with the value of the other lorebook as `ours` and that of `book` as `theirs`; empty if
    /// they cannot be determined.
    pub places: Vec<merge::Conflict>,
    /// The timeline of the other lorebook.
    pub other: Option<TimelineName>,
    /// The device that set it aside; `None`: this one.
    pub set_aside_by: Option<Device>,
}

impl Conflict {
    /// Returns the number of places, at least one.
    pub fn count(&self) -> usize {
        self.places.len().max(1)
    }
}

/// A timeline of a backup or remote. Listed once per conflict.
pub struct ReceivedTimeline {
    pub timeline: TimelineName,
    /// Its latest snapshot there.
    pub head: Snapshot,
    pub outcome: Outcome,
    /// Its former local name, if it changed.
    pub former: Option<TimelineName>,
    /// The number of new snapshots.
    pub snapshots: usize,
    pub conflict: Option<Conflict>,
}

impl ReceivedTimeline {
    pub(super) fn new(head: Snapshot, outcome: Outcome) -> Self {
        let timeline = head.timeline.clone();
        Self { timeline, head, outcome, former: None, snapshots: 0, conflict: None }
    }

    /// Returns the timeline that conflicts with it.
    pub fn set_aside(&self) -> Option<&TimelineName> {
        self.conflict.as_ref()?.other.as_ref()
    }
}

/// A tag that came or moved.
pub struct ReceivedTag {
    /// Its former name: there, or of a local tag that makes room.
    pub name: String,
    pub here: String,
    pub snapshot: SnapshotId,
}

/// Plans the tags. A tag whose name the other side uses for another snapshot gets a number.
pub(super) fn plan_tags(ours: &History, theirs: &History, policy: Policy) -> Vec<ReceivedTag> {
    let here: BTreeMap<_, _> = ours.tags().collect();
    let mut taken = all_tags([ours]);
    if policy == Policy::Join {
        taken.extend(all_tags([theirs]));
    }
    let mut tags = Vec::new();
    for (name, snapshot) in theirs.tags().filter(|(name, id)| here.get(name) != Some(id)) {
        let received = |here: String, snapshot| ReceivedTag { name: name.into(), here, snapshot };
        let makes_room = match policy {
            Policy::KeepLocal => Some(snapshot),
            Policy::Join => {
                tags.push(received(name.into(), snapshot));
                here.get(name).copied()
            }
        };
        if let Some(snapshot) = makes_room
            && let Some(free) = free_tag(name, snapshot, &taken)
            && taken.insert(free.clone(), snapshot).is_none()
        {
            tags.push(received(free, snapshot));
        }
    }
    tags
}

pub(super) fn all_tags<'h>(
    histories: impl IntoIterator<Item = &'h History>,
) -> BTreeMap<String, SnapshotId> {
    let tags = histories.into_iter().flat_map(History::tags);
    tags.map(|(name, id)| (name.to_owned(), id)).collect()
}

/// Returns a tag that no other snapshot has: this one, or with a number.
pub(super) fn free_tag(
    name: &str,
    snapshot: SnapshotId,
    taken: &BTreeMap<String, SnapshotId>,
) -> Option<String> {
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.get(name).is_none_or(|id| *id == snapshot))
}
