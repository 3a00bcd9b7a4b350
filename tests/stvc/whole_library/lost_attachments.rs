//! A lost or damaged attachment is reported and prevents nothing else.

use std::path::Path;

use super::attachments::{MAP, NOTES, with_attachments};
use super::*;
use crate::common::forged_snapshot::{ForgedSnapshot, Node};
use crate::common::{Answer, make_writable, unpack_all};

const CHAT: &str = "chats/Mira/one.jsonl";

/// Damage to the attachments of both chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    BlobMissing,
    BlobCorrupt,
    /// A forged tree: the blob differs from the list.
    BlobDiffers,
    ListMissing,
    ListCorrupt,
    /// A forged tree: the list differs from the manifest.
    ListDiffers,
    /// A forged tree: a folder in place of the list.
    ListIsFolder,
    FilesFolderMissing,
    FolderMissing,
}

use Damage::*;

const ALL: [Damage; 9] = [
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

impl Damage {
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
            BlobMissing => delete_object(&sandbox.store(), &id("map.png")),
            BlobCorrupt => corrupt(&sandbox.store(), &id("map.png")),
            ListMissing => delete_object(&sandbox.store(), &id("list.json")),
            ListCorrupt => corrupt(&sandbox.store(), &id("list.json")),
            FilesFolderMissing => delete_object(&sandbox.store(), &id("attachments/files")),
            FolderMissing => delete_object(&sandbox.store(), &id("attachments")),
            BlobDiffers => forge(sandbox, |forged| {
                for file in forged.folder_at("attachments/files") {
                    if String::from_utf8_lossy(&file.name).contains("map.png") {
                        file.node = Node::Blob(vec![8; 3000]);
                    }
                }
            }),
            ListDiffers => forge(sandbox, |forged| {
                let list = &mut forged.entry_at("attachments/list.json").node;
                *list = Node::Blob(b"[]".to_vec());
            }),
            ListIsFolder => forge(sandbox, |forged| {
                let list = forged.entry_at("attachments/list.json");
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

/// Replaces the snapshots of both chats by forged ones.
fn forge(sandbox: &Sandbox, edit: impl Fn(&mut ForgedSnapshot)) {
    let store = stvc::internals::store::Store::open(&sandbox.store()).unwrap();
    for name in ["one", "two"] {
        let branch = format!("refs/heads/chats/Mira/{name}");
        let mut forged = ForgedSnapshot::read(&store, sandbox.git(&["rev-parse", &branch]).trim());
        edit(&mut forged);
        sandbox.git(&["update-ref", &branch, &forged.write(&store, None)]);
    }
}

fn remove(sandbox: &Sandbox, paths: &[&str]) {
    paths.iter().for_each(|path| fs::remove_file(sandbox.path(path)).unwrap());
}

/// Asserts that the command did everything but the attachment, and reported it.
#[track_caller]
fn assert_loss_reported(answer: Answer, damage: Damage) -> Answer {
    let answer = answer.exits(3);
    let (code, subject) = damage.finding();
    let found = answer.of_type("finding");
    let is_it = |line: &&Value| line["code"] == code && line["level"] == "error";
    let loss = found.iter().filter(is_it).find(|line| line["subject"] == subject);
    let loss = loss.unwrap_or_else(|| panic!("{damage:?}: {found:?}"));
    assert!(loss["remedy"].is_string(), "{loss}");
    let summary = &answer.of_type("summary")[0];
    assert_eq!(summary["ok"], false, "{damage:?}: {summary}");
    assert!(summary["attachments_lost"].as_u64() > Some(0), "{damage:?}: {summary}");
    answer
}

/// Calls `test` once per kind of damage, with the library and its chat.
fn with_each_harm(test: impl Fn(Damage, &mut Sandbox, &[u8])) {
    for damage in ALL {
        let mut sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        damage.apply(&sandbox);
        let chat = sandbox.read(CHAT);
        test(damage, &mut sandbox, &chat);
    }
}

#[test]
fn req_91_restore_writes_chat_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        let notes = sandbox.read(NOTES);
        let restored = |answer: Answer, notes_are_there: bool| {
            assert_loss_reported(answer, damage);
            assert_eq!(sandbox.read(CHAT), chat, "{damage:?}");
            assert!(!sandbox.path(MAP).exists(), "{damage:?}");
            assert_eq!(sandbox.path(NOTES).exists(), notes_are_there, "{damage:?}");
            if notes_are_there {
                assert_eq!(sandbox.read(NOTES), notes, "{damage:?}");
            }
        };
        remove(sandbox, &[CHAT, MAP, NOTES]);
        let planned = sandbox.json(&["restore", "Mira/one", "--dry-run"]).exits(3);
        assert!(!sandbox.path(CHAT).exists());
        let done = sandbox.json(&["restore", "Mira/one"]);
        let mut files = planned.of_type("file");
        // Only a plan has previews.
        files.iter_mut().for_each(|file| drop(file.as_object_mut().unwrap().remove("preview")));
        assert_eq!(files, done.of_type("file"), "{damage:?}");
        restored(done, damage.spares_notes());
        remove(sandbox, &[CHAT]);
        restored(sandbox.json(&["restore", "Mira/one", "--only", "chat"]), damage.spares_notes());
        // Undone as one operation.
        sandbox.append(CHAT, &message("one", 77));
        let longer = sandbox.read(CHAT);
        let head = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one"]);
        let answer = sandbox.json(&["restore", head.trim(), "--overwrite"]);
        restored(answer, damage.spares_notes());
        sandbox.stvc(&["undo"]).exits(0);
        assert_eq!(sandbox.read(CHAT), longer, "{damage:?}");
        let words = sandbox.stvc(&["restore", head.trim(), "--overwrite"]).exits(3);
        let lost = if damage == FilesFolderMissing { "2 attachments" } else { "1 attachment" };
        let summary = format!("Not restored: {lost}. See the findings.");
        assert!(words.stdout.contains(&summary), "{damage:?}: {}", words.stdout);
    });
}

#[test]
fn req_91_restore_all_restores_every_chat_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        let other = sandbox.read("chats/Mira/two.jsonl");
        remove(sandbox, &[CHAT, "chats/Mira/two.jsonl", MAP, NOTES]);
        let answer = assert_loss_reported(sandbox.json(&["restore", "--all"]), damage);
        assert!(answer.of_type("failed").is_empty(), "{damage:?}: {}", answer.stdout);
        assert_eq!(sandbox.read(CHAT), chat, "{damage:?}");
        assert_eq!(sandbox.read("chats/Mira/two.jsonl"), other, "{damage:?}");
        assert!(!sandbox.path(MAP).exists(), "{damage:?}");
    });
}

