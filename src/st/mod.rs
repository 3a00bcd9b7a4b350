//! SillyTavern's files: where they are, and how they are read and written.
//!
//! This layer does not use git. It never re-serialises JSON: every value is a slice of the file's
//! bytes, so everything that SillyTavern, an extension or an editor wrote is preserved byte for
//! byte.

mod attachment_links;
mod backups;
mod capture;
mod card;
mod chat;
mod damage;
mod discover;
mod error;
mod find_libraries;
mod folder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod groups;
mod initial_content;
mod isolate;
pub mod json;
mod library;
mod lorebook;
pub mod mailbox;
mod metadata;
mod name;
mod place;
mod read_file;
mod references;
mod running;
mod sanitize;
#[cfg(test)]
mod tests;
mod timed_effects;
mod timeline_files;
mod volatile_fields;
mod write;

pub use attachment_links::{
    attachments, belongs_to_stvc, displayed_attachments, is_attachment, is_common_kind,
};
pub use backups::{Backup, list_backups, remove_file};
pub use capture::{Captured, Disk, Files, Stamp, capture, capture_readable};
pub use card::{
    CutCard, OpenCard, card_keywords, card_name, card_picture, cut_card, cut_text, each_string,
    fill_card, fill_text,
};
pub use chat::{Chat, Message, MessageText, broken_lines, is_blank, send_millis, text_of};
pub use damage::{Damage, book_damage, chat_damage, damage, damage_of_files, damage_on_disk};
pub use discover::STORE;
pub use error::{Error, Result};
pub use find_libraries::{FoundLibrary, Surroundings};
pub use folder::{is_absent, list_existing, list_folder};
pub use groups::{Groups, list_in_group, rename_in_group, set_group_metadata};
pub use isolate::{BookRename, Rename, rename_in_metadata, unbind_lorebook};
pub use json::{Edits, Key, Member, Raw, has_repeated_key, item_spans, member_spans, replace};
pub use library::{FOLDERS, Library, Presence, Scan};
pub use lorebook::{
    cut, entries, entries_and_repeats, entry_comment, entry_content, entry_uid, fill, uid_text,
};
pub use metadata::{
    bound_lorebook, chat_of_checkpoint, integrity, lorebook_name, main_chat, metadata,
    new_integrity, with_integrity,
};
pub use name::{Category, LibraryPath, TimelineName, chat_name, lorebook_path};
pub use place::{open_file, open_folder, read};
pub use read_file::FileBytes;
pub use references::{
    MapEntry, Reference, References, User, lorebook_of, possible_users_of_lorebook,
    users_of_lorebook,
};
pub use running::{Running, process_on, running_on};
pub use sanitize::sanitize;
#[cfg(any(feature = "internals", fuzzing))]
pub use timed_effects::effect_hash;
pub use timeline_files::{Book, BoundBook, FileAt, TimelineFiles};
pub use volatile_fields::{differ_by_use, with_chats_of_group};
pub use write::{
    Fingerprint, forget_thumbnail, must_be_a_name_here, must_be_a_place, remove, why_not_writable,
    write,
};
