//! The tests and edge cases that the design documents of ST-Auto-Recap ask for, each under its number there: `s1_t3` is test 3 of S1 (docs/requirements.md says
//! which document that is).
//!
//! What they say of a running extension is translated into what happens to files: a chat "progresses" when its files are written as they are then, a
//! checkpoint is "loaded" when it is restored, and "contamination" is any other byte of any other file.

use std::fs;

use serde_json::{Value, json};
use stvc::st;

use crate::common::recap_library::{Entry, Operation, RecapLibrary, Scene, book_name};
use crate::common::recap_story::{
    Files, another_way, bound_book, entries, found, messages, metadata, state, story, told,
    untouched, versions, waiting,
};
use crate::common::{Answer, Sandbox, assert_same};

// S1: requirements.

#[test]
fn s1_t1_queue_blocking() {
    let sandbox = Sandbox::empty();
    let mut library =
        RecapLibrary { queue: Some(vec![Operation::new("pending")]), ..RecapLibrary::default() };
    library.write(&sandbox);
    let before = sandbox.files();
    for arguments in [&["snapshot", "Harbour"][..], &["snapshot", "Harbour", "--at", "7"]] {
        let answer = sandbox.stvc(arguments).exits(4);
        let words = "Cannot create checkpoint: 1 operations in queue";
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
        assert!(answer.stderr.contains("--wait"), "what can be done is said: {}", answer.stderr);
    }
    assert_same(&sandbox.files(), &before);
    assert!(!sandbox.store().exists());
    library.queue = Some(Vec::new());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7"]).exits(0);
}

/// A lorebook with entries of the user, of all registries and of all indexes.
fn with_internal_entries() -> RecapLibrary {
    let mut library = RecapLibrary::default();
    library.entries.push(Entry::new(9, "A note of mine", "Nobody's business."));
    let kinds = ["item", "faction", "lore", "event", "document", "rule", "recap"];
    let registry = |(uid, kind): (i64, &str)| Entry::registry(uid, kind, &[]);
    library.entries.extend((20..).zip(kinds).map(registry));
    let indexes = ["characters", "creatures", "locations", "objects", "factions", "concepts"];
    let index = |(uid, kind): (i64, &str)| {
        Entry::new(uid, &format!("__index_{kind}"), &format!("[{kind}: Mira]"))
    };
    library.entries.extend((40..).zip(indexes).map(index));
    library
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

/// Main and its checkpoint of v5 went on, main to v10 and the checkpoint to v8, and both states are stored.
fn both_sides() -> (Sandbox, RecapLibrary, RecapLibrary) {
    let mut sandbox = Sandbox::empty();
    story("Main", 5).write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "CP"]).exits(0);
    sandbox.stvc(&["restore", "CP", "--as", "Checkpoint"]).exits(0);
    let after_fork = sandbox.files();
    sandbox.wait(60);
    let main = story("Main", 10);
    main.write(&sandbox);
    sandbox.stvc(&["snapshot", "Main"]).exits(0);
    let fork = RecapLibrary { main_chat: Some("Main".into()), ..story("Checkpoint", 8) };
    assert_eq!(bound_book(&sandbox, &fork.chat_path()), fork.book_path());
    assert_eq!(sandbox.read(&fork.chat_path()), after_fork[&fork.chat_path()]);
    assert_eq!(sandbox.read(&fork.book_path()), after_fork[&fork.book_path()]);
    fork.write(&sandbox);
    sandbox.write(&fork.chat_path(), another_way(&fork, 50));
    sandbox.wait(60);
    sandbox.stvc(&["snapshot", "Mira/Checkpoint"]).exits(0);
    assert_eq!(sandbox.read(&main.chat_path()), main.chat_bytes().into_bytes());
    assert_eq!(sandbox.read(&main.book_path()), main.book_bytes().into_bytes());
    (sandbox, main, fork)
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

// S2: lorebooks of checkpoints.

