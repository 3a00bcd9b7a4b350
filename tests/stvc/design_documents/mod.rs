//! The tests and edge cases that the design documents of ST-Auto-Recap ask for, each under its number there: `s1_t3` is test 3 of S1 (docs/requirements.md says
//! which document that is).
//!
//! What they say of a running extension is translated into what happens to files: a chat "progresses" when its files are written as they are then, a
//! checkpoint is "loaded" when it is restored, and "contamination" is any other byte of any other file.

mod s0_lorebooks_of_scenes;
mod s1_checkpoints;
mod s2_lorebooks_of_checkpoints;
mod s3_changes;

use crate::common::Sandbox;
use crate::common::recap_library::{Entry, RecapLibrary};
use crate::common::recap_story::{another_way, bound_book, story};

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
