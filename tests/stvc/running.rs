//! A SillyTavern that runs, or a process that looks like one: a chat that may be open gets a new
//! integrity value (`chat_metadata.integrity`) when it is replaced, so that SillyTavern's page asks
//! before it saves its outdated copy. tests/sillytavern/restore_while_open.rs tests the real one.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::harbour::{self, CHAT, message};
use crate::common::{Sandbox, can_trace, traced_with};

const BOOK: &str = "worlds/Lore.json";

/// A process that looks like SillyTavern's server on the sandbox's library.
pub struct Running(Child);

impl Running {
    pub fn on(sandbox: &Sandbox, configuration: &str) -> Self {
        let install = sandbox.folder().join("install");
        fs::create_dir_all(&install).unwrap();
        fs::write(install.join("package.json"), r#"{"name": "sillytavern"}"#).unwrap();
        fs::write(install.join("config.yaml"), configuration).unwrap();
        fs::write(install.join("server.js"), "read wait").unwrap();
        let mut command = Command::new("bash");
        command.arg0("node").arg("server.js").arg("--dataRoot");
        command.arg(sandbox.library().parent().unwrap());
        Self(command.current_dir(install).stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a chat that grew after its first snapshot, and its unchanged lorebook.
fn story(header: &str) -> (Sandbox, Vec<u8>, Vec<u8>) {
    let mut sandbox = harbour::library();
    let first = [header, &message("Ann", "The harbour is dark.")].join("\n");
    sandbox.write(CHAT, &first);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let second = format!("{first}\n{}", message("Wren", "A mistake."));
    sandbox.write(CHAT, &second);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    (sandbox, first.into_bytes(), second.into_bytes())
}

const HEADER: &str = r#"{"chat_metadata":{"integrity":"1","world_info":"Lore"},"x":1e21}"#;

fn mark(chat: &[u8]) -> Value {
    let header = chat.split(|byte| *byte == b'\n').next().unwrap();
    serde_json::from_slice::<Value>(header).unwrap()["chat_metadata"]["integrity"].clone()
}

fn file(answer: &crate::common::Answer) -> Value {
    answer.of_type("file").into_iter().find(|line| line["path"] == CHAT).unwrap()
}

#[test]
fn restored_open_chat_differs_only_in_its_new_integrity_value() {
    let (mut sandbox, first, second) = story(HEADER);
    let running = Running::on(&sandbox, "backups:\n  chat:\n    checkIntegrity: true\n");
    let plan = sandbox.json(&["restore", "Harbour~1", "--overwrite", "--dry-run"]).exits(0);
    let done = sandbox.json(&["restore", "Harbour~1", "--overwrite"]).exits(0);
    let mut planned = file(&plan);
    assert_eq!(planned["preview"]["changed"], 1);
    planned.as_object_mut().unwrap().remove("preview");
    assert_eq!(planned, file(&done), "what is planned is done");
    let there = sandbox.read(CHAT);
    let given = mark(&there);
    assert_eq!(given, file(&done)["integrity"]);
    assert_eq!(given.as_str().unwrap().len(), 36, "as SillyTavern writes them: {given}");
    let text = String::from_utf8(there.clone()).unwrap();
    assert_eq!(text.replace(given.as_str().unwrap(), "1").into_bytes(), first);
    let finding = &done.of_type("finding")[0];
    assert_eq!(
        (&finding["code"], &finding["level"]),
        (&json!("reload-sillytavern"), &json!("info"))
    );
    assert!(finding["remedy"].as_str().unwrap().contains("OVERWRITE"), "{finding}");
    // The latest snapshot equals the file, without a duplicate.
    assert_eq!(sandbox.json(&["status", "Harbour"]).of_type("timeline")[0]["state"], "unchanged");
    assert!(sandbox.git(&["for-each-ref", "refs/stvc/kept"]).is_empty());
    sandbox.stvc(&["check"]).exits(0);

    // A second restore has nothing to do, although the snapshot has another integrity value.
    sandbox.wait(60);
    let again = sandbox.json(&["restore", "Harbour~2", "--overwrite"]).exits(0);
    assert_eq!(file(&again)["action"], "keep", "{}", again.stdout);
    assert_eq!(sandbox.read(CHAT), there);

    // Undone byte for byte: the former integrity value differs from the current one.
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(CHAT), second);
    // The undo can be undone too.
    let operations = sandbox.json(&["operations"]).of_type("operation");
    let undoing = operations[0]["number"].to_string();
    sandbox.stvc(&["undo", &undoing]).exits(0);
    assert_eq!(sandbox.read(CHAT), there);
    drop(running);
}

/// Killed at any rename or sync, the file is old or new, and the next command finishes the
/// operation.
#[test]
fn killed_restore_with_a_new_integrity_value_is_finished_later() {
    if !can_trace() {
        return;
    }
    let (mut old, mut new) = (0, 0);
    for call in ["rename", "fsync"] {
        for when in 1..40 {
            let (sandbox, first, second) = story(HEADER);
            let _running = Running::on(&sandbox, "");
            let inject = format!("inject={call}:signal=KILL:when={when}");
            let restore = ["restore", "Harbour~1", "--overwrite"];
            let done = traced_with(&sandbox, &["-e", &inject], &restore).output().unwrap();
            // The next writer finishes the operation.
            sandbox.stvc(&["tag", "after", "Storm"]).exits(0);
            let there = sandbox.read(CHAT);
            let given = mark(&there);
            let plain =
                String::from_utf8(there.clone()).unwrap().replace(given.as_str().unwrap(), "1");
            match there == second {
                true => old += 1,
                false => new += usize::from(plain.into_bytes() == first && given != "1"),
            }
            assert!(there == second || given != "1", "{call} {when}: {there:?}");
            sandbox.stvc(&["check"]).exits(0);
            assert_eq!(
                sandbox.json(&["status", "Harbour"]).of_type("timeline")[0]["state"],
                "unchanged"
            );
            if done.status.success() {
                break;
            }
        }
    }
    assert!(old > 2 && new > 2, "{old} as before, {new} restored");
}

#[test]
fn restore_of_a_closed_chat_is_byte_for_byte() {
    let (sandbox, first, second) = story(HEADER);
    let done = sandbox.json(&["restore", "Harbour~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(CHAT), first);
    assert_eq!(file(&done).get("integrity"), None);
    // The page was opened since and has the integrity value of both states: undo writes a new one.
    let running = Running::on(&sandbox, "");
    let undone = sandbox.json(&["undo"]).exits(0);
    let given = mark(&sandbox.read(CHAT));
    assert_eq!(given, file(&undone)["integrity"]);
    let text = String::from_utf8(sandbox.read(CHAT)).unwrap();
    assert_eq!(text.replace(given.as_str().unwrap(), "1").into_bytes(), second);
    sandbox.stvc(&["restore", "Harbour~1", "--overwrite", "--chat-closed"]).exits(0);
    assert_eq!(sandbox.read(CHAT), second, "as its snapshot has it");
    drop(running);
}

#[test]
fn lorebook_is_not_replaced_while_sillytavern_runs() {
    let (sandbox, first, _) = story(HEADER);
    sandbox.write(BOOK, r#"{"entries": {}}"#);
    sandbox.stvc(&["snapshot", "worlds/Lore"]).exits(0);
    let _running = Running::on(&sandbox, "");
    let here = sandbox.files();
    let refused = sandbox.json(&["restore", "Harbour~2", "--overwrite"]).exits(4);
    let error = &refused.of_type("error")[0];
    assert!(
        error["message"].as_str().unwrap().ends_with(&format!("could overwrite {BOOK}")),
        "{error}"
    );
    assert!(error["hint"].as_str().unwrap().contains("--overwrite --only chat`"), "{error}");
    assert_eq!(sandbox.files(), here);
    sandbox.stvc(&["restore", "Harbour~2", "--overwrite", "--only", "chat"]).exits(0);
    assert_eq!(sandbox.read(CHAT).len(), first.len() + 35);
    assert_eq!(sandbox.read(BOOK), here[BOOK]);
}

#[test]
fn restore_is_refused_when_sillytavern_does_not_check_integrity() {
    // The check is disabled in the configuration.
    let (sandbox, ..) = story(HEADER);
    let running = Running::on(&sandbox, "backups:\n  chat:\n    checkIntegrity: false # faster\n");
    sandbox.stvc(&["restore", "Harbour~1", "--overwrite"]).exits(4);
    drop(running);
    // Headers in which SillyTavern finds no integrity value.
    for header in
        ["{}", "[1]", "not JSON", "\u{feff}{\"chat_metadata\":{}}", r#"{"chat_metadata":3}"#]
    {
        let (sandbox, _, second) = story(header);
        let running = Running::on(&sandbox, "");
        let refused = sandbox.stvc(&["restore", "Harbour~1", "--overwrite"]).exits(4);
        assert!(refused.stderr.contains("Close chat"), "{header}: {}", refused.stderr);
        assert_eq!(sandbox.read(CHAT), second);
        drop(running);
    }
}

#[test]
fn missing_integrity_value_is_added_and_invalid_headers_are_unchanged() {
    let odd = [
        (r#"{"chat_metadata":{}}"#, r#"{"chat_metadata":{"integrity":"#),
        (
            "{ \"chat_metadata\": { \"a\": 1 } }\r",
            "{ \"chat_metadata\": { \"a\": 1, \"integrity\":",
        ),
        // Of two equal keys the last one counts, as in JavaScript.
        (
            r#"{"chat_metadata":{"integrity":"1","b":"\ud83d","integrity":null},"__proto__":{}}"#,
            r#"{"chat_metadata":{"integrity":"1","b":"\ud83d","integrity":"#,
        ),
    ];
    for (header, begin) in odd {
        let (sandbox, first, _) = story(header);
        let running = Running::on(&sandbox, "");
        sandbox.stvc(&["restore", "Harbour~1", "--overwrite"]).exits(0);
        let there = String::from_utf8(sandbox.read(CHAT)).unwrap();
        assert!(there.starts_with(begin), "{there}");
        let rest =
            |chat: &[u8]| chat[chat.iter().position(|byte| *byte == b'\n').unwrap()..].to_vec();
        assert_eq!(rest(there.as_bytes()), rest(&first));
        drop(running);
    }
}

/// An outdated page saves: the former content and a new message.
#[test]
fn restore_overwritten_by_a_stale_page_is_reported() {
    let codes = |sandbox: &Sandbox| {
        let taken = sandbox.json(&["snapshot"]).exits(0).of_type("finding");
        let undone = taken.into_iter().filter(|finding| finding["code"] == "restore-undone");
        undone.map(|finding| finding["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let book = |entries: &[(usize, &str)]| {
        let entry =
            |(uid, text): &(usize, &str)| (uid.to_string(), json!({ "uid": uid, "content": text }));
        json!({ "entries": entries.iter().map(entry).collect::<serde_json::Map<_, _>>() })
            .to_string()
    };
    let (mut sandbox, first, second) = story(HEADER);
    let right = [(0, "Oil."), (1, "Stone.")];
    sandbox.write(BOOK, book(&right));
    sandbox.stvc(&["snapshot"]).exits(0);
    let good = sandbox.json(&["log", "worlds/Lore"]).of_type("snapshot")[0]["id"].clone();
    sandbox.wait(60);
    let wrong = [(0, "Whale oil."), (1, "Stone."), (2, "A mistake.")];
    sandbox.write(BOOK, book(&wrong));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["restore", good.as_str().unwrap(), "--overwrite"]).exits(0);
    sandbox.stvc(&["restore", "Harbour~4", "--overwrite", "--only", "chat"]).exits(0);
    assert_eq!(
        (sandbox.read(CHAT), sandbox.read(BOOK)),
        (first.clone(), book(&right).into_bytes())
    );
    sandbox.wait(60);

    // Messages after the restored state are not reported.
    sandbox.append(CHAT, &message("Wren", "Better."));
    sandbox.write(BOOK, book(&[right[0], right[1], (2, "Another one.")]));
    assert_eq!(codes(&sandbox), Vec::<String>::new());
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.write(CHAT, &first);
    sandbox.write(BOOK, book(&right));

    sandbox
        .write(CHAT, [&second[..], b"\n", message("Wren", "Nobody told me.").as_bytes()].concat());
    sandbox.write(BOOK, book(&[wrong[0], wrong[1], wrong[2], (3, "Nobody told me.")]));
    assert_eq!(codes(&sandbox), ["chats/Ann/Harbour", "worlds/Lore"]);
    // Reported once: it is the latest state now.
    sandbox.wait(60);
    sandbox.append(CHAT, &message("Wren", "On and on."));
    assert_eq!(codes(&sandbox), Vec::<String>::new());
}
