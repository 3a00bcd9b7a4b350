//! Names of files and folders in a snapshot's tree.

use crate::st::LibraryPath;
use crate::store::name_encoding::tree_segment;

/// Number of messages per folder. A chat has few folders to list, and only one small tree of
/// messages is written when the last message changes.
pub(super) const PER_FOLDER: usize = 100;

pub(super) fn message_folder(folder: usize) -> String {
    format!("{folder:03}")
}

pub(super) fn message_file(index: usize) -> String {
    format!("{index:05}.json")
}

pub(super) fn book_folder(name: &str) -> String {
    tree_segment(name.as_bytes())
}

/// Returns the file name of the lorebook entry with this decoded key, or of the card string at this
/// place, such as `data.description`.
pub(super) fn entry_file(key: &[u8]) -> String {
    // The extension is added before the name is encoded. Added afterwards, it could make a safe
    // name unsafe or too long.
    tree_segment(&[key, b".json"].concat())
}

/// Returns the folder name of a card's text. Texts are numbered in file order.
pub(super) fn card_text_folder(number: usize, keyword: &str) -> String {
    format!("{number}-{keyword}")
}

pub(super) fn attachment_file(path: &LibraryPath) -> String {
    tree_segment(path.as_str().as_bytes())
}

pub(super) fn plain_file(path: &LibraryPath) -> String {
    tree_segment(path.file_name().as_bytes())
}
