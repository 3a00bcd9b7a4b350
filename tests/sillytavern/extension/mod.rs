//! The extension in the real SillyTavern: its commands and buttons, and the files that they write.

mod failures;
mod group_list;
mod named_snapshots;
mod offers;
mod open_from_viewer;
mod phone;
mod pictures;
mod prompts;
mod several_users;
mod two_pages;

use std::fs;

use serde_json::json;

use crate::restore_while_open::without_integrity;
use crate::session::{Session, with_retries};

/// Whether the map in the popup shows at least two lanes.
const MAP_IS_DRAWN: &str = "document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelectorAll('svg .lane').length >= 2";

#[test]
fn buttons_and_commands_work_in_1_19() {
    with_retries(|| scenario("extension-1.19", "1.19.0"));
}

#[test]
fn buttons_and_commands_work_in_1_12() {
    with_retries(|| scenario("extension-1.12", "1.12.14"));
}

fn scenario(name: &'static str, version: &str) {
    let Some(mut session) = Session::open(name, version) else { return };
    session.stvc(&["extension", "install"]).exits(0);
    session.open_page();
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.add_chat_lorebook("Tide Office");
    session.writer.say("I see a lantern.");
    // Without a watch, the badge says so.
    session
        .writer
        .wait_until("document.getElementById('stvc_badge')?.textContent.includes('not running')");
    let watching = session.watch();
    session.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    session
        .writer
        .wait_until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");

    // `/stvc-snapshot` returns the id of the snapshot.
    let first = session.writer.run_command("/stvc-snapshot the first");
    assert_eq!(first.len(), 40, "{first}");
    let shown = session.json(&["show", &first]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("chats/Mira Voss/{main}"));
    assert_eq!(session.writer.run_command("/stvc-tag at=1 the lantern"), "the lantern");

    // A restore needs no F5: the page reloads chat and lorebook and continues with them.
    let chat = format!("chats/Mira Voss/{main}.jsonl");
    let book = "worlds/Tide Office.json";
    let at_snapshot = session.chats_and_lorebooks();
    session.writer.say("A mistake.");
    session.writer.type_command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
    let mistaken = session.chats_and_lorebooks();
    assert_eq!(session.writer.run_command(&format!("/stvc-restore {first}")), first);
    assert_eq!(session.writer.take_warnings(), Vec::<String>::new());
    assert_eq!(session.writer.state()["uids"], json!([0, 1, 2]));
    // Only the integrity value differs, so that a page with the old chat cannot overwrite it.
    let on_disk = fs::read(session.path(&chat)).unwrap();
    assert_eq!(without_integrity(&on_disk), without_integrity(&at_snapshot[&chat]));
    assert_ne!(on_disk, at_snapshot[&chat]);
    assert_eq!(fs::read(session.path(book)).unwrap(), at_snapshot[book]);
    // Undo writes back every byte.
    assert_ne!(session.writer.run_command("/stvc-undo"), "");
    assert_eq!(fs::read(session.path(&chat)).unwrap(), mistaken[&chat]);
    assert_eq!(fs::read(session.path(book)).unwrap(), mistaken[book]);
    session.writer.run_command(&format!("/stvc-restore {first}"));
    session.writer.say("Better.");
    session.writer.type_command("/createentry file=\"Tide Office\" key=\"better\" Better.");
    session.writer.settle();
    for path in [chat.as_str(), book] {
        let text = fs::read_to_string(session.path(path)).unwrap();
        assert!(text.contains("Better.") && !text.contains("A mistake."), "{text}");
    }

    // Undoing an open fork leaves no empty chat: the page opens the parent.
    let before_fork = session.chats_and_lorebooks();
    assert_eq!(session.writer.run_command("/stvc-fork at=1 Not for long"), "Not for long");
    session.writer.settle();
    assert_ne!(session.writer.run_command("/stvc-undo"), "");
    session
        .writer
        .wait_until(&format!("SillyTavern.getContext().getCurrentChatId() === {}", json!(main)));
    assert_eq!(session.chats_and_lorebooks(), before_fork);

    // The button forks at a message, with its own lorebook, and opens the fork.
    let before = session.chats_and_lorebooks();
    session.writer.click(".mes[mesid='1'] .extraMesButtonsHint");
    session.writer.click(".mes[mesid='1'] .stvc_fork");
    session.writer.fill_popup("What if");
    session.writer.click("dialog.popup[open] .popup-button-ok");
    session.writer.wait_until("SillyTavern.getContext().getCurrentChatId() === 'What if' && SillyTavern.getContext().chat.length === 2");
    let state = session.writer.state();
    assert_ne!(state["world"], "Tide Office", "the fork has its own lorebook");
    let after = session.chats_and_lorebooks();
    assert_eq!((&after[&chat], &after[book]), (&before[&chat], &before[book]));
    session.writer.say("Another way.");
    assert_eq!(session.chats_and_lorebooks()[&chat], before[&chat]);

    // The map opens in a popup.
    session.writer.click_menu_entry(1);
    session.writer.wait_until(MAP_IS_DRAWN);
    if let Some(folder) = std::env::var_os("STVC_PICTURES") {
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        session.writer.attempt(&json!({ "do": "screenshot", "path": path })).unwrap();
    }
    session.writer.click("dialog.popup[open] .popup-button-ok");

    // A deleted chat is restored in "Manage chat files".
    let before_deletion = session.chats_and_lorebooks();
    session.writer.open(&main);
    session.writer.delete("What if");
    session.writer.settle();
    assert!(!session.path("chats/Mira Voss/What if.jsonl").exists());
    session.writer.click("#options_button");
    session.writer.click("#option_select_chat");
    session
        .writer
        .wait_until("document.querySelector('.stvc-deleted summary')?.textContent.includes('(1)')");
    session.writer.click(".stvc-deleted summary");
    session.writer.click(".stvc-deleted button");
    session.writer.wait_until("!document.querySelector('.stvc-deleted li')");
    session.writer.click("#select_chat_cross");
    assert_eq!(
        session.chats_and_lorebooks()["chats/Mira Voss/What if.jsonl"],
        before_deletion["chats/Mira Voss/What if.jsonl"]
    );

    // A refused command shows an error and changes nothing.
    let current = session.chats_and_lorebooks();
    assert_eq!(session.writer.run_command("/stvc-restore nothing like that"), "");
    session.writer.wait_until(
        "document.querySelector('#toast-container')?.textContent.includes('nothing like that')",
    );
    assert_eq!(session.chats_and_lorebooks(), current);
    session.writer.take_warnings();
    watching.stop();
    session.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    session
        .writer
        .wait_until("document.getElementById('stvc_badge').textContent.includes('not running')");
}

