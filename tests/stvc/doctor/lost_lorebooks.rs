//! Missing lorebooks, and unused ones.

use std::fs;

use serde_json::Value;
use stvc::api::{BackgroundJobs, Request, Rights, serve};

use super::{BOOK, fix, found, look, of_code, write_chat};
use crate::common::recap_library::RecapLibrary;
use crate::common::{Sandbox, assert_same};

const EMPTY: &str = "{\n    \"entries\": {}\n}";

/// S2 T3: the lorebook of a checkpoint was deleted by hand.
#[test]
fn req_24_missing_lorebook_is_restored_from_the_store() {
    let mut sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let newest = main.book_bytes().replace("Wet stones.", "Dry stones.");
    sandbox.write(&main.book_path(), &newest);
    sandbox.stvc(&["snapshot"]).exits(0);
    // The latest content counts, whoever wrote it.
    sandbox.wait(60);
    write_chat(&sandbox, "chats/B/other", main.book.as_deref(), "");
    sandbox.write(&main.book_path(), BOOK);
    sandbox.stvc(&["snapshot", "chats/B/other"]).exits(0);
    fs::remove_file(sandbox.path("chats/B/other.jsonl")).unwrap();
    fs::remove_file(sandbox.path(&main.book_path())).unwrap();

    assert_eq!(
        look(&sandbox, 1),
        [("lorebook-missing".into(), "chats/Mira/Harbour nights".into())]
    );
    let missing = of_code(&sandbox, "lorebook-missing").remove(0);
    assert_eq!(missing["level"], "error");
    assert!(missing["remedy"].as_str().unwrap().contains("to restore it from snapshot"));
    let after = fix(&sandbox, &[], &[&main.book_path()]);
    assert_eq!(String::from_utf8_lossy(&after[&main.book_path()]), BOOK);
    // Earlier contents are in its history.
    let former = sandbox.stvc(&[
        "diff",
        "worlds/z-AutoLB-Mira-Harbour nights~1",
        "worlds/z-AutoLB-Mira-Harbour nights",
    ]);
    assert!(former.exits(0).stdout.contains("Dry stones"));
    look(&sandbox, 0);
}

#[test]
fn req_24_missing_lorebook_without_a_snapshot_is_reported() {
    let broken = || {
        let sandbox = Sandbox::empty();
        sandbox.write("worlds/Lore.json", BOOK);
        write_chat(&sandbox, "chats/A/main", Some("Lore"), "");
        let more = r#", "main_chat": "main.jsonl", "n": 1"#;
        write_chat(&sandbox, "chats/A/fork", Some("Lost: it?"), more);
        sandbox
    };
    let sandbox = broken();
    let missing = of_code(&sandbox, "lorebook-missing").remove(0);
    for choice in ["--repair empty", "--repair clone", "--clone-of", "--repair detach"] {
        assert!(missing["remedy"].as_str().unwrap().contains(choice), "{missing}");
    }
    // Without a choice nothing changes, and the error stays.
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(1);
    let choices: Vec<_> = answer.of_type("repair").iter().map(|it| it["choice"].clone()).collect();
    assert_eq!(choices, ["empty", "clone", "detach"]);
    assert!(answer.of_type("repair").iter().all(|repair| repair["done"] == false));
    assert_same(&sandbox.files(), &before);

    let after = fix(&sandbox, &["--repair", "empty"], &["worlds/Lost it.json"]);
    assert_eq!(after["worlds/Lost it.json"], EMPTY.as_bytes());
    assert_eq!(look(&sandbox, 0), []);
    // SillyTavern and the extension use it: a snapshot has no finding.
    assert_eq!(found(&sandbox.json(&["snapshot"]).exits(0)), []);

    let sandbox = broken();
    let after = fix(&sandbox, &["--repair", "clone"], &["worlds/Lost it.json"]);
    assert_eq!(after["worlds/Lost it.json"], BOOK.as_bytes());

    let sandbox = broken();
    let before = String::from_utf8(sandbox.read("chats/A/fork.jsonl")).unwrap();
    let after = fix(&sandbox, &["--repair", "detach"], &["chats/A/fork.jsonl"]);
    assert_eq!(
        String::from_utf8_lossy(&after["chats/A/fork.jsonl"]),
        before.replace("\"Lost: it?\"", "null")
    );
    assert_eq!(look(&sandbox, 0), [] as [(String, String); 0]);

    // A copy of another book.
    let sandbox = broken();
    sandbox.write("worlds/Third.json", BOOK.replace("Rain", "Snow"));
    sandbox.stvc(&["doctor", "--clone-of", "No such"]).exits(1);
    sandbox.stvc(&["doctor", "--clone-of", "Third", "--repair", "empty"]).exits(2);
    let after = fix(&sandbox, &["--clone-of", "Third"], &["worlds/Lost it.json"]);
    assert_eq!(after["worlds/Lost it.json"], after["worlds/Third.json"]);

    // A chat that is not a fork has nothing to clone; a name that is not a file name can only be
    // removed.
    let sandbox = Sandbox::empty();
    write_chat(&sandbox, "chats/A/alone", Some("Lost"), "");
    write_chat(&sandbox, "chats/A/odd", Some("con"), "");
    for repair in ["clone", "empty", "detach"] {
        let answer = sandbox.json(&["doctor", "--repair", repair]).exits(1);
        let files: Vec<_> =
            answer.of_type("repair").iter().map(|line| line["files"][0].clone()).collect();
        let expected: &[&str] = match repair {
            "clone" => &[],
            "empty" => &["worlds/Lost.json"],
            _ => &["chats/A/alone.jsonl", "chats/A/odd.jsonl"],
        };
        assert_eq!(files, expected, "{repair}");
    }
}

