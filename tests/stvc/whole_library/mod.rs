//! Everything that a story needs has a history and is restored: lorebooks, characters, personas,
//! groups, and attachments.

mod attachments;
mod characters;
mod foreign_attachments;
mod lorebooks;
mod lost_attachments;

use std::fs;

use serde_json::{Value, json};

use crate::common::card::card;
use crate::common::{Sandbox, assert_same, chat, delete_object, files, git, message, text};

const CARD: &str = "characters/Mira.png";

fn mira() -> Value {
    let long = "She keeps the charts of the harbour, and the lamp. ".repeat(8);
    json!({
        "name": "Mira", "description": long, "chat": "one", "spec": "chara_card_v2",
        "data": {
            "name": "Mira", "description": long, "first_mes": "You are late.",
            "alternate_greetings": ["Come in.", "The tide waits for nobody. ".repeat(10)],
            "extensions": { "world": "Harbour" },
        },
    })
}

fn book(words: &str) -> String {
    json!({ "entries": { "0": { "uid": 0, "comment": "Pier", "content": words } } }).to_string()
}

/// Creates two chats of a character, a group, a persona, and lorebooks bound by a chat, by the card
/// and by nothing.
fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("Mira", 3, Some("Harbour")));
    sandbox.write("chats/Mira/two.jsonl", chat("two", 4, Some("Harbour")));
    sandbox.write("group chats/talk.jsonl", chat("talk", 2, None));
    sandbox.write(
        "groups/9.json",
        r#"{"id":"9","name":"All","members":["Mira.png"],"chats":["talk"],"chat_id":"talk"}"#,
    );
    sandbox.write("worlds/Harbour.json", book("wet"));
    sandbox.write("worlds/Unbound 雪.json", book("nobody asks"));
    sandbox.write(CARD, card(&mira(), 200_000));
    sandbox.write("User Avatars/user-default.png", b"a face");
    sandbox.write(
        "settings.json",
        r#"{"username":"Wren","secret":"proxy password","more":"than a few words of settings"}"#,
    );
    sandbox.write("secrets.json", r#"{"api_key_openai":"sk-never"}"#);
    sandbox
}

fn places(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let mut places: Vec<_> =
        lines.iter().map(|line| line["timeline"].as_str().unwrap().to_owned()).collect();
    places.sort();
    places
}

#[test]
fn req_81_everything_is_restored_after_a_disk_failure() {
    let sandbox = library();
    let first = sandbox.json(&["snapshot"]).exits(0);
    // Files that are not stored are reported with the setting that stores them.
    let left_out = first.of_type("finding").into_iter().find(|line| line["code"] == "left-out");
    let left_out = left_out.unwrap();
    assert!(left_out["message"].as_str().unwrap().contains("settings.json"), "{left_out}");
    assert!(left_out["remedy"].as_str().unwrap().contains("include.settings"), "{left_out}");
    assert_eq!(
        places(&sandbox),
        [
            "User Avatars/user-default.png",
            "characters/Mira",
            "chats/Mira/one",
            "chats/Mira/two",
            "group chats/talk",
            "groups/9",
            "worlds/Harbour",
            "worlds/Unbound 雪",
        ]
    );
    let backup = sandbox.folder().join("all.stvc");
    let backed_up = sandbox.stvc(&["backup", text(&backup)]).exits(0);
    assert!(backed_up.stdout.contains("not stored: settings.json"), "{}", backed_up.stdout);
    assert!(sandbox.stvc(&["stats"]).exits(0).stdout.contains("not stored: settings.json"));

    let before = sandbox.files();
    let other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    let mut expected = before.clone();
    expected.retain(|path, _| path != "secrets.json");
    let settings = other.read("settings.json");
    expected.insert("settings.json".into(), settings);
    assert_same(&other.files(), &expected);
    other.stvc(&["check"]).exits(0);
    other.git(&["fsck", "--strict"]);

    // An existing file stays, and the others are restored.
    let third = Sandbox::empty();
    third.write("worlds/Harbour.json", book("another harbour"));
    third.write(CARD, b"not even a picture");
    third.stvc(&["import", text(&backup)]).exits(0);
    let answer = third.json(&["restore", "--all"]).exits(3);
    let failed: Vec<_> =
        answer.of_type("failed").iter().map(|line| line["timeline"].clone()).collect();
    assert_eq!(failed, ["characters/Mira", "worlds/Harbour"]);
    assert_eq!(third.read("worlds/Harbour.json"), book("another harbour").into_bytes());
    assert_eq!(third.read("chats/Mira/one.jsonl"), before["chats/Mira/one.jsonl"]);
    third.stvc(&["restore", "--all", "--overwrite"]).exits(0);
    assert_same(&third.files(), &expected);
}

#[test]
fn settings_are_stored_only_if_configured_and_secrets_never() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let grep = |sandbox: &Sandbox, words: &str| {
        let list = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        list.lines().any(|id| {
            let object = git(&sandbox.store(), &["cat-file", "-p", id]);
            object.windows(words.len()).any(|part| part == words.as_bytes())
        })
    };
    assert!(!grep(&sandbox, "proxy password") && !grep(&sandbox, "sk-never"));
    sandbox.stvc(&["config", "include.settings", "true"]).exits(0);
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    assert!(taken.iter().any(|line| line["timeline"] == "settings.json"));
    assert!(grep(&sandbox, "proxy password") && !grep(&sandbox, "sk-never"));
    // They do not replace others.
    let now = r#"{"username":"Wren","theme":"dark"}"#;
    sandbox.write("settings.json", now);
    sandbox.stvc(&["restore", "--all"]).exits(3);
    assert_eq!(sandbox.read("settings.json"), now.as_bytes());
    assert!(sandbox.stvc(&["diff", "settings.json"]).exits(0).stdout.contains("theme"));
    sandbox.stvc(&["config", "include.settings", "perhaps"]).exits(1);
}

#[test]
fn options_only_and_include_select_the_stored_files() {
    let sandbox = library();
    let taken = sandbox.json(&["snapshot", "--only", "chats"]).exits(0).of_type("snapshot");
    assert_eq!(taken.len(), 3);
    let taken = sandbox.json(&["snapshot", "--only", "characters", "--only", "personas"]).exits(0);
    assert_eq!(taken.of_type("snapshot").len(), 2);
    sandbox.stvc(&["snapshot", "--only", "moods"]).exits(2);
    sandbox.stvc(&["config", "include.groups", "false"]).exits(0);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(!places(&sandbox).contains(&"groups/9".to_owned()));
}

#[test]
fn doctor_reports_missing_characters() {
    let sandbox = library();
    sandbox.write("characters/Other.png", card(&json!({ "name": "Other" }), 50));
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(CARD)).unwrap();
    sandbox.write("characters/Bo.png", card(&json!({"data":{"extensions":{"world":"Gone"}}}), 50));
    let answer = sandbox.json(&["doctor"]);
    let find = |code: &str| {
        let found = answer.of_type("finding").into_iter().find(|line| line["code"] == code);
        found.unwrap_or_else(|| panic!("{code} in {}", answer.stdout))
    };
    let missing = find("character-missing");
    assert_eq!(missing["subject"], "chats/Mira");
    assert!(missing["remedy"].as_str().unwrap().contains("stvc restore \"characters/Mira\""));
    assert_eq!(find("card-lorebook-missing")["subject"], "characters/Bo.png");
    sandbox.stvc(&["restore", "characters/Mira"]).exits(0);
    assert!(!sandbox.json(&["doctor"]).stdout.contains("character-missing"));
}
