//! The API: the answers of the command line, a closed list of verbs, and no permission that was not
//! given (docs/api.md).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use stvc::api::{Answer, BackgroundJobs, Request, Rights, VERBS, Verb, serve};

use crate::common::card::card;
use crate::common::{Sandbox, chat, message};

const CHAT: &str = "chats/Mira/one.jsonl";

fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 3, Some("Harbour")));
    sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Kestrel","content":"A ship."}}}"#,
    );
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.append(CHAT, &message("one", 3));
    sandbox.take(&[]);
    sandbox.write("chats/Mira/two.jsonl", chat("one", 2, Some("Harbour")));
    sandbox.take(&[]);
    sandbox
}

fn asked(sandbox: &Sandbox, request: &Value, rights: Rights) -> Value {
    let answer = match Request::read(request.to_string().as_bytes()) {
        Ok(request) => serve(&sandbox.workspace(), &request, rights, &BackgroundJobs::default()),
        Err(refusal) => Answer::refused(&refusal),
    };
    serde_json::to_value(answer).unwrap()
}

fn ask(sandbox: &Sandbox, verb: &str, args: Value) -> Value {
    asked(sandbox, &json!({ "verb": verb, "args": args }), Rights::Read)
}

/// Both front ends print the same report.
#[test]
fn api_answers_equal_command_line_json() {
    let sandbox = story();
    for (verb, args, line) in [
        ("timelines", json!({}), &["timelines"][..]),
        ("status", json!({}), &["status"]),
        ("log", json!({}), &["log"]),
        (
            "log",
            json!({ "timeline": "Mira/one", "message": 1 }),
            &["log", "Mira/one", "--message", "1"],
        ),
        ("show", json!({ "snapshot": "Mira/one~1" }), &["show", "Mira/one~1"]),
        ("messages", json!({ "snapshot": "Mira/one" }), &["show", "Mira/one", "--message", "0..3"]),
        ("lore", json!({}), &["lore"]),
        ("lore", json!({ "entry": "Kestrel" }), &["lore", "Kestrel"]),
        (
            "diff",
            json!({ "before": "Mira/one~1", "after": "Mira/one" }),
            &["diff", "Mira/one~1", "Mira/one"],
        ),
        ("search", json!({ "text": "one" }), &["search", "one"]),
        ("operations", json!({}), &["operations"]),
        ("doctor", json!({}), &["doctor"]),
    ] {
        let answer = ask(&sandbox, verb, args);
        let printed = sandbox.json(line);
        assert_eq!(answer["exit"], printed.code, "{verb}");
        // Only the command line knows the watch and the extension.
        let only_here = |line: &Value| line["type"] == "protection";
        let expected: Vec<_> =
            printed.lines().into_iter().filter(|line| !only_here(line)).collect();
        assert_eq!(answer["lines"], json!(expected), "{verb}");
    }
}

#[test]
fn api_serves_only_listed_verbs() {
    let sandbox = story();
    let before = sandbox.files();
    for (request, exit) in [
        (json!({ "verb": "gc" }), 2),
        (json!({ "verb": "forget", "args": {} }), 2),
        (json!({ "verb": "config", "args": { "key": "pager" } }), 2),
        (json!({ "verb": "../etc" }), 2),
        (json!({ "verb": "show" }), 2),
        (json!({ "verb": "show", "args": { "snapshot": "Mira/one", "to": "/tmp" } }), 2),
        (json!({ "verb": "show", "args": { "snapshot": 7 } }), 2),
        (json!({ "verb": "log", "args": [] }), 2),
        (json!({ "verb": "log", "args": { "first": -1 } }), 2),
        (json!({ "verb": "diff", "args": { "before": "Mira/one", "only": "secrets" } }), 2),
        (json!({ "verb": "log", "extra": 1 }), 2),
        (json!([]), 2),
        (json!("log"), 2),
        (json!({ "verb": "show", "args": { "snapshot": "nothing like that" } }), 1),
        (json!({ "verb": "restore", "args": { "snapshot": "Mira/one~1", "expect": [] } }), 4),
        (json!({ "verb": "restore", "args": { "snapshot": "Mira/one~1", "expect": ["x"] } }), 2),
        (json!({ "verb": "snapshot" }), 4),
        (json!({ "verb": "tag", "args": { "name": "x", "snapshot": "Mira/one" } }), 4),
        (json!({ "verb": "undo" }), 4),
        (json!({ "verb": "backup" }), 4),
        (json!({ "verb": "portrait", "args": { "character": "../settings" } }), 1),
        (json!({ "verb": "portrait", "args": { "character": "Nobody" } }), 1),
        (json!({ "verb": "picture", "args": { "snapshot": "Mira/one" } }), 2),
    ] {
        let answer = asked(&sandbox, &request, Rights::Read);
        assert_eq!(answer["exit"], exit, "{request}: {answer}");
        let last = answer["lines"].as_array().unwrap().last().unwrap();
        assert_eq!(last["type"], "error", "{request}");
    }
    assert!(Request::read(b"{").is_err());
    assert_eq!(sandbox.files(), before);
}

