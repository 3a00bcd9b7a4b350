//! A lost or damaged attachment is reported by itself and prevents nothing else.

use std::path::Path;

use super::attachments::{MAP, NOTES, with_attachments};
use super::*;
use crate::common::forged_snapshot::{Forge, Node};
use crate::common::{Answer, make_writable, unpack_all};

const CHAT: &str = "chats/Mira/one.jsonl";

/// What happened to the attachments of both chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    BlobMissing,
    BlobCorrupt,
    /// A forged tree: the blob is another than the list says.
    BlobDiffers,
    ListMissing,
    ListCorrupt,
    /// A forged tree: the list is another than the manifest says.
    ListDiffers,
    /// A forged tree: a folder is where the list belongs.
    ListIsFolder,
    FilesFolderMissing,
    FolderMissing,
}

use Harm::*;

const ALL: [Harm; 9] = [
    BlobMissing,
    BlobCorrupt,
    BlobDiffers,
    ListMissing,
    ListCorrupt,
    ListDiffers,
    ListIsFolder,
    FilesFolderMissing,
    FolderMissing,
];

impl Harm {
    /// Whether only the map is lost.
    fn spares_notes(self) -> bool {
        matches!(self, BlobMissing | BlobCorrupt | BlobDiffers)
    }

    fn finding(self) -> (&'static str, &'static str) {
        match self.spares_notes() || self == FilesFolderMissing {
            true => ("attachment-lost", MAP),
            false => ("attachment-list-lost", "chats/Mira/one"),
        }
    }

    fn apply(self, sandbox: &Sandbox) {
        let id = |path: &str| {
            let tree = "refs/heads/chats/Mira/one";
            let found = sandbox.git(&["ls-tree", "-r", "-t", tree]);
            let line = found.lines().find(|line| line.ends_with(path)).unwrap();
            line.split_whitespace().nth(2).unwrap().to_owned()
        };
        match self {
            BlobMissing => lose(&sandbox.store(), &id("map.png")),
            BlobCorrupt => corrupt(&sandbox.store(), &id("map.png")),
            ListMissing => lose(&sandbox.store(), &id("list.json")),
            ListCorrupt => corrupt(&sandbox.store(), &id("list.json")),
            FilesFolderMissing => lose(&sandbox.store(), &id("attachments/files")),
            FolderMissing => lose(&sandbox.store(), &id("attachments")),
            BlobDiffers => forge(sandbox, |forged| {
                for file in forged.at("attachments/files") {
                    if String::from_utf8_lossy(&file.name).contains("map.png") {
                        file.node = Node::Blob(vec![8; 3000]);
                    }
                }
            }),
            ListDiffers => forge(sandbox, |forged| {
                let list = &mut forged.of("attachments/list.json").node;
                *list = Node::Blob(b"[]".to_vec());
            }),
            ListIsFolder => forge(sandbox, |forged| {
                let list = forged.of("attachments/list.json");
                (list.mode, list.node) = ("40000", Node::Tree(Vec::new()));
            }),
        }
    }
}

fn corrupt(store: &Path, id: &str) {
    unpack_all(store);
    let file = store.join("objects").join(&id[..2]).join(&id[2..]);
    make_writable(&file);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x55);
    fs::write(file, bytes).unwrap();
}

/// Puts forged snapshots in the place of those of both chats.
fn forge(sandbox: &Sandbox, edit: impl Fn(&mut Forge)) {
    let store = stvc::store::Store::open(&sandbox.store()).unwrap();
    for name in ["one", "two"] {
        let branch = format!("refs/heads/chats/Mira/{name}");
        let mut forged = Forge::read(&store, sandbox.git(&["rev-parse", &branch]).trim());
        edit(&mut forged);
        sandbox.git(&["update-ref", &branch, &forged.write(&store, None)]);
    }
}

fn remove(sandbox: &Sandbox, paths: &[&str]) {
    paths.iter().for_each(|path| fs::remove_file(sandbox.path(path)).unwrap());
}

/// The command did all but the attachment, and said so.
#[track_caller]
fn names_the_loss(answer: Answer, harm: Harm) -> Answer {
    let answer = answer.exits(3);
    let (code, subject) = harm.finding();
    let found = answer.of_type("finding");
    let is_it = |line: &&Value| line["code"] == code && line["level"] == "error";
    let loss = found.iter().filter(is_it).find(|line| line["subject"] == subject);
    let loss = loss.unwrap_or_else(|| panic!("{harm:?}: {found:?}"));
    assert!(loss["remedy"].is_string(), "{loss}");
    let summary = &answer.of_type("summary")[0];
    assert_eq!(summary["ok"], false, "{harm:?}: {summary}");
    assert!(summary["attachments_lost"].as_u64() > Some(0), "{harm:?}: {summary}");
    answer
}

