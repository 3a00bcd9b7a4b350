//! What a new snapshot follows.

use crate::archive::{Snapshot, SnapshotId, State};
use crate::engine::Result;
use crate::history::name_lookup;
use crate::history::origin::{Origin, without_blank_end};
use crate::st::TimelineName;
use crate::store::{ObjectId, Sequence, Store};

#[derive(Default)]
pub(crate) struct Follows {
    pub(super) parent: Option<SnapshotId>,
    /// Another one, which was joined with it.
    pub(super) joined: Option<SnapshotId>,
    pub(super) tree: Option<ObjectId>,
    pub(super) fork_at: Option<u64>,
    pub(super) renamed_from: Option<TimelineName>,
    /// Where its state comes from, if not from the timeline's own files.
    pub(super) source: Option<String>,
    /// The position of the snapshot it follows in the order of creation.
    pub(super) after: Option<Sequence>,
}

impl Follows {
    /// The snapshot before it in its own timeline.
    pub(crate) fn previous(head: Snapshot) -> Self {
        let (parent, tree) = (Some(head.id), Some(head.tree));
        Self { parent, tree, after: Some(head.sequence), ..Self::default() }
    }

    /// The snapshot before it, joined with what another device made of that.
    pub(crate) fn joined(head: Snapshot, with: Option<SnapshotId>) -> Self {
        Self { joined: with, ..Self::previous(head) }
    }

    /// The snapshot that a timeline of its own begins with, all of which is in `state`. As everywhere, lines are counted, also blank ones between messages.
    pub(crate) fn copy(from: &Snapshot, state: &State<'_>) -> Self {
        Self::fork(from, without_blank_end(&state.chat.messages).len() as u64)
    }

    /// The snapshot that a timeline of its own begins with.
    pub(crate) fn fork(from: &Snapshot, shared: u64) -> Self {
        Self { fork_at: Some(shared), ..Self::previous(from.clone()) }
    }

    /// The same, with a stored snapshot that is nearer to it than the one it follows.
    pub(super) fn alike(self, other: Option<&Snapshot>) -> Self {
        Self { tree: other.map(|other| other.tree).or(self.tree), ..self }
    }

    /// The same, where its state comes from elsewhere.
    pub(crate) fn taken_from(self, source: String) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Where a new chat comes from.
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

    /// The newest snapshot of a timeline that has another name now.
    pub(crate) fn renamed(from: Snapshot) -> Self {
        let renamed_from = Some(from.timeline.clone());
        Self { renamed_from, ..Self::previous(from) }
    }

    /// The snapshot it follows, if that already is this state.
    pub(crate) fn same_as(&self, state: &State<'_>, store: &Store) -> Result<Option<Snapshot>> {
        let Some(parent) = self.parent else { return Ok(None) };
        let parent = name_lookup::find(store, parent)?;
        Ok(parent.filter(|parent| parent.content == state.manifest.content))
    }
}
