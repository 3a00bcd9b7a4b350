//! Repairs, and events between plan and repair.

use serde_json::Value;

use std::fs;
use std::time::Duration;

use stvc::internals::engine::Workspace;
use stvc::internals::engine::files::ChatOpenState;
use stvc::progress::NoProgress;
use stvc::verbs::doctor::{self, Repair};

use super::{BOOK, family, fix, write_chat};
use crate::common::recap_library::{RecapLibrary, book_name, quoted};
use crate::common::{Sandbox, assert_same};

/// Two repairs change the header of one chat.
#[test]
fn several_repairs_of_one_chat_are_made_together() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { chat: "A new name".into(), ..RecapLibrary::default() };
    library.write(&sandbox);
    fs::remove_file(sandbox.path(&library.book_path())).unwrap();
    let before = String::from_utf8(sandbox.read(&library.chat_path())).unwrap();
    let after = fix(&sandbox, &["--repair", "detach"], &[&library.chat_path()]);
    let bound = format!("\"world_info\":{}", quoted(library.book.as_deref().unwrap()));
    assert_eq!(
        String::from_utf8_lossy(&after[&library.chat_path()]),
        before
            .replacen("\"chat_id\":\"Harbour nights\"", "\"chat_id\":\"A new name\"", 1)
            .replacen(&bound, "\"world_info\":null", 1)
    );
}

#[test]
fn repairs_of_real_libraries_can_be_undone() {
    for version in ["1.19.0", "1.12.6"] {
        for snapshot_first in [false, true] {
            let mut sandbox = Sandbox::from_fixture(version);
            if snapshot_first {
                sandbox.stvc(&["snapshot"]).exits(0);
                sandbox.wait(60);
            }
            let before = sandbox.files();
            sandbox.stvc(&["doctor", "--fix", "--yes", "--orphans"]).exits(0);
            let after = sandbox.files();
            assert_ne!(after, before);
            let answer = sandbox.json(&["doctor"]).exits(0);
            assert!(answer.of_type("repair").is_empty(), "{}", answer.stdout);
            assert!(!answer.stdout.contains("lorebook-shared"), "{}", answer.stdout);
            // Everything was stored before the repair, and is afterwards.
            let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
            let is_removed = |line: &Value| {
                line["state"] == "deleted"
                    && line["timeline"].as_str().unwrap().starts_with("worlds/")
            };
            let known = |line: &Value| line["state"] == "unchanged" || is_removed(line);
            assert!(lines.iter().all(known), "{lines:?}");
            for (path, bytes) in &before {
                if let Some(now) = after.get(path).filter(|now| *now != bytes) {
                    let body = |bytes: &[u8]| {
                        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
                        bytes[end..].to_vec()
                    };
                    assert_eq!(body(now), body(bytes), "{path}: no message changed");
                }
            }
            sandbox.stvc(&["undo"]).exits(0);
            assert_same(&sandbox.files(), &before);
            sandbox.stvc(&["check"]).exits(0);
            sandbox.git(&["fsck", "--strict"]);
        }
    }
}

