//! What a person can ask for, one file or folder each: plan, do, report.
//!
//! Every verb is `fn verb(&Workspace, &Options, &mut dyn Monitor) -> Result<Report>`; a report is data, and the front end finds the words. What is wrong with
//! the user's data is a finding in the report; an error is "could not do it". A verb uses the engine and the history, never another verb.

pub mod backup;
pub mod check;
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