/// S2 T4: the checkpoint was deleted, its lorebook was not.
#[test]
fn req_21_lorebook_of_a_deleted_checkpoint_is_removed() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    sandbox.write("worlds/Of the checkpoint.json", BOOK);
    write_chat(&sandbox, "chats/A/main", Some("Lore"), "");
    write_chat(&sandbox, "chats/A/point", Some("Of the checkpoint"), r#","main_chat":"main""#);
    assert_eq!(look(&sandbox, 0), []);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path("chats/A/point.jsonl")).unwrap();
    let orphan = of_code(&sandbox, "lorebook-orphaned").remove(0);
    assert_eq!(orphan["subject"], "worlds/Of the checkpoint.json");
    let message = orphan["message"].as_str().unwrap();
    assert!(
        message.contains("it was the lorebook of chats/A/point, which no longer exists"),
        "{message}"
    );
    // A cleanup of the store deletes no file.
    let before = sandbox.files();
    sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"]).exits(0);
    assert_same(&sandbox.files(), &before);
    fix(&sandbox, &[], &["worlds/Of the checkpoint.json"]);
    assert_eq!(look(&sandbox, 0), []);
    // The store still has both.
    sandbox.stvc(&["restore", "chats/A/point"]).exits(0);
    assert_eq!(sandbox.read("worlds/Of the checkpoint.json"), BOOK.as_bytes());
}

/// S2 T5: two checkpoints share one lorebook.
#[test]
fn req_23_lorebook_is_kept_while_a_chat_uses_it() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/z-AutoLB-A-one.json", BOOK);
    for chat in ["one", "two"] {
        let more = r#","main_chat":"main""#;
        write_chat(&sandbox, &format!("chats/A/{chat}"), Some("z-AutoLB-A-one"), more);
    }
    let orphans = || of_code(&sandbox, "lorebook-orphaned").len();
    assert_eq!(orphans(), 0);
    fs::remove_file(sandbox.path("chats/A/one.jsonl")).unwrap();
    assert_eq!(orphans(), 0);
    sandbox.stvc(&["doctor", "--fix", "--yes", "--orphans"]).exits(0);
    assert!(sandbox.path("worlds/z-AutoLB-A-one.json").exists());
    fs::remove_file(sandbox.path("chats/A/two.jsonl")).unwrap();
    assert_eq!(orphans(), 1);
    fix(&sandbox, &[], &["worlds/z-AutoLB-A-one.json"]);
}

#[test]
fn req_22_checkpoint_lorebook_maps_are_read() {
    let sandbox = Sandbox::empty();
    for book in ["Copy", "Other copy", "Mine"] {
        sandbox.write(&format!("worlds/{book}.json"), BOOK);
    }
    let map = r#","auto_recap":{"checkpoint_lorebook_map":{"Point 1":"Copy"}},"checkpoint_lorebook_mappings":{"P":"Other copy"}"#;
    write_chat(&sandbox, "chats/A/main", None, map);
    let orphans = of_code(&sandbox, "lorebook-orphaned");
    assert_eq!(orphans.len(), 3);
    assert!(orphans[0]["message"].as_str().unwrap().contains("the checkpoint \"Point 1\""));
    // Kept unless the user asks for removal.
    fix(&sandbox, &[], &["chats/A/main.jsonl", "worlds/Copy.json", "worlds/Other copy.json"]);
    assert_eq!(look(&sandbox, 0), [("lorebook-orphaned".into(), "worlds/Mine.json".into())]);
    fix(&sandbox, &["--orphans"], &["worlds/Mine.json"]);
}

