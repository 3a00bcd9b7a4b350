//! Authors and messages of changes: only what is certain.

use serde_json::{Value, json};

use super::questions::{BOOK, CHAT, DAY, TWO, book, story};
use crate::common::recap_library::{Entry, RecapLibrary, Scene};
use crate::common::{Sandbox, chat, message};

/// Builds the library with the first scene only and `messages` messages.
fn first_scene(messages: usize, quay: &str) -> RecapLibrary {
    let mut library = RecapLibrary { messages, ..RecapLibrary::default() };
    library.scenes.truncate(1);
    library.entries.truncate(2);
    library.entries[0] = Entry::new(0, "location-Quay", quay);
    library
}

fn take(sandbox: &mut Sandbox, library: &RecapLibrary) {
    sandbox.write(&library.chat_path(), library.chat_bytes());
    sandbox.write(&library.book_path(), library.book_bytes());
    sandbox.take(&[]);
    sandbox.wait(DAY);
}

/// Returns the scenes of the changes of the quay, newest first.
fn scenes(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.json(&["lore", "location-Quay"]).exits(0).of_type("lore_change");
    lines.iter().map(|line| line["scene"].clone()).collect()
}

/// Adds a second scene, which ends with message 7 and records the lorebook.
fn end_scene(library: &mut RecapLibrary) {
    let book = library.book.clone().unwrap();
    let scene = Scene::new(7, "The ferry", library.entries.clone());
    library.scenes.push(Scene { book, ..scene });
}

#[test]
fn scene_that_recorded_the_new_text_is_credited() {
    let mut sandbox = Sandbox::empty();
    take(&mut sandbox, &first_scene(8, "Wet stones."));
    let mut library = first_scene(8, "Dry stones.");
    end_scene(&mut library);
    take(&mut sandbox, &library);
    // The time of the first state is unknown.
    assert_eq!(scenes(&sandbox), [json!({ "index": 7, "name": "The ferry" }), Value::Null]);
    let output = sandbox.stvc(&["lore", "location-Quay"]).exits(0).stdout;
    assert!(output.contains("  by the recap of the scene that ends at #7 (The ferry)"), "{output}");
    assert!(!output.contains("changed between"), "{output}");
}

#[test]
fn scene_that_ended_before_the_previous_version_is_not_credited() {
    let mut sandbox = Sandbox::empty();
    for quay in ["Wet stones.", "Dry stones.", "Wet stones."] {
        take(&mut sandbox, &first_scene(5, quay));
    }
    assert_eq!(scenes(&sandbox), [Value::Null, Value::Null, Value::Null]);
    let output = sandbox.stvc(&["lore", "location-Quay"]).exits(0).stdout;
    let words = "  changed between 2026-11-15 23:46 and 2026-11-16 23:46, during message 4\n";
    assert!(output.contains(words), "{output}");
    let lines = sandbox.json(&["lore", "location-Quay"]).exits(0).of_type("lore_change");
    assert_eq!(lines[0]["previous"]["snapshot"], lines[1]["snapshot"]);
    assert_eq!(lines[0]["previous"]["time"], lines[1]["time"]);
    assert_eq!(lines[0]["previous"]["index"], 4);
    assert_eq!(lines[2]["previous"], Value::Null);
}

