//! The extension inside the real SillyTavern, by mailbox: its commands and buttons, and what becomes of the files.

mod access;
mod group_list;
mod phone;
mod pictures;
mod prompts;
mod resolved;
mod trouble;
mod two_pages;

use std::fs;

use serde_json::json;

use crate::stage::{Stage, again};
use crate::while_open::unmarked;

const TREE: &str = "document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelectorAll('svg .lane').length >= 2";

#[test]
fn in_1_19() {
    again(|| scenario("extension-1.19", "1.19.0"));
}

#[test]
fn in_1_12() {
    again(|| scenario("extension-1.12", "1.12.14"));
}

fn scenario(name: &'static str, version: &str) {
    let Some(mut stage) = Stage::open(name, version) else { return };
    stage.stvc(&["extension", "install"]).exits(0);
    stage.come_in();
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.connect();
    stage.bind_book("Tide Office");
    stage.writer.say("I see a lantern.");
    // Nobody answers yet, and that is said where people look.
    stage
        .writer
        .until("document.getElementById('stvc_badge')?.textContent.includes('not running')");
    let watching = stage.watch();
    stage.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    stage.writer.until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");

    // A snapshot by a command, whose id scripts can go on with.
    let first = stage.writer.pipe("/stvc-snapshot the first");
    assert_eq!(first.len(), 40, "{first}");
    let shown = stage.json(&["show", &first]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("chats/Mira Voss/{main}"));
    assert_eq!(stage.writer.pipe("/stvc-tag at=1 the lantern"), "the lantern");

    // Set back without F5: the page forgets what it had in memory, and goes on from there.
    let chat = format!("chats/Mira Voss/{main}.jsonl");
    let book = "worlds/Tide Office.json";
    let then = stage.stories();
    stage.writer.say("A mistake.");
    stage.writer.command("/createentry file=\"Tide Office\" key=\"error\" A mistake.");
    let mistaken = stage.stories();
    assert_eq!(stage.writer.pipe(&format!("/stvc-restore {first}")), first);
    assert_eq!(stage.writer.complaints(), Vec::<String>::new());
    assert_eq!(stage.writer.sees()["uids"], json!([0, 1, 2]));
    // Every byte but the mark, by which a page that is still as before would be found out.
    let there = fs::read(stage.path(&chat)).unwrap();
    assert_eq!(unmarked(&there), unmarked(&then[&chat]));
    assert_ne!(there, then[&chat]);
    assert_eq!(fs::read(stage.path(book)).unwrap(), then[book]);
    // And the change is taken back just so.
    assert_ne!(stage.writer.pipe("/stvc-undo"), "");
    assert_eq!(fs::read(stage.path(&chat)).unwrap(), mistaken[&chat]);
    assert_eq!(fs::read(stage.path(book)).unwrap(), mistaken[book]);
    stage.writer.pipe(&format!("/stvc-restore {first}"));
    stage.writer.say("Better.");
    stage.writer.command("/createentry file=\"Tide Office\" key=\"better\" Better.");
    stage.writer.settle();
    for path in [chat.as_str(), book] {
        let text = fs::read_to_string(stage.path(path)).unwrap();
        assert!(text.contains("Better.") && !text.contains("A mistake."), "{text}");
    }

    // A fork that is taken back while it is open leaves no empty chat behind: the page goes back to where it came from.
    let kept = stage.stories();
    assert_eq!(stage.writer.pipe("/stvc-fork at=1 Not for long"), "Not for long");
    stage.writer.settle();
    assert_ne!(stage.writer.pipe("/stvc-undo"), "");
    stage.writer.until(&format!("SillyTavern.getContext().getCurrentChatId() === {}", json!(main)));
    assert_eq!(stage.stories(), kept);

    // Another ending from a message on, by the button: a chat of its own with a lorebook of its own, and open.
    let before = stage.stories();
    stage.writer.click(".mes[mesid='1'] .extraMesButtonsHint");
    stage.writer.click(".mes[mesid='1'] .stvc_fork");
    stage.writer.until("document.querySelector('dialog.popup[open] textarea, dialog.popup[open] input[type=text]')");
    stage.writer.evaluate("(() => { const field = document.querySelector('dialog.popup[open] .popup-input'); field.value = 'What if'; field.dispatchEvent(new Event('input')); })()");
    stage.writer.click("dialog.popup[open] .popup-button-ok");
    stage.writer.until("SillyTavern.getContext().getCurrentChatId() === 'What if' && SillyTavern.getContext().chat.length === 2");
    let seen = stage.writer.sees();
    assert_ne!(seen["world"], "Tide Office", "it has a lorebook of its own");
    let after = stage.stories();
    assert_eq!((&after[&chat], &after[book]), (&before[&chat], &before[book]));
    stage.writer.say("Another way.");
    assert_eq!(stage.stories()[&chat], before[&chat]);

    // The map of the story, in a popup, over the same way.
    stage.writer.evaluate("document.querySelectorAll('#stvc_wand .stvc-entry')[1].click()");
    stage.writer.until(TREE);
    if let Some(folder) = std::env::var_os("STVC_PICTURES") {
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        stage.writer.attempt(&json!({ "do": "screenshot", "path": path })).unwrap();
    }
    stage.writer.click("dialog.popup[open] .popup-button-ok");

    // A deleted chat comes back where people look for it.
    let kept = stage.stories();
    stage.writer.open(&main);
    stage.writer.delete("What if");
    stage.writer.settle();
    assert!(!stage.path("chats/Mira Voss/What if.jsonl").exists());
    stage.writer.click("#options_button");
    stage.writer.click("#option_select_chat");
    stage
        .writer
        .until("document.querySelector('.stvc-deleted summary')?.textContent.includes('(1)')");
    stage.writer.click(".stvc-deleted summary");
    stage.writer.click(".stvc-deleted button");
    stage.writer.until("!document.querySelector('.stvc-deleted li')");
    stage.writer.click("#select_chat_cross");
    assert_eq!(
        stage.stories()["chats/Mira Voss/What if.jsonl"],
        kept["chats/Mira Voss/What if.jsonl"]
    );

    // What goes wrong is said in words, and nothing is changed.
    let here = stage.stories();
    assert_eq!(stage.writer.pipe("/stvc-restore nothing like that"), "");
    stage.writer.until(
        "document.querySelector('#toast-container')?.textContent.includes('nothing like that')",
    );
    assert_eq!(stage.stories(), here);
    stage.writer.complaints();
    watching.stop();
    stage.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    stage.writer.until("document.getElementById('stvc_badge').textContent.includes('not running')");
}

