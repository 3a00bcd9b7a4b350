//! `undo`, and undo of an undo.

use serde_json::json;

use crate::common::devices::{sync, synced_pair};
use crate::common::recap_library::RecapLibrary;
use crate::common::{A, Sandbox, assert_same, chat, git, message, refs, text};

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";

#[test]
fn every_command_can_be_undone_in_turn() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
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
            // A file that was deleted by hand is restored by hand.
            sandbox.write(CHAT, &states[4].1[CHAT]);
        } else {
            assert_eq!(remember(&sandbox).1, state.1, "files after undoing back to state {number}");
        }
    }
    sandbox.stvc(&["undo"]).exits(0);
    assert!(refs(&sandbox.store()).is_empty());
    let nothing = sandbox.stvc(&["undo"]).exits(0).stdout;
    assert!(nothing.starts_with("Nothing to undo."), "{nothing}");

    // Git prunes nothing of it, and everything can be redone.
    git(&sandbox.store(), &["gc", "-q", "--prune=now"]);
    let undone = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let last = undone[0]["number"].as_u64().unwrap().to_string();
    sandbox.stvc(&["undo", &last]).exits(0);
    assert_eq!(refs(&sandbox.store()), states[0].0);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn undo_restores_overwritten_files_byte_for_byte() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write(CHAT, b"\xff garbage \n {");
    sandbox.write("worlds/Tide Office Lore.json", b"[not a book]");
    let broken = sandbox.files();
    // The lorebook is stored before it is replaced, although the current chat does not name it.
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
fn undo_of_a_restore_reverts_the_group() {
    let sandbox = Sandbox::from_fixture("1.12.6");
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
fn undo_does_not_overwrite_later_changes() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"something new"}"#);
    let now = sandbox.files();
    let answer = sandbox.stvc(&["undo"]).exits(4);
    assert!(answer.stderr.contains("1 message was added to chats/Mira Voss/"), "{}", answer.stderr);
    assert_eq!(sandbox.files(), now);
    // An operation below a later one is not undone either.
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["undo", "1"]).exits(4);
}

#[test]
fn operations_lists_commands_and_their_undos() {
    let sandbox = Sandbox::from_fixture("1.19.0");
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
    assert!(
        text.contains("stvc tag here \"Tide Office\"  (undone by 3; run `stvc undo 3` to redo it)"),
        "{text}"
    );
    assert!(!text.contains("18 timelines"), "{text}");
    let already = sandbox.json(&["undo", "2"]).exits(0);
    assert_eq!(already.of_type("operation")[0]["undone_by"], json!(3));
    sandbox.stvc(&["undo", "99"]).exits(1);
    sandbox.stvc(&["undo", "--dry-run"]).exits(0);
    assert_eq!(sandbox.json(&["operations"]).exits(0).of_type("operation").len(), 3);
}

