//! The names of the parts of a snapshot's tree.

use crate::st::LibraryPath;
use crate::store::name_encoding::tree_segment;

/// Few folders to list, and a small tree to write when the last message changes.
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

/// Returns the file of the entry with this (decoded) key, or of the string at this place of a card.
pub(super) fn entry_file(key: &[u8]) -> String {
    // The ending is added first: it must not make an otherwise safe name unsafe or too long.
    tree_segment(&[key, b".json"].concat())
}

/// Returns the folder of a card's text: they are numbered in the order of the file.
pub(super) fn card_text_folder(number: usize, keyword: &str) -> String {
    format!("{number}-{keyword}")
}

pub(super) fn attachment_file(path: &LibraryPath) -> String {
    tree_segment(path.as_str().as_bytes())
}

pub(super) fn plain_file(path: &LibraryPath) -> String {
    tree_segment(path.file_name().as_bytes())
}
