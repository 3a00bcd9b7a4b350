//! Damaged and malicious backup files.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use stvc::internals::engine::copies::CopyPlace;
use stvc::internals::store::ObjectId;
use stvc::progress::NoProgress;
use stvc::verbs::import::stvc_backup::{Options, take_in};

use crate::common::backups::{back_up, chat_with_two_snapshots};
use crate::common::forged_backup::{
    ForgedBackup, decode, encode_backup, encode_backup_with_header, entry, header, with_hash,
};
use crate::common::{Sandbox, assert_valid, text, tree};

#[test]
fn every_flipped_bit_and_truncation_is_detected() {
    let bytes = fs::read(back_up(&chat_with_two_snapshots())).unwrap();
    decode(&bytes).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
        }
        assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert!(decode(&longer).unwrap_err().contains("there is data after its"));
}

/// Asserts that the import fails with `words` and changes no byte.
#[track_caller]
fn assert_refused(sandbox: &Sandbox, bytes: &[u8], words: &str) {
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("b.stvc");
    fs::write(&source, bytes).unwrap();
    let before = tree(sandbox.folder());
    let options = Options {
        source: CopyPlace::File(source),
        passphrase: None,
        closed: Default::default(),
        dry_run: false,
    };
    let error = match take_in(&sandbox.workspace(), &options, &mut NoProgress) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was taken in; {words} was expected"),
    };
    assert!(error.contains(words), "{error}");
    assert!(tree(sandbox.folder()) == before, "something changed: {error}");
}

#[test]
fn damaged_backup_changes_nothing() {
    let bytes = fs::read(back_up(&chat_with_two_snapshots())).unwrap();
    let there = chat_with_two_snapshots();
    let not_there = Sandbox::empty();
    for at in (0..bytes.len()).step_by(5) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert_refused(if at % 2 == 0 { &there } else { &not_there }, &flipped, "b.stvc");
        assert_refused(if at % 2 == 0 { &not_there } else { &there }, &bytes[..at], "b.stvc");
    }
    assert_refused(&there, b"", "it is not a backup created by stvc");
    assert_refused(&there, b"PK\x03\x04something else", "it is not a backup created by stvc");
    assert_refused(&there, b"stvc backup 2\n{}\n", "its format (2) is not supported");
}

#[test]
fn decompression_bomb_is_refused_early() {
    let sandbox = chat_with_two_snapshots();
    let id = "1".repeat(40);
    let refs = [("refs/heads/chats/Mira/a", id.as_str())];
    // Claims an object of a terabyte.
    let mut content = vec![3];
    content.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    let frame = zstd::encode_all(&content[..], 3).unwrap();
    assert_refused(&sandbox, &with_hash(&header(1, &refs), &frame), "longer than 512 MiB");
    // Needs 2 GB of memory for decompression.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(31).unwrap();
    encoder.write_all(&content).unwrap();
    assert_refused(&sandbox, &with_hash(&header(1, &refs), &encoder.finish().unwrap()), "damaged");
    // More objects than the header announces.
    let blobs: Vec<_> = (0..50_u8).map(|n| [n]).collect();
    let records: Vec<_> = blobs.iter().map(|blob| (3, &blob[..])).collect();
    assert_refused(
        &sandbox,
        &encode_backup(&header(3, &refs), &records),
        "more objects than its header states",
    );
    // A header without an end.
    let endless = [b"stvc backup 1\n".to_vec(), vec![b' '; 65 << 20]].concat();
    assert_refused(&sandbox, &endless, "its header does not end");
    // Unreferenced zeros.
    let zeros = vec![0; 8 << 20];
    assert_refused(
        &sandbox,
        &encode_backup(&header(1, &refs), &[(3, &zeros)]),
        "is missing, but other objects refer to it",
    );
}

const BRANCH: &str = "refs/heads/chats/Mira/a";

#[test]
fn valid_backup_that_stvc_did_not_write_is_imported() {
    let sandbox = Sandbox::empty();
    let source = sandbox.folder().join("forged.stvc");
    fs::write(&source, ForgedBackup::new().file(BRANCH)).unwrap();
    sandbox.stvc(&["import", text(&source)]).exits(0);
    assert_valid(&sandbox);
}

#[test]
fn backup_cannot_set_refs_other_than_branches_and_tags() {
    let sandbox = chat_with_two_snapshots();
    for name in [
        "HEAD",
        "refs/stvc/kept/x",
        "refs/notes/x",
        "refs/heads/../../x",
        "refs/heads/a..b",
        "refs/heads/",
        "config",
    ] {
        assert_refused(&sandbox, &ForgedBackup::new().file(name), "the ref ");
    }
}

