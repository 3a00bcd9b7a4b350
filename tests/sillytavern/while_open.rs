//! Restoring while SillyTavern is open. Its page writes back what it has in memory, and nothing tells it that a file changed: these tests hold what the real
//! program does, what stvc makes of it, and that the clicks it names are the right ones.

use std::fs;

use crate::common::assert_same;
use crate::stage::{Stage, again};

#[test]
fn the_open_chat_is_not_replaced_unless_it_is_closed_first() {
    again(|| {
        let Some(mut stage) = Stage::open("open-chat", "1.19.0") else { return };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.bind_book("Tide Office");
        stage.writer.say("I see a lantern.");
        let old = stage.snapshot()[&main].clone();
        let then = stage.stories();
        stage.writer.say("A mistake.");
        stage.writer.command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        let now = stage.stories();
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let book = "worlds/Tide Office.json";

        // The default: seen, refused, nothing changed, and told what to click.
        let refused = stage.json(&["restore", &old, "--overwrite"]).exits(4);
        assert_same(&stage.stories(), &now);
        let error = &refused.of_type("error")[0];
        for said in ["SillyTavern is running on this library (process ", book] {
            assert!(error["message"].as_str().unwrap().contains(said), "{error}");
        }
        for said in
            ["☰", "\"Close chat\"", "--chat-closed`", "press F5", "--only chat`", "--as Restored`"]
        {
            assert!(error["hint"].as_str().unwrap().contains(said), "{error}");
        }
        // What would be replaced is said beforehand, too.
        let plan = stage.json(&["restore", &old, "--overwrite", "--dry-run"]).exits(0);
        let warned = |finding: &serde_json::Value| {
            finding["code"] == "reload-sillytavern" && finding["level"] == "warning"
        };
        assert!(plan.of_type("finding").iter().any(warned), "{}", plan.stdout);

        // A new chat is safe: what is said in the open one leaves it and its lorebook alone.
        let fork = stage.json(&["restore", &old, "--as", "Another ending"]).exits(0);
        assert!(!fork.of_type("finding").iter().any(warned), "{}", fork.stdout);
        let changed = stage.changed_by(|writer| {
            writer.say("On and on.");
            writer.command("/createentry file=\"Tide Office\" key=\"more\" More of it.");
        });
        assert_eq!(changed, [chat.as_str(), book]);

        // A chat alone can be replaced at any time: it gets another mark, and the page that has the former one asks before it saves over it. Who says no loses nothing.
        let restored = stage.json(&["restore", &old, "--overwrite", "--only", "chat"]).exits(0);
        assert!(!restored.of_type("finding").iter().any(warned), "{}", restored.stdout);
        let there = fs::read(stage.path(&chat)).unwrap();
        assert_eq!(unmarked(&there), unmarked(&then[&chat]));
        assert_ne!(there, then[&chat]);
        stage.writer.complaints();
        stage.writer.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/send Nobody told me.')");
        stage.writer.until("document.querySelector('dialog.popup[open]')");
        let asked = stage.writer.popup().unwrap();
        assert!(asked.contains("integrity") && asked.contains("OVERWRITE"), "{asked}");
        assert_eq!(fs::read(stage.path(&chat)).unwrap(), there);
        stage.writer.click("dialog.popup[open] .popup-button-ok");
        stage.writer.returns();
        stage.writer.go("Mira Voss");
        let seen = stage.opens_unchanged(&main);
        assert_eq!(seen["messages"].as_array().unwrap().len(), 3);
        stage.connect();
        stage.json(&["undo"]).exits(0);
        stage.writer.reload();
        stage.writer.go("Mira Voss");
        stage.connect();

        // Why it is refused otherwise: of a file that is replaced under it SillyTavern takes no notice. Its next save undoes the restore, without a word. What was restored
        // and what was there before are both in the store.
        let restored = stage.json(&["restore", &old, "--overwrite", "--chat-closed"]).exits(0);
        assert!(restored.of_type("finding").iter().any(warned), "{}", restored.stdout);
        assert_eq!(fs::read(stage.path(&chat)).unwrap(), then[&chat]);
        stage.writer.complaints();
        stage.writer.say("Nobody told me.");
        stage.writer.command("/createentry file=\"Tide Office\" key=\"cache\" From memory.");
        stage.writer.settle();
        let text = fs::read_to_string(stage.path(&chat)).unwrap();
        assert!(text.contains("A mistake.") && text.contains("Nobody told me."), "{text}");
        let text = fs::read_to_string(stage.path(book)).unwrap();
        assert!(text.contains("A mistake.") && text.contains("From memory."), "{text}");
        assert_eq!((stage.writer.popup(), stage.writer.complaints()), (None, vec![]));

        // The clicks that were named: close the chat, restore, F5.
        stage.writer.close();
        stage.json(&["restore", &old, "--overwrite", "--chat-closed"]).exits(0);
        stage.writer.reload();
        stage.writer.go("Mira Voss");
        stage.connect();
        let seen = stage.opens_unchanged(&main);
        assert_eq!(seen["messages"].as_array().unwrap().len(), 3);
        assert_eq!(seen["uids"], serde_json::json!([0, 1, 2]));
        let here = stage.stories();
        assert!(here[&chat] == then[&chat] && here[book] == then[book]);
        let changed = stage.changed_by(|writer| writer.say("Better."));
        assert_eq!(changed, [chat.as_str()]);
        let seen = stage.opens_unchanged("Another ending");
        assert_eq!(seen["uids"], serde_json::json!([0, 1, 2]));
        stage.store_holds_what_is_there();
    });
}

