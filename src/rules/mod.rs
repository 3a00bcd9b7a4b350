//! Findings about values: what is odd or wrong in the user's data, and what to do about it. Pure: bytes in, findings out.

mod after_restore;
mod alarms;
mod catalogue;
mod characters;
mod chat;
mod checkpoint;
mod damage;
mod finding;
mod level;
mod library;
mod lorebook;
mod queue;
mod recap;
mod recap_registry;
mod scenes;
mod subject;
mod timeline_files;

pub use after_restore::restored;
pub use alarms::{Passage, alarm};
pub use catalogue::{CATALOGUE, Code, Rule, findings_page, rules};
pub use characters::{CharacterFacts, characters};
pub use checkpoint::{
    Point, READINESS, STRICT, lorebook_of_now, readiness, recap_from_future, refuse,
};
pub use damage::{StoredVersion, advise_damaged, damaged, damaged_timeline};
pub use finding::{Finding, lost_attachments, without_repeats};
pub use level::Level;
pub use library::{
    BookFacts, DamagedFile, LibraryFacts, SharedBook, TimelineFacts, UnusedBook, library,
    missing_attachments, orphan, other_users,
};
pub use lorebook::unread as lorebook_unread;
pub use queue::{Wish, queue_active};
pub use timeline_files::{ALL, of_files, of_stored};

#[cfg(test)]
mod tests;
