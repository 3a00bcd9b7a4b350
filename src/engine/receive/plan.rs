//! What is to be done with all that a backup or a remote has: the result of deciding, and all that applying it reads.

use super::future_library::FutureLibrary;
use super::outcome::{Outcome, ReceivedTag, ReceivedTimeline};
use crate::archive::{Snapshot, SnapshotId};
use crate::rules::Finding;
use crate::st::{TimelineFiles, TimelineName};
use crate::store::Erasures;

/// Which side gives way where both changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// `import`: what is here stays as it is or goes on; anything else that comes gets another name.
    KeepLocal,
    /// `sync`: both sides become the same. What reached the remote first keeps its name.
    Join,
}

pub(super) struct Plan {
    pub timelines: Vec<TimelinePlan>,
    pub tags: Vec<ReceivedTag>,
    pub files: FutureLibrary,
    pub findings: Vec<Finding>,
    /// The store's record of what was removed for good, as it will be.
    pub erasures: Erasures,
}

/// What is done for one timeline.
pub(super) struct TimelinePlan {
    pub entry: ReceivedTimeline,
    pub branch: BranchMove,
    pub aside: Option<Aside>,
    /// Its latest local snapshot.
    pub local: Option<Snapshot>,
}

impl TimelinePlan {
    pub(super) fn new(name: TimelineName, head: Snapshot, local: Option<&Snapshot>) -> Self {
        let former = local.map(|local| local.timeline.clone()).filter(|local| *local != name);
        let entry = ReceivedTimeline::new(name, head, Outcome::Known);
        let entry = ReceivedTimeline { former, ..entry };
        Self { entry, branch: BranchMove::Stay, aside: None, local: local.cloned() }
    }
}

/// Where a branch goes.
pub(super) enum BranchMove {
    Stay,
    /// Where the other side has it.
    There,
    /// To a new snapshot after that; with this one of ours joined to it.
    Made(Box<TimelineFiles>, Option<SnapshotId>),
    /// To a new snapshot of this local state, under another name.
    Renamed(Box<TimelineFiles>),
}

/// A local state that goes on under another name.
pub(super) struct Aside {
    pub from: Snapshot,
    pub files: TimelineFiles,
    /// The device that set it aside, as its snapshot records it.
    pub source: String,
}
