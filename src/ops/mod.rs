//! One file a verb: plan, do, report. The only layer that joins the others.
//!
//! Every verb is `fn verb(&Workspace, &Options, &mut dyn Monitor) -> Result<Report>`; a report is data, and the front end
//! finds the words. What is wrong with the user's data is a finding in the report; an error is "could not do it".

pub mod backup;
mod book_name;
mod cache;
pub mod check;
pub mod diff;
pub mod doctor;
mod error;
pub mod forget;
pub mod gc;
pub mod import;
pub mod init;
mod lineage;
pub mod log;
mod lost;
pub mod merge;
mod needle;
mod open_page;
mod operation;
pub mod operations;
mod owners;
pub mod reconstruct;
mod resolve;
pub mod restore;
pub mod retention;
mod safety;
pub mod search;
mod settled;
pub mod show;
pub mod snapshot;
pub mod stats;
mod survey;
pub mod sync;
pub mod tag;
pub mod time_true;
pub mod timelines;
pub mod tree;
pub mod undo;
mod verdict;
pub mod watch;
mod weave;
mod workspace;

pub use error::{Error, Result};
pub use operation::{files, finish_interrupted};
pub use workspace::{Place, Workspace};
