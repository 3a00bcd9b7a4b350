//! Renames a chat or its lorebook in the chat's metadata: the few values that name either are changed
//! where they stand, and no other byte.

use super::json::{Edits, Raw, quote};
use super::timed_effects::rename_effects;
use super::{entries, lorebook_name};
use crate::auto_recap::written as auto_recap;

/// The values to change. Of values that the metadata does not have only `main_chat` and the
/// lorebook's name are added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rename<'a> {
    /// The chat's new name: the running recap must name its chat, or the extension wipes it.
    pub chat: Option<&'a str>,
    pub main_chat: Option<&'a str>,
    /// The mark by which SillyTavern recognises the file that it has loaded.
    pub integrity: Option<&'a str>,
    pub book: Option<BookRename<'a>>,
    /// The record of a checkpoint, as JSON; set if there is none yet.
    pub state: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub struct BookRename<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Timed effects are found by a hash over an entry and the book's name.
    pub bytes: &'a [u8],
}

/// Returns `text` (a chat's header line, or a group's file) with the values of `metadata`, which
/// stands in it, changed.
pub fn rename_in_metadata(text: &[u8], metadata: Raw<'_>, rename: &Rename<'_>) -> Vec<u8> {
    let mut edits = Edits::new(text);
    let quoted = |name: &str| quote(name.as_bytes());
    if let Some(name) = rename.main_chat {
        edits.set(metadata, "main_chat", &quoted(name));
    }
    if let (Some(slug), Some(value)) = (rename.integrity, metadata.get("integrity")) {
        edits.replace(value, quoted(slug));
    }
    if let Some(book) = rename.book {
        edits.set(metadata, "world_info", &quoted(book.new));
        if let Some(timed) = metadata.get("timedWorldInfo") {
            let renamed = rename_effects(timed, book.old, book.new, &entries(book.bytes));
            edits.replace(timed, renamed);
        }
    }
    let book = rename.book.map(|book| (book.old, book.new));
    auto_recap::rename(&mut edits, metadata, rename.chat, book, rename.state);
    edits.apply()
}

/// Returns `text` without a bound lorebook: the name becomes `null`.
pub fn unbind_lorebook(text: &[u8], metadata: Raw<'_>) -> Vec<u8> {
    let mut edits = Edits::new(text);
    if lorebook_name(metadata).is_some()
        && let Some(value) = metadata.get("world_info")
    {
        edits.replace(value, "null");
    }
    edits.apply()
}
