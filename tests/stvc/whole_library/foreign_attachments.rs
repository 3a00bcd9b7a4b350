//! Attachments chosen by others: a backup or a remote cannot give commands, and brings no code
//! without a request.

use super::attachments::{MAP, NOTES, with_attachments};
use super::*;
use crate::common::devices::{sync_until_equal, synced_pair};
use crate::common::forged_snapshot::{ForgedSnapshot, Node};

const CHAT: &str = "chats/Mira/one.jsonl";
const PAGE: &str = "user/files/3_4.html";
const DRAWING: &str = "user/images/Mira/5.svg";

/// Renames the notes of the chat `one`, in the snapshot alone.
fn forge_name(sandbox: &Sandbox, name: &str) {
    let store = stvc::internals::store::Store::open(&sandbox.store()).unwrap();
    let branch = "refs/heads/chats/Mira/one";
    let mut forged = ForgedSnapshot::read(&store, sandbox.git(&["rev-parse", branch]).trim());
    let list = String::from_utf8(forged.bytes("attachments/list.json")).unwrap();
    let list = list.replace(NOTES, name);
    forged.edit_manifest(|manifest| {
        manifest["attachments"]["blake3"] =
            blake3::hash(list.as_bytes()).to_hex().to_string().into();
    });
    forged.entry_at("attachments/list.json").node = Node::Blob(list.into_bytes());
    let files = forged.folder_at("attachments/files");
    let file = files.iter_mut().find(|it| it.name.ends_with(b"1_2.txt")).unwrap();
    let (old, new) = (NOTES.rsplit('/').next().unwrap(), name.rsplit('/').next().unwrap());
    file.name = String::from_utf8(file.name.clone()).unwrap().replace(old, new).into_bytes();
    sandbox.git(&["update-ref", branch, &forged.write(&store, None)]);
}

/// Asserts that chat and picture arrived and that one file was refused.
#[track_caller]
fn assert_refused(findings: &[Value], path: &str) -> Value {
    let is_it = |it: &&Value| it["code"] == "attachment-refused" && it["subject"] == path;
    findings.iter().find(is_it).unwrap_or_else(|| panic!("{path}: {findings:?}")).clone()
}

#[test]
fn import_refuses_attachment_names_reserved_for_stvc() {
    let request = format!("user/files/stvc-req-{:032x}.json", 7);
    for name in [&*request, "user/files/STVC-status.json", "user/files/.stvc-1-2.tmp"] {
        let sandbox = with_attachments();
        sandbox.stvc(&["snapshot"]).exits(0);
        forge_name(&sandbox, name);
        let check = sandbox.json(&["check"]).exits(0);
        assert_refused(&check.of_type("finding"), name);
        let all = sandbox.folder().join("all.stvc");
        sandbox.json(&["backup", text(&all), "--no-snapshot"]);

        let other = Sandbox::empty();
        let import = other.json(&["import", text(&all)]).exits(3);
        assert_refused(&import.of_type("finding"), name);
        let restore = other.json(&["restore", "Mira/one"]).exits(3);
        assert_refused(&restore.of_type("finding"), name);
        assert_eq!(other.read(CHAT), sandbox.read(CHAT));
        assert_eq!(other.read(MAP), sandbox.read(MAP));
        // Neither with `--all` nor into a folder.
        fs::remove_file(other.path(CHAT)).unwrap();
        other.json(&["restore", "Mira/one", "--any-attachments"]).exits(3);
        let to = other.folder().join("to");
        other.json(&["restore", "Mira/one", "--to", text(&to)]).exits(3);
        let has = |root: &std::path::Path| {
            let found = fs::read_dir(root.join("user/files")).into_iter().flatten().flatten();
            found.into_iter().any(|it| it.file_name().to_string_lossy().contains("tvc-"))
        };
        assert!(!has(&other.library()) && !has(&to), "{name}");
    }
}

#[test]
fn sync_refuses_attachment_names_reserved_for_stvc() {
    let name = format!("user/files/stvc-req-{:032x}.json", 8);
    let sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    let folder = sandbox.folder().join("remote");
    sandbox.stvc(&["sync", text(&folder)]).exits(0);
    // Another device writes to the remote.
    forge_name(&sandbox, &name);
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one"]);
    git(
        &folder,
        &[
            "fetch",
            "--quiet",
            text(&sandbox.store()),
            &format!("+{}:refs/heads/chats/Mira/one", id.trim()),
        ],
    );
    let other = Sandbox::empty();
    let synced = other.json(&["sync", text(&folder)]).exits(3);
    assert_refused(&synced.of_type("finding"), &name);
    assert_eq!(other.read(CHAT), sandbox.read(CHAT));
    assert!(other.path(MAP).exists() && !other.path(&name).exists());
}

