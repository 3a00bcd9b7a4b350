//! Commits that were removed for good, in `stvc/erased`: one id a line, and nothing that tells what they were. What comes from elsewhere is held against it.

use std::collections::HashSet;
use std::path::PathBuf;

use super::find_files::unless_absent;
use super::{Error, Lock, ObjectId, RefName, Result, Store, id_list};
use crate::durable;

/// There while commits are being removed.
const ERASING: &str = "erasing";

impl Store {
    /// Removing these commits begins: whoever finds that noted goes on with it.
    pub fn begin_erasing(&self, lock: &Lock, ids: &[ObjectId]) -> Result<()> {
        self.remember_erased(lock, ids)?;
        let path = self.private_dir().join(ERASING);
        let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
        durable::write(&path, text.as_bytes(), durable::Existing::Replace).map_err(Error::io(path))
    }

    /// The commits whose removal was begun and not ended.
    pub fn erasing(&self) -> Result<Option<HashSet<ObjectId>>> {
        id_list::read(&self.private_dir().join(ERASING))
    }

    /// They are gone.
    pub fn end_erasing(&self, _lock: &Lock) -> Result<()> {
        let path = self.private_dir().join(ERASING);
        unless_absent(durable::remove(&path), &path)?;
        Ok(())
    }

    /// Remember that these commits shall not come back.
    fn remember_erased(&self, _lock: &Lock, ids: &[ObjectId]) -> Result<()> {
        id_list::add(&self.erased_path(), ids)
    }

    /// The commits that were removed for good.
    pub fn erased(&self) -> Result<HashSet<ObjectId>> {
        Ok(id_list::read(&self.erased_path())?.unwrap_or_default())
    }

    /// Let `HEAD` name a branch that is there. Git shows it first, and its name may be what nobody shall read any more.
    pub fn mend_head(&self, _lock: &Lock) -> Result<()> {
        let is_there = match self.head()? {
            Some(head) => self.ref_target(&head)?.is_some(),
            None => false,
        };
        if is_there {
            return Ok(());
        }
        let branches = self.refs("refs/heads/")?.refs;
        let first = branches.into_iter().map(|(name, _)| name).next();
        match first.or_else(|| RefName::try_from("refs/heads/main".to_owned()).ok()) {
            Some(name) => self.point_head_at(&name),
            None => Ok(()),
        }
    }

    fn erased_path(&self) -> PathBuf {
        self.private_dir().join("erased")
    }
}