#[test]
fn lorebook_replaced_by_the_user_is_not_orphaned() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/First.json", BOOK);
    sandbox.write("worlds/Second.json", BOOK);
    write_chat(&sandbox, "chats/A/a", Some("First"), "");
    sandbox.stvc(&["snapshot"]).exits(0);
    write_chat(&sandbox, "chats/A/a", Some("Second"), "");
    let orphan = of_code(&sandbox, "lorebook-orphaned").remove(0);
    assert!(orphan["message"].as_str().unwrap().contains("it was once the lorebook of chats/A/a"));
    let answer = sandbox.json(&["doctor"]).exits(0);
    assert!(answer.of_type("repair").is_empty());
}

#[test]
fn doctor_removes_no_lorebook_while_a_file_is_unreadable() {
    type Damage = (&'static str, &'static [u8]);
    let damages: &[Damage] = &[
        ("settings.json", b"{\"torn"),
        ("settings.json", b"[]"),
        ("characters/A.png", b""),
        ("characters/A.png", b"\x89PNG\r\n\x1a\n\xff\xff\xff\xfftEXtchara\0e30="),
        ("characters/A.png", b"\x89PNG\r\n\x1a\n\0\0\0\x09tEXtchara\0{{{"),
        ("characters/A.png", b"GIF89a"),
        ("groups/1.json", b"not a group"),
        ("chats/A/broken.jsonl", b"{\"chat_metadata\":{\"world_info\":\"z-AutoLB-lost\""),
    ];
    for (path, bytes) in damages {
        let sandbox = Sandbox::empty();
        sandbox.write("worlds/z-AutoLB-lost.json", BOOK);
        assert_eq!(of_code(&sandbox, "lorebook-orphaned").len(), 1);
        assert_eq!(sandbox.json(&["doctor"]).exits(0).of_type("repair").len(), 1);
        sandbox.write(path, bytes);
        let before = sandbox.files();
        let answer = sandbox.json(&["doctor", "--fix", "--yes", "--orphans"]);
        assert!([0, 1].contains(&answer.code), "{answer:?}");
        let codes = found(&answer);
        assert!(codes.contains(&("references-unknown".into(), (*path).into())), "{codes:?}");
        assert!(codes.iter().any(|(code, _)| code == "lorebook-orphaned"));
        assert!(answer.of_type("repair").is_empty());
        assert_same(&sandbox.files(), &before);
    }
}

#[test]
fn lorebook_used_by_a_card_persona_or_all_chats_is_not_orphaned() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    assert_eq!(of_code(&sandbox, "lorebook-orphaned"), [] as [Value; 0]);
    fs::remove_dir_all(sandbox.path("characters")).unwrap();
    assert_eq!(of_code(&sandbox, "lorebook-orphaned")[0]["subject"], "worlds/Snow Shrine.json");
    let settings = [
        r#"{"world_info_settings":{"world_info":{"globalSelect":["Snow Shrine"]}}}"#,
        r#"{"world_info_settings":{"world_info":{"charLore":[{"name":"x","extraBooks":["Snow Shrine"]}]}}}"#,
        r#"{"power_user":{"persona_description_lorebook":"Snow Shrine"}}"#,
        r#"{"power_user":{"persona_descriptions":{"me.png":{"lorebook":"Snow Shrine"}}}}"#,
    ];
    for settings in settings {
        sandbox.write("settings.json", settings);
        assert_eq!(of_code(&sandbox, "lorebook-orphaned"), [] as [Value; 0], "{settings}");
    }
}