#[test]
fn snapshot_skips_attachment_names_reserved_for_stvc() {
    let sandbox = with_attachments();
    let name = "user/files/stvc-status.json";
    sandbox.write(name, "{}");
    sandbox.append(
        CHAT,
        &json!({ "mes": "x", "extra": { "file": { "url": format!("/{name}") } } }).to_string(),
    );
    let taken = sandbox.json(&["snapshot"]).exits(0);
    assert_refused(&taken.of_type("finding"), name);
    let list = sandbox.git(&["show", "refs/heads/chats/Mira/one:attachments/list.json"]);
    assert!(list.contains(MAP) && !list.contains("stvc-status"), "{list}");
}

/// Creates two chats that name an HTML page and an SVG, which a browser would run with
/// SillyTavern's rights.
fn with_pages() -> Sandbox {
    let sandbox = with_attachments();
    sandbox.write(PAGE, "<script>alert(1)</script>");
    sandbox.write(DRAWING, "<svg onload='alert(1)'/>");
    let urls = [PAGE, DRAWING].map(|path| json!({ "url": format!("/{path}") }));
    sandbox.append(CHAT, &json!({ "mes": "x", "extra": { "files": urls } }).to_string());
    sandbox
}

#[test]
fn import_writes_active_attachments_only_on_request() {
    let sandbox = with_pages();
    let taken = sandbox.json(&["snapshot"]).exits(0);
    assert!(taken.of_type("finding").iter().all(|it| it["code"] != "attachment-refused"));
    let all = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&all)]).exits(0);
    // The library's own attachments are restored.
    for path in [PAGE, DRAWING, CHAT] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["restore", "Mira/one"]).exits(0);
    assert!(sandbox.path(PAGE).exists() && sandbox.path(DRAWING).exists());

    let other = Sandbox::empty();
    other.stvc(&["import", text(&all)]).exits(0);
    let restored = other.json(&["restore", "Mira/one"]).exits(3);
    for path in [PAGE, DRAWING] {
        let finding = assert_refused(&restored.of_type("finding"), path);
        let remedy = finding["remedy"].as_str().unwrap();
        assert!(remedy.contains("stvc restore \"chats/Mira/one\" --any-attachments"), "{remedy}");
        assert!(!other.path(path).exists());
    }
    assert_eq!(restored.of_type("summary")[0]["attachments_lost"], 2);
    assert_eq!(other.read(CHAT), sandbox.read(CHAT));
    assert!(other.path(MAP).exists() && other.path(NOTES).exists());
    // An unwritten attachment is not lost: the next snapshot still has it.
    other.append(CHAT, &message("one", 12));
    other.stvc(&["snapshot"]).exits(0);
    let list = other.git(&["show", "refs/heads/chats/Mira/one:attachments/list.json"]);
    assert!(list.contains(PAGE) && list.contains(DRAWING), "{list}");
    for more in [&["--as", "copy"][..], &["--to", text(&other.folder().join("to"))]] {
        let arguments = [&["restore", "Mira/one"][..], more].concat();
        assert_refused(&other.json(&arguments).exits(3).of_type("finding"), PAGE);
    }
    other.json(&["restore", "chats/Mira/one", "--any-attachments"]).exits(0);
    for path in [PAGE, DRAWING] {
        assert_eq!(other.read(path), sandbox.read(path));
        fs::remove_file(other.path(path)).unwrap();
    }
    // The user has approved them.
    other.json(&["restore", "Mira/one"]).exits(0);
    assert!(other.path(PAGE).exists() && other.path(DRAWING).exists());
}

#[test]
fn sync_writes_the_chat_without_active_attachments() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(CHAT, chat("one", 3, None));
    });
    one.write(PAGE, "<script>alert(1)</script>");
    one.write(MAP, [7; 3000]);
    let urls = [PAGE, MAP].map(|path| json!({ "url": format!("/{path}") }));
    one.append(CHAT, &json!({ "mes": "x", "extra": { "files": urls } }).to_string());
    one.stvc(&["sync", text(&folder)]).exits(0);
    let dry = two.json(&["sync", text(&folder), "--dry-run"]).exits(3);
    assert_refused(&dry.of_type("finding"), PAGE);
    let synced = two.json(&["sync", text(&folder)]).exits(3);
    assert_refused(&synced.of_type("finding"), PAGE);
    assert_eq!(two.read(CHAT), one.read(CHAT));
    assert!(two.path(MAP).exists() && !two.path(PAGE).exists());
    // Reported once, and later syncs work.
    two.append(CHAT, &message("two", 9));
    two.stvc(&["sync", text(&folder)]).exits(0);
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(one.read(CHAT), two.read(CHAT));
    two.stvc(&["restore", "Mira/one", "--any-attachments"]).exits(0);
    assert_eq!(two.read(PAGE), one.read(PAGE));
}
