//! The parts that the verbs share: opening the library and its store, detecting changes, creating
//! snapshots, writing the library's files, and backups. Every change is part of an operation
//! (module `operation`).

pub(crate) mod cache;
pub(crate) mod changed_timelines;
pub(crate) mod collect;
pub mod configuration;
pub mod copies;
pub(crate) mod deleted_timelines;
pub mod device;
mod error;
pub(crate) mod family;
pub(crate) mod free_names;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod gate;
pub(crate) mod group_list;
pub(crate) mod join_packs;
mod known_folders;
pub(crate) mod left_out;
pub(crate) mod lost_objects;
pub(crate) mod operation;
mod other_timelines;
pub mod receive;
pub(crate) mod reload_page;
pub mod remotes;
pub mod safety_snapshots;
pub(crate) mod search_files;
pub mod sillytavern_runs;
pub(crate) mod tags;
mod take_new_chats;
pub mod take_snapshots;
pub(crate) mod undisturbed_read;
pub(crate) mod unused_lorebooks;
pub(crate) mod verdict_findings;
pub(crate) mod workspace;
pub mod written_since;

pub(crate) use configuration::Include;
pub use error::{ConfigurationError, Error, Result, TagError};
pub use operation::{files, finish_interrupted, has_unfinished};
pub use workspace::{CommandRun, LibraryPlace, Workspace};
