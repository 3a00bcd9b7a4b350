//! One grammar for moments in all commands (docs/moments.md).

use serde_json::{Value, json};

use crate::common::{Answer, Sandbox, chat, message};

const CHAT: &str = "chats/Mira/one.jsonl";
const BOOK: &str = "worlds/Harbour.json";
const DAY: i64 = 86_400;

fn book(text: &str) -> String {
    json!({ "entries": { "0": { "uid": 0, "comment": "Kestrel", "content": text } } }).to_string()
}

/// Creates snapshots a day apart, at messages 1, 2 and 3, each with another lorebook; the last one
/// is tagged.
fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    for (n, text) in ["Two masts.", "One mast.", "No mast."].into_iter().enumerate() {
        if n > 0 {
            sandbox.wait(DAY);
            sandbox.append(CHAT, &message("one", n + 1));
        }
        sandbox.write(BOOK, book(text));
        sandbox.take(&[]);
    }
    sandbox.stvc(&["tag", "wreck", "Mira/one"]).exits(0);
    sandbox
}

/// Returns the last message that each command reads.
fn seen(sandbox: &Sandbox, moment: &str) -> [Value; 4] {
    let last = |answer: &Answer| {
        let messages = answer.of_type("message");
        messages.last().map_or(Value::Null, |message| message["index"].clone())
    };
    let read = last(&sandbox.json(&["show", moment, "--text"]).exits(0));
    let lore = sandbox.json(&["lore", "Kestrel", "--at", moment]).exits(0);
    let lore = lore.of_type("lore_entry")[0]["value"]["content"].clone();
    let removed = sandbox.json(&["diff", "Mira/one", moment]).exits(0).of_type("change");
    let removed = removed.iter().filter(|change| change["kind"] == "removed").count();
    let folder = sandbox.folder().join("restored");
    let place = folder.to_str().unwrap();
    sandbox.stvc(&["restore", moment, "--to", place]).exits(0);
    let restored = std::fs::read_to_string(folder.join(CHAT)).unwrap().lines().count() - 2;
    std::fs::remove_dir_all(&folder).unwrap();
    [read, lore, json!(removed), json!(restored)]
}

#[test]
fn every_command_selects_the_same_snapshot_for_a_moment() {
    let sandbox = story();
    let expected =
        |last: usize, text: &str| [json!(last), json!(text), json!(3 - last), json!(last)];
    for (moment, last, text) in [
        ("Mira/one", 3, "No mast."),
        ("wreck", 3, "No mast."),
        ("Mira/one~1", 2, "One mast."),
        ("wreck~2", 1, "Two masts."),
        ("Mira/one~~", 1, "Two masts."),
        ("Mira/one@1 day ago", 2, "One mast."),
        ("Mira/one@{1 day ago}~1", 1, "Two masts."),
        ("Mira/one:2", 2, "One mast."),
        ("wreck:1", 1, "Two masts."),
        ("Mira/one~1:1", 1, "Two masts."),
        ("Mira/one@1 day ago:#1", 1, "Two masts."),
    ] {
        assert_eq!(seen(&sandbox, moment), expected(last, text), "{moment}");
    }
}

/// The lorebook at a message does not depend on later edits of earlier messages.
#[test]
fn lore_at_a_message_survives_edits_of_earlier_messages() {
    let mut sandbox = story();
    let edited =
        String::from_utf8(sandbox.read(CHAT)).unwrap().replace("one 1:", "one, and otherwise:");
    sandbox.write(CHAT, edited);
    sandbox.wait(DAY);
    sandbox.take(&[]);
    let lore = sandbox.json(&["lore", "Kestrel", "--at", "Mira/one:2"]).exits(0);
    assert_eq!(lore.of_type("lore_entry")[0]["value"]["content"], "One mast.");
    // The messages are the current ones.
    let story = sandbox.stvc(&["show", "Mira/one:2", "--text"]).exits(0).stdout;
    assert!(story.contains("and otherwise"), "{story}");
}

