//! A state that was never snapshotted, put together from what messages carry: ST-Auto-Recap notes the whole lorebook on the message that ends a
//! scene.
//!
//! Nothing is made up in silence: for every entry it is told which of its fields the note had, which come from a book where the same entry
//! stands, and which are SillyTavern's defaults.

mod book;
mod metadata;

pub use book::{EntryOrigin, Rebuilt, rebuild_book};
pub use metadata::{Trimmed, trim_metadata};
