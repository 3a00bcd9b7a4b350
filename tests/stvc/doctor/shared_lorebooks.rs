//! Forks that share a lorebook each get a copy.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::{BOOK, family, fix, found, look, of_code, write_chat};
use crate::common::Sandbox;
use crate::common::recap_library::{RecapLibrary, book_name, quoted};

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
fn timed_effects_are_renamed_with_the_copied_lorebook() {
    let (sandbox, main, [mut fork, _]) = family();
    let old = main.book.clone().unwrap();
    let new = book_name("Mira", &fork.chat);
    let hash = |book: &str| {
        let entry = &main.entries[0].json;
        stvc::internals::st::effect_hash(stvc::internals::st::Raw::parse_str(entry).unwrap(), book)
            .unwrap()
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
fn doctor_checks_and_repairs_only_named_chats() {
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
fn unrelated_chats_may_share_a_lorebook() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    write_chat(&sandbox, "chats/A/a", Some("Lore"), "");
    write_chat(&sandbox, "chats/B/b", Some("Lore"), "");
    assert_eq!(look(&sandbox, 0), [("lorebook-shared".into(), "worlds/Lore.json".into())]);
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(0);
    assert!(answer.of_type("repair").is_empty());
}

#[test]
fn renamed_parent_is_recognised_by_its_messages() {
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
    assert!(message.contains("it was forked from chats/Mira/Another name"), "{message}");
    let answer = sandbox.json(&["doctor"]).exits(0);
    let repaired: Vec<_> =
        answer.of_type("repair").iter().map(|line| line["subject"].clone()).collect();
    assert_eq!(
        repaired,
        ["chats/Mira/Branch #1", "chats/Mira/Dawn the end", "chats/Mira/Another name"]
    );
}

/// SillyTavern 1.12 stores the metadata of group chats in the group's file.
#[test]
fn metadata_in_a_group_file_is_repaired() {
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

/// Two forks with the same name in two folders, and a lorebook that has the name already.
#[test]
fn copied_lorebooks_get_distinct_names() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Lore.json", BOOK);
    let other = BOOK.replace("Rain", "Somebody's");
    sandbox.write("worlds/lore - fork.json", &other);
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
    assert_eq!(sandbox.read("worlds/lore - fork.json"), other.as_bytes());
}

#[test]
fn forks_with_long_names_each_get_their_own_lorebook() {
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
