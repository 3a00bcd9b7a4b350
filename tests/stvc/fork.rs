//! `fork` without ST-Auto-Recap.

use crate::common::recap_library::{Operation, RecapLibrary};
use crate::common::{Sandbox, assert_same, assert_valid, chat};

const A: &str = "chats/Mira/Tide Office.jsonl";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("Mira", 6, Some("Lore")));
    sandbox.write("worlds/Lore.json", r#"{"entries":{"0":{"uid":0,"content":"Now."}}}"#);
    sandbox
}

#[test]
fn fork_at_last_message_gets_a_copy_of_the_current_lorebook() {
    let sandbox = library();
    let before = sandbox.files();
    let plan = sandbox.stvc(&["fork", "Tide Office", "--at", "2", "--dry-run"]).exits(0);
    assert!(plan.stdout.contains("would have 3 messages of Mira / Tide Office"), "{}", plan.stdout);
    assert_same(&sandbox.files(), &before);
    assert!(!sandbox.store().exists());

    let made = sandbox.stvc(&["fork", "Tide Office", "--at", "2"]).exits(0);
    assert!(
        made.stdout
            .contains("a copy of the current lorebook, which may include what happens after #2")
    );
    let fork = "chats/Mira/Tide Office - Branch #1.jsonl";
    let lines = |bytes: Vec<u8>| -> Vec<_> {
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    };
    let (whole, cut) = (lines(sandbox.read(A)), lines(sandbox.read(fork)));
    assert_eq!(cut.len(), 4);
    assert_eq!(cut[1..], whole[1..4]);
    // Each chat names its own book.
    assert!(cut[0].contains("\"main_chat\":\"Tide Office\""), "{}", cut[0]);
    let books: Vec<_> =
        sandbox.files().into_keys().filter(|path| path.starts_with("worlds/")).collect();
    assert_eq!(books.len(), 2, "{books:?}");
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let line =
        timelines.iter().find(|line| line["timeline"] == "chats/Mira/Tide Office - Branch #1");
    let line = line.unwrap();
    assert_eq!((&line["parent"], &line["fork_at"]), (&"chats/Mira/Tide Office".into(), &3.into()));
    assert_eq!(line["state"], "unchanged");
    for (path, bytes) in before {
        assert_eq!(sandbox.read(&path), bytes, "{path}");
    }
    // A second fork gets another name, or the given one.
    sandbox.stvc(&["fork", "Mira/Tide Office", "--at", "0"]).exits(0);
    assert!(sandbox.path("chats/Mira/Tide Office - Branch #2.jsonl").exists());
    sandbox.stvc(&["fork", "Mira/Tide Office", "--as", "What if"]).exits(0);
    assert_eq!(lines(sandbox.read("chats/Mira/What if.jsonl")).len(), 7);
    sandbox.stvc(&["undo"]).exits(0);
    assert!(!sandbox.path("chats/Mira/What if.jsonl").exists());
    assert_valid(&sandbox);
}

/// Returns the lorebook of the only fork of `A`.
fn forked_book(sandbox: &Sandbox) -> Vec<u8> {
    let line = sandbox.json(&["log", "Tide Office - Branch #1"]).exits(0).of_type("snapshot");
    sandbox.read(&format!("worlds/{}.json", line[0]["lorebook"].as_str().unwrap()))
}

const LORE: &str = "worlds/Lore.json";

/// Creates snapshots with 3, 4 and 6 messages; at 4 messages the lorebook is damaged.
fn damaged_at_message_3() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let books = [
        (3, r#"{"entries":{"0":{"uid":0,"content":"First."}}}"#),
        (4, ""),
        (6, r#"{"entries":{"0":{"uid":0,"content":"Last."}}}"#),
    ];
    for (messages, book) in books {
        sandbox.write(A, chat("Mira", messages, Some("Lore")));
        sandbox.write(LORE, book);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    sandbox
}

#[test]
fn fork_at_message_with_damaged_lorebook_uses_the_last_valid_one() {
    let sandbox = damaged_at_message_3();
    let made = sandbox.stvc(&["fork", "Tide Office", "--at", "3"]).exits(0);
    assert!(made.stdout.contains("a copy of the older lorebook in snapshot"), "{}", made.stdout);
    assert!(made.stderr.contains("the latest valid one before it is used"), "{}", made.stderr);
    assert!(String::from_utf8(forked_book(&sandbox)).unwrap().contains("First."));
    // `restore` uses it too.
    sandbox.stvc(&["undo"]).exits(0);
    sandbox
        .stvc(&["restore", "Tide Office", "--at", "3", "--as", "Tide Office - Branch #1"])
        .exits(0);
    assert!(String::from_utf8(forked_book(&sandbox)).unwrap().contains("First."));
}

#[test]
fn fork_reports_an_older_lorebook_when_the_current_one_is_damaged() {
    let sandbox = damaged_at_message_3();
    sandbox.write(LORE, [0; 40]);
    let made = sandbox.stvc(&["fork", "Tide Office"]).exits(0);
    assert!(made.stdout.contains("a copy of the older lorebook in snapshot"), "{}", made.stdout);
    assert!(!made.stdout.contains("the current lorebook"), "{}", made.stdout);
    assert!(String::from_utf8(forked_book(&sandbox)).unwrap().contains("Last."));
}

#[test]
fn fork_is_refused_without_a_valid_lorebook() {
    for at in [&[][..], &["--at", "2"]] {
        let sandbox = library();
        sandbox.write(LORE, "");
        let before = sandbox.files();
        let refused = sandbox.stvc(&[&["fork", "Tide Office"], at].concat()).exits(1);
        let why = "cannot copy worlds/Lore.json: it is empty";
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert_same(&sandbox.files(), &before);
    }
}

#[test]
fn fork_refuses_missing_messages_missing_chats_and_used_names() {
    let sandbox = library();
    let files = sandbox.files();
    let late = sandbox.stvc(&["fork", "Tide Office", "--at", "6"]).exits(4);
    assert!(late.stderr.contains("6"), "{}", late.stderr);
    sandbox.stvc(&["fork", "Nobody", "--at", "1"]).exits(1);
    sandbox.stvc(&["fork", "Tide Office", "--as", "Tide Office"]).exits(4);
    sandbox.stvc(&["fork", "Tide Office", "--at", "-1"]).exits(2);
    sandbox.stvc(&["fork", "Tide Office", "--as", "  "]).exits(2);
    assert_same(&sandbox.files(), &files);
}

#[test]
fn fork_is_refused_while_the_queue_is_active() {
    let sandbox = Sandbox::empty();
    let mut recap = RecapLibrary::new("Mira", "Harbour");
    recap.queue = Some(vec![Operation::new("pending").about(3)]);
    recap.write(&sandbox);
    let files = sandbox.files();
    let refused = sandbox.stvc(&["fork", "Harbour", "--at", "1"]).exits(4);
    assert!(
        refused.stderr.contains("Cannot create checkpoint: 1 operation in queue"),
        "{}",
        refused.stderr
    );
    assert_same(&sandbox.files(), &files);
}