#[test]
fn name_with_special_characters_is_read_literally() {
    let sandbox = Sandbox::empty();
    for name in ["Ana - 2026-11-01@18h30m", "Ana~2", "Ana"] {
        sandbox.write(&format!("chats/Ana/{name}.jsonl"), chat(name, 2, None));
    }
    sandbox.take(&[]);
    let named = |text: &str| {
        let shown = sandbox.json(&["show", text]).exits(0).of_type("snapshot");
        shown[0]["timeline"].as_str().unwrap().to_owned()
    };
    assert_eq!(named("Ana - 2026-11-01@18h30m"), "chats/Ana/Ana - 2026-11-01@18h30m");
    assert_eq!(named("Ana/Ana~2"), "chats/Ana/Ana~2");
    assert_eq!(named("Ana/Ana~2~0"), "chats/Ana/Ana~2");
    // A misspelled name yields a suggestion; half of it is not matched.
    let slip = sandbox.json(&["show", "Ana - 2026-11-01@18h31m"]).exits(1);
    assert_eq!(slip.of_type("error")[0]["candidates"][0], "chats/Ana/Ana - 2026-11-01@18h30m");
}

#[test]
fn parse_error_shows_the_position() {
    let sandbox = story();
    let error_of = |arguments: &[&str]| sandbox.stvc(arguments).exits(1).stderr;
    insta::assert_snapshot!(error_of(&["show", "Mira/one@2 weks ago"]), @r#"
    error: cannot parse "Mira/one@2 weks ago" at "2 weks ago": expected a date such as 2026-11-01, {2026-11-01 18:30}, yesterday or 2 weeks ago
      Mira/one@2 weks ago
               ^
    hint: see docs/moments.md for how to write a moment
    "#);
    insta::assert_snapshot!(error_of(&["diff", "Mira/one~1:2~1"]), @r#"
    error: cannot parse "Mira/one~1:2~1" at "~1": expected the end: nothing may follow the number of a message
      Mira/one~1:2~1
                  ^
    hint: see docs/moments.md for how to write a moment
    "#);
    insta::assert_snapshot!(error_of(&["restore", "Mira/one~x"]), @r#"
    error: cannot parse "Mira/one~x" at "x": expected ~N, @DATE or :N
      Mira/one~x
               ^
    hint: see docs/moments.md for how to write a moment
    "#);
    insta::assert_snapshot!(error_of(&["lore", "Kestrel", "--at", ":twelve"]), @r#"
    error: cannot parse ":twelve" at "twelve": expected a number
      :twelve
       ^
    hint: see docs/moments.md for how to write a moment
    "#);
    insta::assert_snapshot!(sandbox.stvc(&["show", "Mira/one:99"]).exits(4).stderr, @"error: Message not found: chats/Mira/one has no message 99; its last one is 3");
    insta::assert_snapshot!(error_of(&["show", "Mira/one~99"]), @r#"error: "Mira/one" does not go back that far: there are only 2 moments before it"#);
    insta::assert_snapshot!(error_of(&["show", "Mira/one@2020-01-01"]), @r#"
    error: "Mira/one" has no snapshot from that time: its first snapshot is from 2026-11-14 23:46
    hint: run `stvc log` to list the snapshots
    "#);
    let line = &sandbox.json(&["show", "猫@nie"]).exits(1).of_type("error")[0];
    assert!(line["message"].as_str().unwrap().contains("猫@nie"), "{line}");
}

/// Only a snapshot can be tagged; otherwise an error says so.
#[test]
fn moment_without_a_snapshot_cannot_be_tagged() {
    let sandbox = story();
    sandbox.stvc(&["tag", "mast", "Mira/one:2"]).exits(0);
    let tagged = &sandbox.json(&["show", "mast"]).exits(0).of_type("snapshot")[0];
    assert_eq!(tagged["messages"], 3);
    let none = sandbox.stvc(&["tag", "first", "Mira/one:0"]).exits(1).stderr;
    assert!(none.contains("there is no snapshot of chats/Mira/one at message 0"), "{none}");
}
