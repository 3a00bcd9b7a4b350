//! Forks in `log --graph`, `timelines` and `timelines --tree`.

use std::fs;

use insta::assert_snapshot;

use crate::common::{Sandbox, output_without_ids};

pub fn message(text: &str) -> String {
    format!(r#"{{"name":"Mira","is_user":false,"is_system":false,"mes":"{text}","extra":{{}}}}"#)
}

/// Writes a chat of Mira with these messages.
fn chat(sandbox: &Sandbox, name: &str, main_chat: Option<&str>, messages: &[&str]) {
    let main = main_chat.map_or(String::new(), |name| format!(r#""main_chat":"{name}""#));
    let lines = messages.iter().map(|text| message(text));
    let lines: Vec<_> =
        std::iter::once(format!(r#"{{"chat_metadata":{{{main}}}}}"#)).chain(lines).collect();
    sandbox.write(&format!("chats/Mira/{name}.jsonl"), lines.join("\n"));
}

/// Creates a story, a fork of it, a fork of that fork, and one that names the fork as its parent
/// but diverges earlier.
fn forks() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    chat(&sandbox, "Story", None, &["a", "b", "c", "d"]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    chat(&sandbox, "Fork", Some("Story"), &["a", "b", "c", "x", "y"]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    chat(&sandbox, "Fork of the fork", Some("Fork"), &["a", "b", "c", "x", "z"]);
    sandbox.stvc(&["snapshot", "Fork of the fork", "--tag", "dawn"]).exits(0);
    sandbox.wait(60);
    chat(&sandbox, "Early fork", Some("Fork"), &["a", "b"]);
    chat(&sandbox, "Alone", None, &["Hello."]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox
}

#[test]
fn graph_shows_forks_of_forks() {
    let sandbox = forks();
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["log", "--graph"]).exits(0)), @"
    ◉  ID Mira / Alone  1 message, 2026-11-14 23:49
       Mira: Hello.
      ◉  ID Mira / Early fork  2 messages, 2026-11-14 23:49, forked after #1
    ╭─╯  Mira: b
    │ ◉  ID Mira / Fork of the fork  5 messages, 2026-11-14 23:48, forked after #3 [dawn]
    ├─╯  Mira: z
    ◉  ID Mira / Fork  5 messages, 2026-11-14 23:47, forked after #2
    │  Mira: y
    ◉  ID Mira / Story  4 messages, 2026-11-14 23:46
       Mira: d
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["timelines", "--tree"]).exits(0)), @"
    Mira / Alone   1 message
    Mira / Story   4 messages
    ├─ after #1  Early fork   2 messages, 0 after the fork
    └─ after #2  Fork   5 messages, 2 after the fork
       └─ after #3  Fork of the fork   5 messages, 1 after the fork   [dawn]
    ");
}

#[test]
fn deleted_and_renamed_timelines_are_marked() {
    let mut sandbox = forks();
    fs::remove_file(sandbox.path("chats/Mira/Fork.jsonl")).unwrap();
    fs::rename(sandbox.path("chats/Mira/Story.jsonl"), sandbox.path("chats/Mira/The Tide.jsonl"))
        .unwrap();
    chat(&sandbox, "The Tide", None, &["a", "b", "c", "d", "e"]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["log"]).exits(0)), @"
    ID Mira / Fork  5 messages, 2026-11-14 23:50, deleted
        Mira: y
    ID Mira / The Tide  5 messages, 2026-11-14 23:50, was called Story
        Mira: e
    ID Mira / Alone  1 message, 2026-11-14 23:49
        Mira: Hello.
    ID Mira / Early fork  2 messages, 2026-11-14 23:49, forked after #1
        Mira: b
    ID Mira / Fork of the fork  5 messages, 2026-11-14 23:48, forked after #3 [dawn]
        Mira: z
    ID Mira / Fork  5 messages, 2026-11-14 23:47, forked after #2
        Mira: y
    ID Mira / Story  4 messages, 2026-11-14 23:46
        Mira: d
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["timelines"]).exits(0)), @"
    deleted    Mira / Fork              5 msgs  2 snapshots  ID  1 minute ago
    unchanged  Mira / The Tide          5 msgs  2 snapshots  ID  1 minute ago   was called Story
    unchanged  Mira / Alone             1 msg   1 snapshot   ID  2 minutes ago
    unchanged  Mira / Early fork        2 msgs  1 snapshot   ID  2 minutes ago
    unchanged  Mira / Fork of the fork  5 msgs  1 snapshot   ID  3 minutes ago  [dawn]
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["timelines", "--tree"]).exits(0)), @"
    Mira / The Tide   5 messages   was called Story
    ├─ after #1  Early fork   2 messages, 0 after the fork
    └─ after #2  Fork   5 messages, 2 after the fork   (deleted)
       └─ after #3  Fork of the fork   5 messages, 1 after the fork   [dawn]
    Mira / Alone   1 message
    ");
    let answer = sandbox.json(&["timelines", "--tree"]).exits(0);
    let timelines = answer.of_type("timeline");
    let of = |name: &str| timelines.iter().find(|line| line["timeline"] == name).unwrap();
    assert_eq!(of("chats/Mira/The Tide")["renamed_from"], "chats/Mira/Story");
    assert_eq!(of("chats/Mira/Fork of the fork")["tags"][0], "dawn");
    // The parent is listed under its current name.
    assert_eq!(of("chats/Mira/Fork")["parent"], "chats/Mira/The Tide");

    // Without a library deletions are unknown.
    let store = sandbox.store();
    let mut alone = sandbox.command(&["--store", store.to_str().unwrap(), "log"]);
    let elsewhere = tempfile::tempdir().unwrap();
    alone.current_dir(elsewhere.path());
    let answer = crate::common::answer(alone.output().unwrap()).exits(0);
    assert!(!answer.stdout.contains("deleted"), "{}", answer.stdout);
}

