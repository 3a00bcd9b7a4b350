//! What a snapshot is: the manifest, the tree it is stored as, the commit that names it, and how two of them differ.
//! Values in, values out: nothing here touches the library's files or moves a ref.

pub mod backup;
mod checkpoint;
mod content;
pub mod diff;
mod error;
mod fresh;
pub mod history;
mod known;
mod layout;
pub mod lineage;
mod manifest;
mod materialise;
pub mod merge;
mod part_names;
mod placing;
mod problem;
pub mod reconstruct;
mod same_entry;
mod snapshot;
mod state;
mod validate;
mod write;

pub use checkpoint::{CheckpointState, uses_auto_recap};
pub use content::{Blake3, ContentId};
pub use error::{Error, Result};
pub use fresh::{Fresh, FreshPlace, FreshTexts};
pub use history::History;
pub use known::Folders;
pub use manifest::{FileRecord, Manifest, Role};
pub use materialise::{Contents, MaterialFile, StoredBook, Tree, first_message, read_manifest};
pub use placing::{Reach, all_objects, objects_beyond, objects_of, readable_beyond};
pub use problem::{Problem, Problems, Weight};
pub use snapshot::{
    Kind, NewSnapshot, Snapshot, SnapshotId, branch, former_branch, moved, with_fork,
};
pub use state::{BookState, FileState, Parts, State};
pub use validate::{Rebuilt, Validator, Verdict, rebuild};
pub use write::{Written, write, write_chat};
