//! `--json`: one object per line with documented fields, and the exit codes.

use std::fs;

use serde_json::Value;

use crate::common::{Answer, Sandbox};

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";

const BOOK: &str = "worlds/Tide Office Lore.json";

fn is_hex(value: &Value, digits: usize) -> bool {
    let hex =
        |text: &str| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    value.as_str().is_some_and(hex)
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok())
}

fn is_list(value: &Value, of: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(of))
}

fn or_null(value: &Value, is: impl Fn(&Value) -> bool) -> bool {
    value.is_null() || is(value)
}

fn is_one_of(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|text| words.contains(&text))
}

/// Lists the fields of a line that differ from their documentation. A missing field reads as null,
/// so nullable fields are checked by name.
fn faults(line: &Value) -> Vec<&'static str> {
    let of = |name: &str| &line[name];
    let there = |name: &str| line.get(name).is_some();
    let text = |name: &str| of(name).is_string();
    let number = |name: &str| of(name).is_u64();
    let kind = line["type"].as_str().unwrap_or_default();
    let rules: Vec<(&'static str, bool)> = match kind {
        "snapshot" => vec![
            ("id", is_hex(of("id"), 40)),
            ("content", is_hex(of("content"), 64)),
            ("timeline", text("timeline")),
            ("parents", is_list(of("parents"), |id| is_hex(id, 40))),
            ("fork_at", there("fork_at") && or_null(of("fork_at"), Value::is_u64)),
            ("messages", number("messages")),
            ("kind", text("kind")),
            ("time", is_time(of("time"))),
            ("tags", is_list(of("tags"), Value::is_string)),
            ("subject", text("subject")),
        ],
        "timeline" => vec![
            ("timeline", text("timeline")),
            ("head", there("head") && or_null(of("head"), |id| is_hex(id, 40))),
            ("state", is_one_of(of("state"), &["new", "changed", "unchanged", "deleted"])),
            ("messages", number("messages")),
            ("snapshots", number("snapshots")),
            ("parent", there("parent") && or_null(of("parent"), Value::is_string)),
            ("fork_at", there("fork_at") && or_null(of("fork_at"), Value::is_u64)),
            ("lorebook", there("lorebook") && or_null(of("lorebook"), Value::is_string)),
        ],
        "file" => vec![
            ("path", text("path")),
            ("action", is_one_of(of("action"), &["write", "keep", "delete"])),
            ("bytes", number("bytes")),
            ("blake3", is_hex(of("blake3"), 64)),
        ],
        "change" => vec![
            ("part", is_one_of(of("part"), &["message", "lorebook", "metadata"])),
            ("kind", text("kind")),
            (
                "index, uid or path",
                ["index", "uid", "path"].iter().filter(|name| there(name)).count() == 1,
            ),
            ("before", there("before")),
            ("after", there("after")),
        ],
        "finding" => vec![
            ("code", text("code")),
            ("level", is_one_of(of("level"), &["error", "warning", "info"])),
            ("subject", text("subject")),
            ("message", text("message")),
            ("remedy", there("remedy") && or_null(of("remedy"), Value::is_string)),
            ("snapshot", there("snapshot") && or_null(of("snapshot"), |id| is_hex(id, 40))),
        ],
        "error" => vec![
            ("message", text("message")),
            ("hint", there("hint") && or_null(of("hint"), Value::is_string)),
            ("exit", number("exit")),
        ],
        "summary" => vec![("command", text("command")), ("ok", of("ok").is_boolean())],
        "" => vec![("type", false)],
        // Undocumented types need only a type.
        _ => Vec::new(),
    };
    rules.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}

