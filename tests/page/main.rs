//! The viewer (`stvc view`) in headless Chromium, with ordinary and with hostile chats.
//!
//! The tests fetch their tools once (`equipment.rs`). Without these they print a note and are
//! skipped, or fail if `STVC_REQUIRE_SILLYTAVERN` is set.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr
)]

// Other tests use the rest of it.
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

/// Returns a tool. If it is missing, prints why and returns `None`, or panics if it is required.
fn require<T>(found: Result<T, String>) -> Option<T> {
    let required = std::env::var_os("STVC_REQUIRE_SILLYTAVERN").is_some();
    match found {
        Ok(found) => Some(found),
        Err(why) => {
            assert!(!required, "{why}");
            eprintln!("\nSKIPPED, not tested in a browser: {why}\n");
            None
        }
    }
}

/// A browser that runs a scenario of `scenarios.mjs`, and the server that it visits.
struct Visit {
    server: Option<Process>,
    browser: Process,
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Visit {
    /// Starts `stvc view` and a scenario.
    fn begin(sandbox: &Sandbox, arguments: &[&str], scenario: &str) -> Option<Self> {
        Self::begin_with(sandbox, arguments, scenario, &[])
    }

    fn begin_with(
        sandbox: &Sandbox,
        arguments: &[&str],
        scenario: &str,
        scenario_arguments: &[&str],
    ) -> Option<Self> {
        require(browser())?;
        let mut command = sandbox.command(&[&["--json", "view"], arguments].concat());
        let mut server = Process(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let address = line["address"].as_str().unwrap();
        let visit = Self::at(address, scenario, scenario_arguments)?;
        Some(Self { server: Some(server), ..visit })
    }

    /// Starts a scenario at an address.
    fn at(address: &str, scenario: &str, scenario_arguments: &[&str]) -> Option<Self> {
        let equipment = require(browser())?;
        let axe = require(package(AXE))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/scenarios.mjs");
        let browser = Command::new("node")
            .arg(script)
            .args([&equipment.playwright, &equipment.chromium])
            .arg(axe.join("node_modules/axe-core/axe.min.js"))
            .args([address, scenario])
            .args(scenario_arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self { server: None, browser: Process(browser) })
    }

    /// Waits until the scenario hands over with this step.
    fn wait_for(&mut self, step: &str) {
        assert_eq!(self.read_line(), step);
    }

    fn read_line(&mut self) -> String {
        let mut lines = BufReader::new(self.browser.0.stdout.as_mut().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Hands back to the scenario.
    fn resume(&mut self) {
        writeln!(self.browser.0.stdin.as_mut().unwrap(), "go").unwrap();
    }

    /// Waits until the scenario ends, and fails if it failed.
    fn end(mut self) {
        drop(self.browser.0.stdin.take());
        let ended = self.browser.0.wait().unwrap();
        assert!(ended.success(), "the scenario failed; its output is above");
    }
}

const CHAT: &str = "chats/Mira/Tide Office.jsonl";
const BOOK: &str = "worlds/Harbour.json";

fn book(text: &str) -> String {
    json!({ "entries": { "0": { "uid": 0, "key": ["kestrel"], "comment": "Kestrel", "content": text } } }).to_string()
}

/// Returns a library with a fork and a chat with three snapshots, each with another lorebook.
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
fn every_place_of_the_viewer_opens_by_link_keyboard_and_address() {
    let sandbox = story();
    let Some(visit) = Visit::begin(&sandbox, &[], "walk") else { return };
    visit.end();
}

#[test]
fn html_and_scripts_in_a_chat_are_shown_as_text() {
    let sandbox = Sandbox::empty();
    let hostile = [
        "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>",
        "[click](javascript:window.hit=1) <a href='javascript:window.hit=1'>x</a> data:text/html,<script>window.hit=1</script>",
        "**bold** *italic* `code` \"said\" <iframe src='http://evil.example'></iframe> ![x](http://evil.example/x.png)",
        "\u{202e}turned\u{202c} \u{7} \u{1b}[31m ***broken *marks** `",
        "# <img src=x onerror=window.hit=1>\n- <script>window.hit=1</script>\n> <iframe src=x>\n\n```<style>\n<style>*{display:none}</style>\n```\n|<img src=x onerror=window.hit=1>|b|\n|---|---|\n|[x](javascript:window.hit=1)|c|",
    ];
    let mut lines = vec![json!({ "chat_metadata": { "world_info": "Harbour" }, "user_name": "You", "character_name": "<b>M</b>" }).to_string()];
    for text in hostile {
        lines.push(json!({ "name": "<script>window.hit=1</script>", "mes": text, "swipes": [text, "<svg onload=window.hit=1>"], "swipe_id": 0, "extra": { "reasoning": text } }).to_string());
    }
    lines.push(json!({ "name": "Long", "mes": "w".repeat(200_000) }).to_string());
    sandbox.write("chats/<i>M<i>/<img src=x onerror=hit>.jsonl", lines.join("\n"));
    let entry = json!({ "uid": 0, "key": ["<b>"], "comment": hostile[0], "content": hostile[1] });
    sandbox.write(BOOK, json!({ "entries": { "0": entry } }).to_string());
    sandbox.take(&[]);
    let tag = "<img src=y onerror=hit>";
    sandbox.stvc(&["tag", tag, &sandbox.chat_ids()[0]]).exits(0);
    let file = sandbox.folder().join("story.html");
    sandbox.stvc(&["view", "--all-history", "--out", file.to_str().unwrap()]).exits(0);
    let Some(standalone) = Visit::at(&format!("file://{}", file.display()), "hostile", &[]) else {
        return;
    };
    standalone.end();
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "hostile") else { return };
    visit.end();
}

#[test]
fn viewer_fits_a_phone_and_is_accessible_in_both_languages() {
    let sandbox = story();
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "fits") else { return };
    visit.end();
}

#[test]
fn viewer_shows_new_snapshots_and_survives_gc_and_a_lost_store() {
    let sandbox = story();
    let Some(mut visit) = Visit::begin(&sandbox, &[], "live") else { return };
    visit.wait_for("looking");
    sandbox.write("chats/Mira/Brand new.jsonl", chat("new", 2, None));
    sandbox.take(&[]);
    visit.resume();
    visit.wait_for("collect");
    sandbox.stvc(&["gc"]).exits(0);
    visit.resume();
    visit.wait_for("remove");
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    visit.resume();
    visit.end();
}

#[test]
fn restore_undo_and_fork_in_the_viewer_write_the_files() {
    let sandbox = story();
    let before = sandbox.read(CHAT);
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "change") else { return };
    visit.wait_for("restored");
    assert_ne!(sandbox.read(CHAT), before);
    visit.resume();
    visit.wait_for("undone");
    assert_eq!(sandbox.read(CHAT), before);
    visit.resume();
    visit.wait_for("forked");
    assert!(sandbox.library().join("chats/Mira/Another.jsonl").exists());
    visit.resume();
    visit.end();
}

/// The library restores a deleted chat in its row, and repairs a problem below the problems.
#[test]
fn library_restores_deleted_chats_and_repairs_problems() {
    let sandbox = story();
    sandbox.write("chats/Mira/Gone.jsonl", chat("gone", 2, None));
    sandbox.take(&[]);
    std::fs::remove_file(sandbox.path("chats/Mira/Gone.jsonl")).unwrap();
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "repair") else { return };
    visit.wait_for("restored");
    assert_eq!(sandbox.read("chats/Mira/Gone.jsonl"), chat("gone", 2, None));
    visit.resume();
    visit.wait_for("repaired");
    let fork = String::from_utf8(sandbox.read("chats/Mira/What if.jsonl")).unwrap();
    assert!(!fork.contains(r#""world_info":"Harbour""#), "{fork}");
    assert!(sandbox.files().keys().filter(|path| path.starts_with("worlds/")).count() == 2);
    visit.resume();
    visit.end();
}

/// A message that was added since prevents the undo of a restore. One click restores the earlier
/// version as a new chat.
#[test]
fn refused_undo_offers_the_earlier_version_in_one_click() {
    let sandbox = story();
    let before = sandbox.read(CHAT);
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "offer") else { return };
    visit.wait_for("written");
    sandbox.append(CHAT, r#"{"name":"Wren","mes":"one more"}"#);
    let written = sandbox.read(CHAT);
    visit.resume();
    visit.wait_for("restored");
    assert_eq!(sandbox.read(CHAT), written);
    let messages = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let files = sandbox.files();
    let beside = files.iter().find(|(path, _)| path.contains("Tide Office (before "));
    assert_eq!(messages(beside.unwrap().1), messages(&before));
    visit.resume();
    visit.end();
}

/// A standalone file works without the program and contains nothing of other chats.
#[test]
fn standalone_file_works_without_stvc_and_contains_only_one_chat() {
    let sandbox = story();
    sandbox.write("chats/Secret/Diary.jsonl", chat("confided", 3, Some("Harbour")));
    sandbox.take(&[]);
    let file = sandbox.folder().join("story.html");
    let out = file.to_str().unwrap();
    let export = ["view", "Tide Office", "--all-history", "--out", out];
    let written = sandbox.json(&export).exits(0);
    assert_eq!(written.lines().last().unwrap()["snapshots"], 3);
    // An existing file is not overwritten.
    sandbox.stvc(&export).exits(1);
    let text = std::fs::read_to_string(&file).unwrap();
    for other in ["Diary", "confided", "What if", "http://", "https://"] {
        let found = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(other), "the file contains {other}");
    }
    let Some(visit) = Visit::at(&format!("file://{out}"), "standalone", &[]) else { return };
    visit.end();
}

/// The file opens at the story, and has no control for data that it does not contain.
#[test]
fn exported_story_opens_at_its_text_and_offers_nothing_else() {
    let sandbox = story();
    let hidden = json!({ "name": "Mira", "is_system": true, "mes": "unseen" });
    sandbox.append(CHAT, &hidden.to_string());
    sandbox
        .append(CHAT, &json!({ "name": "<i>M</i>", "mes": "<img src=x onerror=hit>" }).to_string());
    sandbox.take(&[]);
    let one = sandbox.folder().join("story.html");
    sandbox.stvc(&["view", "Tide Office", "--out", one.to_str().unwrap()]).exits(0);
    let all = sandbox.folder().join("stories.html");
    sandbox.stvc(&["view", "--out", all.to_str().unwrap()]).exits(0);
    for (file, scenario) in [(one, "story"), (all, "stories")] {
        let Some(visit) = Visit::at(&format!("file://{}", file.display()), scenario, &[]) else {
            return;
        };
        visit.end();
    }
}

#[test]
fn map_draws_the_snapshots_that_log_graph_lists() {
    let sandbox = story();
    let Some(mut visit) = Visit::begin(&sandbox, &[], "lanes") else { return };
    let drawn: Value = serde_json::from_str(&visit.read_line()).unwrap();
    visit.end();
    let mut expected = serde_json::Map::new();
    for line in sandbox.json(&["log", "--graph"]).exits(0).of_type("snapshot") {
        let timeline = line["timeline"].as_str().unwrap();
        if timeline.starts_with("chats/") {
            let count = expected.get(timeline).and_then(Value::as_u64).unwrap_or(0);
            expected.insert(timeline.to_owned(), json!(count + 1));
        }
    }
    assert_eq!(drawn, Value::Object(expected));
}

/// A change of the lorebook alone is a stop of the slider, with a label in both languages.
#[test]
fn viewer_requests_moments_by_the_names_from_the_api() {
    let sandbox = story();
    for label in [["en-US", "lorebook changed"], ["zh-CN", "世界书有改动"]] {
        let Some(visit) = Visit::begin_with(&sandbox, &["--write"], "moments", &label) else {
            return;
        };
        visit.end();
    }
}

/// The line of a fork starts at a dot of its parent.
#[test]
fn map_dot_selects_a_snapshot_of_its_own_timeline() {
    let sandbox = story();
    sandbox.stvc(&["restore", "Tide Office~1", "--as", "From here"]).exits(0);
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "dots") else { return };
    visit.end();
}

