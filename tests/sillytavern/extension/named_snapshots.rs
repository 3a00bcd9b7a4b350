//! Buttons restore exactly the snapshot that the page showed, whatever was saved since. The page
//! opens chats by the names of their files.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::restore_while_open::without_integrity;
use crate::session::{Session, with_retries};

const REFRESH: &str = "document.dispatchEvent(new Event('visibilitychange'))";
const BOOK: &str = "worlds/Tide Office.json";
const FRAME: &str = "document.querySelector('iframe.stvc-viewer')?.contentDocument";

/// Clicks the topmost element at each dot of the map. Returns the lane of each dot and the timeline
/// that was selected.
const CLICK_DOTS: &str = "async (page) => {
  const wait = () => new Promise((done) => setTimeout(done, 1000));
  await wait();
  const places = [...page.querySelectorAll('svg circle[data-dot]')].map((dot) => [dot.closest('[data-lane]').dataset.lane, dot.dataset.dot]);
  const clicked = [];
  for (const [lane, n] of places) {
    const dot = page.querySelector(`svg [data-lane='${lane}'] circle[data-dot='${n}']`);
    // The map may have moved since the last click.
    const box = dot.getBoundingClientRect();
    const [clientX, clientY] = [box.x + box.width / 2, box.y + box.height / 2];
    const target = page.elementFromPoint(clientX, clientY);
    for (const type of ['pointerdown', 'pointerup'])
      target.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX, clientY, pointerId: 1, isPrimary: true }));
    await wait();
    const text = (part) => page.querySelector('.selection ' + part).textContent;
    clicked.push([page.querySelector(`.lane[data-lane='${lane}']`).dataset.timeline, text('.owner small') + ' / ' + text('h2')]);
  }
  return clicked;
}";

#[test]
fn restore_from_an_alarm_restores_the_chat_before_the_loss_in_1_19() {
    with_retries(|| alarm_scenario("alarm-1.19", "1.19.0"));
}

#[test]
fn restore_from_an_alarm_restores_the_chat_before_the_loss_in_1_12() {
    with_retries(|| alarm_scenario("alarm-1.12", "1.12.14"));
}

