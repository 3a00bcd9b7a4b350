//! S3: the changes that checkpoints need. A is their creation, B their restoration, C that both sides go on.

use std::fs;

use serde_json::{Value, json};

use super::{both_sides, with_checkpoint, with_internal_entries};
use crate::common::recap_library::{Operation, RecapLibrary, book_name};
use crate::common::recap_story::{
    Files, another_way, bound_book, entries, found, metadata, state, story, told, untouched,
    versions,
};
use crate::common::{Answer, Sandbox, assert_same};

#[test]
fn s3_a1_queue_blocking() {
    for (statuses, words) in [
        (&["pending"][..], "(1 pending, 0 in progress)"),
        (&["in_progress", "pending", "completed"], "(1 pending, 1 in progress)"),
        (&["retrying", "cancelled"], "(0 pending, 0 in progress, 1 retrying)"),
    ] {
        let sandbox = Sandbox::empty();
        let queue = statuses.iter().map(|status| Operation::new(status)).collect();
        RecapLibrary { queue: Some(queue), ..RecapLibrary::default() }.write(&sandbox);
        let answer = sandbox.json(&["snapshot", "Harbour", "--at", "3"]).exits(4);
        assert_eq!(told(&answer), found(&[("queue-active", "error")]));
        let error = answer.of_type("error").remove(0);
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(answer.of_type("snapshot").len(), 0);
        sandbox.json(&["log"]).exits(10);
    }
}