#[test]
fn group_chat_is_forked_and_listed_in_1_19() {
    with_retries(|| group_scenario("extension-group-1.19", "1.19.0"));
}

/// Group chats of 1.12 have no header; their metadata is in the group's file.
#[test]
fn group_chat_is_forked_and_listed_in_1_12() {
    with_retries(|| group_scenario("extension-group-1.12", "1.12.14"));
}

/// Forks a group chat: the group lists the fork, and the parent stays unchanged.
fn group_scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    session.writer.character("Mira Voss", "The tide is low.");
    session.writer.character("Wren", "Cold, cold, cold.");
    let main = session.writer.group("Ferry", &["Mira Voss", "Wren"]);
    session.connect_model();
    session.add_chat_lorebook("Ferry Lore");
    session.writer.say("Who rows?");
    let id = session.writer.run_command("/stvc-snapshot");
    let shown = session.json(&["show", &id]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("group chats/{main}"));
    let before = session.chats_and_lorebooks();
    assert_eq!(session.writer.run_command("/stvc-fork at=1 Another shore"), "Another shore");
    session.writer.wait_until("SillyTavern.getContext().getCurrentChatId() === 'Another shore'");
    assert_ne!(session.writer.state()["world"], "Ferry Lore");
    session.writer.say("Nobody rows.");
    session.writer.settle();
    let after = session.chats_and_lorebooks();
    for path in [format!("group chats/{main}.jsonl"), "worlds/Ferry Lore.json".into()] {
        assert_eq!(after[&path], before[&path], "{path}");
    }
    let found = session.writer.run_command("/stvc-search Nobody rows");
    assert!(found.contains("group chats/Another shore"), "{found}");
    // SillyTavern itself reports page errors in late lists; the user saw no error.
    let warnings = session.writer.take_warnings();
    assert!(warnings.iter().all(|words| !words.starts_with("error: ")), "{warnings:?}");
    watching.stop();
}

/// Measures the time of actions, compared with SillyTavern's own branch: `cargo test --release
/// --test sillytavern -- --ignored measure_extension_action_times --nocapture`.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn measure_extension_action_times() {
    let Some((mut session, watching)) = Session::with_extension("extension-speed", "1.19.0") else {
        return;
    };
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.writer.say("Begin.");
    session.writer.close_page();
    let path = session.path(&format!("chats/Mira Voss/{main}.jsonl"));
    let text = fs::read_to_string(&path).unwrap().trim_end().to_owned();
    let time = |session: &mut Session, script: &str| {
        let timed = format!(
            "(async () => {{ const begin = performance.now(); await ({script}); return performance.now() - begin; }})()"
        );
        session.writer.evaluate(&timed).as_f64().unwrap()
    };
    let command = |words: &str| {
        format!("SillyTavern.getContext().executeSlashCommandsWithOptions({})", json!(words))
    };
    for (size, repeated, messages) in [("200 kB", 30, 200), ("5 MB", 150, 1100)] {
        let mes = "The bell rings over the water. ".repeat(repeated);
        let line = json!({ "name": "Mira Voss", "is_user": false, "mes": mes, "extra": {} });
        let lines = format!("{line}\n").repeat(messages);
        fs::write(&path, format!("{text}\n{lines}").trim_end()).unwrap();
        session.open_page();
        session.writer.select("Mira Voss");
        session.writer.run_command("/stvc-snapshot");
        for round in 0..3 {
            session.writer.settle();
            let hello = time(&mut session, "stvc.ask('hello', {})");
            session.writer.type_command("/send Something new.");
            session.writer.settle();
            let save = time(&mut session, "SillyTavern.getContext().saveChat()");
            session.writer.settle();
            let snapshot = time(&mut session, &command("/stvc-snapshot"));
            session.writer.settle();
            let at = messages - 100;
            let fork = command(&format!("/stvc-fork at={at} Fork {size} {round}"));
            let fork = time(&mut session, &fork);
            session.writer.settle();
            session.writer.open(&main);
            session.writer.settle();
            let branch = time(&mut session, &command(&format!("/branch-create {at}")));
            session.writer.settle();
            session.writer.open(&main);
            eprintln!(
                "{size}: hello {hello:.0} ms, SillyTavern's save {save:.0} ms, snapshot {snapshot:.0} ms, fork {fork:.0} ms, SillyTavern's branch {branch:.0} ms"
            );
        }
        session.writer.close_page();
    }
    watching.stop();
}