#[test]
fn scene_that_moved_with_its_message_is_not_credited_again() {
    let mut sandbox = Sandbox::empty();
    let mut library = first_scene(8, "Wet stones.");
    end_scene(&mut library);
    take(&mut sandbox, &library);
    take(
        &mut sandbox,
        &RecapLibrary { entries: first_scene(8, "Dry stones.").entries, ..library.clone() },
    );
    // A message before it is deleted while the user restores the former text.
    let text = library.chat_bytes();
    let without = text.lines().enumerate().filter(|(n, _)| *n != 3).map(|(_, line)| line);
    let without: Vec<_> = without.collect();
    sandbox.write(&library.chat_path(), without.join("\n"));
    sandbox.write(&library.book_path(), library.book_bytes());
    sandbox.take(&[]);
    assert_eq!(scenes(&sandbox), [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn manual_edit_is_not_credited_to_a_scene_that_recorded_it_later() {
    let mut sandbox = Sandbox::empty();
    take(&mut sandbox, &first_scene(8, "Wet stones."));
    let mut library = first_scene(8, "Dry stones.");
    take(&mut sandbox, &library);
    end_scene(&mut library);
    library.entries.push(Entry::new(5, "character-Mira", "She keeps the charts."));
    take(&mut sandbox, &library);
    assert_eq!(scenes(&sandbox), [Value::Null, Value::Null]);
}

#[test]
fn change_of_keys_is_not_credited_to_the_scene_that_recorded_the_text() {
    let mut sandbox = Sandbox::empty();
    take(&mut sandbox, &first_scene(8, "Wet stones."));
    let mut library = first_scene(8, "Wet stones.");
    library.entries[0].json = library.entries[0].json.replace("\"key\":[]", "\"key\":[\"quay\"]");
    end_scene(&mut library);
    take(&mut sandbox, &library);
    assert_eq!(scenes(&sandbox), [Value::Null, Value::Null]);
}

#[test]
fn change_during_several_messages_names_the_first_and_last_message() {
    let sandbox = story();
    let output = sandbox.stvc(&["lore", "kestrel"]).exits(0).stdout;
    let words = "changed between 2026-11-15 23:46 and 2026-11-16 23:46, during messages 2 to 3\n";
    assert!(output.contains(words), "{output}");
}

/// Returns the chat and its last message at each change, newest first.
fn dated_by(sandbox: &Sandbox, named: &[&str]) -> Vec<(String, u64)> {
    let lines = sandbox.json(&[&["lore"], named].concat()).exits(0).of_type("lore_change");
    let chat = |line: &Value| {
        (line["timeline"].as_str().unwrap().to_owned(), line["index"].as_u64().unwrap())
    };
    lines.iter().map(chat).collect()
}

#[test]
fn lorebook_change_in_a_fork_is_dated_by_messages_of_the_fork() {
    let mut sandbox = story();
    sandbox.stvc(&["fork", "Mira/one", "--as", "What if"]).exits(0);
    let files = sandbox.files();
    let clone = files.keys().find(|path| path.starts_with("worlds/") && *path != BOOK).unwrap();
    sandbox.wait(60);
    sandbox.append(CHAT, &message("one", 4));
    sandbox.take(&[]);
    sandbox.wait(60);
    let text = String::from_utf8(sandbox.read(clone)).unwrap();
    sandbox.write(clone, text.replace("green", "black"));
    sandbox.take(&[]);
    let name = clone.trim_start_matches("worlds/").trim_end_matches(".json");
    let one = |last| ("chats/Mira/one".to_owned(), last);
    let fork = ("chats/Mira/What if".to_owned(), 3);
    assert_eq!(dated_by(&sandbox, &[name, "kestrel"]), [fork, one(3), one(2), one(1)]);
    // The reverse case.
    sandbox.wait(60);
    let text = String::from_utf8(sandbox.read(BOOK)).unwrap();
    sandbox.write(BOOK, text.replace("green", "white"));
    sandbox.append("chats/Mira/What if.jsonl", &message("one", 5));
    sandbox.take(&[]);
    assert_eq!(dated_by(&sandbox, &["Harbour", "kestrel"])[0], one(4));
}

#[test]
fn change_in_a_renamed_lorebook_is_dated_only_by_its_own_chat() {
    let mut sandbox = story();
    // The book is renamed with its chat; then another chat gets a new book with the former name.
    let text = sandbox.read(BOOK);
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    sandbox.write("worlds/Port.json", &text);
    let lines = String::from_utf8(sandbox.read(CHAT)).unwrap();
    sandbox.write(CHAT, lines.replace("\"Harbour\"", "\"Port\""));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.write("chats/Mira/two.jsonl", chat("two", 9, Some("Harbour")));
    sandbox.write(BOOK, book(&[(0, "Gull", "Grey birds scream above each wall.")]));
    sandbox.take(&[]);
    sandbox.wait(60);
    let text = String::from_utf8(text).unwrap();
    sandbox.write("worlds/Port.json", text.replace("green", "black"));
    sandbox.take(&[]);
    let one = |last| ("chats/Mira/one".to_owned(), last);
    assert_eq!(dated_by(&sandbox, &["Port", "kestrel"]), [one(3), one(3), one(2), one(1)]);
}

#[test]
fn lore_at_a_message_shows_the_lorebook_of_that_chat() {
    let mut sandbox = story();
    sandbox.stvc(&["fork", "Mira/one", "--as", "What if"]).exits(0);
    let files = sandbox.files();
    let clone = files.keys().find(|path| path.starts_with("worlds/") && *path != BOOK).unwrap();
    sandbox.wait(60);
    let text = String::from_utf8(sandbox.read(clone)).unwrap();
    sandbox.write(clone, text.replace("green", "black"));
    sandbox.take(&[]);
    let name = clone.trim_start_matches("worlds/").trim_end_matches(".json");
    let shown = |arguments: &[&str]| {
        let lines = sandbox.json(&[&["lore"], arguments].concat()).exits(0).of_type("lore_entry");
        let line = &lines[0];
        (line["lorebook"].as_str().unwrap().to_owned(), line["value"]["content"].clone())
    };
    assert_eq!(
        shown(&["kestrel", "--at", "1", "--in", "Mira/one"]),
        ("Harbour".into(), json!(TWO))
    );
    let black = json!("The Kestrel is a ship with one mast. She is old. Her hull is black.");
    assert_eq!(shown(&["kestrel", "--at", "3", "--in", "What if"]), (name.into(), black));
    // If another book was named, the chat's book is used.
    assert_eq!(shown(&[name, "kestrel", "--at", "1", "--in", "Mira/one"]).0, "Harbour");
    // Without a name too.
    assert_eq!(shown(&["--at", "1", "--in", "Mira/one"]), ("Harbour".into(), json!(TWO)));
}
