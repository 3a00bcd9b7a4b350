//! `search` finds each text of the history once.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::common::{Sandbox, delete_object, output_without_ids};

const CHAT: &str = "chats/Mira/Story.jsonl";

fn message(text: &str, more: &str) -> String {
    format!(r#"{{"name":"Mira","is_user":false,"mes":"{text}"{more}}}"#)
}

fn book(lamp: &str) -> String {
    format!(
        r#"{{"entries":{{"7":{{"uid":7,"comment":"Lamp","key":["lantern","light"],"keysecondary":["wick"],"content":"{lamp}"}}}}}}"#
    )
}

fn header(more: &str) -> String {
    format!(r#"{{"chat_metadata":{{"world_info":"Lore"{more}}}}}"#)
}

/// Creates deleted, hidden and swiped messages, a changed lorebook and a deleted fork.
fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let greeting = message(
        "The Tide Office.",
        r#","swipe_id":0,"swipes":["The Tide Office.","Sit down and wait for the ferry."]"#,
    );
    let secret = message("A SECRET Ferry leaves at dawn.", "");
    let last = message("The lighthouse is dark.", "");
    let write = |sandbox: &Sandbox, lines: &[&str]| sandbox.write(CHAT, lines.join("\n"));
    sandbox.write("worlds/Lore.json", book("Whale oil from the ferry."));
    write(&sandbox, &[&header(""), &greeting, &secret, &last]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let fork = header(r#","main_chat":"Story""#);
    let lost = message("Only the fork knows the smuggler.", "");
    sandbox.write(
        "chats/Mira/Fork.jsonl",
        [&fork, &greeting, &secret, &lost].map(|line| line.as_str()).join("\n"),
    );
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path("chats/Mira/Fork.jsonl")).unwrap();
    sandbox.wait(60);
    let hidden = message("The lighthouse is dark.", r#","is_system":true"#);
    sandbox.write("worlds/Lore.json", book("Nothing but oil."));
    write(&sandbox, &[&header(""), &greeting, &hidden]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox
}

fn matches(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let answer = sandbox.json(&[&["search"], arguments].concat());
    let found = answer.of_type("match");
    // Like grep.
    answer.exits(if found.is_empty() { 1 } else { 0 });
    found
}

#[test]
fn search_finds_live_deleted_hidden_swiped_and_lorebook_text() {
    let sandbox = story();
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "ferry"]).exits(0)), @"
    ID Mira / Story  #0 Mira  1 minute ago, swipe 2 of 2, not shown
        Sit down and wait for the ferry.
    ID Mira / Fork  #1 Mira  1 minute ago, deleted chat
        A SECRET Ferry leaves at dawn.
    ID lorebook / Lore  lorebook entry 7 Lamp  3 minutes ago, removed since
        …wick · Whale oil from the ferry.
    3 matches.
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "lighthouse"]).exits(0)), @"
    ID Mira / Story  #1 Mira  1 minute ago, hidden
        The lighthouse is dark.
    1 match.
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "SMUGGLER"]).exits(0)), @"
    ID Mira / Fork  #2 Mira  1 minute ago, deleted chat
        Only the fork knows the smuggler.
    1 match.
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "wick"]).exits(0)), @"
    ID lorebook / Lore  lorebook entry 7 Lamp  1 minute ago
        Lamp · lantern, light, wick · Nothing but oil.
    ID lorebook / Lore  lorebook entry 7 Lamp  3 minutes ago, removed since
        Lamp · lantern, light, wick · Whale oil from the ferry.
    2 matches.
    ");
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "nowhere at all"]).exits(1)), @"Nothing found in 6 snapshots.");
}