#[test]
fn long_graph_combines_unmarked_snapshots_into_one_line() {
    let mut sandbox = Sandbox::empty();
    let texts: Vec<String> = (0..45).map(|n| format!("message {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for n in 1..=texts.len() {
        chat(&sandbox, "Story", None, &texts[..n]);
        if n == 30 {
            sandbox.stvc(&["snapshot", "-m", "The bell rings"]).exits(0);
        } else {
            sandbox.take(&[]);
        }
        sandbox.wait(60);
        if n == 20 {
            sandbox.stvc(&["tag", "twenty", "Story"]).exits(0);
        }
    }
    chat(&sandbox, "Fork", Some("Story"), &[&texts[..10], &["Elsewhere."]].concat());
    sandbox.stvc(&["snapshot"]).exits(0);
    let folded = sandbox.stvc(&["log", "--graph"]).exits(0);
    assert_snapshot!(output_without_ids(&folded), @"
      ◉  ID Mira / Fork  11 messages, 2026-11-15 00:31, forked after #9
    ╭─╯  Mira: Elsewhere.
    ◉  ID Mira / Story  45 messages, 2026-11-15 00:30
    │  Mira: message 44
    ○  … 14 snapshots, 31 → 44 messages
    ○  ID Mira / Story  30 messages, 2026-11-15 00:15
    │  The bell rings
    ○  … 9 snapshots, 21 → 29 messages
    ○  ID Mira / Story  20 messages, 2026-11-15 00:05 [twenty]
    ○  … 19 snapshots, 1 → 19 messages
    ");
    let shown = |arguments: &[&str]| {
        sandbox
            .stvc(arguments)
            .exits(0)
            .stdout
            .lines()
            .filter(|line| line.contains("2026-11-1"))
            .count()
    };
    assert_eq!(shown(&["log", "--graph", "--all"]), 46);
    assert_eq!(shown(&["log", "--graph", "Story"]), 45);
    assert_eq!(shown(&["log", "--graph", "-n", "42"]), 42);
    assert_eq!(sandbox.json(&["log", "--graph"]).exits(0).of_type("snapshot").len(), 46);
}

#[test]
fn forks_at_one_point_share_a_column() {
    let mut sandbox = Sandbox::empty();
    chat(&sandbox, "Story", None, &["a", "b"]);
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 0..12 {
        sandbox.wait(60);
        chat(&sandbox, &format!("Fork {n}"), Some("Story"), &["a", "b", &format!("x {n}")]);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        chat(&sandbox, "Story", None, &["a", "b", &format!("edit {n}")]);
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    let graph = sandbox.stvc(&["log", "--graph"]).exits(0).stdout;
    let widest = |line: &str| line.chars().position(|c| c == '◉' || c == '○').unwrap_or(0);
    assert!(graph.lines().map(widest).max().unwrap() <= 4, "{graph}");
}