#[test]
fn req_91_chat_can_be_copied_and_forked_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        remove(sandbox, &[MAP, NOTES]);
        assert_loss_reported(sandbox.json(&["restore", "Mira/one", "--as", "What if"]), damage);
        assert!(sandbox.path("chats/Mira/What if.jsonl").exists(), "{damage:?}");
        assert_loss_reported(
            sandbox.json(&["fork", "Mira/one", "--at", "1", "--as", "Early"]),
            damage,
        );
        assert!(sandbox.path("chats/Mira/Early.jsonl").exists(), "{damage:?}");
        let to = sandbox.folder().join("to");
        let planned = sandbox.json(&["restore", "Mira/one", "--to", text(&to), "--dry-run"]);
        let done =
            assert_loss_reported(sandbox.json(&["restore", "Mira/one", "--to", text(&to)]), damage);
        assert_eq!(planned.of_type("file"), done.of_type("file"), "{damage:?}");
        let written = files(&to);
        assert_eq!(written[CHAT], chat, "{damage:?}");
        assert!(!written.contains_key(MAP), "{damage:?}");
        assert_eq!(written.contains_key(NOTES), damage.spares_notes(), "{damage:?}");
        // A lorebook has no attachments.
        let to = sandbox.folder().join("book");
        let book = ["restore", "Mira/one", "--only", "lorebook", "--to", text(&to)];
        let answer = sandbox.json(&book).exits(0);
        assert!(!answer.stdout.contains("attachment-l"), "{damage:?}: {}", answer.stdout);
    });
}

