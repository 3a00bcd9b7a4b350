//! Records the deletion of timelines, so that a recovery brings back what is missed and not what was
//! deleted on purpose.

use super::Result;
use super::changed_timelines::deleted_since;
use super::free_names::free_timeline;
use super::operation::Follows;
use super::take_snapshots::SnapshotSession;
use crate::archive::{Kind, Snapshot, State, Tree};
use crate::history::History;
use crate::st::TimelineName;
use crate::store::{RefName, unless_lost};

/// This many timelines may be deleted at once, however few are left.
const MANY_GONE: usize = 3;

impl SnapshotSession<'_> {
    /// Marks the timelines that were deleted since the last look. Their last state stays.
    pub(crate) fn note_deleted(&mut self) -> Result<()> {
        let gone = deleted_since(&self.cache, self.library, self.scan);
        self.cache.is_of(self.library.root(), self.scan);
        gone.iter().for_each(|name| self.cache.forget(name));
        // That many are more likely an accident, which a recovery should undo.
        if gone.len() > MANY_GONE && gone.len() > self.scan.all().count() {
            return Ok(());
        }
        for name in gone {
            // A renamed one has no head.
            let head = self.operation.newest(&name)?.filter(|head| head.kind != Kind::DELETED);
            let Some(head) = head else { continue };
            let follows = Follows::previous(head.clone());
            self.take_deleted(&head, name, follows)?;
        }
        Ok(())
    }

    /// Gives a timeline whose file is gone another name, because another chat or lorebook has its
    /// name now.
    pub(super) fn rename_deleted(&mut self, head: Snapshot) -> Result<()> {
        let stored = History::load(self.store)?;
        let names = stored.heads().map(|(name, _)| name).chain(self.scan.all());
        let mut taken = names.map(|name| name.as_str().to_lowercase()).collect();
        let (day, library) = (self.operation.day(), Some(self.library));
        let what = if head.timeline.is_chat() { "earlier chat" } else { "earlier lorebook" };
        let name = free_timeline(&head.timeline, what, &day, library, &mut taken)?;
        if !self.take_deleted(&head, name, Follows::renamed(head.clone()))? {
            self.operation.move_ref(RefName::kept(head.id.0), head.id)?;
        }
        Ok(())
    }

    /// Records a timeline as deleted, with the state of its latest snapshot. Returns `false` if that
    /// cannot be read.
    fn take_deleted(
        &mut self,
        head: &Snapshot,
        name: TimelineName,
        follows: Follows,
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
