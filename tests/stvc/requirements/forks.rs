//! Fork points, and the timelines after them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::Sandbox;
use crate::common::recap_library::RecapLibrary;
use crate::common::recap_story::{bound_book, diverging_fork, story};

#[test]
fn req_54_chat_is_not_a_fork_because_of_its_name_alone() {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::new("Mira", "Main");
    main.write(&sandbox);
    let mut own_book = main.fork("A name of my own", 5);
    own_book.write(&sandbox);
    // Before `main_chat` existed: only name and messages identify the parent.
    own_book = main.fork("Main - Checkpoint #1", 7);
    own_book.main_chat = None;
    own_book.write(&sandbox);
    for name in ["Branch #5 - 2026-11-14@23h57m31s", "Main - Bookmark #2", "Checkpoint #1"] {
        let mut other = RecapLibrary::new("Mira", name);
        other.story = format!("another one, {name}");
        other.write(&sandbox);
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let parents: BTreeMap<_, _> = sandbox
        .json(&["timelines"])
        .exits(0)
        .of_type("timeline")
        .iter()
        .map(|line| {
            let name = line["timeline"].as_str().unwrap().trim_start_matches("chats/Mira/");
            (name.to_owned(), (line["parent"].clone(), line["fork_at"].clone()))
        })
        .collect();
    let main = json!("chats/Mira/Main");
    for (name, expected) in [
        ("Main", (Value::Null, Value::Null)),
        ("A name of my own", (main.clone(), json!(6))),
        ("Main - Checkpoint #1", (main, json!(8))),
        ("Branch #5 - 2026-11-14@23h57m31s", (Value::Null, Value::Null)),
        ("Main - Bookmark #2", (Value::Null, Value::Null)),
        ("Checkpoint #1", (Value::Null, Value::Null)),
    ] {
        assert_eq!(parents[name], expected, "{name}");
    }
}

#[test]
fn req_25_changes_in_one_timeline_do_not_affect_others() {
    let mut sandbox = Sandbox::empty();
    story("Main", 3).write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "v3"]).exits(0);
    sandbox.stvc(&["restore", "Main", "--as", "Fork"]).exits(0);
    let of_fork = |sandbox: &Sandbox| {
        let book = bound_book(sandbox, "chats/Mira/Fork.jsonl");
        let tip = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/Fork"]);
        (sandbox.read("chats/Mira/Fork.jsonl"), sandbox.read(&book), tip)
    };
    let (fork, before) = (of_fork(&sandbox), sandbox.snapshot_ids());
    // The main chat grows, is restored, and grows differently.
    for command in [&["snapshot", "Main"][..], &["restore", "v3", "--overwrite"]] {
        sandbox.wait(60);
        story("Main", 5).write(&sandbox);
        sandbox.stvc(command).exits(0);
        assert!(of_fork(&sandbox) == fork, "{command:?}");
    }
    sandbox.wait(60);
    let main = story("Main", 3);
    let book = main.book_bytes().replace("They are No 1.", "They were No 1.");
    sandbox.write(&main.book_path(), &book);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(of_fork(&sandbox) == fork);
    // Every snapshot still exists unchanged.
    let now = sandbox.snapshot_ids();
    assert!(before.iter().all(|id| now.contains(id)), "{before:?} {now:?}");
    let parents = || sandbox.git(&["log", "--all", "--format=%P"]);
    assert!(parents().lines().all(|line| line.split(' ').count() <= 1), "{}", parents());

    // A merge copies the other's entries; the other book stays.
    sandbox.stvc(&["merge", "Mira/Fork", "Mira/Main", "--yes"]).exits(0);
    let merged = bound_book(&sandbox, "chats/Mira/Fork.jsonl");
    assert_eq!(String::from_utf8(sandbox.read(&merged)).unwrap(), book);
    assert_eq!(String::from_utf8(sandbox.read(&main.book_path())).unwrap(), book);
    assert_eq!(sandbox.read(&main.chat_path()), main.chat_bytes().into_bytes());
    let tip = |name: &str| sandbox.git(&["rev-parse", &format!("refs/heads/chats/Mira/{name}")]);
    let both = sandbox.git(&["log", "-1", "--format=%P", tip("Fork").trim()]);
    assert_eq!(both.trim(), format!("{} {}", fork.2.trim(), tip("Main").trim()));
}

/// Before `main_chat` existed: of two equal chats the parent is the one in the checkpoint's name.
#[test]
fn req_54_name_of_an_old_checkpoint_determines_its_parent() {
    for (name, parent) in [
        ("Main Checkpoint #1", "Main"),
        ("Main - Checkpoint #1 - 2024-01-15 @02h35m22s", "Main"),
        // The name has no parent, or one that does not exist.
        ("Checkpoint #1", "A copy"),
        ("Gone Checkpoint #1", "A copy"),
        ("Main Branch #1", "A copy"),
    ] {
        let sandbox = Sandbox::empty();
        let main = RecapLibrary::new("Mira", "Main");
        main.write(&sandbox);
        RecapLibrary { chat: "A copy".into(), ..main.clone() }.write(&sandbox);
        RecapLibrary { main_chat: None, ..main.fork(name, 7) }.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
        let line = lines.iter().find(|line| line["timeline"] == format!("chats/Mira/{name}"));
        assert_eq!(line.unwrap()["parent"], format!("chats/Mira/{parent}"), "{name}");
    }
}

