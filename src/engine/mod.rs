//! What every verb is made of: the library and its store, has a timeline changed, taking snapshots, writing the library's files, copies of the store elsewhere.
//! Everything that changes something goes through one `operation`.

pub(crate) mod book_name;
pub(crate) mod cache;
pub mod copies;
mod error;
pub(crate) mod free_name;
pub(crate) mod group_list;
pub(crate) mod lost;
pub(crate) mod open_page;
pub(crate) mod operation;
pub(crate) mod safety;
pub(crate) mod survey;
pub(crate) mod tags;
pub mod taking;
pub(crate) mod undisturbed;
pub(crate) mod verdict;
pub(crate) mod workspace;

pub use error::{Error, InTheWay, Result};
pub use operation::{files, finish_interrupted};
pub use workspace::{LibraryPlace, Workspace};
