//! A reused name does not join two histories.

use std::fs;

use serde_json::Value;

use crate::common::{A, B, Sandbox, assert_valid, chat, message};
use crate::deleted::library;

const C: &str = "chats/Mira/c.jsonl";

fn rename(sandbox: &Sandbox, from: &str, to: &str) {
    fs::rename(sandbox.path(from), sandbox.path(to)).unwrap();
}

/// Returns the snapshots of a timeline, latest first.
fn snapshots_of(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    sandbox.json(&["log", name]).exits(0).of_type("snapshot")
}

/// Takes snapshots of all and returns the number of alarms.
fn take(sandbox: &mut Sandbox) -> usize {
    sandbox.wait(60);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    let is_alarm = |line: &&Value| line["code"].as_str().is_some_and(|it| it.contains("alarm"));
    let alarms = answer.of_type("finding").iter().filter(is_alarm).count();
    assert_valid(sandbox);
    alarms
}

#[test]
fn new_chat_with_a_deleted_name_has_its_own_history() {
    let mut sandbox = library();
    let former = sandbox.read(A);
    fs::remove_file(sandbox.path(A)).unwrap();
    take(&mut sandbox);
    sandbox.write(A, chat("Soren", 2, None));
    assert_eq!(take(&mut sandbox), 0);
    assert_eq!(snapshots_of(&sandbox, "Mira/a").len(), 1);
    let earlier = "Mira/a (earlier chat 2026-11-14)";
    assert_eq!(snapshots_of(&sandbox, earlier).len(), 3);
    sandbox.stvc(&["restore", earlier]).exits(0);
    assert!(sandbox.read("chats/Mira/a (earlier chat 2026-11-14).jsonl") == former);
}

#[test]
fn chat_without_messages_is_a_new_chat_only_after_a_deletion() {
    let mut sandbox = library();
    sandbox.write(A, chat("Mira", 0, None));
    take(&mut sandbox);
    assert_eq!(snapshots_of(&sandbox, "Mira/a").len(), 2);
    fs::remove_file(sandbox.path(B)).unwrap();
    take(&mut sandbox);
    sandbox.write(B, chat("Voss", 0, None));
    take(&mut sandbox);
    assert_eq!(snapshots_of(&sandbox, "Mira/b").len(), 1);
    assert_eq!(snapshots_of(&sandbox, "Mira/b (earlier chat 2026-11-14)").len(), 3);
}

#[test]
fn chats_renamed_in_a_chain_before_one_snapshot_keep_their_histories() {
    let mut sandbox = library();
    rename(&sandbox, A, C);
    rename(&sandbox, B, A);
    assert_eq!(take(&mut sandbox), 0);
    for (name, former) in [("Mira/a", "chats/Mira/b"), ("Mira/c", "chats/Mira/a")] {
        let log = snapshots_of(&sandbox, name);
        assert_eq!(log.len(), 2, "{name}");
        assert_eq!(log[1]["timeline"], former);
    }
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert_eq!(status.len(), 2, "{status:?}");
    // The entire operation is undone.
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(snapshots_of(&sandbox, "Mira/b").len(), 1);
}

#[test]
fn chats_that_swapped_names_before_one_snapshot_keep_their_histories() {
    let mut sandbox = library();
    rename(&sandbox, A, C);
    rename(&sandbox, B, A);
    rename(&sandbox, C, B);
    sandbox.append(B, &message("more", 5));
    assert_eq!(take(&mut sandbox), 0);
    assert_eq!(snapshots_of(&sandbox, "Mira/a")[1]["timeline"], "chats/Mira/b");
    assert_eq!(snapshots_of(&sandbox, "Mira/b")[1]["timeline"], "chats/Mira/a");
}

#[test]
fn rename_to_a_deleted_name_keeps_both_histories() {
    let mut sandbox = library();
    fs::remove_file(sandbox.path(A)).unwrap();
    rename(&sandbox, B, A);
    take(&mut sandbox);
    assert_eq!(snapshots_of(&sandbox, "Mira/a")[1]["timeline"], "chats/Mira/b");
    let earlier = snapshots_of(&sandbox, "Mira/a (earlier chat 2026-11-14)");
    assert_eq!((&earlier[0]["kind"], earlier.len()), (&"deleted".into(), 2));
}

#[test]
fn chat_overwritten_with_another_keeps_its_timeline_and_is_reported() {
    let mut sandbox = library();
    let former = sandbox.read(A);
    sandbox.write(A, chat("Soren", 6, None));
    sandbox.wait(60);
    let answer = sandbox.json(&["snapshot"]);
    let codes: Vec<_> = answer.of_type("finding").iter().map(|it| it["code"].clone()).collect();
    assert!(!codes.is_empty(), "{codes:?}");
    sandbox.stvc(&["restore", "Mira/a~1", "--overwrite"]).exits(0);
    assert!(sandbox.read(A) == former);
}

#[test]
fn new_lorebook_with_a_deleted_name_has_its_own_history() {
    const BOOK: &str = "worlds/Harbour.json";
    let book = |uid: u8, words: &str| {
        format!("{{\"entries\":{{\"{uid}\":{{\"uid\":{uid},\"content\":\"{words}\"}}}}}}")
    };
    let mut sandbox = library();
    for name in [BOOK, "worlds/Other.json"] {
        sandbox.write(name, book(0, name));
    }
    sandbox.write(A, chat("Mira", 4, Some("Harbour")));
    take(&mut sandbox);
    fs::remove_file(sandbox.path(BOOK)).unwrap();
    take(&mut sandbox);
    sandbox.write(BOOK, book(0, "quite another"));
    take(&mut sandbox);
    assert_eq!(snapshots_of(&sandbox, "worlds/Harbour").len(), 1);
    let earlier = "worlds/Harbour (earlier lorebook 2026-11-14)";
    assert_eq!(snapshots_of(&sandbox, earlier)[0]["kind"], "deleted");
}
