//! Files that are damaged, or were made to do harm.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use stvc::engine::copies::CopyPlace;
use stvc::progress::Silent;
use stvc::store::ObjectId;
use stvc::verbs::import::stvc_backup::{Options, take_in};

use crate::common::backups::{back_up, small};
use crate::common::forged_backup::{Forged, decode, entry, forge, forge_as_it_is, header, sealed};
use crate::common::{Sandbox, sound, text, tree};

#[test]
fn every_flipped_bit_and_every_missing_end_is_noticed() {
    let bytes = fs::read(back_up(&small())).unwrap();
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
    assert!(decode(&longer).unwrap_err().contains("follows"));
}

/// Taking this in fails with these words, and not a byte changes.
#[track_caller]
fn refused(sandbox: &Sandbox, bytes: &[u8], words: &str) {
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("b.stvc");
    fs::write(&source, bytes).unwrap();
    let before = tree(sandbox.folder());
    let options = Options {
        source: CopyPlace::File(source),
        passphrase: None,
        asks: false,
        closed: Default::default(),
        dry_run: false,
    };
    let error = match take_in(&sandbox.workspace(), &options, &mut Silent) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was taken in; {words} was expected"),
    };
    assert!(error.contains(words), "{error}");
    assert!(tree(sandbox.folder()) == before, "something changed: {error}");
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let bytes = fs::read(back_up(&small())).unwrap();
    let there = small();
    let not_there = Sandbox::empty();
    for at in (0..bytes.len()).step_by(5) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        refused(if at % 2 == 0 { &there } else { &not_there }, &flipped, "b.stvc");
        refused(if at % 2 == 0 { &not_there } else { &there }, &bytes[..at], "b.stvc");
    }
    refused(&there, b"", "no backup of stvc's");
    refused(&there, b"PK\x03\x04something else", "no backup of stvc's");
    refused(&there, b"stvc backup 2\n{}\n", "format 2");
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    let sandbox = small();
    let id = "1".repeat(40);
    let refs = [("refs/heads/chats/Mira/a", id.as_str())];
    // An object of a terabyte, of which nothing comes.
    let mut content = vec![3];
    content.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    let frame = zstd::encode_all(&content[..], 3).unwrap();
    refused(&sandbox, &sealed(&header(1, &refs), &frame), "longer than 512 MiB");
    // A frame that wants 2 GB of memory to be read.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(31).unwrap();
    encoder.write_all(&content).unwrap();
    refused(&sandbox, &sealed(&header(1, &refs), &encoder.finish().unwrap()), "damaged");
    // More objects than the header says.
    let blobs: Vec<_> = (0..50_u8).map(|n| [n]).collect();
    let records: Vec<_> = blobs.iter().map(|blob| (3, &blob[..])).collect();
    refused(&sandbox, &forge(&header(3, &refs), &records), "more objects than its header says");
    // A header without end.
    let endless = [b"stvc backup 1\n".to_vec(), vec![b' '; 65 << 20]].concat();
    refused(&sandbox, &endless, "its header has no end");
    // Many zeros that nothing refers to.
    let zeros = vec![0; 8 << 20];
    refused(&sandbox, &forge(&header(1, &refs), &[(3, &zeros)]), "which others refer to");
}

const BRANCH: &str = "refs/heads/chats/Mira/a";

#[test]
fn what_is_forged_well_is_taken_in() {
    let sandbox = Sandbox::empty();
    let source = sandbox.folder().join("forged.stvc");
    fs::write(&source, Forged::new().file(BRANCH)).unwrap();
    sandbox.stvc(&["import", text(&source)]).exits(0);
    sound(&sandbox);
}

#[test]
fn a_backup_leads_no_ref_that_is_not_ours() {
    let sandbox = small();
    for name in [
        "HEAD",
        "refs/stvc/kept/x",
        "refs/notes/x",
        "refs/heads/../../x",
        "refs/heads/a..b",
        "refs/heads/",
        "config",
    ] {
        refused(&sandbox, &Forged::new().file(name), "the ref ");
    }
}

#[test]
fn a_tree_that_is_not_safe_everywhere_is_refused() {
    let sandbox = small();
    for name in ["..", ".", ".git", ".GIT", "git~1", "\u{200c}.git", "a\\b", "con"] {
        let mut forged = Forged::new();
        let evil = forged.add(3, b"evil".to_vec());
        // In git's order, so that the name alone is wrong.
        let dots = entry("100644", name, &evil);
        let root = if name < "chat" {
            [dots, forged.root()].concat()
        } else if name < "snapshot.json" {
            let at = forged.root().windows(13).position(|w| w == b"snapshot.json").unwrap() - 7;
            [&forged.root()[..at], &dots, &forged.root()[at..]].concat()
        } else {
            [forged.root(), dots].concat()
        };
        refused(&sandbox, &forged.with_root(root).file(BRANCH), "holds what no backup");
    }
    // Links, submodules, programs, an entry twice, in another order; a tree where a file belongs.
    let forged = Forged::new();
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
        refused(&sandbox, &Forged::new().with_root(bad).file(BRANCH), "holds what no backup");
    }
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let sandbox = small();
    for path in ["../../evil", "/evil", "secrets.json", ".stvc/config", "worlds/x.json"] {
        let forged = Forged::new().with_manifest(|manifest| {
            manifest["files"][0]["path"] = path.into();
        });
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
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
        let forged = Forged::new().with_manifest(edit);
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
    }
}

#[test]
fn objects_that_are_missing_or_too_many_or_no_snapshots_are_refused() {
    let sandbox = small();
    let mut forged = Forged::new();
    forged.add(3, b"nobody's".to_vec());
    refused(&sandbox, &forged.file(BRANCH), "objects that no snapshot has");
    let all: Vec<_> = Forged::new().objects.keys().copied().collect();
    for id in all {
        let mut forged = Forged::new();
        forged.objects.remove(&id);
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
    }
    // The same object twice.
    let forged = Forged::new();
    let mut records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    records.push(records[0]);
    let head = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    refused(&sandbox, &forge(&head, &records), "twice");
    // A commit that is no snapshot, and no commit at all.
    let mut forged = Forged::new();
    let (_, commit) = forged.objects.remove(&forged.commit).unwrap();
    let commit = String::from_utf8(commit).unwrap();
    forged.commit = forged.add(1, commit.replace("Stvc-Content", "Content").into_bytes());
    refused(&sandbox, &forged.file(BRANCH), "no snapshot");
    let mut forged = Forged::new();
    forged.objects.remove(&forged.commit);
    forged.commit = forged.add(1, b"tree of nothing".to_vec());
    refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
}

/// What the header says is held against what comes.
#[test]
fn a_header_that_says_something_else_is_refused() {
    let sandbox = small();
    let forged = Forged::new();
    let records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    let right = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    let wrong = [
        ("snapshots", json!(2), "counts are wrong"),
        ("objects", json!(records.len() + 1), "counts are wrong"),
        ("taken", json!("some day"), "no time"),
        ("timelines", json!(["Mira"]), "its header"),
        ("whole", json!("yes"), "its header"),
    ];
    for (field, value, words) in wrong {
        let mut header = right.clone();
        header[field] = value;
        refused(&sandbox, &forge_as_it_is(&header, &records), words);
    }
}
