//! The plan for the timelines and tags of a backup or remote, and the results that reports show.

use std::collections::BTreeMap;

use super::future_library::FutureLibrary;
use crate::archive::merge::{self, Side, merge_books};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::device::Device;
use crate::history::History;
use crate::rules::Finding;
use crate::st::{LibraryPath, TimelineFiles, TimelineName};
use crate::store::Erasures;

/// The rule for timelines that changed on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// `import`: local timelines stay unchanged or are fast-forwarded. If a timeline has diverged,
    /// its version in the backup gets another name.
    KeepLocal,
    /// `sync` with a folder or git server: both sides become equal. The timeline that reached the
    /// remote first keeps the name.
    Join,
    /// `sync` with a remote on plain storage: both sides become equal. The timeline that changed
    /// first keeps the name, because several devices may decide at the same time.
    JoinByTime,
}

impl Policy {
    pub(crate) fn is_sync(self) -> bool {
        self != Self::KeepLocal
    }
}

pub(super) struct Plan<'h> {
    pub timelines: Vec<TimelinePlan<'h>>,
    pub tags: Vec<ReceivedTag>,
    pub files: FutureLibrary,
    pub findings: Vec<Finding>,
    /// Number of branches of the remote that can be joined only after this plan.
    pub postponed: usize,
    pub erasures: Erasures,
}

pub(super) struct TimelinePlan<'h> {
    pub entry: ReceivedTimeline,
    pub local: Option<&'h Snapshot>,
    /// Whether the remote has the local state: as an ancestor, or in a timeline that an earlier
    /// sync set aside.
    pub is_stored_there: bool,
    pub branch: BranchMove,
    pub aside: Option<SetAsideTimeline>,
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
    /// Move the branch to the remote snapshot.
    There,
    /// Move the branch to a new snapshot of these files. Its parents are the remote snapshot and
    /// this local snapshot, if any.
    Made(Box<TimelineFiles>, Option<SnapshotId>),
    /// Move the branch to a new snapshot of these local files, under another name.
    Renamed(Box<TimelineFiles>),
}

/// A copy of one version of a timeline under another name.
pub(super) struct SetAsideTimeline {
    pub files: TimelineFiles,
    /// The version: the local or the remote snapshot.
    pub from: Snapshot,
    /// The source that the new snapshot records. It names the device that sets the timeline aside.
    pub source: String,
}

pub(super) enum JoinedBook {
    Theirs,
    Ours,
    Both(Vec<u8>),
    Conflicts(Vec<merge::Conflict>),
}

impl JoinedBook {
    /// Merges the local lorebook `now` and the remote lorebook `theirs`. `before` is the common
    /// ancestor.
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
    /// The local timeline is up to date or newer.
    Known,
    /// The timeline did not exist locally.
    New,
    /// The local timeline was renamed and possibly updated.
    Renamed,
    /// The local timeline was fast-forwarded.
    Forward,
    /// Both sides changed the timeline, and the changes were merged. A conflict has the remote
    /// value.
    Merged,
    /// Both sides changed the timeline. The local version now has this name.
    Apart(TimelineName),
    /// Both sides changed the timeline. The imported version has this name.
    Beside(TimelineName),
    /// Both sides changed the timeline, and the imported version has this tag. It cannot be
    /// renamed, because its format is not supported.
    Tagged(String),
    /// The timeline was erased on this device, or on another device before this device received it.
    /// It is removed from the remote.
    Erased,
    /// The timeline was erased on another device. It stays on this device, and is not sent.
    ErasedElsewhere,
    /// The timeline is a fork whose parent was erased, so its history cannot be sent or received.
    ForkOfErased,
    /// The timeline was not synced, for this reason.
    Left(&'static str),
}

impl Outcome {
    /// Returns the value of the outcome in `--json`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::New => "new",
            Self::Renamed => "renamed",
            Self::Forward => "forward",
            Self::Merged => "merged",
            Self::Apart(_) => "set-aside",
            Self::Beside(_) => "new-name",
            Self::Tagged(_) => "tagged",
            Self::Erased => "erased",
            Self::ErasedElsewhere => "erased-elsewhere",
            Self::ForkOfErased | Self::Left(_) => "skipped",
        }
    }
}