/// The details beside the map, the list of stories, zoom with the wheel, keys and two fingers.
#[test]
fn map_shows_details_and_zooms_with_mouse_keys_and_fingers() {
    let sandbox = story();
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "map") else { return };
    visit.end();
}

/// 240 timelines of 40 characters.
#[test]
fn crowded_map_draws_only_the_visible_part() {
    let sandbox = Sandbox::empty();
    for n in 0..40 {
        let folder = format!("chats/Character {n:02}");
        let parent = String::from_utf8(chat(&format!("story {n}"), 60, None)).unwrap();
        sandbox.write(&format!("{folder}/Story {n}.jsonl"), &parent);
        for fork in 0..5 {
            let shared: Vec<_> = parent.lines().take(10 + 9 * fork).collect();
            let own: Vec<_> = (0..6).map(|at| message(&format!("fork {n} {fork}"), at)).collect();
            let text = [shared.join("\n"), own.join("\n")].join("\n");
            sandbox.write(&format!("{folder}/Story {n}, ending {fork}.jsonl"), text);
        }
    }
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &[], "crowd") else { return };
    visit.end();
}

#[test]
fn search_marks_matches_and_keeps_its_filters_in_the_address() {
    let mut sandbox = Sandbox::empty();
    let told = |name: &str, messages: usize, book: Option<&str>| {
        let header = json!({ "user_name": "Wren", "character_name": "Mira", "chat_metadata": { "world_info": book } });
        let mut lines = vec![header.to_string()];
        for n in 0..messages {
            let user = n.is_multiple_of(2);
            let speaker = if user { "Wren" } else { "Mira" };
            let text = format!("{name} says {n}.");
            lines.push(json!({ "name": speaker, "is_user": user, "mes": text }).to_string());
        }
        lines.join("\n")
    };
    sandbox.write("chats/Mira/Long.jsonl", told("Long", 12, Some("Harbour")));
    sandbox.write("chats/Mira/Other.jsonl", told("Other", 2, None));
    for text in ["Two masts.", "No mast."] {
        sandbox.write(BOOK, book(text));
        sandbox.take(&[]);
        sandbox.wait(60);
    }
    let Some(visit) = Visit::begin(&sandbox, &[], "finds") else { return };
    visit.end();
}

