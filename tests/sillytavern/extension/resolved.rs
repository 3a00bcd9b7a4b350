//! A button restores the state that the page showed, however much was saved since; and the page opens files under the names that they have on disk.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Stage, again};
use crate::while_open::unmarked;

const LOOK: &str = "document.dispatchEvent(new Event('visibilitychange'))";
const BOOK: &str = "worlds/Tide Office.json";
const FRAME: &str = "document.querySelector('iframe.stvc-viewer')?.contentDocument";

/// Clicks where each dot of the map is, on whatever is uppermost there: the lane that each is drawn in, and the timeline that is selected then.
const CLICK_DOTS: &str = "async (page) => {
  const places = [...page.querySelectorAll('svg circle[data-dot]')].map((dot) => {
    const box = dot.getBoundingClientRect();
    return [dot.closest('[data-lane]').dataset.lane, box.x + box.width / 2, box.y + box.height / 2];
  });
  const clicked = [];
  for (const [lane, clientX, clientY] of places) {
    page.elementFromPoint(clientX, clientY).dispatchEvent(new MouseEvent('click', { bubbles: true, clientX, clientY }));
    await new Promise((done) => setTimeout(done, 500));
    clicked.push([page.getElementById('lane-' + lane).getAttribute('aria-label'), page.querySelector('.about h2').textContent]);
  }
  return clicked;
}";

#[test]
fn an_alarm_in_1_19() {
    again(|| an_alarm("alarm-1.19", "1.19.0"));
}

#[test]
fn an_alarm_in_1_12() {
    again(|| an_alarm("alarm-1.12", "1.12.14"));
}

