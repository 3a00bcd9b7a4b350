//! Changes refs. Git's library syncs neither the file of a ref nor a rewritten `packed-refs`, so a
//! power cut could lose a change. This module changes refs by git's own protocol and adds the
//! syncs: it creates, writes and syncs `<ref>.lock`, renames it to `<ref>`, and syncs the folder.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::files;
use super::ref_collisions::folded;
use super::ref_files::{LOCK_ENDING, Loose, files_below, loose_names, packed_text};
use super::{Error, Kind, Lock, ObjectId, RefChange, RefName, Result, Store};
use crate::durable;

/// Maximum time to wait for another program (such as `git gc`) to release the lock on a ref.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of refs with their own files. A single file is faster to write than
/// `packed-refs`, but many files slow down every command: each takes eleven system calls.
const MANY_REFS: usize = 8;
/// Age above which a lock counts as abandoned: writing the 41 bytes of a ref takes less than a
/// minute.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

impl Store {
    /// Moves refs. Fails if the target of a ref is no longer `before`. The caller holds the store's
    /// lock and has logged the operation.
    ///
    /// All refs are locked first, then compared, then written and synced. Only then is the first
    /// lock file renamed. So a concurrent change by git is detected, and a full disk prevents all
    /// changes, not only some.
    ///
    /// Refs that must not have their own file (see [`ref_collisions`](super::ref_collisions)) are
    /// written to `packed-refs`. If git created a file for such a ref, the file is removed
    /// afterwards. Until then the file takes precedence, so a crash in between leaves the old
    /// value.
    ///
    /// If there are many new refs, they are also written to `packed-refs`: creating a lock and a
    /// file for each would take longer than the rest of a first snapshot.
    pub(super) fn move_refs(&self, changes: &[RefChange]) -> Result<()> {
        let (new, changes): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| changes.len() > MANY_REFS && self.is_new(change));
        let packed = |change: &RefChange| self.must_be_packed(&change.name);
        let mut locks = Vec::with_capacity(changes.len());
        let mut locked = HashSet::new();
        for change in &changes {
            // Names that are equal to the file system share one lock file.
            let is_first = !packed(change) || locked.insert(folded(change.name.as_str()));
            let target = self.git_dir.join(change.name.as_str());
            if change.name.is_kept() {
                // Only stvc writes these refs, and the caller holds the store's lock. So an
                // existing lock file belongs to a dead process.
                durable::remove_own(&lock_path(&target));
            }
            locks.push(if is_first { Some(LockedFile::take(&target)?) } else { None });
        }
        for change in new.iter().chain(&changes) {
            if change.before != self.ref_target(&change.name)? {
                return Err(Error::RefMoved { name: change.name.to_string() });
            }
        }
        for (lock, change) in locks.iter_mut().zip(&changes) {
            if let (Some(lock), Some(after), false) = (lock, change.after, packed(change)) {
                lock.write(format!("{after}\n").as_bytes())?;
            }
        }
        let gone_or_packed =
            changes.iter().filter(|change| change.after.is_none() || packed(change));
        let gone_or_packed = gone_or_packed.chain(&new);
        // `packed-refs` is written before the files of removed refs are deleted. In the other
        // order, a crash in between would bring back an older value from `packed-refs`.
        self.write_packed_refs(
            &gone_or_packed.map(|change| (change.name.as_str(), change.after)).collect(),
        )?;
        let mut folders = BTreeSet::new();
        for (lock, change) in locks.into_iter().zip(&changes) {
            match (lock, change.after) {
                (Some(lock), Some(_)) if !packed(change) => drop(folders.insert(lock.commit()?)),
                (Some(lock), None) if !packed(change) => drop(folders.insert(lock.delete()?)),
                _ if self.has_own_file(&change.name)? => {
                    let path = self.git_dir.join(change.name.as_str());
                    durable::remove(&path).map_err(Error::io(&path))?;
                    folders.insert(durable::parent(&path).to_owned());
                }
                _ => {}
            }
        }
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            files::sync_dir(folder)?;
        }
        for change in changes.iter().filter(|change| change.after.is_none() || packed(change)) {
            self.remove_empty_folders(&change.name);
        }
        Ok(())
    }

    fn is_new(&self, change: &RefChange) -> bool {
        let found = fs::symlink_metadata(self.git_dir.join(change.name.as_str()));
        let is_free = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        is_free && change.before.is_none() && change.after.is_some()
    }

    fn write_packed_refs(&self, changes: &BTreeMap<&str, Option<ObjectId>>) -> Result<()> {
        let path = self.git_dir.join("packed-refs");
        let is_gone = |line: &[u8]| {
            let name = line.get(41..).and_then(|name| std::str::from_utf8(name).ok());
            name.is_some_and(|name| changes.contains_key(name))
        };
        let has_any = |text: &[u8]| text.split(|byte| *byte == b'\n').any(is_gone);
        if changes.values().all(Option::is_none)
            && !has_any(&files::read(&path)?.unwrap_or_default())
        {
            return Ok(());
        }
        // The lock file of `packed-refs` does not name its process. After a crash, only the holder
        // file shows that the lock is abandoned.
        self.sync_holder()?;
        let mut lock = LockedFile::take(&path)?;
        // The file is read after it is locked, so that a change by git is not lost.
        lock.write(&packed_text(&files::read(&path)?.unwrap_or_default(), changes))?;
        let folder = lock.commit()?;
        files::sync_dir(&folder)
    }

    fn remove_empty_folders(&self, name: &RefName) {
        let depth = name.as_str().split('/').count();
        let path = self.git_dir.join(name.as_str());
        // `refs/<kind>` is not removed. The loop ends at the first folder that is not empty.
        for folder in path.ancestors().skip(1).take(depth.saturating_sub(3)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// Points `HEAD` at a branch, so that plain `git log` and `git clone` work.
    pub(super) fn point_head_at(&self, name: &RefName) -> Result<()> {
        let head = self.git_dir.join("HEAD");
        durable::write(&head, format!("ref: {name}\n").as_bytes(), durable::Existing::Replace)
            .map_err(Error::io(head))
    }

    pub fn head(&self) -> Result<Option<RefName>> {
        let text = files::read(&self.git_dir.join("HEAD"))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Ok(text
            .strip_prefix("ref: ")
            // Trims only characters that git may write after the name. The name itself may end with
            // another kind of space.
            .map(|name| name.trim_end_matches([' ', '\t', '\r', '\n']))
            .and_then(|name| RefName::try_from(name.to_owned()).ok()))
    }

    pub(super) fn has_head(&self) -> Result<bool> {
        let head = self.head()?.map(|head| self.ref_target(&head)).transpose()?;
        Ok(head.flatten().is_some())
    }

    /// Moves refs to `packed-refs` if many have their own files, because each file slows down every
    /// command. As in git, `packed-refs` is written first; then the file of each ref is removed
    /// unless it has changed.
    pub(super) fn pack_refs(&self, _lock: &Lock) -> Result<()> {
        let mut names = loose_names(&self.git_dir, "refs/heads")?;
        names.extend(loose_names(&self.git_dir, "refs/tags")?);
        if names.len() <= MANY_REFS {
            return Ok(());
        }
        let reader = self.reader();
        let mut packed: BTreeMap<RefName, ObjectId> = BTreeMap::new();
        for name in names {
            self.refuse_links_to(&name)?;
            // Unreadable refs are left for `check`. A ref to a tag object is not packed, because
            // `packed-refs` would also have to list the target of the tag.
            if let (Loose::Id(id), Ok(name)) = (self.loose_ref(&name)?, RefName::try_from(name))
                && reader.kind(id)? == Some(Kind::Commit)
            {
                packed.insert(name, id);
            }
        }
        let changes = packed.iter().map(|(name, id)| (name.as_str(), Some(*id)));
        self.write_packed_refs(&changes.collect())?;
        self.remove_packed_files(&packed)
    }

    /// Removes the files of packed refs, except those that another program has locked or changed.
    fn remove_packed_files(&self, packed: &BTreeMap<RefName, ObjectId>) -> Result<()> {
        let mut folders = BTreeSet::new();
        for (name, id) in packed {
            let path = self.git_dir.join(name.as_str());
            let lock = match LockedFile::take_within(&path, Duration::ZERO) {
                Err(Error::RefLocked { .. }) => continue,
                lock => lock?,
            };
            if matches!(self.loose_ref(name.as_str())?, Loose::Id(now) if now == *id) {
                folders.insert(lock.delete()?);
            }
        }
        for folder in &folders {
            files::sync_dir(folder)?;
        }
        packed.keys().for_each(|name| self.remove_empty_folders(name));
        Ok(())
    }

    /// Removes locks that a killed process left on these refs. The caller holds the store's lock.
    pub(super) fn clear_ref_locks(&self, changes: &[RefChange]) -> Result<()> {
        // If a ref is removed or many refs are created, `packed-refs` may also be locked.
        let is_packed =
            |change: &RefChange| change.after.is_none() || self.must_be_packed(&change.name);
        let packed = changes.len() > MANY_REFS || changes.iter().any(is_packed);
        let packed = packed.then_some("packed-refs");
        let names = changes.iter().map(|change| change.name.as_str()).chain(packed);
        for name in names {
            let lock = lock_path(&self.git_dir.join(name));
            files::remove(&lock)?;
        }
        Ok(())
    }

    pub(super) fn clear_locks_of_packing(&self) -> Result<()> {
        durable::remove_own(&lock_path(&self.git_dir.join("packed-refs")));
        for root in ["refs/heads", "refs/tags"] {
            let names = files_below(&self.git_dir, root)?;
            for lock in names.iter().filter(|name| name.ends_with(LOCK_ENDING)) {
                let path = self.git_dir.join(lock);
                // Only empty locks are removed, because git writes to its lock files immediately.
                if fs::symlink_metadata(&path).is_ok_and(|found| found.len() == 0) {
                    durable::remove_own(&path);
                }
            }
        }
        Ok(())
    }

    pub fn detached_head(&self) -> Result<Option<ObjectId>> {
        let text = files::read(&self.git_dir.join("HEAD"))?.unwrap_or_default();
        Ok(ObjectId::from_hex(text.trim_ascii()).ok())
    }
}

/// A file of the repository that this process has locked by git's protocol: it has created
/// `<file>.lock`.
struct LockedFile {
    target: PathBuf,
    lock: Option<PathBuf>,
    file: File,
}

impl LockedFile {
    fn take(target: &Path) -> Result<Self> {
        Self::take_within(target, PATIENCE)
    }

    fn take_within(target: &Path, patience: Duration) -> Result<Self> {
        let lock = lock_path(target);
        let deadline = Instant::now() + patience;
        loop {
            // The folder is created on each attempt, because git removes the folders of refs that
            // it packs.
            let made = durable::create_dir_all(durable::parent(target));
            match made.and_then(|()| OpenOptions::new().write(true).create_new(true).open(&lock)) {
                Ok(file) => {
                    return Ok(Self { target: target.to_owned(), lock: Some(lock), file });
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) && Instant::now() < deadline =>
                {
                    if is_left_behind(&lock) {
                        durable::remove(&lock).map_err(Error::io(&lock))?;
                    } else {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Error::RefLocked { path: lock });
                }
                Err(error) => return Err(Error::Io { path: lock, source: error }),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        written.map_err(Error::io(&self.target))
    }

    /// Replaces the file by the lock file, which contains the new value. Returns the folder, which
    /// the caller must sync.
    fn commit(mut self) -> Result<PathBuf> {
        if let Some(lock) = &self.lock {
            durable::rename(lock, &self.target).map_err(Error::io(&self.target))?;
        }
        self.lock = None;
        Ok(durable::parent(&self.target).to_owned())
    }

    /// Removes the file. Returns the folder, which the caller must sync.
    fn delete(self) -> Result<PathBuf> {
        files::remove(&self.target)?;
        Ok(durable::parent(&self.target).to_owned())
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            durable::remove_own(lock);
        }
    }
}

fn lock_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(LOCK_ENDING);
    name.into()
}

fn is_left_behind(lock: &Path) -> bool {
    let written = fs::metadata(lock).and_then(|found| found.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LEFT_BEHIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> RefName {
        RefName::try_from(format!("refs/heads/chats/Mira/{number}")).unwrap()
    }

    /// Creates a store with branches that point to one commit, each with its own file.
    fn store(folder: &std::path::Path, branches: usize) -> (Store, ObjectId) {
        let store = Store::create(&folder.join("store")).unwrap();
        let mut pack = store.pack_writer();
        let tree = pack.add(Kind::Tree, b"").unwrap();
        let text = format!("tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx");
        let id = pack.add(Kind::Commit, text.as_bytes()).unwrap();
        pack.finish().unwrap();
        for number in 0..branches {
            let path = store.git_dir.join(name(number).as_str());
            fs::create_dir_all(durable::parent(&path)).unwrap();
            fs::write(path, format!("{id}\n")).unwrap();
        }
        (store.refreshed(), id)
    }

    fn lock(store: &Store) -> Lock {
        store.lock(&[], "2026-01-01T00:00:00Z", Duration::ZERO, &|_| None).unwrap()
    }

    #[test]
    fn refs_are_packed_only_above_the_limit() {
        for (branches, is_packed) in [(MANY_REFS, false), (MANY_REFS + 1, true)] {
            let folder = tempfile::tempdir().unwrap();
            let (store, id) = store(folder.path(), branches);
            store.pack_refs(&lock(&store)).unwrap();
            assert_eq!(!store.git_dir.join(name(0).as_str()).exists(), is_packed);
            assert_eq!(!store.git_dir.join("refs/heads/chats").exists(), is_packed);
            assert_eq!(store.refs("refs/heads/").unwrap().refs.len(), branches);
            assert_eq!(store.ref_target(&name(7)).unwrap(), Some(id));
        }
    }

    #[test]
    fn many_new_refs_are_written_directly_to_packed_refs() {
        // Plain names, which have their own files on every system.
        let plain = |n: usize| RefName::try_from(format!("refs/heads/chats/mira/{n}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(folder.path(), 0);
        let write = |n: usize, text: &str| {
            let path = store.git_dir.join(plain(n).as_str());
            fs::create_dir_all(durable::parent(&path)).unwrap();
            fs::write(path, text).unwrap();
        };
        write(0, &format!("{id}\n"));
        // The first ref exists and moves; the file of the second is damaged.
        write(1, "torn");
        let change = |n: usize| {
            let before = (n == 0).then_some(id);
            RefChange { name: plain(n), before, after: Some(id) }
        };
        let _lock = lock(&store);
        let changes: Vec<_> = (0..MANY_REFS + 1).map(change).collect();
        store.move_refs(&changes).unwrap();
        let has_file = |n: usize| store.git_dir.join(plain(n).as_str()).exists();
        assert_eq!([0, 1, 2, MANY_REFS].map(has_file), [true, true, false, false]);
        assert!((0..=MANY_REFS).all(|n| store.ref_target(&plain(n)).unwrap() == Some(id)));
        assert!(store.refs("refs/heads/").unwrap().broken.is_empty());
        // One of these refs already exists. This is detected, and no ref moves.
        let late: Vec<_> = (MANY_REFS..3 * MANY_REFS).map(change).collect();
        assert!(matches!(store.move_refs(&late), Err(Error::RefMoved { .. })));
        assert_eq!(store.refs("refs/heads/").unwrap().refs.len(), MANY_REFS + 1);
    }

    #[test]
    fn pack_refs_leaves_damaged_dangling_or_locked_refs_in_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(folder.path(), MANY_REFS + 5);
        let write = |number: usize, text: &str| {
            fs::write(store.git_dir.join(name(number).as_str()), text).unwrap();
        };
        write(1, "torn");
        write(2, &format!("{}\n", "1".repeat(40)));
        fs::write(store.git_dir.join("refs/heads/chats/Mira/3.lock"), "").unwrap();
        store.pack_refs(&lock(&store)).unwrap();
        let is_there = |number| store.git_dir.join(name(number).as_str()).exists();
        assert_eq!([0, 1, 2, 3, 4].map(is_there), [false, true, true, true, false]);
        assert_eq!(store.ref_target(&name(3)).unwrap(), Some(id));
        assert_eq!(store.refs("refs/heads/").unwrap().broken.len(), 1);
    }

    #[test]
    fn ref_lock_of_a_killed_process_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store(folder.path(), 2);
        let left = store.git_dir.join("refs/heads/chats/Mira/1.lock");
        fs::write(&left, "").unwrap();
        drop(lock(&store));
        assert!(left.exists(), "nobody was killed: it is git's");
        fs::write(store.private_dir().join("lock.json"), "{}").unwrap();
        drop(lock(&store));
        assert!(!left.exists());
    }
}
