//! Snapshots that stvc would never write.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use stvc::internals::store::{Kind, Mode, ObjectId, Reader, Store};

use super::{Answer, B, Sandbox, Stored, assert_no_panic, chat, git, message, text};

/// The object of a tree entry.
#[derive(Clone)]
pub enum Node {
    Blob(Vec<u8>),
    Tree(Vec<Entry>),
    /// An object that the store has already, or does not have.
    Object(ObjectId),
}

/// Returns an object that the store does not have.
pub fn missing_object() -> Node {
    Node::Object(ObjectId::from_hex(&[b'7'; 40]).unwrap())
}

#[derive(Clone)]
pub struct Entry {
    pub mode: &'static str,
    pub name: Vec<u8>,
    pub node: Node,
}

pub fn entry(mode: &'static str, name: &str, node: Node) -> Entry {
    Entry { mode, name: name.into(), node }
}

pub fn file(name: &str, bytes: &[u8]) -> Entry {
    entry("100644", name, Node::Blob(bytes.to_vec()))
}

/// A snapshot that can be modified in any way before it is written.
pub struct ForgedSnapshot {
    pub root: Vec<Entry>,
    pub commit: String,
    /// Writes trees in the given order instead of git's.
    pub keep_order: bool,
}

impl ForgedSnapshot {
    pub fn read(store: &Store, id: &str) -> Self {
        let id = ObjectId::from_hex(id.as_bytes()).unwrap();
        let (reader, mut buffer) = (store.reader(), Vec::new());
        let commit = reader.read(id, Kind::Commit, &mut buffer).unwrap();
        let commit = String::from_utf8(commit.to_vec()).unwrap();
        let root = read_tree(&reader, ObjectId::from_hex(&commit.as_bytes()[5..45]).unwrap());
        Self { root, commit, keep_order: false }
    }

    /// Writes the snapshot as a child of `parent` and returns its id.
    pub fn write(&self, store: &Store, parent: Option<&str>) -> String {
        let mut pack = store.pack_writer();
        let tree = self.write_tree(&self.root, &mut pack);
        let kept = self.commit.lines().filter(|line| !line.starts_with("parent "));
        let rest: String = kept.skip(1).map(|line| format!("{line}\n")).collect();
        let parent = parent.map_or(String::new(), |parent| format!("parent {parent}\n"));
        let commit = format!("tree {tree}\n{parent}{rest}");
        let id = pack.add(Kind::Commit, commit.as_bytes()).unwrap();
        pack.finish().unwrap();
        id.to_string()
    }

    pub fn write_tree(
        &self,
        entries: &[Entry],
        pack: &mut stvc::internals::store::PackWriter,
    ) -> ObjectId {
        let mut entries: Vec<_> = entries.iter().collect();
        if !self.keep_order {
            let end = |entry: &Entry| if entry.mode.ends_with("40000") { "/" } else { "" };
            entries.sort_by_key(|entry| [&entry.name, end(entry).as_bytes()].concat());
        }
        let mut bytes = Vec::new();
        for entry in entries {
            let id = match &entry.node {
                Node::Blob(bytes) => pack.add(Kind::Blob, bytes).unwrap(),
                Node::Tree(entries) => self.write_tree(entries, pack),
                Node::Object(id) => *id,
            };
            bytes.extend_from_slice(entry.mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(&entry.name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_slice());
        }
        pack.add(Kind::Tree, &bytes).unwrap()
    }

    /// Returns the entries of the folder at `path`.
    pub fn folder_at(&mut self, path: &str) -> &mut Vec<Entry> {
        let mut entries = &mut self.root;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let found = entries.iter_mut().find(|entry| entry.name == part.as_bytes()).unwrap();
            let Node::Tree(below) = &mut found.node else { panic!("{path} is no folder") };
            entries = below;
        }
        entries
    }

    pub fn entry_at(&mut self, path: &str) -> &mut Entry {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.folder_at(folder).iter_mut().find(|entry| entry.name == name.as_bytes()).unwrap()
    }

    pub fn remove(&mut self, path: &str) -> Entry {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.folder_at(folder);
        let at = entries.iter().position(|entry| entry.name == name.as_bytes()).unwrap();
        entries.remove(at)
    }

    pub fn bytes(&mut self, path: &str) -> Vec<u8> {
        let Node::Blob(bytes) = &self.entry_at(path).node else { panic!("{path} is no file") };
        bytes.clone()
    }

    pub fn edit_manifest(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut manifest = serde_json::from_slice(&self.bytes("snapshot.json")).unwrap();
        edit(&mut manifest);
        self.entry_at("snapshot.json").node = Node::Blob(manifest.to_string().into_bytes());
    }

