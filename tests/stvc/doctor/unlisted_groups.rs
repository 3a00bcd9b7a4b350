//! Group chats that no group lists: SillyTavern does not show them.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Sandbox, finding_codes};

/// Adds a group with these members and chats.
fn group(sandbox: &Sandbox, id: &str, members: &[&str], chats: &[&str]) {
    let members: Vec<_> = members.iter().map(|name| format!("{name}.png")).collect();
    let file = json!({ "id": id, "name": format!("Group {id}"), "members": members, "chats": chats, "chat_id": chats.first() });
    sandbox.write(&format!("groups/{id}.json"), serde_json::to_vec_pretty(&file).unwrap());
}

/// Adds a group chat with these speakers.
fn chat(sandbox: &Sandbox, name: &str, speakers: &[&str], metadata: &Value) {
    let mut lines = vec![json!({ "chat_metadata": metadata }).to_string()];
    lines.extend(speakers.iter().map(|speaker| {
        let avatar = format!("{speaker}.png");
        json!({ "name": speaker, "mes": format!("{name}: {speaker}"), "original_avatar": avatar })
            .to_string()
    }));
    sandbox.write(&format!("group chats/{name}.jsonl"), lines.join("\n"));
}

fn listed(sandbox: &Sandbox, id: &str) -> Vec<String> {
    let group: Value = serde_json::from_slice(&sandbox.read(&format!("groups/{id}.json"))).unwrap();
    serde_json::from_value(group["chats"].clone()).unwrap()
}

fn finding(sandbox: &Sandbox) -> Value {
    let answer = sandbox.json(&["doctor"]).exits(0);
    let found = answer.of_type("finding");
    let is_it = |line: &&Value| line["code"] == "group-chat-unlisted";
    found.iter().find(is_it).unwrap_or_else(|| panic!("{answer:?}")).clone()
}

/// Repairs, asserts that no finding is left, and undoes the repair.
fn assert_repairable(sandbox: &Sandbox) {
    let before = sandbox.files();
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let left = finding_codes(&sandbox.json(&["doctor"]).exits(0));
    assert!(!left.contains(&"group-chat-unlisted".to_owned()), "{left:?}");
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.files(), before);
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
}

#[test]
fn unlisted_group_chat_is_added_to_the_group_of_its_speakers() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira", "Wren"], &["a"]);
    group(&sandbox, "2", &["Mira", "Voss"], &["b"]);
    chat(&sandbox, "a", &["Mira"], &json!({}));
    chat(&sandbox, "b", &["Mira"], &json!({}));
    chat(&sandbox, "lost", &["Mira", "Voss"], &json!({}));
    let found = finding(&sandbox);
    assert_eq!(found["subject"], "group chats/lost");
    assert!(found["remedy"].as_str().unwrap().contains("\"Group 2\""), "{found}");
    assert_repairable(&sandbox);
    assert_eq!(
        (listed(&sandbox, "1"), listed(&sandbox, "2")),
        (vec!["a".into()], vec!["b".into(), "lost".into()])
    );
}

#[test]
fn unlisted_group_chat_is_added_to_its_recorded_group() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira"], &["a", "lost"]);
    group(&sandbox, "2", &["Mira"], &["b"]);
    for name in ["a", "b", "lost"] {
        chat(&sandbox, name, &["Mira"], &json!({}));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    // SillyTavern's page wrote its outdated list.
    group(&sandbox, "1", &["Mira"], &["a"]);
    assert_repairable(&sandbox);
    assert_eq!(listed(&sandbox, "1"), ["a", "lost"]);
}

#[test]
fn unlisted_group_chat_is_added_to_its_former_group() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira"], &["a", "lost"]);
    group(&sandbox, "2", &["Mira"], &["b"]);
    chat(&sandbox, "a", &["Mira"], &json!({}));
    chat(&sandbox, "b", &["Mira"], &json!({}));
    sandbox.stvc(&["snapshot"]).exits(0);
    group(&sandbox, "1", &["Mira"], &["a"]);
    sandbox.stvc(&["snapshot"]).exits(0);
    // Copied back by hand; no snapshot of the chat records a group.
    chat(&sandbox, "lost", &["Mira"], &json!({}));
    assert_repairable(&sandbox);
    assert_eq!(listed(&sandbox, "1"), ["a", "lost"]);
}

#[test]
fn unlisted_fork_is_added_to_its_parents_group() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira"], &["a"]);
    group(&sandbox, "2", &["Mira"], &["b"]);
    chat(&sandbox, "a", &["Mira"], &json!({}));
    chat(&sandbox, "b", &["Mira"], &json!({}));
    chat(&sandbox, "lost", &["Mira"], &json!({ "main_chat": "b" }));
    assert_repairable(&sandbox);
    assert_eq!(listed(&sandbox, "2"), ["b", "lost"]);
}

#[test]
fn ambiguous_group_chat_is_added_to_the_chosen_group() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira", "Wren"], &["a"]);
    group(&sandbox, "2", &["Mira", "Voss"], &["b"]);
    for name in ["a", "b", "lost"] {
        chat(&sandbox, name, &["Mira"], &json!({}));
    }
    let remedy = finding(&sandbox)["remedy"].to_string();
    assert!(remedy.contains("Group 1") && remedy.contains("Group 2"), "{remedy}");
    assert!(remedy.contains("--group GROUP"), "{remedy}");
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert_eq!((listed(&sandbox, "1").len(), listed(&sandbox, "2").len()), (1, 1), "no guess");
    sandbox.stvc(&["doctor", "--fix", "--yes", "--group", "Nobody"]).exits(1);
    sandbox.stvc(&["doctor", "--fix", "--yes", "--group", "Group 1"]).exits(0);
    assert_eq!(listed(&sandbox, "1"), ["a", "lost"]);
}

/// SillyTavern 1.12 stores the chat's metadata in the group's file; it is restored with the name.
#[test]
fn listing_restores_metadata_of_a_headerless_group_chat() {
    let sandbox = Sandbox::empty();
    let of = |chats: &[&str], past: Value| {
        let file = json!({ "id": "1", "name": "G", "members": ["Mira.png"], "chats": chats, "chat_id": "a", "chat_metadata": {}, "past_metadata": past });
        sandbox.write("groups/1.json", serde_json::to_vec_pretty(&file).unwrap());
    };
    let line = |text: &str| json!({ "name": "Mira", "mes": text }).to_string();
    sandbox.write("group chats/a.jsonl", line("a"));
    sandbox.write("group chats/lost.jsonl", line("lost"));
    of(&["a", "lost"], json!({ "lost": { "note_prompt": "kept" } }));
    sandbox.stvc(&["snapshot"]).exits(0);
    of(&["a"], json!({}));
    assert_repairable(&sandbox);
    let group: Value = serde_json::from_slice(&sandbox.read("groups/1.json")).unwrap();
    assert_eq!(group["past_metadata"]["lost"]["note_prompt"], "kept");
}

#[test]
fn no_chat_is_reported_as_unlisted_while_a_group_is_unreadable() {
    let sandbox = Sandbox::empty();
    group(&sandbox, "1", &["Mira"], &["a"]);
    chat(&sandbox, "a", &["Mira"], &json!({}));
    chat(&sandbox, "lost", &["Mira"], &json!({}));
    fs::create_dir(sandbox.path("groups/2.json")).unwrap();
    let found = finding_codes(&sandbox.json(&["doctor"]));
    assert!(!found.contains(&"group-chat-unlisted".to_owned()), "{found:?}");
}
