//! Small libraries: chats in which every message has its own text, a lorebook that two of them
//! share, a group.

use serde_json::json;

use crate::common::card::card;
use crate::stage::Stage;

pub const A: &str = "chats/Mira/a.jsonl";
pub const B: &str = "chats/Mira/b.jsonl";
pub const C: &str = "chats/Voss/c.jsonl";
pub const NIGHT: &str = "group chats/night.jsonl";
pub const CREW: &str = "groups/7.json";
pub const BOOK: &str = "worlds/Harbour.json";

pub fn chat(name: &str, messages: usize, book: Option<&str>) -> String {
    let metadata = book.map_or_else(|| json!({}), |book| json!({ "world_info": book }));
    let header = json!({ "user_name": "You", "character_name": "Mira", "chat_metadata": metadata });
    let lines = (0..messages).map(|n| message(name, n));
    [header.to_string()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

pub fn message(name: &str, n: usize) -> String {
    json!({ "name": "Mira", "is_user": n.is_multiple_of(2), "mes": text_of(name, n) }).to_string()
}

/// Text of a message, unique in the library.
pub fn text_of(name: &str, n: usize) -> String {
    let hash = blake3::hash(format!("{name}/{n}").as_bytes()).to_hex();
    format!("{name} {n}: {}", &hash[..32])
}

/// Builds a lorebook from UID, title and content.
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
pub const PIER_EDITED: (u64, &str, &str) = (0, "Pier", "Wet stones under the new lamp.");

fn group(chats: &[&str]) -> String {
    json!({ "id": "7", "name": "Crew", "members": [], "chat_id": "night", "chats": chats })
        .to_string()
}

/// Creates SillyTavern's folders without files.
pub fn empty_library(stage: &Stage, device: &str) {
    for folder in ["chats", "group chats", "groups", "worlds"] {
        std::fs::create_dir_all(stage.library(device).join(folder)).unwrap();
    }
    stage.write(device, "settings.json", "{}");
}

/// Creates two chats that share a lorebook, one without a lorebook, and a group chat.
pub fn small_library(stage: &Stage, device: &str) {
    empty_library(stage, device);
    stage.write(device, BOOK, book(&[PIER, GULL]));
    stage.write(device, A, chat("a", 4, Some("Harbour")));
    stage.write(device, B, chat("b", 3, Some("Harbour")));
    stage.write(device, C, chat("c", 4, None));
    stage.write(device, CREW, group(&["night"]));
    stage.write(device, NIGHT, chat("night", 2, None));
}

pub const CARD: &str = "characters/Mira.png";
pub const MAP: &str = "user/images/Mira/map.png";

/// Adds the character's card, and a picture that a message names.
pub fn add_card_and_picture(stage: &Stage, device: &str) {
    let mira = json!({ "name": "Mira", "data": { "description": text_of("Mira", 0) } });
    stage.write(device, CARD, card(&mira, 5000));
    stage.write(device, MAP, text_of("map", 0).repeat(20));
    let media = json!({ "media": [{ "url": format!("/{MAP}"), "type": "image" }] });
    let shown = json!({ "name": "You", "is_user": true, "mes": text_of("map", 1), "extra": media });
    stage.append(device, A, &shown.to_string());
}

/// Adds an HTML file, and a message that names it.
pub fn add_html_page(stage: &Stage, device: &str) {
    stage.write(device, "user/files/1_2.html", text_of("page", 0));
    let files = json!({ "files": [{ "url": "/user/files/1_2.html" }] });
    let shown =
        json!({ "name": "You", "is_user": true, "mes": text_of("page", 1), "extra": files });
    stage.append(device, A, &shown.to_string());
}

/// Simulates a day of writing: one chat grows, one loses its last message, one is renamed, one is
/// new, and the lorebook is edited.
pub fn write_for_a_day(stage: &Stage, device: &str) {
    stage.append(device, A, &message(device, 10));
    stage.write(device, B, chat("b", 2, Some("Harbour")));
    let library = stage.library(device);
    std::fs::rename(library.join(C), library.join("chats/Voss/c renamed.jsonl")).unwrap();
    stage.write(device, "chats/Voss/d.jsonl", chat(&format!("{device} d"), 3, None));
    stage.append(device, NIGHT, &message(device, 11));
    stage.write(device, BOOK, book(&[PIER_EDITED, GULL]));
}
