//! Lorebooks that an undo would remove although a chat, a character or the settings use them by now: they stay.
//!
//! A fork that was renamed is another file than the one that the operation wrote, and its lorebook is still the one that the operation wrote. A chat that used the lorebook before the operation,
//! when its file was missing, does not keep it: that state comes back.

use super::put_back::PutBack;
use crate::archive::{SnapshotId, branch};
use crate::engine::files;
use crate::engine::operation::bytes_of;
use crate::engine::operation::log::Logged;
use crate::history::name_lookup;
use crate::listed::listed;
use crate::rules::{Code, Finding};
use crate::st::{self, Category, Library, LibraryPath, TimelineName, lorebook_path};
use crate::store::{FileChange, RefChange, Store};
use crate::verbs::Result;

/// Takes lorebooks that are in use out of what an undo of operation `number` changes, and says so.
pub(super) fn keep(
    store: &Store,
    library: &Library,
    entries: &[Logged],
    number: u64,
    PutBack { refs, files: changes, findings, .. }: &mut PutBack,
) -> Result<()> {
    for book in removed_lorebooks(library, changes)? {
        let group = |path: &LibraryPath| match changes.iter().find(|it| it.path == path.as_str()) {
            Some(change) => bytes_of(&store.reader(), change.after.as_ref()?, path).ok(),
            None => files::read(library.root(), path).ok().flatten(),
        };
        let users = st::possible_users_of_lorebook(library, &book, group)?;
        let own = TimelineName::of_file(&book).map(|name| branch(&name));
        let mut names = users.unread;
        // Whoever names a lorebook that the operation began does so since.
        let is_begun =
            |change: &RefChange| Some(&change.name) == own.as_ref() && change.after.is_none();
        if refs.iter().any(is_begun) {
            names.extend(users.others);
        }
        for chat in users.chats {
            let is_undone = changes.iter().any(|change| change.path == chat.file().as_str());
            if !is_undone && !used_before(store, entries, number, &chat, &book)? {
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
            "everything else was undone; delete the lorebook in SillyTavern if no chat needs it",
        ));
    }
    Ok(())
}

/// Returns the lorebooks that exist and that these changes remove.
fn removed_lorebooks(library: &Library, changes: &[FileChange]) -> Result<Vec<LibraryPath>> {
    let mut books = Vec::new();
    for change in changes.iter().filter(|change| change.after.is_none()) {
        let path = LibraryPath::parse(&change.path)?;
        let is_book =
            TimelineName::of_file(&path).is_some_and(|name| name.category() == Category::Lorebook);
        if is_book && library.has(&path) {
            books.push(path);
        }
    }
    Ok(books)
}

/// Returns whether a chat was bound to a lorebook before operation `number`, as far as the store knows.
fn used_before(
    store: &Store,
    entries: &[Logged],
    number: u64,
    chat: &TimelineName,
    book: &LibraryPath,
) -> Result<bool> {
    let name = branch(chat);
    let since = entries.iter().take_while(|entry| entry.operation.number >= number);
    let moves =
        since.flat_map(|entry| &entry.operation.effect.refs).filter(|change| change.name == name);
    let before = match moves.last() {
        Some(first) => first.before,
        None => store.ref_target(&name)?,
    };
    let Some(id) = before else { return Ok(false) };
    let snapshot = name_lookup::find(store, SnapshotId(id))?;
    let bound = snapshot.and_then(|snapshot| snapshot.lorebook.or(snapshot.bound));
    Ok(bound.as_deref().and_then(lorebook_path).as_ref() == Some(book))
}
