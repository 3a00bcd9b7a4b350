//! S2: lorebooks of checkpoints.

use std::fs;

use serde_json::json;

use super::with_checkpoint;
use crate::common::recap_library::{Entry, Operation, RecapLibrary};
use crate::common::recap_story::{Files, bound_book, entries, found, metadata, told, waiting};
use crate::common::{Sandbox, assert_same};

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
    assert_eq!(of(b.strip_suffix(".json").unwrap()), "changed");
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
    assert_eq!(told(&answer), found(&[("lorebook-orphaned", "warning"); 2]));
    let subjects: Vec<_> =
        answer.of_type("finding").iter().map(|finding| finding["subject"].clone()).collect();
    assert_eq!(subjects, [second, &book]);
    assert!(sandbox.path(&book).exists() && sandbox.path(second).exists());
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    // The map does not name it any more.
    main.more.pop();
    main.more.push(("auto_recap".into(), json!({ "checkpoint_lorebook_map": {} }).to_string()));
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