#[test]
fn s3_a2_all_entries_cloned() {
    let sandbox = Sandbox::empty();
    let library = with_internal_entries();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    // In the store, each entry is a file of its own: as many as the source has.
    let listing = sandbox.git(&["ls-tree", "-r", "--name-only", "-z", "HEAD", "lorebooks/"]);
    let stored = listing.split('\0').filter(|path| path.contains("/entries/")).count();
    let source = entries(&sandbox.read(&library.book_path()));
    assert_eq!(stored, source.len());
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let clone = entries(&sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl")));
    assert_eq!(clone, source);
}

#[test]
fn s3_a3_running_recap_captured() {
    let sandbox = Sandbox::empty();
    let library = story("Main", 5);
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--at", "50", "--tag", "CP"]).exits(0);
    let recorded = state(&sandbox, "CP");
    assert_eq!(recorded["running_recap_version"], 5);
    assert_eq!(recorded["running_recap_scene_count"], 5);
    assert_eq!(recorded["running_recap_versions"], json!([1, 2, 3, 4, 5]));
    assert_eq!(recorded["has_running_recap"], true);
    // Version 0 is a version, and no recap is none.
    let mut first = RecapLibrary::new("Mira", "First");
    let recap = first.recap.as_mut().unwrap();
    (recap.current, recap.versions) = (0, vec![(0, 3)]);
    first.write(&sandbox);
    RecapLibrary { recap: None, ..RecapLibrary::new("Mira", "None") }.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let recorded = state(&sandbox, "Mira/First");
    assert_eq!(
        (&recorded["has_running_recap"], &recorded["running_recap_version"]),
        (&json!(true), &json!(0))
    );
    let recorded = state(&sandbox, "Mira/None");
    assert_eq!(
        (&recorded["has_running_recap"], &recorded["running_recap_version"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn s3_a4_combined_recap_captured() {
    let sandbox = Sandbox::empty();
    let text = "Everything that came to pass, 雨 and all.";
    let library = RecapLibrary { combined: Some((text.into(), 12)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let recorded = state(&sandbox, "Harbour");
    assert_eq!(recorded["combined_recap_message_count"], 12);
    assert_eq!(recorded["combined_recap_timestamp"], 1_763_632_702_000_i64);
    assert_eq!(recorded["combined_recap_content"], blake3::hash(text.as_bytes()).to_hex().as_str());
    // The text itself is in the snapshot, in the chat's header.
    let header: Value =
        serde_json::from_str(&sandbox.git(&["show", "HEAD:chat/header.json"])).unwrap();
    assert_eq!(header["chat_metadata"]["auto_recap"]["combined_recap"]["content"], text);
}

#[test]
fn s3_a5_lorebook_isolation() {
    let (sandbox, main, chat, book) = with_checkpoint();
    assert_eq!(bound_book(&sandbox, &main.chat_path()), main.book_path());
    assert_ne!(book, main.book_path());
    let checkpoint = metadata(&sandbox.read(&chat));
    assert_eq!(checkpoint["auto_lorebooks"]["lorebookName"], checkpoint["world_info"]);
    assert_eq!(told(&sandbox.json(&["doctor"]).exits(0)), [], "no lorebook is shared");
    // As SillyTavern itself forks, it is shared, and that is found.
    main.fork("Branch #1", 7).write(&sandbox);
    let told = told(&sandbox.json(&["doctor"]).exits(0));
    assert!(told.contains(&("lorebook-shared".into(), "warning".into())), "{told:?}");
}

/// The library with what the extension would have noted at a checkpoint, stored; the answer to restoring it where it was lost.
fn restored_with(noted: Value, change: impl FnOnce(&mut RecapLibrary)) -> (Sandbox, Answer) {
    let sandbox = Sandbox::empty();
    let mut library =
        RecapLibrary { combined: Some(("All.".into(), 100)), ..RecapLibrary::default() };
    library.more.push(("auto_recap_checkpoint_state".into(), noted.to_string()));
    change(&mut library);
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
    assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());
    (sandbox, answer)
}

/// What the extension would have noted of the library.
fn noted() -> Value {
    json!({ "version": 2, "running_recap_version": 1, "combined_recap_message_count": 100,
            "cloned_lorebook_name": book_name("Mira", "Harbour nights") })
}

fn noted_with(key: &str, value: impl Into<Value>) -> Value {
    let mut noted = noted();
    noted[key] = value.into();
    noted
}

#[test]
fn s3_b1_running_recap_version_validation() {
    let (_, answer) = restored_with(noted(), |_| {});
    assert_eq!(told(&answer), []);
    assert_eq!(answer.of_type("restored")[0]["running_recap_version"], 1);
    let (_, answer) = restored_with(noted_with("running_recap_version", 5), |_| {});
    assert_eq!(told(&answer), found(&[("recap-version-mismatch", "error")]));
    let message = answer.of_type("finding")[0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("expected v5") && message.contains("got v1"), "{message}");
    // The version that is in use is among the versions, or that is an error of its own.
    let (_, answer) = restored_with(noted_with("running_recap_version", 7), |library| {
        library.recap.as_mut().unwrap().current = 7;
    });
    assert_eq!(told(&answer), found(&[("recap-version-lost", "error")]));
}

#[test]
fn s3_b2_combined_recap_validation() {
    let (_, answer) = restored_with(noted(), |_| {});
    assert_eq!(answer.of_type("restored")[0]["combined_recap_message_count"], 100);
    let (_, answer) = restored_with(noted_with("combined_recap_message_count", 99), |_| {});
    assert_eq!(told(&answer), found(&[("combined-recap-mismatch", "warning")]));
    // 0 was noted, or there is none: nothing to compare.
    let (_, answer) = restored_with(noted_with("combined_recap_message_count", 0), |_| {});
    assert_eq!(told(&answer), []);
    let (_, answer) = restored_with(noted(), |library| library.combined = None);
    assert_eq!(told(&answer), []);
}

#[test]
fn s3_b3_req_41_lorebook_validation() {
    let (sandbox, answer) = restored_with(noted(), |_| {});
    assert_eq!(told(&answer), []);
    let chat = "chats/Mira/Harbour nights.jsonl";
    assert_eq!(
        sandbox.read(&bound_book(&sandbox, chat)),
        RecapLibrary::default().book_bytes().into_bytes()
    );
    let (_, answer) = restored_with(noted_with("cloned_lorebook_name", "Another"), |_| {});
    assert_eq!(told(&answer), found(&[("lorebook-name-mismatch", "warning")]));
}

#[test]
fn s3_b4_req_41_notification_display() {
    let (sandbox, main, chat, _) = with_checkpoint();
    fs::remove_file(sandbox.path(&chat)).unwrap();
    // Success: name, recap, when.
    let answer = sandbox.stvc(&["restore", "Mira/Checkpoint"]).exits(0);
    for words in [
        "Restored and verified",
        "Checkpoint:     The ferry",
        "Running recap:  v1 (2 scenes)",
        "Taken:          2026-11-",
    ] {
        assert!(answer.stdout.contains(words), "{words}: {}", answer.stdout);
    }
    assert!(!answer.stderr.contains("error"), "{}", answer.stderr);
    // Errors and warnings: each in its own words, on the error stream.
    let mut library = RecapLibrary { combined: Some(("All.".into(), 100)), ..main };
    let mut wrong = noted_with("running_recap_version", 5);
    wrong["combined_recap_message_count"] = 7.into();
    library.more.push(("auto_recap_checkpoint_state".into(), wrong.to_string()));
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["restore", "Harbour", "--to", "../look"]).exits(0);
    for words in [
        "error: ",
        "Running recap version mismatch: expected v5",
        "warning: ",
        "message count mismatch",
    ] {
        assert!(answer.stderr.contains(words), "{words}: {}", answer.stderr);
    }
}

/// S3 C: checkpoint at v5 (C1), main to v10 (C2), the checkpoint's branch to v8 (C3), nothing of the one in the other (C4), switching gives the right
/// versions (C5).
#[test]
fn s3_c_branch_divergence() {
    let (sandbox, main, fork) = both_sides();
    let now = sandbox.files();
    for (snapshot, version) in [("CP", 5), ("Main", 10), ("Mira/Checkpoint", 8)] {
        assert_eq!(state(&sandbox, snapshot)["running_recap_version"], version);
    }
    // C4: chat, lorebook and registry of each are its own.
    let fork_chat = another_way(&fork, 50).into_bytes();
    for (library, chat) in [(&main, main.chat_bytes().into_bytes()), (&fork, fork_chat)] {
        assert_eq!(now[&library.chat_path()], chat);
        assert_eq!(now[&library.book_path()], library.book_bytes().into_bytes());
    }
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let forked = timelines.iter().find(|line| line["timeline"] == "chats/Mira/Checkpoint").unwrap();
    assert_eq!((&forked["parent"], &forked["fork_at"]), (&json!("chats/Mira/Main"), &json!(51)));
    // C5: each goes back to v5 and forth again while the other stays as it is.
    let back = |snapshot: &str, library: &RecapLibrary, version: i64| {
        let others: Files = sandbox
            .files()
            .into_iter()
            .filter(|(path, _)| *path != library.chat_path() && *path != library.book_path())
            .collect();
        let answer = sandbox.json(&["restore", snapshot, "--overwrite"]).exits(0);
        assert_eq!(told(&answer), []);
        let chat = sandbox.read(&library.chat_path());
        assert_eq!(versions(&chat), (version, (1..=version).collect()));
        untouched(&sandbox, &others);
    };
    let id = |snapshot: &str| {
        sandbox.json(&["show", snapshot]).exits(0).of_type("snapshot")[0]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (main_now, fork_now, fork_then) =
        (id("chats/Mira/Main"), id("chats/Mira/Checkpoint"), id("chats/Mira/Checkpoint~1"));
    back("CP", &main, 5);
    back(&fork_then, &fork, 5);
    back(&main_now, &main, 10);
    back(&fork_now, &fork, 8);
    assert_same(&sandbox.files(), &now);
    sandbox.stvc(&["check"]).exits(0);
}
