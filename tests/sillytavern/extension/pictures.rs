//! The pictures in docs/sillytavern.md.
//!
//! `UPDATE_DOCS=1 cargo test --test sillytavern pictures` takes them again. Otherwise the test only
//! checks that everything in them is still shown.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::common::Sandbox;
use crate::common::watching::LIMIT;
use crate::session::{Session, Setup, stvc, with_retries};

const STORY: &str = "The Tide Office — part 1 (雨)";
const FOLDER: &str = "chats/Mira Voss";
const LORE: &str = "worlds/Tide Office Lore.json";

/// Creates the sample story with its snapshots and forks, one of which is deleted.
fn story(sandbox: &Sandbox) {
    let all = Sandbox::from_fixture("1.19.0");
    for path in ["characters/Mira Voss.png", LORE] {
        sandbox.write(path, all.read(path));
    }
    let text = String::from_utf8(all.read(&format!("{FOLDER}/{STORY}.jsonl"))).unwrap();
    // A scene end at message 8, as ST-Auto-Recap records it.
    let scene =
        r#""extra":{"auto_recap_memory":{"scene_break":true,"scene_break_name":"The ledger"},"#;
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[9] = lines[9].replacen(r#""extra":{"#, scene, 1);
    let forks = [
        (12, "Before the ferry #1 @dawn xy", "Before the ferry"),
        (24, "Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1", "What if the ferry is late"),
        (32, "Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #2", "The ledger burns"),
    ];
    for messages in [6, 12, 18, 24, 28, 32] {
        sandbox.write(&format!("{FOLDER}/{STORY}.jsonl"), lines[..=messages].join("\n"));
        stvc(sandbox, &["snapshot"]).exits(0);
        for (_, file, name) in forks.iter().filter(|(after, ..)| *after == messages) {
            let bytes = all.read(&format!("{FOLDER}/{file}.jsonl"));
            sandbox.write(&format!("{FOLDER}/{name}.jsonl"), bytes);
            stvc(sandbox, &["snapshot"]).exits(0);
        }
    }
    fs::remove_file(sandbox.path(&format!("{FOLDER}/The ledger burns.jsonl"))).unwrap();
    stvc(sandbox, &["snapshot"]).exits(0);
}

fn picture(session: &mut Session, name: &str) {
    // Popups open with an animation.
    session.writer.wait_until("!document.querySelector('dialog.popup[opening]')");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        let path = folder.join(format!("{name}.png"));
        session.writer.attempt(&json!({ "do": "screenshot", "path": path })).unwrap();
    }
}

#[test]
fn pictures_show_the_current_extension() {
    with_retries(|| {
        let browser = json!({ "viewport": { "width": 1000, "height": 640 } });
        let setup = Setup { browser, ..Setup::default() };
        let Some(mut session) = Session::open_with("extension-pictures", "1.19.0", &setup, |_| {})
        else {
            return;
        };
        session.writer.close_page();
        story(&session.sandbox);
        session.stvc(&["extension", "install"]).exits(0);
        let watching = session.watch();
        session.open_page();
        session.writer.select("Mira Voss");
        session.writer.open(STORY);
        session
            .writer
            .wait_until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");
        session.writer.evaluate("toastr.clear()");

        // The badge and the menu of a message.
        let menu = ".mes[mesid='30']";
        session.writer.click(&format!("{menu} .extraMesButtonsHint"));
        session
            .writer
            .wait_until(&format!("document.querySelector(\"{menu} .stvc_fork.stvc-not-ready\")"));
        picture(&mut session, "st-message");

        // The dialog for the name of a fork, with the warnings of the readiness check.
        session.writer.click(&format!("{menu} .stvc_fork"));
        session.writer.wait_until(
            "document.querySelectorAll('dialog.popup[open] .stvc-warnings li').length > 1",
        );
        picture(&mut session, "st-fork");
        session.writer.click("dialog.popup[open] .popup-button-cancel");

        // The map.
        session.writer.click_menu_entry(1);
        session.writer.wait_until("document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelectorAll('svg .lane').length >= 3");
        picture(&mut session, "st-timelines");
        session.writer.click("dialog.popup[open] .popup-button-ok");

        // A deleted chat.
        session.writer.click("#options_button");
        session.writer.click("#option_select_chat");
        session.writer.wait_until("document.querySelector('.stvc-deleted summary')");
        session.writer.click(".stvc-deleted summary");
        session.writer.wait_until(
            "document.querySelector('.stvc-deleted li').textContent.includes('The ledger burns')",
        );
        picture(&mut session, "st-deleted");
        session.writer.click("#select_chat_cross");

        // The settings: automatic snapshots at scene ends, and the language.
        let tags = |session: &Session| session.json(&["tag"]).exits(0).of_type("tag");
        assert_eq!(tags(&session), Vec::<Value>::new());
        let choose = |what: &str, value: &str| {
            format!(
                "(() => {{ const it = document.querySelector('#stvc_settings [data-stvc={what}]'); {value}; it.dispatchEvent(new Event('change')); }})()"
            )
        };
        session.writer.evaluate(&choose("scenes", "it.checked = true"));
        let begin = Instant::now();
        while tags(&session).first().is_none_or(|tag| tag["name"] != "Scene 1 - The ledger") {
            assert!(begin.elapsed() < LIMIT, "{:?}", tags(&session));
        }
        session.writer.evaluate(&choose("language", "it.value = 'zh'"));
        session
            .writer
            .wait_until("document.getElementById('stvc_badge').textContent.startsWith('快照')");
        watching.stop();
    });
}