/// Calls `test` with a library in whose store each harm was done, and with its chat.
fn with_each_harm(test: impl Fn(Harm, &mut Sandbox, &[u8])) {
    for harm in ALL {
        let mut sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        harm.apply(&sandbox);
        let chat = sandbox.read(CHAT);
        test(harm, &mut sandbox, &chat);
    }
}

#[test]
fn req_91_restore_writes_chat_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        let notes = sandbox.read(NOTES);
        let restored = |answer: Answer, notes_are_there: bool| {
            names_the_loss(answer, harm);
            assert_eq!(sandbox.read(CHAT), chat, "{harm:?}");
            assert!(!sandbox.path(MAP).exists(), "{harm:?}");
            assert_eq!(sandbox.path(NOTES).exists(), notes_are_there, "{harm:?}");
            if notes_are_there {
                assert_eq!(sandbox.read(NOTES), notes, "{harm:?}");
            }
        };
        remove(sandbox, &[CHAT, MAP, NOTES]);
        let planned = sandbox.json(&["restore", "Mira/one", "--dry-run"]).exits(3);
        assert!(!sandbox.path(CHAT).exists());
        let done = sandbox.json(&["restore", "Mira/one"]);
        assert_eq!(planned.of_type("file"), done.of_type("file"), "{harm:?}");
        restored(done, harm.spares_notes());
        remove(sandbox, &[CHAT]);
        restored(sandbox.json(&["restore", "Mira/one", "--only", "chat"]), harm.spares_notes());
        // All of it is undone as one.
        sandbox.append(CHAT, &message("one", 77));
        let longer = sandbox.read(CHAT);
        let head = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one"]);
        let answer = sandbox.json(&["restore", head.trim(), "--overwrite"]);
        restored(answer, harm.spares_notes());
        sandbox.stvc(&["undo"]).exits(0);
        assert_eq!(sandbox.read(CHAT), longer, "{harm:?}");
        let words = sandbox.stvc(&["restore", head.trim(), "--overwrite"]).exits(3);
        let lost = if harm == FilesFolderMissing { "2 attachments" } else { "1 attachment" };
        let said = format!("Not restored: {lost}. The findings say why.");
        assert!(words.stdout.contains(&said), "{harm:?}: {}", words.stdout);
    });
}

#[test]
fn req_91_restore_of_all_brings_back_every_chat_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        let other = sandbox.read("chats/Mira/two.jsonl");
        remove(sandbox, &[CHAT, "chats/Mira/two.jsonl", MAP, NOTES]);
        let answer = names_the_loss(sandbox.json(&["restore", "--all"]), harm);
        assert!(answer.of_type("failed").is_empty(), "{harm:?}: {}", answer.stdout);
        assert_eq!(sandbox.read(CHAT), chat, "{harm:?}");
        assert_eq!(sandbox.read("chats/Mira/two.jsonl"), other, "{harm:?}");
        assert!(!sandbox.path(MAP).exists(), "{harm:?}");
    });
}

#[test]
fn req_91_copies_of_chat_are_made_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        remove(sandbox, &[MAP, NOTES]);
        names_the_loss(sandbox.json(&["restore", "Mira/one", "--as", "What if"]), harm);
        assert!(sandbox.path("chats/Mira/What if.jsonl").exists(), "{harm:?}");
        names_the_loss(sandbox.json(&["fork", "Mira/one", "--at", "1", "--as", "Early"]), harm);
        assert!(sandbox.path("chats/Mira/Early.jsonl").exists(), "{harm:?}");
        let to = sandbox.folder().join("to");
        let planned = sandbox.json(&["restore", "Mira/one", "--to", text(&to), "--dry-run"]);
        let done = names_the_loss(sandbox.json(&["restore", "Mira/one", "--to", text(&to)]), harm);
        assert_eq!(planned.of_type("file"), done.of_type("file"), "{harm:?}");
        let written = files(&to);
        assert_eq!(written[CHAT], chat, "{harm:?}");
        assert!(!written.contains_key(MAP), "{harm:?}");
        assert_eq!(written.contains_key(NOTES), harm.spares_notes(), "{harm:?}");
        // A lorebook has no attachments.
        let to = sandbox.folder().join("book");
        let book = ["restore", "Mira/one", "--only", "lorebook", "--to", text(&to)];
        let answer = sandbox.json(&book).exits(0);
        assert!(!answer.stdout.contains("attachment-l"), "{harm:?}: {}", answer.stdout);
    });
}

