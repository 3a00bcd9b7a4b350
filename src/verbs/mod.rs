//! Implements the commands, one file or folder per command.
//!
//! The function of a command is called a verb. Its signature is `fn verb(&Workspace, &Options, &mut
//! dyn Monitor) -> Result<Report>`; some verbs need fewer parameters. A report contains data, and
//! the front end formats the data as text. Problems in the user's data are reported as findings; an
//! error means that the command failed. A verb uses the engine and the history, never another verb.

pub mod backup;
pub mod check;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod erase;
mod error;
pub mod forget;
pub mod gc;
pub mod import;
pub mod init;
pub mod log;
pub mod lore;
pub mod merge;
pub mod message_versions;
pub mod names;
pub mod operations;
pub mod picture;
pub mod read;
pub mod reconstruct;
pub mod remote;
pub mod restore;
pub mod search;
pub mod setup;
pub mod show;
pub mod snapshot;
pub mod stats;
pub mod sync;
pub mod tag;
pub mod timelines;
pub mod undo;

pub use error::{Error, Result, ways_to_settle};
pub(crate) use error::{MergeError, RestoreError, UndoError};