#[test]
fn req_91_attachment_present_in_the_library_is_not_reported() {
    for damage in [BlobMissing, BlobCorrupt, BlobDiffers] {
        let sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        damage.apply(&sandbox);
        let chat = sandbox.read(CHAT);
        remove(&sandbox, &[CHAT]);
        let answer = sandbox.stvc(&["restore", "Mira/one"]).exits(0);
        assert!(!answer.stderr.contains("warning"), "{}", answer.stderr);
        assert!(!answer.stderr.contains("error"), "{}", answer.stderr);
        assert_eq!(sandbox.read(CHAT), chat);
    }
}

/// Asserts that the chat and the remaining attachment arrived.
#[track_caller]
fn assert_arrived(other: &Sandbox, damage: Damage, chat: &[u8]) {
    let answer = assert_loss_reported(other.json(&["restore", "--all"]), damage);
    assert!(answer.of_type("failed").is_empty(), "{damage:?}: {}", answer.stdout);
    assert_eq!(other.read(CHAT), chat, "{damage:?}");
    assert!(!other.path(MAP).exists(), "{damage:?}");
    assert_eq!(other.path(NOTES).exists(), damage.spares_notes(), "{damage:?}");
    let checked = other.json(&["check"]).exits(1);
    let codes: std::collections::BTreeSet<_> =
        checked.of_type("finding").iter().map(|line| line["code"].to_string()).collect();
    let known_codes = [damage.finding().0, "object-damaged", "snapshot-odd", "kept-damaged"];
    assert!(codes.iter().all(|code| known_codes.contains(&code.trim_matches('"'))), "{codes:?}");
    assert!(codes.contains(&format!("{:?}", damage.finding().0)), "{damage:?}: {codes:?}");
    assert_eq!(checked.of_type("summary")[0]["damaged"], 0, "{damage:?}");
}

#[test]
fn req_91_backup_and_import_transfer_chat_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        let all = sandbox.folder().join("all.stvc");
        assert_loss_reported(sandbox.json(&["backup", text(&all), "--no-snapshot"]), damage);
        let mirror = sandbox.folder().join("mirror");
        assert_loss_reported(sandbox.json(&["backup", text(&mirror), "--no-snapshot"]), damage);
        for copy in [all, mirror] {
            let other = Sandbox::empty();
            let answer = assert_loss_reported(other.json(&["import", text(&copy)]), damage);
            let summary = &answer.of_type("summary")[0];
            assert_eq!(summary["left_out"], 0, "{damage:?}: {summary}");
            assert_arrived(&other, damage, chat);
        }
    });
}

#[test]
fn req_91_sync_transfers_chat_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        // The file is not stored again while it is missing.
        remove(sandbox, &[MAP, NOTES]);
        let folder = sandbox.folder().join("shared");
        assert_loss_reported(sandbox.json(&["sync", text(&folder)]), damage);
        let other = Sandbox::empty();
        assert_loss_reported(other.json(&["sync", text(&folder)]), damage);
        assert_eq!(other.read(CHAT), chat, "{damage:?}");
        assert!(!other.path(MAP).exists(), "{damage:?}");
        assert_eq!(other.path(NOTES).exists(), damage.spares_notes(), "{damage:?}");
        other.append(CHAT, &message("one", 12));
        other.json(&["sync", text(&folder)]);
        sandbox.json(&["sync", text(&folder)]);
        assert_eq!(sandbox.read(CHAT), other.read(CHAT), "{damage:?}");
    });
}

