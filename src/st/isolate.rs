//! A chat under another name, or with another lorebook: the few values of its metadata that name either are changed where they
//! stand, and no other byte is.

use super::json::{Edits, Raw};
use super::timed_effects::rename_effects;
use super::{entries, lorebook_name};
use crate::auto_recap::written as auto_recap;

/// What to change. What the metadata does not have is not added, but for `main_chat` and the lorebook's name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rename<'a> {
    /// The chat's new name: the running recap must say that it is this chat's, or the extension wipes it.
    pub chat: Option<&'a str>,
    pub main_chat: Option<&'a str>,
    /// The slug that tells SillyTavern whether a file is the one it has loaded.
    pub integrity: Option<&'a str>,
    pub book: Option<BookRename<'a>>,
    /// What a checkpoint records of itself, as JSON, if it records nothing yet.
    pub state: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub struct BookRename<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Its bytes: timed effects are found by a hash in which its name is.
    pub bytes: &'a [u8],
}

/// `text` (a chat's header line, or a group's file) with the values of `metadata`, which stands in it, changed.
pub fn rename_in_metadata(text: &[u8], metadata: Raw<'_>, rename: &Rename<'_>) -> Vec<u8> {
    let mut edits = Edits::new(text);
    let quoted = |name: &str| serde_json::to_string(name).unwrap_or_default();
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
            edits.replace(timed, renamed.bytes);
        }
    }
    let book = rename.book.map(|book| (book.old, book.new));
    auto_recap::rename(&mut edits, metadata, rename.chat, book, rename.state);
    edits.apply()
}

/// `text` without a bound lorebook: the name becomes `null`.
pub fn unbind_lorebook(text: &[u8], metadata: Raw<'_>) -> Vec<u8> {
    let mut edits = Edits::new(text);
    if lorebook_name(metadata).is_some()
        && let Some(value) = metadata.get("world_info")
    {
        edits.replace(value, "null");
    }
    edits.apply()
}