#[test]
fn tree_with_unsafe_names_is_refused() {
    let sandbox = chat_with_two_snapshots();
    for name in ["..", ".", ".git", ".GIT", "git~1", "\u{200c}.git", "a\\b", "con"] {
        let mut forged = ForgedBackup::new();
        let evil = forged.add(3, b"evil".to_vec());
        // In git's order, so that only the name is invalid.
        let dots = entry("100644", name, &evil);
        let root = if name < "chat" {
            [dots, forged.root()].concat()
        } else if name < "snapshot.json" {
            let at = forged.root().windows(13).position(|w| w == b"snapshot.json").unwrap() - 7;
            [&forged.root()[..at], &dots, &forged.root()[at..]].concat()
        } else {
            [forged.root(), dots].concat()
        };
        assert_refused(
            &sandbox,
            &forged.with_root(root).file(BRANCH),
            "data that stvc never writes to a backup",
        );
    }
    // Links, submodules, executables, a duplicate entry, a wrong order, and a tree in place of a
    // file.
    let forged = ForgedBackup::new();
    let (root, chat) = (forged.root(), {
        let at = forged.root().windows(5).position(|w| w == b"chat\0").unwrap() + 5;
        ObjectId::try_from(&forged.root()[at..at + 20]).unwrap()
    });
    let begin = root.windows(10).position(|w| w == b"40000 chat").unwrap();
    let of_chat = &root[begin..begin + 31];
    let rest = [&root[..begin], &root[begin + 31..]].concat();
    for bad in [
        [&entry("120000", "chat", &chat)[..], &rest].concat(),
        [&entry("160000", "chat", &chat)[..], &rest].concat(),
        [&entry("100755", "chat", &chat)[..], &rest].concat(),
        [&entry("100644", "chat", &chat)[..], &rest].concat(),
        [&entry("040000", "chat", &chat)[..], &rest].concat(),
        [of_chat, of_chat, &rest].concat(),
        [&rest[..], of_chat].concat(),
        rest.clone(),
        Vec::new(),
    ] {
        assert_refused(
            &sandbox,
            &ForgedBackup::new().with_root(bad).file(BRANCH),
            "data that stvc never writes to a backup",
        );
    }
}

#[test]
fn backup_with_a_forged_manifest_is_refused() {
    let sandbox = chat_with_two_snapshots();
    for path in ["../../evil", "/evil", "secrets.json", ".stvc/config", "worlds/x.json"] {
        let forged = ForgedBackup::new().with_manifest(|manifest| {
            manifest["files"][0]["path"] = path.into();
        });
        assert_refused(&sandbox, &forged.file(BRANCH), "data that stvc never writes to a backup");
    }
    let zeros = "0".repeat(64);
    let edits: [&dyn Fn(&mut Value); 5] = [
        &|manifest| manifest["content"] = zeros.clone().into(),
        &|manifest| manifest["files"][0]["blake3"] = zeros.clone().into(),
        &|manifest| manifest["files"][0]["bytes"] = 7.into(),
        &|manifest| manifest["timeline"] = "chats/Mira/b".into(),
        &|manifest| manifest["files"] = json!([]),
    ];
    for edit in edits {
        let forged = ForgedBackup::new().with_manifest(edit);
        assert_refused(&sandbox, &forged.file(BRANCH), "data that stvc never writes to a backup");
    }
}

#[test]
fn backup_with_missing_extra_or_foreign_objects_is_refused() {
    let sandbox = chat_with_two_snapshots();
    let mut forged = ForgedBackup::new();
    forged.add(3, b"nobody's".to_vec());
    assert_refused(&sandbox, &forged.file(BRANCH), "objects that do not belong to any snapshot");
    let all: Vec<_> = ForgedBackup::new().objects.keys().copied().collect();
    for id in all {
        let mut forged = ForgedBackup::new();
        forged.objects.remove(&id);
        assert_refused(&sandbox, &forged.file(BRANCH), "data that stvc never writes to a backup");
    }
    // A duplicate object.
    let forged = ForgedBackup::new();
    let mut records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    records.push(records[0]);
    let head = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    assert_refused(&sandbox, &encode_backup(&head, &records), "twice");
    // A commit that is not a snapshot, and an object that is not a commit.
    let mut forged = ForgedBackup::new();
    let (_, commit) = forged.objects.remove(&forged.commit).unwrap();
    let commit = String::from_utf8(commit).unwrap();
    forged.commit = forged.add(1, commit.replace("Stvc-Content", "Content").into_bytes());
    assert_refused(&sandbox, &forged.file(BRANCH), "is not a snapshot");
    let mut forged = ForgedBackup::new();
    forged.objects.remove(&forged.commit);
    forged.commit = forged.add(1, b"tree of nothing".to_vec());
    assert_refused(&sandbox, &forged.file(BRANCH), "data that stvc never writes to a backup");
}

/// The header is compared with the content.
#[test]
fn header_that_contradicts_the_content_is_refused() {
    let sandbox = chat_with_two_snapshots();
    let forged = ForgedBackup::new();
    let records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    let right = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    let wrong = [
        ("snapshots", json!(2), "counts are wrong"),
        ("objects", json!(records.len() + 1), "counts are wrong"),
        ("taken", json!("some day"), "is not a valid time"),
        ("timelines", json!(["Mira"]), "its header"),
        ("whole", json!("yes"), "its header"),
    ];
    for (field, value, words) in wrong {
        let mut header = right.clone();
        header[field] = value;
        assert_refused(&sandbox, &encode_backup_with_header(&header, &records), words);
    }
}
