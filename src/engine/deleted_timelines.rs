//! Records the deletion of timelines, so that a recovery restores lost timelines but not timelines
//! that the user deleted.

use super::Result;
use super::changed_timelines::deleted_since;
use super::free_names::free_timeline;
use super::operation::SnapshotParents;
use super::take_snapshots::SnapshotSession;
use crate::archive::{Kind, Snapshot, State, Tree};
use crate::history::History;
use crate::st::TimelineName;
use crate::store::{RefName, unless_lost};

/// Up to this number, missing timelines always count as deleted by the user, even if few timelines
/// are left.
const MANY_GONE: usize = 3;

impl SnapshotSession<'_> {
    /// Creates a snapshot of kind [`Kind::DELETED`] for each timeline that was deleted since the
    /// last scan. Earlier snapshots stay.
    pub(crate) fn note_deleted(&mut self) -> Result<()> {
        let gone = deleted_since(&self.cache, self.library, self.scan);
        self.cache.is_of(self.library.root(), self.scan);
        gone.iter().for_each(|name| self.cache.forget(name));
        // If more timelines are missing than are left, an accident is more likely than a deletion
        // by the user. A recovery should then restore the timelines.
        if gone.len() > MANY_GONE && gone.len() > self.scan.all().count() {
            return Ok(());
        }
        for name in gone {
            // A renamed timeline has no latest snapshot under its former name.
            let head = self.operation.newest(&name)?.filter(|head| head.kind != Kind::DELETED);
            let Some(head) = head else { continue };
            let follows = SnapshotParents::previous(head.clone());
            self.take_deleted(&head, name, follows)?;
        }
        Ok(())
    }

    /// Renames a timeline that no longer has a file, because another chat or lorebook now has its
    /// name. If the content of `head` is lost, only keeps `head` reachable under `refs/stvc/kept/`.
    pub(super) fn rename_deleted(&mut self, head: Snapshot) -> Result<()> {
        let stored = History::load(self.store)?;
        let names = stored.heads().map(|(name, _)| name).chain(self.scan.all());
        let mut taken = names.map(|name| name.as_str().to_lowercase()).collect();
        let (day, library) = (self.operation.workspace.day(), Some(self.library));
        let what = if head.timeline.is_chat() { "earlier chat" } else { "earlier lorebook" };
        let name = free_timeline(&head.timeline, what, &day, library, &mut taken)?;
        if !self.take_deleted(&head, name, SnapshotParents::renamed(head.clone()))? {
            self.operation.move_ref(RefName::kept(head.id.0), head.id)?;
        }
        Ok(())
    }

    /// Creates a snapshot of kind [`Kind::DELETED`] under `name`, with the content of the latest
    /// snapshot `head`. Returns `false` if the content of `head` is lost.
    fn take_deleted(
        &mut self,
        head: &Snapshot,
        name: TimelineName,
        follows: SnapshotParents,
    ) -> Result<bool> {
        let reader = self.store.reader();
        let stored = Tree::open(&reader, head.tree).and_then(|tree| tree.materialise(&reader));
        let Some(stored) = unless_lost(stored)? else { return Ok(false) };
        let files =
            if stored.files.timeline == name { stored.files } else { stored.files.called(name) };
        let message = self.operation.message.take();
        let taken = self.operation.take(&State::of(&files), Kind::DELETED, follows);
        self.operation.message = message;
        self.done.deleted.push(taken?);
        Ok(true)
    }
}
