//! One chat and its lorebook, and the answer of every command about a moment.

use serde_json::{Value, json};

use crate::common::{Sandbox, chat, files};

pub const CHAT: &str = "chats/Mira/one.jsonl";
pub const NAME: &str = "Mira/one";
pub const BOOK: &str = "worlds/Harbour.json";
pub const DAY: i64 = 86_400;

/// Builds a book of three entries, so that most stay when a rename comes with an edit.
pub fn book(kestrel: &str) -> String {
    let entry = |uid: usize, title: &str, content: &str| json!({ "uid": uid, "comment": title, "content": content });
    let entries = json!({
        "0": entry(0, "Kestrel", kestrel),
        "1": entry(1, "Harbour", "Wet."),
        "2": entry(2, "Tide", "Twice a day."),
    });
    json!({ "entries": entries }).to_string()
}

/// Creates a chat of two messages with a lorebook, and a snapshot.
pub fn story() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    sandbox.write(BOOK, book("Two masts."));
    sandbox.take(&[]);
    sandbox
}

/// Edits the entry `Kestrel` and takes a snapshot.
pub fn edit(sandbox: &Sandbox, kestrel: &str) {
    sandbox.write(BOOK, book(kestrel));
    sandbox.take(&[]);
}

/// Returns the name of the chat `ago` seconds ago.
pub fn date(sandbox: &Sandbox, ago: i64) -> String {
    let then = sandbox.workspace().now.timestamp() - ago;
    let then = chrono::DateTime::from_timestamp(then, 0).unwrap();
    format!("{NAME}@{{{}}}", then.format("%Y-%m-%dT%H:%M:%SZ"))
}

/// Returns the text of the entry `Kestrel` at a moment. `restore --to`, `show --entry`, `show
/// --book`, `lore --at`, `show` and `restore --as` must agree.
#[track_caller]
pub fn kestrel(sandbox: &Sandbox, moment: &str) -> String {
    let to = sandbox.folder().join("restored");
    sandbox.stvc(&["restore", moment, "--to", to.to_str().unwrap()]).exits(0);
    let restored = files(&to);
    std::fs::remove_dir_all(&to).unwrap();
    let (_, book) = restored.iter().find(|(path, _)| path.starts_with("worlds/")).unwrap();
    let book: Value = serde_json::from_slice(book).unwrap();
    let text = book["entries"]["0"]["content"].as_str().unwrap().to_owned();
    let content = |arguments: &[&str]| {
        let entries = sandbox.json(arguments).exits(0).of_type("lore_entry");
        let entry = entries.iter().find(|entry| entry["uid"] == "0").unwrap();
        entry["value"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(content(&["show", moment, "--entry", "Kestrel"]), text, "show {moment} --entry");
    assert_eq!(content(&["show", moment, "--book"]), text, "show {moment} --book");
    assert_eq!(content(&["lore", "Kestrel", "--at", moment]), text, "lore --at {moment}");
    let plan = sandbox.json(&["restore", moment, "--as", "Another ending", "--dry-run"]).exits(0);
    let files = plan.of_type("file");
    let clone = files.iter().find(|file| file["path"].as_str().unwrap().starts_with("worlds/"));
    let shown = sandbox.json(&["show", moment]).exits(0).of_type("snapshot");
    let shown = shown[0]["files"].as_array().unwrap().clone();
    let shown = shown.iter().find(|file| file["role"] == "lorebook").unwrap().clone();
    assert_eq!(clone.unwrap()["blake3"], shown["blake3"], "restore {moment} --as");
    text
}