/// A lorebook that both sides changed in the same places.
pub struct Conflict {
    /// The path of the lorebook that chats use.
    pub book: LibraryPath,
    /// The conflicts. `ours` is the value in the other lorebook, and `theirs` is the value in
    /// `book`. Empty if the conflicts cannot be determined.
    pub places: Vec<merge::Conflict>,
    /// The timeline with the other version of the lorebook.
    pub other: Option<TimelineName>,
    /// The device that set the timeline `other` aside; `None` if it was this device.
    pub set_aside_by: Option<Device>,
}

impl Conflict {
    /// Returns the number of conflicts. It is at least one, even if the conflicts cannot be
    /// determined.
    pub fn count(&self) -> usize {
        self.places.len().max(1)
    }
}

/// The result for a timeline of a backup or remote. A timeline with several conflicts has one
/// result per conflict.
pub struct ReceivedTimeline {
    /// Local name of the timeline.
    pub timeline: TimelineName,
    /// The latest snapshot of the timeline in the backup or remote.
    pub head: Snapshot,
    /// The effect on the local timeline.
    pub outcome: Outcome,
    /// The former local name of the timeline; `None` if the name did not change.
    pub former: Option<TimelineName>,
    /// The number of snapshots that the local store did not have.
    pub snapshots: usize,
    /// The conflict that this result is about.
    pub conflict: Option<Conflict>,
}

impl ReceivedTimeline {
    pub(super) fn new(head: Snapshot, outcome: Outcome) -> Self {
        let timeline = head.timeline.clone();
        Self { timeline, head, outcome, former: None, snapshots: 0, conflict: None }
    }

    /// Returns the timeline with the other version of the lorebook, if there is a conflict.
    pub fn set_aside(&self) -> Option<&TimelineName> {
        self.conflict.as_ref()?.other.as_ref()
    }
}

/// A tag that was received or moved.
pub struct ReceivedTag {
    /// The name of the tag in the backup or remote, or the former name of a renamed local tag.
    pub name: String,
    /// The name of the tag in the local store after the import.
    pub here: String,
    pub snapshot: SnapshotId,
}

/// Plans the tags. If both sides use one name for different snapshots, one of the tags gets a
/// number: the imported one under `KeepLocal`, the local one under `Join`, and under `JoinByTime`
/// the one with the earlier snapshot, so that all devices decide alike.
pub(super) fn plan_tags(ours: &History, theirs: &History, policy: Policy) -> Vec<ReceivedTag> {
    let here: BTreeMap<_, _> = ours.tags().collect();
    let mut taken = all_tags([ours]);
    if policy.is_sync() {
        taken = all_tags([theirs]).into_iter().chain(taken).collect();
    }
    let order = |history: &History, id| (history.get(id).map(|it| it.time.seconds), id);
    let is_later = |local, remote| order(ours, local) > order(theirs, remote);
    let mut tags = Vec::new();
    for (name, snapshot) in theirs.tags().filter(|(name, id)| here.get(name) != Some(id)) {
        let received = |here: String, snapshot| ReceivedTag { name: name.into(), here, snapshot };
        let makes_room = match policy {
            Policy::KeepLocal => Some(snapshot),
            Policy::JoinByTime
                if here.get(name).is_some_and(|local| is_later(*local, snapshot)) =>
            {
                Some(snapshot)
            }
            Policy::Join | Policy::JoinByTime => {
                tags.push(received(name.into(), snapshot));
                taken.insert(name.into(), snapshot);
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

/// Returns a tag that no other snapshot has: `name`, or `name` with a number.
pub(super) fn free_tag(
    name: &str,
    snapshot: SnapshotId,
    taken: &BTreeMap<String, SnapshotId>,
) -> Option<String> {
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.get(name).is_none_or(|id| *id == snapshot))
}
