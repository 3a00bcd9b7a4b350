//! Restoring while SillyTavern's page is open.
//!
//! The page writes back what it has in memory, and does not notice that a file changed. These tests
//! check what the real SillyTavern does, how stvc prevents losses, and that its hints work.

use std::fs;

use crate::common::assert_same;
use crate::session::{Session, with_retries};

#[test]
fn restore_is_refused_while_the_chat_may_be_open_in_sillytavern() {
    with_retries(|| {
        let Some(mut session) = Session::open("open-chat", "1.19.0") else { return };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        session.writer.say("I see a lantern.");
        let old = session.snapshot()[&main].clone();
        let at_snapshot = session.chats_and_lorebooks();
        session.writer.say("A mistake.");
        session.writer.type_command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        let now = session.chats_and_lorebooks();
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let book = "worlds/Tide Office.json";

        // By default stvc refuses, changes nothing, and names the clicks that are necessary.
        let refused = session.json(&["restore", &old, "--overwrite"]).exits(4);
        assert_same(&session.chats_and_lorebooks(), &now);
        let error = &refused.of_type("error")[0];
        for part in ["SillyTavern is running on this library (process ", book] {
            assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        }
        for part in
            ["☰", "\"Close chat\"", "--chat-closed`", "press F5", "--only chat`", "--as Restored`"]
        {
            assert!(error["hint"].as_str().unwrap().contains(part), "{error}");
        }
        // The plan has the warning, too.
        let plan = session.json(&["restore", &old, "--overwrite", "--dry-run"]).exits(0);
        let warned = |finding: &serde_json::Value| {
            finding["code"] == "reload-sillytavern" && finding["level"] == "warning"
        };
        assert!(plan.of_type("finding").iter().any(warned), "{}", plan.stdout);

        // A new chat is safe: messages in the open chat do not change it or its lorebook.
        let fork = session.json(&["restore", &old, "--as", "Another ending"]).exits(0);
        assert!(!fork.of_type("finding").iter().any(warned), "{}", fork.stdout);
        let changed = session.files_changed_by(|writer| {
            writer.say("On and on.");
            writer.type_command("/createentry file=\"Tide Office\" key=\"more\" More of it.");
        });
        assert_eq!(changed, [chat.as_str(), book]);

        // The chat alone can be replaced at any time: it gets a new integrity value, and the page
        // with the old value asks before it overwrites the file. Declining loses nothing.
        let restored = session.json(&["restore", &old, "--overwrite", "--only", "chat"]).exits(0);
        assert!(!restored.of_type("finding").iter().any(warned), "{}", restored.stdout);
        let on_disk = fs::read(session.path(&chat)).unwrap();
        assert_eq!(without_integrity(&on_disk), without_integrity(&at_snapshot[&chat]));
        assert_ne!(on_disk, at_snapshot[&chat]);
        session.writer.take_warnings();
        session.writer.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/send Nobody told me.')");
        session.writer.wait_until("document.querySelector('dialog.popup[open]')");
        let asked = session.writer.popup().unwrap();
        assert!(asked.contains("integrity") && asked.contains("OVERWRITE"), "{asked}");
        assert_eq!(fs::read(session.path(&chat)).unwrap(), on_disk);
        session.writer.click("dialog.popup[open] .popup-button-ok");
        session.writer.wait_for_reload();
        session.writer.select("Mira Voss");
        let state = session.open_without_changes(&main);
        assert_eq!(state["messages"].as_array().unwrap().len(), 3);
        session.connect_model();
        session.json(&["undo"]).exits(0);
        session.writer.reload();
        session.writer.select("Mira Voss");
        session.connect_model();

        // Why stvc refuses otherwise: SillyTavern does not notice that a file was replaced, and its
        // next save silently undoes the restore. The store has both versions.
        let restored = session.json(&["restore", &old, "--overwrite", "--chat-closed"]).exits(0);
        assert!(restored.of_type("finding").iter().any(warned), "{}", restored.stdout);
        assert_eq!(fs::read(session.path(&chat)).unwrap(), at_snapshot[&chat]);
        session.writer.take_warnings();
        session.writer.say("Nobody told me.");
        session.writer.type_command("/createentry file=\"Tide Office\" key=\"cache\" From memory.");
        session.writer.settle();
        let text = fs::read_to_string(session.path(&chat)).unwrap();
        assert!(text.contains("A mistake.") && text.contains("Nobody told me."), "{text}");
        let text = fs::read_to_string(session.path(book)).unwrap();
        assert!(text.contains("A mistake.") && text.contains("From memory."), "{text}");
        assert_eq!((session.writer.popup(), session.writer.take_warnings()), (None, vec![]));

        // The clicks in the hint: close the chat, restore, reload.
        session.writer.close_chat();
        session.json(&["restore", &old, "--overwrite", "--chat-closed"]).exits(0);
        session.writer.reload();
        session.writer.select("Mira Voss");
        session.connect_model();
        let state = session.open_without_changes(&main);
        assert_eq!(state["messages"].as_array().unwrap().len(), 3);
        assert_eq!(state["uids"], serde_json::json!([0, 1, 2]));
        let current = session.chats_and_lorebooks();
        assert!(current[&chat] == at_snapshot[&chat] && current[book] == at_snapshot[book]);
        let changed = session.files_changed_by(|writer| writer.say("Better."));
        assert_eq!(changed, [chat.as_str()]);
        let state = session.open_without_changes("Another ending");
        assert_eq!(state["uids"], serde_json::json!([0, 1, 2]));
        session.assert_store_matches_library();
    });
}

/// Returns a chat file without the integrity value in its header.
pub fn without_integrity(chat: &[u8]) -> String {
    let text = String::from_utf8(chat.to_vec()).unwrap();
    let (header, messages) = text.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    assert!(header["chat_metadata"]["integrity"].take().is_string(), "{header}");
    format!("{header}\n{messages}")
}

/// A group's file lists its chats, and the page has that list in memory.
#[test]
fn open_page_removes_a_new_chat_from_its_group_unless_reloaded() {
    with_retries(|| {
        let Some(mut session) = Session::open("open-group", "1.19.0") else { return };
        session.writer.character("Mira Voss", "The tide is low.");
        session.writer.character("Wren", "Cold, cold, cold.");
        session.connect_model();
        let main = session.writer.group("The Office", &["Mira Voss", "Wren"]);
        session.writer.say("Hello.");
        let old = session.snapshot()[&main].clone();
        // SillyTavern chooses at random whether one member of a group answers, or both.
        let count = session.json(&["show", &old]).of_type("snapshot")[0]["messages"].as_u64();

        let listed = |session: &Session| {
            let groups =
                session.files().into_iter().filter(|(path, _)| path.starts_with("groups/"));
            groups.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect::<String>()
        };
        let forked = session.json(&["restore", &old, "--as", "Another storm"]).exits(0);
        let warned = |finding: &serde_json::Value| {
            finding["code"] == "reload-sillytavern" && finding["level"] == "warning"
        };
        assert!(forked.of_type("finding").iter().any(warned), "{}", forked.stdout);
        assert!(listed(&session).contains("Another storm"));
        session.writer.say("Nobody told me.");
        session.writer.settle();
        assert!(!listed(&session).contains("Another storm"), "{}", listed(&session));
        // The chat file still exists; restoring it again lists it.
        session.writer.close_page();
        session.stvc(&["restore", "Another storm"]).exits(0);
        session.open_page();
        session.writer.select("The Office");
        let state = session.open_without_changes("Another storm");
        assert_eq!(Some(state["messages"].as_array().unwrap().len() as u64), count);
    });
}
