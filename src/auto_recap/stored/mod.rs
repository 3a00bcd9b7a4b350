//! The data that snapshots record about ST-Auto-Recap, and lorebooks rebuilt from scene records.

mod checkpoint_state;
pub(crate) mod merge_registry;
mod rebuild_book;
mod trim_metadata;

pub use checkpoint_state::CheckpointState;
pub(crate) use checkpoint_state::known_state;
pub use rebuild_book::{EntryOrigin, rebuild_book};
pub use trim_metadata::{Trimmed, trim_metadata};
