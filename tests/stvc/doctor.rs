//! Are chats and lorebooks sound, alone and together; and every repair, done and taken back.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use stvc::engine::files::Closed;
use stvc::progress::Silent;
use stvc::verbs::doctor::{self, Repair};

use crate::common::recap_library::{RecapLibrary, book_name, quoted};
use crate::common::{Answer, Sandbox, assert_same};

/// Look at the library, which must exit so; the codes that were found, each with its subject.
#[track_caller]
fn look(sandbox: &Sandbox, code: i32) -> Vec<(String, String)> {
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor"]).exits(code);
    assert_same(&sandbox.files(), &before);
    found(&answer)
}

fn found(answer: &Answer) -> Vec<(String, String)> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let lines = answer.of_type("finding");
    lines.iter().map(|line| (text(line, "code"), text(line, "subject"))).collect()
}

/// The findings of one code.
#[track_caller]
fn of_code(sandbox: &Sandbox, code: &str) -> Vec<Value> {
    let answer = sandbox.json(&["doctor"]);
    answer.of_type("finding").into_iter().filter(|line| line["code"] == code).collect()
}

/// Repair with these options: `changed` must be the files that it wrote and removed, and undoing it gives every byte back. What the repair made.
#[track_caller]
fn fix(sandbox: &Sandbox, options: &[&str], changed: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let before = sandbox.files();
    let arguments = [&["doctor", "--fix", "--yes"], options].concat();
    let answer = sandbox.json(&arguments).exits(0);
    let after = sandbox.files();
    let paths: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differing: Vec<_> =
        paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert_eq!(differing, changed, "{}", answer.stdout);
    let mut told: Vec<_> = answer.of_type("file").iter().map(|line| line["path"].clone()).collect();
    told.sort_by_key(|path| path.as_str().unwrap().to_owned());
    assert_eq!(told, changed);
    assert!(answer.of_type("repair").iter().all(|line| line["done"] == true));

    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    // And that can be undone in turn.
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    sandbox.stvc(&["undo", &operations[0]["number"].to_string()]).exits(0);
    assert_same(&sandbox.files(), &after);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    after
}

