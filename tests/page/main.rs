//! The page of `stvc view` in headless Chromium, as somebody uses it, and as somebody would who means harm.
//!
//! What is needed is fetched once, as for the tests beside SillyTavern; where that is not possible, the tests say so and are skipped, or fail if `STVC_REQUIRE_SILLYTAVERN` is set.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr
)]

// Half of it is for the other tests.
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "../sillytavern/equipment.rs"]
mod equipment;

mod pictures;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use common::{Sandbox, chat, message};
use equipment::{browser, package};

const TYPESCRIPT: &str = "typescript@5.9.3";
const AXE: &str = "axe-core@4.14.0";

/// What is wanted, or why it cannot be had.
fn wanted<T>(found: Result<T, String>) -> Option<T> {
    let required = std::env::var_os("STVC_REQUIRE_SILLYTAVERN").is_some();
    match found {
        Ok(found) => Some(found),
        Err(why) => {
            assert!(!required, "{why}");
            eprintln!("\nSKIPPED, not tried in a browser: {why}\n");
            None
        }
    }
}

/// A view and somebody who looks at it.
struct Visit {
    /// It runs as long as somebody looks.
    _view: Option<Process>,
    browser: Process,
}

/// It ends with whoever started it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Visit {
    /// Begin a scenario of `scenarios.mjs`.
    fn begin(sandbox: &Sandbox, arguments: &[&str], scenario: &str) -> Option<Self> {
        Self::with(sandbox, arguments, scenario, &[])
    }

    /// The same with more to tell it.
    fn with(sandbox: &Sandbox, arguments: &[&str], scenario: &str, more: &[&str]) -> Option<Self> {
        wanted(browser())?;
        let mut command = sandbox.command(&[&["--json", "view"], arguments].concat());
        let mut view = Process(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(view.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let visit = Self::at(line["address"].as_str().unwrap(), scenario, more)?;
        Some(Self { _view: Some(view), ..visit })
    }

    /// Somebody who looks at an address.
    fn at(address: &str, scenario: &str, more: &[&str]) -> Option<Self> {
        let equipment = wanted(browser())?;
        let axe = wanted(package(AXE))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/scenarios.mjs");
        let browser = Command::new("node")
            .arg(script)
            .args([&equipment.playwright, &equipment.chromium])
            .arg(axe.join("node_modules/axe-core/axe.min.js"))
            .args([address, scenario])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self { _view: None, browser: Process(browser) })
    }

    /// Wait until it is the program's turn.
    fn until(&mut self, word: &str) {
        assert_eq!(self.told(), word);
    }

    /// What the page tells next.
    fn told(&mut self) -> String {
        let mut lines = BufReader::new(self.browser.0.stdout.as_mut().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// It is the page's turn.
    fn go_on(&mut self) {
        writeln!(self.browser.0.stdin.as_mut().unwrap(), "go").unwrap();
    }

    fn end(mut self) {
        drop(self.browser.0.stdin.take());
        let ended = self.browser.0.wait().unwrap();
        assert!(ended.success(), "see above for what went wrong");
    }
}

const CHAT: &str = "chats/Mira/Tide Office.jsonl";
const BOOK: &str = "worlds/Harbour.json";

fn book(text: &str) -> String {
    json!({ "entries": { "0": { "uid": 0, "key": ["kestrel"], "comment": "Kestrel", "content": text } } }).to_string()
}

/// A chat with three snapshots, whose lorebook changes with each, and a fork.
fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("Mira", 4, Some("Harbour")));
    for (n, text) in ["Two masts.", "One mast.", "No mast."].into_iter().enumerate() {
        if n > 0 {
            sandbox.wait(3600);
            sandbox.append(CHAT, &message("Mira", n + 3));
        }
        sandbox.write(BOOK, book(text));
        sandbox.take(&[]);
    }
    let mut lines: Vec<_> =
        String::from_utf8(sandbox.read(CHAT)).unwrap().lines().map(str::to_owned).collect();
    lines.truncate(4);
    lines.push(message("fork", 3));
    sandbox.write("chats/Mira/What if.jsonl", lines.join("\n"));
    sandbox.take(&[]);
    sandbox.stvc(&["tag", "part one", "Tide Office~1"]).exits(0);
    sandbox
}

