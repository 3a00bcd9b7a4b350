//! A note that the store is damaged, in `stvc/damaged`.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{Error, ObjectId, Result, Store, files, id_list};
use crate::{durable, regular};

impl Store {
    /// Whether the last check found objects damaged or missing. As long as that is so, a snapshot takes nothing for stored that it
    /// cannot read, and so mends what the files still have.
    pub fn is_marked_damaged(&self) -> bool {
        self.damaged_path().exists()
    }

    /// The commits that the last check could not rebuild.
    pub fn known_damaged(&self) -> HashSet<ObjectId> {
        id_list::read(&self.damaged_path()).ok().flatten().unwrap_or_default()
    }

    /// Notes that a check found damage, and the commits that suffer from it.
    pub fn mark_damaged(&self, commits: &[ObjectId]) -> Result<()> {
        let path = self.damaged_path();
        let mut text = String::from("see `stvc check`\n");
        commits.iter().for_each(|id| text.push_str(&format!("{id}\n")));
        if regular::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        self.refuse_links()?;
        let dir = self.private_dir();
        durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        durable::overwrite(&path, text.as_bytes()).map_err(Error::io(path))
    }

    /// Removes the note: a check found no damage.
    pub fn mark_sound(&self) -> Result<()> {
        let path = self.damaged_path();
        if regular::read(&path).is_err() {
            return Ok(());
        }
        self.refuse_links()?;
        files::remove(&path)
    }

    fn damaged_path(&self) -> PathBuf {
        self.private_dir().join("damaged")
    }
}
