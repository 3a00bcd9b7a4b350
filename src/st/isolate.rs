//! Renames a chat or its lorebook in the chat's metadata. Changes only the values that name the
//! chat or the lorebook, and no other byte.

use super::json::{Edits, Raw, quote};
use super::timed_effects::rename_effects;
use super::{entries, lorebook_name};
use crate::auto_recap::written as auto_recap;

/// Values to change in the metadata. If `main_chat` or the lorebook's name is missing, it is added;
/// other missing values are not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rename<'a> {
    /// New name of the chat. The running recap must name its chat, because ST-Auto-Recap deletes a
    /// running recap that names another chat.
    pub chat: Option<&'a str>,
    pub main_chat: Option<&'a str>,
    /// New integrity value, by which SillyTavern recognises the chat file that its page loaded.
    pub integrity: Option<&'a str>,
    pub book: Option<BookRename<'a>>,
    /// Record of a checkpoint, as JSON. It is added if the metadata has none.
    pub state: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub struct BookRename<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Content of the lorebook. The hashes of timed effects depend on the entries and the book's
    /// name.
    pub bytes: &'a [u8],
}

/// Returns `text` (a chat's header line, or a group's file) with changed values in `metadata`,
/// which must be a part of `text`.
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

/// Returns `text` with the name of the bound lorebook replaced by `null`.
pub fn unbind_lorebook(text: &[u8], metadata: Raw<'_>) -> Vec<u8> {
    let mut edits = Edits::new(text);
    if lorebook_name(metadata).is_some()
        && let Some(value) = metadata.get("world_info")
    {
        edits.replace(value, "null");
    }
    edits.apply()
}
