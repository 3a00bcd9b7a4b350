//! Fuzz targets for snapshots and backups. Each target panics if its invariant does not hold.
//! `src/fuzzing` lists all targets.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::backup::{BackupError, Decoder, Header, Lengths, ObjectScope, judge, peek};
use super::part_names::entry_file;
use super::{
    Blake3, ContentId, Error, Kind as SnapshotKind, Manifest, Role, Snapshot, SnapshotId, State,
    Validator, Verdict, rebuild, write,
};
use crate::progress::NoProgress;
use crate::st::{self, TimelineName};
use crate::store::{Kind, ObjectId, PackWriter, Sequence, Store, Time, hash};

/// Maximum number of object bytes to read from one backup.
const MOST_BYTES: usize = 8 << 20;

fn no_tree() -> ObjectId {
    ObjectId::from([0; 20])
}

/// Checks that a decoded manifest is unchanged after encoding and decoding it again.
pub(crate) fn manifest(data: &[u8]) {
    let Ok(read) = Manifest::decode(no_tree(), data) else { return };
    let written = read.encode();
    let again = Manifest::decode(no_tree(), &written).expect("what was written can be read");
    assert_eq!(again, read);
    assert_eq!(again.encode(), written);
    let problems = read.problems();
    for file in &read.files {
        if let Ok(path) = file.library_path(&read.timeline) {
            assert_eq!(path.as_str(), file.path);
            assert!(st::must_be_a_place(&path).is_ok(), "{path} is a place in the library");
        } else {
            assert!(!problems.is_empty());
        }
    }
}

thread_local! {
    static STORE: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Calls `work` with an empty store. Each thread reuses one store, whose packs are removed before
/// the call.
fn with_store(work: impl FnOnce(&Store)) {
    STORE.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            Store::create(&folder.path().join("store")).expect("a store can be made");
            folder
        });
        let path = folder.path().join("store");
        remove_packs(&path);
        work(&Store::open(&path).expect("a store can be opened"));
    });
}

/// Removes all packs, including packs of an earlier input that caused a panic.
fn remove_packs(store: &Path) {
    for entry in fs::read_dir(store.join("objects").join("pack")).expect("a folder can be listed") {
        #[expect(clippy::disallowed_methods, reason = "nobody else has it open")]
        fs::remove_file(entry.expect("a folder can be listed").path()).expect("a file goes");
    }
}

/// File or folder of a tree that is to be written to a store.
enum Node<'d> {
    File { mode: &'d [u8], bytes: Vec<u8> },
    Folder(Vec<(&'d [u8], Node<'d>)>),
}

/// Parses a tree from text. For each file, the text has a line `=== MODE PATH`, followed by the
/// content of the file.
fn read_tree(data: &[u8]) -> Option<Vec<(&[u8], Node<'_>)>> {
    let mut root = Vec::new();
    let mut rest = data.strip_prefix(b"=== ")?;
    loop {
        let end = memchr::memmem::find(rest, b"\n=== ");
        let piece = &rest[..end.unwrap_or(rest.len())];
        let (head, bytes) = piece.split_at(memchr::memchr(b'\n', piece)?);
        let mode_ends = memchr::memchr(b' ', head)?;
        let (mode, path) = (&head[..mode_ends], &head[mode_ends + 1..]);
        let names: Vec<_> = path.split(|byte| *byte == b'/').collect();
        if names.len() > 8 || path.contains(&0) {
            return None;
        }
        put(&mut root, &names, Node::File { mode, bytes: bytes[1..].to_vec() });
        match end {
            Some(end) => rest = &rest[end + 5..],
            None => return Some(root),
        }
    }
}

