//! One chat on two devices: after a restore on one, the other reloads the chat. A page that did not
//! notice the restore never overwrites the chat silently.

use std::fs;

use serde_json::json;

use crate::restore_while_open::without_integrity;
use crate::session::{Session, with_retries};

const REFRESH: &str = "document.dispatchEvent(new Event('visibilitychange'))";

#[test]
fn restored_chat_is_reloaded_on_the_other_device() {
    with_retries(|| {
        let Some((mut session, watching)) = Session::with_extension("two-pages", "1.19.0") else {
            return;
        };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        session.writer.say("I see a lantern.");
        let first = session.writer.run_command("/stvc-snapshot");
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let book = "worlds/Tide Office.json";
        let at_snapshot = session.chats_and_lorebooks();
        session.writer.say("A mistake.");
        session.writer.type_command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        session.writer.settle();
        let texts = |session: &Session| {
            [chat.as_str(), book].map(|path| fs::read_to_string(session.path(path)).unwrap())
        };

        let mut phone = session.new_browser(&json!({}));
        phone.start(&session.url());
        phone.select("Mira Voss");
        assert_eq!(
            phone.state()["uids"],
            json!([0, 1, 2, 3]),
            "the phone has the lorebook in memory"
        );
        phone.evaluate(REFRESH);

        // After a restore here, the phone reloads the chat.
        session.writer.run_command(&format!("/stvc-restore {first}"));
        phone.evaluate(REFRESH);
        phone.wait_until("SillyTavern.getContext().chat.length === 3");
        phone.wait_until("document.querySelector('#toast-container')?.textContent.includes('replaced elsewhere')");
        assert_eq!(phone.state()["uids"], json!([0, 1, 2]));
        let current = session.chats_and_lorebooks();
        assert_eq!(without_integrity(&current[&chat]), without_integrity(&at_snapshot[&chat]));
        assert_eq!(current[book], at_snapshot[book]);
        phone.type_command("/createentry file=\"Tide Office\" key=\"phone\" From the phone.");
        phone.type_command("/send Written on the phone.");
        phone.settle();
        for text in texts(&session) {
            assert!(text.contains("phone.") && !text.contains("A mistake."), "{text}");
        }

        // SillyTavern asks before a page that did not notice overwrites the chat. A lorebook is
        // overwritten, but the watch reports it.
        phone.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
        session.writer.evaluate("SillyTavern.getContext().reloadCurrentChat()");
        session.writer.run_command(&format!("/stvc-restore {first}"));
        let restored = session.chats_and_lorebooks();
        assert_eq!(without_integrity(&restored[&chat]), without_integrity(&at_snapshot[&chat]));
        phone.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/send Nobody told me.')");
        phone.wait_until(
            "document.querySelector('dialog.popup[open]')?.textContent.includes('OVERWRITE')",
        );
        assert_eq!(session.chats_and_lorebooks()[&chat], restored[&chat]);
        phone.click("dialog.popup[open] .popup-button-ok");
        phone.wait_for_reload();
        phone.select("Mira Voss");
        assert_eq!(phone.state()["messages"].as_array().unwrap().len(), 3);
        session.writer.type_command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
        session.writer.settle();
        phone.reload();
        phone.select("Mira Voss");
        assert_eq!(phone.state()["uids"], json!([0, 1, 2, 3]));
        phone.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
        session.writer.run_command(&format!("/stvc-restore {first}"));
        assert_eq!(session.chats_and_lorebooks()[book], at_snapshot[book]);
        phone.type_command("/createentry file=\"Tide Office\" key=\"stale\" Nobody told me.");
        phone.settle();
        assert!(texts(&session)[1].contains("A mistake."), "SillyTavern overwrites lorebooks");
        session.writer.wait_until(&format!(
            "({REFRESH}, document.querySelector('#toast-container')?.textContent.includes('the restored files were overwritten'))"
        ));
        // The restored version is still in the store.
        session.writer.run_command("/stvc-restore worlds/Tide Office~1");
        assert_eq!(session.chats_and_lorebooks()[book], at_snapshot[book]);
        watching.stop();
    });
}
