//! What becomes of a timeline of the other side.

use crate::archive::{Snapshot, merge};
use crate::engine::device::Device;
use crate::st::{LibraryPath, TimelineName};

/// What became of a timeline of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncOutcome {
    /// It is here, as far or further.
    Known,
    /// It was not here.
    New,
    /// It has another name now, and may have gone on.
    Renamed,
    /// It went on from where it was here.
    Forward,
    /// Both changed it, and nothing stands against anything.
    Merged,
    /// Both went on with the chat; what is here is under this name now.
    Apart(TimelineName),
    /// It was removed for good on this device, or on another before it came here; it is removed from the remote.
    Erased,
    /// It was removed for good on another device. It stays here, and is not sent.
    ErasedElsewhere,
    /// The timeline it was forked from was removed for good, so that its past cannot be exchanged.
    ForkOfErased,
    /// It was left alone, and why.
    Left(&'static str),
}

/// A lorebook that both sides changed in the same places.
pub struct Conflict {
    /// The lorebook that chats use.
    pub book: LibraryPath,
    /// Each with the value of the other lorebook as `ours` and the value of `book` as `theirs`; none if they cannot be told.
    pub places: Vec<merge::Conflict>,
    /// The timeline that has the other lorebook, if there is one.
    pub other: Option<TimelineName>,
    /// The device that set the other lorebook aside; none: this one.
    pub set_aside_by: Option<Device>,
}

impl Conflict {
    /// In how many places.
    pub fn count(&self) -> usize {
        self.places.len().max(1)
    }
}

/// One timeline of the other side. One with several conflicts is listed once for each.
pub struct SyncedTimeline {
    /// Its name.
    pub timeline: TimelineName,
    /// Its newest snapshot there.
    pub head: Snapshot,
    /// What became of it.
    pub outcome: SyncOutcome,
    /// Its local name before the sync, if that is another.
    pub former: Option<TimelineName>,
    /// How many snapshots were not here.
    pub snapshots: usize,
    /// What a person has to settle.
    pub conflict: Option<Conflict>,
}

impl SyncedTimeline {
    /// Returns the timeline that a person has to settle it with.
    pub fn set_aside(&self) -> Option<&TimelineName> {
        self.conflict.as_ref()?.other.as_ref()
    }

    /// A timeline that was removed for good, or that was forked from one.
    pub(super) fn erased(head: &Snapshot, outcome: SyncOutcome) -> Self {
        Self {
            timeline: head.timeline.clone(),
            head: head.clone(),
            outcome,
            former: None,
            snapshots: 0,
            conflict: None,
        }
    }
}
