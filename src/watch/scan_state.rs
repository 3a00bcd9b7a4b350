//! The memory of the scans of one library: timelines that wait, and reported problems.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::rules::Finding;
use crate::st::TimelineName;

/// Timelines that wait for the queue of their lorebooks.
#[derive(Default)]
pub(super) struct WaitingTimelines {
    pub(super) since: BTreeMap<TimelineName, Instant>,
    /// The time before which no wait ends, set after the store could not be written.
    pub(super) not_before: Option<Instant>,
}

impl WaitingTimelines {
    pub(super) fn is_any(&self) -> bool {
        !self.since.is_empty()
    }

    /// Returns the begin of the first wait, and the time before which no wait ends.
    pub(super) fn first(&self) -> Option<(Instant, Option<Instant>)> {
        Some((*self.since.values().min()?, self.not_before))
    }
}

/// The problems that were reported already.
#[derive(Default)]
pub(super) struct Reported {
    pub(super) failures: BTreeSet<(String, String)>,
    pub(super) configuration: Option<Finding>,
}

/// The timelines that a scan stores although they are not ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unready {
    /// Timelines that have waited long enough.
    Late,
    /// All timelines, because the watch ends.
    All,
}
