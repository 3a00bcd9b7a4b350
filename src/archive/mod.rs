//! Snapshots: manifest, tree, commit, and their differences. This module changes neither files of
//! the library nor refs.

mod attachment_tree;
pub mod backup;
mod book_states;
mod cut_file;
pub mod diff;
pub(crate) mod entry_identity;
pub(crate) mod entry_lives;
mod erasure_mark;
mod error;
mod file_role;
mod folder_trees;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod ids;
mod layout;
mod manifest;
pub mod merge;
pub(crate) mod message_identity;
pub(crate) mod message_lives;
mod new_texts;
mod pack_order;
mod part_names;
mod problem;
mod reach;
mod rebuild_files;
mod snapshot;
mod state;
mod validate;
mod write;

pub use attachment_tree::{Attachment, AttachmentsRecord};
pub(crate) use erasure_mark::{CopyMark, erasure_marks};
pub use error::{Error, Result};
pub use file_role::Role;
pub(crate) use folder_trees::Folders;
pub use ids::{Blake3, ContentId, SnapshotId};
pub use manifest::{FileRecord, Manifest};
pub(crate) use new_texts::{
    NewText, NewTexts, TextKind, TextKinds, TextPlace, TreePart, TreeRole, sort_texts, tree_parts,
};
pub(crate) use pack_order::{Referenced, all_objects, new_versions, readable_beyond};
pub use problem::{AttachmentLoss, LossCause, Problem, Problems, Severity};
pub(crate) use reach::Reach;
pub use rebuild_files::Contents;
pub(crate) use rebuild_files::{Tree, first_message, read_manifest, rebuild_pair};
pub(crate) use snapshot::{
    Ancestry, NewSnapshot, branch, id_and_time, id_if_any, is_branch, moved, with_fork,
    with_parent_until,
};
pub use snapshot::{Kind, Snapshot};
pub(crate) use state::State;
pub use validate::{Rebuilt, Validator, Verdict, rebuild};
pub(crate) use write::{FilesToWrite, WrittenFiles, WrittenTree, write, write_chat, write_many};
