//! The parents of a new snapshot.

use crate::archive::{Ancestry, Snapshot, SnapshotId, State};
use crate::engine::Result;
use crate::history::name_lookup;
use crate::history::origin::{Origin, without_blank_end};
use crate::store::{ObjectId, Sequence, Store};

#[derive(Default)]
pub(crate) struct SnapshotParents {
    pub(super) ancestry: Ancestry,
    /// The tree of a snapshot with similar content, whose objects are reused.
    pub(super) tree: Option<ObjectId>,
    /// The position of the parent in the order of creation.
    pub(super) after: Option<Sequence>,
}

impl SnapshotParents {
    pub(crate) fn previous(head: Snapshot) -> Self {
        let ancestry = Ancestry { parent: Some(head.id), ..Ancestry::default() };
        Self { ancestry, tree: Some(head.tree), after: Some(head.sequence) }
    }

    /// Returns `head` as the parent, and the snapshot `with` as the second parent, for a snapshot
    /// that joins the histories of two devices.
    pub(crate) fn joined(head: Snapshot, with: Option<SnapshotId>) -> Self {
        let mut new = Self::previous(head);
        new.ancestry.joined = with;
        new
    }

    /// Returns the parent of a new timeline that is a copy of `from`. The fork point is the number
    /// of lines, including blank lines between messages.
    pub(crate) fn copy(from: &Snapshot, state: &State<'_>) -> Self {
        Self::fork(from, without_blank_end(&state.chat.messages).len() as u64)
    }

    pub(crate) fn fork(from: &Snapshot, shared: u64) -> Self {
        let mut new = Self::previous(from.clone());
        new.ancestry.fork_at = Some(shared);
        new
    }

    /// Replaces the tree whose objects are reused with that of `other`, which is more similar than
    /// the tree of the parent.
    pub(super) fn alike(self, other: Option<&Snapshot>) -> Self {
        Self { tree: other.map(|other| other.tree).or(self.tree), ..self }
    }

    pub(crate) fn taken_from(mut self, source: String) -> Self {
        self.ancestry.source = Some(source);
        self
    }

    pub(crate) fn origin(origin: Origin) -> Self {
        match origin {
            Origin::None => Self::default(),
            Origin::Fork { id, tree, shared } => {
                let (parent, fork_at) = (Some(id), Some(shared as u64));
                let ancestry = Ancestry { parent, fork_at, ..Ancestry::default() };
                Self { ancestry, tree: Some(tree), after: None }
            }
        }
    }

    /// Returns the parent of the first snapshot after a rename: `from`, the latest snapshot under
    /// the former name.
    pub(crate) fn renamed(from: Snapshot) -> Self {
        let renamed_from = Some(from.timeline.clone());
        let mut new = Self::previous(from);
        new.ancestry.renamed_from = renamed_from;
        new
    }

    pub(crate) fn same_as(&self, state: &State<'_>, store: &Store) -> Result<Option<Snapshot>> {
        let Some(parent) = self.ancestry.parent else { return Ok(None) };
        let parent = name_lookup::find(store, parent)?;
        Ok(parent.filter(|parent| parent.content == state.manifest.content))
    }
}
