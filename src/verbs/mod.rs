//! One file or folder per command: plan, do, report.
//!
//! Every verb is `fn verb(&Workspace, &Options, &mut dyn Monitor) -> Result<Report>`. A report is
//! data, which the front end puts into words. Problems in the user's data are findings; an error
//! means "could not do it". A verb uses the engine and the history, never another verb.

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
pub mod read;
pub mod reconstruct;
pub mod restore;
pub mod search;
pub mod show;
pub mod snapshot;
pub mod stats;
pub mod sync;
pub mod tag;
pub mod timelines;
pub mod undo;

pub use error::{Error, MergeError, RestoreError, Result, UndoError, ways_to_settle};