/// Ten thousand entries and thousands of messages.
#[test]
fn long_lists_have_only_visible_rows_in_the_document() {
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

/// Messages of very different lengths, so that no estimate of their heights is right.
fn uneven_chat(messages: usize) -> String {
    let mut lines = vec![json!({ "user_name": "You", "character_name": "Mira" }).to_string()];
    for n in 0..messages {
        let text = format!("Message {n}. {}", "The tide office opens. ".repeat(n * 7 % 90));
        lines.push(json!({ "name": "Mira", "mes": text }).to_string());
    }
    lines.join("\n")
}

#[test]
fn links_to_messages_land_on_the_marked_message() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, uneven_chat(2000));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.append(CHAT, &message("Mira", 2000));
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &[], "lands") else { return };
    visit.end();
}

#[test]
fn changes_of_the_store_do_not_move_what_the_user_looks_at() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, uneven_chat(600));
    for n in 0..60 {
        sandbox.write(&format!("chats/Mira/Tale {n:02}.jsonl"), chat(&n.to_string(), 2, None));
    }
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.append(CHAT, &message("Mira", 600));
    sandbox.take(&[]);
    let Some(mut visit) = Visit::begin(&sandbox, &[], "stays") else { return };
    for n in 601..605 {
        visit.wait_for("change");
        sandbox.wait(60);
        sandbox.append(CHAT, &message("Mira", n));
        sandbox.write(&format!("chats/Mira/Brand new {n}.jsonl"), chat(&n.to_string(), 2, None));
        sandbox.take(&[]);
        visit.resume();
    }
    visit.end();
}