#[test]
fn snapshot_and_its_tag_are_undone_together() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    let before = refs(&sandbox.store());
    sandbox.stvc(&["snapshot", "Tide Office", "--tag", "foo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(refs(&sandbox.store()), before);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn undo_of_a_restore_keeps_earlier_group_changes() {
    let sandbox = Sandbox::from_fixture("1.12.6");
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

const BOOK: &str = "worlds/Tide Office Lore.json";

/// Returns the numbers of all operations, newest first.
fn numbers(sandbox: &Sandbox) -> Vec<u64> {
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    lines.iter().map(|line| line["number"].as_u64().unwrap()).collect()
}

#[test]
fn one_undo_reverts_every_file_of_restore_all() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let (refs_before, files_before) = (refs(&sandbox.store()), sandbox.files());
    let chats = ["chats", "group chats", "groups", "worlds"];
    for folder in chats {
        let folder = sandbox.path(folder);
        if folder.exists() {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
    let removed = sandbox.files();
    let count = numbers(&sandbox).len();
    sandbox.stvc(&["restore", "--all"]).exits(0);
    assert_same(&sandbox.files(), &files_before);
    assert_eq!(numbers(&sandbox).len(), count + 1, "one command is one operation");
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &removed);
    assert_eq!(refs(&sandbox.store()), refs_before);
    let redo = numbers(&sandbox)[0].to_string();
    sandbox.stvc(&["undo", &redo]).exits(0);
    assert_same(&sandbox.files(), &files_before);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn one_undo_reverts_every_file_that_restore_all_overwrote() {
    for fixture in ["1.19.0", "1.12.6"] {
        let sandbox = Sandbox::from_fixture(fixture);
        sandbox.stvc(&["snapshot"]).exits(0);
        let stored = sandbox.files();
        // Every chat, group and lorebook is changed without a snapshot.
        for (path, bytes) in &stored {
            if path.starts_with("chats/") || path.starts_with("group chats/") {
                sandbox.append(path, r#"{"name":"Wren","mes":"not stored"}"#);
            } else if path.starts_with("worlds/") {
                let text = String::from_utf8(bytes.clone()).unwrap();
                sandbox.write(path, format!("{text}\n"));
            }
        }
        let (changed, refs_before) = (sandbox.files(), refs(&sandbox.store()));
        assert!(changed != stored);
        let count = numbers(&sandbox).len();
        sandbox.stvc(&["restore", "--all", "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), &stored);
        assert_eq!(numbers(&sandbox).len(), count + 1, "one command is one operation");
        let newest = sandbox.json(&["status"]).exits(0).of_type("summary");
        assert_eq!(newest[0]["changed"], json!(0), "the newest snapshots are what is on disk");
        sandbox.stvc(&["undo"]).exits(0);
        assert_same(&sandbox.files(), &changed);
        // The unsaved changes are stored: the latest snapshot equals the files.
        assert_ne!(refs(&sandbox.store()), refs_before);
        assert_eq!(sandbox.json(&["status"]).exits(0).of_type("summary")[0]["changed"], json!(0));
        sandbox.stvc(&["check"]).exits(0);
    }
}

#[test]
fn restore_all_lists_every_chat_of_a_deleted_group() {
    let sandbox = Sandbox::from_fixture("1.12.6");
    sandbox.stvc(&["snapshot"]).exits(0);
    let stored = sandbox.files();
    let chats = || stored.keys().filter(|path| path.starts_with("group chats/"));
    assert!(chats().count() > 1);
    for path in chats() {
        std::fs::remove_file(sandbox.path(path)).unwrap();
    }
    let group = "groups/1794702122839.json";
    let text = String::from_utf8(sandbox.read(group)).unwrap();
    let (head, rest) = text.split_once("\"chats\": [").unwrap();
    let (_, rest) = rest.split_once(']').unwrap();
    sandbox.write(group, format!("{head}\"chats\": []{rest}"));
    let before = sandbox.files();
    // The group changed and stays; it lists its chats.
    sandbox.stvc(&["restore", "--all"]).exits(3);
    let listed: serde_json::Value = serde_json::from_slice(&sandbox.read(group)).unwrap();
    assert_eq!(listed["chats"].as_array().unwrap().len(), chats().count(), "{listed}");
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn restore_all_skips_an_unwritable_timeline() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let stored = sandbox.files();
    let folder = sandbox.path("chats/Mira Voss");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    // A file in place of its folder.
    std::fs::write(&folder, "in the way").unwrap();
    sandbox.stvc(&["restore", "--all"]).exits(3);
    assert_eq!(sandbox.read(BOOK), stored[BOOK]);
    std::fs::remove_file(&folder).unwrap();
    sandbox.stvc(&["undo"]).exits(0);
    assert!(!sandbox.path(BOOK).exists());
}

#[test]
fn undo_of_a_command_also_reverts_the_snapshots_it_created_first() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"not stored"}"#);
    let (before, refs_before) = (sandbox.files(), refs(&sandbox.store()));
    sandbox.stvc(&["fork", "Tide Office — part 1 (雨)", "--at", "2", "--as", "What if"]).exits(0);
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    assert_eq!(lines[0]["continues"], lines[1]["number"], "{lines:?}");
    assert_eq!(lines[1]["continued_by"], lines[0]["number"]);
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    assert_eq!(refs(&sandbox.store()), refs_before);
    // One undo reverts it, and the next one reverts the command before.
    let next = sandbox.json(&["undo", "--dry-run"]).exits(0).of_type("operation");
    assert_eq!(next[0]["number"], json!(1));
    // The number of a part selects the entire command, which can be redone.
    let redo = numbers(&sandbox)[0].to_string();
    sandbox.stvc(&["undo", &redo]).exits(0);
    assert!(sandbox.path("chats/Mira Voss/What if.jsonl").exists());
    sandbox.stvc(&["undo", "2"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn undo_after_an_undone_restore_reverts_the_previous_operation() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"stored"}"#);
    let stored = refs(&sandbox.store());
    sandbox.stvc(&["snapshot"]).exits(0);
    // The state before the restore is in no snapshot.
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"not stored"}"#);
    let written = sandbox.read(CHAT);
    sandbox.stvc(&["restore", "Tide Office~1", "--overwrite"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(CHAT), written);
    let answer = sandbox.json(&["undo"]).exits(0);
    assert_eq!(answer.of_type("operation")[0]["number"], json!(2));
    assert_eq!(refs(&sandbox.store()), stored);
    assert_eq!(sandbox.read(CHAT), written, "a snapshot that is taken back changes no file");
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn refused_undo_names_later_changes_and_offers_the_earlier_snapshot() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"never stored"}"#);
    let text = String::from_utf8(sandbox.read(BOOK)).unwrap();
    sandbox.write(BOOK, text.replacen("content\": \"", "content\": \"Once. ", 1));
    let (chat, book) = (sandbox.read(CHAT), sandbox.read(BOOK));
    assert!(book != text.as_bytes());
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    for words in ["one", "two"] {
        sandbox.append(CHAT, &format!(r#"{{"name":"Wren","mes":"{words}"}}"#));
        // Whether or not the watch stored it.
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    let now = sandbox.files();
    let answer = sandbox.json(&["undo", "2"]).exits(4);
    assert_same(&sandbox.files(), &now);
    let error = &answer.of_type("error")[0];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("2 messages were added to chats/Mira Voss/The Tide"), "{message}");
    let [offer] = error["offers"].as_array().unwrap().as_slice() else { panic!("{error}") };
    let hint = error["hint"].as_str().unwrap();
    let (moment, name) = (offer["moment"].as_str().unwrap(), offer["name"].as_str().unwrap());
    assert!(hint.contains(&format!("`stvc restore {moment} --as \"{name}\"`")), "{hint}");
    // Exactly as printed.
    sandbox.stvc(&["restore", moment, "--as", name]).exits(0);
    let made = sandbox.read(&format!("chats/Mira Voss/{name}.jsonl"));
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&made), lines(&chat));
    let books = sandbox.files().into_iter();
    let copies: Vec<_> =
        books.filter(|(path, bytes)| path.starts_with("worlds/") && *bytes == book).collect();
    assert_eq!(copies.len(), 1, "the new chat has the lorebook of then");
}

#[test]
fn refused_undo_of_a_fork_names_later_changes() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Tide Office — part 1 (雨)", "--as", "What if"]).exits(0);
    sandbox.append("chats/Mira Voss/What if.jsonl", r#"{"name":"Wren","mes":"one more"}"#);
    let answer = sandbox.json(&["undo"]).exits(4);
    let error = &answer.of_type("error")[0];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("1 message was added to chats/Mira Voss/What if since"), "{message}");
    assert_eq!(error["offers"], json!([]));
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("delete the new chat in SillyTavern if you do not need it"),
        "{error}"
    );
}

#[test]
fn every_undo_prints_the_redo_command() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "here", "Tide Office"]).exits(0);
    let words = sandbox.stvc(&["undo"]).exits(0).stdout;
    assert!(words.contains("Run `stvc undo 3` to redo it."), "{words}");
    let redone = sandbox.json(&["undo", "3"]).exits(0).of_type("summary");
    assert_eq!((&redone[0]["operation"], &redone[0]["redo"]), (&json!(3), &json!(4)));
    let words = sandbox.stvc(&["operations"]).exits(0).stdout;
    assert!(words.contains("(undone by 4; run `stvc undo 4` to redo it)"), "{words}");
    sandbox.stvc(&["show", "here"]).exits(0);
}