/// Returns the refusal of a request with this argument and the required ones.
fn refusal_of(verb: &Verb, argument: &str, value: Value) -> String {
    let needed = ["snapshot", "before", "text", "name", "what", "character", "blake3"].into_iter();
    let needed = needed.filter(|name| verb.arguments.contains(name));
    let value_of = |name| if name == "blake3" { json!("0".repeat(64)) } else { json!("x") };
    let mut arguments: Map<_, _> = needed.map(|name| (name.to_owned(), value_of(name))).collect();
    assert!(Request::of(verb.name, Some(json!(arguments))).is_ok(), "{}", verb.name);
    arguments.insert(argument.to_owned(), value);
    let read = Request::of(verb.name, Some(json!(arguments)));
    read.err().map(|refusal| refusal.to_string()).unwrap_or_default()
}

/// Options may name a path, an address or a passphrase, or exist only for the command line. No
/// request can set them.
#[test]
fn requests_cannot_set_paths_or_command_line_options() {
    let others = [
        "to",
        "out",
        "path",
        "dir",
        "file",
        "source",
        "destination",
        "remote",
        "store",
        "data",
        "library",
        "user",
        "passphrase",
        "overwrite",
        "is_latest",
        "any_attachments",
        "queue",
        "gate",
        "closed",
        "autosave",
        "only_categories",
        "template",
        "since",
        "until",
        "limit",
        "lanes",
        "messages",
        "entries",
        "with_hidden",
        "lead",
        "subject",
        "tell_all",
    ];
    for verb in VERBS {
        for name in others {
            assert!(!verb.arguments.contains(&name), "{} {name}", verb.name);
            for value in [json!("/tmp/x"), json!(true), json!(null)] {
                let why = refusal_of(verb, name, value);
                assert!(why.contains(&format!("unknown argument {name:?}")), "{why}");
            }
        }
    }
}

/// An argument that the options do not read would be accepted and ignored.
#[test]
fn every_listed_api_argument_is_parsed() {
    for verb in VERBS {
        for name in verb.arguments {
            let why = refusal_of(verb, name, json!({ "no": "such value" }));
            assert!(
                why.contains("invalid type") || why.contains("unknown variant"),
                "{} {name}: {why}",
                verb.name
            );
        }
    }
}

#[test]
fn long_answers_are_paged() {
    let sandbox = story();
    let mut messages = Vec::new();
    let mut next = json!(0);
    while !next.is_null() {
        let answer =
            ask(&sandbox, "messages", json!({ "snapshot": "Mira/one", "first": next, "count": 3 }));
        let lines = answer["lines"].as_array().unwrap();
        assert!(lines.len() <= 4);
        messages.extend(lines.iter().filter(|line| line["type"] == "message").cloned());
        next = answer["next"].clone();
    }
    let numbers: Vec<_> = messages.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let first = ask(&sandbox, "log", json!({ "count": 1 }));
    let second = ask(&sandbox, "log", json!({ "first": 1, "count": 1 }));
    assert_eq!(first["next"], 1);
    assert_ne!(first["lines"][0]["id"], second["lines"][0]["id"]);
    // The largest valid numbers.
    for verb in ["log", "graph", "operations"] {
        assert_eq!(ask(&sandbox, verb, json!({ "first": usize::MAX }))["exit"], 0, "{verb}");
    }
    assert!(ask(&sandbox, "log", json!({ "count": 100_000 }))["next"].is_null());
    assert_eq!(
        ask(&sandbox, "messages", json!({ "snapshot": "Mira/one", "first": 99 }))["exit"],
        4
    );
}

