//! Chats that their owner deleted, told from what was lost: a backup brings back what is missed, and not what is not wanted.

use super::Result;
use super::cache::Cache;
use super::free_names::free_timeline;
use super::operation::Follows;
use super::take_snapshots::Taking;
use crate::archive::{Kind, Snapshot, State, Tree};
use crate::history::History;
use crate::st::{Library, Presence, Scan, TimelineName};
use crate::store::{RefName, unless_lost};

/// So many may always be deleted at once.
const MANY_GONE: usize = 3;

/// The timelines whose files were here and are gone, as far as that is certain: a folder that cannot be listed, a link that leads nowhere or an empty folder of chats is more likely a
/// drive that went away.
pub(crate) fn deleted_since(cache: &Cache, library: &Library, scan: &Scan) -> Vec<TimelineName> {
    if !scan.unreadable.is_empty() {
        return Vec::new();
    }
    let mut gone = cache.seen_besides(library.root(), scan);
    gone.retain(|name| {
        let has_others = || scan.all().any(|it| it.category() == name.category());
        has_others() && library.presence(scan, name) == Presence::Gone
    });
    gone
}

impl Taking<'_> {
    /// Note which timelines were deleted since they were last seen here, so that a backup tells what is missed from what is not wanted. Their last state stays where it was;
    /// this says of it that it was the last.
    pub(crate) fn note_deleted(&mut self) -> Result<()> {
        let Some(cache) = &mut self.cache else { return Ok(()) };
        let gone = deleted_since(cache, self.library, self.scan);
        cache.is_of(self.library.root(), self.scan);
        gone.iter().for_each(|name| cache.forget(name));
        // That much at once is more likely an accident, and what was lost shall come back by itself.
        if gone.len() > MANY_GONE && gone.len() > self.scan.all().count() {
            return Ok(());
        }
        for name in gone {
            // One that was renamed has none.
            let head = self.operation.newest(&name)?.filter(|head| head.kind != Kind::DELETED);
            let Some(head) = head else { continue };
            let follows = Follows::previous(head.clone());
            self.take_deleted(&head, name, follows)?;
        }
        Ok(())
    }

    /// Gives a timeline whose file is gone another name, because another chat or lorebook has its name now.
    pub(super) fn rename_deleted(&mut self, head: Snapshot) -> Result<()> {
        let stored = History::load(self.store)?;
        let names = stored.heads().map(|(name, _)| name).chain(self.scan.all());
        let mut taken = names.map(|name| name.as_str().to_lowercase()).collect();
        let day = self.operation.day();
        let library = Some(self.library);
        let what = if head.timeline.is_chat() { "earlier chat" } else { "earlier lorebook" };
        let name = free_timeline(&head.timeline, what, &day, library, &mut taken)?;
        if !self.take_deleted(&head, name, Follows::renamed(head.clone()))? {
            self.operation.move_ref(RefName::kept(head.id.0), head.id)?;
        }
        Ok(())
    }

    /// Records a timeline as deleted, with the state of its latest snapshot. Returns false if that cannot be read.
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
        let state = State::of(&files);
        let message = self.operation.message.take();
        let taken = self.operation.take(&state, Kind::DELETED, follows);
        self.operation.message = message;
        self.done.deleted.push(taken?);
        Ok(true)
    }
}