#[test]
fn a_walk_through_all_places() {
    let sandbox = story();
    let Some(visit) = Visit::begin(&sandbox, &[], "walk") else { return };
    visit.end();
}

#[test]
fn what_is_hostile_stays_text() {
    let sandbox = Sandbox::empty();
    let nasty = [
        "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>",
        "[click](javascript:window.hit=1) <a href='javascript:window.hit=1'>x</a> data:text/html,<script>window.hit=1</script>",
        "**bold** *italic* `code` \"said\" <iframe src='http://evil.example'></iframe> ![x](http://evil.example/x.png)",
        "\u{202e}turned\u{202c} \u{7} \u{1b}[31m ***broken *marks** `",
    ];
    let mut lines = vec![json!({ "chat_metadata": { "world_info": "Harbour" }, "user_name": "You", "character_name": "<b>M</b>" }).to_string()];
    for text in nasty {
        lines.push(json!({ "name": "<script>window.hit=1</script>", "mes": text, "swipes": [text, "<svg onload=window.hit=1>"], "swipe_id": 0, "extra": { "reasoning": text } }).to_string());
    }
    lines.push(json!({ "name": "Long", "mes": "w".repeat(200_000) }).to_string());
    sandbox.write("chats/<i>M<i>/<img src=x onerror=hit>.jsonl", lines.join("\n"));
    let entry = json!({ "uid": 0, "key": ["<b>"], "comment": nasty[0], "content": nasty[1] });
    sandbox.write(BOOK, json!({ "entries": { "0": entry } }).to_string());
    sandbox.take(&[]);
    let tag = "<img src=y onerror=hit>";
    sandbox.stvc(&["tag", tag, &sandbox.chat_ids()[0]]).exits(0);
    let file = sandbox.folder().join("story.html");
    sandbox.stvc(&["view", "--out", file.to_str().unwrap()]).exits(0);
    let Some(kept) = Visit::at(&format!("file://{}", file.display()), "hostile", &[]) else {
        return;
    };
    kept.end();
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "hostile") else { return };
    visit.end();
}

#[test]
fn a_phone_a_reader_of_screens_and_another_language() {
    let sandbox = story();
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "fits") else { return };
    visit.end();
}

#[test]
fn a_snapshot_that_is_taken_meanwhile_appears() {
    let sandbox = story();
    let Some(mut visit) = Visit::begin(&sandbox, &[], "live") else { return };
    visit.until("looking");
    sandbox.write("chats/Mira/Brand new.jsonl", chat("new", 2, None));
    sandbox.take(&[]);
    visit.go_on();
    visit.until("collect");
    sandbox.stvc(&["gc"]).exits(0);
    visit.go_on();
    visit.until("remove");
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    visit.go_on();
    visit.end();
}

#[test]
fn what_the_page_changes_can_be_undone_there() {
    let sandbox = story();
    let before = sandbox.read(CHAT);
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "change") else { return };
    visit.until("restored");
    assert_ne!(sandbox.read(CHAT), before);
    visit.go_on();
    visit.until("undone");
    assert_eq!(sandbox.read(CHAT), before);
    visit.go_on();
    visit.until("forked");
    assert!(sandbox.library().join("chats/Mira/Another.jsonl").exists());
    visit.go_on();
    visit.end();
}

/// One more message was written, so the restore cannot be undone: one click restores the state before as a chat of its own.
#[test]
fn refused_undo_offers_the_state_before_in_one_click() {
    let sandbox = story();
    let before = sandbox.read(CHAT);
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "offer") else { return };
    visit.until("written");
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    let written = sandbox.read(CHAT);
    visit.go_on();
    visit.until("restored");
    assert_eq!(sandbox.read(CHAT), written);
    let messages = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let files = sandbox.files();
    let beside = files.iter().find(|(path, _)| path.contains("Tide Office (before "));
    assert_eq!(messages(beside.unwrap().1), messages(&before));
    visit.go_on();
    visit.end();
}