/// Runs a command that takes a snapshot first, and asserts that one undo reverts both.
fn assert_undone_at_once(sandbox: &Sandbox, command: &[&str]) {
    sandbox.stvc(&["init"]).exits(0);
    let (before, files) = (numbers(sandbox).first().copied().unwrap_or(0), sandbox.files());
    sandbox.stvc(command).exits(0);
    assert!(numbers(sandbox)[0] > before + 1, "{command:?} began with no snapshot");
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &files);
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let stand = lines
        .iter()
        .filter(|line| line["number"].as_u64().unwrap() > before && line["undone_by"].is_null());
    let stand: Vec<_> = stand.map(|line| line["undoes"].clone()).collect();
    assert_eq!(stand.len(), 1, "{command:?}: only the undoing stands: {lines:?}");
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn undo_reverts_every_part_of_a_command() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    assert_undone_at_once(&sandbox, &["import"]);

    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    assert_undone_at_once(&sandbox, &["reconstruct", "Harbour", "--all"]);

    let sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    let fork = main.fork("Branch #1", 7);
    sandbox.write(&fork.chat_path(), fork.chat_bytes());
    assert_undone_at_once(&sandbox, &["doctor", "--fix", "--yes"]);

    let other = "chats/Mira/b.jsonl";
    let (mut one, two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(other, chat("b", 3, None));
    });
    one.append(A, &message("one", 4));
    sync(&mut one, &folder);
    two.append(other, &message("two", 4));
    assert_undone_at_once(&two, &["sync", text(&folder)]);
}

