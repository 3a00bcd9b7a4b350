//! Small libraries: chats whose every message has words of its own, a lorebook that two of them share, a group.

use serde_json::json;

use crate::common::card::card;
use crate::stage::Stage;

pub const A: &str = "chats/Mira/a.jsonl";
pub const B: &str = "chats/Mira/b.jsonl";
pub const C: &str = "chats/Voss/c.jsonl";
pub const NIGHT: &str = "group chats/night.jsonl";
pub const CREW: &str = "groups/7.json";
pub const BOOK: &str = "worlds/Harbour.json";

/// A chat with some messages.
pub fn chat(name: &str, messages: usize, book: Option<&str>) -> String {
    let metadata = book.map_or_else(|| json!({}), |book| json!({ "world_info": book }));
    let header = json!({ "user_name": "You", "character_name": "Mira", "chat_metadata": metadata });
    let lines = (0..messages).map(|n| message(name, n));
    [header.to_string()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Message `n` of the chat `name`.
pub fn message(name: &str, n: usize) -> String {
    json!({ "name": "Mira", "is_user": n.is_multiple_of(2), "mes": words(name, n) }).to_string()
}

/// What it says, and no other message does.
pub fn words(name: &str, n: usize) -> String {
    let hash = blake3::hash(format!("{name}/{n}").as_bytes()).to_hex();
    format!("{name} {n}: {}", &hash[..32])
}

/// A lorebook: UID, title, content.
pub fn book(entries: &[(u64, &str, &str)]) -> String {
    let entry = |(uid, title, content): &(u64, &str, &str)| {
        let entry = json!({ "uid": uid, "comment": title, "key": [title], "content": content });
        (uid.to_string(), entry)
    };
    let entries: serde_json::Map<_, _> = entries.iter().map(entry).collect();
    serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap()
}

pub const PIER: (u64, &str, &str) = (0, "Pier", "Wet stones under the old lamp.");
pub const GULL: (u64, &str, &str) = (1, "Gull", "Grey birds scream over each roof.");
pub const PIER_NOW: (u64, &str, &str) = (0, "Pier", "Wet stones under the new lamp.");

fn group(chats: &[&str]) -> String {
    json!({ "id": "7", "name": "Crew", "members": [], "chat_id": "night", "chats": chats })
        .to_string()
}

/// Folders as SillyTavern has them, and nothing in them.
pub fn empty(stage: &Stage, device: &str) {
    for folder in ["chats", "group chats", "groups", "worlds"] {
        std::fs::create_dir_all(stage.library(device).join(folder)).unwrap();
    }
    stage.write(device, "settings.json", "{}");
}

/// Two chats that share a lorebook, one without, a group's.
pub fn small(stage: &Stage, device: &str) {
    empty(stage, device);
    stage.write(device, BOOK, book(&[PIER, GULL]));
    stage.write(device, A, chat("a", 4, Some("Harbour")));
    stage.write(device, B, chat("b", 3, Some("Harbour")));
    stage.write(device, C, chat("c", 4, None));
    stage.write(device, CREW, group(&["night"]));
    stage.write(device, NIGHT, chat("night", 2, None));
}

pub const CARD: &str = "characters/Mira.png";
pub const MAP: &str = "user/images/Mira/map.png";

/// What a chat needs besides: its character's card, and a picture that one of its messages names.
pub fn belongings(stage: &Stage, device: &str) {
    let mira = json!({ "name": "Mira", "data": { "description": words("Mira", 0) } });
    stage.write(device, CARD, card(&mira, 5000));
    stage.write(device, MAP, words("map", 0).repeat(20));
    let media = json!({ "media": [{ "url": format!("/{MAP}"), "type": "image" }] });
    let shown = json!({ "name": "You", "is_user": true, "mes": words("map", 1), "extra": media });
    stage.append(device, A, &shown.to_string());
}

/// A message that names a web page, which is there.
pub fn page(stage: &Stage, device: &str) {
    stage.write(device, "user/files/1_2.html", words("page", 0));
    let files = json!({ "files": [{ "url": "/user/files/1_2.html" }] });
    let shown = json!({ "name": "You", "is_user": true, "mes": words("page", 1), "extra": files });
    stage.append(device, A, &shown.to_string());
}

/// What a day of writing does to it: one goes on, one loses its last message, one gets another name, one is new; the lorebook is edited.
pub fn day(stage: &Stage, device: &str) {
    stage.append(device, A, &message(device, 10));
    stage.write(device, B, chat("b", 2, Some("Harbour")));
    let library = stage.library(device);
    std::fs::rename(library.join(C), library.join("chats/Voss/c renamed.jsonl")).unwrap();
    stage.write(device, "chats/Voss/d.jsonl", chat(&format!("{device} d"), 3, None));
    stage.append(device, NIGHT, &message(device, 11));
    stage.write(device, BOOK, book(&[PIER_NOW, GULL]));
}