/// Plans of the API equal those of the command line.
#[test]
fn api_plans_equal_command_line_plans() {
    let sandbox = story();
    sandbox.append(CHAT, &message("Mira", 7));
    for (verb, args, line) in [
        ("snapshot", json!({ "dry_run": true }), &["snapshot", "--dry-run"][..]),
        (
            "restore",
            json!({ "snapshot": "Mira/one~1", "dry_run": true }),
            &["restore", "Mira/one~1", "--overwrite", "--dry-run"],
        ),
        (
            "restore",
            json!({ "snapshot": "Mira/one", "name": "Other", "dry_run": true }),
            &["restore", "Mira/one", "--as", "Other", "--dry-run"],
        ),
        ("undo", json!({ "dry_run": true }), &["undo", "--dry-run"]),
    ] {
        let answer = asked(&sandbox, &json!({ "verb": verb, "args": args }), Rights::Change);
        let printed = sandbox.json(line);
        assert_eq!(answer["exit"], printed.code, "{verb}");
        assert_eq!(answer["lines"], json!(printed.lines()), "{verb}");
    }
    // `library` is `status` with the last backup; `map` has all chats.
    let lines_of = |verb: &str| ask(&sandbox, verb, json!({}))["lines"].as_array().unwrap().clone();
    let of = |lines: &[Value], kind: &str, field: &str| -> Vec<Value> {
        lines.iter().filter(|it| it["type"] == kind).map(|it| it[field].clone()).collect()
    };
    assert_eq!(
        of(&lines_of("library"), "timeline", "timeline"),
        of(&lines_of("status"), "timeline", "timeline")
    );
    let mut lanes = of(&lines_of("graph"), "lane", "timeline");
    lanes.sort_by_key(Value::to_string);
    let mut chats = of(&lines_of("timelines"), "timeline", "timeline");
    chats.retain(|name| name.as_str().unwrap().starts_with("chats/"));
    chats.sort_by_key(Value::to_string);
    assert_eq!(lanes, chats);
}

/// Pages of a snapshot's lorebook; each entry says whether it changed since.
#[test]
fn lorebook_is_paged_and_marks_entries_that_changed_later() {
    let mut sandbox = Sandbox::empty();
    let book = |texts: &[&str]| {
        let entry = |(n, text): (usize, &&str)| {
            (n.to_string(), json!({ "uid": n, "comment": format!("e{n}"), "content": text }))
        };
        let entries: serde_json::Map<_, _> = texts.iter().enumerate().map(entry).collect();
        json!({ "entries": entries }).to_string()
    };
    sandbox.write(CHAT, chat("Mira", 3, Some("Harbour")));
    sandbox.write("worlds/Harbour.json", book(&["same", "old", "goes"]));
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.write("worlds/Harbour.json", book(&["same", "new"]));
    sandbox.append(CHAT, &message("Mira", 3));
    sandbox.take(&[]);
    let page = |first: usize| {
        ask(&sandbox, "lore", json!({ "snapshot": "Mira/one~1", "first": first, "count": 2 }))
    };
    let (one, two) = (page(0), page(2));
    assert_eq!((&one["next"], &two["next"]), (&json!(2), &Value::Null));
    assert_eq!(one["lines"][2]["entries"], 3, "the summary counts all");
    let uid_and_state =
        |line: &Value| (line["uid"].clone(), line["live"].clone(), line["newer"].clone());
    assert_eq!(uid_and_state(&one["lines"][0]), (json!("0"), json!(true), json!(false)));
    assert_eq!(uid_and_state(&one["lines"][1]), (json!("1"), json!(true), json!(true)));
    assert_eq!(uid_and_state(&two["lines"][0]), (json!("2"), json!(false), json!(false)));
}

