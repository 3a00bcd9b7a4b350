//! Keeps lorebooks that an undo would remove although a chat, a character or the settings use them.
//!
//! For example, a fork that was renamed after the operation still uses the lorebook that the
//! operation created. A chat does not prevent the removal if it was bound to the lorebook before
//! the operation, when the lorebook's file was missing: the undo restores that situation.

use super::Undo;
use super::put_back::PutBack;
use crate::archive::{SnapshotId, branch};
use crate::engine::files;
use crate::engine::operation::bytes_of;
use crate::history::name_lookup;
use crate::rules::{Code, Finding};
use crate::st::{self, LibraryPath, TimelineName, lorebook_path};
use crate::store::RefChange;
use crate::verbs::Result;
use crate::words::listed;

impl Undo<'_> {
    /// Removes lorebooks that are in use from the plan, and adds a finding for each.
    pub(super) fn keep_used_lorebooks(
        &self,
        PutBack { refs, files: changes, findings, .. }: &mut PutBack,
    ) -> Result<()> {
        let Some(library) = self.library else { return Ok(()) };
        let mut removed = Vec::new();
        for change in changes.iter().filter(|change| change.after.is_none()) {
            let path = LibraryPath::parse(&change.path)?;
            removed.extend(Some(path).filter(|path| path.is_lorebook() && library.has(path)));
        }
        for book in removed {
            let change_of = |path: &LibraryPath| changes.iter().find(|it| it.path == path.as_str());
            let group = |path: &LibraryPath| match change_of(path) {
                Some(change) => bytes_of(&self.store.reader(), change.after.as_ref()?, path).ok(),
                None => files::read(library.root(), path).ok().flatten(),
            };
            let users = st::possible_users_of_lorebook(library, &book, group)?;
            let own = TimelineName::of_file(&book).map(|name| branch(&name));
            let mut names = users.unread;
            // If the operation created the lorebook, characters and settings can only have begun to
            // use the lorebook after the operation, unless the operation wrote them, too.
            let is_begun =
                |change: &RefChange| Some(&change.name) == own.as_ref() && change.after.is_none();
            if refs.iter().any(is_begun) {
                let is_written = |path: &str| changes.iter().any(|change| change.path == path);
                let others = users.others.into_iter().filter(|(path, _)| !is_written(path));
                names.extend(others.map(|(_, name)| name));
            }
            for chat in users.chats {
                if change_of(&chat.file()).is_none() && !self.used_before(&chat, &book)? {
                    names.push(chat.to_string());
                }
            }
            if names.is_empty() {
                continue;
            }
            changes.retain(|change| change.path != book.as_str());
            refs.retain(|change| Some(&change.name) != own.as_ref());
            let message =
                format!("this lorebook was not removed, because it is used by {}", listed(&names));
            let finding = Finding::new(Code::LorebookInUse, book.as_str(), message);
            findings.push(finding.remedy(
                "delete the lorebook in SillyTavern if no chat needs it; everything else was undone",
            ));
        }
        Ok(())
    }

    /// Returns whether a chat was bound to a lorebook before the operation, according to the chat's
    /// snapshot at that time.
    fn used_before(&self, chat: &TimelineName, book: &LibraryPath) -> Result<bool> {
        let (name, number) = (branch(chat), self.chosen.operation.number);
        let since = self.entries.iter().take_while(|entry| entry.operation.number >= number);
        let changes = since.flat_map(|entry| &entry.operation.effect.refs);
        let before = match changes.filter(|change| change.name == name).last() {
            Some(first) => first.before,
            None => self.store.ref_target(&name)?,
        };
        let Some(id) = before else { return Ok(false) };
        let snapshot = name_lookup::find(self.store, SnapshotId(id))?;
        let bound = snapshot.and_then(|snapshot| snapshot.lorebook.or(snapshot.bound));
        Ok(bound.as_deref().and_then(lorebook_path).as_ref() == Some(book))
    }
}
