//! What becomes of the lorebooks of chats that come, where their own histories do not decide. Nothing is written here.

use super::sync_plan::Planner;
use crate::archive::Blake3;
use crate::engine::Result;
use crate::engine::free_names::free_lorebook;
use crate::st::{self, LibraryPath, TimelineFiles, TimelineName};

impl Planner<'_> {
    /// Whether what becomes of a lorebook was decided by its own history.
    pub(super) fn is_decided(&self, book: &LibraryPath) -> bool {
        TimelineName::of_file(book).is_some_and(|name| self.sides.theirs.head(&name).is_some())
    }

    /// Give a state the lorebook that will be in its file; if there is none, it brings its own.
    pub(super) fn bring_book(&mut self, whole: &mut TimelineFiles) -> Result<()> {
        let Some(book) = whole.book() else { return Ok(()) };
        let (path, own) = (book.path.clone(), book.bytes.to_vec());
        match self.files.get(&path)?.map(<[u8]>::to_vec) {
            Some(now) if now != own => whole.set_book(now),
            Some(_) => {}
            None => self.files.put(&path, Some(own))?,
        }
        Ok(())
    }

    /// The chat with its lorebook under a name of its own.
    pub(super) fn apart_book(&mut self, whole: TimelineFiles) -> Result<TimelineFiles> {
        let (Some(library), Some(book)) = (self.sides.library, whole.book()) else {
            return Ok(whole);
        };
        let chat = whole.timeline.chat();
        // Chats that shared a book go on sharing it.
        let key = (book.path.clone(), Blake3::of(book.bytes));
        if let Some(name) = self.moved.get(&key).cloned()
            && let Some(path) = st::lorebook_path(&name).filter(|_| whole.can_be_bound())
        {
            return Ok(whole.bound_to(&name, path));
        }
        let name = free_lorebook(library, book.name, &[chat], chat, &self.books)?;
        self.books.insert(name.to_lowercase());
        let path = st::lorebook_path(&name).filter(|_| whole.can_be_bound());
        Ok(match path {
            Some(path) => {
                self.moved.insert(key, name.clone());
                whole.bound_to(&name, path)
            }
            None => whole,
        })
    }

    pub(super) fn user_of(
        &self,
        book: &LibraryPath,
        except: &TimelineName,
    ) -> Option<TimelineName> {
        let users = st::users_of_lorebook(self.sides.library?, book).unwrap_or_default();
        users.into_iter().find(|user| user != except)
    }
}
