//! Two small chats and a lorebook, for tests of output.

use super::Sandbox;

pub const CHAT: &str = "chats/Ann/Harbour.jsonl";

pub fn message(name: &str, text: &str) -> String {
    format!(r#"{{"name":"{name}","is_user":false,"is_system":false,"mes":"{text}","extra":{{}}}}"#)
}

/// Creates two chats, one with a lorebook; takes no snapshot.
pub fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    let header = r#"{"chat_metadata":{"integrity":"1","world_info":"Lore"},"user_name":"unused"}"#;
    let harbour = [
        header.into(),
        message("Ann", "The harbour is dark."),
        message("Wren", "I light the lamp."),
        message("Ann", "Better."),
    ];
    sandbox.write(CHAT, harbour.join("\n"));
    sandbox.write(
        "chats/Bo/Storm 雨.jsonl",
        format!("{{\"chat_metadata\":{{}}}}\n{}", message("Bo", "雨が降る 🦊")),
    );
    let lore = r#"{"entries": {"0": {"uid": 0, "comment": "Lamp", "content": "Oil."}, "1": {"uid": 1, "comment": "Quay", "content": "Stone."}}}"#;
    sandbox.write("worlds/Lore.json", lore);
    sandbox
}

/// Edits the chat, its metadata and its lorebook two hours later.
pub fn edit(sandbox: &mut Sandbox) {
    sandbox.wait(7200);
    let chat = String::from_utf8(sandbox.read(CHAT)).unwrap();
    let chat = chat
        .replace("Better.", "Much better.")
        .replace("\"integrity\":\"1\"", "\"integrity\":\"2\"");
    sandbox.write(CHAT, format!("{chat}\n{}", message("Wren", "And now?")));
    let book = String::from_utf8(sandbox.read("worlds/Lore.json")).unwrap();
    sandbox.write("worlds/Lore.json", book.replace("Oil.", "Whale oil."));
}

/// Takes a snapshot of each chat, a minute apart, then edits one and takes another.
pub fn story() -> Sandbox {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot", "Storm"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    edit(&mut sandbox);
    sandbox.stvc(&["snapshot", "-m", "After the lamp"]).exits(0);
    sandbox
}
