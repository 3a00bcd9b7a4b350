//! The owners of all snapshots on branches, as `History` keeps them. `owner_of_snapshot` fills and
//! reads the index.

use std::collections::HashMap;

use crate::archive::SnapshotId;
use crate::st::TimelineName;

#[derive(Default)]
pub(super) struct OwnerIndex {
    pub timelines: Vec<TimelineName>,
    /// Maps each snapshot to the index of its owner in `timelines`.
    pub own: HashMap<SnapshotId, usize>,
    /// Maps each former name that no branch has any more to the current name of the timeline.
    pub renamed: HashMap<TimelineName, TimelineName>,
}
