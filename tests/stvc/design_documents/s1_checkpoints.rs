//! S1: requirements of checkpoints.

use std::fs;

use serde_json::{Value, json};

use super::{both_sides, with_internal_entries};
use crate::common::recap_library::{Operation, RecapLibrary};
use crate::common::recap_story::{
    bound_book, entries, found, messages, metadata, state, story, told, untouched, versions,
    waiting,
};
use crate::common::{Sandbox, assert_same};

#[test]
fn s1_t1_queue_blocking() {
    let sandbox = Sandbox::empty();
    let mut library =
        RecapLibrary { queue: Some(vec![Operation::new("pending")]), ..RecapLibrary::default() };
    library.write(&sandbox);
    let before = sandbox.files();
    for arguments in [&["snapshot", "Harbour"][..], &["snapshot", "Harbour", "--at", "7"]] {
        let answer = sandbox.stvc(arguments).exits(4);
        let words = "Cannot create checkpoint: 1 operation in queue";
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
        assert!(answer.stderr.contains("--wait"), "what can be done is said: {}", answer.stderr);
    }
    assert_same(&sandbox.files(), &before);
    assert!(!sandbox.store().exists());
    library.queue = Some(Vec::new());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7"]).exits(0);
}

#[test]
fn s1_t2_all_entries_cloned() {
    let sandbox = Sandbox::empty();
    let library = with_internal_entries();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7", "--tag", "CP"]).exits(0);
    let answer = sandbox.json(&["restore", "CP", "--as", "Checkpoint"]).exits(0);
    let (original, clone) = (
        entries(&sandbox.read(&library.book_path())),
        entries(&sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"))),
    );
    assert_eq!(original.len(), library.entries.len() + 1);
    assert_eq!(clone.len(), original.len());
    assert_eq!(clone, original, "keys, UIDs and every byte of every entry");
    let titled =
        |prefix: &str| clone.iter().filter(|(_, title, _)| title.starts_with(prefix)).count();
    assert_eq!((titled("_registry_"), titled("__index_"), titled("__operation_queue")), (9, 6, 1));
    assert_eq!(told(&answer), []);
}

#[test]
fn s1_t3_running_recap_isolation() {
    let mut sandbox = Sandbox::empty();
    story("Main", 5).write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "CP"]).exits(0);
    sandbox.wait(60);
    let main = story("Main", 10);
    main.write(&sandbox);
    sandbox.stvc(&["snapshot", "Main"]).exits(0);
    let before = sandbox.files();
    sandbox.stvc(&["restore", "CP", "--as", "Checkpoint"]).exits(0);
    let checkpoint = sandbox.read("chats/Mira/Checkpoint.jsonl");
    assert_eq!(versions(&checkpoint), (5, (1..=5).collect()));
    untouched(&sandbox, &before);
    assert_eq!(versions(&sandbox.read(&main.chat_path())), (10, (1..=10).collect()));
    // What the store says of the two is the same.
    for (snapshot, version) in [("CP", 5_i64), ("chats/Mira/Checkpoint", 5), ("Main", 10)] {
        let state = state(&sandbox, snapshot);
        assert_eq!(state["running_recap_version"], version);
        assert_eq!(state["running_recap_versions"], json!((1..=version).collect::<Vec<_>>()));
    }
}

#[test]
fn s1_t4_combined_recap_preservation() {
    let sandbox = Sandbox::empty();
    let library =
        RecapLibrary { combined: Some(("All of it.".into(), 100)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7", "--tag", "CP"]).exits(0);
    let answer = sandbox.json(&["restore", "CP", "--as", "Checkpoint"]).exits(0);
    let combined =
        |path: &str| metadata(&sandbox.read(path))["auto_recap"]["combined_recap"].clone();
    let restored = combined("chats/Mira/Checkpoint.jsonl");
    assert_eq!(restored["message_count"], 100);
    assert_eq!(restored, combined(&library.chat_path()));
    assert_eq!(state(&sandbox, "CP")["combined_recap_message_count"], 100);
    assert_eq!(answer.of_type("restored")[0]["combined_recap_message_count"], 100);
    assert_eq!(told(&answer), []);
}

#[test]
fn s1_t5_complete_state_restoration() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::new("Mira", "Another chat").write(&sandbox);
    story("Main", 5).write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "at 50"]).exits(0);
    let at_50 = sandbox.files();
    sandbox.wait(60);
    let main = story("Main", 10);
    main.write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "at 100"]).exits(0);
    let at_100 = sandbox.files();
    let listed = |book: &[u8]| entries(book)[0].2.matches("- UID=").count();
    for (tag, files, last, version, registered) in [
        ("at 50", &at_50, 50, 5, 10),
        ("at 100", &at_100, 100, 10, 20),
        ("at 50", &at_50, 50, 5, 10),
        ("at 100", &at_100, 100, 10, 20),
    ] {
        let answer = sandbox.json(&["restore", tag, "--overwrite"]).exits(0);
        assert_eq!(told(&answer), []);
        assert_same(&sandbox.files(), files);
        let chat = sandbox.read(&main.chat_path());
        assert_eq!(messages(&chat), last + 1);
        assert_eq!(versions(&chat), (version, (1..=version).collect()));
        assert_eq!(listed(&sandbox.read(&main.book_path())), registered);
    }
    // Both at once, and nothing of the one in the other.
    sandbox.stvc(&["restore", "at 50", "--as", "Checkpoint"]).exits(0);
    untouched(&sandbox, &at_100);
    let book = sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"));
    assert_eq!(book, at_50[&main.book_path()]);
}