/// Waits until the watch has stored the chat with so many messages; the id of that snapshot.
#[track_caller]
fn stored(stage: &mut Stage, chat: &str, messages: usize) -> String {
    stage.writer.settle();
    let begin = Instant::now();
    loop {
        let lines = stage.json(&["timelines"]).exits(0).of_type("timeline");
        let line = lines.into_iter().find(|line| line["timeline"] == chat).unwrap_or(Value::Null);
        if line["messages"] == messages && line["state"] == "unchanged" {
            return line["head"].as_str().unwrap().to_owned();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{line}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn an_alarm(name: &'static str, version: &str) {
    let Some((mut stage, watching)) = Stage::inside(name, version) else { return };
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.bind_book("Tide Office");
    let timeline = format!("chats/Mira Voss/{main}");
    let chat = format!("{timeline}.jsonl");
    let sent: Vec<_> = (1..38).map(|n| format!("/send message {n}")).collect();
    stage.writer.command(&sent.join(" | "));
    stored(&mut stage, &timeline, 38);
    let then = stage.stories();
    stage.writer.evaluate(LOOK);
    stage.writer.until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");

    stage.writer.command("/cut 2-37");
    stored(&mut stage, &timeline, 2);
    let is_told = "document.querySelector('#toast-container .toast-warning')?.textContent.includes('it had 38 messages and now has 2')";
    stage.writer.until(&format!("({LOOK}, {is_told})"));
    for count in [3, 4] {
        stage.writer.command("/send The story goes on.");
        stored(&mut stage, &timeline, count);
    }
    stage.writer.click("#toast-container .toast-warning");
    stage.writer.until("document.querySelector('dialog.popup[open] .stvc-plan')");
    // Only the chat was damaged: there is nothing to choose.
    assert_eq!(
        stage
            .writer
            .evaluate("document.querySelectorAll('dialog.popup[open] [data-result=\"2\"]').length"),
        0
    );
    stage.writer.click("dialog.popup[open] .popup-button-ok");
    stage.writer.until("SillyTavern.getContext().chat.length === 38");
    let here = stage.stories();
    assert_eq!(unmarked(&here[&chat]), unmarked(&then[&chat]));
    assert_eq!(here[BOOK], then[BOOK]);
    watching.stop();
}

#[test]
fn a_deleted_chat_in_1_19() {
    again(|| a_deleted_chat("deleted-chat-1.19", "1.19.0"));
}

#[test]
fn a_deleted_chat_in_1_12() {
    again(|| a_deleted_chat("deleted-chat-1.12", "1.12.14"));
}

/// The lorebook went on with the parent's story after the chat was deleted.
fn a_deleted_chat(name: &'static str, version: &str) {
    let Some((mut stage, watching)) = Stage::inside(name, version) else { return };
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.bind_book("Tide Office");
    stage.writer.command("/send I see a lantern.");
    let branch = stage.writer.branch(1);
    stage.writer.command("/send It goes out.");
    let timeline = format!("chats/Mira Voss/{branch}");
    let chat = format!("{timeline}.jsonl");
    stored(&mut stage, &timeline, 3);
    let then = stage.stories();
    stage.writer.open(&main);

    stage.writer.delete(&branch);
    stage.writer.command("/createentry file=\"Tide Office\" key=\"oar\" The oar is split.");
    let changed = stage.stories();
    assert_ne!(changed[BOOK], then[BOOK]);
    assert!(!changed.contains_key(&chat));

    // Who thinks better of it changes nothing.
    ask_for_deleted(&mut stage);
    stage.writer.click("dialog.popup[open] .popup-button-cancel");
    stage.writer.until("!document.querySelector('dialog.popup[open]')");
    assert_eq!(stage.stories(), changed);
    stage.writer.click(".stvc-deleted button");
    stage.writer.until("document.querySelector('dialog.popup[open] [data-result=\"2\"]')");
    assert_eq!(
        stage.writer.evaluate("[...document.querySelectorAll('dialog.popup[open] .popup-controls .menu_button')].filter((one) => one.offsetWidth).map((one) => one.textContent.trim()).sort()"),
        json!(["Cancel", "Chat and lorebook", "Chat only"])
    );
    stage.writer.click("dialog.popup[open] [data-result=\"2\"]");
    stage.writer.until("!document.querySelector('.stvc-deleted li')");
    stage.writer.click("#select_chat_cross");
    let here = stage.stories();
    assert_eq!(here[&chat], then[&chat]);
    assert_eq!(here[BOOK], changed[BOOK], "the lorebook stays as it is");

    // With its lorebook, which is by now the one that it had when it was deleted again.
    stored(&mut stage, &timeline, 3);
    stage.writer.delete(&branch);
    stage.writer.command("/createentry file=\"Tide Office\" key=\"rope\" The rope is wet.");
    assert_ne!(stage.stories()[BOOK], changed[BOOK]);
    ask_for_deleted(&mut stage);
    stage.writer.click("dialog.popup[open] .popup-button-ok");
    stage.writer.until("!document.querySelector('.stvc-deleted li')");
    stage.writer.click("#select_chat_cross");
    let here = stage.stories();
    assert_eq!(here[&chat], then[&chat]);
    assert_eq!(here[BOOK], changed[BOOK]);
    // The open chat uses that lorebook, and the page reads it again.
    assert_eq!(stage.writer.sees()["uids"], json!([0, 1, 2, 3]));
    let said = stage.writer.complaints();
    assert!(said.iter().all(|words| !words.starts_with("error: ")), "{said:?}");
    watching.stop();
}

fn ask_for_deleted(stage: &mut Stage) {
    stage.writer.click("#options_button");
    stage.writer.click("#option_select_chat");
    stage.writer.until("document.querySelector('.stvc-deleted summary')");
    stage.writer.click(".stvc-deleted summary");
    stage.writer.click(".stvc-deleted button");
    stage.writer.until("document.querySelector('dialog.popup[open] [data-result=\"2\"]')");
}

#[test]
fn names_in_1_19() {
    again(|| names("names-1.19", "1.19.0"));
}

#[test]
fn names_in_1_12() {
    again(|| names("names-1.12", "1.12.14"));
}

/// A fork whose name no file can have, a snapshot of a chat that is not open, and the dots of the map.
fn names(name: &'static str, version: &str) {
    let Some((mut stage, watching)) = Stage::inside(name, version) else { return };
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.bind_book("Tide Office");
    stage.writer.command("/send I see a lantern.");
    stage.writer.pipe("/stvc-snapshot");
    let before = stage.stories();

    stage.writer.click(".mes[mesid='1'] .extraMesButtonsHint");
    stage.writer.click(".mes[mesid='1'] .stvc_fork");
    stage.writer.until("document.querySelector('dialog.popup[open] .popup-input')");
    stage.writer.evaluate("(() => { const field = document.querySelector('dialog.popup[open] .popup-input'); field.value = 'What if: she \"stays\" / goes?'; field.dispatchEvent(new Event('input')); })()");
    stage.writer.click("dialog.popup[open] .popup-button-ok");
    stage.writer.until(&format!(
        "SillyTavern.getContext().getCurrentChatId() !== {} && SillyTavern.getContext().chat.length === 2",
        json!(main)
    ));
    let here = stage.stories();
    let made: Vec<_> = here
        .keys()
        .filter(|path| path.ends_with(".jsonl") && !before.contains_key(*path))
        .collect();
    let [chat] = made[..] else { panic!("{made:?}") };
    let fork = chat.strip_prefix("chats/Mira Voss/").unwrap().strip_suffix(".jsonl").unwrap();
    assert_eq!(stage.writer.evaluate("SillyTavern.getContext().getCurrentChatId()"), fork);
    stage.writer.until(&format!(
        "document.querySelector('#toast-container')?.textContent.includes({})",
        json!(format!("Forked: {fork}"))
    ));
    // Everything works in it, and SillyTavern made no empty chat of the typed name.
    stage.writer.command("/send She stays.");
    let id = stage.writer.pipe("/stvc-snapshot");
    let shown = stage.json(&["show", &id]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("chats/Mira Voss/{fork}"));
    let chats = fs::read_dir(stage.path("chats/Mira Voss")).unwrap().count();
    assert_eq!(chats, 2);

    // A snapshot of the fork, which is not open, replaces nothing.
    stage.writer.open(&main);
    stage.writer.command("/send It goes out.");
    let open = stage.writer.pipe("/stvc-snapshot");
    stage.writer.complaints();
    let kept = stage.stories();
    assert_eq!(stage.writer.pipe(&format!("/stvc-restore {id}")), "");
    let said = stage.writer.complaints();
    // The page shows two spaces as one.
    let is_said = |line: &String| line.contains("What if she stays") && line.contains("not open");
    assert!(said.iter().any(is_said), "{said:?}");
    assert_eq!(stage.stories(), kept);
    assert_eq!(stage.writer.pipe(&format!("/stvc-restore {open}")), open);

    // On the map a dot where a fork begins is still the parent's.
    stage.writer.evaluate("document.querySelectorAll('#stvc_wand .stvc-entry')[1].click()");
    stage.writer.until(&format!("{FRAME}?.querySelectorAll('svg circle[data-dot]').length >= 4"));
    let clicked = stage.writer.evaluate(&format!("({CLICK_DOTS})({FRAME})"));
    let clicked: Vec<(String, String)> = serde_json::from_value(clicked).unwrap();
    assert!(clicked.iter().any(|(lane, _)| lane.ends_with(&main)), "{clicked:?}");
    for (lane, title) in clicked {
        assert_eq!(title, lane.strip_prefix("chats/").unwrap().replacen('/', " / ", 1));
    }
    watching.stop();
}
