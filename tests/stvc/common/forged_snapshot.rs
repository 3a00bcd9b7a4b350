//! Snapshots as no program would write them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use stvc::store::{Kind, Mode, ObjectId, Reader, Store};

use super::{Answer, B, Sandbox, Stored, calm, chat, git, message, text};

/// What hangs on an entry of a tree.
#[derive(Clone)]
pub enum Node {
    Blob(Vec<u8>),
    Tree(Vec<Entry>),
    /// An object that is there already, or is not there at all.
    Object(ObjectId),
}

/// An object that is not there.
pub fn lost() -> Node {
    Node::Object(ObjectId::from_hex(&[b'7'; 40]).unwrap())
}

/// An entry of a tree.
#[derive(Clone)]
pub struct Entry {
    pub mode: &'static str,
    pub name: Vec<u8>,
    pub node: Node,
}

/// An entry with anything on it.
pub fn entry(mode: &'static str, name: &str, node: Node) -> Entry {
    Entry { mode, name: name.into(), node }
}

/// A file of these bytes.
pub fn file(name: &str, bytes: &[u8]) -> Entry {
    entry("100644", name, Node::Blob(bytes.to_vec()))
}

/// A snapshot that can be changed in any way before it is written.
pub struct Forge {
    pub root: Vec<Entry>,
    pub commit: String,
    /// Whether trees are written as they stand, and not in git's order.
    pub as_it_stands: bool,
}

impl Forge {
    pub fn read(store: &Store, id: &str) -> Self {
        let id = ObjectId::from_hex(id.as_bytes()).unwrap();
        let (reader, mut buffer) = (store.reader(), Vec::new());
        let commit = reader.read(id, Kind::Commit, &mut buffer).unwrap();
        let commit = String::from_utf8(commit.to_vec()).unwrap();
        let root = read_tree(&reader, ObjectId::from_hex(&commit.as_bytes()[5..45]).unwrap());
        Self { root, commit, as_it_stands: false }
    }

    /// Write it as the successor of `parent`; its id.
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

    pub fn write_tree(&self, entries: &[Entry], pack: &mut stvc::store::PackWriter) -> ObjectId {
        let mut entries: Vec<_> = entries.iter().collect();
        if !self.as_it_stands {
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

    /// The entries of the folder at this path.
    pub fn at(&mut self, path: &str) -> &mut Vec<Entry> {
        let mut entries = &mut self.root;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let found = entries.iter_mut().find(|entry| entry.name == part.as_bytes()).unwrap();
            let Node::Tree(below) = &mut found.node else { panic!("{path} is no folder") };
            entries = below;
        }
        entries
    }

    /// One entry.
    pub fn of(&mut self, path: &str) -> &mut Entry {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.at(folder).iter_mut().find(|entry| entry.name == name.as_bytes()).unwrap()
    }

    pub fn remove(&mut self, path: &str) -> Entry {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.at(folder);
        let at = entries.iter().position(|entry| entry.name == name.as_bytes()).unwrap();
        entries.remove(at)
    }

    pub fn bytes(&mut self, path: &str) -> Vec<u8> {
        let Node::Blob(bytes) = &self.of(path).node else { panic!("{path} is no file") };
        bytes.clone()
    }

    pub fn manifest(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut manifest = serde_json::from_slice(&self.bytes("snapshot.json")).unwrap();
        edit(&mut manifest);
        self.of("snapshot.json").node = Node::Blob(manifest.to_string().into_bytes());
    }

    /// Change the manifest's files, and let its content id and the commit's be right.
    pub fn files(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut content = String::new();
        self.manifest(|manifest| {
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
        self.trailer("Stvc-Content", &content);
    }

    /// A content id of nothing, in manifest and commit.
    pub fn break_content_id(&mut self) {
        let zeros = "0".repeat(64);
        self.manifest(|manifest| manifest["content"] = zeros.clone().into());
        self.trailer("Stvc-Content", &zeros);
    }

    pub fn trailer(&mut self, key: &str, value: &str) {
        let lines = self.commit.lines().map(|line| match line.strip_prefix(key) {
            Some(_) => format!("{key}: {value}\n"),
            None => format!("{line}\n"),
        });
        self.commit = lines.collect();
    }
}

fn read_tree(reader: &Reader, id: ObjectId) -> Vec<Entry> {
    let entries = reader.raw_tree(id).unwrap().entries.into_iter();
    let read = |found: stvc::store::RawEntry| match found.mode {
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

/// A library of three chats. The second has a lorebook and three snapshots, of which the middle one is to be forged.
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

    /// Put a forged snapshot in the place of the middle one; its id, and that of the one after it.
    pub fn forge(&self, edit: impl FnOnce(&mut Forge)) -> (String, String) {
        let store = self.store();
        let mut forged = Forge::read(&store, &self.stored[1].id);
        edit(&mut forged);
        let odd = forged.write(&store, Some(&self.stored[0].id));
        let next = Forge::read(&store, &self.stored[2].id).write(&store, Some(&odd));
        self.sandbox.git(&["update-ref", "refs/heads/chats/Mira/b", &next]);
        (odd, next)
    }

    /// A library with nothing in it that takes a backup in.
    pub fn take_in(&self, backup: &Path) -> (Sandbox, Answer) {
        let other = Sandbox::empty();
        let answer = calm(other.json(&["import", text(backup)]));
        (other, answer)
    }
}

/// All that is sound came in, and what did is sound.
#[track_caller]
pub fn comes_in(library: &Library, other: &Sandbox, odd: Option<(&str, &str)>, what: &str) {
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
    let all = calm(other.stvc(&["restore", "--all"]));
    assert!(codes.contains(&all.code), "{what}: {all:?}");
    for path in ["chats/Mira/a.jsonl", "chats/Mira/c.jsonl", B] {
        assert_eq!(other.read(path), library.sandbox.read(path), "{what}: {path}");
    }
}