#[test]
fn a_group_in_1_19() {
    again(|| a_group("extension-group-1.19", "1.19.0"));
}

/// Its group chats have no header; what they know is in the group's file.
#[test]
fn a_group_in_1_12() {
    again(|| a_group("extension-group-1.12", "1.12.14"));
}

/// A group's chat: the new one is listed in its group, and the old one is left as it was.
fn a_group(name: &'static str, version: &str) {
    let Some((mut stage, watching)) = Stage::inside(name, version) else { return };
    stage.writer.character("Mira Voss", "The tide is low.");
    stage.writer.character("Wren", "Cold, cold, cold.");
    let main = stage.writer.group("Ferry", &["Mira Voss", "Wren"]);
    stage.connect();
    stage.bind_book("Ferry Lore");
    stage.writer.say("Who rows?");
    let id = stage.writer.pipe("/stvc-snapshot");
    let shown = stage.json(&["show", &id]).exits(0);
    assert_eq!(shown.of_type("snapshot")[0]["timeline"], format!("group chats/{main}"));
    let before = stage.stories();
    assert_eq!(stage.writer.pipe("/stvc-fork at=1 Another shore"), "Another shore");
    stage.writer.until("SillyTavern.getContext().getCurrentChatId() === 'Another shore'");
    assert_ne!(stage.writer.sees()["world"], "Ferry Lore");
    stage.writer.say("Nobody rows.");
    stage.writer.settle();
    let after = stage.stories();
    for path in [format!("group chats/{main}.jsonl"), "worlds/Ferry Lore.json".into()] {
        assert_eq!(after[&path], before[&path], "{path}");
    }
    let found = stage.writer.pipe("/stvc-search Nobody rows");
    assert!(found.contains("group chats/Another shore"), "{found}");
    // SillyTavern itself complains of lists that are drawn late; nothing was said to the user.
    let said = stage.writer.complaints();
    assert!(said.iter().all(|words| !words.starts_with("error: ")), "{said:?}");
    watching.stop();
}

/// How long people wait, beside SillyTavern's own branch: `cargo test --release --test sillytavern -- --ignored how_fast --nocapture`.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn how_fast() {
    let Some((mut stage, watching)) = Stage::inside("extension-speed", "1.19.0") else { return };
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.connect();
    stage.writer.say("Begin.");
    stage.writer.leave();
    let path = stage.path(&format!("chats/Mira Voss/{main}.jsonl"));
    let text = fs::read_to_string(&path).unwrap().trim_end().to_owned();
    let time = |stage: &mut Stage, script: &str| {
        let timed = format!(
            "(async () => {{ const begin = performance.now(); await ({script}); return performance.now() - begin; }})()"
        );
        stage.writer.evaluate(&timed).as_f64().unwrap()
    };
    let command = |words: &str| {
        format!("SillyTavern.getContext().executeSlashCommandsWithOptions({})", json!(words))
    };
    for (size, repeated, messages) in [("200 kB", 30, 200), ("5 MB", 150, 1100)] {
        let mes = "The bell rings over the water. ".repeat(repeated);
        let line = json!({ "name": "Mira Voss", "is_user": false, "mes": mes, "extra": {} });
        let lines = format!("{line}\n").repeat(messages);
        fs::write(&path, format!("{text}\n{lines}").trim_end()).unwrap();
        stage.come_in();
        stage.writer.go("Mira Voss");
        stage.writer.pipe("/stvc-snapshot");
        for round in 0..3 {
            stage.writer.settle();
            let hello = time(&mut stage, "stvc.ask('hello', {})");
            stage.writer.command("/send Something new.");
            stage.writer.settle();
            let save = time(&mut stage, "SillyTavern.getContext().saveChat()");
            stage.writer.settle();
            let snapshot = time(&mut stage, &command("/stvc-snapshot"));
            stage.writer.settle();
            let at = messages - 100;
            let fork = command(&format!("/stvc-fork at={at} Fork {size} {round}"));
            let fork = time(&mut stage, &fork);
            stage.writer.settle();
            stage.writer.open(&main);
            stage.writer.settle();
            let branch = time(&mut stage, &command(&format!("/branch-create {at}")));
            stage.writer.settle();
            stage.writer.open(&main);
            eprintln!(
                "{size}: hello {hello:.0} ms, SillyTavern's save {save:.0} ms, snapshot {snapshot:.0} ms, fork {fork:.0} ms, SillyTavern's branch {branch:.0} ms"
            );
        }
        stage.writer.leave();
    }
    watching.stop();
}