fn header(book: &str, more: &str) -> String {
    format!(r#"{{"chat_metadata":{{"world_info":{book}{more}}}}}"#)
}

const BOOK: &str =
    "{\n    \"entries\": {\n        \"0\": {\"uid\": 0, \"content\": \"Rain.\"}\n    }\n}";

const EMPTY: &str = "{\n    \"entries\": {}\n}";

/// A chat that is bound to a lorebook, or to none.
fn write_chat(sandbox: &Sandbox, name: &str, book: Option<&str>, more: &str) {
    let book = book.map_or("null".into(), quoted);
    let message = format!(r#"{{"name":"A","mes":"{name}"}}"#);
    sandbox.write(&format!("{name}.jsonl"), format!("{}\n{message}", header(&book, more)));
}

/// A main chat with a lorebook, and two forks that share it.
fn family() -> (Sandbox, RecapLibrary, [RecapLibrary; 2]) {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    let forks = [main.fork("Branch #1", 7), main.fork("Dawn: the \"end\"?", 11)];
    let names = ["Branch #1", "Dawn the end"];
    let forks = [0, 1].map(|n| RecapLibrary { chat: names[n].into(), ..forks[n].clone() });
    forks.iter().for_each(|fork| fork.write(&sandbox));
    (sandbox, main, forks)
}

#[test]
fn a_sound_library_has_no_finding() {
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
    assert_eq!(answer.stdout, "All is sound: 3 timelines and 2 lorebooks.\n");
    assert!(!sandbox.store().exists(), "only reading makes no store");
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert!(!sandbox.store().exists(), "nor does it if there is nothing to repair");
}

#[test]
fn req_40_req_62_forks_that_share_a_lorebook_get_their_own() {
    let (sandbox, main, forks) = family();
    let shared = of_code(&sandbox, "lorebook-shared");
    assert_eq!(shared.len(), 1);
    assert_eq!(
        (&shared[0]["level"], &shared[0]["subject"]),
        (&json!("warning"), &json!(main.book_path()))
    );
    let message = shared[0]["message"].as_str().unwrap();
    for user in ["3 chats", "chats/Mira/Harbour nights", "chats/Mira/Branch #1", "Dawn the end"] {
        assert!(message.contains(user), "{message}");
    }
    let before = sandbox.files();
    let own = forks.clone().map(|fork| format!("worlds/{}.json", book_name("Mira", &fork.chat)));
    let after =
        fix(&sandbox, &[], &[&forks[0].chat_path(), &forks[1].chat_path(), &own[0], &own[1]]);
    assert_eq!(after[&main.chat_path()], before[&main.chat_path()]);
    assert_eq!(after[&main.book_path()], before[&main.book_path()]);
    for (fork, own) in forks.iter().zip(&own) {
        assert_eq!(after[own], before[&main.book_path()], "every entry, byte for byte");
        let text = |files: &BTreeMap<String, Vec<u8>>| {
            String::from_utf8(files[&fork.chat_path()].clone()).unwrap()
        };
        let name = book_name("Mira", &fork.chat);
        let named = |key: &str, name: &str| format!("\"{key}\":{}", quoted(name));
        let mut expected = text(&before);
        for key in ["world_info", "lorebookName"] {
            let book = main.book.as_deref().unwrap();
            expected = expected.replacen(&named(key, book), &named(key, &name), 1);
        }
        assert_eq!(text(&after), expected, "the two names, and nothing else");
    }
    let codes = look(&sandbox, 0);
    assert!(codes.iter().all(|(code, _)| code == "recap-foreign"), "{codes:?}");
}

#[test]
fn running_effects_follow_the_lorebook_to_its_new_name() {
    let (sandbox, main, [mut fork, _]) = family();
    let old = main.book.clone().unwrap();
    let new = book_name("Mira", &fork.chat);
    let hash = |book: &str| {
        let entry = &main.entries[0].json;
        stvc::st::effect_hash(stvc::st::Raw::parse_str(entry).unwrap(), book).unwrap()
    };
    let effects = |book: &str| {
        let key = quoted(&format!("{book}.0"));
        format!(
            r#"{{"sticky":{{{key}:{{"hash":{},"start":3,"end":9,"protected":false}}}},"cooldown":{{}}}}"#,
            hash(book)
        )
    };
    fork.more.push(("timedWorldInfo".into(), effects(&old)));
    fork.write(&sandbox);
    sandbox.stvc(&["doctor", "Branch #1", "--fix", "--yes"]).exits(0);
    let text = String::from_utf8(sandbox.read(&fork.chat_path())).unwrap();
    assert!(text.contains(&effects(&new)), "{text}");
}

#[test]
fn only_the_named_chats_are_looked_at_and_repaired() {
    let (sandbox, _, forks) = family();
    write_chat(&sandbox, "chats/Other/x", Some("Nowhere"), "");
    let answer = sandbox.json(&["doctor", "Branch #1"]).exits(0);
    let codes: Vec<_> = found(&answer).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["lorebook-shared", "recap-foreign"]);
    let own = format!("worlds/{}.json", book_name("Mira", "Branch #1"));
    fix(&sandbox, &["Branch #1"], &[&forks[0].chat_path(), &own]);
    sandbox.stvc(&["doctor", "no such chat"]).exits(1);
}

#[test]
fn chats_that_are_no_relatives_may_share_a_lorebook() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    write_chat(&sandbox, "chats/A/a", Some("Lore"), "");
    write_chat(&sandbox, "chats/B/b", Some("Lore"), "");
    assert_eq!(look(&sandbox, 0), [("lorebook-shared".into(), "worlds/Lore.json".into())]);
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(0);
    assert!(answer.of_type("repair").is_empty());
}

