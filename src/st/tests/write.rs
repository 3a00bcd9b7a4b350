use super::put;
use crate::st::{Error, Fingerprint, LibraryPath, read, remove, write};
use std::fs;

fn path(text: &str) -> LibraryPath {
    LibraryPath::parse(text).unwrap()
}

#[test]
fn write_creates_files_and_replaces_only_the_expected_content() {
    let dir = tempfile::tempdir().unwrap();
    let chat = path("chats/New/猫.jsonl");
    write(dir.path(), &chat, b"a\0\xff", None).unwrap();
    assert_eq!(fs::read(chat.under(dir.path())).unwrap(), b"a\0\xff");
    let kept = write(dir.path(), &chat, b"b", None);
    assert!(matches!(kept, Err(Error::AlreadyThere { path }) if path == chat.under(dir.path())));
    assert_eq!(fs::read(chat.under(dir.path())).unwrap(), b"a\0\xff");
    write(dir.path(), &chat, b"b", Some(Fingerprint::of(b"a\0\xff"))).unwrap();
    let meanwhile = write(dir.path(), &chat, b"c", Some(Fingerprint::of(b"a\0\xff")));
    assert!(matches!(meanwhile, Err(Error::SavedMeanwhile { .. })), "{meanwhile:?}");
    assert_eq!(fs::read(chat.under(dir.path())).unwrap(), b"b");
    // No temporary file is left.
    assert_eq!(fs::read_dir(dir.path().join("chats/New")).unwrap().count(), 1);
}

#[test]
fn write_fails_if_a_file_is_in_the_place_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "chats", b"");
    assert!(matches!(
        write(dir.path(), &path("chats/A/c.jsonl"), b"", None),
        Err(Error::Io { .. })
    ));
    assert!(write(&dir.path().join("none"), &path("x"), b"", None).is_err());
}

#[test]
fn write_and_remove_accept_only_files_that_a_timeline_can_have() {
    let dir = tempfile::tempdir().unwrap();
    for place in [
        "chats/A/c.jsonl",
        "group chats/c.jsonl",
        "groups/g.json",
        "worlds/w.json",
        "worlds/without ending",
        "characters/c.png",
        "User Avatars/any file",
        "settings.json",
        "user/images/A/b/1.png",
        "user/files/1.txt",
    ] {
        write(dir.path(), &path(place), b"", None).unwrap();
        remove(dir.path(), &path(place), Fingerprint::of(b"")).unwrap();
    }
    for other in [
        "secrets.json",
        "config.yaml",
        "chats/c.jsonl",
        "chats/A/c.json",
        "chats/A/b/c.jsonl",
        "worlds/a/w.json",
        "characters/c.webp",
        "user/workflows/w.json",
        "extensions/e/index.js",
        ".stvc/HEAD",
    ] {
        let written = write(dir.path(), &path(other), b"", None);
        assert!(matches!(written, Err(Error::BadName { .. })), "{other}: {written:?}");
        put(dir.path(), other, b"");
        let removed = remove(dir.path(), &path(other), Fingerprint::of(b""));
        assert!(matches!(removed, Err(Error::BadName { .. })), "{other}: {removed:?}");
    }
}

#[cfg(unix)]
#[test]
fn write_follows_links_owned_by_the_user() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), dir.path().join("chats")).unwrap();
    write(dir.path(), &path("chats/A/c.jsonl"), b"new", None).unwrap();
    assert_eq!(fs::read(outside.path().join("A/c.jsonl")).unwrap(), b"new");
    assert_eq!(read(dir.path(), &path("chats/A/c.jsonl")).unwrap(), b"new");
    // Like SillyTavern, `write` follows a link in the place of the file.
    fs::create_dir(dir.path().join("groups")).unwrap();
    put(outside.path(), "f", b"kept");
    symlink("f", outside.path().join("middle")).unwrap();
    symlink(outside.path().join("middle"), dir.path().join("groups/g.json")).unwrap();
    let group = path("groups/g.json");
    assert_eq!(read(dir.path(), &group).unwrap(), b"kept");
    write(dir.path(), &group, b"new", Some(Fingerprint::of(b"kept"))).unwrap();
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"new");
    assert!(dir.path().join("groups/g.json").is_symlink());
    // `remove` removes the link and not its target.
    remove(dir.path(), &group, Fingerprint::of(b"new")).unwrap();
    assert!(!dir.path().join("groups/g.json").is_symlink());
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"new");
}

