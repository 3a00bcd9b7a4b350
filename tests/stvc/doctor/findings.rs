//! Other findings, and their output.

use std::fs;

use serde_json::{Value, json};

use super::{BOOK, family, fix, look, of_code, write_chat};
use crate::common::Sandbox;
use crate::common::recap_library::{RecapLibrary, book_name, quoted};

#[test]
fn valid_library_has_no_finding() {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    let mut fork = main.fork("Branch #1", 7);
    let own = book_name("Mira", "Branch #1");
    (fork.book, fork.attached) = (Some(own.clone()), Some(own));
    fork.recap.as_mut().unwrap().chat_id = Some("Branch #1".into());
    fork.write(&sandbox);
    write_chat(&sandbox, "chats/Mira/free", None, "");
    assert_eq!(look(&sandbox, 0), []);
    let answer = sandbox.stvc(&["doctor"]).exits(0);
    assert_eq!(answer.stdout, "No problems found in 3 timelines and 2 lorebooks.\n");
    assert!(!sandbox.store().exists(), "only reading makes no store");
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert!(!sandbox.store().exists(), "nor does it if there is nothing to repair");
}

#[test]
fn req_56_links_to_missing_checkpoints_are_found() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let dangling = of_code(&sandbox, "checkpoint-link-dangling");
    assert_eq!(dangling.len(), 3);
    for finding in &dangling {
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains("message 22 to \"to be deleted\";"), "{message}");
        assert_eq!(finding["level"], "warning");
    }
    // The store has it: the finding offers to restore it.
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path("chats/Mira Voss/Before the ferry #1 @dawn xy.jsonl")).unwrap();
    let dangling = of_code(&sandbox, "checkpoint-link-dangling");
    assert_eq!(dangling.len(), 4);
    let of_checkpoint =
        |line: &&Value| line["subject"].as_str().unwrap().ends_with("Checkpoint #2");
    let remedy = dangling.iter().find(of_checkpoint).unwrap()["remedy"].as_str().unwrap();
    assert!(remedy.contains("stvc restore \"chats/Mira Voss/Before the ferry #1 @dawn xy\""));
}

#[test]
fn req_57_fork_with_missing_parent_is_found() {
    let sandbox = Sandbox::empty();
    write_chat(&sandbox, "chats/A/main", None, "");
    for (chat, parent) in [("a", "main"), ("b", "main.jsonl"), ("c", "gone: ?"), ("d", "ma?in")] {
        let more = format!(r#","main_chat":{}"#, quoted(parent));
        write_chat(&sandbox, &format!("chats/A/{chat}"), None, &more);
    }
    assert_eq!(look(&sandbox, 0), [("parent-missing".into(), "chats/A/c".into())]);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path("chats/A/main.jsonl")).unwrap();
    let missing = of_code(&sandbox, "parent-missing");
    assert_eq!(missing.len(), 4);
    assert_eq!(missing[0]["remedy"], "run `stvc restore \"chats/A/main\"` to restore it");
}

#[test]
fn req_61_different_settings_in_a_fork_are_a_note() {
    let sandbox = Sandbox::empty();
    let with =
        |hash: &str, main: &str| format!(r#","auto_recap":{{"settings_hash":{hash}}}{main}"#);
    let main = r#","main_chat":"main""#;
    write_chat(&sandbox, "chats/A/main", None, &with("\"a1\"", ""));
    write_chat(&sandbox, "chats/A/same", None, &with("\"a1\"", main));
    write_chat(&sandbox, "chats/A/other", None, &with("\"b2\"", main));
    write_chat(&sandbox, "chats/A/none", None, main);
    assert_eq!(look(&sandbox, 0), [("settings-hash-differs".into(), "chats/A/other".into())]);
    assert_eq!(of_code(&sandbox, "settings-hash-differs")[0]["level"], "info");
}

#[test]
fn req_64_doctor_sets_the_chat_name_in_the_recap_of_a_renamed_chat() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { chat: "A new name".into(), ..RecapLibrary::default() };
    library.write(&sandbox);
    let foreign = of_code(&sandbox, "recap-foreign").remove(0);
    assert!(foreign["remedy"].as_str().unwrap().contains("stvc doctor --fix"), "{foreign}");
    let before = String::from_utf8(sandbox.read(&library.chat_path())).unwrap();
    let after = fix(&sandbox, &[], &[&library.chat_path()]);
    assert_eq!(
        String::from_utf8_lossy(&after[&library.chat_path()]),
        before.replacen("\"chat_id\":\"Harbour nights\"", "\"chat_id\":\"A new name\"", 1)
    );
    assert!(of_code(&sandbox, "recap-foreign").is_empty());

    // The named chat exists: its owner is unclear.
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    RecapLibrary::default().write(&sandbox);
    let answer = sandbox.json(&["doctor"]).exits(0);
    let repairs = answer.of_type("repair");
    assert!(repairs.iter().all(|line| line["code"] != "recap-foreign"), "{repairs:?}");
}

