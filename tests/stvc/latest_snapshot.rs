//! After every command that writes a chat or a lorebook, the latest snapshot equals the files.

use serde_json::Value;
use stvc::progress::NoProgress;
use stvc::verbs::snapshot::{Options, snapshot};

use crate::common::devices::{chats_and_lorebooks, sync, synced_pair};
use crate::common::recap_library::RecapLibrary;
use crate::common::{Sandbox, assert_same};

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
const BOOK: &str = "worlds/Tide Office Lore.json";
const NAME: &str = "Tide Office";

/// Returns the line of `status` for a timeline.
fn state_of(sandbox: &Sandbox, part: &str) -> Value {
    let lines = sandbox.json(&["status"]).exits(0).of_type("timeline");
    lines.into_iter().find(|line| line["timeline"].as_str().unwrap().contains(part)).unwrap()
}

#[track_caller]
fn is_unchanged(sandbox: &Sandbox) {
    let line = state_of(sandbox, NAME);
    assert_eq!(line["state"], "unchanged", "{line}");
}

fn newest(sandbox: &Sandbox) -> Value {
    sandbox.json(&["show", NAME]).exits(0).of_type("snapshot").remove(0)
}

/// Truncates the chat.
fn cut_to(sandbox: &Sandbox, lines: usize) {
    let chat = String::from_utf8(sandbox.read(CHAT)).unwrap();
    let cut: Vec<_> = chat.lines().take(lines).collect();
    sandbox.write(CHAT, cut.join("\n"));
}

#[test]
fn latest_snapshot_contains_the_restored_chat() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let (good, chat) = (newest(&sandbox), sandbox.read(CHAT));
    cut_to(&sandbox, 3);
    let bad = sandbox.read(CHAT);
    sandbox.wait(60);
    let answer = sandbox.json(&["restore", NAME, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(CHAT), chat);
    is_unchanged(&sandbox);

    let now = newest(&sandbox);
    assert_eq!(now["kind"], "restored");
    assert_eq!(now["source"], good["id"]);
    assert_eq!((&now["content"], &now["messages"]), (&good["content"], &good["messages"]));
    assert_eq!(answer.of_type("restored")[0]["restored_as"], now["id"]);
    // Its parent has the replaced content; an equal tree costs only a commit.
    let safety = sandbox.json(&["show", &format!("{NAME}~1")]).exits(0);
    assert_eq!(safety.of_type("snapshot")[0]["kind"], "safety");
    let tree =
        |id: &Value| sandbox.git(&["rev-parse", &format!("{}^{{tree}}", id.as_str().unwrap())]);
    assert_eq!(tree(&now["id"]), tree(&good["id"]));

    // A lost file is restored, also from a backup.
    std::fs::remove_file(sandbox.path(CHAT)).unwrap();
    sandbox.stvc(&["restore", NAME]).exits(0);
    assert_eq!(sandbox.read(CHAT), chat);
    assert_eq!(newest(&sandbox)["id"], now["id"], "nothing new was brought back");
    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["import", backup.to_str().unwrap()]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(CHAT), chat);

    // After an undo the former content is the latest again.
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let overwriting =
        operations.iter().find(|line| line["command"].to_string().contains("--overwrite"));
    let last = operations[0]["number"].to_string();
    sandbox.stvc(&["undo", &last]).exits(0);
    sandbox.write(CHAT, &chat);
    sandbox.stvc(&["undo", &overwriting.unwrap()["number"].to_string()]).exits(0);
    assert_eq!(sandbox.read(CHAT), bad);
    is_unchanged(&sandbox);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn restored_parts_are_in_the_latest_snapshot() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    let book = sandbox.read(BOOK);
    sandbox.write(BOOK, br#"{"entries":{}}"#);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    for only in ["lorebook", "chat"] {
        sandbox.wait(60);
        sandbox.stvc(&["restore", &format!("{NAME}~1"), "--only", only, "--overwrite"]).exits(0);
        is_unchanged(&sandbox);
        assert_eq!(newest(&sandbox)["kind"], "restored", "{only}");
    }
    assert_eq!(sandbox.read(BOOK), book);
    sandbox.stvc(&["undo"]).exits(0);
    is_unchanged(&sandbox);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn merged_lorebook_is_in_the_latest_snapshot() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", NAME, "--as", "Another ending"]).exits(0);
    sandbox.wait(60);
    let fork = state_of(&sandbox, "Another ending")["lorebook"].as_str().unwrap().to_owned();
    let path = format!("worlds/{fork}.json");
    let text = String::from_utf8(sandbox.read(&path)).unwrap();
    let (begin, end) = text.split_once("\"content\":").unwrap();
    let (_, end) = end.split_once("\",").unwrap();
    sandbox.write(&path, format!("{begin}\"content\": \"The bell is cracked\",{end}"));
    sandbox.stvc(&["merge", NAME, "Another ending", "--yes", "--keep", "b"]).exits(0);
    for part in [NAME, "Another ending"] {
        assert_eq!(state_of(&sandbox, part)["state"], "unchanged", "{part}");
    }
    sandbox.stvc(&["undo"]).exits(0);
    for part in [NAME, "Another ending"] {
        assert_eq!(state_of(&sandbox, part)["state"], "unchanged", "{part}");
    }
}

