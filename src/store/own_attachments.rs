//! Blobs of attachments that the library itself had, in `stvc/own-attachments`: those of kinds that do not come from elsewhere without asking. What is not in the list came with a backup or from
//! another device. A list that is lost makes stvc ask once more, and nothing else.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{Lock, ObjectId, Result, Store, id_list};

impl Store {
    pub fn own_attachments(&self) -> Result<HashSet<ObjectId>> {
        Ok(id_list::read(&self.own_attachments_path())?.unwrap_or_default())
    }

    /// Notes that the library had these, or that the user wants them there.
    pub fn remember_own_attachments(&self, _lock: &Lock, ids: &HashSet<ObjectId>) -> Result<()> {
        if ids.is_empty() { Ok(()) } else { id_list::add(&self.own_attachments_path(), ids) }
    }

    fn own_attachments_path(&self) -> PathBuf {
        self.private_dir().join("own-attachments")
    }
}