/// Plans a change, applies it and undoes it.
#[test]
fn api_changes_can_be_undone() {
    let sandbox = story();
    let change = |verb: &str, args: Value| {
        let answer = asked(&sandbox, &json!({ "verb": verb, "args": args }), Rights::Change);
        assert_eq!(answer["exit"], 0, "{answer}");
        answer
    };
    let before = sandbox.read(CHAT);
    let plan = change("restore", json!({ "snapshot": "Mira/one~1", "dry_run": true }));
    let lines = plan["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["type"] == "file" && line["path"] == CHAT));
    assert_eq!(sandbox.read(CHAT), before, "a plan changes nothing");
    let there: Vec<_> =
        lines.iter().map(|line| &line["blake3_before"]).filter(|it| it.is_string()).collect();
    let wish = json!({ "snapshot": "Mira/one~1", "expect": there });
    // The request has no `expect`, or the file was saved after the plan.
    let refused = |args: &Value, words: &str| {
        let there = sandbox.read(CHAT);
        let answer = asked(&sandbox, &json!({ "verb": "restore", "args": args }), Rights::Change);
        assert_eq!(answer["exit"], 4, "{answer}");
        assert!(answer["lines"][0]["message"].as_str().unwrap().contains(words), "{answer}");
        assert_eq!(sandbox.read(CHAT), there);
    };
    refused(&json!({ "snapshot": "Mira/one~1" }), "the restore would replace chats/Mira/one.jsonl");
    refused(
        &json!({ "snapshot": "Mira/one~1", "expect": [] }),
        "changed after the restore was planned",
    );
    sandbox.append(CHAT, &message("Mira", 9));
    refused(&wish, "changed after the restore was planned");
    sandbox.write(CHAT, &before);
    change("restore", wish.clone());
    assert_ne!(sandbox.read(CHAT), before);
    change("undo", json!({}));
    assert_eq!(sandbox.read(CHAT), before);
    change("restore", json!({ "snapshot": "Mira/one", "at": 2, "name": "Another ending" }));
    change("restore", json!({ "snapshot": "Mira/one", "cut": 0, "name": "From the first" }));
    assert!(sandbox.library().join("chats/Mira/Another ending.jsonl").exists());
    change("tag", json!({ "name": "here", "snapshot": "Mira/one" }));
    change("tag", json!({ "name": "here" }));
}

#[test]
fn map_has_a_lane_for_each_timeline() {
    let sandbox = story();
    let answer = ask(&sandbox, "graph", json!({ "timeline": "Mira/two" }));
    let lines = answer["lines"].as_array().unwrap();
    assert_eq!((&lines[0]["lanes"], &lines[0]["columns"]), (&json!(2), &json!(2)));
    assert_eq!(lines[1]["dots"].as_array().unwrap().len(), 2);
    assert_eq!((&lines[2]["parent"], &lines[2]["fork_at"]), (&json!(0), &json!(2)));
    let lanes = ask(&sandbox, "graph", json!({ "lanes_only": true }));
    assert_eq!(lanes["lines"][1]["dots"], Value::Null);
}

/// Snapshots of the same second keep their order, even if the clock went back.
#[test]
fn map_dots_of_a_timeline_are_in_snapshot_order() {
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("one", 2, None));
    for seconds in [0, 0, -5, 10] {
        sandbox.wait(seconds);
        sandbox.append("chats/Mira/one.jsonl", &message("one", 1));
        sandbox.take(&[]);
    }
    let answer = ask(&sandbox, "graph", json!({ "timeline": "Mira/one" }));
    let dots = answer["lines"][1]["dots"].as_array().unwrap();
    let ids: Vec<_> = dots.iter().map(|dot| dot["snapshot"].as_str().unwrap()).collect();
    let mut taken = sandbox.chat_ids();
    taken.reverse();
    assert_eq!(ids, taken);
}

