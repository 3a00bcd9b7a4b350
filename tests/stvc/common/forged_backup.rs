//! Forged backup files.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use stvc::internals::archive::backup::Decoder;
use stvc::internals::store::{Kind, ObjectId, hash};

use super::backups::back_up;
use super::{A, Sandbox, chat};

/// Decodes a backup to its end.
pub fn decode(bytes: &[u8]) -> Result<Vec<(Kind, Vec<u8>)>, String> {
    let mut decoder = Decoder::new(bytes).map_err(|error| error.to_string())?;
    let mut objects = Vec::new();
    loop {
        match decoder.next_object() {
            Ok(Some((kind, bytes))) => objects.push((kind, bytes.to_vec())),
            Ok(None) => return Ok(objects),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Encodes a backup of arbitrary records; the header gets the right number of snapshots.
pub fn encode_backup(header: &Value, records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut header = header.clone();
    header["snapshots"] = records.iter().filter(|(kind, _)| *kind == 1).count().into();
    encode_backup_with_header(&header, records)
}

/// Encodes a backup without correcting its header.
pub fn encode_backup_with_header(header: &Value, records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut content = Vec::new();
    let number = |out: &mut Vec<u8>, mut n: u64| {
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
    };
    let mut total = 0;
    for (kind, bytes) in records {
        content.push(*kind);
        number(&mut content, bytes.len() as u64);
        content.extend_from_slice(bytes);
        total += bytes.len() as u64;
    }
    content.push(0);
    number(&mut content, records.len() as u64);
    number(&mut content, total);
    with_hash(header, &zstd::encode_all(&content[..], 3).unwrap())
}

/// Appends the valid hash to header and frame.
pub fn with_hash(header: &Value, frame: &[u8]) -> Vec<u8> {
    let mut bytes = format!("stvc backup 1\n{header}\n").into_bytes();
    bytes.extend_from_slice(frame);
    let hash = blake3::hash(&bytes);
    bytes.extend_from_slice(hash.as_bytes());
    bytes
}

/// Builds a valid header.
pub fn header(objects: usize, refs: &[(&str, &str)]) -> Value {
    let refs: BTreeMap<_, _> = refs.iter().copied().collect();
    json!({ "program": "x", "taken": "2026-11-15T00:00:00Z", "whole": true, "timelines": [], "snapshots": 1,
            "objects": objects, "refs": refs })
}

/// The objects of a valid backup, to be modified.
pub struct ForgedBackup {
    pub objects: BTreeMap<ObjectId, (u8, Vec<u8>)>,
    pub commit: ObjectId,
    pub root: ObjectId,
}

impl ForgedBackup {
    pub fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(A, chat("a", 3, None));
        sandbox.stvc(&["snapshot"]).exits(0);
        let mut forged =
            Self { objects: BTreeMap::new(), commit: id_of(3, b""), root: id_of(3, b"") };
        for (kind, bytes) in decode(&fs::read(back_up(&sandbox)).unwrap()).unwrap() {
            let number = match kind {
                Kind::Commit => 1,
                Kind::Tree => 2,
                _ => 3,
            };
            let id = forged.add(number, bytes.clone());
            if number == 1 {
                forged.commit = id;
                forged.root = ObjectId::from_hex(&bytes[5..45]).unwrap();
            }
        }
        forged
    }

    pub fn add(&mut self, kind: u8, bytes: Vec<u8>) -> ObjectId {
        let id = id_of(kind, &bytes);
        self.objects.insert(id, (kind, bytes));
        id
    }

    /// Replaces the root tree and rewrites the commit.
    pub fn with_root(mut self, tree: Vec<u8>) -> Self {
        let (_, commit) = self.objects.remove(&self.commit).unwrap();
        self.objects.remove(&self.root);
        self.root = self.add(2, tree);
        let rest = String::from_utf8(commit).unwrap().split_off(45);
        self.commit = self.add(1, format!("tree {}{rest}", self.root).into_bytes());
        self
    }

    pub fn root(&self) -> Vec<u8> {
        self.objects[&self.root].1.clone()
    }

    /// Edits the manifest and rewrites the trees above it.
    pub fn with_manifest(mut self, edit: impl FnOnce(&mut Value)) -> Self {
        let is_manifest = |bytes: &[u8]| bytes.starts_with(b"{\n  \"format\"");
        let (id, bytes) = self
            .objects
            .iter()
            .find(|(_, (kind, bytes))| *kind == 3 && is_manifest(bytes))
            .map(|(id, (_, bytes))| (*id, bytes.clone()))
            .unwrap();
        self.objects.remove(&id);
        let mut manifest = serde_json::from_slice(&bytes).unwrap();
        edit(&mut manifest);
        let new = self.add(3, manifest.to_string().into_bytes());
        let root = replace(&self.root(), id.as_slice(), new.as_slice());
        self.with_root(root)
    }

    pub fn file(&self, name: &str) -> Vec<u8> {
        let records: Vec<_> =
            self.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
        encode_backup(&header(records.len(), &[(name, &self.commit.to_string())]), &records)
    }
}

fn id_of(kind: u8, bytes: &[u8]) -> ObjectId {
    let kind = [Kind::Commit, Kind::Tree, Kind::Blob][usize::from(kind) - 1];
    hash(kind, bytes).unwrap()
}

fn replace(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

/// Encodes an entry of a tree.
pub fn entry(mode: &str, name: &str, id: &ObjectId) -> Vec<u8> {
    [format!("{mode} {name}\0").as_bytes(), id.as_slice()].concat()
}