/// The same where nothing was taken at message 50: from what the messages carry.
#[test]
fn s1_t5_complete_state_restoration_without_a_snapshot_of_then() {
    let sandbox = Sandbox::empty();
    let (main, then) = (story("Main", 10), story("Main", 5));
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    let answer = sandbox.json(&["restore", "Main", "--at", "50", "--as", "Checkpoint"]).exits(0);
    untouched(&sandbox, &before);
    assert_eq!(told(&answer), []);
    let chat = sandbox.read("chats/Mira/Checkpoint.jsonl");
    let lines = |chat: &str| chat.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&String::from_utf8(chat.clone()).unwrap()), lines(&then.chat_bytes()));
    assert_eq!(versions(&chat), (5, (1..=5).collect()));
    let book = sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"));
    let values = |book: &[u8]| -> Vec<(String, Value)> {
        let content = |(key, title, text): (String, String, String)| {
            (title != "__operation_queue").then(|| (key, serde_json::from_str(&text).unwrap()))
        };
        entries(book).into_iter().filter_map(content).collect()
    };
    assert_eq!(values(&book), values(then.book_bytes().as_bytes()));
    assert_eq!(waiting(&book), 0);
}

#[test]
fn s1_ec1_an_empty_queue_is_cloned_and_harmless() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { queue: Some(Vec::new()), ..RecapLibrary::default() };
    library.write(&sandbox);
    assert_eq!(told(&sandbox.json(&["snapshot"]).exits(0)), []);
    let answer = sandbox.json(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    assert_eq!(told(&answer), []);
    let book = bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl");
    let queue = entries(&sandbox.read(&book)).pop().unwrap();
    assert_eq!((queue.0.as_str(), queue.1.as_str()), ("1763632702906", "__operation_queue"));
    assert_eq!(waiting(&sandbox.read(&book)), 0);
    // It blocks nothing there either.
    sandbox.append("chats/Mira/Checkpoint.jsonl", &library.message(12));
    assert_eq!(told(&sandbox.json(&["snapshot", "Mira/Checkpoint"]).exits(0)), []);
}

#[test]
fn s1_ec2_both_sides_progress_after_branch() {
    let (sandbox, main, fork) = both_sides();
    let now = sandbox.files();
    for (name, library, version) in [("Main", &main, 10), ("Mira/Checkpoint", &fork, 8)] {
        // Loaded after it was lost: that version is in use, so many are there, the other side stays as it is.
        fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
        fs::remove_file(sandbox.path(&library.book_path())).unwrap();
        let answer = sandbox.json(&["restore", name]).exits(0);
        assert_eq!(told(&answer), [], "the version in use is among the versions");
        let chat = sandbox.read(&library.chat_path());
        assert_eq!(versions(&chat), (version, (1..=version).collect()));
        assert_same(&sandbox.files(), &now);
    }
}

#[test]
fn s1_ec3_legacy_checkpoints_are_restored_without_comparison() {
    // Nothing was noted by the extension.
    for noted in [None, Some("null")] {
        let sandbox = Sandbox::empty();
        let mut library = RecapLibrary::default();
        library
            .more
            .extend(noted.map(|json| ("auto_recap_checkpoint_state".to_owned(), json.to_owned())));
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        let answer = sandbox.json(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
        assert_eq!(told(&answer), []);
    }
    // Nor by stvc: a backup has nothing but the chat's bytes. It comes back, and that it could not be compared is worth a note.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    library.recap.as_mut().unwrap().current = 0;
    library.messages = 8;
    let backup = library.chat_bytes();
    sandbox.write("backups/chat_mira_20251101-101010.jsonl", &backup);
    sandbox.stvc(&["import"]).exits(0);
    let log = sandbox.json(&["log"]).exits(0).of_type("snapshot");
    let imported = log.iter().find(|line| line["kind"] == "import").unwrap();
    let id = imported["id"].as_str().unwrap();
    let answer = sandbox.json(&["restore", id, "--overwrite"]).exits(0);
    let found_here = told(&answer);
    assert!(
        found_here.contains(&("checkpoint-state-missing".into(), "info".into())),
        "{found_here:?}"
    );
    assert!(!found_here.iter().any(|(code, _)| code.contains("mismatch")), "{found_here:?}");
    assert_eq!(sandbox.read(&library.chat_path()), backup.into_bytes());
}

#[test]
fn s1_ec4_another_lorebook_is_warned_of_and_does_not_block() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    let noted = json!({ "version": 2, "cloned_lorebook_name": "The clone" }).to_string();
    library.more.push(("auto_recap_checkpoint_state".into(), noted));
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
    assert_eq!(told(&answer), found(&[("lorebook-name-mismatch", "warning")]));
    let finding = answer.of_type("finding").remove(0);
    let message = finding["message"].as_str().unwrap();
    for word in ["\"The clone\"", library.book.as_deref().unwrap(), "may not have proper isolation"]
    {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());

    // The lorebook's file was deleted: that is worse, and does not block either.
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    fs::remove_file(sandbox.path(&library.book_path())).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
    assert_eq!(told(&answer), found(&[("lorebook-missing", "error")]));
    assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());
}