#[test]
fn redo_in_the_wrong_order_names_the_redo_to_run_first() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "here", "Tide Office"]).exits(0);
    let mut states = Vec::new();
    for n in 0..3 {
        sandbox.wait(60);
        sandbox.append(CHAT, &message("Wren", n));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["tag", "here", "Tide Office", "--move"]).exits(0);
        states.push(refs(&sandbox.store()));
    }
    // Operations 3 to 8 are undone by 9 to 14.
    for _ in 0..6 {
        sandbox.stvc(&["undo"]).exits(0);
    }
    let before = refs(&sandbox.store());
    for later in ["9", "10", "11", "12"] {
        let refused = sandbox.stvc(&["undo", later]).exits(4).stderr;
        let first = if later.parse::<u64>().unwrap() % 2 == 0 { "14" } else { "13" };
        assert!(refused.contains(&format!("yet: operation {first} is later ")), "{refused}");
        assert!(refused.contains(&format!("`stvc undo {first}` first")), "{refused}");
        assert_eq!(refs(&sandbox.store()), before);
    }
    for (n, pair) in [["14", "13"], ["12", "11"], ["10", "9"]].iter().enumerate() {
        pair.iter().for_each(|number| drop(sandbox.stvc(&["undo", number]).exits(0)));
        assert_eq!(refs(&sandbox.store()), states[n]);
    }
}

#[test]
fn redo_in_the_wrong_order_is_refused_even_if_the_state_matches() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let files = sandbox.files();
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    // The tag is set and removed, the lorebook restored and removed: both end in their first state.
    sandbox.stvc(&["tag", "here", "Tide Office"]).exits(0);
    sandbox.stvc(&["tag", "--delete", "here"]).exits(0);
    let without = refs(&sandbox.store());
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(refs(&sandbox.store()), without);
    let refused = sandbox.stvc(&["undo", "4"]).exits(4).stderr;
    assert!(refused.contains("yet: operation 5 is later (it undid operation 2)"), "{refused}");
    sandbox.stvc(&["undo", "5"]).exits(0);
    assert_ne!(refs(&sandbox.store()), without);
    sandbox.stvc(&["undo", "4"]).exits(0);
    assert_eq!(refs(&sandbox.store()), without);
    assert_ne!(sandbox.files(), files);
}