#[test]
fn comparison_lists_changed_fields_and_loads_changes_in_pages() {
    let mut sandbox = Sandbox::empty();
    let entry = json!({ "uid": 0, "key": ["kestrel", "ship"], "comment": "Kestrel", "content": "Two masts.", "order": 100, "constant": false });
    let mut book = json!({ "entries": { "0": entry } });
    sandbox.write(CHAT, chat("Mira", 3, Some("Harbour")));
    sandbox.write(BOOK, book.to_string());
    sandbox.take(&[]);
    sandbox.wait(60);
    let hidden =
        |line: &str| line.replace("\"is_user\":true", "\"is_user\":true,\"is_system\":true");
    let text = String::from_utf8(chat("Mira", 2000, Some("Harbour"))).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1] = hidden(&lines[1]);
    sandbox.write(CHAT, lines.join("\n"));
    book["entries"]["0"]["key"] = json!(["kestrel", "boat"]);
    book["entries"]["0"]["order"] = json!(50);
    book["entries"]["0"]["constant"] = json!(true);
    sandbox.write(BOOK, book.to_string());
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &[], "fields") else { return };
    visit.end();
}

#[test]
fn comparison_shows_both_sides_and_folds_what_did_not_change() {
    let mut sandbox = Sandbox::empty();
    let text = String::from_utf8(chat("Mira", 40, None)).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let edited = |end: &str| {
        let text = format!("{}{end}", "The tide office opens. ".repeat(60));
        json!({ "name": "Mira", "is_user": true, "mes": text }).to_string()
    };
    lines[21] = edited("*harbour* lamp.");
    sandbox.write(CHAT, lines.join("\n"));
    sandbox.take(&[]);
    sandbox.wait(60);
    lines[21] = edited("*open sea* lamp.");
    lines.remove(31);
    lines.push(message("Mira", 40));
    sandbox.write(CHAT, lines.join("\n"));
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "sides") else { return };
    visit.end();
}