#[test]
fn req_91_check_reports_lost_attachment_and_no_damaged_snapshot() {
    with_each_harm(|damage, sandbox, _| {
        let answer = sandbox.json(&["check"]).exits(1);
        let (code, subject) = damage.finding();
        let found = answer.of_type("finding");
        let is_it = |line: &&Value| line["code"] == code && line["subject"] == subject;
        assert_eq!(found.iter().filter(is_it).count(), 1, "{damage:?}: {found:?}");
        assert_eq!(answer.of_type("summary")[0]["damaged"], 0, "{damage:?}");
        assert!(!answer.stdout.contains("kept-damaged"), "{damage:?}: {}", answer.stdout);
        let shown = sandbox.json(&["show", "Mira/one"]).exits(0);
        let corrupt_bytes = [BlobCorrupt, BlobDiffers].contains(&damage);
        assert!(corrupt_bytes || shown.stdout.contains(code), "{damage:?}: {}", shown.stdout);
        // While the files exist, the next snapshot stores them again.
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        remove(sandbox, &[MAP, NOTES]);
        sandbox.json(&["restore", "Mira/one"]).exits(0);
        assert_eq!(sandbox.read(MAP), [7; 3000], "{damage:?}");
    });
}

#[test]
fn req_91_gc_packs_all_other_objects_when_attachment_is_lost() {
    with_each_harm(|damage, sandbox, chat| {
        remove(sandbox, &[MAP, NOTES]);
        sandbox.append(CHAT, &message("one", 12));
        sandbox.stvc(&["snapshot"]).exits(0);
        let head = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one~1"]);
        sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
        sandbox.json(&["restore", head.trim(), "--overwrite"]).exits(3);
        assert_eq!(sandbox.read(CHAT), chat, "{damage:?}");
        let checked = sandbox.json(&["check"]).exits(1);
        assert_eq!(checked.of_type("summary")[0]["damaged"], 0, "{damage:?}");
        sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
        remove(sandbox, &["chats/Mira/two.jsonl"]);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["erase", "Mira/two", "--yes"]).exits(0);
    });
}

#[test]
fn req_91_undo_does_not_remove_an_attachment_that_the_store_lost() {
    for damage in [BlobMissing, BlobCorrupt] {
        let sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        let map = sandbox.read(MAP);
        remove(&sandbox, &[CHAT, MAP]);
        sandbox.stvc(&["restore", "Mira/one"]).exits(0);
        damage.apply(&sandbox);
        // The only copy is not removed.
        assert_loss_reported(sandbox.json(&["undo"]), damage);
        assert!(!sandbox.path(CHAT).exists(), "{damage:?}");
        assert_eq!(sandbox.read(MAP), map, "{damage:?}");
        sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    }
}

#[test]
fn req_91_forged_attachment_list_is_ignored() {
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
        forged.edit_manifest(|manifest| {
            manifest["attachments"]["blake3"] =
                blake3::hash(list.as_bytes()).to_hex().to_string().into();
        });
        forged.entry_at("attachments/list.json").node = Node::Blob(list.into_bytes());
    });
    let settings = sandbox.read("settings.json");
    remove(&sandbox, &[CHAT, MAP, NOTES, "settings.json"]);
    let answer = assert_loss_reported(sandbox.json(&["restore", "Mira/one"]), BlobDiffers);
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

/// A backup cannot contain both a file and a folder with one id.
#[test]
fn snapshot_with_a_folder_as_attachment_is_invalid() {
    let sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    forge(&sandbox, |forged| {
        for file in forged.folder_at("attachments/files") {
            if String::from_utf8_lossy(&file.name).contains("map.png") {
                file.node = Node::Tree(Vec::new());
            }
        }
    });
    let findings = sandbox.json(&["check"]).exits(1).of_type("finding");
    let is_about_attachment = |line: &&Value| line["code"] == "snapshot-odd";
    let messages: Vec<_> =
        findings.iter().filter(is_about_attachment).map(|line| line["message"].clone()).collect();
    assert_eq!(messages.len(), 2, "{findings:?}");
    for message in messages {
        assert!(message.as_str().unwrap().contains("is a tree instead of a blob"), "{message}");
    }
}
