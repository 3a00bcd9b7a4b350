//! Chats and lorebooks that are empty, filled with zero bytes or unreadable: never copied, reported
//! with the command that repairs them, and restored from the latest valid snapshot.

use std::fs;

use serde_json::{Value, json};

use super::{BOOK, family, fix, look, of_code, write_chat};
use crate::common::{Sandbox, assert_same, chat, has_terminal, typed_on_terminal};

/// File contents after a power cut or on a full disk.
const DAMAGES: [&[u8]; 4] = [b"", b" \n", &[0; 300], b"{\"entries\": {\"0\": {\"uid\""];

const CHAT: &str = "chats/A/a.jsonl";
const LORE: &str = "worlds/Lore.json";

/// Creates a chat with a lorebook, and two snapshots of both.
fn stored() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(LORE, BOOK);
    write_chat(&sandbox, "chats/A/a", Some("Lore"), "");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(CHAT, r#"{"name":"A","mes":"more"}"#);
    sandbox.write(LORE, BOOK.replace("Rain", "Snow"));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox
}

/// Returns the latest snapshot of a timeline.
fn head(sandbox: &Sandbox, timeline: &str) -> String {
    let log = sandbox.json(&["log", timeline, "-n", "1"]).exits(0).of_type("snapshot");
    log[0]["id"].as_str().unwrap().to_owned()
}

