//! `stvc view --out`: the file contains only the text that the reader of the story sees, unless
//! `--all-history` is given.

use std::collections::BTreeMap;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::card::card;
use crate::common::{
    Answer, Damage, Sandbox, ThreeTimelines, assert_no_panic, chat, file_size, with_damage,
};

const CHAT: &str = "chats/Mira/Tide Office.jsonl";
const BOOK: &str = "worlds/MarkerParentChat Lore.json";

/// Private texts that the viewer shows with `--all-history`.
const PRIVATE: &[&str] = &[
    "MarkerDeletedSentence",
    "MarkerDeletedMessage",
    "MarkerOtherSwipe",
    "MarkerHiddenMessage",
    "MarkerHiddenSpeaker",
    "MarkerAuthorsNote",
    "MarkerVariable",
    "MarkerExtensionData",
    "MarkerReasoning",
    "MarkerDescription",
    "MarkerTag",
    "MarkerDisabledEntry",
    "MarkerDisabledTitle",
    "MarkerEarlierEntry",
    "MarkerEntryKey",
    "MarkerEntryField",
    "MarkerParentChat",
    "MarkerBrokenLine",
    "MarkerTranslated",
    "MarkerRepeatedKey",
];

/// Private texts that no file of the viewer contains.
const NEVER: &[&str] = &[
    "MarkerForkName",
    "MarkerOtherFolder",
    "MarkerOtherText",
    "MarkerModel",
    "MarkerToolCall",
    "MarkerAttachment",
    "MarkerSwipeReasoning",
    "MarkerPersona",
];

/// Texts of the story.
const SHOWN: &[&str] = &["The bell rang.", "The tide rose.", "你好", "Two masts.", "Kestrel"];

/// Returns a library with a chat that has every kind of private data in two snapshots.
fn planted() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let header = |note: &str, more: &str| {
        json!({
            "user_name": "MarkerPersona",
            "character_name": "Mira",
            "chat_metadata": {
                "world_info": "MarkerParentChat Lore",
                "main_chat": "MarkerParentChat",
                "note_prompt": note,
                "variables": { "mood": more },
                "some_extension": { "memory": format!("MarkerExtensionData {more}") },
            },
        })
    };
    let extra = json!({
        "reasoning": "MarkerReasoning",
        "api": "MarkerModel", "model": "MarkerModel", "token_count": 7,
        "tool_invocations": [{ "result": "MarkerToolCall" }],
        "image": "user/images/MarkerAttachment.png",
    });
    let bell = |text: &str| {
        json!({
            "name": "Mira", "mes": text, "send_date": "2026-11-01T18:30:00.000Z",
            "swipe_id": 0, "swipes": [text, "MarkerOtherSwipe"],
            "swipe_info": [{}, { "extra": { "reasoning": "MarkerSwipeReasoning" } }],
            "extra": extra,
        })
    };
    let hidden =
        json!({ "name": "MarkerHiddenSpeaker", "is_system": true, "mes": "MarkerHiddenMessage" });
    let translated = json!({ "name": "Wren", "is_user": true, "mes": "MarkerTranslated", "extra": { "display_text": "你好" } });
    let raw = [
        r#"{"name":"Mira","mes":"MarkerRepeatedKey","mes":"The tide rose.","is_system":"MarkerHiddenMessage","is_system":false}"#,
        r#"{"name":"Mira","mes":"MarkerBrokenLine"#,
        r#"{"name":"Lone \ud83d","mes":"half \ud83d a pair \u0000 </script><script>"}"#,
        "",
    ];
    let lines = |header: Value, messages: &[&Value], raw: &[&str]| {
        let lines = std::iter::once(&header).chain(messages.iter().copied());
        let lines = lines.map(Value::to_string).chain(raw.iter().map(|line| (*line).to_owned()));
        lines.collect::<Vec<_>>().join("\n")
    };
    let book = |text: &str| {
        json!({ "entries": {
            "0": { "uid": 0, "key": ["MarkerEntryKey"], "comment": "Kestrel", "content": text, "automationId": "MarkerEntryField" },
            "1": { "uid": 1, "key": ["off"], "comment": "MarkerDisabledTitle", "content": "MarkerDisabledEntry", "disable": true },
        } })
        .to_string()
    };
    let gone = json!({ "name": "Mira", "mes": "MarkerDeletedMessage" });
    let parent = chat("MarkerOtherText", 3, Some("MarkerParentChat Lore"));
    sandbox.write("chats/MarkerOtherFolder/MarkerForkName.jsonl", parent);
    let old = [&bell("The bell rang. MarkerDeletedSentence"), &hidden, &gone];
    sandbox.write(CHAT, lines(header("MarkerAuthorsNote", "MarkerVariable"), &old, &[]));
    sandbox.write(BOOK, book("MarkerEarlierEntry"));
    sandbox.stvc(&["snapshot", "Tide Office", "-m", "MarkerDescription"]).exits(0);
    sandbox.stvc(&["tag", "MarkerTag", "Tide Office"]).exits(0);
    sandbox.take(&[]);
    sandbox.wait(3600);
    let new = [&bell("The bell rang."), &hidden, &translated];
    sandbox.write(CHAT, lines(header("MarkerAuthorsNote now", "MarkerVariable now"), &new, &raw));
    sandbox.write(BOOK, book("Two masts."));
    sandbox.take(&[]);
    sandbox
}

