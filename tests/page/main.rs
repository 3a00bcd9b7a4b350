//! The page of `stvc view` in headless Chromium, as somebody uses it, and as somebody would who means harm.
//!
//! What is needed is fetched once, as for the tests beside SillyTavern; where that is not possible, the tests say so and are skipped, or fail if `STVC_REQUIRE_SILLYTAVERN` is set.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

// Half of it is for the other tests.
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "../sillytavern/equipment.rs"]
mod equipment;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use common::{Sandbox, chat, message};
use equipment::{browser, package};

const TYPESCRIPT: &str = "typescript@5.9.3";

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
    view: Child,
    browser: Child,
}

impl Visit {
    /// Begin a scenario of `scenarios.mjs`.
    fn begin(sandbox: &Sandbox, arguments: &[&str], scenario: &str) -> Option<Self> {
        let equipment = wanted(browser())?;
        let mut command = sandbox.command(&[&["--json", "view"], arguments].concat());
        let mut view = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(view.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/scenarios.mjs");
        let browser = Command::new("node")
            .arg(script)
            .args([&equipment.playwright, &equipment.chromium])
            .args([line["address"].as_str().unwrap(), scenario])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self { view, browser })
    }

    /// Wait until it is the program's turn.
    fn until(&mut self, word: &str) {
        let mut lines = BufReader::new(self.browser.stdout.as_mut().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }

    /// It is the page's turn.
    fn go_on(&mut self) {
        writeln!(self.browser.stdin.as_mut().unwrap(), "go").unwrap();
    }

    fn end(mut self) {
        drop(self.browser.stdin.take());
        let ended = self.browser.wait().unwrap();
        assert!(ended.success(), "see above for what went wrong");
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        for child in [&mut self.view, &mut self.browser] {
            let _ = child.kill();
            let _ = child.wait();
        }
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

/// A development tool, and a strict one.
#[test]
fn the_types_of_the_page_are_right() {
    let Some(typescript) = wanted(package(TYPESCRIPT)) else { return };
    let checked = Command::new("node")
        .arg(typescript.join("node_modules/typescript/bin/tsc"))
        .args(["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2023"])
        .args(["--module", "es2022", "--moduleResolution", "bundler"])
        .args(["--lib", "es2023,dom,dom.iterable"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/main.js"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