#[test]
fn s2_t1_lorebook_switching_on_chat_load() {
    let sandbox = Sandbox::empty();
    let mut main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let checkpoint = "chats/Mira/Checkpoint.jsonl";
    let (a, b) = (main.book_path(), bound_book(&sandbox, checkpoint));
    assert_ne!(a, b);
    assert_eq!(bound_book(&sandbox, &main.chat_path()), a);
    assert_eq!(waiting(&sandbox.read(&b)), 0);
    // Work is queued in the checkpoint.
    let before = sandbox.files();
    main.queue = Some(vec![Operation::new("pending")]);
    sandbox.write(&b, main.book_bytes());
    assert_eq!((waiting(&sandbox.read(&b)), waiting(&sandbox.read(&a))), (1, 0));
    let states = sandbox.json(&["status"]).exits(0).of_type("timeline");
    let of =
        |name: &str| states.iter().find(|line| line["timeline"] == name).unwrap()["state"].clone();
    assert_eq!(of("chats/Mira/Checkpoint"), "changed");
    assert_eq!(of("chats/Mira/Harbour nights"), "unchanged");
    // It is the checkpoint's: that one cannot be taken now, main can.
    sandbox.stvc(&["snapshot", "Mira/Checkpoint"]).exits(4);
    sandbox.stvc(&["snapshot", "Mira/Harbour nights", "--at", "7"]).exits(0);
    sandbox.stvc(&["snapshot", "Mira/Checkpoint", "--allow-active-queue"]).exits(0);
    // Main is loaded, then the checkpoint.
    let with_work = sandbox.read(&b);
    sandbox.stvc(&["restore", "chats/Mira/Harbour nights", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(&a), before[&a]);
    assert_eq!(sandbox.read(&b), with_work);
    sandbox.stvc(&["restore", "chats/Mira/Checkpoint", "--overwrite"]).exits(0);
    assert_eq!((waiting(&sandbox.read(&b)), waiting(&sandbox.read(&a))), (1, 0));
}

#[test]
fn s2_t2_rapid_checkpoint_switching() {
    let mut sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    for n in 1..=3 {
        library.entries.push(Entry::new(20 + n, &format!("item-{n}"), &format!("Since CP{n}.")));
        library.messages += 1;
        library.write(&sandbox);
        sandbox.stvc(&["snapshot", "Mira/Harbour nights", "--tag", &format!("tag {n}")]).exits(0);
        sandbox.stvc(&["restore", &format!("tag {n}"), "--as", &format!("CP{n}")]).exits(0);
        sandbox.wait(60);
    }
    library.entries.push(Entry::new(30, "item-main", "Since then."));
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let all = sandbox.files();
    let mut books = Vec::new();
    for name in ["CP1", "CP2", "Harbour nights", "CP3", "CP1"] {
        let chat = format!("chats/Mira/{name}.jsonl");
        let book = bound_book(&sandbox, &chat);
        // The chat is lost and another one's lorebook lies in the place of its own: both come back, as a pair.
        let other = if name == "CP2" { "CP3" } else { "CP2" };
        let wrong = sandbox.read(&bound_book(&sandbox, &format!("chats/Mira/{other}.jsonl")));
        fs::remove_file(sandbox.path(&chat)).unwrap();
        sandbox.write(&book, wrong);
        let answer =
            sandbox.json(&["restore", &format!("chats/Mira/{name}"), "--overwrite"]).exits(0);
        assert_eq!(told(&answer), []);
        assert_same(&sandbox.files(), &all);
        books.push(book);
    }
    assert_eq!(books[0], books[4]);
    books.pop();
    books.sort();
    books.dedup();
    assert_eq!(books.len(), 4, "each has a lorebook of its own");
    let newest = |book: &str| all[book].windows(5).filter(|words| words == b"Since").count();
    let counts: Vec<_> = ["CP1", "CP2", "CP3", "Harbour nights"]
        .map(|name| newest(&bound_book(&sandbox, &format!("chats/Mira/{name}.jsonl"))))
        .into();
    assert_eq!(counts, [1, 2, 3, 4]);
}

/// Main, and a checkpoint of it as a chat of its own.
fn with_checkpoint() -> (Sandbox, RecapLibrary, String, String) {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7", "--tag", "CP"]).exits(0);
    sandbox.stvc(&["restore", "CP", "--as", "Checkpoint"]).exits(0);
    let chat = "chats/Mira/Checkpoint.jsonl".to_owned();
    let book = bound_book(&sandbox, &chat);
    (sandbox, main, chat, book)
}

#[test]
fn s2_t3_missing_lorebook_recovery() {
    let (sandbox, main, chat, book) = with_checkpoint();
    let whole = sandbox.files();
    fs::remove_file(sandbox.path(&book)).unwrap();
    let answer = sandbox.json(&["doctor"]).exits(1);
    assert_eq!(told(&answer), found(&[("lorebook-missing", "error")]));
    assert_eq!(answer.of_type("finding")[0]["subject"], "chats/Mira/Checkpoint");
    // "Create empty lorebook".
    sandbox.stvc(&["doctor", "--fix", "--yes", "--repair", "empty"]).exits(0);
    assert_eq!(entries(&sandbox.read(&book)), []);
    let mut expected = whole.clone();
    expected.insert(book.clone(), sandbox.read(&book));
    assert_same(&sandbox.files(), &expected);
    // The checkpoint loads, and can be worked on: its queue is empty. What its registry cache lists is gone, and that is said.
    let answer = sandbox.json(&["doctor"]).exits(0);
    assert_eq!(told(&answer), found(&[("registry-cache-dangling", "warning")]));
    assert_eq!(waiting(&sandbox.read(&book)), 0);
    sandbox.append(&chat, &main.message(8));
    sandbox.json(&["snapshot", "Mira/Checkpoint"]).exits(0);
    // "Clone", "detach" and, better than all of them, bring it back.
    let broken = || {
        let (sandbox, main, chat, book) = with_checkpoint();
        fs::remove_file(sandbox.path(&book)).unwrap();
        (sandbox, main, chat, book)
    };
    let (sandbox, main, _, book) = broken();
    sandbox.stvc(&["doctor", "--fix", "--yes", "--repair", "clone"]).exits(0);
    assert_eq!(sandbox.read(&book), sandbox.read(&main.book_path()));
    let (sandbox, _, chat, book) = broken();
    sandbox.stvc(&["doctor", "--fix", "--yes", "--repair", "detach"]).exits(0);
    assert!(metadata(&sandbox.read(&chat))["world_info"].is_null());
    assert!(!sandbox.path(&book).exists());
    let (sandbox, ..) = broken();
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert_same(&sandbox.files(), &whole);
}

#[test]
fn s2_t4_checkpoint_cleanup() {
    let (sandbox, mut main, chat, book) = with_checkpoint();
    // As the extension would have noted it, and a second clone, called as the document has it.
    let map = json!({ "checkpoint_lorebook_map": { "Checkpoint": metadata(&sandbox.read(&chat))["world_info"] } });
    main.more.push(("auto_recap".into(), map.to_string()));
    main.write(&sandbox);
    assert_eq!(told(&sandbox.json(&["doctor"]).exits(0)), []);
    let second = "worlds/Lore_checkpoint_Second_1763632702906.json";
    sandbox.write(second, sandbox.read(&book));
    fs::remove_file(sandbox.path(&chat)).unwrap();
    // Only looking deletes nothing.
    let answer = sandbox.json(&["doctor"]).exits(0);
    assert_eq!(told(&answer), found(&[("lorebook-orphaned", "info"); 2]));
    let subjects: Vec<_> =
        answer.of_type("finding").iter().map(|finding| finding["subject"].clone()).collect();
    assert_eq!(subjects, [second, &book]);
    assert!(sandbox.path(&book).exists() && sandbox.path(second).exists());
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let expected = Files::from([
        (main.chat_path(), main.chat_bytes().into_bytes()),
        (main.book_path(), main.book_bytes().into_bytes()),
        ("settings.json".to_owned(), b"{}".to_vec()),
    ]);
    assert_same(&sandbox.files(), &expected);
    assert_eq!(told(&sandbox.json(&["doctor"]).exits(0)), []);
    sandbox.stvc(&["undo"]).exits(0);
    assert!(sandbox.path(&book).exists() && sandbox.path(second).exists());
}

#[test]
fn s2_t5_multiple_checkpoints_same_lorebook() {
    let (sandbox, main, cp1, book) = with_checkpoint();
    let cp2 = "chats/Mira/CP2.jsonl";
    let text = String::from_utf8(sandbox.read(&cp1)).unwrap();
    sandbox.write(cp2, text.replace("\"chat_id\":\"Checkpoint\"", "\"chat_id\":\"CP2\""));
    assert_eq!(bound_book(&sandbox, cp2), book);
    let bytes = sandbox.read(&book);
    fs::remove_file(sandbox.path(&cp1)).unwrap();
    let answer = sandbox.json(&["doctor", "--fix", "--yes", "--orphans"]).exits(0);
    assert!(answer.of_type("repair").is_empty(), "{}", answer.stdout);
    assert_eq!(sandbox.read(&book), bytes, "CP2 still uses it");
    fs::remove_file(sandbox.path(cp2)).unwrap();
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert!(!sandbox.path(&book).exists(), "nobody uses it now");
    assert!(sandbox.path(&main.book_path()).exists());
}

// S3: the changes required. A, creation.

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

// S3 B, restoration.

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

// S0: lorebooks from the notes of scenes.

/// A chat whose scene at message 7 noted these entries. Since then the lorebook has become another: what is restored can only come from the note.
fn noted_entries(notes: Vec<Entry>) -> (Sandbox, RecapLibrary) {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    let book = library.book.clone().unwrap();
    library.scenes[1] = Scene { book, ..Scene::new(7, "The ferry", notes) };
    library.entries = vec![Entry::new(0, "Another entry", "Under a UID that was free again.")];
    library.cache.clear();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    (sandbox, library)
}

/// The lorebook that the chat had at message 7, as that of a timeline of its own; nothing else changes.
#[track_caller]
fn at_7(sandbox: &Sandbox) -> (Vec<u8>, Answer) {
    let before = sandbox.files();
    let answer =
        sandbox.json(&["restore", "Mira/Harbour nights", "--at", "7", "--as", "CP"]).exits(0);
    untouched(sandbox, &before);
    (sandbox.read(&bound_book(sandbox, "chats/Mira/CP.jsonl")), answer)
}

/// The twelve entries of the lorebook that S0 looked at.
fn lyra() -> Vec<Entry> {
    let registered: [(&str, &str); 7] = [
        (
            "character",
            "uid: 7 | name: character-Lyra Heartstrings\n- uid: 8 | name: character-Bon Bon",
        ),
        (
            "location",
            "uid: 9 | name: location-Park\n- uid: 10 | name: location-Lyra and Bon Bon's Home",
        ),
        ("item", ""),
        ("faction", ""),
        ("lore", "uid: 11 | name: lore-Equestria Society"),
        ("quest", ""),
        ("rule", ""),
    ];
    let registry = |(uid, (kind, lines)): (i64, (&str, &str))| {
        let lines = if lines.is_empty() { String::new() } else { format!("\n- {lines}") };
        Entry::registry_of(uid, kind, &format!("[Registry: {kind}]{lines}"))
    };
    let mut entries: Vec<_> = (0..).zip(registered).map(registry).collect();
    let titles = [
        "character-Lyra Heartstrings",
        "character-Bon Bon",
        "location-Park",
        "location-Lyra and Bon Bon's Home",
        "lore-Equestria Society",
    ];
    entries.extend(
        (7..)
            .zip(titles)
            .map(|(uid, title)| Entry::new(uid, title, &format!("All about {title}."))),
    );
    entries
}

/// The keys and titles of a book without its queue, and the queue's key.
fn titled(book: &[u8]) -> (Vec<(String, String)>, String) {
    let mut all: Vec<_> = entries(book).into_iter().map(|(key, title, _)| (key, title)).collect();
    let (key, title) = all.pop().unwrap();
    assert_eq!(title, "__operation_queue", "{all:?}");
    (all, key)
}

#[test]
fn s0_req_52_uids_match_0_1_2() {
    // Whatever the order in which they were noted.
    let mut notes = lyra();
    notes.reverse();
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(found_here.len(), 12);
    for (n, ((key, title), entry)) in found_here.iter().zip(lyra()).enumerate() {
        assert_eq!(key, &n.to_string());
        let noted: Value = serde_json::from_str(&entry.json).unwrap();
        assert_eq!((json!(title), json!(n)), (noted["comment"].clone(), noted["uid"].clone()));
    }
    for (key, entry) in st::entries(&book) {
        assert_eq!(st::entry_uid(entry).unwrap().to_string(), key.to_string_lossy());
    }
    assert_eq!(told(&answer), []);
}

#[test]
fn s0_req_52_registry_references_work() {
    let (sandbox, _) = noted_entries(lyra());
    let (book, answer) = at_7(&sandbox);
    let all = entries(&book);
    let mut references = 0;
    for (_, _, text) in all.iter().filter(|(_, title, _)| title.starts_with("_registry_")) {
        let registry: Value = serde_json::from_str(text).unwrap();
        for line in registry["content"].as_str().unwrap().lines().skip(1) {
            let (uid, name) = line.split_once(" | name: ").unwrap();
            let uid = uid.strip_prefix("- uid: ").unwrap();
            let entry = all.iter().find(|(key, ..)| key == uid).unwrap();
            assert_eq!(entry.1, name);
            references += 1;
        }
    }
    assert_eq!(references, 5);
    assert_eq!(told(&answer), []);
    // A reference that leads nowhere is found.
    let mut notes = lyra();
    notes.remove(8);
    let (sandbox, _) = noted_entries(notes);
    let (_, answer) = at_7(&sandbox);
    assert!(told(&answer).contains(&("registry-dangling".into(), "warning".into())));
}

#[test]
fn s0_req_52_no_cross_contamination() {
    let (sandbox, library) = noted_entries(lyra());
    let main = sandbox.files();
    let (book, _) = at_7(&sandbox);
    let fork_book = bound_book(&sandbox, "chats/Mira/CP.jsonl");
    // The fork's lorebook changes, and main's does not; nor the other way round.
    sandbox
        .write(&fork_book, String::from_utf8(book).unwrap().replace("All about", "Nothing about"));
    sandbox.append("chats/Mira/CP.jsonl", &library.message(8));
    sandbox.stvc(&["snapshot"]).exits(0);
    untouched(&sandbox, &main);
    let fork = sandbox.files();
    sandbox.stvc(&["restore", "chats/Mira/Harbour nights", "--at", "7", "--overwrite"]).exits(0);
    for path in [fork_book.as_str(), "chats/Mira/CP.jsonl"] {
        assert_eq!(sandbox.read(path), fork[path], "{path}");
    }
    assert_ne!(sandbox.read(&library.book_path()), main[&library.book_path()]);
}

#[test]
fn s0_ec1_the_queue_is_left_out_and_a_fresh_one_made() {
    let mut notes = lyra();
    notes.push(Entry::queue(1_763_632_438_061, &[Operation::new("pending").about(3)]));
    let (sandbox, _) = noted_entries(notes);
    let (book, _) = at_7(&sandbox);
    let (found_here, queue) = titled(&book);
    assert_eq!(found_here.len(), 12);
    assert_eq!(waiting(&book), 0);
    assert_ne!(queue, "1763632438061", "a new moment, not the noted one");
    assert!(queue.parse::<i64>().unwrap() > 1_000_000_000_000, "{queue}");
    assert!(!String::from_utf8(book).unwrap().contains("GENERATE_SCENE_RECAP"));
}

#[test]
fn s0_ec2_uids_that_do_not_start_at_0_are_kept() {
    let notes: Vec<_> = lyra().into_iter().skip(5).take(4).collect();
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(
        found_here.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["5", "6", "7", "8"]
    );
    assert_eq!(told(&answer), found(&[("uid-gaps", "info")]));
}

#[test]
fn s0_ec3_gaps_are_kept_and_registries_still_resolve() {
    let mut notes: Vec<_> =
        [0, 1, 2].map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")).into();
    notes.push(Entry::registry(5, "lore", &[(1, "lore-1"), (7, "lore-7")]));
    notes.extend([6, 7].map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")));
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(
        found_here.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "5", "6", "7"]
    );
    assert_eq!(told(&answer), found(&[("uid-gaps", "info")]), "no reference dangles");
}

#[test]
fn s0_missing_metadata_is_handled() {
    let (sandbox, library) = noted_entries(Vec::new());
    // The scene before it has notes: these are taken, and that is said.
    let (book, answer) = at_7(&sandbox);
    assert_eq!(titled(&book).0.len(), library.scenes[0].entries.len());
    assert_eq!(told(&answer), found(&[("note-missing", "warning")]));
    // None has: an error that names the message, and nothing is written.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes.iter_mut().for_each(|scene| scene.entries.clear());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    let answer = sandbox.json(&["restore", "Harbour", "--at", "7", "--as", "CP"]).exits(4);
    assert_eq!(told(&answer), found(&[("lorebook-then-unknown", "error")]));
    assert!(answer.of_type("error")[0]["message"].as_str().unwrap().contains("message 7"));
    assert_same(&sandbox.files(), &before);
}
