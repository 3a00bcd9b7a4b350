//! One chat on two devices: what is set back on one of them is read again by the other, and what a page that was told nothing writes is never written in silence.

use std::fs;

use serde_json::json;

use crate::stage::{Stage, again};
use crate::while_open::unmarked;

const LOOK: &str = "document.dispatchEvent(new Event('visibilitychange'))";

#[test]
fn in_1_19() {
    again(|| {
        let Some((mut stage, watching)) = Stage::inside("two-pages", "1.19.0") else { return };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.bind_book("Tide Office");
        stage.writer.say("I see a lantern.");
        let first = stage.writer.pipe("/stvc-snapshot");
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let book = "worlds/Tide Office.json";
        let then = stage.stories();
        stage.writer.say("A mistake.");
        stage.writer.command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        stage.writer.settle();
        let texts = |stage: &Stage| {
            [chat.as_str(), book].map(|path| fs::read_to_string(stage.path(path)).unwrap())
        };

        let mut phone = stage.another(&json!({}));
        phone.start(&stage.url());
        phone.go("Mira Voss");
        assert_eq!(phone.sees()["uids"], json!([0, 1, 2, 3]), "it has the lorebook in memory");
        phone.evaluate(LOOK);

        // Set back here: the phone is told, and reads it again.
        stage.writer.pipe(&format!("/stvc-restore {first}"));
        phone.evaluate(LOOK);
        phone.until("SillyTavern.getContext().chat.length === 3");
        phone.until("document.querySelector('#toast-container')?.textContent.includes('replaced elsewhere')");
        assert_eq!(phone.sees()["uids"], json!([0, 1, 2]));
        let here = stage.stories();
        assert_eq!(unmarked(&here[&chat]), unmarked(&then[&chat]));
        assert_eq!(here[book], then[book]);
        phone.command("/createentry file=\"Tide Office\" key=\"phone\" From the phone.");
        phone.command("/send Written on the phone.");
        phone.settle();
        for text in texts(&stage) {
            assert!(text.contains("phone.") && !text.contains("A mistake."), "{text}");
        }

        // A page that hears nothing is still asked before it saves over the chat, and what it does to the lorebook is found out.
        phone.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
        stage.writer.evaluate("SillyTavern.getContext().reloadCurrentChat()");
        stage.writer.pipe(&format!("/stvc-restore {first}"));
        let there = stage.stories();
        assert_eq!(unmarked(&there[&chat]), unmarked(&then[&chat]));
        phone.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/send Nobody told me.')");
        phone.until(
            "document.querySelector('dialog.popup[open]')?.textContent.includes('OVERWRITE')",
        );
        assert_eq!(stage.stories()[&chat], there[&chat]);
        phone.click("dialog.popup[open] .popup-button-ok");
        phone.returns();
        phone.go("Mira Voss");
        assert_eq!(phone.sees()["messages"].as_array().unwrap().len(), 3);
        stage.writer.command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        stage.writer.settle();
        phone.reload();
        phone.go("Mira Voss");
        assert_eq!(phone.sees()["uids"], json!([0, 1, 2, 3]));
        phone.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
        stage.writer.pipe(&format!("/stvc-restore {first}"));
        assert_eq!(stage.stories()[book], then[book]);
        phone.command("/createentry file=\"Tide Office\" key=\"stale\" Nobody told me.");
        phone.settle();
        assert!(texts(&stage)[1].contains("A mistake."), "SillyTavern has no mark for lorebooks");
        stage.writer.until(&format!(
            "({LOOK}, document.querySelector('#toast-container')?.textContent.includes('what was restored was overwritten'))"
        ));
        // What was restored is one click away.
        stage.writer.pipe("/stvc-restore worlds/Tide Office~1");
        assert_eq!(stage.stories()[book], then[book]);
        watching.stop();
    });
}
