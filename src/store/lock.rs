//! One writer at a time. The operating system holds the lock (`stvc/lock`), so it ends with its
//! process, however that ends; a second file (`stvc/lock.json`) says who has it, and is emptied on
//! the way out. Whoever gets the lock finishes what the operation log says was begun.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::features::Use;
use super::pack_folder::TEMP_PREFIX;
use super::set_aside::{Judge, SetAside};
use super::{Error, LoggedOperation, Result, Store};
use crate::{durable, file_lock, regular};

/// The store's lock, held until dropped.
pub struct Lock {
    holder: PathBuf,
    command: Vec<String>,
    finished: Vec<LoggedOperation>,
    set_aside: Vec<SetAside>,
    file: File,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    command: Vec<String>,
    since: String,
}

impl Store {
    /// Takes the lock for `command`, waiting up to `patience`. Finishes the refs of interrupted
    /// operations; their files are up to the caller, see [`Store::unfinished`]. Operations that are
    /// impossible, also by `judge`, are set aside before.
    pub fn lock(
        &self,
        command: &[String],
        now: &str,
        patience: Duration,
        judge: &Judge<'_>,
    ) -> Result<Lock> {
        self.refuse_links()?;
        self.must_be_known(Use::Write)?;
        let dir = self.private_dir();
        durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        let path = dir.join("lock");
        let file = durable::open_to_lock(&path).map_err(Error::io(&path))?;
        let deadline = Instant::now() + patience;
        loop {
            if file_lock::try_lock(&file).map_err(Error::io(&path))? {
                break;
            }
            if Instant::now() >= deadline {
                let holder = self.holder_in_words();
                return Err(Error::Locked { path: self.git_dir.clone(), holder });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let holder_path = self.holder_path();
        let was_killed = fs::metadata(&holder_path).is_ok_and(|found| found.len() > 0);
        // Also where nobody is known to have been killed: a power cut takes that note with it.
        self.clear_temporary_files()?;
        if was_killed {
            // It may have been its own.
            self.clear_locks_of_packing()?;
        }
        let set_aside = self.set_aside_impossible(judge)?;
        let finished = self.finish_refs(command, now)?;
        self.write_format()?;
        let holder =
            Holder { pid: std::process::id(), command: command.to_owned(), since: now.to_owned() };
        let words = serde_json::to_vec(&holder).map_err(Error::git("naming the lock's holder"))?;
        // Not synced: what was interrupted is known by the log.
        match durable::overwrite(&holder_path, &words) {
            // It only tells others who is at work. Who makes room must not be stopped by it.
            Err(error) if durable::is_full(&error) => {}
            written => written.map_err(Error::io(&holder_path))?,
        }
        self.make_reserve();
        let command = command.to_owned();
        Ok(Lock { holder: holder_path, command, finished, set_aside, file })
    }

    fn holder_path(&self) -> PathBuf {
        self.private_dir().join("lock.json")
    }

    fn holder_in_words(&self) -> String {
        let holder = regular::read(&self.holder_path())
            .ok()
            .and_then(|words| serde_json::from_slice::<Holder>(&words).ok());
        match holder {
            Some(holder) => {
                format!(
                    "process {} ({}), since {}",
                    holder.pid,
                    holder.command.join(" "),
                    holder.since
                )
            }
            None => "another process".into(),
        }
    }

    /// Removes temporary files of others: only the holder of the lock writes here.
    fn clear_temporary_files(&self) -> Result<()> {
        let dir = self.pack_dir();
        let own = format!("{}{}-", TEMP_PREFIX, std::process::id());
        for entry in fs::read_dir(&dir).map_err(Error::io(&dir))?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(TEMP_PREFIX) && !name.starts_with(&own) {
                // A file that is held is a renamed pack that somebody still reads.
                durable::remove_unless_held(&entry.path()).map_err(Error::io(entry.path()))?;
            }
        }
        let private = self.private_dir();
        for dir in [&self.git_dir, &private.join("folders"), &private] {
            durable::clear_left_behind(dir);
        }
        Ok(())
    }

    /// Makes the note of the holder durable, before something is made that only the next holder can
    /// remove.
    pub(super) fn sync_holder(&self) -> Result<()> {
        let path = self.holder_path();
        let synced = durable::sync_file(&path);
        synced.and_then(|()| durable::sync_dir(durable::parent(&path))).map_err(Error::io(&path))
    }
}

impl Lock {
    /// Operations without files that were interrupted, and were finished when the lock was taken.
    pub fn finished(&self) -> &[LoggedOperation] {
        &self.finished
    }

    /// Operations that were set aside when the lock was taken.
    pub fn set_aside(&self) -> &[SetAside] {
        &self.set_aside
    }

    pub fn command(&self) -> &[String] {
        &self.command
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = durable::overwrite(&self.holder, b"");
        file_lock::unlock(&self.file);
    }
}