/// Runs a command with `--json` and asserts that every line has its fields, the last one is a
/// summary, and errors have the exit code.
#[track_caller]
fn run(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Answer {
    let answer = sandbox.json(arguments).exits(code);
    assert_eq!(answer.stderr, "", "{arguments:?}");
    let lines = answer.lines();
    for line in &lines {
        assert_eq!(faults(line), [""; 0], "{arguments:?}: {line}");
    }
    let last = lines.last().expect("there is an answer");
    assert_eq!(last["type"], "summary", "{arguments:?}");
    let command = arguments.iter().find(|word| !word.starts_with('-')).unwrap();
    assert_eq!(last["command"], *command);
    // Exit code 1 for differences, as in git and grep.
    let changed =
        code == 1 && (arguments.contains(&"--exit-code") || arguments.contains(&"search"));
    assert_eq!(last["ok"], code == 0 || changed, "{arguments:?}");
    for error in answer.of_type("error") {
        assert_eq!(error["exit"], code);
    }
    answer
}

fn edit(sandbox: &Sandbox) {
    let chat = String::from_utf8(sandbox.read(CHAT)).unwrap();
    let chat = chat
        .replace("\"Close the door.", "\"Shut the door.")
        .replace("Keep the prose salty.", "Keep it short.");
    sandbox.write(CHAT, format!("{chat}\n{{\"name\":\"Wren\",\"mes\":\"Aye.\"}}"));
    let book = String::from_utf8(sandbox.read(BOOK)).unwrap();
    sandbox.write(BOOK, book.replacen("\"content\": \"", "\"content\": \"Once: ", 1));
}

#[test]
fn every_command_prints_documented_json() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    assert_eq!(run(&sandbox, &["init"], 0).lines().len(), 2);
    assert_eq!(run(&sandbox, &["status"], 0).of_type("timeline").len(), 18);
    let planned = run(&sandbox, &["snapshot", "--dry-run"], 0);
    assert!(planned.of_type("snapshot").is_empty());

    let taken = run(&sandbox, &["snapshot", "-m", "mine"], 0).of_type("snapshot");
    assert_eq!(taken.len(), 18);
    assert!(taken.iter().all(|line| line["unchanged"] == false && line["subject"] == "mine"));
    sandbox.wait(60);
    edit(&sandbox);
    let states = |answer: Answer| {
        answer.of_type("timeline").iter().filter(|line| line["state"] == "changed").count()
    };
    // All chats share the lorebook.
    let changed = states(run(&sandbox, &["status"], 0));
    assert!(changed > 1);
    let again = run(&sandbox, &["snapshot"], 0).of_type("snapshot");
    assert_eq!(again.iter().filter(|line| line["unchanged"] == false).count(), changed);
    let of_chat = |lines: &[Value]| {
        let name = CHAT.trim_end_matches(".jsonl");
        lines.iter().find(|line| line["timeline"] == name).unwrap().clone()
    };
    assert_eq!(of_chat(&again)["parents"][0], of_chat(&taken)["id"]);

    let checkpoint = run(&sandbox, &["snapshot", "Tide Office", "--at", "3", "--tag", "three"], 0);
    let checkpoint = checkpoint.of_type("snapshot").remove(0);
    assert_eq!(
        (&checkpoint["kind"], &checkpoint["messages"]),
        (&Value::from("checkpoint"), &Value::from(4))
    );
    assert_eq!(checkpoint["tags"], serde_json::json!(["three"]));

    let log = run(&sandbox, &["log"], 0).of_type("snapshot");
    assert_eq!(log.len(), 18 + changed + 1);
    assert_eq!(run(&sandbox, &["log", "--graph"], 0).of_type("snapshot"), log);
    assert_eq!(run(&sandbox, &["log", "-n", "2"], 0).of_type("snapshot").len(), 2);
    let shown = run(&sandbox, &["show", "three"], 0).of_type("snapshot").remove(0);
    assert_eq!(shown["id"], checkpoint["id"]);
    assert_eq!(shown["files"].as_array().unwrap().len(), 2);

    let timelines = run(&sandbox, &["timelines"], 0).of_type("timeline");
    assert_eq!(of_chat(&timelines)["head"], of_chat(&again)["id"]);
    assert_eq!(of_chat(&timelines)["snapshots"], 2);
    assert_eq!(of_chat(&timelines)["lorebook"], "Tide Office Lore");

    let diff = run(&sandbox, &["diff", "Tide Office~1", "Tide Office"], 0).of_type("change");
    let seen: Vec<_> = diff
        .iter()
        .map(|line| (line["part"].as_str().unwrap(), line["kind"].as_str().unwrap()))
        .collect();
    for change in [
        ("message", "edited"),
        ("message", "added"),
        ("lorebook", "edited"),
        ("metadata", "edited"),
    ] {
        assert!(seen.contains(&change), "{seen:?}");
    }
    assert!(run(&sandbox, &["diff", "Tide Office"], 0).of_type("change").is_empty());
    run(&sandbox, &["diff", "Tide Office", "--exit-code"], 0);
    run(&sandbox, &["diff", "Tide Office~1", "--exit-code"], 1);

    fs::remove_file(sandbox.path(CHAT)).unwrap();
    let restored = run(&sandbox, &["restore", "Tide Office"], 0).of_type("file");
    let action =
        |path: &str| restored.iter().find(|line| line["path"] == path).unwrap()["action"].clone();
    assert_eq!((action(CHAT), action(BOOK)), ("write".into(), "keep".into()));
    let bytes = sandbox.read(CHAT);
    let of_chat = restored.iter().find(|line| line["path"] == CHAT).unwrap();
    assert_eq!(of_chat["blake3"], blake3::hash(&bytes).to_hex().as_str());
    assert_eq!(of_chat["bytes"], bytes.len());
    sandbox.append(CHAT, "{}");
    let safety = run(&sandbox, &["restore", "Tide Office", "--overwrite"], 0).of_type("snapshot");
    assert_eq!(safety[0]["kind"], "safety");

    assert!(run(&sandbox, &["check"], 0).of_type("finding").is_empty());
    run(&sandbox, &["tag", "mine", "Snow shrine"], 0);
    assert_eq!(run(&sandbox, &["tag"], 0).of_type("tag").len(), 2);
    run(&sandbox, &["tag", "--delete", "mine"], 0);
    let demo = run(&sandbox, &["demo"], 0);
    assert_eq!(demo.lines().last().unwrap()["failed"], 0);
}