#[test]
fn req_91_lost_attachment_that_is_in_the_library_is_no_reason_to_tell() {
    for harm in [BlobMissing, BlobCorrupt, BlobDiffers] {
        let sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        harm.apply(&sandbox);
        let chat = sandbox.read(CHAT);
        remove(&sandbox, &[CHAT]);
        let answer = sandbox.stvc(&["restore", "Mira/one"]).exits(0);
        assert!(!answer.stderr.contains("warning"), "{}", answer.stderr);
        assert!(!answer.stderr.contains("error"), "{}", answer.stderr);
        assert_eq!(sandbox.read(CHAT), chat);
    }
}

/// What was taken in elsewhere: the chat, and the attachment that is left.
#[track_caller]
fn came_in(other: &Sandbox, harm: Harm, chat: &[u8]) {
    let answer = names_the_loss(other.json(&["restore", "--all"]), harm);
    assert!(answer.of_type("failed").is_empty(), "{harm:?}: {}", answer.stdout);
    assert_eq!(other.read(CHAT), chat, "{harm:?}");
    assert!(!other.path(MAP).exists(), "{harm:?}");
    assert_eq!(other.path(NOTES).exists(), harm.spares_notes(), "{harm:?}");
    let checked = other.json(&["check"]).exits(1);
    let codes: std::collections::BTreeSet<_> =
        checked.of_type("finding").iter().map(|line| line["code"].to_string()).collect();
    let told = [harm.finding().0, "object-damaged", "snapshot-odd", "kept-damaged"];
    assert!(codes.iter().all(|code| told.contains(&code.trim_matches('"'))), "{codes:?}");
    assert!(codes.contains(&format!("{:?}", harm.finding().0)), "{harm:?}: {codes:?}");
    assert_eq!(checked.of_type("summary")[0]["damaged"], 0, "{harm:?}");
}

#[test]
fn req_91_backup_and_import_carry_chat_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        let all = sandbox.folder().join("all.stvc");
        names_the_loss(sandbox.json(&["backup", text(&all), "--no-snapshot"]), harm);
        let mirror = sandbox.folder().join("mirror");
        names_the_loss(sandbox.json(&["backup", text(&mirror), "--no-snapshot"]), harm);
        for copy in [all, mirror] {
            let other = Sandbox::empty();
            let answer = names_the_loss(other.json(&["import", text(&copy)]), harm);
            let summary = &answer.of_type("summary")[0];
            assert_eq!(summary["left_out"], 0, "{harm:?}: {summary}");
            came_in(&other, harm, chat);
        }
    });
}

#[test]
fn req_91_sync_carries_chat_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        // The file is not stored again while it is gone.
        remove(sandbox, &[MAP, NOTES]);
        let folder = sandbox.folder().join("shared");
        names_the_loss(sandbox.json(&["sync", text(&folder)]), harm);
        let other = Sandbox::empty();
        names_the_loss(other.json(&["sync", text(&folder)]), harm);
        assert_eq!(other.read(CHAT), chat, "{harm:?}");
        assert!(!other.path(MAP).exists(), "{harm:?}");
        assert_eq!(other.path(NOTES).exists(), harm.spares_notes(), "{harm:?}");
        other.append(CHAT, &message("one", 12));
        other.json(&["sync", text(&folder)]);
        sandbox.json(&["sync", text(&folder)]);
        assert_eq!(sandbox.read(CHAT), other.read(CHAT), "{harm:?}");
    });
}

#[test]
fn req_91_check_names_lost_attachment_and_calls_no_snapshot_damaged() {
    with_each_harm(|harm, sandbox, _| {
        let answer = sandbox.json(&["check"]).exits(1);
        let (code, subject) = harm.finding();
        let found = answer.of_type("finding");
        let is_it = |line: &&Value| line["code"] == code && line["subject"] == subject;
        assert_eq!(found.iter().filter(is_it).count(), 1, "{harm:?}: {found:?}");
        assert_eq!(answer.of_type("summary")[0]["damaged"], 0, "{harm:?}");
        assert!(!answer.stdout.contains("kept-damaged"), "{harm:?}: {}", answer.stdout);
        let shown = sandbox.json(&["show", "Mira/one"]).exits(0);
        let corrupt_bytes = [BlobCorrupt, BlobDiffers].contains(&harm);
        assert!(corrupt_bytes || shown.stdout.contains(code), "{harm:?}: {}", shown.stdout);
        // While the files are there, the next snapshot stores them again.
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        remove(sandbox, &[MAP, NOTES]);
        sandbox.json(&["restore", "Mira/one"]).exits(0);
        assert_eq!(sandbox.read(MAP), [7; 3000], "{harm:?}");
    });
}

