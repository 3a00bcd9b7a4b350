//! Fuzz targets for the operation log and the configuration. Each target panics if its invariant
//! does not hold. `src/fuzzing` lists the targets.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::DateTime;
use tempfile::TempDir;

use super::Workspace;
use super::configuration::{self, Configuration};
use crate::fuzz_equipment::{Contents, copy_folder, fixture};
use crate::settings::Key;
use crate::st::{self, LibraryPath};
use crate::store::Store;
use crate::store::fuzzing::sealed_log;

/// The fixture files that are copied into the library.
const FILES: &[&str] = &[
    "chats/Mira Voss/Mira Voss - 2026-11-15@00h00m45s139ms.jsonl",
    "chats/Ærin 雪 🦊/Snow shrine 雪.jsonl",
    "group chats/Ferry checkpoint.jsonl",
    "groups/1794700910763.json",
    "settings.json",
    "worlds/Snow Shrine.json",
];

/// A folder with a library, its store, and a file outside the library, which nothing may change.
pub(crate) struct Scene {
    folder: TempDir,
    /// The content of the folder before any input.
    contents: Contents,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let library = folder.path().join("library");
        for file in FILES {
            let to = library.join(file);
            fs::create_dir_all(to.parent().expect("a file is in a folder")).expect("made");
            fs::copy(fixture("1.19.0/default-user").join(file), to).expect("copied");
        }
        for empty in ["characters", "User Avatars", "user/files"] {
            fs::create_dir_all(library.join(empty)).expect("a folder can be made");
        }
        copy_folder(&fixture("store-1"), &library.join(".stvc"));
        fs::write(folder.path().join("elsewhere.txt"), "not ours").expect("written");
        let scene = Self { contents: Contents::of(folder.path()), folder };
        // The first command creates files for any input. Run a command now, so that these files do
        // not count as changes.
        let store = scene.workspace().open_store().expect("the store can be opened");
        drop(scene.workspace().hold(&store).expect("the store can be locked"));
        let contents = Contents::of(scene.folder.path());
        Self { contents, ..scene }
    }

    pub(crate) fn library(&self) -> PathBuf {
        self.folder.path().join("library")
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace {
            now: DateTime::parse_from_rfc3339("2026-11-18T12:00:00+01:00").expect("a time"),
            patience: Duration::ZERO,
            ..Workspace::at(self.library(), "fuzz")
        }
    }

    /// Restores the content that the folder had before any input.
    pub(crate) fn put_back(&self) {
        self.contents.put_back(self.folder.path());
    }

    /// Returns whether a path belongs to a cache, which can be rebuilt at any time.
    pub(crate) fn is_cache(path: &Path) -> bool {
        ["cache", "search"]
            .iter()
            .any(|name| path.starts_with(Path::new("library/.stvc/stvc").join(name)))
    }

    /// Returns the present content of the folder.
    pub(crate) fn now(&self) -> Contents {
        Contents::of(self.folder.path())
    }

    /// Returns the changed paths, relative to the folder that contains the library.
    pub(crate) fn changed(&self) -> Vec<PathBuf> {
        self.contents.differing(&self.now()).into_iter().map(Path::to_owned).collect()
    }
}

thread_local! {
    static SCENE: OnceCell<Scene> = const { OnceCell::new() };
    static STORE: OnceCell<(TempDir, Store)> = const { OnceCell::new() };
}