/// A chat without its mark.
pub fn unmarked(chat: &[u8]) -> String {
    let text = String::from_utf8(chat.to_vec()).unwrap();
    let (header, messages) = text.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    assert!(header["chat_metadata"]["integrity"].take().is_string(), "{header}");
    format!("{header}\n{messages}")
}

/// A group's file says which chats it has, and the page has that in memory, too.
#[test]
fn a_group_that_is_open_forgets_a_new_chat_unless_the_page_is_reloaded() {
    again(|| {
        let Some(mut stage) = Stage::open("open-group", "1.19.0") else { return };
        stage.writer.character("Mira Voss", "The tide is low.");
        stage.writer.character("Wren", "Cold, cold, cold.");
        stage.connect();
        let main = stage.writer.group("The Office", &["Mira Voss", "Wren"]);
        stage.writer.say("Hello.");
        let old = stage.snapshot()[&main].clone();
        // SillyTavern rolls dice who answers in a group: one of them, or both.
        let said = stage.json(&["show", &old]).of_type("snapshot")[0]["messages"].as_u64();

        let listed = |stage: &Stage| {
            let groups = stage.files().into_iter().filter(|(path, _)| path.starts_with("groups/"));
            groups.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect::<String>()
        };
        let forked = stage.json(&["restore", &old, "--as", "Another storm"]).exits(0);
        let warned = |finding: &serde_json::Value| {
            finding["code"] == "reload-sillytavern" && finding["level"] == "warning"
        };
        assert!(forked.of_type("finding").iter().any(warned), "{}", forked.stdout);
        assert!(listed(&stage).contains("Another storm"));
        stage.writer.say("Nobody told me.");
        stage.writer.settle();
        assert!(!listed(&stage).contains("Another storm"), "{}", listed(&stage));
        // The chat itself is there still; restoring it again lists it.
        stage.writer.leave();
        stage.stvc(&["restore", "Another storm"]).exits(0);
        stage.come_in();
        stage.writer.go("The Office");
        let seen = stage.opens_unchanged("Another storm");
        assert_eq!(Some(seen["messages"].as_array().unwrap().len() as u64), said);
    });
}
