//! `diff`, for people and as JSON.

mod apply;
mod forms;
mod output;

use serde_json::{Value, json};

use crate::common::Sandbox;

const CHAT: &str = "chats/Mira/Tide.jsonl";

const BOOK: &str = "worlds/Lore.json";

/// Builds a message, which is identified by date and text.
fn said(n: usize, name: &str, text: &str) -> Value {
    json!({"name": name, "is_user": name == "Wren", "is_system": false,
           "send_date": format!("2026-11-15T00:{:02}:{:02}.000Z", n / 60, n % 60), "mes": text, "extra": {}})
}

/// Builds a conversation of `n` messages with distinct texts.
fn talk(n: usize) -> Vec<Value> {
    let places = ["the bell tower", "the north shelf", "the ferry", "the chart room", "the quay"];
    let text = |n: usize| format!("Line {n}, spoken at {}.", places[n % places.len()]);
    (0..n).map(|n| said(n, if n % 2 == 0 { "Mira" } else { "Wren" }, &text(n))).collect()
}

fn entry(uid: u64, title: &str, content: &str) -> Value {
    json!({"uid": uid, "key": [title.to_lowercase()], "keysecondary": [], "comment": title,
           "content": content, "constant": false, "order": 100, "disable": false})
}

fn lore() -> Value {
    json!({"entries": {
        "0": entry(0, "Tide Office", "The office stands on the quay. It is older than the bell tower."),
        "1": entry(1, "Ferry", "The ferry leaves at dawn and comes back when the bell rings twice."),
        "2": entry(2, "Lantern Gate", "The gate is gone since the flood."),
    }})
}

fn write(sandbox: &Sandbox, messages: &[Value]) {
    write_with(sandbox, json!({}), messages);
}

fn write_with(sandbox: &Sandbox, metadata: Value, messages: &[Value]) {
    write_as(sandbox, CHAT, metadata, messages);
}

fn write_as(sandbox: &Sandbox, path: &str, mut metadata: Value, messages: &[Value]) {
    metadata["world_info"] = "Lore".into();
    let header =
        json!({"chat_metadata": metadata, "user_name": "unused", "character_name": "unused"});
    let lines: Vec<_> = std::iter::once(&header).chain(messages).map(Value::to_string).collect();
    sandbox.write(path, lines.join("\n"));
}

fn write_book(sandbox: &Sandbox, book: &Value) {
    sandbox.write(BOOK, serde_json::to_string_pretty(book).unwrap());
}

/// Creates a library with one chat and its lorebook, and a snapshot.
fn stored(messages: &[Value]) -> Sandbox {
    let sandbox = Sandbox::empty();
    write(&sandbox, messages);
    write_book(&sandbox, &lore());
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

/// Replaces ids.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let word = |word: &str| if is_id(word) { "ID".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(|text| format!("{}\n", line(text))).collect()
}
