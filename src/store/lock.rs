//! The lock that admits one writer at a time. It is a lock of the operating system on the file
//! `stvc/lock`, so it is released when its process ends. The *holder file* `stvc/lock.json`
//! describes the process that holds the lock, and is emptied on release. The process that takes the
//! lock next finishes interrupted operations.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::features::Access;
use super::pack_folder::TEMP_PREFIX;
use super::set_aside::{OperationCheck, SetAside};
use super::{Error, LoggedOperation, Result, Store};
use crate::{durable, file_lock, regular};

/// The store's lock, held until dropped.
pub struct Lock {
    holder: PathBuf,
    pub command: Vec<String>,
    /// Interrupted operations that were completed when the lock was taken. They had no files to
    /// write.
    pub finished: Vec<LoggedOperation>,
    /// Operations that were set aside when the lock was taken.
    pub set_aside: Vec<SetAside>,
    file: File,
}

const HOLDER: &str = "lock.json";

#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    command: Vec<String>,
    since: String,
}

impl Store {
    /// Takes the lock for `command`, waiting up to `patience`. Then sets aside the operations that
    /// are impossible or that `judge` rejects (see `set_aside`), and moves the refs of interrupted
    /// operations. The caller writes the files of these operations: see [`Store::unfinished`].
    pub fn lock(
        &self,
        command: &[String],
        now: &str,
        patience: Duration,
        judge: &OperationCheck<'_>,
    ) -> Result<Lock> {
        self.refuse_links()?;
        self.must_be_known(Access::Write)?;
        let dir = self.private_dir();
        durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        let path = dir.join("lock");
        let file = durable::open_to_lock(&path).map_err(Error::io(&path))?;
        if !file_lock::lock_within(&file, patience).map_err(Error::io(&path))? {
            let holder = self.holder_in_words();
            return Err(Error::Locked { path: self.git_dir.clone(), holder });
        }
        let holder_path = self.private(HOLDER);
        let was_killed = fs::metadata(&holder_path).is_ok_and(|found| found.len() > 0);
        // Done even if the holder file is empty: it is not synced, so a power cut may have emptied
        // it.
        self.clear_temporary_files()?;
        if was_killed {
            // The killed process may have left locks on refs.
            self.clear_locks_of_packing()?;
        }
        let set_aside = self.set_aside_impossible(judge)?;
        let finished = self.finish_refs(command, now)?;
        self.write_format()?;
        let holder =
            Holder { pid: std::process::id(), command: command.to_owned(), since: now.to_owned() };
        let words = serde_json::to_vec(&holder)
            .map_err(Error::git("cannot record the holder of the lock"))?;
        // The holder file is not synced, because the log records interrupted operations.
        match durable::overwrite(&holder_path, &words) {
            // On a full disk the lock is taken without a holder file, so that commands that free
            // space still work.
            Err(error) if durable::is_full(&error) => {}
            written => written.map_err(Error::io(&holder_path))?,
        }
        self.make_reserve();
        let command = command.to_owned();
        Ok(Lock { holder: holder_path, command, finished, set_aside, file })
    }

    fn holder_in_words(&self) -> String {
        let holder = regular::read(&self.private(HOLDER))
            .ok()
            .and_then(|words| serde_json::from_slice::<Holder>(&words).ok());
        match holder {
            Some(Holder { pid, command, since }) => {
                format!("process {pid} ({}), since {since}", command.join(" "))
            }
            None => "another process".into(),
        }
    }

    /// Removes temporary files of other processes. Only the process that holds the lock writes to
    /// these folders, so the files are unused.
    fn clear_temporary_files(&self) -> Result<()> {
        let dir = self.pack_dir();
        let own = format!("{}{}-", TEMP_PREFIX, std::process::id());
        for entry in fs::read_dir(&dir).map_err(Error::io(&dir))?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(TEMP_PREFIX) && !name.starts_with(&own) {
                // A file that another program has open is an old pack that was renamed and is still
                // being read.
                durable::remove_unless_held(&entry.path()).map_err(Error::io(entry.path()))?;
            }
        }
        let private = self.private_dir();
        let caches = ["folders", "search"].map(|name| private.join(name));
        for dir in [&self.git_dir, &caches[0], &caches[1], &private] {
            durable::clear_left_behind(dir);
        }
        Ok(())
    }

    /// Syncs the holder file. Called before `packed-refs` is locked: after a crash, the holder file
    /// shows the next process that this lock is abandoned.
    pub(super) fn sync_holder(&self) -> Result<()> {
        let path = self.private(HOLDER);
        let synced = durable::sync_file(&path);
        synced.and_then(|()| durable::sync_dir(durable::parent(&path))).map_err(Error::io(&path))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = durable::overwrite(&self.holder, b"");
        file_lock::unlock(&self.file);
    }
}