/// Each text has the elements that SillyTavern's Markdown gives it. HTML stays text.
#[test]
fn texts_are_rendered_with_their_markdown() {
    let long = "x".repeat(400);
    let code =
        format!("```js\nlet a = \"*b*\";\n\n{long}\n```\nthen\n~~~\n```\n~~~\n```\nnever closed");
    let rendered_code = format!(
        "<div><small>js</small><pre><code>let a = \"*b*\";\n\n{long}</code></pre></div><p>then</p><div><pre><code>```</code></pre></div><p>```<br>never closed</p>"
    );
    // Lists and quotations have a maximum depth.
    let deep = format!("{}deep\n{}deep", "- ".repeat(30), "> ".repeat(30));
    let rendered_deep = format!(
        "{}{}deep{}{}<p>{}deep</p>{}",
        "<ul><li>".repeat(8),
        "- ".repeat(22),
        "</li></ul>".repeat(8),
        "<blockquote>".repeat(8),
        "> ".repeat(22),
        "</blockquote>".repeat(8),
    );
    let cases = [
        (
            "*one\ntwo* **bold *both*** ***all*** __under__ _it_ ~~gone~~ snake_case_name 2*3",
            "<p><em>one<br>two</em> <strong>bold <em>both</em></strong> <strong><em>all</em></strong> <u>under</u> <em>it</em> <s>gone</s> snake_case_name 2*3</p>",
        ),
        (
            "\"You *are* late,\" she says. “So “ be it.” 「雨」 «oui» 6\" tall\n\"open",
            "<p><q>\"You <em>are</em> late,\"</q> she says. <q>“So “ be it.”</q> <q>「雨」</q> <q>«oui»</q> 6\" tall<br>\"open</p>",
        ),
        (
            "`a *b*` ``c ` d`` ` \\*not\\* \\\\",
            "<p><code>a *b*</code> <code>c ` d</code> ` *not* \\</p>",
        ),
        (
            "# One\ntext\n## Two ##\n####### seven\nTitle\n---\nend",
            "<p>One</p><p>text</p><p>Two</p><p>####### seven</p><p>Title</p><p>end</p>",
        ),
        (
            "before\n- a\n- b\n  - c\n    1. d\n- e\n\n  more\n\nafter",
            "<p>before</p><ul><li>a</li><li>b<ul><li>c<ol><li>d</li></ol></li></ul></li><li>e<p>more</p></li></ul><p>after</p>",
        ),
        ("3. x\n4. y\n* z", "<ol><li>x</li><li>y</li></ol><ul><li>z</li></ul>"),
        (
            "> quote\nlazy\n> > deep\n\nout",
            "<blockquote><p>quote<br>lazy</p><blockquote><p>deep</p></blockquote></blockquote><p>out</p>",
        ),
        ("a\n\n---\n\n***\n* * *", "<p>a</p><hr></hr><hr></hr><hr></hr>"),
        (
            "|a|b|\n|---|--:|\n|*1*|2|\n|3|\nend",
            "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><em>1</em></td><td>2</td></tr><tr><td>3</td></tr></tbody></table></div><p>end</p>",
        ),
        (
            "<b>x</b> [a](javascript:x) ![b](http://evil.example/x.png) <!-- c -->",
            "<p><b>x</b> [a](javascript:x) ![b](http://evil.example/x.png) <!-- c --></p>",
        ),
        (code.as_str(), rendered_code.as_str()),
        (deep.as_str(), rendered_deep.as_str()),
    ];
    let sandbox = Sandbox::empty();
    let mut lines = vec![json!({ "chat_metadata": {} }).to_string()];
    lines.extend(cases.map(|(text, _)| json!({ "name": "Mira", "mes": text }).to_string()));
    sandbox.write(CHAT, lines.join("\n"));
    sandbox.take(&[]);
    let expected = json!(cases.map(|(_, rendered)| rendered)).to_string();
    let Some(visit) = Visit::begin_with(&sandbox, &["--write"], "markdown", &[&expected]) else {
        return;
    };
    visit.end();
}

