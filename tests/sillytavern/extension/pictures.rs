//! The pictures of docs/sillytavern.md: `UPDATE_DOCS=1 cargo test --test sillytavern pictures` makes them anew. Without that it is seen that what they show is still there.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::common::Sandbox;
use crate::common::watching::LIMIT;
use crate::stage::{Setup, Stage, again, stvc};

const STORY: &str = "The Tide Office — part 1 (雨)";
const FOLDER: &str = "chats/Mira Voss";
const LORE: &str = "worlds/Tide Office Lore.json";

/// The sample story as it came to be, with two forks, one of which was deleted.
fn story(sandbox: &Sandbox) {
    let all = Sandbox::of_fixture("1.19.0");
    for path in ["characters/Mira Voss.png", LORE] {
        sandbox.write(path, all.read(path));
    }
    let text = String::from_utf8(all.read(&format!("{FOLDER}/{STORY}.jsonl"))).unwrap();
    // A scene ends with message 8, as ST-Auto-Recap notes it.
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

fn picture(stage: &mut Stage, name: &str) {
    // Popups come slowly.
    stage.writer.until("!document.querySelector('dialog.popup[opening]')");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        let path = folder.join(format!("{name}.png"));
        stage.writer.attempt(&json!({ "do": "screenshot", "path": path })).unwrap();
    }
}

#[test]
fn the_pictures_of_the_guide() {
    again(|| {
        let browser = json!({ "viewport": { "width": 1000, "height": 640 } });
        let setup = Setup { browser, ..Setup::default() };
        let Some(mut stage) = Stage::open_with("extension-pictures", "1.19.0", &setup, |_| {})
        else {
            return;
        };
        stage.writer.leave();
        story(&stage.sandbox);
        stage.stvc(&["extension", "install"]).exits(0);
        let watching = stage.watch();
        stage.come_in();
        stage.writer.go("Mira Voss");
        stage.writer.open(STORY);
        stage
            .writer
            .until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");
        stage.writer.evaluate("toastr.clear()");

        // The badge and a message's menu.
        let menu = ".mes[mesid='30']";
        stage.writer.click(&format!("{menu} .extraMesButtonsHint"));
        stage.writer.until(&format!("document.querySelector(\"{menu} .stvc_fork.stvc-unready\")"));
        picture(&mut stage, "st-message");

        // The name of a fork is asked for, with what is not ready.
        stage.writer.click(&format!("{menu} .stvc_fork"));
        stage
            .writer
            .until("document.querySelectorAll('dialog.popup[open] .stvc-reasons li').length > 1");
        picture(&mut stage, "st-fork");
        stage.writer.click("dialog.popup[open] .popup-button-cancel");

        // The map.
        stage.writer.evaluate("document.querySelectorAll('#stvc_wand .stvc-entry')[1].click()");
        stage.writer.until("document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelectorAll('svg .lane').length >= 3");
        picture(&mut stage, "st-timelines");
        stage.writer.click("dialog.popup[open] .popup-button-ok");

        // A chat that was deleted.
        stage.writer.click("#options_button");
        stage.writer.click("#option_select_chat");
        stage.writer.until("document.querySelector('.stvc-deleted summary')");
        stage.writer.click(".stvc-deleted summary");
        stage.writer.until(
            "document.querySelector('.stvc-deleted li').textContent.includes('The ledger burns')",
        );
        picture(&mut stage, "st-deleted");
        stage.writer.click("#select_chat_cross");

        // What can be chosen: ends of scenes are marked by themselves, and the language.
        let tags = |stage: &Stage| stage.json(&["tag"]).exits(0).of_type("tag");
        assert_eq!(tags(&stage), Vec::<Value>::new());
        let choose = |what: &str, value: &str| {
            format!(
                "(() => {{ const it = document.querySelector('#stvc_settings [data-stvc={what}]'); {value}; it.dispatchEvent(new Event('change')); }})()"
            )
        };
        stage.writer.evaluate(&choose("scenes", "it.checked = true"));
        let begin = Instant::now();
        while tags(&stage).first().is_none_or(|tag| tag["name"] != "Scene 1 - The ledger") {
            assert!(begin.elapsed() < LIMIT, "{:?}", tags(&stage));
        }
        stage.writer.evaluate(&choose("language", "it.value = 'zh'"));
        stage.writer.until("document.getElementById('stvc_badge').textContent.startsWith('快照')");
        watching.stop();
    });
}
