//! What becomes of each timeline and tag of a backup or a remote, as reports list it.

use crate::archive::{Snapshot, SnapshotId, merge};
use crate::engine::device::Device;
use crate::st::{LibraryPath, TimelineName};

/// What becomes of a timeline of a backup or a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is here, as far or further.
    Known,
    /// It was not here.
    New,
    /// It has another name now, and may have gone on.
    Renamed,
    /// It went on from where it was here.
    Forward,
    /// Both sides changed it, without a conflict or with the remote's values in the conflicts.
    Merged,
    /// Both sides changed it: the local state has this name now.
    Apart(TimelineName),
    /// Both sides changed it: the state of the backup has this name here.
    Beside(TimelineName),
    /// Both sides changed it, and the backup's is of a newer format, which cannot be written under another name: it has this tag now.
    Tagged(String),
    /// It was removed for good on this device, or on another before it came here; it is removed from the remote.
    Erased,
    /// It was removed for good on another device. It stays here, and is not sent.
    ErasedElsewhere,
    /// The timeline it was forked from was removed for good, so that its past cannot be exchanged.
    ForkOfErased,
    /// It was left alone, and why.
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

/// One timeline of a backup or a remote. One with several conflicts is listed once for each.
pub struct ReceivedTimeline {
    pub timeline: TimelineName,
    /// Its latest snapshot there.
    pub head: Snapshot,
    pub outcome: Outcome,
    /// Its local name before, if that is another.
    pub former: Option<TimelineName>,
    /// How many snapshots were not here.
    pub snapshots: usize,
    /// What a person has to settle.
    pub conflict: Option<Conflict>,
}

impl ReceivedTimeline {
    pub(super) fn new(timeline: TimelineName, head: Snapshot, outcome: Outcome) -> Self {
        Self { timeline, head, outcome, former: None, snapshots: 0, conflict: None }
    }

    /// Returns the timeline that a person has to settle it with.
    pub fn set_aside(&self) -> Option<&TimelineName> {
        self.conflict.as_ref()?.other.as_ref()
    }
}

/// A tag that came or moved.
pub struct ReceivedTag {
    /// Its name before: there, or of a local one that makes room here.
    pub name: String,
    /// Its name here from now on.
    pub here: String,
    pub snapshot: SnapshotId,
}