#[test]
fn req_96_doctor_removes_the_map_entry_with_the_orphaned_lorebook() {
    let sandbox = Sandbox::empty();
    for book in ["Copy", "Other"] {
        sandbox.write(&format!("worlds/{book}.json"), BOOK);
    }
    let map = |entries: &str| {
        format!(r#","auto_recap":{{"x" : 1, "checkpoint_lorebook_map":{{{entries}}}}},"after":2"#)
    };
    let both = map(r#""Point 1":"Copy", "Point 2":"Other""#);
    write_chat(&sandbox, "chats/A/main", None, &both);
    write_chat(&sandbox, "chats/A/Point 2", Some("Other"), r#","main_chat":"main""#);
    let main = "chats/A/main.jsonl";
    let before = String::from_utf8(sandbox.read(main)).unwrap();
    let after = fix(&sandbox, &[], &[main, "worlds/Copy.json"]);
    let expected = before.replace(&both, &map(r#""Point 2":"Other""#));
    assert_eq!(String::from_utf8_lossy(&after[main]), expected);
    assert_eq!(look(&sandbox, 0), []);

    // SillyTavern 1.12 stores the metadata of group chats in the group's file.
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Copy.json", BOOK);
    sandbox.write("group chats/g.jsonl", r#"{"name":"A","mes":"a"}"#);
    let group = |entries: &str| {
        let map = format!(r#"{{"checkpoint_lorebook_mappings": {{{entries}}}}}"#);
        format!(r#"{{"id": "1", "chats": ["g"], "chat_id": "g", "chat_metadata": {map}}}"#)
    };
    sandbox.write("groups/1.json", group(r#""gone": "Copy""#));
    let after = fix(&sandbox, &[], &["groups/1.json", "worlds/Copy.json"]);
    assert_eq!(String::from_utf8_lossy(&after["groups/1.json"]), group(""));
}

#[test]
fn req_96_lorebook_of_existing_checkpoint_is_never_removed() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/z-AutoLB-Copy.json", BOOK);
    let map = r#","checkpoint_lorebook_map":{"Point":"z-AutoLB-Copy","Gone":"z-AutoLB-Copy"}"#;
    write_chat(&sandbox, "chats/A/main", None, map);
    // The checkpoint's own metadata lost the name.
    write_chat(&sandbox, "chats/A/Point", None, r#","main_chat":"main""#);
    assert_eq!(look(&sandbox, 0), []);
    let before = sandbox.files();
    sandbox.json(&["doctor", "--fix", "--yes", "--orphans"]).exits(0);
    assert_same(&sandbox.files(), &before);
    // A damaged chat may use any lorebook.
    sandbox.write("chats/A/Point.jsonl", "");
    sandbox.write("chats/A/main.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}");
    let before = sandbox.files();
    sandbox.json(&["doctor", "--fix", "--yes", "--orphans"]).exits(1);
    assert_same(&sandbox.files(), &before);
    fs::remove_file(sandbox.path("chats/A/Point.jsonl")).unwrap();
    fix(&sandbox, &[], &["worlds/z-AutoLB-Copy.json"]);
}

#[test]
fn req_96_orphaned_lorebooks_appear_in_status_and_in_the_viewer() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Of the checkpoint.json", BOOK);
    sandbox.write("worlds/Mine.json", BOOK);
    write_chat(&sandbox, "chats/A/point", Some("Of the checkpoint"), "");
    sandbox.stvc(&["snapshot"]).exits(0);
    let orphans = |command: &str| -> Vec<Value> {
        let lines = sandbox.json(&[command]).exits(0).of_type("finding");
        lines.into_iter().filter(|line| line["code"] == "lorebook-orphaned").collect()
    };
    assert!(orphans("status").is_empty());
    fs::remove_file(sandbox.path("chats/A/point.jsonl")).unwrap();
    let found = orphans("status");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["subject"], "worlds/Of the checkpoint.json");
    assert_eq!(found[0]["level"], "warning");
    let text = sandbox.stvc(&["status"]).exits(0);
    assert!(text.stderr.contains("worlds/Of the checkpoint.json"), "{}", text.stderr);
    // The viewer shows every warning of these answers.
    for request in ["library", "doctor"] {
        let asked = format!(r#"{{"verb":"{request}","args":{{}}}}"#);
        let asked = Request::read(asked.as_bytes()).unwrap();
        let answer = serve(&sandbox.workspace(), &asked, Rights::Read, &BackgroundJobs::default());
        let answer = serde_json::to_value(answer).unwrap();
        let answer = answer["lines"].as_array().unwrap();
        let is_it = |line: &&Value| line["subject"] == "worlds/Of the checkpoint.json";
        let found = answer.iter().find(is_it).unwrap_or_else(|| panic!("{request}: {answer:?}"));
        assert_eq!(
            (&found["code"], &found["level"]),
            (&"lorebook-orphaned".into(), &"warning".into())
        );
    }
}
