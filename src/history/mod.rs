//! The snapshots of a store as a history: what follows what, whose each is, what a name means,
//! where a new chat comes from, and what a timeline was at an earlier message. Nothing here touches
//! the library's files or moves a ref.

pub mod at_message;
pub(crate) mod book_history;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod graph;
pub(crate) mod latest_valid;
mod loaded;
pub(crate) mod message_history;
pub(crate) mod moment;
pub(crate) mod name_lookup;
pub(crate) mod origin;
pub(crate) mod owner_of_snapshot;
pub(crate) mod pairs;
pub mod retention;
pub(crate) mod rewrite_history;
pub(crate) mod state_then;

pub use error::{Error, Result};
pub use graph::{Broken, History, heads};
pub use loaded::LoadedHistory;
pub use moment::dates;
