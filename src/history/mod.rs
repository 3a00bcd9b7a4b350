//! The history of a store: the order of snapshots, their timelines, the meaning of names that users
//! type, the origin of new chats, and timelines at earlier messages. No code here changes files of
//! the library or moves a ref.

pub mod at_message;
pub(crate) mod book_history;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod graph;
pub(crate) mod latest_valid;
mod loaded;
pub(crate) mod moment;
pub(crate) mod name_lookup;
pub(crate) mod origin;
mod owner_index;
pub(crate) mod owner_of_snapshot;
pub(crate) mod pairs;
pub mod retention;
pub(crate) mod rewrite_history;
pub(crate) mod state_then;

pub use error::{Error, Result};
pub use graph::{History, Unreadable, heads};
pub use loaded::LoadedHistory;
pub use moment::dates;
