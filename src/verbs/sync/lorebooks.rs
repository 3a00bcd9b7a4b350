//! What becomes of the lorebooks of timelines that come: taken, merged, set apart, and the same for all chats that share one. Nothing is written here.

use std::collections::HashSet;

use super::joined_book::JoinedBook;
use super::outcome::{SyncOutcome, SyncedTimeline};
use super::plan::{BranchMove, Here, Planner, TimelinePlan, read};
use crate::archive::Blake3;
use crate::engine::free_book_name::clone_name;
use crate::st::{self, Chat, LibraryPath, Reference, TimelineFiles, TimelineName, User};
use crate::verbs::Result;

impl Planner<'_> {
    /// One lorebook of both sides' states of it; `None`: only somebody who knows can tell.
    pub(super) fn join_book(
        &mut self,
        ours: &TimelineFiles,
        theirs: &TimelineFiles,
        base: Option<&TimelineFiles>,
        here: Here,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let Some(book) = theirs.book() else { return Ok(Some(None)) };
        let before = base.and_then(|base| base.book_at(book.path));
        let now = match here {
            Here::Same => self.files.get(book.path)?,
            _ => ours.book_at(book.path),
        };
        Ok(match JoinedBook::of(now, before, book.bytes) {
            JoinedBook::Theirs => Some(Some(book.bytes.to_vec())),
            JoinedBook::Ours => Some(now.map(<[u8]>::to_vec)),
            JoinedBook::Both(bytes) => Some(Some(bytes)),
            JoinedBook::Conflicts(_) => None,
        })
    }

    /// One side bound the chat to a lorebook of another name: what the other side changed in the former one goes there, too.
    pub(super) fn follow_book(
        &mut self,
        chat: &TimelineFiles,
        other: &TimelineFiles,
        base: Option<&TimelineFiles>,
        here: Here,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let before = base.and_then(TimelineFiles::book);
        let mut bytes = chat.book_bytes().map(<[u8]>::to_vec);
        if let Some(former) = other.book() {
            let same = before.is_some_and(|b| b.path == former.path && b.bytes == former.bytes);
            let before = before.map(|book| book.bytes);
            match (same, &bytes) {
                (true, _) => {}
                (false, None) => return Ok(None),
                (false, Some(now)) => match JoinedBook::of(Some(now), before, former.bytes) {
                    JoinedBook::Theirs => bytes = Some(former.bytes.to_vec()),
                    JoinedBook::Ours => {}
                    JoinedBook::Both(both) => bytes = Some(both),
                    JoinedBook::Conflicts(_) => return Ok(None),
                },
            }
        }
        // Under the name that stays there may be another book here.
        if let (Here::Same, Some(own)) = (here, chat.book())
            && let Some(now) = self.files.get(own.path)?
            && now != own.bytes
            && Some(now) != bytes.as_deref()
        {
            return Ok(None);
        }
        Ok(Some(bytes))
    }

    /// The chat with its lorebook under a name of its own.
    pub(super) fn apart_book(&mut self, whole: TimelineFiles) -> Result<TimelineFiles> {
        let (Some(library), Some(book)) = (self.library, whole.book()) else { return Ok(whole) };
        let chat = whole.timeline.chat();
        // Chats that shared a book go on sharing it.
        let key = (book.path.clone(), Blake3::of(book.bytes));
        if let Some(name) = self.moved.get(&key).cloned()
            && let Some(path) = st::lorebook_path(&name).filter(|_| whole.can_be_bound())
        {
            return Ok(whole.bound_to(&name, path));
        }
        let name = clone_name(library, book.name, &[chat], chat, &self.books)?;
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
        let users = st::users_of_lorebook(self.library?, book).unwrap_or_default();
        users.into_iter().find(|user| user != except)
    }

    /// Whether a lorebook here may give way: another file will have its very bytes, and nothing but the chat `except` will use it.
    pub(super) fn is_free(&mut self, book: &LibraryPath, except: &TimelineName) -> Result<bool> {
        let Some(library) = self.library else { return Ok(false) };
        if !self.files.has_copy(book)? {
            return Ok(false);
        }
        let references = library.references(&library.scan()?);
        let here = |user: &&Reference| st::lorebook_path(&user.book).as_ref() == Some(book);
        let mut free = references.unreadable.is_empty();
        for reference in references.list.iter().filter(here) {
            free &= match &reference.user {
                User::Chat(name) if name == except => true,
                User::Chat(name) => {
                    let chat = self.files.get(&name.file())?.unwrap_or_default();
                    let metadata = st::metadata(&Chat::split(chat, name.is_group()), name, None);
                    let bound = metadata.and_then(st::lorebook_name);
                    bound.and_then(|bound| st::lorebook_path(&bound)).as_ref() != Some(book)
                }
                _ => false,
            };
        }
        Ok(free)
    }

    /// Several timelines may share a lorebook. All of them get its new state in the same operation: were one left for its next snapshot, two devices could hand two states to and fro.
    pub(super) fn keep_in_step(&mut self, steps: &mut Vec<TimelinePlan>) -> Result<()> {
        if self.library.is_none() {
            return Ok(());
        }
        let mut done = HashSet::new();
        for step in steps.iter_mut() {
            if let Some((_, aside)) = &mut step.aside {
                self.match_book(aside)?;
                done.insert(aside.timeline.clone());
            }
            match &mut step.branch {
                BranchMove::Stay => continue,
                BranchMove::There => {
                    let mut whole = read(&self.there, &step.entry.head)?;
                    if self.match_book(&mut whole)? {
                        step.branch = BranchMove::Made(Box::new(whole), None);
                    }
                }
                BranchMove::Made(whole, _) => {
                    self.match_book(whole)?;
                }
            }
            done.insert(step.entry.timeline.clone());
            done.extend(step.drops.clone());
        }
        let changed = self.files.changed_books();
        let ours = self.ours;
        for (name, head) in ours.heads().filter(|(name, _)| !done.contains(*name)) {
            let book = head.lorebook.as_deref().and_then(st::lorebook_path);
            if book.is_none_or(|book| !changed.contains(&book)) || self.look(name)? != Here::Same {
                continue;
            }
            let mut whole = read(&self.here, head)?;
            if self.match_book(&mut whole)? {
                let entry = SyncedTimeline {
                    timeline: name.clone(),
                    head: head.clone(),
                    outcome: SyncOutcome::Known,
                    snapshots: 0,
                    conflict: None,
                };
                let branch = BranchMove::Made(Box::new(whole), None);
                steps.push(TimelinePlan { entry, branch, aside: None, drops: None });
            }
        }
        Ok(())
    }

    /// Give a state the lorebook that will be in its file; whether that is another. One whose chat will not be there stays as it is.
    pub(super) fn match_book(&mut self, whole: &mut TimelineFiles) -> Result<bool> {
        if self.files.get(&whole.chat.path)? != Some(&whole.chat.bytes) {
            return Ok(false);
        }
        let Some(book) = whole.book() else { return Ok(false) };
        match self.files.get(book.path)? {
            Some(now) if now != book.bytes => {
                whole.set_book(now.to_vec());
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