    /// Edits the manifest's files, and updates the content id in manifest and commit.
    pub fn edit_files(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut content = String::new();
        self.edit_manifest(|manifest| {
            edit(manifest);
            let mut text = String::new();
            for file in manifest["files"].as_array().unwrap() {
                let (path, hash) =
                    (file["path"].as_str().unwrap(), file["blake3"].as_str().unwrap());
                text.push_str(&format!("{path}\0{}\0{hash}\n", file["bytes"]));
            }
            content = blake3::hash(text.as_bytes()).to_hex().to_string();
            manifest["content"] = content.clone().into();
        });
        self.set_trailer("Stvc-Content", &content);
    }

    /// Sets a wrong content id in manifest and commit.
    pub fn break_content_id(&mut self) {
        let zeros = "0".repeat(64);
        self.edit_manifest(|manifest| manifest["content"] = zeros.clone().into());
        self.set_trailer("Stvc-Content", &zeros);
    }

    pub fn set_trailer(&mut self, key: &str, value: &str) {
        let lines = self.commit.lines().map(|line| match line.strip_prefix(key) {
            Some(_) => format!("{key}: {value}\n"),
            None => format!("{line}\n"),
        });
        self.commit = lines.collect();
    }
}

fn read_tree(reader: &Reader, id: ObjectId) -> Vec<Entry> {
    let entries = reader.raw_tree(id).unwrap().entries.into_iter();
    let read = |found: stvc::internals::store::TreeEntry| match found.mode {
        Mode::Folder => {
            Entry { mode: "40000", name: found.name, node: Node::Tree(read_tree(reader, found.id)) }
        }
        _ => {
            let node = Node::Blob(reader.blob(found.id).unwrap());
            Entry { mode: "100644", name: found.name, node }
        }
    };
    entries.map(read).collect()
}

/// A library of three chats. The second has a lorebook and three snapshots; the middle one is to be
/// forged.
pub struct Library {
    pub sandbox: Sandbox,
    pub stored: Vec<Stored>,
}

impl Library {
    pub fn new() -> Self {
        let mut sandbox = Sandbox::empty();
        let fact = |uid: u32| json!({ "uid": uid, "content": format!("fact {uid}") });
        let book = json!({ "entries": { "0": fact(0), "7": fact(7) } });
        sandbox.write("worlds/Harbour.json", book.to_string());
        for name in ["a", "c"] {
            sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, None));
        }
        let mut stored = Vec::new();
        sandbox.write(B, chat("b", 104, Some("Harbour")));
        for n in 0..3 {
            sandbox.append(B, &message("b", 200 + n));
            stored.push(Stored::take(&sandbox, B));
            sandbox.wait(60);
        }
        sandbox.stvc(&["snapshot"]).exits(0);
        Self { sandbox, stored }
    }

    pub fn store(&self) -> Store {
        Store::open(&self.sandbox.store()).unwrap()
    }

    /// Replaces the middle snapshot by a forged one. Returns its id and that of its child.
    pub fn forge_middle(&self, edit: impl FnOnce(&mut ForgedSnapshot)) -> (String, String) {
        let store = self.store();
        let mut forged = ForgedSnapshot::read(&store, &self.stored[1].id);
        edit(&mut forged);
        let odd = forged.write(&store, Some(&self.stored[0].id));
        let next = ForgedSnapshot::read(&store, &self.stored[2].id).write(&store, Some(&odd));
        self.sandbox.git(&["update-ref", "refs/heads/chats/Mira/b", &next]);
        (odd, next)
    }

    /// Imports a backup into an empty library.
    pub fn import_into_empty(&self, backup: &Path) -> (Sandbox, Answer) {
        let other = Sandbox::empty();
        let answer = assert_no_panic(other.json(&["import", text(backup)]));
        (other, answer)
    }
}

/// Asserts that everything valid was imported and is valid, and that it restores.
#[track_caller]
pub fn assert_imported(library: &Library, other: &Sandbox, odd: Option<(&str, &str)>, what: &str) {
    let log = other.json(&["log"]).exits(0).of_type("snapshot");
    let ids: BTreeSet<_> = log.iter().map(|line| line["id"].as_str().unwrap()).collect();
    let of_b = log.iter().filter(|line| line["timeline"] == "chats/Mira/b").count();
    match odd {
        Some((odd, next)) => {
            assert!(ids.contains(odd) && ids.contains(next), "{what}");
            assert_eq!(of_b, 3, "{what}");
        }
        None => {
            assert_eq!(of_b, 2, "{what}: {log:?}");
            let (code, words) = crate::common::check(other);
            assert_eq!(code, 0, "{what}: {words}");
        }
    }
    assert!(ids.contains(library.stored[0].id.as_str()), "{what}");
    git(&other.store(), &["fsck", "--strict"]);
    let codes = if odd.is_some() { [0, 1] } else { [0, 0] };
    let all = assert_no_panic(other.stvc(&["restore", "--all"]));
    assert!(codes.contains(&all.code), "{what}: {all:?}");
    for path in ["chats/Mira/a.jsonl", "chats/Mira/c.jsonl", B] {
        assert_eq!(other.read(path), library.sandbox.read(path), "{what}: {path}");
    }
}
