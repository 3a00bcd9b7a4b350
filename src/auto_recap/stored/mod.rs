//! What snapshots record of ST-Auto-Recap, and states put together from what it noted: ST-Auto-Recap records the whole lorebook on the message that ends a scene.
//!
//! Nothing is made up in silence: for every entry it is told which of its fields the note had, which come from a book where the same entry
//! stands, and which are SillyTavern's defaults.

mod checkpoint_state;
pub(crate) mod merge_registry;
mod rebuild_book;
mod trim_metadata;

pub use checkpoint_state::CheckpointState;
pub(crate) use checkpoint_state::known_state;
pub use rebuild_book::{EntryOrigin, rebuild_book};
pub use trim_metadata::{Trimmed, trim_metadata};