#[test]
fn invalid_files_are_findings_and_not_errors() {
    let sandbox = Sandbox::from_fixture("odd");
    let findings = run(&sandbox, &["snapshot"], 0).of_type("finding");
    let codes: Vec<_> = findings.iter().map(|line| line["code"].as_str().unwrap()).collect();
    for code in
        ["chat-bom", "chat-empty", "chat-line-broken", "lorebook-broken", "lorebook-key-repeated"]
    {
        assert!(codes.contains(&code), "{codes:?}");
    }
}

/// Numbers and escapes in `before` and `after` keep their text: 2^53+1 must not become 2^53.
#[test]
fn json_values_keep_their_raw_text() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/A/a.jsonl", "{}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let message =
        r#"{"mes":"half \ud83e","n":9007199254740993,"e":1e21,"a":1,"a":2,"__proto__":null}"#;
    sandbox.write("chats/A/a.jsonl", format!("{{}}\r\n{message}\r\nno JSON\n\n{{\"torn"));
    let answer = sandbox.json(&["diff", "A/a"]).exits(0);
    assert!(answer.stdout.contains(&format!("\"after\":{message}")), "{}", answer.stdout);
    assert!(
        answer.stdout.contains(r#""after":"no JSON\r""#)
            || answer.stdout.contains(r#""after":"no JSON""#)
    );
    for line in answer.stdout.lines() {
        serde_json::from_str::<&serde_json::value::RawValue>(line).unwrap();
    }
}

/// JSON keeps every character of a name.
#[test]
#[cfg(target_os = "linux")]
fn control_characters_in_json_are_escaped_and_not_lost() {
    let sandbox = Sandbox::empty();
    let name = "chats/A/del\u{7f} csi\u{9b}31m";
    sandbox.write(&format!("{name}.jsonl"), "{}\n{\"mes\":\"\u{7f}\u{9b}2J\"}");
    let taken = run(&sandbox, &["snapshot"], 0);
    assert_eq!(taken.of_type("snapshot")[0]["timeline"], name);
    sandbox.write(&format!("{name}.jsonl"), "{}\n{\"mes\":\"\u{7f}\u{9b}3J\"}");
    let diff = run(&sandbox, &["diff", name], 0);
    assert_eq!(diff.of_type("change")[0]["after"]["mes"], "\u{7f}\u{9b}3J");
    for answer in [taken, diff] {
        assert!(
            !answer.stdout.contains(|c: char| c.is_control() && c != '\n'),
            "{:?}",
            answer.stdout
        );
    }
}

#[test]
fn exit_code_1_means_failure() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    run(&sandbox, &["snapshot", "no such chat"], 1);
    run(&sandbox, &["snapshot"], 0);
    for arguments in [
        &["show", "no such chat"][..],
        &["restore", "0000"],
        &["diff", "Ferry main~7"],
        &["tag", "--delete", "x"],
    ] {
        assert_eq!(run(&sandbox, arguments, 1).of_type("error").len(), 1);
    }
    let ambiguous = run(&sandbox, &["show", "Branch"], 1).of_type("error").remove(0);
    assert!(ambiguous["candidates"].as_array().unwrap().len() > 1);
    // Outside any library.
    let mut command = sandbox.command(&["--json", "status"]);
    let nowhere = tempfile::tempdir().unwrap();
    let answer =
        crate::common::answer(command.current_dir(nowhere.path()).output().unwrap()).exits(1);
    assert_eq!(answer.of_type("error")[0]["exit"], 1);
}

