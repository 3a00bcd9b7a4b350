use super::put;
use crate::st::{
    Captured, Disk, Error, FileBytes, Files, Library, LibraryPath, Result, Stamp, TimelineName,
    capture,
};
use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;

const CHAT: &[u8] = b"{\"chat_metadata\":{\"world_info\":\"Lore\"}}\n{\"mes\":\"hi\"}";

fn library() -> (tempfile::TempDir, Library) {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "chats/A/c.jsonl", CHAT);
    put(dir.path(), "worlds/Lore.json", b"{\"entries\":{}}");
    let library = Library::open(dir.path(), None).unwrap();
    (dir, library)
}

fn take(library: &Library, name: &str, files: &dyn Files) -> Result<Captured> {
    capture(library, &library.scan()?.groups, &TimelineName::parse(name)?, files)
}

/// The disk, with an event directly after a file with the name `after` was read.
struct Busy<F> {
    after: &'static str,
    reads: Cell<usize>,
    event: F,
}

impl<F: Fn(usize)> Files for Busy<F> {
    fn read(&self, root: &Path, path: &LibraryPath) -> io::Result<FileBytes> {
        let bytes = Disk.read(root, path);
        if path.file_name() == self.after {
            self.reads.set(self.reads.get() + 1);
            (self.event)(self.reads.get());
        }
        bytes
    }

    fn stamp(&self, root: &Path, path: &LibraryPath) -> io::Result<Stamp> {
        Disk.stamp(root, path)
    }
}

fn busy<F: Fn(usize)>(after: &'static str, event: F) -> Busy<F> {
    Busy { after, reads: Cell::new(0), event }
}

#[test]
fn chat_is_captured_with_its_lorebook() {
    let (_dir, library) = library();
    let captured = take(&library, "chats/A/c", &Disk).unwrap();
    assert_eq!(*captured.files.main.bytes, *CHAT);
    assert_eq!(captured.stamps.main.len, CHAT.len() as u64);
    assert!(captured.stamps.main.mtime_ns > 0);
    assert_eq!(captured.files.group, None);
    let book = captured.files.lorebook.unwrap();
    assert_eq!((book.name.as_str(), book.path.unwrap().as_str()), ("Lore", "worlds/Lore.json"));
    assert_eq!(*book.bytes.unwrap(), *b"{\"entries\":{}}");
}

#[test]
fn group_chat_is_captured_with_its_group() {
    let (dir, library) = library();
    put(dir.path(), "group chats/g.jsonl", b"{\"mes\":\"hi\"}");
    put(
        dir.path(),
        "groups/1.json",
        br#"{"chats":["g"],"past_metadata":{"g":{"world_info":"Lore"}}}"#,
    );
    let captured = take(&library, "group chats/g", &Disk).unwrap();
    assert_eq!(captured.files.group.unwrap().path.as_str(), "groups/1.json");
    assert!(captured.files.lorebook.unwrap().bytes.is_some());
}

#[test]
fn missing_lorebook_is_allowed_and_unreadable_one_is_an_error() {
    let (dir, library) = library();
    fs::remove_file(dir.path().join("worlds/Lore.json")).unwrap();
    let book = take(&library, "chats/A/c", &Disk).unwrap().files.lorebook.unwrap();
    assert!(book.path.is_some() && book.bytes.is_none());
    put(dir.path(), "chats/A/named.jsonl", b"{\"chat_metadata\":{\"world_info\":\"con\"}}");
    let book = take(&library, "chats/A/named", &Disk).unwrap().files.lorebook.unwrap();
    assert!(book.path.is_none() && book.bytes.is_none());
    fs::create_dir(dir.path().join("worlds/Lore.json")).unwrap();
    let error = take(&library, "chats/A/c", &Disk).unwrap_err();
    assert!(error.to_string().contains("Lore.json"), "{error}");
}

#[test]
fn missing_chat_is_an_error() {
    let (_dir, library) = library();
    let Err(Error::Io { path, source }) = take(&library, "chats/A/none", &Disk) else { panic!() };
    assert!(path.ends_with("none.jsonl"));
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
}

#[test]
fn files_saved_during_capture_are_read_again() {
    let new: &[u8] =
        b"{\"chat_metadata\":{\"world_info\":\"Lore\"}}\n{\"mes\":\"hi\"}\n{\"mes\":\"more\"}";
    for after in ["c.jsonl", "Lore.json"] {
        let (dir, library) = library();
        let files = busy(after, |reads| {
            if reads == 1 {
                put(dir.path(), "chats/A/c.jsonl", new);
                put(dir.path(), "worlds/Lore.json", b"{\"entries\":{\"0\":1}}");
            }
        });
        let captured = take(&library, "chats/A/c", &files).unwrap();
        assert_eq!(*captured.files.main.bytes, *new, "{after}");
        assert_eq!(*captured.files.lorebook.unwrap().bytes.unwrap(), *b"{\"entries\":{\"0\":1}}");
    }
}

#[test]
fn lorebook_created_or_deleted_during_capture_is_detected() {
    let (dir, library) = library();
    let book = dir.path().join("worlds/Lore.json");
    let files = busy("Lore.json", |reads| {
        if reads == 1 {
            fs::remove_file(&book).unwrap();
        }
    });
    assert!(take(&library, "chats/A/c", &files).unwrap().files.lorebook.unwrap().bytes.is_none());

    /// The disk, with a lorebook that appears only after the first look-up.
    struct Appears<'a>(&'a Path, Cell<usize>);
    impl Files for Appears<'_> {
        fn read(&self, root: &Path, path: &LibraryPath) -> io::Result<FileBytes> {
            Disk.read(root, path)
        }
        fn stamp(&self, root: &Path, path: &LibraryPath) -> io::Result<Stamp> {
            let stamp = Disk.stamp(root, path);
            if path.file_name() == "Lore.json" && self.1.replace(self.1.get() + 1) == 0 {
                fs::write(self.0, b"{}").unwrap();
            }
            stamp
        }
    }
    let captured = take(&library, "chats/A/c", &Appears(&book, Cell::new(0))).unwrap();
    assert_eq!(*captured.files.lorebook.unwrap().bytes.unwrap(), *b"{}");
}

#[test]
fn file_that_changes_during_every_read_is_an_error() {
    let (dir, library) = library();
    let files = busy("c.jsonl", |reads| {
        put(dir.path(), "chats/A/c.jsonl", &[CHAT, &b"\n{}".repeat(reads)].concat());
    });
    let Err(Error::ChangedWhileReading { path }) = take(&library, "chats/A/c", &files) else {
        panic!()
    };
    assert!(path.ends_with("c.jsonl"));
    assert_eq!(files.reads.get(), 5);
}