/// Exports a story, and returns the answer of the command and the file.
fn export(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> (Answer, String) {
    let file = sandbox.folder().join(name);
    let out = ["--out", file.to_str().unwrap()];
    let answer = sandbox.json(&[&["view"], arguments, &out[..]].concat());
    (answer, fs::read_to_string(file).unwrap())
}

/// Parses the answers that the viewer reads from a file.
fn data(file: &str) -> Value {
    let (_, data) = file.split_once("id=\"answers\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// Returns all keys and strings of a JSON value.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(members) => {
            for (key, value) in members {
                into.push(key.clone());
                strings(value, into);
            }
        }
        _ => {}
    }
}

/// Returns the texts in which a marker could occur: the bytes of the file, and its decoded strings
/// without percent encoding.
fn texts(file: &str) -> Vec<String> {
    let mut texts = vec![file.to_owned()];
    strings(&data(file), &mut texts);
    let decoded: Vec<_> = texts
        .iter()
        .map(|text| {
            let bytes = text.split('%').enumerate().flat_map(|(n, part)| {
                let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
                match code.filter(|_| n > 0) {
                    Some(code) => [&[code], &part.as_bytes()[2..]].concat(),
                    None => part.as_bytes().to_vec(),
                }
            });
            String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
        })
        .collect();
    texts.extend(decoded);
    texts
}

/// Returns the parts of the base64 text of `marker` that do not depend on the bytes around it, for
/// each position in a group of three bytes.
fn as_base64(marker: &str) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let padded = format!("{}{marker}", "x".repeat(before));
        let text = STANDARD.encode(&padded[..padded.len() / 3 * 3]);
        text[(before * 8).div_ceil(6)..].to_owned()
    })
}

fn contains(texts: &[String], marker: &str) -> bool {
    let lower = marker.to_lowercase();
    texts.iter().any(|text| {
        text.to_lowercase().contains(&lower)
            || as_base64(marker).iter().any(|encoded| text.contains(encoded))
    })
}

#[test]
fn exported_story_contains_nothing_that_its_reader_does_not_see() {
    let sandbox = planted();
    let (answer, file) = export(&sandbox, "story.html", &["Tide Office"]);
    let answer = answer.exits(0);
    let texts = texts(&file);
    let root = sandbox.library().display().to_string();
    for private in PRIVATE.iter().chain(NEVER).chain(&[root.as_str(), "2026-11-01"]) {
        assert!(!contains(&texts, private), "the file contains {private}");
    }
    for shown in SHOWN {
        assert!(contains(&texts, shown), "the file lacks {shown}");
    }
    // No ids of snapshots, from which a reader with access to a backup could find the rest.
    for id in sandbox.chat_ids() {
        assert!(!contains(&texts, &id[..12]), "the file contains the id {id}");
    }
    let line = &answer.of_type("exported")[0];
    let expected = json!({
        "type": "exported", "timeline": "chats/Mira/Tide Office", "snapshots": 1,
        "changed": false, "messages": 4, "entries": 1, "hidden": 1, "disabled": 1, "unreadable": 1,
    });
    assert_eq!(*line, expected);
    assert_eq!(answer.of_type("page")[0]["extent"], "story");
    let summary = answer.lines().pop().unwrap();
    let counts =
        ["timelines", "snapshots", "messages", "entries"].map(|name| summary[name].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(4), json!(1)]);
}