#[test]
fn reader_works_on_small_screens_on_paper_and_by_keyboard() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(
        CHAT,
        uneven_chat(300).replacen("{", "{\"chat_metadata\":{\"world_info\":\"Harbour\"},", 1),
    );
    sandbox.write(BOOK, book("Two masts."));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.append(CHAT, &message("Mira", 300));
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &["--write"], "small") else { return };
    visit.end();
}

#[test]
fn viewer_names_and_describes_everything_in_the_library() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/Older.jsonl", chat("old", 2, None));
    let picture = "user/images/Mira/wave.png";
    let message = json!({ "name": "Mira", "mes": "Look.", "extra": { "image": picture } });
    let header = json!({ "chat_metadata": { "world_info": "Harbour" } });
    sandbox.write(CHAT, format!("{header}\n{message}"));
    sandbox.write(BOOK, book("Two masts."));
    let card = Sandbox::from_fixture("1.19.0").read("characters/Mira Voss.png");
    sandbox.write(picture, &card);
    sandbox.write("characters/Mira.png", card);
    sandbox.write("group chats/Ferry.jsonl", chat("ferry", 1, None));
    let group = json!({ "id": "17", "name": "The Crew", "members": [], "chat_id": "Ferry", "chats": ["Ferry"] });
    sandbox.write("groups/17.json", group.to_string());
    sandbox.stvc(&["snapshot", "-m", "before the ferry"]).exits(0);
    let Some(mut visit) = Visit::begin(&sandbox, &["--write"], "labels") else { return };
    visit.wait_for("stop");
    drop(visit.server.take());
    visit.resume();
    visit.end();
}