/// Creates a chat with a lorebook, and a fork with a copy of it.
fn forked() -> (Sandbox, String) {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--as", "What if"]).exits(0);
    let book = "worlds/z-AutoLB-Mira-What if.json".to_owned();
    assert!(sandbox.path(&book).exists());
    (sandbox, book)
}

#[test]
fn undo_of_a_fork_keeps_the_lorebook_of_the_renamed_fork() {
    let (sandbox, book) = forked();
    let renamed = "chats/Mira/Another.jsonl";
    let from = sandbox.path("chats/Mira/What if.jsonl");
    std::fs::rename(from, sandbox.path(renamed)).unwrap();
    let before = sandbox.files();
    let answer = sandbox.json(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    let findings = answer.of_type("finding");
    let found = findings.iter().find(|found| found["code"] == "lorebook-in-use").unwrap();
    assert_eq!(found["subject"], json!(book));
    assert!(found["message"].to_string().contains("used by chats/Mira/Another"), "{found}");
    let redo = numbers(&sandbox)[0].to_string();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["check"]).exits(0);
    let status = sandbox.json(&["status"]).exits(0).of_type("summary");
    assert_eq!((&status[0]["changed"], &status[0]["new"]), (&json!(0), &json!(0)));
    // The fork's chat returns under its first name, beside the renamed one.
    sandbox.stvc(&["undo", &redo]).exits(0);
    assert!(sandbox.path("chats/Mira/What if.jsonl").exists());
    assert_eq!(sandbox.read(&book), before[&book]);
}

#[test]
fn undo_of_a_fork_is_refused_after_a_snapshot_of_the_renamed_fork() {
    let (mut sandbox, book) = forked();
    let renamed = sandbox.path("chats/Mira/Another.jsonl");
    std::fs::rename(sandbox.path("chats/Mira/What if.jsonl"), renamed).unwrap();
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    let (before, refs_before) = (sandbox.files(), refs(&sandbox.store()));
    let number = numbers(&sandbox)[1].to_string();
    sandbox.stvc(&["undo", &number]).exits(4);
    assert_same(&sandbox.files(), &before);
    assert_eq!(refs(&sandbox.store()), refs_before);
    assert!(sandbox.path(&book).exists());
}

#[test]
fn undo_of_a_fork_keeps_a_lorebook_used_by_another_chat() {
    let (sandbox, book) = forked();
    let name = "z-AutoLB-Mira-What if";
    sandbox.write("chats/Mira/Newcomer.jsonl", chat("Mira", 3, Some(name)));
    sandbox.stvc(&["undo"]).exits(0);
    assert!(!sandbox.path("chats/Mira/What if.jsonl").exists());
    assert!(sandbox.path(&book).exists());
}

#[test]
fn undo_of_a_restore_removes_the_lorebook_that_was_missing() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    let before = sandbox.files();
    sandbox.stvc(&["restore", "Tide Office"]).exits(0);
    assert!(sandbox.path(BOOK).exists());
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn undo_of_a_fork_keeps_a_lorebook_used_by_settings() {
    let (sandbox, book) = forked();
    let name = "z-AutoLB-Mira-What if";
    let settings = json!({ "world_info_settings": { "world_info": { "globalSelect": [name] } } });
    sandbox.write("settings.json", settings.to_string());
    let answer = sandbox.json(&["undo"]).exits(0);
    assert!(!sandbox.path("chats/Mira/What if.jsonl").exists());
    assert!(sandbox.path(&book).exists(), "{answer:?}");
}

#[test]
fn refused_undo_of_a_group_restore_suggests_no_second_group() {
    const GROUP: &str = "groups/1.json";
    let group = |name: &str| json!({ "id": "1", "name": name, "chats": ["g"] }).to_string();
    let mut sandbox = Sandbox::empty();
    sandbox.write("group chats/g.jsonl", chat("g", 2, None));
    for name in ["Crew", "Pirates"] {
        sandbox.write(GROUP, group(name));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    sandbox.stvc(&["restore", "groups/1~1", "--overwrite"]).exits(0);
    sandbox.write(GROUP, group("Sailors"));
    let refused = sandbox.stvc(&["undo"]).exits(4).stderr;
    assert!(!refused.contains("--as"), "{refused}");
}
