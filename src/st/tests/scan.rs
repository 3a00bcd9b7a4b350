use super::put;
use crate::st::{Error, Library};
use std::fs;

#[test]
fn scan_lists_chats_groups_and_unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for file in [
        "chats/B/2.jsonl",
        "chats/B/1.jsonl",
        "chats/B/.stvc-mine.jsonl",
        "chats/A 猫/x.y.jsonl",
        "group chats/g.jsonl",
        "group chats/Why.jsonl",
    ] {
        put(root, file, b"{}");
    }
    for other in [
        "chats/stray.jsonl",
        "chats/B/x.jsonl.123",
        "chats/B/.stvc-1-0.jsonl",
        "chats/B/old.json",
        "worlds/L.json",
        "worlds/x.txt",
    ] {
        put(root, other, b"{}");
    }
    fs::create_dir(root.join("chats/B/folder.jsonl")).unwrap();
    put(root, "groups/1.json", br#"{"chats":["g",1,"Why?"],"chat_id":"open"}"#);
    put(root, "groups/2.json", br#"{"chats":["g","open"]}"#);
    put(root, "groups/3.json", b"{");
    let library = Library::open(root, None).unwrap();
    let scan = library.scan().unwrap();
    let names: Vec<_> = scan.chats.iter().map(|name| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "chats/A 猫/x.y",
            "chats/B/.stvc-mine",
            "chats/B/1",
            "chats/B/2",
            "group chats/Why",
            "group chats/g"
        ]
    );
    let group = |chat| scan.groups.group_of(chat).map(|path| path.as_str());
    assert_eq!(group("g"), Some("groups/1.json"));
    assert_eq!(group("Why"), Some("groups/1.json"));
    assert_eq!(group("open"), Some("groups/2.json"));
    assert_eq!(group("none"), None);
    // A folder with the name of a chat file must not count as a deleted chat. A damaged group file
    // can be stored, but may have listed any chat.
    let unreadable: Vec<_> = scan.unreadable.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(unreadable, ["chats/B/folder.jsonl"]);
    assert!(!scan.groups.are_complete());
    assert_eq!(library.lorebooks().unwrap(), ["L"]);
}

#[test]
fn missing_folders_are_empty_and_missing_library_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "u/settings.json", b"{}");
    put(dir.path(), "u/worlds/x.json", b"{}");
    let library = Library::open(&dir.path().join("u"), None).unwrap();
    let scan = library.scan().unwrap();
    assert!(scan.chats.is_empty() && scan.unreadable.is_empty());
    fs::remove_dir_all(dir.path().join("u")).unwrap();
    assert!(matches!(library.scan(), Err(Error::Io { .. })));
}

#[cfg(target_os = "linux")]
#[test]
fn files_with_invalid_names_are_reported_and_links_are_followed() {
    use std::ffi::OsStr;
    use std::os::unix::{ffi::OsStrExt, fs::symlink};
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    put(elsewhere.path(), "F/a.jsonl", b"{}");
    put(dir.path(), "chats/A/ok.jsonl", b"{}");
    put(dir.path(), "chats/A/back\\slash.jsonl", b"{}");
    put(dir.path(), "chats/A/.jsonl", b"{}");
    let chats = dir.path().join("chats");
    fs::write(chats.join("A").join(OsStr::from_bytes(b"\xff.jsonl")), b"{}").unwrap();
    fs::create_dir(chats.join(OsStr::from_bytes(b"\xff"))).unwrap();
    symlink("nowhere", chats.join("A/broken.jsonl")).unwrap();
    symlink(elsewhere.path().join("F/a.jsonl"), chats.join("A/link.jsonl")).unwrap();
    symlink(elsewhere.path().join("F"), chats.join("F")).unwrap();
    let scan = Library::open(dir.path(), None).unwrap().scan().unwrap();
    let names: Vec<_> = scan.chats.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["chats/A/link", "chats/A/ok", "chats/F/a"]);
    let mut text: Vec<_> = scan.unreadable.iter().map(|(subject, _)| subject.as_str()).collect();
    text.sort_unstable();
    assert_eq!(
        text,
        [
            "chats/A/.jsonl",
            "chats/A/back\\slash.jsonl",
            "chats/A/broken.jsonl",
            "chats/A/\u{fffd}.jsonl",
            "chats/\u{fffd}"
        ]
    );
}