/// Every field of the file is listed here, so a new field needs a decision.
#[test]
fn exported_story_has_only_known_fields() {
    let (_, file) = export(&planted(), "story.html", &[]);
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in data(&file)["lines"].as_array().unwrap() {
        let names = line.as_object().unwrap().keys().cloned().collect();
        fields.insert(line["type"].as_str().unwrap().to_owned(), names);
    }
    insta::assert_snapshot!(
        fields.iter().map(|(kind, names)| format!("{kind}: {}\n", names.join(" "))).collect::<String>(),
        @r"
    lore_entry: type uid value
    message: index name swipes text type user
    snapshot: entries id messages tags timeline type
    summary: entries type
    timeline: head messages state timeline type
    "
    );
    // Messages are numbered without gaps, and a broken surrogate pair is replaced.
    let lines = data(&file)["lines"].clone();
    let messages: Vec<_> =
        lines.as_array().unwrap().iter().filter(|line| line["type"] == "message").collect();
    let indices: Vec<_> = messages.iter().map(|line| line["index"].clone()).collect();
    assert_eq!(indices, [0, 1, 2, 0, 1, 2, 3], "two chats");
    let lone = messages.iter().find(|line| line["name"] == "Lone \u{fffd}").unwrap();
    assert_eq!(lone["text"], "half \u{fffd} a pair \0 </script><script>");
}

#[test]
fn all_history_contains_the_private_parts_of_the_timeline() {
    let sandbox = planted();
    let (answer, file) = export(&sandbox, "all.html", &["Tide Office", "--all-history"]);
    let answer = answer.exits(0);
    // The raw values in this file have escapes that only a browser can decode.
    let texts = [file];
    // The values that a repeated key hides are in no text.
    let known =
        PRIVATE.iter().chain(SHOWN).filter(|text| !["你好", "MarkerRepeatedKey"].contains(*text));
    let missing: Vec<_> = known.filter(|text| !contains(&texts, text)).collect();
    assert!(missing.is_empty(), "the file lacks {missing:?}");
    assert!(!contains(&texts, "MarkerOtherText") && !contains(&texts, "MarkerForkName"));
    let line = &answer.of_type("exported")[0];
    assert_eq!((&line["snapshots"], &line["messages"]), (&json!(2), &Value::Null));
    assert_eq!(answer.of_type("page")[0]["extent"], "all-history");
    sandbox.stvc(&["view", "--all-history"]).exits(2);
    // A lorebook can be exported alone. Settings and cards are not stories.
    let (lorebook, file) = export(&sandbox, "book.html", &[BOOK]);
    assert_eq!(lorebook.exits(0).of_type("exported")[0]["entries"], 1);
    assert!(file.contains("Two masts.") && !file.contains("MarkerDisabledEntry"));
    sandbox.write("characters/Mira.png", card(&json!({ "data": { "name": "Mira" } }), 1));
    sandbox.take(&[]);
    let out = sandbox.folder().join("card.html");
    let refused = ["view", "characters/Mira", "--out", out.to_str().unwrap()];
    let refused = sandbox.stvc(&refused).exits(2).stderr;
    assert!(refused.contains("neither a chat nor a lorebook") && !out.exists(), "{refused}");
}