#[test]
fn latest_snapshots_contain_the_files_that_doctor_repaired() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["doctor", "--fix", "--yes"]);
    let lines = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(lines.iter().all(|line| line["state"] != "changed"), "{lines:?}");
    sandbox.stvc(&["snapshot"]).exits(0);
    for repair in [&[][..], &["--repair", "empty"], &["--repair", "detach"]] {
        std::fs::remove_file(sandbox.path(BOOK)).unwrap();
        sandbox.stvc(&[&["doctor", "--fix", "--yes"], repair].concat()).exits(0);
        is_unchanged(&sandbox);
    }
    sandbox.stvc(&["check"]).exits(0);
}

/// On another device, and in a library that lost everything.
#[test]
fn req_78_latest_snapshots_contain_the_files_that_sync_received() {
    let everything = |sandbox: &Sandbox| {
        let lines = sandbox.json(&["status"]).exits(0).of_type("timeline");
        assert!(lines.iter().all(|line| line["state"] == "unchanged"), "{lines:?}");
        assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    };
    let library = RecapLibrary::default();
    let sharing = |chat: &str| RecapLibrary { story: chat.into(), ..library.fork(chat, 3) };
    let (mut one, mut two, folder) = synced_pair(|sandbox| {
        library.write(sandbox);
        sharing("Also").write(sandbox);
    });
    everything(&two);
    // The chat grows on one device, the shared lorebook on the other; one of its chats exists only
    // here. Both devices get all of it.
    one.append(&library.chat_path(), &library.message(12));
    sharing("Only here").write(&one);
    let book = String::from_utf8(two.read(&library.book_path())).unwrap();
    two.write(&library.book_path(), book.replace("Wet stones.", "Dry stones."));
    for _ in 0..2 {
        for device in [&mut one, &mut two] {
            sync(device, &folder);
            everything(device);
        }
    }
    assert_same(&chats_and_lorebooks(&one), &chats_and_lorebooks(&two));
    std::fs::remove_file(one.path(&library.chat_path())).unwrap();
    std::fs::remove_file(one.path(&library.book_path())).unwrap();
    one.stvc(&["restore", "--all"]).exits(0);
    everything(&one);
    assert_same(&chats_and_lorebooks(&one), &chats_and_lorebooks(&two));
}

#[test]
fn undo_skips_later_watch_snapshots_of_other_chats() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    cut_to(&sandbox, 3);
    let bad = sandbox.read(CHAT);
    sandbox.stvc(&["restore", NAME, "--overwrite"]).exits(0);
    // In between, the watch stores another chat.
    let other = "chats/Mira Voss/Another.jsonl";
    sandbox.write(
        other,
        b"{\"user_name\":\"W\",\"character_name\":\"M\"}\n{\"name\":\"W\",\"mes\":\"hi\"}",
    );
    sandbox.wait(60);
    let mut workspace = sandbox.workspace();
    workspace.automatic = true;
    snapshot(&workspace, &Options::default(), &mut NoProgress).unwrap();

    let answer = sandbox.stvc(&["undo"]).exits(0);
    assert!(answer.stdout.contains("restore"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("Not undone: 1 later operation by `stvc watch`"),
        "{}",
        answer.stdout
    );
    assert_eq!(sandbox.read(CHAT), bad);
    assert_eq!(state_of(&sandbox, "Another")["state"], "unchanged");

    // If it stored the same chat, that is reported, and the state before is offered.
    sandbox.stvc(&["restore", &format!("{NAME}~1"), "--overwrite"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.wait(60);
    workspace = sandbox.workspace();
    workspace.automatic = true;
    snapshot(&workspace, &Options::default(), &mut NoProgress).unwrap();
    let refused = sandbox.stvc(&["undo"]).exits(4);
    assert!(refused.stderr.contains("1 message was added to"), "{}", refused.stderr);
    let command = refused.stderr.split("`stvc ").nth(1).unwrap().split('`').next().unwrap();
    let (moment, name) = command.strip_prefix("restore ").unwrap().split_once(" --as ").unwrap();
    sandbox.stvc(&["restore", moment, "--as", name.trim_matches('"')]).exits(0);
}
