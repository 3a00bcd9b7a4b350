//! What is known of the folders of messages in timelines' newest snapshots (`stvc/folders/`): a file each, which is read only when its timeline changed. Where many
//! timelines are taken at once, most of them will not change again soon, and they share one.

use std::fs;
use std::path::PathBuf;

use crate::archive::{Blake3, Folders};
use crate::st::TimelineName;
use crate::store::Store;
use crate::{durable, regular};

/// More timelines than this share a file.
const MANY: usize = 16;
/// What that is called. The others are hexadecimal.
const SHARED: &str = "shared";

/// By what a timeline is known.
type Key = [u8; 16];

pub(crate) fn load(store: &Store, timeline: &TimelineName) -> Folders {
    let key = key(timeline);
    if let Ok(bytes) = regular::read(&own_file(store, key)) {
        return Folders::decode(&bytes);
    }
    let shared = regular::read(&folder(store).join(SHARED)).unwrap_or_default();
    records(&shared)
        .find(|(found, _)| *found == key)
        .map_or_else(Folders::default, |(_, bytes)| Folders::decode(bytes))
}

/// Know them next time. That it fails matters to nobody.
pub(crate) fn save(store: &Store, known: &[(TimelineName, Folders)]) {
    if known.is_empty() {
        return;
    }
    let _ = fs::create_dir_all(folder(store));
    if known.len() <= MANY {
        for (timeline, folders) in known {
            durable::replace_cache(&own_file(store, key(timeline)), &folders.encode());
        }
        return;
    }
    let mut shared = Vec::new();
    for (timeline, folders) in known {
        let (key, bytes) = (key(timeline), folders.encode());
        // What is older counts no more, and would be found first.
        durable::remove_own(&own_file(store, key));
        shared.extend_from_slice(&key);
        shared.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        shared.extend_from_slice(&bytes);
    }
    durable::replace_cache(&folder(store).join(SHARED), &shared);
}

/// Nothing shall be known any more.
pub(crate) fn forget(store: &Store) {
    let _ = fs::remove_dir_all(folder(store));
}

/// Whose is what, up to where the bytes end or make no sense.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = (Key, &[u8])> {
    std::iter::from_fn(move || {
        let (key, rest) = bytes.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (found, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some((*key, found))
    })
}

fn key(timeline: &TimelineName) -> Key {
    let hash = Blake3::of(timeline.as_str().as_bytes());
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn folder(store: &Store) -> PathBuf {
    store.private_dir().join("folders")
}

fn own_file(store: &Store, key: Key) -> PathBuf {
    let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    folder(store).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a timeline that has this folder.
    fn folders(text: &str) -> Folders {
        let tree = crate::store::ObjectId::from_hex("1".repeat(40).as_bytes()).unwrap();
        let record = [Blake3::of(text.as_bytes()).as_bytes(), tree.as_slice()].concat();
        let check = Blake3::of(&record);
        Folders::decode(&[&record[..], check.as_bytes()].concat())
    }

    #[test]
    fn the_newest_is_known_of_each_alone_or_together() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let name = |n: usize| TimelineName::solo("Mira", &n.to_string()).unwrap();
        let list = |numbers: std::ops::Range<usize>, text: &str| {
            numbers.map(|n| (name(n), folders(&format!("{text} {n}")))).collect::<Vec<_>>()
        };
        let is = |n: usize, text: &str| {
            assert_eq!(load(&store, &name(n)).encode(), folders(&format!("{text} {n}")).encode());
        };
        assert_eq!(load(&store, &name(0)).encode(), Folders::default().encode());
        save(&store, &list(0..2, "old"));
        is(1, "old");
        save(&store, &list(1..MANY + 2, "many"));
        (1..MANY + 2).for_each(|n| is(n, "many"));
        is(0, "old");
        save(&store, &list(3..4, "new"));
        is(3, "new");
        is(4, "many");
        // Torn: what is left of it is known.
        let path = super::folder(&store).join(SHARED);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        is(MANY, "many");
        assert_eq!(load(&store, &name(MANY + 1)).encode(), Folders::default().encode());
        forget(&store);
        assert_eq!(load(&store, &name(3)).encode(), Folders::default().encode());
    }
}
