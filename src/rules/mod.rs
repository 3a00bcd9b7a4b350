//! Findings: problems in the user's data, and their remedies. The functions are pure: they compute
//! findings from their parameters and do not access files.

mod alarms;
mod catalogue;
mod characters;
mod chat;
mod damage;
mod finding;
mod library;
mod lorebook;
mod subject;
mod timeline_files;

pub use alarms::{Passage, alarm};
#[cfg(feature = "internals")]
pub use catalogue::CATALOGUE;
pub use catalogue::{Code, Level, Rule, findings_page, rules};
pub use characters::{CharacterFacts, characters};
pub use damage::{StoredVersion, advise_damaged, damaged, damaged_timeline};
pub use finding::{Finding, lost_attachments, without_repeats};
pub(crate) use finding::{brief, few, listed, more, numbered};
pub use library::{
    BookFacts, LibraryFacts, TimelineFacts, UnusedBook, library, missing_attachments, orphan,
    other_users,
};
pub use lorebook::unread as lorebook_unread;
pub(crate) use lorebook::{Book, BookEntry};
pub(crate) use subject::Subject;
pub use timeline_files::{ALL, of_files, of_stored};
