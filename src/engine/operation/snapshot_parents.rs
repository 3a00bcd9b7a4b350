//! The parents of a new snapshot.

use crate::archive::{Snapshot, SnapshotId, State};
use crate::engine::Result;
use crate::history::name_lookup;
use crate::history::origin::{Origin, without_blank_end};
use crate::st::TimelineName;
use crate::store::{ObjectId, Sequence, Store};

#[derive(Default)]
pub(crate) struct SnapshotParents {
    pub(super) parent: Option<SnapshotId>,
    /// The second parent, if the snapshot joins the histories of two devices.
    pub(super) joined: Option<SnapshotId>,
    /// The tree of a snapshot with similar content, whose objects are reused.
    pub(super) tree: Option<ObjectId>,
    pub(super) fork_at: Option<u64>,
    pub(super) renamed_from: Option<TimelineName>,
    /// The origin of the content; `None` if the content is that of the timeline's own files.
    pub(super) source: Option<String>,
    /// The position of the parent in the order of creation.
    pub(super) after: Option<Sequence>,
}

impl SnapshotParents {
    pub(crate) fn previous(head: Snapshot) -> Self {
        let (parent, tree) = (Some(head.id), Some(head.tree));
        Self { parent, tree, after: Some(head.sequence), ..Self::default() }
    }

    /// Returns `head` as the parent, and the snapshot `with` as the second parent, for a snapshot
    /// that joins the histories of two devices.
    pub(crate) fn joined(head: Snapshot, with: Option<SnapshotId>) -> Self {
        Self { joined: with, ..Self::previous(head) }
    }

    /// Returns the parent of a new timeline that is a copy of `from`. The fork point is the number
    /// of lines, including blank lines between messages.
    pub(crate) fn copy(from: &Snapshot, state: &State<'_>) -> Self {
        Self::fork(from, without_blank_end(&state.chat.messages).len() as u64)
    }

    pub(crate) fn fork(from: &Snapshot, shared: u64) -> Self {
        Self { fork_at: Some(shared), ..Self::previous(from.clone()) }
    }

    /// Replaces the tree whose objects are reused with that of `other`, which is more similar than
    /// the tree of the parent.
    pub(super) fn alike(self, other: Option<&Snapshot>) -> Self {
        Self { tree: other.map(|other| other.tree).or(self.tree), ..self }
    }

    pub(crate) fn taken_from(self, source: String) -> Self {
        Self { source: Some(source), ..self }
    }

    pub(crate) fn origin(origin: Origin) -> Self {
        match origin {
            Origin::None => Self::default(),
            Origin::Fork { id, tree, shared } => Self {
                parent: Some(id),
                tree: Some(tree),
                fork_at: Some(shared as u64),
                ..Self::default()
            },
        }
    }

    /// Returns the parent of the first snapshot after a rename: `from`, the latest snapshot under
    /// the former name.
    pub(crate) fn renamed(from: Snapshot) -> Self {
        let renamed_from = Some(from.timeline.clone());
        Self { renamed_from, ..Self::previous(from) }
    }

    pub(crate) fn same_as(&self, state: &State<'_>, store: &Store) -> Result<Option<Snapshot>> {
        let Some(parent) = self.parent else { return Ok(None) };
        let parent = name_lookup::find(store, parent)?;
        Ok(parent.filter(|parent| parent.content == state.manifest.content))
    }
}