/// Checks recovery with any operation log: the store can be locked, only files that SillyTavern may
/// have in the library are written, and a second recovery changes nothing.
///
/// The input is a log. Each line without a checksum gets the correct checksum.
pub(crate) fn operation_log(data: &[u8]) {
    SCENE.with(|scene| {
        let scene = scene.get_or_init(Scene::new);
        scene.put_back();
        let log = scene.library().join(".stvc/stvc/operations.jsonl");
        fs::write(log, sealed_log(data)).expect("the log can be written");
        let store = scene.workspace().open_store().expect("the store can be opened");
        let recover = |store: &Store| {
            let (store, held) = scene.workspace().hold(store).expect("the store can be locked");
            drop(held);
            store
        };
        let store = recover(&store);
        for path in scene.changed() {
            let Ok(inside) = path.strip_prefix("library") else {
                panic!("{} is not in the library", path.display());
            };
            if inside.starts_with(".stvc") || scene.library().join(inside).is_dir() {
                continue;
            }
            let parts: Vec<_> = inside.iter().map(|part| part.to_str().expect("text")).collect();
            let name = LibraryPath::parse(&parts.join("/")).expect("it is a path of the library");
            st::must_be_a_place(&name).expect("a file is written only where SillyTavern has such");
        }
        let recovered = scene.now();
        let store = recover(&store);
        let again = scene.now();
        assert!(recovered == again, "recovered twice: {:?}", recovered.differing(&again));
        let (operations, _) = store.operations().expect("the log can be read");
        assert!(operations.iter().all(|operation| operation.number > 0));
        store.missing_refs().expect("the log can be read");
    });
}

/// Checks that keys can be set and removed in any valid file without changing other keys or
/// comments, and that a refused value does not change the file. The input is the configuration
/// file.
pub(crate) fn config(data: &[u8]) {
    const VALUES: [(&str, &str); 9] = [
        ("backup.schedule", "12h"),
        ("backup.destination", "/mnt/\"nas\" # 1"),
        ("color", "never"),
        ("attachments", "12"),
        ("include.settings", "true"),
        ("retention.keep-last", "3"),
        ("retention.keep-within", "30d"),
        ("extension.write", "false"),
        ("device", "\u{7f}\n"),
    ];
    STORE.with(|made| {
        let (_, store) = made.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let store = Store::create(&folder.path().join("store")).expect("a store can be made");
            (folder, store)
        });
        let path = store.private_dir().join("config.toml");
        let read = || fs::read(&path).expect("the file can be read");
        fs::write(&path, data).expect("the file can be written");
        let before = Configuration::of(store).and_then(|_| configuration::list(store));
        assert_eq!(configuration::finding(store).is_some(), before.is_err());
        for (key, value) in VALUES {
            fs::write(&path, data).expect("the file can be written");
            let set = configuration::set(store, key, Some(value));
            let Ok(before) = &before else {
                // An invalid file stays unchanged, unless the new value makes the file valid.
                assert!(set.is_ok() || read() == data, "a refused value changed the file");
                continue;
            };
            set.expect("a valid value of a valid file can be set");
            let others = |list: &[(Key, Option<String>)]| -> Vec<_> {
                let others = list.iter().filter(|(other, _)| other.name != key);
                others.map(|(other, value)| (other.name.clone(), value.clone())).collect()
            };
            let after = configuration::list(store).expect("the file can be understood");
            assert_eq!(others(&after), others(before));
            let found = after.iter().find(|(other, _)| other.name == key);
            assert_eq!(found.and_then(|(_, value)| value.as_deref()), Some(value));
            must_have_comments(data, &read());
            configuration::set(store, key, None).expect("a key can be removed");
            let without = configuration::list(store).expect("the file can be understood");
            assert_eq!(others(&without), others(before));
            let is_unset =
                |(other, value): &(Key, Option<String>)| other.name == key && value.is_none();
            assert!(without.iter().any(is_unset));
        }
        assert!(configuration::set(store, "colour", Some("never")).is_err());
    });
}

/// Panics if a comment line of `before` is missing in `after`.
fn must_have_comments(before: &[u8], after: &[u8]) {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    // In a multi-line string, a line that begins with `#` is not a comment.
    if before.contains("\"\"\"") || before.contains("'''") {
        return;
    }
    for line in before.lines().map(str::trim).filter(|line| line.starts_with('#')) {
        assert!(after.lines().any(|other| other.trim() == line), "the comment {line:?} is gone");
    }
}