#[test]
fn a_parent_that_was_renamed_is_known_by_what_was_said() {
    let (mut sandbox, main, _) = family();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let mut renamed = main.clone();
    renamed.chat = "Another name".into();
    fs::rename(sandbox.path(&main.chat_path()), sandbox.path(&renamed.chat_path())).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    let parents = of_code(&sandbox, "parent-missing");
    assert_eq!(parents.len(), 2);
    let message = parents[0]["message"].as_str().unwrap();
    assert!(message.contains("it comes from chats/Mira/Another name"), "{message}");
    let answer = sandbox.json(&["doctor"]).exits(0);
    let repaired: Vec<_> =
        answer.of_type("repair").iter().map(|line| line["subject"].clone()).collect();
    assert_eq!(
        repaired,
        ["chats/Mira/Branch #1", "chats/Mira/Dawn the end", "chats/Mira/Another name"]
    );
}

/// SillyTavern 1.12 keeps the metadata of group chats in the group's file.
#[test]
fn metadata_in_a_group_s_file_is_changed_there() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    for chat in ["main", "one", "two"] {
        sandbox.write(&format!("group chats/{chat}.jsonl"), format!(r#"{{"mes":"{chat}"}}"#));
    }
    let metadata =
        |name: &str, main: &str| format!("{{\"world_info\": \"{name}\"{main}, \"x\": 1}}");
    let group = |one: &str, two: &str| {
        let main = r#", "main_chat": "main""#;
        format!(
            "{{\n  \"chats\": [\"main\", \"one\", \"two\"], \"chat_id\": \"main\",\n  \"chat_metadata\": {},\n  \"past_metadata\": {{\"one\": {}, \"two\": {}}}\n}}",
            metadata("Lore", ""),
            metadata(one, main),
            metadata(two, main)
        )
    };
    sandbox.write("groups/1.json", group("Lore", "Lore"));
    let after =
        fix(&sandbox, &[], &["groups/1.json", "worlds/Lore - one.json", "worlds/Lore - two.json"]);
    assert_eq!(String::from_utf8_lossy(&after["groups/1.json"]), group("Lore - one", "Lore - two"));
    assert_eq!(look(&sandbox, 0), []);
}

/// Two forks of one name in two folders, and a lorebook that has the name already.
#[test]
fn copies_get_names_of_their_own() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    sandbox.write("worlds/lore - fork.json", "somebody's");
    write_chat(&sandbox, "chats/Z/bound", Some("lore - fork"), "");
    for folder in ["A", "B"] {
        write_chat(&sandbox, &format!("chats/{folder}/main"), Some("Lore"), "");
        let more = r#","main_chat":"main""#;
        write_chat(&sandbox, &format!("chats/{folder}/fork"), Some("Lore"), more);
    }
    sandbox.json(&["doctor", "--fix", "--yes"]).exits(0);
    let bound = |chat: &str| -> String {
        let text = String::from_utf8(sandbox.read(chat)).unwrap();
        let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        header["chat_metadata"]["world_info"].as_str().unwrap().to_owned()
    };
    let books = [bound("chats/A/fork.jsonl"), bound("chats/B/fork.jsonl")];
    assert_ne!(books[0].to_lowercase(), books[1].to_lowercase());
    for book in books {
        assert_eq!(sandbox.read(&format!("worlds/{book}.json")), BOOK.as_bytes());
        assert_ne!(book.to_lowercase(), "lore - fork");
    }
    assert_eq!(sandbox.read("worlds/lore - fork.json"), b"somebody's");
}

/// S2 T3: the lorebook of a checkpoint was deleted by hand.
#[test]
fn req_24_a_missing_lorebook_is_brought_back_from_the_store() {
    let mut sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let newest = main.book_bytes().replace("Wet stones.", "Dry stones.");
    sandbox.write(&main.book_path(), &newest);
    sandbox.stvc(&["snapshot"]).exits(0);
    // A newer snapshot of another chat had other things under that name.
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
    assert!(missing["remedy"].as_str().unwrap().contains("brings it back from snapshot"));
    let after = fix(&sandbox, &[], &[&main.book_path()]);
    assert_eq!(String::from_utf8_lossy(&after[&main.book_path()]), newest);
    assert_eq!(look(&sandbox, 0), []);
}

