//! Taking commands back, and taking that back.

use serde_json::json;

use crate::common::{Sandbox, git, refs};

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";

#[test]
fn every_command_is_taken_back_one_after_the_other() {
    let mut sandbox = Sandbox::of_fixture("1.19.0");
    let mut states = Vec::new();
    let remember = |sandbox: &Sandbox| (refs(&sandbox.store()), sandbox.files());
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.read(CHAT);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    states.push(remember(&sandbox));
    sandbox.wait(10);
    sandbox.stvc(&["snapshot"]).exits(0);
    states.push(remember(&sandbox));
    sandbox.stvc(&["tag", "here", "Tide Office"]).exits(0);
    states.push(remember(&sandbox));
    sandbox.stvc(&["restore", "Tide Office~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(CHAT), before);
    states.push(remember(&sandbox));
    sandbox.stvc(&["tag", "--delete", "here"]).exits(0);
    states.push(remember(&sandbox));
    std::fs::remove_file(sandbox.path(CHAT)).unwrap();
    states.push(remember(&sandbox));
    sandbox.stvc(&["restore", "Tide Office"]).exits(0);

    for (number, state) in states.iter().enumerate().rev().filter(|(number, _)| *number != 4) {
        sandbox.stvc(&["undo"]).exits(0);
        assert_eq!(remember(&sandbox).0, state.0, "refs after undoing back to state {number}");
        if number == 5 {
            assert_eq!(
                remember(&sandbox).1,
                state.1,
                "what a restore wrote where nothing was is gone again"
            );
            // The file that went missing by hand comes back by hand.
            sandbox.write(CHAT, &states[4].1[CHAT]);
        } else {
            assert_eq!(remember(&sandbox).1, state.1, "files after undoing back to state {number}");
        }
    }
    sandbox.stvc(&["undo"]).exits(0);
    assert!(refs(&sandbox.store()).is_empty());
    sandbox.stvc(&["undo"]).exits(1);

    // Git drops nothing of it, and the whole way leads back again.
    git(&sandbox.store(), &["gc", "-q", "--prune=now"]);
    let undone = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let last = undone[0]["number"].as_u64().unwrap().to_string();
    sandbox.stvc(&["undo", &last]).exits(0);
    assert_eq!(refs(&sandbox.store()), states[0].0);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn overwritten_lorebooks_and_chats_come_back_byte_for_byte() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write(CHAT, b"\xff garbage \n {");
    sandbox.write("worlds/Tide Office Lore.json", b"[not a book]");
    let broken = sandbox.files();
    // The lorebook is replaced although the chat that is there names none: it is kept all the same.
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    assert_ne!(sandbox.files(), broken);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.files(), broken);
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let number = operations[0]["number"].to_string();
    sandbox.stvc(&["undo", &number]).exits(0);
    assert_ne!(sandbox.files(), broken, "undone again");
}

#[test]
fn a_group_that_a_restore_edited_is_as_it_was() {
    let sandbox = Sandbox::of_fixture("1.12.6");
    sandbox.stvc(&["snapshot"]).exits(0);
    let chat = "group chats/G checkpoint - 2026-11-15@00h22m21s.jsonl";
    std::fs::remove_file(sandbox.path(chat)).unwrap();
    let group = "groups/1794702122839.json";
    let text = String::from_utf8(sandbox.read(group)).unwrap();
    let (head, _) = text.split_once(",\n    \"past_metadata\"").unwrap();
    let unlisted = head.replace(",\n        \"G checkpoint - 2026-11-15@00h22m21s\"", "") + "\n}";
    sandbox.write(group, &unlisted);
    sandbox.stvc(&["restore", "G checkpoint"]).exits(0);
    let edited: serde_json::Value = serde_json::from_slice(&sandbox.read(group)).unwrap();
    assert_eq!(edited["chats"][1], "G checkpoint - 2026-11-15@00h22m21s");
    assert_eq!(
        edited["past_metadata"]["G checkpoint - 2026-11-15@00h22m21s"]["main_chat"],
        "2024-09-28@01h02m36s"
    );
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(group), unlisted.into_bytes());
    assert!(!sandbox.path(chat).exists());
}

#[test]
fn what_changed_since_is_not_overwritten() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"something new"}"#);
    let now = sandbox.files();
    let answer = sandbox.stvc(&["undo"]).exits(4);
    assert!(answer.stderr.contains("changed since"), "{}", answer.stderr);
    assert_eq!(sandbox.files(), now);
    // Nor is an operation taken back from under a later one.
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["undo", "1"]).exits(4);
}

#[test]
fn operations_tell_what_was_done() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "here", "Tide Office"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    assert_eq!(
        lines.iter().map(|line| line["number"].clone()).collect::<Vec<_>>(),
        [json!(3), json!(2), json!(1)]
    );
    assert_eq!((&lines[0]["undoes"], &lines[1]["undone_by"]), (&json!(2), &json!(3)));
    assert_eq!(lines[2]["refs"].as_array().unwrap().len(), 18);
    let text = sandbox.stvc(&["operations", "-n", "2"]).exits(0).stdout;
    assert!(text.contains("stvc tag here \"Tide Office\"  (undone by 3)"), "{text}");
    assert!(!text.contains("moved 18 timelines"), "{text}");
    sandbox.stvc(&["undo", "2"]).exits(1);
    sandbox.stvc(&["undo", "99"]).exits(1);
    sandbox.stvc(&["undo", "--dry-run"]).exits(0);
    assert_eq!(sandbox.json(&["operations"]).exits(0).of_type("operation").len(), 3);
}

#[test]
fn a_tag_and_a_timeline_that_name_the_same_snapshot_are_undone_together() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    let before = refs(&sandbox.store());
    sandbox.stvc(&["snapshot", "Tide Office", "--tag", "foo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(refs(&sandbox.store()), before);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn what_a_group_learnt_before_a_restore_is_there_after_its_undoing() {
    let sandbox = Sandbox::of_fixture("1.12.6");
    let group = "groups/1794702122839.json";
    sandbox.stvc(&["snapshot"]).exits(0);
    let text = String::from_utf8(sandbox.read(group)).unwrap();
    sandbox.write(group, text.replacen(r#""a": "1""#, r#""a": "2""#, 1));
    sandbox.stvc(&["snapshot"]).exits(0);
    let text = String::from_utf8(sandbox.read(group)).unwrap();
    let joined =
        text.replace("\"Old Kestrel.png\"", "\"Old Kestrel.png\",\n        \"Somebody new.png\"");
    assert_ne!(joined, text);
    sandbox.write(group, &joined);
    sandbox.stvc(&["restore", "2024-09-28@01h02m36s~1", "--overwrite"]).exits(0);
    let restored = String::from_utf8(sandbox.read(group)).unwrap();
    assert!(
        restored.contains("Somebody new.png") && restored.contains(r#""a": "1""#),
        "{restored}"
    );
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(group), joined.into_bytes());
}