#[test]
fn export_lists_the_contents_of_the_file() {
    let sandbox = planted();
    let file = sandbox.folder().join("story.html");
    let out = file.to_str().unwrap();
    let printed = sandbox.stvc(&["view", "Tide Office", "--out", out]).exits(0).stdout;
    let lines: Vec<_> = printed.lines().skip(1).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
      Mira / Tide Office: 4 messages, 1 lorebook entry
    Not in the file: 1 hidden message, 1 disabled lorebook entry, 1 unreadable text, earlier versions, other swipes, reasoning, notes and variables.
    Use --all-history to include everything that the viewer shows.
    ");
    fs::remove_file(&file).unwrap();
    let quiet = sandbox.stvc(&["view", "Tide Office", "--out", out, "--quiet"]).exits(0).stdout;
    assert_eq!(quiet.lines().count(), 2, "{quiet}");
    fs::remove_file(&file).unwrap();
    let all = ["view", "Tide Office", "--out", out, "--all-history"];
    let printed = sandbox.stvc(&all).exits(0).stdout;
    assert!(printed.contains("1 timeline, 2 snapshots, "), "{printed}");
    assert!(printed.contains("deleted and hidden texts"), "{printed}");
}

/// The lorebook of the story is the latest, although the chat has no snapshot with it.
#[test]
fn exported_story_has_the_latest_lorebook() {
    let mut sandbox = planted();
    sandbox.wait(60);
    let entry = json!({ "uid": 0, "key": ["bell"], "content": "No mast." });
    sandbox.write(BOOK, json!({ "entries": { "0": entry, "1": 7 } }).to_string());
    sandbox.take(&[]);
    let (answer, file) = export(&sandbox, "story.html", &["Tide Office"]);
    assert_eq!(answer.exits(0).of_type("exported")[0]["unreadable"], 2);
    let texts = texts(&file);
    assert!(contains(&texts, "No mast.") && !contains(&texts, "Two masts."));
    let book = data(&file)["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["type"] == "lore_entry")
        .cloned();
    assert_eq!(book.unwrap()["value"], json!({ "comment": "bell", "content": "No mast." }));
}

/// The store still has a text that was deleted after the latest snapshot.
#[test]
fn export_warns_if_the_files_changed_after_the_snapshot() {
    let warning = "changed after the latest snapshot";
    for changed in [CHAT, BOOK] {
        let sandbox = planted();
        let file = sandbox.folder().join("story.html");
        let export = ["view", "Tide Office", "--out", file.to_str().unwrap()];
        assert!(!sandbox.stvc(&export).exits(0).stderr.contains(warning));
        let text = String::from_utf8(sandbox.read(changed)).unwrap();
        let text = text.replace("The tide rose.", "It rose.").replace("Two masts.", "A mast.");
        sandbox.write(changed, text);
        fs::remove_file(&file).unwrap();
        let warned = sandbox.stvc(&export).exits(0).stderr;
        assert!(warned.contains(warning), "{changed}: {warned}");
    }
}

#[test]
fn export_of_all_chats_contains_no_deleted_chat() {
    let sandbox = planted();
    fs::remove_file(sandbox.path("chats/MarkerOtherFolder/MarkerForkName.jsonl")).unwrap();
    let (answer, file) = export(&sandbox, "story.html", &[]);
    assert_eq!(answer.exits(0).of_type("exported").len(), 1);
    assert!(!contains(&texts(&file), "MarkerForkName"));
    let (named, _) = export(&sandbox, "named.html", &["MarkerForkName"]);
    assert_eq!(named.exits(0).of_type("exported").len(), 1);
}

/// A damaged store is reported, and the valid timelines are exported.
#[test]
fn export_from_a_damaged_store_reports_the_damage() {
    let library = ThreeTimelines::new();
    let file = library.sandbox.folder().join("story.html");
    let length = file_size(&library.packs[1]);
    let mut partial = 0;
    for at in (12..length).step_by(length / 40) {
        with_damage(&library.packs[1], Damage::Flipped(at), || {
            let out = file.to_str().unwrap();
            let answer = library.sandbox.stvc(&["view", "--out", out]);
            let answer = assert_no_panic(answer);
            if answer.code == 3 {
                partial += 1;
                assert!(answer.stderr.contains("chats/Mira/b"), "{}", answer.stderr);
                let text = fs::read_to_string(&file).unwrap();
                assert!(text.contains("chats/Mira/a") && text.contains("chats/Mira/c"));
            }
            let _ = fs::remove_file(&file);
        });
    }
    assert!(partial > 0, "no damage was found");
}
