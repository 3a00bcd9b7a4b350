//! SillyTavern's files: where they lie, how they are read, how they are written back.
//!
//! This layer knows no git. It never re-serialises what it reads: every value is a slice of the file's own
//! bytes, so whatever SillyTavern, an extension or an editor wrote comes back as it was.

mod attachment_links;
mod backups;
mod capture;
mod card;
mod chat;
mod damage;
mod discover;
mod error;
mod folder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod group_edit;
mod groups;
mod isolate;
pub mod json;
mod library;
mod lorebook;
pub mod mailbox;
mod mark;
mod mere_use;
mod metadata;
mod name;
mod place;
mod read_file;
mod references;
mod running;
mod sanitize;
mod send_date;
#[cfg(test)]
mod tests;
mod thumbnails;
mod timed_effects;
mod timeline_files;
mod users;
mod write;

pub use attachment_links::{attachments, belongs_to_stvc, is_attachment, is_common_kind};
pub use backups::{Backup, list_backups, remove_file};
pub use capture::{Captured, Disk, Files, Stamp, Stamps, capture, capture_readable};
pub use card::{
    CardError, CardText, CutCard, CutText, OpenCard, card_keywords, card_name, cut_card, cut_text,
    each_string, fill_card, fill_text,
};
pub use chat::{Chat, Message, MessageText, broken_lines, is_blank, text_of};
pub use damage::{Damage, book_damage, chat_damage, damage, damage_of_files, damage_on_disk};
pub use discover::STORE;
pub use error::{Error, Result};
pub use folder::{Listing, is_absent, list_existing, list_folder};
pub use group_edit::{list_in_group, rename_in_group, set_group_metadata};
pub use groups::Groups;
pub use isolate::{BookRename, Rename, rename_in_metadata, unbind_lorebook};
pub use json::{Edits, Key, Member, Raw, item_spans, member_spans, replace};
pub use library::{FOLDERS, Library, Presence, Scan};
pub use lorebook::{
    Cut, FillError, cut, entries, entries_and_repeats, entry_comment, entry_content, entry_uid,
    fill, uid_text,
};
pub use mark::{mark, new_mark, with_mark};
pub use mere_use::{differ_by_use, with_chats_of_group};
pub use metadata::{bound_lorebook, chat_of_checkpoint, lorebook_name, main_chat, metadata};
pub use name::{Category, LibraryPath, TimelineName, chat_name, lorebook_path};
pub use place::{open_file, open_folder, read};
pub use read_file::FileBytes;
pub use references::{MapEntry, Reference, References, User};
pub use running::{Running, process_on, running_on};
pub use sanitize::sanitize;
pub use send_date::send_millis;
pub use thumbnails::forget_thumbnail;
pub use timed_effects::{Renamed, effect_hash, rename_effects};
pub use timeline_files::{Book, BoundBook, FileAt, TimelineFiles};
pub use users::{lorebook_of, possible_users_of_lorebook, users_of_lorebook};
pub use write::{
    Fingerprint, must_be_a_name_here, must_be_a_place, remove, why_not_writable, write,
};