/// A page repairs exactly what it showed.
#[test]
fn confirmed_repair_is_carried_out_if_it_is_still_planned() {
    let sandbox = story();
    let other = "chats/Mira/Branch #1";
    let text = String::from_utf8(chat("one", 2, Some("Harbour"))).unwrap();
    let text = text.replacen("\"chat_metadata\":{", "\"chat_metadata\":{\"main_chat\":\"one\",", 1);
    sandbox.write(&format!("{other}.jsonl"), text);
    sandbox.take(&[]);
    let repairs = |timeline: &str| {
        let answer = ask(&sandbox, "doctor", json!({ "timelines": [timeline] }));
        let lines = answer["lines"].as_array().unwrap().clone();
        lines.into_iter().filter(|line| line["type"] == "repair").collect::<Vec<_>>()
    };
    let change = |what: &Value| {
        let args = json!({ "timelines": [other], "what": what, "rereads": true });
        asked(&sandbox, &json!({ "verb": "repair", "args": args }), Rights::Change)
    };
    let planned = repairs(other);
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert_eq!(
        (&planned[0]["code"], &planned[0]["done"]),
        (&json!("lorebook-shared"), &json!(false))
    );

    // It is not carried out if something else would be done.
    let before = sandbox.files();
    let answer = change(&json!("give another chat its own lorebook"));
    assert_eq!(answer["exit"], 4, "{answer}");
    assert_eq!(answer["lines"][0]["code"], "not-planned");
    assert_eq!(sandbox.files(), before);

    let answer = change(&planned[0]["what"]);
    assert_eq!(answer["exit"], 0, "{answer}");
    assert_eq!(answer["lines"][0]["done"], true);
    assert!(repairs(other).is_empty());
    assert_eq!(sandbox.stvc(&["undo"]).code, 0);
    assert_eq!(repairs(other).len(), 1);

    // For a lorebook that no snapshot has, each possible replacement is one repair.
    let text = String::from_utf8(chat("lost", 2, Some("Lost"))).unwrap();
    sandbox.write("chats/Mira/lost.jsonl", text);
    let planned = repairs("chats/Mira/lost");
    let choices: Vec<_> = planned.iter().map(|line| line["choice"].clone()).collect();
    assert_eq!(choices, ["empty", "detach"]);
    let args =
        json!({ "timelines": ["chats/Mira/lost"], "what": planned[0]["what"], "rereads": true });
    let answer = asked(&sandbox, &json!({ "verb": "repair", "args": args }), Rights::Change);
    assert_eq!(answer["exit"], 0, "{answer}");
    assert!(sandbox.files().contains_key("worlds/Lost.json"));
}

