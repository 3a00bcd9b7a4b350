//! After SillyTavern's own checkpoint and branch buttons, the page offers an own lorebook. A
//! missing lorebook is offered its repairs, and a fork is created as soon as ST-Auto-Recap has
//! finished.

use std::fs;

use serde_json::json;

use crate::session::{Session, with_retries};

const MAIN: &str = "Tide Office";
const TOAST: &str = "[...document.querySelectorAll('#toast-container .toast')]";

#[test]
fn req_86_req_93_req_94_forks_and_missing_lorebooks_get_offers_in_1_19() {
    with_retries(|| own_lorebook_scenario("offers-1.19", "1.19.0"));
}

#[test]
fn req_86_req_93_req_94_forks_and_missing_lorebooks_get_offers_in_1_12() {
    with_retries(|| own_lorebook_scenario("offers-1.12", "1.12.14"));
}

/// Waits for a notification with these words.
#[track_caller]
fn wait_for_toast(session: &mut Session, words: &str) {
    session.writer.wait_until(&format!(
        "{TOAST}.some((toast) => toast.textContent.includes({}))",
        json!(words)
    ));
}

/// Clicks the notification with these words.
#[track_caller]
fn click_toast(session: &mut Session, words: &str) {
    session.writer.click_element(&format!(
        "{TOAST}.find((toast) => toast.textContent.includes({}))",
        json!(words)
    ));
}

fn own_lorebook_scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.add_chat_lorebook(MAIN);
    session.writer.say("I see a lantern.");
    session.writer.say("It goes out.");
    let before = session.chats_and_lorebooks();

    // A branch is opened at once, and its parent stays as it is.
    let branch = session.writer.branch(1);
    assert_eq!(session.writer.state()["world"], MAIN);
    click_toast(&mut session, "shares its lorebook");
    session.writer.wait_until(&format!(
        "SillyTavern.getContext().chatMetadata.world_info !== {}",
        json!(MAIN)
    ));
    wait_for_toast(&mut session, "now has its own lorebook");
    session.writer.say("Another way.");
    let own = session.writer.state()["world"].as_str().unwrap().to_owned();
    let after = session.chats_and_lorebooks();
    assert_eq!(after[&format!("worlds/{own}.json")], before[&format!("worlds/{MAIN}.json")]);

    // A checkpoint is not opened.
    session.writer.open(&main);
    let checkpoint = session.writer.checkpoint(2, "Before the storm");
    click_toast(&mut session, "shares its lorebook");
    wait_for_toast(&mut session, &format!("{checkpoint} now has its own lorebook"));
    assert_eq!(session.writer.state()["world"], MAIN);
    session.writer.open(&checkpoint);
    assert_ne!(session.writer.state()["world"], MAIN);
    // Its contents are shown when it is opened for the first time after the page was loaded.
    session.writer.open(&main);
    session.open_page();
    session.writer.select("Mira Voss");
    session.writer.open(&checkpoint);
    wait_for_toast(&mut session, "Lorebook entries: 3.");
    session.writer.open(&main);
    let current = session.chats_and_lorebooks();
    assert_eq!(current[&format!("worlds/{MAIN}.json")], before[&format!("worlds/{MAIN}.json")]);

    // The branch's lorebook is deleted outside of the page.
    session.writer.close_page();
    let path = session.path(&format!("worlds/{own}.json"));
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    session.open_page();
    session.writer.select("Mira Voss");
    session.writer.open(&branch);
    session.writer.wait_until("document.querySelector('dialog.popup[open] .stvc-repairs')");
    session.writer.click("dialog.popup[open] [data-result=\"2\"]");
    wait_for_toast(&mut session, "Repaired.");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(session.writer.state()["uids"], json!([0, 1, 2]));
    watching.stop();
}

/// The entry in which ST-Auto-Recap stores its queue.
fn set_queue(session: &mut Session, operations: &str) {
    let script = format!(
        "import('/scripts/world-info.js').then(async (books) => {{
            const book = await books.loadWorldInfo({name});
            const content = JSON.stringify({{ queue: {operations}, current_operation_id: null, paused: false, version: 1, queueVersion: 3 }});
            book.entries[99] = {{ ...book.entries[0], uid: 99, comment: '__operation_queue', key: [], content, disable: true }};
            await books.saveWorldInfo({name}, book, true);
        }})",
        name = json!(MAIN)
    );
    session.writer.evaluate(&script);
    session.writer.settle();
}