#[test]
fn exit_code_2_means_wrong_usage() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    // A line that cannot be parsed has no command and no summary.
    for arguments in [
        &["snapsot"][..],
        &["log", "--nonsense"],
        &["show"],
        &["restore", "x", "--to", "y", "--overwrite"],
    ] {
        let error = sandbox.json(arguments).exits(2).of_type("error");
        assert_eq!(error.len(), 1, "{arguments:?}");
        assert_eq!((faults(&error[0]), &error[0]["exit"]), (vec![], &Value::from(2)));
    }
    run(&sandbox, &["snapshot", "--at", "3"], 2);
    run(&sandbox, &["snapshot", "--tag", "x"], 2);
    run(&sandbox, &["snapshot"], 0);
    run(&sandbox, &["tag", "b3:x", "Snow shrine"], 2);
}

#[test]
fn exit_code_3_means_partial_success() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    std::fs::create_dir(sandbox.path("groups/broken.json")).unwrap();
    let answer = run(&sandbox, &["snapshot"], 3);
    assert_eq!(answer.chat_lines("snapshot").len(), 12);
    assert!(answer.of_type("finding").iter().any(|line| line["level"] == "error"));
    let summary = answer.lines().pop().unwrap();
    assert_eq!((&summary["taken"], &summary["failed"]), (&Value::from(18), &Value::from(1)));
    run(&sandbox, &["status"], 3);
}

#[test]
fn exit_code_4_means_refusal() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    run(&sandbox, &["snapshot"], 0);
    run(&sandbox, &["snapshot", "Snow shrine", "--at", "99"], 4);
    edit(&sandbox);
    let (before, ids) = (sandbox.files(), sandbox.snapshot_ids());
    let refused = run(&sandbox, &["restore", "Tide Office"], 4).of_type("error").remove(0);
    assert!(refused["hint"].as_str().unwrap().contains("--overwrite"));
    run(&sandbox, &["restore", "Tide Office", "--to", "."], 4);
    assert_eq!((sandbox.files(), sandbox.snapshot_ids()), (before, ids));
}

#[test]
fn exit_code_10_means_no_store() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    for arguments in
        [&["log"][..], &["show", "x"], &["diff", "x"], &["restore", "x"], &["check"], &["tag"]]
    {
        run(&sandbox, arguments, 10);
    }
    assert!(!sandbox.store().exists());
}
