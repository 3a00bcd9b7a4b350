//! Messages in full at any snapshot, and stories as text, Markdown and HTML.

use std::fs;

use serde_json::json;

use crate::common::Sandbox;

const CHAT: &str = "chats/Mira/one.jsonl";

/// Creates a chat with a hidden message, swipes, reasoning, and a message that was edited after the
/// first snapshot.
fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let lines = |last: &str| {
        [
            json!({ "chat_metadata": {}, "user_name": "You", "character_name": "Mira" }),
            json!({ "name": "Mira", "is_user": false, "mes": "The tide is low.\n\nCome in.", "send_date": "2026-11-01T18:30:00.000Z" }),
            json!({ "name": "You", "is_user": true, "is_system": true, "mes": "A note to myself." }),
            json!({ "name": "Mira", "mes": "Second <b>try</b>.", "swipes": ["First try.", "Second <b>try</b>."], "swipe_id": 1, "extra": { "reasoning": "She should hesitate." } }),
            json!({ "name": "You", "is_user": true, "mes": last }),
        ]
        .map(|line| line.to_string())
        .join("\n")
    };
    sandbox.write(CHAT, lines("I wait for the bell."));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.write(CHAT, lines("I ring the bell."));
    sandbox.take(&[]);
    sandbox
}

#[test]
fn show_prints_an_earlier_version_of_a_message() {
    let sandbox = story();
    let show = |arguments: &[&str]| sandbox.stvc(&[&["show"], arguments].concat()).exits(0).stdout;
    assert_eq!(show(&["Mira/one~1", "--message", "3"]), "#3 You\nI wait for the bell.\n");
    assert_eq!(show(&["Mira/one", "--message", "3"]), "#3 You\nI ring the bell.\n");
    insta::assert_snapshot!(show(&["Mira/one", "--message", "0..2", "--swipes", "--reasoning"]), @"
    #0 Mira (2026-11-01 18:30)
    The tide is low.

    Come in.

    #1 You (hidden)
    A note to myself.

    #2 Mira
    [reasoning]
    She should hesitate.
    Second <b>try</b>.
    [swipe 1 of 2]
    First try.
    [swipe 2 of 2, shown]
    Second <b>try</b>.
    ");
    let line =
        &sandbox.json(&["show", "Mira/one", "--message", "2"]).exits(0).of_type("message")[0];
    assert_eq!(
        (&line["index"], &line["swipe"], &line["reasoning"]),
        (&json!(2), &json!(1), &json!("She should hesitate."))
    );
    assert_eq!(line["swipes"], json!(["First try.", "Second <b>try</b>."]));
    let none = sandbox.stvc(&["show", "Mira/one", "--message", "4"]).exits(4);
    assert!(none.stderr.contains("its last one is 3"), "{}", none.stderr);
    for bad in ["x", "3..1", "-1", ""] {
        sandbox.stvc(&["show", "Mira/one", &format!("--message={bad}")]).exits(2);
    }
}

#[test]
fn story_omits_hidden_messages() {
    let sandbox = story();
    let read = sandbox.stvc(&["show", "Mira/one", "--text"]).exits(0);
    assert_eq!(
        read.stdout,
        "Mira\nThe tide is low.\n\nCome in.\n\nMira\nSecond <b>try</b>.\n\nYou\nI ring the bell.\n"
    );
    assert!(read.stderr.contains("1 hidden message omitted"), "{}", read.stderr);
    let all =
        sandbox.stvc(&["show", "Mira/one", "--text", "--hidden", "--dates", "--no-names"]).exits(0);
    assert!(
        all.stdout.contains("(2026-11-01 18:30)") && all.stdout.contains("(hidden)\nA note"),
        "{}",
        all.stdout
    );
    assert!(!all.stdout.contains("Mira"), "{}", all.stdout);
}

#[test]
fn exported_story_never_replaces_a_file() {
    let sandbox = story();
    let page = sandbox.folder().join("story.md");
    let write = ["show", "Mira/one", "--format", "markdown", "-o", page.to_str().unwrap()];
    let output = sandbox.stvc(&write).exits(0).stdout;
    assert!(output.contains("3 messages written to"), "{output}");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("# Mira / one\n\n**Mira**\n\nThe tide is low."), "{text}");
    // An existing file is not overwritten.
    fs::write(&page, "mine").unwrap();
    let kept = sandbox.stvc(&write).exits(1).stderr;
    assert!(
        kept.contains("choose another name; or move the existing file or folder away first"),
        "{kept}"
    );
    let kept = sandbox.stvc(&["view", "--out", page.to_str().unwrap()]).exits(1).stderr;
    assert!(
        kept.contains("choose another name; or move the existing file or folder away first"),
        "{kept}"
    );
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
}
