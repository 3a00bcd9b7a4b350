//! A folder, also one that a synchroniser copies.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, SystemTime};

use stvc::storages::{Credentials, Error};

use crate::contract::{Many, PATH, assert_contract, names};
use crate::{open, require};

#[test]
fn folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(PATH);
    let storage = open(path.to_str().unwrap(), &Credentials::default());
    assert_contract(&*storage, Many::Write);
}

#[test]
fn files_of_synchronisers_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(folder.path().to_str().unwrap(), &Credentials::default());
    storage.write("packs/a", b"1").unwrap();
    for name in [
        ".stfolder",
        ".stversions",
        ".syncthing.a.tmp",
        "~syncthing~a.tmp",
        "a.sync-conflict-20261119-101010-ABCDEFG",
        "a (conflicted copy 2026-11-19)",
        "a (1)",
        "a.partial",
        ".a.icloud",
        ".~lock.a#",
        "a的副本",
    ] {
        fs::write(folder.path().join("packs").join(name), "x").unwrap();
    }
    assert_eq!(names(&*storage, ""), [("packs/a".to_owned(), 1)]);
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    symlink(&outside, root.join("packs")).unwrap();
    symlink(outside.join("secret"), root.join("a")).unwrap();
    let storage = open(root.to_str().unwrap(), &Credentials::default());
    assert_eq!(names(&*storage, ""), []);
    assert!(storage.list("packs/").is_err());
    assert!(storage.read("packs/secret", 100).is_err());
    assert!(storage.read("a", 100).unwrap_err().is_not_found());
    assert!(storage.write("packs/new", b"x").is_err());
    assert!(storage.delete("packs/secret").is_err());
    // A link with the name of an object is replaced.
    storage.write("a", b"mine").unwrap();
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
    assert_eq!(storage.read("a", 100).unwrap(), b"mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // The folder of the address itself may be a link.
    symlink(&root, folder.path().join("link")).unwrap();
    let storage = open(folder.path().join("link").to_str().unwrap(), &Credentials::default());
    assert_eq!(storage.read("a", 100).unwrap(), b"mine");
}

#[test]
fn pipes_and_folders_are_not_read_as_objects() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    fs::create_dir(folder.path().join("dir")).unwrap();
    let storage = open(folder.path().to_str().unwrap(), &Credentials::default());
    assert_eq!(names(&*storage, ""), []);
    for name in ["pipe", "dir"] {
        assert!(storage.read(name, 9).unwrap_err().is_not_found(), "{name}");
    }
    // A file in the place of a folder.
    storage.write("packs", b"x").unwrap();
    assert!(storage.write("packs/a", b"x").is_err());
}

#[test]
fn abandoned_temporary_files_are_removed_after_days() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(folder.path().to_str().unwrap(), &Credentials::default());
    storage.write("packs/a", b"1").unwrap();
    let packs = folder.path().join("packs");
    let days = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    for (name, age) in [(".stvc-1-1.tmp", 3), (".stvc-1-2.tmp", 1), (".mine-1.tmp", 9)] {
        let file = fs::File::create(packs.join(name)).unwrap();
        file.set_modified(days(age)).unwrap();
    }
    assert_eq!(names(&*storage, ""), [("packs/a".to_owned(), 1)]);
    let left = |name: &str| packs.join(name).exists();
    assert!(!left(".stvc-1-1.tmp") && left(".stvc-1-2.tmp") && left(".mine-1.tmp"));
}

/// Needs root for a file system of its own.
#[test]
fn full_disk_is_reported_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(folder.path())
        .output()
        .map_err(|error| error.to_string())
        .and_then(|output| {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(why) }
        });
    let Some(()) = require(mounted) else { return };
    let storage = open(folder.path().to_str().unwrap(), &Credentials::default());
    storage.write("packs/a", b"1").unwrap();
    let error = storage.write("packs/b", &vec![7; 1 << 20]).unwrap_err();
    let listed = names(&*storage, "");
    let files = fs::read_dir(folder.path().join("packs")).unwrap().count();
    let _ = Command::new("umount").arg(folder.path()).status();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert_eq!(listed, [("packs/a".to_owned(), 1)]);
    assert_eq!(files, 1);
}