#[test]
fn req_95_fork_is_created_when_auto_recap_has_finished() {
    with_retries(|| {
        let Some((mut session, watching)) = Session::with_extension("create-when-ready", "1.19.0")
        else {
            return;
        };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook(MAIN);
        session.writer.say("I see a lantern.");
        let operation = r#"[{"id":"op_1","type":"recap","params":{"index":1},"status":"pending","created_at":1763632702906,"started_at":null,"completed_at":null,"error":null,"retries":0,"priority":0,"dependencies":[],"metadata":{},"queueVersion":3}]"#;
        set_queue(&mut session, operation);
        let chats = session.chats_and_lorebooks();

        // Cancelling while it waits creates nothing.
        fork(&mut session, "Cancelled");
        click_toast(&mut session, "Click here to cancel");
        session.writer.wait_until("!document.querySelector('.stvc-waiting')");
        assert_eq!(session.chats_and_lorebooks(), chats);

        fork(&mut session, "When ready");
        wait_for_toast(&mut session, "Waiting until ST-Auto-Recap has finished");
        set_queue(&mut session, "[]");
        session.writer.wait_until("SillyTavern.getContext().getCurrentChatId() === 'When ready'");
        assert_ne!(session.writer.state()["world"], MAIN);
        assert!(session.path(&format!("chats/Mira Voss/{main}.jsonl")).exists());
        assert!(!session.path("chats/Mira Voss/Cancelled.jsonl").exists());
        watching.stop();
    });
}

/// Asks for a fork at message 1. The dialog says that ST-Auto-Recap is still working.
fn fork(session: &mut Session, name: &str) {
    session.writer.click(".mes[mesid='1'] .extraMesButtonsHint");
    session.writer.click(".mes[mesid='1'] .stvc_fork");
    session.writer.wait_until(
        "document.querySelector('dialog.popup[open] .popup-button-ok')?.textContent.includes('Create when ready')",
    );
    session.writer.fill_popup(name);
    session.writer.click("dialog.popup[open] .popup-button-ok");
}

/// The page says at once that no watch is running, and names the command.
#[test]
fn missing_watch_is_reported_at_once() {
    with_retries(|| {
        let Some((mut session, watching)) = Session::with_extension("no-watch", "1.19.0") else {
            return;
        };
        session.writer.character("Mira Voss", "The tide is low.");
        assert_eq!(session.writer.run_command("/stvc-snapshot").len(), 40);
        watching.stop();
        session.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
        session.writer.wait_until(
            "document.getElementById('stvc_badge').textContent.includes('not running')",
        );
        for entry in 0..3 {
            session.writer.take_warnings();
            session.writer.evaluate("toastr.clear()");
            session.writer.click_menu_entry(entry);
            wait_for_toast(&mut session, "stvc watch --install");
            let popups = "document.querySelectorAll('iframe.stvc-viewer').length";
            assert_eq!(session.writer.evaluate(popups), 0, "an empty map is not opened");
        }
        // Without an open chat, Timelines shows the library.
        let watching = session.watch();
        session.writer.close_chat();
        session.writer.click_menu_entry(1);
        session.writer.wait_until(
            "document.querySelector('iframe.stvc-viewer')?.contentDocument?.body?.textContent.includes('Mira Voss')",
        );
        watching.stop();
    });
}

/// The popup with the list of chats opens by itself after a deletion.
#[test]
fn deleted_chat_is_listed_in_the_popup_after_its_deletion() {
    with_retries(|| {
        let Some((mut session, watching)) = Session::with_extension("after-deletion", "1.19.0")
        else {
            return;
        };
        session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.writer.say("I see a lantern.");
        let branch = session.writer.branch(1);
        session.writer.run_command("/stvc-snapshot");
        session.writer.back();
        session.writer.click("#options_button");
        session.writer.click("#option_select_chat");
        session.writer.click_element(&format!(
            "document.querySelector('.select_chat_block[file_name^=' + CSS.escape({}) + '] .PastChat_cross')",
            json!(branch)
        ));
        session.writer.click("dialog.popup[open] .popup-button-ok");
        session.writer.wait_until(
            "document.querySelector('.stvc-deleted summary')?.textContent.includes('(1)')",
        );
        assert!(!session.path(&format!("chats/Mira Voss/{branch}.jsonl")).exists());
        watching.stop();
    });
}
