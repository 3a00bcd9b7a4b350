use super::put;
use crate::st::{Error, Fingerprint, LibraryPath, remove, write};
use std::fs;

fn path(text: &str) -> LibraryPath {
    LibraryPath::parse(text).unwrap()
}

#[test]
fn files_are_made_kept_and_replaced() {
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
    // No temporary file stays behind.
    assert_eq!(fs::read_dir(dir.path().join("chats/New")).unwrap().count(), 1);
}

#[test]
fn a_file_where_a_folder_must_be_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "chats", b"");
    assert!(matches!(
        write(dir.path(), &path("chats/A/c.jsonl"), b"", None),
        Err(Error::Io { .. })
    ));
    assert!(write(&dir.path().join("none"), &path("x"), b"", None).is_err());
}

#[test]
fn only_files_that_timelines_can_have_are_written_and_removed() {
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
fn links_do_not_lead_out() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), dir.path().join("chats")).unwrap();
    symlink(outside.path().join("none"), dir.path().join("worlds")).unwrap();
    let written = write(dir.path(), &path("chats/A/c.jsonl"), b"", Some(Fingerprint::of(b"")));
    assert!(matches!(written, Err(Error::LeadsOutside { .. })), "{written:?}");
    assert!(write(dir.path(), &path("worlds/w.json"), b"", Some(Fingerprint::of(b""))).is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);

    // A link within the library is as good as a folder; a link in the file's place is replaced, not followed.
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("groups")).unwrap();
    put(outside.path(), "f", b"kept");
    symlink(outside.path().join("f"), dir.path().join("real/g.json")).unwrap();
    write(dir.path(), &path("groups/g.json"), b"new", Some(Fingerprint::of(b"kept"))).unwrap();
    assert_eq!(fs::read(dir.path().join("real/g.json")).unwrap(), b"new");
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"kept");
}

/// A private chat stays private, and root who restores somebody's chat leaves it theirs.
#[cfg(unix)]
#[test]
fn mode_and_owner_of_what_is_replaced_stay() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "chats/A/c.jsonl", b"old");
    let file = dir.path().join("chats/A/c.jsonl");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // Only root can give files away; for others the rest is tried.
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