#[cfg(unix)]
#[test]
fn write_refuses_dangling_and_circular_links() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("groups")).unwrap();
    symlink(dir.path().join("none"), dir.path().join("worlds")).unwrap();
    symlink("nowhere", dir.path().join("groups/c.json")).unwrap();
    symlink("b.json", dir.path().join("groups/a.json")).unwrap();
    symlink("a.json", dir.path().join("groups/b.json")).unwrap();
    for name in ["worlds/w.json", "groups/a.json", "groups/c.json"] {
        for former in [None, Some(Fingerprint::of(b""))] {
            let written = write(dir.path(), &path(name), b"new", former).unwrap_err();
            assert!(
                written.to_string().ends_with("a link whose target does not exist"),
                "{written}"
            );
        }
        assert!(read(dir.path(), &path(name)).is_err());
    }
    assert!(!dir.path().join("none").exists() && !dir.path().join("groups/nowhere").exists());
}

/// Not even a link created by the user may make `secrets.json` readable as a lorebook.
#[cfg(unix)]
#[test]
fn read_and_write_refuse_links_to_another_part_of_the_library() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data/user");
    put(&root, "secrets.json", b"key");
    put(&root, "chats/A/c.jsonl", b"{}");
    put(&root, "worlds/w.json", b"{}");
    for (link, target) in [
        ("worlds/x.json", "../secrets.json"),
        ("User Avatars", "."),
        ("characters", ".."),
        ("groups", "backups"),
        ("chats/C", "../worlds"),
        ("chats/B", "A"),
    ] {
        fs::create_dir_all(root.join("backups")).unwrap();
        symlink(target, root.join(link)).unwrap();
    }
    for name in [
        "worlds/x.json",
        "User Avatars/secrets.json",
        "characters/x.png",
        "groups/g.json",
        "chats/C/x.jsonl",
    ] {
        for former in [None, Some(Fingerprint::of(b"key"))] {
            let error = write(&root, &path(name), b"new", former).unwrap_err();
            assert!(error.to_string().contains("another part of the library"), "{name}: {error}");
        }
        assert!(read(&root, &path(name)).is_err(), "{name}");
    }
    assert_eq!(fs::read(root.join("secrets.json")).unwrap(), b"key");
    // The folder of one character's chats may be a link to another character's folder.
    assert_eq!(read(&root, &path("chats/B/c.jsonl")).unwrap(), b"{}");
}

/// Another user with write access to the library must not be able to make stvc read or write files
/// that the other user cannot access.
#[cfg(unix)]
#[test]
fn read_and_write_refuse_links_owned_by_another_user() {
    use std::os::unix::fs::{lchown, symlink};
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    put(outside.path(), "c.jsonl", b"secret");
    symlink(outside.path(), dir.path().join("worlds")).unwrap();
    fs::create_dir_all(dir.path().join("chats/A")).unwrap();
    symlink(outside.path().join("c.jsonl"), dir.path().join("chats/A/c.jsonl")).unwrap();
    for link in ["worlds", "chats/A/c.jsonl"] {
        // Only root can change the owner of a link.
        if lchown(dir.path().join(link), Some(4711), Some(4711)).is_err() {
            return;
        }
    }
    for name in ["worlds/w.json", "chats/A/c.jsonl"] {
        let error = read(dir.path(), &path(name)).unwrap_err();
        assert!(error.to_string().contains("a link created by another user"), "{error}");
        for former in [None, Some(Fingerprint::of(b"secret"))] {
            let error = write(dir.path(), &path(name), b"new", former).unwrap_err();
            assert!(error.to_string().contains("a link created by another user"), "{error}");
        }
        assert!(remove(dir.path(), &path(name), Fingerprint::of(b"secret")).is_err());
    }
    assert_eq!(fs::read(outside.path().join("c.jsonl")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    let scan = crate::st::Library::open(dir.path(), None).unwrap().scan().unwrap();
    assert_eq!(scan.others, []);
    assert!(scan.unreadable[0].1.contains("a link created by another user"), "{scan:?}");
}

/// A private chat stays private, and a chat that root restores keeps its owner.
#[cfg(unix)]
#[test]
fn write_keeps_mode_and_owner_of_the_replaced_file() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "chats/A/c.jsonl", b"old");
    let file = dir.path().join("chats/A/c.jsonl");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // Only root can change the owner of a file; for other users the test checks only the mode.
    let is_root = chown(&file, Some(4711), Some(4712)).is_ok();
    let former = Some(Fingerprint::of(b"old"));
    write(dir.path(), &path("chats/A/c.jsonl"), b"new", former).unwrap();
    let found = fs::metadata(&file).unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
    if is_root {
        assert_eq!((found.uid(), found.gid()), (4711, 4712));
        chown(dir.path().join("chats"), Some(4711), Some(4712)).unwrap();
        write(dir.path(), &path("chats/B/d.jsonl"), b"new", None).unwrap();
        for made in ["chats/B", "chats/B/d.jsonl"] {
            let found = fs::metadata(dir.path().join(made)).unwrap();
            assert_eq!((found.uid(), found.gid()), (4711, 4712), "{made}");
        }
    }
}