fn put<'d>(folder: &mut Vec<(&'d [u8], Node<'d>)>, names: &[&'d [u8]], node: Node<'d>) {
    let [name, below @ ..] = names else { return };
    if below.is_empty() {
        folder.push((name, node));
        return;
    }
    let found = folder.iter_mut().find_map(|(other, node)| match node {
        Node::Folder(entries) if other == name => Some(entries),
        _ => None,
    });
    match found {
        Some(entries) => put(entries, below, node),
        None => {
            let mut entries = Vec::new();
            put(&mut entries, below, node);
            folder.push((name, Node::Folder(entries)));
        }
    }
}

fn write_folder(folder: &[(&[u8], Node<'_>)], pack: &mut PackWriter) -> ObjectId {
    let mut entries = Vec::new();
    for (name, node) in folder {
        let (mode, id) = match node {
            Node::File { mode, bytes } => (*mode, pack.add(Kind::Blob, bytes).expect("added")),
            Node::Folder(entries) => (&b"40000"[..], write_folder(entries, pack)),
        };
        let end: &[u8] = if mode == b"40000" { b"/" } else { b"" };
        let sorts_as = [name, end].concat();
        entries.push((sorts_as, [mode, b" ", name, b"\0", id.as_slice()].concat()));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let bytes: Vec<u8> = entries.into_iter().flat_map(|(_, bytes)| bytes).collect();
    pack.add(Kind::Tree, &bytes).expect("added")
}

fn file<'n>(folder: &'n [(&[u8], Node<'_>)], path: &str) -> Option<&'n [u8]> {
    let (first, rest) = path.split_once('/').map_or((path, None), |(a, b)| (a, Some(b)));
    let found = folder.iter().find(|(name, _)| *name == first.as_bytes())?;
    match (&found.1, rest) {
        (Node::File { bytes, .. }, None) => Some(bytes),
        (Node::Folder(entries), Some(rest)) => file(entries, rest),
        _ => None,
    }
}

/// Returns the chat file of a tree. Joins the header and the messages by their file names alone, to
/// check the result of `rebuild`.
fn plain_chat(root: &[(&[u8], Node<'_>)]) -> Option<Vec<u8>> {
    let mut lines: Vec<_> = file(root, "chat/header.json").into_iter().collect();
    for number in 0.. {
        let path = format!("chat/messages/{:03}/{number:05}.json", number / 100);
        match file(root, &path) {
            Some(line) => lines.push(line),
            None => break,
        }
    }
    (!lines.is_empty()).then(|| lines.join(&b'\n'))
}

fn plain_book(root: &[(&[u8], Node<'_>)], name: &str) -> Option<Vec<u8>> {
    let folder = format!("lorebooks/{}", super::part_names::book_folder(name));
    let book = file(root, &format!("{folder}/book.json"))?;
    let has_entries = st::fill(book, |_| None::<&[u8]>).is_err();
    if !has_entries {
        return Some(book.to_vec());
    }
    st::fill(book, |key| file(root, &format!("{folder}/entries/{}", entry_file(key)))).ok()
}

/// Writes the correct lengths and hashes of the files into the manifest, because random mutations
/// never produce them.
fn repair(root: &mut [(&[u8], Node<'_>)]) -> Option<Manifest> {
    let text = file(root, "snapshot.json")?;
    let mut manifest = Manifest::decode(no_tree(), text).ok()?;
    for record in &mut manifest.files {
        let bytes = match record.role {
            Role::Chat => plain_chat(root),
            Role::Lorebook => record.name.as_deref().and_then(|name| plain_book(root, name)),
            Role::Group => file(root, "group.json").map(<[u8]>::to_vec),
            Role::File => file(root, &format!("file/{}", record.plain_file())).map(<[u8]>::to_vec),
            Role::Card => None,
        };
        if let Some(bytes) = bytes {
            (record.bytes, record.blake3) = (bytes.len() as u64, Blake3::of(&bytes));
        }
    }
    manifest.content = super::manifest::content_id(&manifest.files);
    if let Some(chat) = plain_chat(root).filter(|_| manifest.file(Role::Chat).is_some()) {
        let category =
            if manifest.is_group() { st::Category::GroupChat } else { st::Category::Chat };
        manifest.messages = st::Chat::split(&chat, category).message_count() as u64;
    }
    let place = root.iter_mut().find(|(name, _)| *name == b"snapshot.json")?;
    if let Node::File { bytes, .. } = &mut place.1 {
        *bytes = manifest.encode();
    }
    Some(manifest)
}

/// Checks that a valid snapshot can be rebuilt: each file has the hash in the manifest, the chat
/// consists of its lines, and storing the rebuilt files again gives a valid snapshot with equal
/// files. Also checks that `Validator` and `rebuild` agree on whether a snapshot can be restored.
///
/// The input is a tree as text; see `read_tree`.
pub(crate) fn snapshot(data: &[u8]) {
    let Some(mut root) = read_tree(data) else { return };
    judge_tree(&root);
    if repair(&mut root).is_some() {
        judge_tree(&root);
    }
}

fn judge_tree(root: &[(&[u8], Node<'_>)]) {
    with_store(|store| {
        let mut pack = store.pack_writer();
        let tree = write_folder(root, &mut pack);
        pack.finish().expect("the pack is written");
        let reader = store.reader();
        let read = file(root, "snapshot.json").map(|text| Manifest::decode(tree, text));
        let manifest = read.and_then(Result::ok);
        let timeline = manifest.as_ref().and_then(|it| TimelineName::parse(&it.timeline).ok());
        let snapshot = Snapshot {
            id: SnapshotId(tree),
            content: manifest.as_ref().map_or(ContentId(Blake3::of(b"")), |it| it.content),
            tree,
            parents: Vec::new(),
            timeline: timeline.unwrap_or_else(|| TimelineName::parse("chats/a/b").expect("a name")),
            kind: SnapshotKind::SNAPSHOT,
            messages: manifest.as_ref().map_or(0, |it| it.messages),
            time: Time::default(),
            sequence: Sequence::at(0),
            subject: String::new(),
            entries: None,
            fork_at: None,
            parent_until: None,
            lorebook: manifest.as_ref().and_then(|it| it.bound_book().map(str::to_owned)),
            bound: None,
            unread: None,
            last_words: None,
            main_chat: None,
            renamed_from: None,
            source: None,
        };
        let verdict = Validator::new(store.reader()).judge(&snapshot).expect("it can be judged");
        let rebuilt = rebuild(&reader, &snapshot);
        // A snapshot of a newer format cannot be rebuilt, and the validator checks only its
        // objects.
        if matches!(rebuilt, Err(Error::NewerFormat { .. })) {
            return;
        }
        assert_eq!(
            verdict.can_be_restored(),
            rebuilt.is_ok(),
            "{verdict:?}, but rebuilding says {:?}",
            rebuilt.as_ref().err()
        );
        let Ok(rebuilt) = rebuilt else { return };
        let contents = rebuilt.contents;
        for (role, path, bytes) in contents.parts() {
            let record = contents.manifest.file(role).expect("each file has a record");
            assert!(record.is_of(bytes), "{path} is not the file of the manifest");
        }
        if verdict != Verdict::Valid {
            return;
        }
        if contents.manifest.file(Role::Chat).is_some() {
            assert_eq!(contents.bytes(Role::Chat), plain_chat(root).as_deref());
        }
        let state = State::of(&contents.files);
        let mut pack = store.pack_writer();
        let written = write(&state, &[], &mut pack);
        let written = written.expect("a state can be written").tree;
        pack.finish().expect("the pack is written");
        let snapshot = Snapshot { id: SnapshotId(written), tree: written, ..snapshot };
        let store = Store::open(store.path()).expect("a store can be opened");
        let again = rebuild(&store.reader(), &snapshot).expect("what was stored can be rebuilt");
        assert!(contents.parts().eq(again.contents.parts()), "stored again, it is another state");
        let verdict = Validator::new(store.reader()).judge(&snapshot).expect("it can be judged");
        assert_eq!(verdict, Verdict::Valid, "what was stored is sound");
    });
}

/// Checks that an accepted backup has the hash and the object count that it states, and that
/// `rebuild` succeeds for each snapshot that can be restored according to the validator.
///
/// The input is decoded twice: first unchanged, then with a correct hash appended. For the second
/// time, the data after the header is compressed unless it is already a zstd frame.
pub(crate) fn backup(data: &[u8]) {
    let _ = peek(data);
    one_backup(data);
    let ends = memchr::memchr_iter(b'\n', data).nth(1);
    let Some((head, records)) = ends.map(|end| data.split_at(end + 1)) else { return };
    let mut made = head.to_vec();
    if records.starts_with(b"\x28\xb5\x2f\xfd") {
        made.extend_from_slice(records);
    } else {
        made.extend(zstd::bulk::compress(records, 1).expect("memory is there"));
    }
    let hash = blake3::hash(&made);
    made.extend_from_slice(hash.as_bytes());
    one_backup(&made);
}

fn one_backup(data: &[u8]) {
    let Ok(mut decoder) = Decoder::new(data) else { return };
    let header: Header = decoder.header().clone();
    let refs = header.refs().expect("the refs of a header were checked");
    let mut objects: BTreeMap<ObjectId, (Kind, Vec<u8>)> = BTreeMap::new();
    let (mut count, mut bytes) = (0, 0);
    loop {
        match decoder.next_object() {
            Err(BackupError::Store(error)) => panic!("no store was asked: {error}"),
            Err(_) => return,
            Ok(None) => break,
            Ok(Some((kind, object))) => {
                count += 1;
                bytes += object.len();
                objects.insert(hash(kind, object).expect("hashed"), (kind, object.to_vec()));
            }
        }
        if bytes > MOST_BYTES {
            return;
        }
    }
    let (content, claimed) = data.split_at(data.len() - 32);
    assert_eq!(blake3::hash(content).as_bytes(), claimed);
    assert_eq!(count, header.objects);
    assert!(matches!(decoder.next_object(), Ok(None)));
    with_store(|store| {
        let mut pack = store.pack_writer();
        for (kind, object) in objects.values() {
            pack.add(*kind, object).expect("added");
        }
        pack.finish().expect("the pack is written");
        let length = |(id, (kind, object)): (&ObjectId, &(Kind, Vec<u8>))| {
            (*id, (*kind, object.len() as u64))
        };
        let lengths: Lengths = objects.iter().map(length).collect::<HashMap<_, _>>();
        let given = ObjectScope::All(&lengths);
        let Ok(judged) = judge(store, &refs, &given, &Default::default(), &mut NoProgress) else {
            return;
        };
        for (snapshot, verdict) in judged.snapshots() {
            if verdict.can_be_restored() {
                rebuild(&store.reader(), snapshot).expect("what can be restored is rebuilt");
            }
        }
    });
}

/// Returns a snapshot's tree as the text that [`snapshot`] reads.
#[cfg(test)]
pub(crate) fn tree_as_text(store: &Store, tree: ObjectId) -> Vec<u8> {
    fn add(reader: &crate::store::Reader, tree: ObjectId, path: &str, out: &mut Vec<u8>) {
        for entry in reader.raw_tree(tree).unwrap().entries {
            let path = format!("{path}{}", String::from_utf8_lossy(&entry.name));
            if entry.mode == crate::store::Mode::Folder {
                add(reader, entry.id, &format!("{path}/"), out);
                continue;
            }
            out.extend_from_slice(if out.is_empty() { b"" } else { b"\n" });
            out.extend_from_slice(format!("=== 100644 {path}\n").as_bytes());
            out.extend(reader.blob(entry.id).unwrap());
        }
    }
    let mut out = Vec::new();
    add(&store.reader(), tree, "", &mut out);
    out
}
