//! Keeping the files of refs few. Every timeline has a branch, and to read a file for each would make every command slower with every chat, card and
//! lorebook; `packed-refs` tells all of them at once. As git does it: written there first, and then each file removed, if it still says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::files;
use super::ref_files::{Loose, loose_names};
use super::refs::{LockedFile, MANY_REFS};
use super::{Error, Kind, Lock, ObjectId, RefName, Result, Store};

impl Store {
    /// Pack branches and tags if many have a file of their own.
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
            // What cannot be read is left for `check` to see. A tag object would have to be written with what it leads to.
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

    /// Remove the files of refs that `packed-refs` tells. One that another program holds or has moved stays, and is what counts.
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
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::RefChange;
    use super::*;
    use crate::durable;

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
