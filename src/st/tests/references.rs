//! Tests of the search for uses of lorebooks.

use super::put;
use crate::st::{Library, References, TimelineName, User};
use std::path::Path;

fn references(root: &Path) -> References {
    let library = Library::open(root, None).unwrap();
    library.references(&library.scan().unwrap())
}

fn fixture(version: &str) -> References {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    references(&root.join(version).join("default-user"))
}

fn users(found: &References, book: &str) -> Vec<User> {
    let of = found.list.iter().filter(|reference| reference.book == book);
    of.map(|reference| reference.user.clone()).collect()
}

#[test]
fn every_place_that_can_name_a_lorebook_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let header = |book: &str| format!(r#"{{"chat_metadata":{{"world_info":{book}}}}}"#);
    put(root, "chats/A/a.jsonl", header("\"solo\"").as_bytes());
    put(root, "chats/A/none.jsonl", header("null").as_bytes());
    put(root, "chats/A/bom.jsonl", format!("\u{feff}{}\n{{}}", header("\"bom\"")).as_bytes());
    put(
        root,
        "chats/A/odd.jsonl",
        b"{\"chat_metadata\":{\"world_info\":\"odd\",\"x\":\"\xff\"}}\n{",
    );
    put(root, "group chats/g.jsonl", header("\"group\"").as_bytes());
    put(root, "group chats/old.jsonl", br#"{"mes":"no header"}"#);
    put(
        root,
        "groups/1.json",
        br#"{"chats":["old"],"chat_metadata":{"world_info":"open"},"past_metadata":{"x":{"world_info":"past"},"y":{}}}"#,
    );
    put(
        root,
        "settings.json",
        br#"{"world_info_settings":{"world_info":{"globalSelect":["all",7,"too"],"charLore":[{"name":"Mira","extraBooks":["extra"]},null]}},
            "power_user":{"persona_description_lorebook":"now","persona_descriptions":{"me.png":{"lorebook":"persona"},"b":{}}}}"#,
    );
    let found = references(root);
    assert_eq!(found.unreadable, []);
    let chat = |name: &str| User::Chat(TimelineName::parse(name).unwrap());
    let group = User::Group("groups/1.json".into());
    for (book, user) in [
        ("solo", chat("chats/A/a")),
        ("bom", chat("chats/A/bom")),
        ("odd", chat("chats/A/odd")),
        ("group", chat("group chats/g")),
        ("open", group.clone()),
        ("past", group),
        ("all", User::AllChats),
        ("too", User::AllChats),
        ("extra", User::Character("Mira".into())),
        ("now", User::Persona(String::new())),
        ("persona", User::Persona("me.png".into())),
    ] {
        assert_eq!(users(&found, book), [user], "{book}");
    }
    assert_eq!(found.list.len(), 11);
}

#[test]
fn lorebooks_of_real_cards_are_found() {
    let found = fixture("1.19.0");
    assert_eq!(users(&found, "Snow Shrine"), [User::Card("Ærin 雪 🦊".into())]);
    assert_eq!(users(&found, "Eldoria"), [User::AllChats]);
    assert_eq!(users(&found, "Tide Office Lore").len(), 7);
    assert_eq!(found.unreadable, []);
    assert_eq!(fixture("1.12.6").unreadable, []);
}

#[test]
fn references_list_the_unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, "chats/A/a.jsonl", b"{\"torn\n{}");
    // Before these files were damaged, they may have named any lorebook.
    put(root, "chats/A/empty.jsonl", b"");
    put(root, "chats/A/zeros.jsonl", &[0; 64]);
    put(root, "groups/1.json", b"[]");
    put(root, "characters/Bad.png", b"no picture");
    put(root, "characters/Other.PNG", b"\x89PNG\r\n\x1a\n\0\0\0\x09tEXtchara");
    put(root, "characters/card.json", b"SillyTavern does not read these");
    put(root, "settings.json", b"{");
    let found = references(root);
    let mut subjects: Vec<_> =
        found.unreadable.iter().map(|(subject, _)| subject.as_str()).collect();
    subjects.sort_unstable();
    let expected = [
        "characters/Bad.png",
        "characters/Other.PNG",
        "chats/A/a.jsonl",
        "chats/A/empty.jsonl",
        "chats/A/zeros.jsonl",
        "groups/1.json",
        "settings.json",
    ];
    assert_eq!(subjects, expected);
    assert_eq!(found.list, []);
}

#[test]
fn lorebook_names_match_files_despite_case_and_special_characters() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let bound = |book: &str| format!(r#"{{"chat_metadata":{{"world_info":"{book}"}}}}"#);
    put(root, "chats/A/a.jsonl", bound("Who: am I?").as_bytes());
    put(root, "chats/A/b.jsonl", bound("SHOUTED").as_bytes());
    put(root, "chats/A/c.jsonl", bound("e\u{301}tude").as_bytes());
    let names = ["Who am I", "shouted", "étude", "unused"].map(str::to_owned);
    assert_eq!(references(root).unused(&names), ["unused"]);
}

#[test]
fn lorebook_in_the_checkpoint_map_is_in_use_while_the_checkpoint_exists() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let map = r#"{"auto_recap":{"checkpoint_lorebook_map":{"point":"Kept","gone":"Left"}}}"#;
    put(root, "chats/A/main.jsonl", format!(r#"{{"chat_metadata":{map}}}"#).as_bytes());
    put(root, "chats/A/point.jsonl", br#"{"chat_metadata":{"world_info":"Another"}}"#);
    put(root, "chats/B/gone.jsonl", br#"{"chat_metadata":{}}"#);
    let group = r#"{"id":"1","chats":["g","h"],"chat_id":"g","chat_metadata":{"checkpoint_lorebook_mappings":{"h":"Of the group"}}}"#;
    put(root, "groups/1.json", group.as_bytes());
    for chat in ["g", "h"] {
        put(root, &format!("group chats/{chat}.jsonl"), br#"{"mes":"a"}"#);
    }
    let names = ["Kept", "Left", "Of the group"].map(str::to_owned);
    let found = references(root);
    assert_eq!(found.unreadable, []);
    assert_eq!(found.unused(&names), ["Left"]);
}