/// A picture of 64 pixels.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAoklEQVR42h2OIQ6DUBBEx9XhcGQNCQKHQ2xSxwlImqzE4SpXcQIcyZ4BV7NH4ARzF1xF82snk/ceAAiggAEOBJAA8Z9FHiqVSe3ShLQpPWUoZ9FKtTHtXcfQKXWmLgUhVqv1Zk+3OWxN22hHAYs36qP57P4O39NP+lV0Eq3GZLF67BGfDDLuEiHZa86Wm+cZycwvsytpwkG5GA/nFbyTHfn6AfakRvFK0Xj6AAAAAElFTkSuQmCC";

/// Texts for which a renderer that is not linear, or that shows everything, needs minutes.
#[test]
fn viewer_folds_long_texts_and_shows_pictures_inside_messages() {
    let mut sandbox = Sandbox::empty();
    let lines = |line: &str| vec![line.repeat(40_000); 4].join("\n");
    let data = "Q".repeat(500_000);
    let texts = [
        format!("A picture: ![waves]({PICTURE}) and <img src=\"{PICTURE}\"> after it."),
        format!("Damaged: data:image/png;base64,{data} drawn: data:image/svg+xml;base64,{data}."),
        "w".repeat(1_000_000),
        lines("\""),
        lines("“"),
        lines("`"),
        lines("*a"),
        lines("***a"),
        "![".repeat(200_000),
        "data:a/".repeat(200_000),
        format!("{PICTURE} ").repeat(2_000),
        "\n".repeat(200_000),
        "雨".repeat(300_000),
        vec!["\"".repeat(40_000); 20].join("\n"),
        "#".repeat(200_000),
        "# a\n".repeat(50_000),
        "a\n---\n".repeat(30_000),
        (0..1000).map(|n| format!("{}- a\n", " ".repeat(n))).collect(),
        "- ".repeat(100_000),
        "- a\n\n".repeat(30_000),
        "> ".repeat(100_000),
        "```\n".repeat(50_001),
        "```a\n".repeat(50_000),
        (3..600).map(|n| format!("{}a\n", "`".repeat(n))).collect(),
        "`` ` ``` ".repeat(20_000),
        format!("|a|b|\n|--|--|\n{}", "|".repeat(200_000)),
        "_".repeat(200_000),
        "~~a".repeat(60_000),
        "\\".repeat(200_000),
        format!("{}x", " ".repeat(200_000)),
    ];
    let chat_of = |texts: &[String]| {
        let mut lines = vec![json!({ "chat_metadata": { "world_info": "Harbour" } }).to_string()];
        for text in texts {
            let message = json!({ "name": "n".repeat(100_000), "mes": text, "swipes": [text, "b"], "swipe_id": 0 });
            lines.push(message.to_string());
        }
        lines.join("\n")
    };
    let last = ["The end.".to_owned()];
    sandbox.write(CHAT, chat_of(&[texts.as_slice(), &last].concat()));
    sandbox.write(BOOK, book(&texts[3]));
    let edited = "chats/Mira/Edited.jsonl";
    let long = ["\"".repeat(200_000), "w".repeat(300_000), format!("data:a/b,{data}")];
    sandbox.write(edited, chat_of(&long));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.write(edited, chat_of(&long.map(|text| format!("Before. {text}"))));
    sandbox.write(BOOK, book(&format!("{} edited", texts[3])));
    sandbox.take(&[]);
    let Some(visit) = Visit::begin(&sandbox, &[], "heavy") else { return };
    visit.end();
}

#[test]
fn viewer_and_extension_pass_the_type_check() {
    let Some(typescript) = require(package(TYPESCRIPT)) else { return };
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