/// Files that are in no snapshot yet are stored too.
#[test]
fn changes_since_the_last_snapshot_survive_a_repair() {
    let (mut sandbox, _, forks) = family();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(&forks[0].chat_path(), r#"{"name":"Wren","mes":"not stored yet"}"#);
    let own = forks.clone().map(|fork| format!("worlds/{}.json", book_name("Mira", &fork.chat)));
    fix(&sandbox, &[], &[&forks[0].chat_path(), &forks[1].chat_path(), &own[0], &own[1]]);
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(status.iter().all(|line| line["state"] == "unchanged"), "{status:?}");
    for (fork, own) in forks.iter().zip(&own) {
        let log = sandbox.json(&["log", &fork.chat]).exits(0).of_type("snapshot");
        assert_eq!(format!("worlds/{}.json", log[0]["lorebook"].as_str().unwrap()), *own);
        assert_eq!(log[1]["lorebook"], log[2]["lorebook"], "what was not stored yet");
    }
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn doctor_changes_nothing_without_confirmation() {
    let (sandbox, ..) = family();
    let before = sandbox.files();
    let answer = sandbox.stvc(&["doctor"]).exits(0);
    assert!(answer.stdout.contains("would give chats/Mira/Branch #1 its own lorebook"));
    assert!(answer.stdout.contains("Run `stvc doctor --fix` to repair"), "{}", answer.stdout);
    // Without a terminal.
    let answer = sandbox.stvc(&["doctor", "--fix"]).exits(0);
    assert!(answer.stdout.contains("Add --yes"), "{}", answer.stdout);
    let lines = sandbox.json(&["doctor", "--fix"]).exits(0).of_type("repair");
    assert!(lines.iter().all(|line| line["done"] == false));
    assert_same(&sandbox.files(), &before);
    assert!(!sandbox.store().exists());
    sandbox.stvc(&["doctor", "--yes"]).exits(2);
}

#[test]
fn locked_store_prevents_repairs() {
    let (sandbox, ..) = family();
    sandbox.stvc(&["snapshot"]).exits(0);
    let held = fs::File::options().write(true).open(sandbox.store().join("stvc/lock")).unwrap();
    held.lock().unwrap();
    let before = sandbox.files();
    sandbox.stvc(&["doctor"]).exits(0);
    // The program waits for ten seconds; see `parallel::held_lock_blocks_writers_and_not_readers`.
    let workspace = Workspace { patience: Duration::from_millis(100), ..sandbox.workspace() };
    let plan = doctor::doctor(&workspace, &doctor::Options::default(), &mut NoProgress).unwrap();
    let all: Vec<_> = plan.repairs.iter().collect();
    assert!(!all.is_empty());
    let refused = doctor::fix(&workspace, &all, ChatOpenState::Unknown, &mut NoProgress);
    let error = refused.err().expect("somebody holds the lock").to_string();
    assert!(error.contains("is in use by"), "{error}");
    assert_same(&sandbox.files(), &before);
}

/// While the user answers questions, SillyTavern saves.
#[test]
fn outdated_repair_plan_changes_nothing() {
    let (sandbox, main, forks) = family();
    sandbox.write("worlds/z-AutoLB-left.json", BOOK);
    let workspace = sandbox.workspace();
    let options = doctor::Options::default();
    let plan = || doctor::doctor(&workspace, &options, &mut NoProgress).unwrap();
    let fix = |repairs: &[&Repair]| {
        doctor::fix(&workspace, repairs, ChatOpenState::Unknown, &mut NoProgress)
    };

    // The plan still applies with one more message.
    let planned = plan();
    let all: Vec<_> = planned.repairs.iter().collect();
    assert_eq!(all.len(), 3);
    sandbox.append(&forks[0].chat_path(), r#"{"name":"Wren","mes":"meanwhile"}"#);
    // A lorebook that is used now is not removed.
    write_chat(&sandbox, "chats/B/b", Some("z-AutoLB-left"), "");
    let before = sandbox.files();
    let fixed = fix(&all).unwrap();
    assert_eq!(fixed.done, [true, true, false]);
    assert!(sandbox.path("worlds/z-AutoLB-left.json").exists());
    let chat = String::from_utf8(sandbox.read(&forks[0].chat_path())).unwrap();
    assert!(chat.ends_with(r#""mes":"meanwhile"}"#));
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);

    // The user bound another lorebook.
    let planned = plan();
    let other = RecapLibrary { book: Some("z-AutoLB-left".into()), ..forks[1].clone() };
    sandbox.write(&other.chat_path(), other.chat_bytes());
    let before = sandbox.files();
    assert!(fix(&planned.repairs.iter().collect::<Vec<_>>()).is_err());
    assert_same(&sandbox.files(), &before);

    // The name for the copy is taken.
    let planned = plan();
    let own = format!("worlds/{}.json", book_name("Mira", &forks[0].chat));
    sandbox.write(&own, "somebody's");
    let before = sandbox.files();
    let repairs: Vec<_> = planned.repairs.iter().collect();
    assert!(fix(&repairs).is_err());
    assert_same(&sandbox.files(), &before);
    fs::remove_file(sandbox.path(&own)).unwrap();

    // The lorebook was deleted.
    fs::remove_file(sandbox.path(&main.book_path())).unwrap();
    let before = sandbox.files();
    assert!(fix(&repairs).is_err());
    assert_same(&sandbox.files(), &before);
    let mut operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    operations.retain(|line| line["files"].is_array());
    assert_eq!(operations.len(), 2, "what failed is no operation");
}

/// A power cut after the operation was logged: only some of the files are written.
#[test]
fn interrupted_repair_can_be_undone() {
    let (sandbox, _, forks) = family();
    sandbox.write("worlds/z-AutoLB-left.json", BOOK);
    let before = sandbox.files();
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let after = sandbox.files();
    let chat = forks[0].chat_path();
    let states: [&[&str]; 3] = [&[], &[&chat], &["worlds/z-AutoLB-left.json", &chat]];
    for not_written in states {
        for path in not_written {
            sandbox.write(path, &before[*path]);
        }
        sandbox.stvc(&["undo"]).exits(0);
        assert_same(&sandbox.files(), &before);
        let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
        sandbox.stvc(&["undo", &operations[0]["number"].to_string()]).exits(0);
        assert_same(&sandbox.files(), &after);
    }
}