/// Waits until the latest snapshot of a chat has a number of messages.
#[track_caller]
fn wait_for_snapshot(session: &mut Session, chat: &str, messages: usize) {
    session.writer.settle();
    let begin = Instant::now();
    loop {
        let lines = session.json(&["timelines"]).exits(0).of_type("timeline");
        let line = lines.into_iter().find(|line| line["timeline"] == chat).unwrap_or(Value::Null);
        if line["messages"] == messages && line["state"] == "unchanged" {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{line}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn alarm_scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.add_chat_lorebook("Tide Office");
    let timeline = format!("chats/Mira Voss/{main}");
    let chat = format!("{timeline}.jsonl");
    let sent: Vec<_> = (1..38).map(|n| format!("/send message {n}")).collect();
    session.writer.type_command(&sent.join(" | "));
    wait_for_snapshot(&mut session, &timeline, 38);
    let at_snapshot = session.chats_and_lorebooks();
    session.writer.evaluate(REFRESH);
    session
        .writer
        .wait_until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");

    session.writer.type_command("/cut 2-37");
    wait_for_snapshot(&mut session, &timeline, 2);
    let is_shown = "document.querySelector('#toast-container .toast-warning')?.textContent.includes('it had 38 messages and now has 2')";
    session.writer.wait_until(&format!("({REFRESH}, {is_shown})"));
    for count in [3, 4] {
        session.writer.type_command("/send The story goes on.");
        wait_for_snapshot(&mut session, &timeline, count);
    }
    session.writer.click("#toast-container .toast-warning");
    session.writer.wait_until("document.querySelector('dialog.popup[open] .stvc-plan')");
    // The lorebook is unchanged, so there is no button "Chat only".
    assert_eq!(
        session
            .writer
            .evaluate("document.querySelectorAll('dialog.popup[open] [data-result=\"2\"]').length"),
        0
    );
    session.writer.click("dialog.popup[open] .popup-button-ok");
    session.writer.wait_until("SillyTavern.getContext().chat.length === 38");
    let current = session.chats_and_lorebooks();
    assert_eq!(without_integrity(&current[&chat]), without_integrity(&at_snapshot[&chat]));
    assert_eq!(current[BOOK], at_snapshot[BOOK]);
    watching.stop();
}

#[test]
fn deleted_chat_is_restored_with_or_without_its_lorebook_in_1_19() {
    with_retries(|| deleted_chat_scenario("deleted-chat-1.19", "1.19.0"));
}

#[test]
fn deleted_chat_is_restored_with_or_without_its_lorebook_in_1_12() {
    with_retries(|| deleted_chat_scenario("deleted-chat-1.12", "1.12.14"));
}

/// The lorebook changes with the parent after the fork was deleted.
fn deleted_chat_scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.add_chat_lorebook("Tide Office");
    session.writer.type_command("/send I see a lantern.");
    let branch = session.writer.branch(1);
    session.writer.type_command("/send It goes out.");
    let timeline = format!("chats/Mira Voss/{branch}");
    let chat = format!("{timeline}.jsonl");
    wait_for_snapshot(&mut session, &timeline, 3);
    let at_snapshot = session.chats_and_lorebooks();
    session.writer.open(&main);

    session.writer.delete(&branch);
    session.writer.type_command("/createentry file=\"Tide Office\" key=\"oar\" The oar is split.");
    let changed = session.chats_and_lorebooks();
    assert_ne!(changed[BOOK], at_snapshot[BOOK]);
    assert!(!changed.contains_key(&chat));

    // Cancelling changes nothing.
    click_restore_of_deleted_chat(&mut session);
    session.writer.click("dialog.popup[open] .popup-button-cancel");
    session.writer.wait_until("!document.querySelector('dialog.popup[open]')");
    assert_eq!(session.chats_and_lorebooks(), changed);
    session.writer.click(".stvc-deleted button");
    session.writer.wait_until("document.querySelector('dialog.popup[open] [data-result=\"2\"]')");
    assert_eq!(
        session.writer.evaluate("[...document.querySelectorAll('dialog.popup[open] .popup-controls .menu_button')].filter((one) => one.offsetWidth).map((one) => one.textContent.trim()).sort()"),
        json!(["Cancel", "Chat and lorebook", "Chat only"])
    );
    session.writer.click("dialog.popup[open] [data-result=\"2\"]");
    session.writer.wait_until("!document.querySelector('.stvc-deleted li')");
    session.writer.click("#select_chat_cross");
    let current = session.chats_and_lorebooks();
    assert_eq!(current[&chat], at_snapshot[&chat]);
    assert_eq!(current[BOOK], changed[BOOK], "the lorebook stays as it is");

    // Now with its lorebook, as that was when the chat was deleted again.
    wait_for_snapshot(&mut session, &timeline, 3);
    session.writer.delete(&branch);
    session.writer.type_command("/createentry file=\"Tide Office\" key=\"rope\" The rope is wet.");
    assert_ne!(session.chats_and_lorebooks()[BOOK], changed[BOOK]);
    click_restore_of_deleted_chat(&mut session);
    session.writer.click("dialog.popup[open] .popup-button-ok");
    session.writer.wait_until("!document.querySelector('.stvc-deleted li')");
    session.writer.click("#select_chat_cross");
    let current = session.chats_and_lorebooks();
    assert_eq!(current[&chat], at_snapshot[&chat]);
    assert_eq!(current[BOOK], changed[BOOK]);
    // The open chat uses that lorebook, and the page reloads it.
    assert_eq!(session.writer.state()["uids"], json!([0, 1, 2, 3]));
    let warnings = session.writer.take_warnings();
    assert!(warnings.iter().all(|words| !words.starts_with("error: ")), "{warnings:?}");
    watching.stop();
}

fn click_restore_of_deleted_chat(session: &mut Session) {
    session.writer.click("#options_button");
    session.writer.click("#option_select_chat");
    session.writer.wait_until("document.querySelector('.stvc-deleted summary')");
    session.writer.click(".stvc-deleted summary");
    session.writer.click(".stvc-deleted button");
    session.writer.wait_until("document.querySelector('dialog.popup[open] [data-result=\"2\"]')");
}

#[test]
fn fork_opens_by_its_file_name_in_1_19() {
    with_retries(|| name_scenario("names-1.19", "1.19.0"));
}

#[test]
fn fork_opens_by_its_file_name_in_1_12() {
    with_retries(|| name_scenario("names-1.12", "1.12.14"));
}

/// A fork with a name that no file can have, a snapshot of a chat that is not open, and the dots of
/// the map.
fn name_scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.add_chat_lorebook("Tide Office");
    session.writer.type_command("/send I see a lantern.");
    session.writer.run_command("/stvc-snapshot");
    let before = session.chats_and_lorebooks();

    session.writer.click(".mes[mesid='1'] .extraMesButtonsHint");
    session.writer.click(".mes[mesid='1'] .stvc_fork");
    session.writer.fill_popup("What if: she \"stays\" / goes?");
    session.writer.click("dialog.popup[open] .popup-button-ok");
    session.writer.wait_until(&format!(
        "SillyTavern.getContext().getCurrentChatId() !== {} && SillyTavern.getContext().chat.length === 2",
        json!(main)
    ));
    let current = session.chats_and_lorebooks();
    let new_chats: Vec<_> = current
        .keys()
        .filter(|path| path.ends_with(".jsonl") && !before.contains_key(*path))
        .collect();
    let [chat] = new_chats[..] else { panic!("{new_chats:?}") };
    let fork = chat.strip_prefix("chats/Mira Voss/").unwrap().strip_suffix(".jsonl").unwrap();
    assert_eq!(session.writer.evaluate("SillyTavern.getContext().getCurrentChatId()"), fork);
    session.writer.wait_until(&format!(
        "document.querySelector('#toast-container')?.textContent.includes({})",
        json!(format!("Forked: {fork}"))
    ));
    // The fork works, and SillyTavern created no empty chat with the typed name.
    session.writer.type_command("/send She stays.");
    let id = session.writer.run_command("/stvc-snapshot");
    let shown = session.json(&["show", &id]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("chats/Mira Voss/{fork}"));
    let chats = fs::read_dir(session.path("chats/Mira Voss")).unwrap().count();
    assert_eq!(chats, 2);

    // Restoring a snapshot of the fork while its parent is open is refused.
    session.writer.open(&main);
    session.writer.type_command("/send It goes out.");
    let open = session.writer.run_command("/stvc-snapshot");
    session.writer.take_warnings();
    let before_restore = session.chats_and_lorebooks();
    assert_eq!(session.writer.run_command(&format!("/stvc-restore {id}")), "");
    let warnings = session.writer.take_warnings();
    // The page collapses two spaces into one.
    let is_refusal =
        |line: &String| line.contains("What if she stays") && line.contains("not open");
    assert!(warnings.iter().any(is_refusal), "{warnings:?}");
    assert_eq!(session.chats_and_lorebooks(), before_restore);
    assert_eq!(session.writer.run_command(&format!("/stvc-restore {open}")), open);

    // A dot at which a fork starts belongs to the parent.
    session.writer.click_menu_entry(1);
    session
        .writer
        .wait_until(&format!("{FRAME}?.querySelectorAll('svg circle[data-dot]').length >= 4"));
    let clicked = session.writer.evaluate(&format!("({CLICK_DOTS})({FRAME})"));
    let clicked: Vec<(String, String)> = serde_json::from_value(clicked).unwrap();
    assert!(clicked.iter().any(|(lane, _)| lane.ends_with(&main)), "{clicked:?}");
    for (lane, title) in clicked {
        assert_eq!(title, lane.strip_prefix("chats/").unwrap().replacen('/', " / ", 1));
    }
    watching.stop();
}