/// docs/api.md lists exactly the verbs and arguments of the API.
#[test]
fn api_document_lists_every_verb_and_argument() {
    let page = include_str!("../../docs/api.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), VERBS.len());
    for (verb, row) in VERBS.iter().zip(rows) {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(
            cells[0].contains(&format!("`{}`", verb.name)),
            "{} is not in its place",
            verb.name
        );
        assert_eq!(cells[0].contains("(changes)"), verb.needs == Rights::Change, "{}", verb.name);
        let quoted: Vec<_> = cells[1].split('`').skip(1).step_by(2).collect();
        for argument in verb.arguments {
            assert!(quoted.contains(argument), "{} {argument}", verb.name);
        }
    }
}

/// Messages name the pictures that they display, and the API returns those of the snapshot and the
/// portraits of characters, but no other files.
#[test]
fn pictures_of_messages_and_characters_come_from_the_store() {
    let sandbox = Sandbox::empty();
    let png = card(&json!({ "spec": "chara_card_v2", "data": { "name": "Mira" } }), 3);
    let line = |extra: Value| json!({ "name": "Mira", "mes": "Look.", "extra": extra });
    let chat = [
        json!({ "chat_metadata": {} }),
        line(json!({ "image": "/user/images/Mira/1.png" })),
        line(json!({ "media": [{ "url": "user/images/Mira/page.png", "type": "image" }] })),
        line(json!({ "image": "user/images/Mira/lost.png" })),
        json!({ "name": "You", "is_user": true, "mes": "Nice." }),
    ];
    sandbox.write(CHAT, chat.map(|line| line.to_string()).join("\n"));
    sandbox.write("characters/Mira.png", &png);
    sandbox.write("user/images/Mira/1.png", &png);
    sandbox.write("user/images/Mira/page.png", "<script>hit()</script>");
    sandbox.take(&[]);
    let answer = ask(&sandbox, "messages", json!({ "snapshot": "Mira/one" }));
    let lines = answer["lines"].as_array().unwrap();
    let attached = |n: usize| lines[n]["attachments"][0].clone();
    assert_eq!(attached(0)["path"], "user/images/Mira/1.png");
    assert_eq!(attached(2), json!({ "path": "user/images/Mira/lost.png" }));
    assert_eq!((&lines[0]["character"], &lines[3]["character"]), (&json!("Mira"), &json!(null)));
    let picture = |blake3: &Value| {
        ask(&sandbox, "picture", json!({ "snapshot": "Mira/one", "blake3": blake3 }))
    };
    let found = picture(&attached(0)["blake3"]);
    assert_eq!(found["lines"][0]["kind"], "image/png");
    let data = found["lines"][0]["data"].as_str().unwrap();
    assert_eq!(STANDARD.decode(data).unwrap(), png);
    // Only its name is that of a picture.
    assert_eq!(picture(&attached(1)["blake3"])["lines"][0]["code"], "no-picture");
    assert_eq!(picture(&json!("0".repeat(64)))["lines"][0]["code"], "no-picture");
    let portrait = ask(&sandbox, "portrait", json!({ "character": "Mira" }));
    let data = STANDARD.decode(portrait["lines"][0]["data"].as_str().unwrap()).unwrap();
    assert!(data.starts_with(&png[..8]) && data.len() < png.len(), "{portrait}");
    assert!(!data.windows(5).any(|part| part == b"chara"));
}

/// A backup goes to the place of the last one, and is refused without one or with a passphrase.
#[test]
fn api_backs_up_to_the_known_destination() {
    let sandbox = story();
    let backup = || {
        let request = json!({ "verb": "backup" });
        asked(&sandbox, &request, Rights::Change)["lines"].clone()
    };
    assert_eq!(backup()[0]["code"], "backup-no-destination");
    let place = sandbox.folder().join("copy.stvc");
    sandbox.stvc(&["backup", place.to_str().unwrap()]).exits(0);
    sandbox.append(CHAT, &message("Mira", 9));
    let done = backup();
    assert_eq!((&done[0]["type"], &done[0]["snapshots_since"]), (&json!("copy"), &json!(0)));
    let log = sandbox.json(&["--store", place.to_str().unwrap(), "log", "Mira/one"]).exits(0);
    assert_eq!(log.lines()[0]["messages"], 5, "the last message is in the backup");
    std::fs::remove_file(&place).unwrap();
    assert_eq!(backup()[0]["code"], "backup-no-folder");
    let idle =
        asked(&sandbox, &json!({ "verb": "backup", "args": { "running": true } }), Rights::Change);
    assert_eq!(idle["lines"][0]["running"], false);
}

/// A sync goes to the remote of the last one, and the library shows when that was.
#[test]
fn api_syncs_with_the_known_remote() {
    let (one, two) = (story(), Sandbox::empty());
    let sync = |device: &Sandbox| {
        asked(device, &json!({ "verb": "sync" }), Rights::Change)["lines"].clone()
    };
    assert_eq!(sync(&one)[0]["code"], "backup-no-sync-destination");
    let place = one.folder().join("shared");
    let place = place.to_str().unwrap();
    one.stvc(&["sync", place]).exits(0);
    two.stvc(&["sync", place]).exits(0);
    two.append(CHAT, &message("Mira", 9));
    let sent = sync(&two);
    let summary = sent.as_array().unwrap().last().unwrap();
    assert_eq!((&summary["running"], &summary["sent"]), (&json!(false), &json!(1)), "{sent}");
    let received = sync(&one);
    assert_eq!(
        (&received[0]["type"], &received[0]["outcome"]),
        (&json!("synced"), &json!("forward"))
    );
    assert_eq!(one.read(CHAT), two.read(CHAT));
    let library = ask(&one, "library", json!({}))["lines"].clone();
    let last = library.as_array().unwrap().iter().find(|line| line["type"] == "last_sync").unwrap();
    assert_eq!((&last["remote"], &last["failure"]), (&json!(place), &json!(null)), "{last}");
    assert!(last["succeeded"].is_string(), "{last}");
}

#[test]
fn search_lists_only_current_or_only_deleted_texts() {
    let mut sandbox = story();
    let text = String::from_utf8(sandbox.read(CHAT)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let changed = [&lines[..4], &[r#"{"name":"You","is_user":true,"mes":"one at last"}"#]].concat();
    sandbox.wait(60);
    sandbox.write(CHAT, changed.join("\n"));
    sandbox.take(&[]);
    let found = |state: Value| {
        let answer = ask(&sandbox, "search", json!({ "text": "one", "state": state }));
        let lines = answer["lines"].as_array().unwrap().clone();
        let lines = lines.into_iter().filter(|line| line["type"] == "match");
        lines
            .map(|line| (line["index"].clone(), line["live"] == true, line["user"] == true))
            .collect::<Vec<_>>()
    };
    let (all, current, deleted) =
        (found(json!(null)), found(json!("current")), found(json!("deleted")));
    assert_eq!([&current[..], &deleted[..]].concat(), all);
    assert_eq!(deleted, [(json!(3), false, false)], "the message that was replaced");
    assert!(current.contains(&(json!(3), true, true)) && current.iter().all(|found| found.1));
}