#[test]
fn unreadable_file_does_not_hide_findings_about_other_files() {
    let sandbox = Sandbox::from_fixture("1.12.6");
    sandbox.write("groups/broken.json", "{\"torn");
    // A folder in place of a lorebook.
    fs::create_dir(sandbox.path("worlds/Folder.json")).unwrap();
    write_chat(&sandbox, "chats/A/a", Some("Folder"), "");
    let codes = look(&sandbox, 1);
    for expected in [
        ("file-damaged", "groups/broken.json"),
        ("unreadable", "chats/A/a"),
        ("unreadable", "worlds/Folder.json"),
        ("references-unknown", "groups/broken.json"),
    ] {
        assert!(codes.contains(&(expected.0.into(), expected.1.into())), "{codes:?}");
    }
    assert!(codes.iter().any(|(code, _)| code == "lorebook-shared"));
}

#[test]
fn findings_of_single_chats_are_reported() {
    let sandbox = Sandbox::from_fixture("odd");
    let codes = look(&sandbox, 1);
    for code in ["chat-line-broken", "chat-bom", "chat-empty", "chat-damaged", "lorebook-broken"] {
        assert!(codes.iter().any(|(found, _)| found == code), "{codes:?}");
    }
    let mut unique = codes.clone();
    unique.dedup();
    assert_eq!(unique, codes, "each is told once, however many chats use the lorebook");
}

#[test]
fn doctor_prints_documented_json() {
    let (sandbox, main, forks) = family();
    write_chat(&sandbox, "chats/B/x", Some("Lost"), "");
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(1);
    assert_eq!(answer.stderr, "");
    let repair = answer.of_type("repair").remove(0);
    let own = format!("worlds/{}.json", book_name("Mira", "Branch #1"));
    let what = format!(
        "give chats/Mira/Branch #1 its own lorebook {}, a copy of {}",
        quoted(&book_name("Mira", "Branch #1")),
        quoted(main.book.as_deref().unwrap())
    );
    let expected = json!({
        "type": "repair", "code": "lorebook-shared", "subject": "chats/Mira/Branch #1", "what": what,
        "files": [own, forks[0].chat_path()], "choice": null, "done": true,
    });
    assert_eq!(repair, expected);
    let files = answer.of_type("file");
    assert_eq!(files.len(), 4);
    for file in &files {
        let bytes = sandbox.read(file["path"].as_str().unwrap());
        assert_eq!(file["blake3"], blake3::hash(&bytes).to_hex().as_str());
        assert_eq!((&file["bytes"], &file["action"]), (&json!(bytes.len()), &json!("write")));
    }
    let summary = answer.lines().pop().unwrap();
    let expected = json!({
        "type": "summary", "command": "doctor", "ok": false, "timelines": 4, "lorebooks": 1,
        "errors": 1, "warnings": 3, "infos": 0, "repairs": 2, "fixed": 2,
    });
    assert_eq!(summary, expected);
}

#[test]
fn errors_are_listed_first_and_remedies_are_grouped() {
    let sandbox = Sandbox::empty();
    for chat in ["a", "b"] {
        write_chat(&sandbox, &format!("chats/A/{chat}"), Some("Lost"), r#","main_chat":"gone""#);
    }
    sandbox.write("worlds/Mine.json", BOOK);
    let text = sandbox.stvc(&["doctor"]).exits(1).stdout;
    insta::assert_snapshot!(text, @r#"
    error: chats/A/a: its lorebook "Lost" does not exist; SillyTavern shows it as empty
    error: chats/A/b: its lorebook "Lost" does not exist; SillyTavern shows it as empty
      no snapshot has it; run `stvc doctor --fix --repair empty` to create an empty one; use `--repair clone` to copy the parent's, `--clone-of NAME` to copy another one, or `--repair detach` to unbind it from the chat
    warning: chats/A/a: its parent "gone" does not exist
    warning: chats/A/b: its parent "gone" does not exist
      no action needed; only "Back to parent chat" does not work
    note: worlds/Mine.json: no chat, group, character, persona or setting uses it
      keep it for later, or run `stvc doctor --fix --orphans` to remove it
    2 errors, 2 warnings, 1 note in 2 timelines and 1 lorebook.
    "#);
}

#[test]
#[cfg(target_os = "linux")]
fn control_characters_in_names_are_escaped() {
    let sandbox = Sandbox::empty();
    let evil = r"\u001b[2J\u0007\u009b31m\u202e";
    let more = format!(r#","main_chat":"{evil}""#);
    write_chat(&sandbox, "chats/A\u{1b}[2J/a\u{7}\u{202e}", None, &more);
    let path = "chats/A\u{1b}[2J/b\n.jsonl";
    sandbox.write(path, format!(r#"{{"chat_metadata":{{"world_info":"{evil}"{more}}}}}"#));
    sandbox.write("worlds/z-AutoLB-\u{1b}[31m.json", "{}");
    sandbox.write("characters/\u{1b}c.png", "none");
    for options in [&[][..], &["--fix", "--yes", "--repair", "empty"]] {
        let answer = sandbox.stvc(&[&["doctor"], options].concat());
        let text = answer.stdout + &answer.stderr;
        assert!(text.lines().count() > 5, "{text}");
        let alive =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(alive), "{text:?}");
    }
}