#[test]
fn match_has_documented_fields() {
    let sandbox = story();
    let one = |arguments: &[&str]| {
        let mut found = matches(&sandbox, arguments);
        assert_eq!(found.len(), 1, "{arguments:?}: {found:#?}");
        let mut found = found.remove(0);
        for id in ["snapshot", "time", "first"] {
            assert!(found[id].is_string());
            found.as_object_mut().unwrap().remove(id);
        }
        for more in ["others", "said"] {
            assert!(found.get(more).is_some());
            found.as_object_mut().unwrap().remove(more);
        }
        found.to_string()
    };
    assert_snapshot!(one(&["secret"]), @r#"{"deleted":true,"hidden":false,"index":1,"live":false,"lorebook":null,"name":"Mira","part":"message","swipe":null,"text":"A SECRET Ferry leaves at dawn.","timeline":"chats/Mira/Fork","type":"match","user":false}"#);
    assert_snapshot!(one(&["sit down"]), @r#"{"deleted":false,"hidden":false,"index":0,"live":true,"lorebook":null,"name":"Mira","part":"message","swipe":1,"text":"Sit down and wait for the ferry.","timeline":"chats/Mira/Story","type":"match","user":false}"#);
    assert_snapshot!(one(&["lighthouse"]), @r#"{"deleted":false,"hidden":true,"index":1,"live":true,"lorebook":null,"name":"Mira","part":"message","swipe":null,"text":"The lighthouse is dark.","timeline":"chats/Mira/Story","type":"match","user":false}"#);
    assert_snapshot!(one(&["whale"]), @r#"{"deleted":false,"hidden":false,"live":false,"lorebook":"Lore","name":"Lamp","part":"lorebook","swipe":null,"text":"Lamp · lantern, light, wick · Whale oil from the ferry.","timeline":"worlds/Lore","type":"match","uid":"7"}"#);
    assert_snapshot!(one(&["smuggler"]), @r#"{"deleted":true,"hidden":false,"index":2,"live":false,"lorebook":null,"name":"Mira","part":"message","swipe":null,"text":"Only the fork knows the smuggler.","timeline":"chats/Mira/Fork","type":"match","user":false}"#);
}

#[test]
fn search_accepts_words_phrases_and_scopes() {
    let sandbox = story();
    assert_eq!(matches(&sandbox, &["dawn", "FERRY"]).len(), 1);
    assert_eq!(matches(&sandbox, &["dawn ferry"]).len(), 1);
    assert_eq!(matches(&sandbox, &["--phrase", "dawn ferry"]).len(), 0);
    assert_eq!(matches(&sandbox, &["--phrase", "secret  ferry"]).len(), 1);
    assert_eq!(matches(&sandbox, &["ferry", "lighthouse"]).len(), 0);
    assert_eq!(matches(&sandbox, &["ferry", "--only", "lorebook"]).len(), 1);
    assert_eq!(matches(&sandbox, &["ferry", "--only", "chat"]).len(), 2);
    assert_eq!(matches(&sandbox, &["smuggler", "--in", "Story"]).len(), 0);
    assert_eq!(matches(&sandbox, &["smuggler", "--in", "Fork"]).len(), 1);
    let limited = sandbox.json(&["search", "-n", "1", "ferry"]).exits(0);
    assert_eq!(limited.of_type("match").len(), 1);
    assert_eq!(limited.of_type("summary")[0]["more"], true);
    sandbox.stvc(&["search", "  "]).exits(2);
    sandbox.stvc(&["search"]).exits(2);
    sandbox.stvc(&["search", "x", "--in", "Nobody"]).exits(1);
}

#[test]
fn search_lists_each_text_once() {
    let mut sandbox = Sandbox::empty();
    let mut lines = vec![r#"{"chat_metadata":{}}"#.to_owned()];
    for n in 0..12 {
        lines.push(message(&format!("The tide, day {n}."), ""));
        sandbox.write(CHAT, lines.join("\n"));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    let answer = sandbox.json(&["search", "tide"]).exits(0);
    let found = answer.of_type("match");
    assert_eq!(found.len(), 12);
    let head = &sandbox.snapshot_ids()[0];
    assert!(found.iter().all(|line| line["snapshot"] == head.as_str() && line["live"] == true));
    let summary = &answer.of_type("summary")[0];
    assert_eq!((&summary["snapshots"], &summary["texts"]), (&12.into(), &12.into()));

    // Other bytes with the same text: not a second match.
    sandbox.write(CHAT, lines.join("\n").replace("is_user", "is_system\":true,\"is_user"));
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["search", "tide"]).exits(0);
    assert_eq!(answer.of_type("match").len(), 12);
    assert!(answer.of_type("match").iter().all(|line| line["hidden"] == true));
    assert_eq!(answer.of_type("summary")[0]["texts"], 24);
}

#[test]
fn snapshots_that_were_undone_are_searched_too() {
    let mut sandbox = story();
    sandbox.append(CHAT, &message("A kraken.", ""));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    let found = matches(&sandbox, &["kraken"]);
    assert_eq!((found.len(), &found[0]["live"]), (1, &false.into()));
}

#[test]
fn invalid_message_lines_are_searched_as_text() {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, "{\"chat_metadata\":{\"world_info\":\"Lore\"}}\n{\"mes\":\"a torn line");
    sandbox.write("worlds/Lore.json", "no \u{1b}[31mJSON, torn");
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_snapshot!(output_without_ids(&sandbox.stvc(&["search", "torn"]).exits(0)), @r#"
    ID Mira / Story  #0  just now
        {"mes":"a torn line
    ID lorebook / Lore  lorebook  just now
        no \u{1b}[31mJSON, torn
    2 matches.
    "#);
}

#[test]
fn missing_object_is_reported_and_all_other_texts_are_searched() {
    let sandbox = story();
    let lost =
        sandbox.git(&["rev-parse", "refs/heads/chats/Mira/Story:chat/messages/000/00001.json"]);
    let lost = lost.trim();
    delete_object(&sandbox.store(), lost);
    let answer = sandbox.stvc(&["search", "ferry"]).exits(3);
    assert!(answer.stdout.ends_with("3 matches.\n"), "{}", answer.stdout);
    assert!(answer.stderr.contains(lost), "{}", answer.stderr);
    // Its older version, not hidden yet, exists.
    let answer = sandbox.json(&["search", "lighthouse"]).exits(3);
    assert_eq!(answer.of_type("match")[0]["live"], false);
    assert_eq!(answer.of_type("summary")[0]["ok"], false);
}

#[test]
fn match_names_where_the_text_first_appeared() {
    let mut sandbox = Sandbox::empty();
    let header = r#"{"user_name":"u","character_name":"c","chat_metadata":{}}"#;
    let line = |n: usize, who: &str, day: usize| {
        format!(
            r#"{{"name":"{who}","mes":"word {n} of the harbour","send_date":"2026-11-{day:02}T10:00:00.000Z"}}"#
        )
    };
    let messages: Vec<_> =
        (0..8).map(|n| line(n, if n % 2 == 0 { "Mira" } else { "Wren" }, n + 1)).collect();
    let write = |sandbox: &Sandbox, name: &str, lines: &[String]| {
        sandbox.write(
            &format!("chats/Mira/{name}.jsonl"),
            [&[header.to_owned()], lines].concat().join("\n"),
        );
    };
    write(&sandbox, "Main", &messages);
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 0..5 {
        sandbox.wait(60);
        let own = line(90 + n, "Wren", 20);
        write(&sandbox, &format!("A branch {n}"), &[&messages[..6], &[own]].concat());
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    let one = matches(&sandbox, &["word 3 of", "--phrase"]);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["first"], "chats/Mira/Main");
    let all: usize = one[0]["others"].as_array().unwrap().len();
    assert_eq!(all, 5, "{one:?}");
    assert_eq!(one[0]["said"], "2026-11-04T10:00:00Z");
    let output = sandbox.stvc(&["search", "word 3 of", "--phrase"]).exits(0).stdout;
    assert!(output.contains("Mira / Main") && output.contains("also in 5 others"), "{output}");
    assert_eq!(matches(&sandbox, &["word 7 of", "--phrase"])[0]["others"], serde_json::json!([]));

    // By speaker, date and pattern.
    assert_eq!(matches(&sandbox, &["harbour", "--who", "wren", "--in", "Main"]).len(), 4);
    assert_eq!(
        matches(&sandbox, &["harbour", "--since", "2026-11-07", "--until", "2026-11-10"]).len(),
        2
    );
    assert_eq!(matches(&sandbox, &["--regex", "word [0-2] of"]).len(), 3);
    assert_eq!(matches(&sandbox, &["--regex", "^WORD 9\\d"]).len(), 5);
    assert!(matches(&sandbox, &["harbour", "--who", "nobody"]).is_empty());
    sandbox.stvc(&["search", "--regex", "(unclosed"]).exits(2);
    sandbox.stvc(&["search", "x", "--since", "the day before"]).exits(2);
    sandbox.stvc(&["search", "x", "--who", " "]).exits(2);
}