#[test]
fn req_58_forks_continue_separate_chains_from_the_fork_point() {
    let mut sandbox = Sandbox::empty();
    let (main, fork) = (
        |n| story("Main", n),
        |n| RecapLibrary { main_chat: Some("Main".into()), ..story("Fork", n) },
    );
    main(2).write(&sandbox);
    let parted = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot").remove(0);
    sandbox.stvc(&["restore", "Main", "--as", "Fork"]).exits(0);
    for n in 3..=5 {
        sandbox.wait(60);
        main(n).write(&sandbox);
        let fork = fork(n);
        fork.write(&sandbox);
        sandbox.write(&fork.chat_path(), diverging_fork(&fork, 20));
        assert_eq!(sandbox.json(&["snapshot"]).exits(0).chat_lines("snapshot").len(), 2);
    }
    let chain = |name: &str| {
        let ids = sandbox.git(&["log", "--format=%H", &format!("refs/heads/chats/Mira/{name}")]);
        ids.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (mine, other) = (chain("Main"), chain("Fork"));
    assert_eq!((mine.len(), other.len()), (4, 5));
    let base = sandbox.git(&["merge-base", &mine[0], &other[0]]);
    assert_eq!(base.trim(), parted["id"]);
    assert_eq!((Some(&mine[3]), Some(&other[4])), (mine.last(), other.last()));
    assert_eq!(mine.last(), other.last());
    // A chain never has a second parent: nothing is merged.
    let parents = sandbox.git(&["log", "--all", "--format=%P"]);
    assert!(parents.lines().all(|line| line.split(' ').count() <= 1), "{parents}");
}

#[test]
fn req_59_message_is_identified_by_content_and_not_by_number() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    // An insertion at the beginning changes all numbers; one message is new.
    let text = library.chat_bytes();
    let (header, rest) = text.split_once('\n').unwrap();
    let new = r#"{"name":"Wren","is_user":true,"send_date":"2026-11-14T22:00:00.000Z","mes":"Before all that."}"#;
    sandbox.write(&library.chat_path(), format!("{header}\n{new}\n{rest}"));
    let changes = sandbox.json(&["diff", "Harbour"]).exits(0).of_type("change");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((&changes[0]["kind"], &changes[0]["index"]), (&json!("added"), &json!(0)));
    // Message 7 of one chat is not message 7 of the other.
    library.write(&sandbox);
    let fork = RecapLibrary { messages: 9, ..library.fork("Fork", 6) };
    sandbox.write(&fork.chat_path(), diverging_fork(&fork, 5));
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer =
        sandbox.json(&["diff", "Mira/Harbour nights...Mira/Fork", "--only", "chat"]).exits(0);
    assert_eq!(answer.of_type("comparison")[0]["shared"], 6);
    let changes = answer.of_type("change");
    let kinds = |kind: &str| changes.iter().filter(|change| change["kind"] == kind).count();
    assert!(changes.iter().all(|change| change["index"].as_u64().unwrap() >= 6), "{changes:?}");
    assert_eq!(kinds("added") + kinds("removed") + 2 * kinds("edited"), 6 + 3, "{changes:?}");
}

#[test]
fn req_60_regenerated_recap_changes_one_fork_only() {
    let sandbox = Sandbox::empty();
    let mut main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--as", "Fork"]).exits(0);
    let fork = sandbox.read("chats/Mira/Fork.jsonl");
    let anew = r#"{"scene_name":"The quay","stage4":{"recap":"It went on."}}"#;
    let known = main.scenes[0].recap.clone();
    main.scenes[0].more.extend([
        ("scene_recap_versions".to_owned(), json!(["", known, anew]).to_string()),
        ("scene_recap_current_index".to_owned(), "2".to_owned()),
        ("scene_recap_memory".to_owned(), json!(anew).to_string()),
    ]);
    main.write(&sandbox);
    let since = sandbox.json(&["diff", "Mira/Harbour nights"]).exits(0);
    sandbox.stvc(&["snapshot", "Mira/Harbour nights", "--tag", "anew"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/Fork.jsonl"), fork);
    let between = sandbox.json(&["diff", "Mira/Fork", "anew"]).exits(0);
    for answer in [since, between] {
        let mut changes = answer.of_type("change");
        changes.retain(|change| change["part"] == "message");
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!((&changes[0]["index"], &changes[0]["kind"]), (&json!(3), &json!("recap")));
        let fields = changes[0]["fields"].to_string();
        assert!(fields.contains("scene_recap_current_index"), "{fields}");
    }
}