fn only(lines: Vec<Value>, code: &str) -> Value {
    let mut lines: Vec<_> = lines.into_iter().filter(|line| line["code"] == code).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

#[test]
fn req_98_doctor_never_copies_a_damaged_lorebook() {
    for damage in DAMAGES {
        let (sandbox, main, _) = family();
        sandbox.write(&main.book_path(), damage);
        let answer = sandbox.json(&["doctor"]).exits(1);
        let repairs = answer.of_type("repair");
        assert!(repairs.iter().all(|it| it["code"] != "lorebook-shared"), "{repairs:?}");
        let remedy = of_code(&sandbox, "lorebook-shared").remove(0)["remedy"].clone();
        assert!(
            remedy.as_str().unwrap().contains("it is damaged, so repair it first;"),
            "{remedy}"
        );
        let before = sandbox.files();
        sandbox.json(&["doctor", "--fix", "--yes"]).exits(1);
        assert_same(&sandbox.files(), &before);
    }
    // Neither by its name nor as the parent's book.
    let sandbox = Sandbox::empty();
    sandbox.write(LORE, "");
    write_chat(&sandbox, "chats/A/main", Some("Lore"), "");
    write_chat(&sandbox, "chats/A/fork", Some("Lost"), r#","main_chat":"main""#);
    let answer = sandbox.json(&["doctor", "--fix", "--yes", "--repair", "clone"]).exits(1);
    assert!(answer.of_type("repair").is_empty());
    let error = sandbox.json(&["doctor", "--clone-of", "Lore"]).exits(1).of_type("error").remove(0);
    assert_eq!(error["message"], "cannot copy worlds/Lore.json: it is empty");
    assert!(!sandbox.path("worlds/Lost.json").exists());
}

#[test]
fn req_98_doctor_offers_the_latest_valid_version_of_a_damaged_lorebook() {
    for damage in DAMAGES {
        let mut sandbox = stored();
        let valid = head(&sandbox, "worlds/Lore");
        let good = sandbox.read(LORE);
        sandbox.write(LORE, damage);
        // Also if the damage is in a snapshot.
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        let answer = sandbox.json(&["doctor"]).exits(1);
        let broken = only(answer.of_type("finding"), "lorebook-broken");
        assert_eq!((&broken["level"], &broken["subject"]), (&json!("error"), &json!(LORE)));
        assert_eq!(broken["snapshot"], valid.as_str());
        let named = format!("snapshot {} of 2026-", &valid[..10]);
        let remedy = broken["remedy"].as_str().unwrap();
        assert!(
            remedy.starts_with("run `stvc restore \"worlds/Lore\" --overwrite` to restore it"),
            "{remedy}"
        );
        assert!(remedy.contains(&named), "{remedy}");
        let repair = only(answer.of_type("repair"), "lorebook-broken");
        assert!(repair["what"].as_str().unwrap().contains(&named), "{repair}");
        let after = fix(&sandbox, &[], &[LORE]);
        assert_eq!(after[LORE], good);
        assert_eq!(look(&sandbox, 0), []);
    }
}

#[test]
fn req_98_damaged_files_are_errors_with_the_command_that_repairs_them() {
    for damage in DAMAGES {
        let mut sandbox = stored();
        let valid = head(&sandbox, "chats/A/a");
        let good = sandbox.read(CHAT);
        sandbox.write(CHAT, damage);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        let answer = sandbox.json(&["doctor"]).exits(1);
        let is_of_chat = |line: &&Value| line["subject"] == CHAT && line["level"] == "error";
        let findings = answer.of_type("finding");
        let found = findings.iter().find(is_of_chat).unwrap();
        assert_eq!(found["snapshot"], valid.as_str());
        let remedy = found["remedy"].as_str().unwrap();
        let command = remedy.split('`').nth(1).unwrap();
        assert_eq!(command, "stvc restore \"chats/A/a\" --overwrite");
        assert!(remedy.contains(&format!("snapshot {} of 2026-", &valid[..10])), "{remedy}");
        sandbox.stvc(&["restore", "chats/A/a", "--overwrite"]).exits(0);
        assert_eq!(sandbox.read(CHAT), good);
        look(&sandbox, 0);
    }
    // Without any snapshot it is still an error.
    for damage in DAMAGES {
        let sandbox = Sandbox::empty();
        sandbox.write(CHAT, damage);
        let answer = sandbox.json(&["doctor"]).exits(1);
        assert!(answer.stdout.contains("no snapshot has a valid version"), "{}", answer.stdout);
        // A lorebook that no chat is bound to.
        let sandbox = Sandbox::empty();
        sandbox.write(LORE, damage);
        sandbox.json(&["doctor"]).exits(1);
    }
}

#[test]
fn doctor_suggests_a_working_restore_command_for_an_unreadable_chat() {
    let sandbox = stored();
    let good = sandbox.read(CHAT);
    fs::remove_file(sandbox.path(LORE)).unwrap();
    fs::create_dir(sandbox.path(LORE)).unwrap();
    let found = of_code(&sandbox, "unreadable").remove(0);
    let remedy = found["remedy"].as_str().unwrap();
    assert!(remedy.contains("`stvc restore \"chats/A/a\" --as \"a (restored)\"`"), "{remedy}");
    sandbox.stvc(&["restore", "chats/A/a", "--as", "a (restored)"]).exits(0);
    let copy = sandbox.read("chats/A/a (restored).jsonl");
    let body = |bytes: &[u8]| String::from_utf8_lossy(bytes).split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(&copy), body(&good));
}

/// SillyTavern 1.12 writes a group chat without messages as an empty file.
#[test]
fn empty_group_chat_is_an_error_only_if_it_had_messages() {
    let mut sandbox = Sandbox::empty();
    sandbox.write("groups/1.json", r#"{"id":"1","chats":["g"],"chat_id":"g"}"#);
    sandbox.write("group chats/g.jsonl", "");
    sandbox.json(&["doctor"]).exits(0);
    sandbox.write("group chats/g.jsonl", r#"{"name":"A","mes":"a"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("group chats/g.jsonl", "");
    sandbox.json(&["doctor"]).exits(1);
}

#[test]
fn req_98_restore_by_name_skips_damaged_snapshots() {
    for damage in DAMAGES {
        let mut sandbox = stored();
        let valid = head(&sandbox, "chats/A/a");
        let good = (sandbox.read(CHAT), sandbox.read(LORE));
        for more in ["", " "] {
            sandbox.write(CHAT, [damage, more.as_bytes()].concat());
            sandbox.stvc(&["snapshot"]).exits(0);
            sandbox.wait(60);
        }
        let damaged = head(&sandbox, "chats/A/a");
        let plan = sandbox.json(&["restore", "chats/A/a", "--overwrite", "--dry-run"]).exits(0);
        let passed = only(plan.of_type("finding"), "damage-passed-over");
        let message = passed["message"].as_str().unwrap();
        let from = format!("the file of snapshot {} of 2026-", &valid[..10]);
        assert!(message.starts_with(&from), "{message}");
        assert!(message.contains("2 newer snapshots are skipped"), "{message}");
        assert!(message.contains(&damaged[..10]), "{message}");
        let answer = sandbox.json(&["restore", "chats/A/a", "--overwrite"]).exits(0);
        let snapshots = answer.of_type("snapshot");
        assert!(snapshots.iter().any(|it| it["source"] == valid.as_str()), "{snapshots:?}");
        assert_eq!((sandbox.read(CHAT), sandbox.read(LORE)), good);
        // An id means exactly that snapshot.
        sandbox.wait(60);
        let answer = sandbox.json(&["restore", &damaged, "--overwrite"]).exits(0);
        assert!(!answer.stdout.contains("damage-passed-over"), "{}", answer.stdout);
        assert_eq!(sandbox.read(CHAT), [damage, b" "].concat());
    }
}

/// The chat grows while its lorebook is damaged: the repair keeps the new messages.
#[test]
fn restore_by_name_pairs_the_latest_chat_with_the_latest_valid_lorebook() {
    let mut sandbox = stored();
    let good = sandbox.read(LORE);
    sandbox.write(LORE, [0; 80]);
    sandbox.append(CHAT, r#"{"name":"A","mes":"and more"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    let chat = sandbox.read(CHAT);
    sandbox.wait(60);
    let answer = sandbox.stvc(&["restore", "chats/A/a", "--overwrite"]).exits(0);
    assert!(answer.stderr.contains("chats/A/a: the lorebook of snapshot"), "{}", answer.stderr);
    assert_eq!((sandbox.read(CHAT), sandbox.read(LORE)), (chat.clone(), good.clone()));
    // A copy uses it too.
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(LORE), [0; 80]);
    sandbox.stvc(&["fork", "chats/A/a", "--as", "other"]).exits(0);
    let copy = sandbox.json(&["log", "chats/A/other"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(sandbox.read(&format!("worlds/{}.json", copy["lorebook"].as_str().unwrap())), good);
    // `restore --all` does too.
    sandbox.wait(60);
    sandbox.write(CHAT, "");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "--all", "--overwrite"]);
    assert_eq!((sandbox.read(CHAT), sandbox.read(LORE)), (chat, good));
}

const GROUP: &str = "groups/1.json";

/// Creates a group with a chat, and a snapshot of both.
fn stored_group() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(GROUP, r#"{"id":"1","name":"Party","chats":["g"],"chat_id":"g"}"#);
    sandbox.write("group chats/g.jsonl", chat("g", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox
}

#[test]
fn damaged_group_file_is_repaired_from_latest_valid_snapshot() {
    for damage in DAMAGES {
        for repair in [
            &["doctor", "--fix", "--yes"][..],
            &["restore", "groups/1", "--overwrite"],
            &["restore", "--all", "--overwrite"],
        ] {
            let mut sandbox = stored_group();
            let (valid, good) = (head(&sandbox, "groups/1"), sandbox.read(GROUP));
            sandbox.write(GROUP, damage);
            let status =
                only(sandbox.json(&["status"]).exits(0).of_type("finding"), "file-damaged");
            assert_eq!(status["snapshot"], valid.as_str());
            // The damage is stored, and new messages of the group chat too.
            sandbox.append("group chats/g.jsonl", r#"{"name":"A","mes":"more"}"#);
            let taken = sandbox.json(&["snapshot"]).exits(0);
            assert_eq!(taken.of_type("summary")[0]["taken"], 2, "{taken:?}");
            sandbox.wait(60);
            let answer = sandbox.json(&["doctor"]).exits(1);
            let found = only(answer.of_type("finding"), "file-damaged");
            assert_eq!((&found["level"], &found["subject"]), (&json!("error"), &json!(GROUP)));
            let remedy = found["remedy"].as_str().unwrap();
            let command = "run `stvc restore \"groups/1\" --overwrite` to restore it from snapshot";
            assert!(remedy.starts_with(command) && remedy.contains(&valid[..10]), "{remedy}");
            // A damaged group may list the chat.
            assert!(!answer.stdout.contains("group-chat-unlisted"), "{}", answer.stdout);
            sandbox.stvc(repair).exits(0);
            assert_eq!(sandbox.read(GROUP), good, "{repair:?}");
            assert_eq!(look(&sandbox, 0), []);
            sandbox.stvc(&["undo"]).exits(0);
            assert_eq!(sandbox.read(GROUP), damage, "{repair:?}");
        }
    }
}

#[test]
fn refused_restore_of_a_group_does_not_suggest_another_name() {
    let mut sandbox = stored_group();
    sandbox.write(GROUP, "");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let refused = sandbox.stvc(&["restore", "groups/1"]).exits(4);
    assert!(refused.stderr.contains("--overwrite`"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("--as"), "{}", refused.stderr);
}

#[test]
fn damaged_settings_and_cards_are_restored_from_valid_snapshots() {
    let picture = [&b"\x89PNG\r\n\x1a\n"[..], b"\0\0\0\0IEND\xae\x42\x60\x82"].concat();
    for (path, name, good, damage) in [
        ("settings.json", "settings", &br#"{"a":1}"#[..], &b"{\"a\":"[..]),
        ("characters/A.png", "characters/A", &picture, &picture[..10]),
        ("User Avatars/a.png", "User Avatars/a", &picture, b""),
        ("User Avatars/a.png", "User Avatars/a", &picture, &[0; 20]),
    ] {
        let mut sandbox = Sandbox::empty();
        sandbox.write(CHAT, chat("a", 3, None));
        sandbox.stvc(&["init"]).exits(0);
        for kind in ["settings", "personas", "characters"] {
            sandbox.stvc(&["config", &format!("include.{kind}"), "true"]).exits(0);
        }
        sandbox.write(path, good);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.write(path, damage);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        let found = only(sandbox.json(&["doctor"]).exits(1).of_type("finding"), "file-damaged");
        assert_eq!(found["subject"], path);
        sandbox.stvc(&["restore", name, "--overwrite"]).exits(0);
        assert_eq!(sandbox.read(path), good);
    }
}

#[test]
fn commands_do_not_suggest_a_valid_snapshot_that_does_not_exist() {
    for (path, name) in [(CHAT, "chats/A/a"), (LORE, "worlds/Lore"), (GROUP, "groups/1")] {
        for damage in DAMAGES {
            let sandbox = Sandbox::empty();
            sandbox.write("chats/A/b.jsonl", chat("b", 3, Some("Lore")));
            sandbox.write(LORE, BOOK);
            sandbox.write(path, damage);
            for command in [
                &["status"][..],
                &["snapshot"],
                &["status"],
                &["restore", name],
                &["restore", name, "--overwrite"],
                &["fork", "chats/A/b"],
                &["doctor"],
            ] {
                let answer = sandbox.stvc(command);
                let words = format!("{}{}", answer.stdout, answer.stderr);
                assert!(!words.contains("latest valid snapshot"), "{command:?}: {words}");
                assert!(!words.contains(", the latest valid version"), "{command:?}: {words}");
            }
        }
    }
}

#[test]
fn status_reports_a_damaged_lorebook_only_once() {
    let sandbox = stored();
    sandbox.write(LORE, "");
    sandbox.append(CHAT, r#"{"name":"A","mes":"and more"}"#);
    only(sandbox.json(&["status"]).exits(0).of_type("finding"), "lorebook-broken");
    let words = sandbox.stvc(&["status"]).exits(0);
    let words = format!("{}{}", words.stdout, words.stderr);
    assert!(!words.contains("also applies to"), "{words}");
}

#[test]
fn doctor_does_not_use_snapshots_that_were_undone() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(LORE, BOOK);
    write_chat(&sandbox, "chats/A/a", Some("Lore"), "");
    sandbox.stvc(&["snapshot"]).exits(0);
    let kept = head(&sandbox, "worlds/Lore");
    sandbox.wait(60);
    sandbox.write(LORE, BOOK.replace("Rain", "Never"));
    sandbox.append(CHAT, r#"{"name":"A","mes":"more"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    fs::remove_file(sandbox.path(LORE)).unwrap();
    let missing = of_code(&sandbox, "lorebook-missing").remove(0);
    assert!(missing["remedy"].as_str().unwrap().contains(&kept[..10]), "{missing}");
    let after = fix(&sandbox, &[], &[LORE]);
    assert_eq!(after[LORE], BOOK.as_bytes());

    // All snapshots are undone: nothing is known.
    let sandbox = Sandbox::empty();
    sandbox.write(LORE, BOOK);
    write_chat(&sandbox, "chats/A/a", Some("Lore"), "");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    fs::remove_file(sandbox.path(LORE)).unwrap();
    let missing = of_code(&sandbox, "lorebook-missing").remove(0);
    assert!(missing["remedy"].as_str().unwrap().contains("no snapshot has it"), "{missing}");
}

/// Creates a chat whose lorebook is missing and was never stored.
fn undecided() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(LORE, BOOK);
    write_chat(&sandbox, "chats/A/main", Some("Lore"), "");
    write_chat(&sandbox, "chats/A/fork", Some("Lost"), r#","main_chat":"main""#);
    sandbox
}

#[test]
fn doctor_asks_the_user_to_choose_a_repair_on_a_terminal() {
    if !has_terminal() {
        return;
    }
    let typed = |typed: &str| {
        let sandbox = undecided();
        let answer = typed_on_terminal(&sandbox, &["doctor", "--fix"], &[], typed);
        (sandbox.files(), answer)
    };
    let (files, answer) = typed("e\n");
    for way in ["e: create worlds/Lost.json", "c: create", "d: unbind", "o: copy another lorebook"]
    {
        assert!(answer.stdout.contains(way), "{}", answer.stdout);
    }
    assert_eq!(answer.code, 0, "{}", answer.stdout);
    assert_eq!(files["worlds/Lost.json"], b"{\n    \"entries\": {}\n}");
    assert_eq!(typed("c\n").0["worlds/Lost.json"], BOOK.as_bytes());
    let (files, answer) = typed("o\nNone such\nLore\n");
    assert!(answer.stdout.contains("there is no lorebook \"None such\""), "{}", answer.stdout);
    assert_eq!(files["worlds/Lost.json"], BOOK.as_bytes());
    let (files, _) = typed("d\n");
    assert!(String::from_utf8_lossy(&files["chats/A/fork.jsonl"]).contains("\"world_info\":null"));
    let (files, answer) = typed("\n");
    assert_same(&files, &undecided().files());
    assert!(answer.stdout.contains("Nothing was changed."), "{}", answer.stdout);
    assert!(!answer.stdout.contains("Nothing to repair"), "{}", answer.stdout);
}

#[test]
fn doctor_lists_the_repair_options_when_there_is_no_terminal() {
    let sandbox = undecided();
    for options in [&["doctor", "--fix"][..], &["doctor", "--fix", "--yes"]] {
        let answer = sandbox.stvc(options).exits(1);
        assert!(!answer.stdout.contains("Nothing to repair"), "{}", answer.stdout);
        let choose = "1 missing lorebook can be repaired in several ways: choose one with `--repair` or `--clone-of`";
        assert!(answer.stdout.contains(choose), "{}", answer.stdout);
    }
}

#[test]
fn doctor_keeps_lorebooks_while_the_chats_folder_is_missing() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Harbour.json", r#"{"entries":{}}"#);
    sandbox.write("chats/Mira/a.jsonl", chat("a", 3, Some("Harbour")));
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::rename(sandbox.path("chats"), sandbox.folder().join("elsewhere")).unwrap();
    sandbox.stvc(&["doctor", "--fix", "--yes"]);
    assert!(sandbox.path("worlds/Harbour.json").exists());
}
