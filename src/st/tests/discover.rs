use super::put;
use crate::st::{Error, Library};
use std::fs;
use std::path::{Path, PathBuf};

/// Creates an install with these users, each with one chat.
fn install(users: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "server.js", b"");
    put(dir.path(), "data/_storage/x", b"");
    for user in users {
        put(dir.path(), &format!("data/{user}/settings.json"), b"{}");
        put(dir.path(), &format!("data/{user}/chats/X/a.jsonl"), b"{}");
    }
    dir
}

fn open(dir: &Path, user: Option<&str>) -> PathBuf {
    Library::open(dir, user).unwrap().root().to_path_buf()
}

fn find(dir: &Path, user: Option<&str>) -> PathBuf {
    Library::find(dir, user).unwrap().root().to_path_buf()
}

#[test]
fn user_folder_opens_as_a_library() {
    for kinds in [&["chats"][..], &["settings.json", "worlds"], &["settings.json", "group chats"]] {
        let dir = tempfile::tempdir().unwrap();
        for kind in kinds {
            match kind.strip_suffix(".json") {
                Some(_) => put(dir.path(), kind, b"{}"),
                None => fs::create_dir(dir.path().join(kind)).unwrap(),
            }
        }
        assert_eq!(open(dir.path(), None), dir.path(), "{kinds:?}");
    }
}

#[test]
fn library_is_found_from_install_and_data_folders() {
    for (users, chosen, expected) in [
        (&["default-user"][..], None, "default-user"),
        (&["alice"], None, "alice"),
        (&["alice", "default-user"], None, "default-user"),
        (&["alice", "bob"], Some("bob"), "bob"),
    ] {
        let dir = install(users);
        let data = dir.path().join("data");
        for start in [dir.path(), &data] {
            assert_eq!(open(start, chosen), data.join(expected));
            assert_eq!(find(start, chosen), data.join(expected));
        }
    }
}

#[test]
fn ambiguous_or_unknown_user_is_an_error() {
    let dir = install(&["bob", "alice"]);
    let data = dir.path().join("data");
    for tried in [Library::open(dir.path(), None), Library::find(&data, None)] {
        let Err(Error::SeveralUsers { path, users }) = tried else { panic!("{tried:?}") };
        assert_eq!((path, users), (data.clone(), vec!["alice".to_owned(), "bob".to_owned()]));
    }
    for tried in [Library::open(dir.path(), Some("eve")), Library::find(&data, Some("eve"))] {
        assert!(
            matches!(&tried, Err(Error::NoSuchUser { user, .. }) if user == "eve"),
            "{tried:?}"
        );
    }
    assert!(matches!(Library::open(&data.join("bob"), Some("eve")), Err(Error::NoSuchUser { .. })));
    assert_eq!(open(&data.join("bob"), Some("bob")), data.join("bob"));
}

#[test]
fn library_is_found_from_folders_inside_it() {
    let dir = install(&["alice", "bob"]);
    let bob = dir.path().join("data/bob");
    // A character may be called `chats`.
    put(&bob, "chats/chats/a.jsonl", b"{}");
    for inside in ["", "chats", "chats/X", "chats/chats", "chats/X/../X"] {
        assert_eq!(
            find(&bob.join(inside), None).canonicalize().unwrap(),
            bob.canonicalize().unwrap(),
            "{inside}"
        );
    }
    // From inside one user's folder, another user can be chosen.
    assert_eq!(find(&bob.join("chats/X"), Some("alice")), dir.path().join("data/alice"));
    let bare = tempfile::tempdir().unwrap();
    put(bare.path(), "chats/X/a.jsonl", b"{}");
    assert_eq!(find(&bare.path().join("chats/X"), None), bare.path());
}

#[test]
fn folders_without_sillytavern_data_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "project/chats/notes.txt", b"");
    put(dir.path(), "project/src/x", b"");
    put(dir.path(), "copy of a library/chats/X/a.jsonl", b"");
    assert!(matches!(
        Library::find(&dir.path().join("project/src"), None),
        Err(Error::NoLibraryFound { .. })
    ));
    assert!(matches!(
        Library::open(&dir.path().join("project/src"), None),
        Err(Error::NotALibrary { .. })
    ));
    assert!(matches!(
        Library::open(&dir.path().join("missing"), None),
        Err(Error::NoSuchFolder { .. })
    ));
    assert!(matches!(
        Library::open(&dir.path().join("project/src/x"), None),
        Err(Error::Io { .. })
    ));
}
