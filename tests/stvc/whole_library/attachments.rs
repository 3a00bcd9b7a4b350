//! Pictures and files that messages name.

use super::*;

/// Builds a message that names a picture and a text file.
fn with_files(n: usize) -> String {
    json!({
        "name": "Mira", "mes": n.to_string(),
        "extra": {
            "media": [{ "url": "/user/images/Mira/map.png", "type": "image" }],
            "files": [{ "url": "/user/files/1_2.txt", "name": "notes.txt" }],
        },
    })
    .to_string()
}

pub(super) const MAP: &str = "user/images/Mira/map.png";
pub(super) const NOTES: &str = "user/files/1_2.txt";

pub(super) fn with_attachments() -> Sandbox {
    let sandbox = library();
    sandbox.write(MAP, [7; 3000]);
    sandbox.write(NOTES, "what the harbour master wrote");
    for name in ["one", "two"] {
        sandbox.append(&format!("chats/Mira/{name}.jsonl"), &with_files(3));
    }
    sandbox
}

#[test]
fn attachments_of_messages_are_restored() {
    let mut sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 4..8 {
        sandbox.wait(60);
        sandbox.append("chats/Mira/one.jsonl", &with_files(n));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    // Each is stored once.
    let blobs = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    assert_eq!(blobs.lines().filter(|line| line.ends_with("blob 3000")).count(), 1);
    let list = "refs/heads/chats/Mira/one:attachments/list.json";
    assert!(sandbox.git(&["show", list]).contains(MAP));
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);

    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&backup)]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    for path in [MAP, NOTES] {
        assert_eq!(other.read(path), sandbox.read(path));
    }
    // A deleted attachment is restored alone; a changed one stays.
    fs::remove_file(other.path(MAP)).unwrap();
    other.write(NOTES, "something else");
    let missing = other.json(&["doctor"]).of_type("finding");
    let missing = missing.iter().find(|line| line["code"] == "attachment-missing").unwrap();
    assert!(missing["message"].as_str().unwrap().contains(MAP), "{missing}");
    let answer = other.json(&["restore", "Mira/one"]).exits(0);
    assert!(answer.stdout.contains("attachment-differs"), "{}", answer.stdout);
    assert_eq!(other.read(MAP), sandbox.read(MAP));
    assert_eq!(other.read(NOTES), b"something else");
    other.stvc(&["undo"]).exits(0);
    assert!(!other.path(MAP).exists());
    // A folder gets exactly the snapshot's files, and a fork those of its messages.
    let to = other.folder().join("to");
    other.stvc(&["restore", "Mira/one", "--to", text(&to)]).exits(0);
    assert!(files(&to).contains_key(MAP) && files(&to).contains_key(NOTES));
    other.stvc(&["restore", "Mira/one", "--as", "What if"]).exits(0);
    assert_eq!(other.read(MAP), sandbox.read(MAP));
    other.stvc(&["check"]).exits(0);
}

#[test]
fn invalid_and_oversized_attachments_are_skipped_and_reported() {
    let sandbox = with_attachments();
    let link = |url: &str| json!({ "extra": { "image": url, "files": [] } }).to_string();
    for url in [
        "/user/images/../../settings.json",
        "/user/images/gone.png",
        "/user/images/folder",
        "https://example.org/user/x",
    ] {
        sandbox.append("chats/Mira/two.jsonl", &link(url));
    }
    fs::create_dir_all(sandbox.path("user/images/folder")).unwrap();
    sandbox.stvc(&["init"]).exits(0);
    sandbox.stvc(&["config", "attachments", "1000"]).exits(0);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    let found = answer.of_type("finding");
    let left_out = found.iter().find(|line| line["code"] == "attachments-left-out").unwrap();
    assert!(
        left_out["message"]
            .as_str()
            .unwrap()
            .contains("beyond the limit are not stored: 1 in total"),
        "{left_out}"
    );
    let listed = sandbox.git(&["show", "refs/heads/chats/Mira/two:attachments/list.json"]);
    assert!(listed.contains(NOTES) && !listed.contains(MAP) && !listed.contains("settings"));
    // The next snapshot applies the new limit.
    sandbox.stvc(&["config", "attachments", "100000"]).exits(0);
    sandbox.append("chats/Mira/two.jsonl", &with_files(9));
    sandbox.stvc(&["snapshot"]).exits(0);
    let listed = sandbox.git(&["show", "refs/heads/chats/Mira/two:attachments/list.json"]);
    assert!(listed.contains(MAP));
    sandbox.stvc(&["config", "attachments", "a lot"]).exits(1);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn sync_transfers_attachments_to_the_other_device() {
    let one = with_attachments();
    let two = Sandbox::empty();
    let folder = one.folder().join("shared");
    for device in [&one, &two] {
        device.stvc(&["sync", text(&folder)]).exits(0);
    }
    assert_eq!(two.read(MAP), one.read(MAP));
    assert_eq!(two.read(NOTES), one.read(NOTES));
    // Also with a later message.
    one.write("user/images/Mira/new.png", [9; 500]);
    one.append("chats/Mira/one.jsonl", &with_files(4).replace("map.png", "new.png"));
    one.stvc(&["sync", text(&folder)]).exits(0);
    let planned = two.json(&["sync", text(&folder), "--dry-run"]).exits(0).of_type("file");
    let done = two.json(&["sync", text(&folder)]).exits(0).of_type("file");
    assert_eq!(planned, done);
    assert!(done.iter().any(|line| line["path"] == "user/images/Mira/new.png"), "{done:?}");
    assert_eq!(two.read("user/images/Mira/new.png"), [9; 500]);
    two.stvc(&["check"]).exits(0);
    let states = two.json(&["status"]).exits(0).of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
}
