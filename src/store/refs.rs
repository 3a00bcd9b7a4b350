//! Refs: branches and tags. Git's library renames a ref into place but does not sync it, nor
//! `packed-refs` when it writes that anew, so the moves are made here, by git's own protocol:
//! `<ref>.lock` is created, written, synced, renamed; then its folder is synced.

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

/// How long to wait for another program (`git gc`, say) to let go of a ref.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most refs with files of their own, which are faster to write.
const MANY_REFS: usize = 32;
/// An older lock was left by a power cut: nobody needs a minute for 41 bytes.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

impl Store {
    /// Moves refs. Each must still be where its change says it was. The caller holds the store's
    /// lock and has logged the operation; nothing here can lose an object.
    ///
    /// All are locked first, then compared, then written and synced, and only then is the first one
    /// renamed: a git that moves one of them meanwhile is seen, and a full disk stops the whole
    /// set. Those that must not have a file of their own ([`ref_names`](super::ref_collisions)) go
    /// to `packed-refs`; what git has put into a file for one of them goes afterwards, so a crash
    /// between leaves the old value. There go also many new ones, all at once: to make a lock and a
    /// file for each, only to pack them, would take longer than all else that a first snapshot does
    /// with them.
    pub(super) fn move_refs(&self, changes: &[RefChange]) -> Result<()> {
        let (new, changes): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| changes.len() > MANY_REFS && self.is_new(change));
        let packed = |change: &RefChange| self.must_be_packed(&change.name);
        let mut locks = Vec::with_capacity(changes.len());
        let mut locked = HashSet::new();
        for change in &changes {
            // Two names that are one to the file system have one lock.
            let is_first = !packed(change) || locked.insert(folded(change.name.as_str()));
            let target = self.git_dir.join(change.name.as_str());
            if change.name.is_kept() {
                // Only stvc writes there, and the caller has its lock: whoever locked it is dead.
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
        // Were the file removed first, a crash would bring an older value back.
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
        // Git's own lock on it says nothing of whose it is.
        self.sync_holder()?;
        let mut lock = LockedFile::take(&path)?;
        // Read only now that nobody else writes it.
        lock.write(&packed_text(&files::read(&path)?.unwrap_or_default(), changes))?;
        let folder = lock.commit()?;
        files::sync_dir(&folder)
    }

    fn remove_empty_folders(&self, name: &RefName) {
        let depth = name.as_str().split('/').count();
        let path = self.git_dir.join(name.as_str());
        // `refs/<kind>` stays. One that is not empty cannot be removed.
        for folder in path.ancestors().skip(1).take(depth.saturating_sub(3)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// Points `HEAD` at a branch, for plain `git log` and `git clone`.
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
            // Only what git writes after a name, which may end in another kind of space.
            .map(|name| name.trim_end_matches([' ', '\t', '\r', '\n']))
            .and_then(|name| RefName::try_from(name.to_owned()).ok()))
    }

    pub(super) fn has_head(&self) -> Result<bool> {
        let head = self.head()?.map(|head| self.ref_target(&head)).transpose()?;
        Ok(head.flatten().is_some())
    }

    /// Packs refs when many have files of their own: each file costs every command time. As git does:
    /// first `packed-refs` is written, then each file is removed, if it has not changed.
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
            // An unreadable ref is left for `check`. A tag object would need its target beside it.
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

    /// Removes the files of packed refs, unless another program holds or has moved them.
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

    /// Removes locks that a killed process left on these refs; the caller holds the store's lock.
    pub(super) fn clear_ref_locks(&self, changes: &[RefChange]) -> Result<()> {
        // Where a ref goes, or many come, `packed-refs` may have been written anew, too.
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
                // Git writes into its own at once.
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

/// A file of git's that is locked by git's own protocol: `<file>.lock` is ours.
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
            // Again each time: git removes folders of refs that it packed.
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

    /// Gives the file its new value; the folder to be synced.
    fn commit(mut self) -> Result<PathBuf> {
        if let Some(lock) = &self.lock {
            durable::rename(lock, &self.target).map_err(Error::io(&self.target))?;
        }
        self.lock = None;
        Ok(durable::parent(&self.target).to_owned())
    }

    /// Removes the file; the folder to be synced.
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

    /// A store with branches that lead to commits, and their files.
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
    fn many_refs_are_packed_and_few_are_not() {
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
    fn many_new_refs_are_packed_at_once() {
        // Such as have files of their own on every system.
        let plain = |n: usize| RefName::try_from(format!("refs/heads/chats/mira/{n}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(folder.path(), 0);
        let write = |n: usize, text: &str| {
            let path = store.git_dir.join(plain(n).as_str());
            fs::create_dir_all(durable::parent(&path)).unwrap();
            fs::write(path, text).unwrap();
        };
        write(0, &format!("{id}\n"));
        // One is there and moves, and one is damaged.
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
        // What came in between is seen, and then nothing moves.
        let late: Vec<_> = (MANY_REFS..3 * MANY_REFS).map(change).collect();
        assert!(matches!(store.move_refs(&late), Err(Error::RefMoved { .. })));
        assert_eq!(store.refs("refs/heads/").unwrap().refs.len(), MANY_REFS + 1);
    }

    #[test]
    fn what_is_no_commit_or_held_by_git_keeps_its_file() {
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
    fn a_lock_that_was_left_by_a_kill_hinders_nobody() {
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