#[test]
fn req_24_a_missing_lorebook_that_nobody_has() {
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
    for choice in ["--repair empty", "--repair clone", "--repair detach"] {
        assert!(missing["remedy"].as_str().unwrap().contains(choice), "{missing}");
    }
    // Without a choice nothing is done, and the error stays.
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(1);
    assert!(answer.of_type("repair").is_empty());
    assert_same(&sandbox.files(), &before);

    let after = fix(&sandbox, &["--repair", "empty"], &["worlds/Lost it.json"]);
    assert_eq!(after["worlds/Lost it.json"], EMPTY.as_bytes());
    assert_eq!(look(&sandbox, 0), []);
    // SillyTavern and the extension go on with it: a snapshot finds nothing wrong.
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

    // A chat that is no fork has nothing to clone; a name that is no file name can only be let go.
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
fn req_21_the_lorebook_of_a_deleted_checkpoint_is_removed() {
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
    assert!(message.contains("it was the lorebook of chats/A/point, which is gone"), "{message}");
    fix(&sandbox, &[], &["worlds/Of the checkpoint.json"]);
    assert_eq!(look(&sandbox, 0), []);
    // The store still brings both back.
    sandbox.stvc(&["restore", "chats/A/point"]).exits(0);
    assert_eq!(sandbox.read("worlds/Of the checkpoint.json"), BOOK.as_bytes());
}

/// S2 T5: two checkpoints, one lorebook.
#[test]
fn req_23_a_lorebook_is_kept_while_one_user_is_left() {
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
fn req_22_maps_from_checkpoints_to_lorebooks_are_read() {
    let sandbox = Sandbox::empty();
    for book in ["Copy", "Other copy", "Mine"] {
        sandbox.write(&format!("worlds/{book}.json"), BOOK);
    }
    let map = r#","auto_recap":{"checkpoint_lorebook_map":{"Point 1":"Copy"}},"checkpoint_lorebook_mappings":{"P":"Other copy"}"#;
    write_chat(&sandbox, "chats/A/main", None, map);
    let orphans = of_code(&sandbox, "lorebook-orphaned");
    assert_eq!(orphans.len(), 3);
    assert!(orphans[0]["message"].as_str().unwrap().contains("the checkpoint \"Point 1\""));
    // What a writer may keep for later is left alone unless asked for.
    fix(&sandbox, &[], &["worlds/Copy.json", "worlds/Other copy.json"]);
    assert_eq!(look(&sandbox, 0), [("lorebook-orphaned".into(), "worlds/Mine.json".into())]);
    fix(&sandbox, &["--orphans"], &["worlds/Mine.json"]);
}

#[test]
fn a_chat_that_chose_another_lorebook_leaves_none_behind() {
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
fn what_cannot_be_read_may_use_any_lorebook() {
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
fn a_lorebook_of_a_card_a_persona_or_all_chats_is_no_orphan() {
    let sandbox = Sandbox::of_fixture("1.19.0");
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
fn req_56_links_to_checkpoints_that_are_gone() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    let dangling = of_code(&sandbox, "checkpoint-link-dangling");
    assert_eq!(dangling.len(), 3);
    for finding in &dangling {
        let message = finding["message"].as_str().unwrap();
        assert!(message.contains("message 22 to \"to be deleted\";"), "{message}");
        assert_eq!(finding["level"], "warning");
    }
    // If the store has it, that is how it comes back.
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
fn req_57_a_fork_whose_parent_is_gone() {
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
    assert_eq!(missing[0]["remedy"], "`stvc restore \"chats/A/main\"` brings it back");
}

#[test]
fn req_61_other_settings_in_a_fork_are_worth_a_note() {
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
fn req_64_the_recap_of_a_renamed_chat_is_told_its_name() {
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

    // The chat that it names is there: whose it is, is not for us to say.
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    RecapLibrary::default().write(&sandbox);
    let answer = sandbox.json(&["doctor"]).exits(0);
    let repairs = answer.of_type("repair");
    assert!(repairs.iter().all(|line| line["code"] != "recap-foreign"), "{repairs:?}");
}

/// One chat's header is changed by two repairs at once.
#[test]
fn several_repairs_of_one_chat_are_made_together() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { chat: "A new name".into(), ..RecapLibrary::default() };
    library.write(&sandbox);
    fs::remove_file(sandbox.path(&library.book_path())).unwrap();
    let before = String::from_utf8(sandbox.read(&library.chat_path())).unwrap();
    let after = fix(&sandbox, &["--repair", "detach"], &[&library.chat_path()]);
    let bound = format!("\"world_info\":{}", quoted(library.book.as_deref().unwrap()));
    assert_eq!(
        String::from_utf8_lossy(&after[&library.chat_path()]),
        before
            .replacen("\"chat_id\":\"Harbour nights\"", "\"chat_id\":\"A new name\"", 1)
            .replacen(&bound, "\"world_info\":null", 1)
    );
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let sandbox = Sandbox::of_fixture("1.12.6");
    sandbox.write("groups/broken.json", "{\"torn");
    // A folder where a lorebook should be.
    fs::create_dir(sandbox.path("worlds/Folder.json")).unwrap();
    write_chat(&sandbox, "chats/A/a", Some("Folder"), "");
    let codes = look(&sandbox, 1);
    for expected in [
        ("unreadable", "groups/broken.json"),
        ("unreadable", "chats/A/a"),
        ("references-unknown", "groups/broken.json"),
    ] {
        assert!(codes.contains(&(expected.0.into(), expected.1.into())), "{codes:?}");
    }
    assert!(codes.iter().any(|(code, _)| code == "lorebook-shared"));
    assert!(!codes.iter().any(|(_, subject)| subject == "worlds/Folder.json"));
}

#[test]
fn broken_lines_and_other_findings_of_single_chats_are_told() {
    let sandbox = Sandbox::of_fixture("odd");
    let codes = look(&sandbox, 0);
    for code in ["chat-line-broken", "chat-bom", "lorebook-broken"] {
        assert!(codes.iter().any(|(found, _)| found == code), "{codes:?}");
    }
    let mut unique = codes.clone();
    unique.dedup();
    assert_eq!(unique, codes, "each is told once, however many chats use the lorebook");
}

#[test]
fn real_libraries_are_repaired_and_taken_back() {
    for version in ["1.19.0", "1.12.6"] {
        for snapshot_first in [false, true] {
            let mut sandbox = Sandbox::of_fixture(version);
            if snapshot_first {
                sandbox.stvc(&["snapshot"]).exits(0);
                sandbox.wait(60);
            }
            let ids = || sandbox.json(&["timelines"]).exits(0).of_type("timeline");
            let heads: Vec<_> = ids().iter().map(|line| line["head"].clone()).collect();
            let before = sandbox.files();
            sandbox.stvc(&["doctor", "--fix", "--yes", "--orphans"]).exits(0);
            let after = sandbox.files();
            assert_ne!(after, before);
            let answer = sandbox.json(&["doctor"]).exits(0);
            assert!(answer.of_type("repair").is_empty(), "{}", answer.stdout);
            assert!(!answer.stdout.contains("lorebook-shared"), "{}", answer.stdout);
            // A repair is no snapshot: a timeline's history begins with one of the user's, and finds its origin then.
            assert_eq!(ids().iter().map(|line| line["head"].clone()).collect::<Vec<_>>(), heads);
            for (path, bytes) in &before {
                if let Some(now) = after.get(path).filter(|now| *now != bytes) {
                    let body = |bytes: &[u8]| {
                        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
                        bytes[end..].to_vec()
                    };
                    assert_eq!(body(now), body(bytes), "{path}: no message changed");
                }
            }
            sandbox.stvc(&["undo"]).exits(0);
            assert_same(&sandbox.files(), &before);
            sandbox.stvc(&["check"]).exits(0);
            sandbox.git(&["fsck", "--strict"]);
        }
    }
}

/// What is on disk but in no snapshot yet is kept, too.
#[test]
fn changes_since_the_last_snapshot_survive_a_repair() {
    let (mut sandbox, _, forks) = family();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(&forks[0].chat_path(), r#"{"name":"Wren","mes":"not stored yet"}"#);
    let own = forks.clone().map(|fork| format!("worlds/{}.json", book_name("Mira", &fork.chat)));
    fix(&sandbox, &[], &[&forks[0].chat_path(), &forks[1].chat_path(), &own[0], &own[1]]);
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    let changed = status.iter().filter(|line| line["state"] == "changed").count();
    assert_eq!(changed, 2, "both forks have a new lorebook");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn nothing_is_changed_unless_somebody_said_yes() {
    let (sandbox, ..) = family();
    let before = sandbox.files();
    let answer = sandbox.stvc(&["doctor"]).exits(0);
    assert!(answer.stdout.contains("would give chats/Mira/Branch #1 a lorebook of its own"));
    assert!(answer.stdout.contains("`stvc doctor --fix` does that"), "{}", answer.stdout);
    // Nobody is at the terminal.
    let answer = sandbox.stvc(&["doctor", "--fix"]).exits(0);
    assert!(answer.stdout.contains("Add --yes"), "{}", answer.stdout);
    let lines = sandbox.json(&["doctor", "--fix"]).exits(0).of_type("repair");
    assert!(lines.iter().all(|line| line["done"] == false));
    assert_same(&sandbox.files(), &before);
    assert!(!sandbox.store().exists());
    sandbox.stvc(&["doctor", "--yes"]).exits(2);
}

#[test]
fn the_answer_in_json() {
    let (sandbox, main, forks) = family();
    write_chat(&sandbox, "chats/B/x", Some("Lost"), "");
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(1);
    assert_eq!(answer.stderr, "");
    let repair = answer.of_type("repair").remove(0);
    let own = format!("worlds/{}.json", book_name("Mira", "Branch #1"));
    let what = format!(
        "give chats/Mira/Branch #1 a lorebook of its own, {}, a copy of {}",
        quoted(&book_name("Mira", "Branch #1")),
        quoted(main.book.as_deref().unwrap())
    );
    let expected = json!({
        "type": "repair", "code": "lorebook-shared", "subject": "chats/Mira/Branch #1", "what": what,
        "files": [own, forks[0].chat_path()], "done": true,
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
fn the_worst_comes_first_and_what_to_do_is_said_once() {
    let sandbox = Sandbox::empty();
    for chat in ["a", "b"] {
        write_chat(&sandbox, &format!("chats/A/{chat}"), Some("Lost"), r#","main_chat":"gone""#);
    }
    sandbox.write("worlds/Mine.json", BOOK);
    let text = sandbox.stvc(&["doctor"]).exits(1).stdout;
    insta::assert_snapshot!(text, @r#"
    error: chats/A/a: its lorebook "Lost" does not exist; SillyTavern shows it as empty
    error: chats/A/b: its lorebook "Lost" does not exist; SillyTavern shows it as empty
      no snapshot has it. `stvc doctor --fix --repair empty` makes an empty one, `--repair clone` a copy of the parent's, `--repair detach` lets the chat go without
    warning: chats/A/a: the chat that it was forked from, "gone", does not exist
    warning: chats/A/b: the chat that it was forked from, "gone", does not exist
      "Back to parent chat" does not work in it; nothing else depends on it
    note: worlds/Mine.json: no chat, group, character, persona or setting uses it
      keep it for later, or remove it with `stvc doctor --fix --orphans`
    2 errors, 2 warnings, 1 note in 2 timelines and 1 lorebook.
    "#);
}

#[test]
fn a_locked_store_keeps_repairs_from_being_made() {
    let (sandbox, ..) = family();
    sandbox.stvc(&["snapshot"]).exits(0);
    let held = fs::File::options().write(true).open(sandbox.store().join("stvc/lock")).unwrap();
    held.lock().unwrap();
    let before = sandbox.files();
    sandbox.stvc(&["doctor"]).exits(0);
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(11);
    assert_same(&sandbox.files(), &before);
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_in_a_name_reaches_the_terminal_alive() {
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

/// Between the plan and the repair somebody answers questions, and SillyTavern goes on saving.
#[test]
fn a_plan_that_does_not_fit_any_more_changes_nothing() {
    let (sandbox, main, forks) = family();
    sandbox.write("worlds/z-AutoLB-left.json", BOOK);
    let workspace = sandbox.workspace();
    let options = doctor::Options::default();
    let plan = || doctor::doctor(&workspace, &options, &mut Silent).unwrap();
    let fix = |repairs: &[&Repair]| doctor::fix(&workspace, repairs, Closed::Unknown, &mut Silent);

    // One more message fits.
    let planned = plan();
    let all: Vec<_> = planned.repairs.iter().collect();
    assert_eq!(all.len(), 3);
    sandbox.append(&forks[0].chat_path(), r#"{"name":"Wren","mes":"meanwhile"}"#);
    // A lorebook that somebody uses by now is not removed.
    write_chat(&sandbox, "chats/B/b", Some("z-AutoLB-left"), "");
    let before = sandbox.files();
    let fixed = fix(&all).unwrap();
    assert_eq!(fixed.done, [true, true, false]);
    assert!(sandbox.path("worlds/z-AutoLB-left.json").exists());
    let chat = String::from_utf8(sandbox.read(&forks[0].chat_path())).unwrap();
    assert!(chat.ends_with(r#""mes":"meanwhile"}"#));
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);

    // Another lorebook was chosen.
    let planned = plan();
    let other = RecapLibrary { book: Some("z-AutoLB-left".into()), ..forks[1].clone() };
    sandbox.write(&other.chat_path(), other.chat_bytes());
    let before = sandbox.files();
    assert!(fix(&planned.repairs.iter().collect::<Vec<_>>()).is_err());
    assert_same(&sandbox.files(), &before);

    // The name for the copy was taken.
    let planned = plan();
    let own = format!("worlds/{}.json", book_name("Mira", &forks[0].chat));
    sandbox.write(&own, "somebody's");
    let before = sandbox.files();
    let repairs: Vec<_> = planned.repairs.iter().collect();
    assert!(fix(&repairs).is_err());
    assert_same(&sandbox.files(), &before);
    fs::remove_file(sandbox.path(&own)).unwrap();

    // The lorebook is gone.
    fs::remove_file(sandbox.path(&main.book_path())).unwrap();
    let before = sandbox.files();
    assert!(fix(&repairs).is_err());
    assert_same(&sandbox.files(), &before);
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    assert_eq!(operations.len(), 2, "what failed is no operation");
}

/// A power cut after the operation was logged: some files are written, some are not.
#[test]
fn a_repair_that_was_cut_short_is_taken_back() {
    let (sandbox, _, forks) = family();
    sandbox.write("worlds/z-AutoLB-left.json", BOOK);
    let before = sandbox.files();
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let after = sandbox.files();
    let chat = forks[0].chat_path();
    let states: [&[&str]; 3] = [&[], &[&chat], &["worlds/z-AutoLB-left.json", &chat]];
    for not_written in states {
        for path in not_written {
            sandbox.write(path, &before[*path]);
        }
        sandbox.stvc(&["undo"]).exits(0);
        assert_same(&sandbox.files(), &before);
        let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
        sandbox.stvc(&["undo", &operations[0]["number"].to_string()]).exits(0);
        assert_same(&sandbox.files(), &after);
    }
}

#[test]
fn forks_with_long_names_each_get_a_book() {
    let sandbox = Sandbox::empty();
    let book = format!("Lore {}", "y".repeat(120));
    let main = RecapLibrary { book: Some(book), attached: None, ..RecapLibrary::default() };
    main.write(&sandbox);
    for n in 1..=2 {
        main.fork(&format!("{} - Branch #{n}", "x".repeat(90)), 9).write(&sandbox);
    }
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let books: Vec<_> =
        sandbox.files().into_keys().filter(|path| path.starts_with("worlds/")).collect();
    assert_eq!(books.len(), 3, "{books:?}");
}