#[test]
fn req_91_gc_packs_the_rest_when_attachment_is_lost() {
    with_each_harm(|harm, sandbox, chat| {
        remove(sandbox, &[MAP, NOTES]);
        sandbox.append(CHAT, &message("one", 12));
        sandbox.stvc(&["snapshot"]).exits(0);
        let head = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one~1"]);
        sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
        sandbox.json(&["restore", head.trim(), "--overwrite"]).exits(3);
        assert_eq!(sandbox.read(CHAT), chat, "{harm:?}");
        let checked = sandbox.json(&["check"]).exits(1);
        assert_eq!(checked.of_type("summary")[0]["damaged"], 0, "{harm:?}");
        sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
        remove(sandbox, &["chats/Mira/two.jsonl"]);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["erase", "Mira/two", "--yes"]).exits(0);
    });
}

#[test]
fn req_91_undo_leaves_attachment_that_the_store_lost() {
    for harm in [BlobMissing, BlobCorrupt] {
        let sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        let map = sandbox.read(MAP);
        remove(&sandbox, &[CHAT, MAP]);
        sandbox.stvc(&["restore", "Mira/one"]).exits(0);
        harm.apply(&sandbox);
        // Its only copy is not removed.
        names_the_loss(sandbox.json(&["undo"]), harm);
        assert!(!sandbox.path(CHAT).exists(), "{harm:?}");
        assert_eq!(sandbox.read(MAP), map, "{harm:?}");
        sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    }
}

#[test]
fn req_91_forged_list_leads_nobody_astray() {
    let sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    forge(&sandbox, |forged| {
        let hash = blake3::hash(&[7; 3000]).to_hex().to_string();
        let listed = |path: &str, bytes: u64| json!({"path": path, "bytes": bytes, "blake3": hash});
        let list = json!([
            listed(MAP, u64::MAX),
            listed(MAP, 3000),
            listed("user/images/Mira/other.png", u64::MAX),
            listed("settings.json", 3000),
        ]);
        let list = list.to_string();
        forged.manifest(|manifest| {
            manifest["attachments"]["blake3"] =
                blake3::hash(list.as_bytes()).to_hex().to_string().into();
        });
        forged.of("attachments/list.json").node = Node::Blob(list.into_bytes());
    });
    let settings = sandbox.read("settings.json");
    remove(&sandbox, &[CHAT, MAP, NOTES, "settings.json"]);
    let answer = names_the_loss(sandbox.json(&["restore", "Mira/one"]), BlobDiffers);
    assert_eq!(answer.of_type("summary")[0]["attachments_lost"], 2);
    assert!(sandbox.path(CHAT).exists() && !sandbox.path(MAP).exists());
    assert!(!sandbox.path("settings.json").exists());
    sandbox.write("settings.json", settings);
    let all = sandbox.folder().join("all.stvc");
    sandbox.json(&["backup", text(&all), "--no-snapshot"]).exits(3);
    let other = Sandbox::empty();
    other.json(&["import", text(&all)]).exits(3);
    other.json(&["restore", "Mira/one"]).exits(3);
    assert_eq!(other.read(CHAT), sandbox.read(CHAT));
    sandbox.append(CHAT, &message("one", 12));
    sandbox.stvc(&["snapshot"]).exits(0);
}

/// No copy could hold both a file and a folder under one id.
#[test]
fn snapshot_with_an_attachment_that_is_another_kind_of_object_is_odd() {
    let sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    forge(&sandbox, |forged| {
        for file in forged.at("attachments/files") {
            if String::from_utf8_lossy(&file.name).contains("map.png") {
                file.node = Node::Tree(Vec::new());
            }
        }
    });
    let findings = sandbox.json(&["check"]).exits(1).of_type("finding");
    let is_told = |line: &&Value| line["code"] == "snapshot-odd";
    let told: Vec<_> =
        findings.iter().filter(is_told).map(|line| line["message"].clone()).collect();
    assert_eq!(told.len(), 2, "{findings:?}");
    for message in told {
        assert!(message.as_str().unwrap().contains("is a tree where a blob belongs"), "{message}");
    }
}
