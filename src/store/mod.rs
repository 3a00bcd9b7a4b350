//! The git repository that holds the snapshots. This layer knows objects, trees, commits, refs,
//! packs and a lock, and nothing of chats.
//!
//! Why a crash at any point is survived: objects go into a pack that gets its name only when it is
//! complete and synced (`pack`); then the operation is written to the log and synced
//! (`operations`); only then do refs move (`refs`). Whoever takes the lock next finishes the moves
//! that the log promises (`lock`), and is told of files that it promises.

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
mod id_lists;
mod inflate;
mod limits;
mod lock;
mod logged_operation;
mod loose;
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
mod percent_encoding;
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

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub(crate) use commit::in_utc;
pub use commit::{Commit, NewCommit, Time};
pub(crate) use erased::Erasures;
pub use error::{Error, Result};
pub(crate) use error::{Loss, unless_lost};
pub use gc::Collected;
pub(crate) use gc::{Collection, Repack};
pub use gix::ObjectId;

pub(crate) type ObjectIds = gix::hashtable::HashSet<ObjectId>;
pub(crate) use copy_objects::Copied;
pub use gix::objs::Kind;
pub(crate) use limits::longest;
pub(crate) use lock::Lock;
pub use logged_operation::{Effect, FileChange, Kept, LoggedOperation};
pub use object::hash;
pub(crate) use open::{Format, MARK_TRAILER, is_repository};
pub(crate) use operation_log::SET_ASIDE;
pub(crate) use operations::{Before, Expiry, Transacted};
pub use pack::PackWriter;
pub(crate) use packer::Placed;
pub use reader::Reader;
pub(crate) use reader::Readers;
pub use ref_name::{RefChange, RefName};
pub(crate) use remote::Transit;
pub use remote::{RemoteError, folder_for_now};
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
    /// The targets of each ref by the operation log, newest first; read when needed.
    logged: OnceLock<HashMap<RefName, Vec<Option<ObjectId>>>>,
}

impl Store {
    pub fn path(&self) -> &Path {
        &self.git_dir
    }

    /// Returns stvc's own folder in the repository, which git ignores.
    pub fn private_dir(&self) -> PathBuf {
        self.git_dir.join(open::PRIVATE)
    }

    fn objects_dir(&self) -> PathBuf {
        self.git_dir.join("objects")
    }

    fn pack_dir(&self) -> PathBuf {
        self.objects_dir().join("pack")
    }
}
