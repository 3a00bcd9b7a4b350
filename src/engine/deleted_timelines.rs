//! Chats that their owner deleted, told from what was lost: a backup brings back what is missed, and not what is not wanted.

use super::Result;
use super::cache::Cache;
use super::operation::Follows;
use super::take_snapshots::Taking;
use crate::archive::{Kind, State, Tree};
use crate::st::{Library, Presence, Scan, TimelineName};
use crate::store::unless_lost;

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
            let reader = self.store.reader();
            let stored = Tree::open(&reader, head.tree).and_then(|tree| tree.materialise(&reader));
            let Some(stored) = unless_lost(stored)? else { continue };
            let state = State::of(&stored.files);
            let follows = Follows::previous(head);
            let former = self.operation.message.take();
            let taken = self.operation.take(&state, Kind::DELETED, follows);
            self.operation.message = former;
            self.deleted.push(taken?);
        }
        Ok(())
    }
}