/// A page in a file shows what it holds without any program, and nothing of other chats.
#[test]
fn a_page_in_a_file_opens_by_itself() {
    let sandbox = story();
    sandbox.write("chats/Secret/Diary.jsonl", chat("confided", 3, Some("Harbour")));
    sandbox.take(&[]);
    let file = sandbox.folder().join("story.html");
    let out = file.to_str().unwrap();
    let told = sandbox.json(&["view", "Tide Office", "--out", out]).exits(0);
    assert_eq!(told.lines().last().unwrap()["snapshots"], 3);
    // What is there is never written over.
    sandbox.stvc(&["view", "Tide Office", "--out", out]).exits(1);
    let text = std::fs::read_to_string(&file).unwrap();
    for other in ["Diary", "confided", "What if", "http://", "https://"] {
        let found = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(other), "{other} is in the file");
    }
    let Some(visit) = Visit::at(&format!("file://{out}"), "file", &[]) else { return };
    visit.end();
}

/// The lanes of the map and their snapshots are those of `timelines` and `log --graph`.
#[test]
fn the_map_is_that_of_the_command_line() {
    let sandbox = story();
    let Some(mut visit) = Visit::begin(&sandbox, &[], "lanes") else { return };
    let drawn: Value = serde_json::from_str(&visit.told()).unwrap();
    visit.end();
    let mut known = serde_json::Map::new();
    for line in sandbox.json(&["log", "--graph"]).exits(0).of_type("snapshot") {
        let timeline = line["timeline"].as_str().unwrap();
        if timeline.starts_with("chats/") {
            let many = known.get(timeline).and_then(Value::as_u64).unwrap_or(0);
            known.insert(timeline.to_owned(), json!(many + 1));
        }
    }
    assert_eq!(drawn, Value::Object(known));
}

/// A change of the lorebook alone is a stop of the slider, and is said in both languages.
#[test]
fn the_page_asks_for_the_moments_that_it_was_shown() {
    let sandbox = story();
    for told in [["en-US", "lorebook changed"], ["zh-CN", "世界书有改动"]] {
        let Some(visit) = Visit::with(&sandbox, &["--write"], "moments", &told) else { return };
        visit.end();
    }
}

/// Where a fork was made of a snapshot, the parent's dot lies at the beginning of the fork's line.
#[test]
fn a_dot_of_the_map_selects_the_snapshot_of_its_own_lane() {
    let sandbox = story();
    sandbox.stvc(&["restore", "Tide Office~1", "--as", "From here"]).exits(0);
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "dots") else { return };
    visit.end();
}

/// Ten thousand entries and thousands of messages: what is far away is not in the document.
#[test]
fn long_lists_hold_what_is_near() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("Mira", 3000, Some("Harbour")));
    let entry = |n: usize| json!({ "uid": n, "key": ["k"], "comment": format!("Entry {n}"), "content": format!("text {n}") });
    let entries: serde_json::Map<_, _> = (0..10_000).map(|n| (n.to_string(), entry(n))).collect();
    sandbox.write(BOOK, json!({ "entries": entries }).to_string());
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.append(CHAT, &message("Mira", 3000));
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &[], "long") else { return };
    visit.end();
}

/// A development tool, and a strict one.
#[test]
fn the_types_of_the_page_and_the_extension_are_right() {
    let Some(typescript) = wanted(package(TYPESCRIPT)) else { return };
    let checked = Command::new("node")
        .arg(typescript.join("node_modules/typescript/bin/tsc"))
        .args(["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2023"])
        .args(["--module", "es2022", "--moduleResolution", "bundler"])
        .args(["--lib", "es2023,dom,dom.iterable"])
        .args(["src/page/main.js", "src/extension/index.js", "tests/page/sillytavern.d.ts"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
