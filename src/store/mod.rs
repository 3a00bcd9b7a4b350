//! The git repository that contains the snapshots. This layer handles objects, trees, commits,
//! refs, packs and the lock. It knows nothing about chats.
//!
//! A store survives a crash at any point, because each command works in this order:
//!
//! 1. Its objects are written to a temporary pack, which is synced and then renamed (`pack`).
//! 2. Its operation is appended to the operation log, which is synced (`operations`).
//! 3. Its refs are moved (`refs`).
//!
//! The next command that takes the lock moves the refs of an interrupted operation (`lock`). The
//! layer above then writes the user's files that the operation did not write.

mod borrow;
pub mod commit;
mod compressor;
mod config_problem;
mod copy_objects;
mod delta;
mod disk_space;
mod erased;
mod error;
mod features;
mod files;
mod fingerprint;
mod fold_packs;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gc;
mod gc_steps;
mod hex;
mod id_lists;
mod id_set;
mod inflate;
mod limits;
mod lock;
mod logged_operation;
mod long_blob;
mod loose;
mod measured_objects;
pub mod name_encoding;
mod object;
mod object_files;
mod open;
mod operation_log;
mod operations;
mod pack;
mod pack_entries;
mod pack_file;
mod pack_folder;
mod pack_index;
mod packed_mark;
mod packer;
mod reader;
mod recent_objects;
mod ref_collisions;
mod ref_files;
mod ref_name;
mod refs;
mod remote;
mod repack;
mod sequence;
mod set_aside;
mod similar_blobs;
mod strip_packs;
mod symlinks;
pub mod trailer;
pub mod tree;
mod url;
pub(crate) mod verify;
mod volume;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub(crate) use commit::in_utc;
pub use commit::{Commit, NewCommit, Time};
pub(crate) use erased::Erasures;
pub use error::{Error, Result};
pub(crate) use error::{Loss, unless_lost};
pub(crate) use fingerprint::ObjectFileStamps;
pub use gc::Collected;
pub(crate) use gc::{Collection, Repack};
pub(crate) use gc_steps::STEP;
pub use gix::ObjectId;

pub(crate) type ObjectIds = gix::hashtable::HashSet<ObjectId>;
pub(crate) use copy_objects::Copied;
pub use gix::objs::Kind;
pub(crate) use limits::longest;
pub(crate) use lock::Lock;
pub use logged_operation::{Effect, FileChange, LoggedOperation, StoredAs};
pub use long_blob::LongBlob;
pub(crate) use measured_objects::PackSlot;
pub(crate) use object::ObjectHasher;
pub use object::hash;
pub(crate) use open::{Format, MARK_TRAILER, is_repository};
pub(crate) use operation_log::SET_ASIDE;
pub(crate) use operations::{ExpireBefore, Expiry, TransactionResult};
pub use pack::PackWriter;
pub use reader::Reader;
pub(crate) use reader::Readers;
pub use ref_name::{RefChange, RefName};
pub use remote::LoginPrompt;
pub(crate) use remote::RemoteSession;
pub use remote::{RemoteError, temporary_folder};
pub use sequence::Sequence;
pub(crate) use set_aside::SetAside;
pub(crate) use tree::{EntryBytes, entries as tree_entries, no_tree};
pub use tree::{Mode, TreeEntry};
pub use url::Url;

pub struct Store {
    git_dir: PathBuf,
    objects: Arc<object_files::ObjectFiles>,
    packed: ref_files::PackedCache,
    folding: ref_collisions::Folding,
    /// Targets of each ref according to the operation log, newest first; `None` where the ref did
    /// not exist. Loaded on first use.
    logged: OnceLock<HashMap<RefName, Vec<Option<ObjectId>>>>,
}

impl Store {
    pub fn path(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the folder of stvc's own files in the repository. Git ignores this folder.
    pub fn private_dir(&self) -> PathBuf {
        self.git_dir.join(open::PRIVATE)
    }

    fn private(&self, name: &str) -> PathBuf {
        self.private_dir().join(name)
    }

    fn objects_dir(&self) -> PathBuf {
        self.git_dir.join("objects")
    }

    fn pack_dir(&self) -> PathBuf {
        self.objects_dir().join("pack")
    }
}
