//! Everything that a story needs has a history and comes back: lorebooks, characters, personas, groups.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::{Sandbox, assert_same, chat, files, git, lose, message, text};

const CARD: &str = "characters/Mira.png";

/// A card as SillyTavern writes it, with a picture of so many bytes that cannot be packed.
fn card(json: &Value, picture: usize) -> Vec<u8> {
    let chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        let check = crc32fast::hash(&body);
        [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], &body, &check.to_be_bytes()]
            .concat()
    };
    let text = |keyword: &str, json: &Value| {
        let data = format!("{keyword}\0{}", STANDARD.encode(json.to_string()));
        chunk(b"tEXt", data.as_bytes())
    };
    let mut newer = json.clone();
    newer["spec"] = "chara_card_v3".into();
    let noise: Vec<u8> = (0..picture as u64)
        .step_by(32)
        .flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes())
        .collect();
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &[0; 13]),
        &chunk(b"IDAT", &noise),
        &text("chara", json),
        &text("ccv3", &newer),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

fn mira() -> Value {
    let long = "She keeps the charts of the harbour, and the lamp. ".repeat(8);
    json!({
        "name": "Mira", "description": long, "chat": "one", "spec": "chara_card_v2",
        "data": {
            "name": "Mira", "description": long, "first_mes": "You are late.",
            "alternate_greetings": ["Come in.", "The tide waits for nobody. ".repeat(10)],
            "extensions": { "world": "Harbour" },
        },
    })
}

fn book(words: &str) -> String {
    json!({ "entries": { "0": { "uid": 0, "comment": "Pier", "content": words } } }).to_string()
}

/// Two chats of a character, a group, lorebooks bound by chat, card and nothing, a persona.
fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("Mira", 3, Some("Harbour")));
    sandbox.write("chats/Mira/two.jsonl", chat("two", 4, Some("Harbour")));
    sandbox.write("group chats/talk.jsonl", chat("talk", 2, None));
    sandbox.write(
        "groups/9.json",
        r#"{"id":"9","name":"All","members":["Mira.png"],"chats":["talk"],"chat_id":"talk"}"#,
    );
    sandbox.write("worlds/Harbour.json", book("wet"));
    sandbox.write("worlds/Unbound 雪.json", book("nobody asks"));
    sandbox.write(CARD, card(&mira(), 200_000));
    sandbox.write("User Avatars/user-default.png", b"a face");
    sandbox.write(
        "settings.json",
        r#"{"username":"Wren","secret":"proxy password","more":"than a few words of settings"}"#,
    );
    sandbox.write("secrets.json", r#"{"api_key_openai":"sk-never"}"#);
    sandbox
}

fn places(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let mut places: Vec<_> =
        lines.iter().map(|line| line["timeline"].as_str().unwrap().to_owned()).collect();
    places.sort();
    places
}

#[test]
fn req_81_after_a_dead_disk_everything_is_in_its_place() {
    let sandbox = library();
    let first = sandbox.json(&["snapshot"]).exits(0);
    // What is not kept is said, and how to keep it.
    let left_out = first.of_type("finding").into_iter().find(|line| line["code"] == "left-out");
    let left_out = left_out.unwrap();
    assert!(left_out["message"].as_str().unwrap().contains("settings.json"), "{left_out}");
    assert!(left_out["remedy"].as_str().unwrap().contains("include.settings"), "{left_out}");
    assert_eq!(
        places(&sandbox),
        [
            "User Avatars/user-default.png",
            "characters/Mira",
            "chats/Mira/one",
            "chats/Mira/two",
            "group chats/talk",
            "groups/9",
            "worlds/Harbour",
            "worlds/Unbound 雪",
        ]
    );
    let backup = sandbox.folder().join("all.stvc");
    let told = sandbox.stvc(&["backup", text(&backup)]).exits(0);
    assert!(told.stdout.contains("not kept: settings.json"), "{}", told.stdout);
    assert!(sandbox.stvc(&["stats"]).exits(0).stdout.contains("not kept: settings.json"));

    let before = sandbox.files();
    let other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    let mut expected = before.clone();
    expected.retain(|path, _| path != "secrets.json");
    let settings = other.read("settings.json");
    expected.insert("settings.json".into(), settings);
    assert_same(&other.files(), &expected);
    other.stvc(&["check"]).exits(0);
    other.git(&["fsck", "--strict"]);

    // Where something else is, it stays, and the rest comes.
    let third = Sandbox::empty();
    third.write("worlds/Harbour.json", book("another harbour"));
    third.write(CARD, b"not even a picture");
    third.stvc(&["import", text(&backup)]).exits(0);
    let answer = third.json(&["restore", "--all"]).exits(3);
    let failed: Vec<_> =
        answer.of_type("failed").iter().map(|line| line["timeline"].clone()).collect();
    assert_eq!(failed, ["characters/Mira", "worlds/Harbour"]);
    assert_eq!(third.read("worlds/Harbour.json"), book("another harbour").into_bytes());
    assert_eq!(third.read("chats/Mira/one.jsonl"), before["chats/Mira/one.jsonl"]);
    third.stvc(&["restore", "--all", "--overwrite"]).exits(0);
    assert_same(&third.files(), &expected);
}

#[test]
fn settings_are_kept_only_if_somebody_says_so_and_secrets_never() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let grep = |sandbox: &Sandbox, words: &str| {
        let list = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        list.lines().any(|id| {
            let object = git(&sandbox.store(), &["cat-file", "-p", id]);
            object.windows(words.len()).any(|part| part == words.as_bytes())
        })
    };
    assert!(!grep(&sandbox, "proxy password") && !grep(&sandbox, "sk-never"));
    sandbox.stvc(&["config", "include.settings", "true"]).exits(0);
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    assert!(taken.iter().any(|line| line["timeline"] == "settings.json"));
    assert!(grep(&sandbox, "proxy password") && !grep(&sandbox, "sk-never"));
    // They are not put over others.
    let now = r#"{"username":"Wren","theme":"dark"}"#;
    sandbox.write("settings.json", now);
    sandbox.stvc(&["restore", "--all"]).exits(3);
    assert_eq!(sandbox.read("settings.json"), now.as_bytes());
    assert!(sandbox.stvc(&["diff", "settings.json"]).exits(0).stdout.contains("theme"));
    sandbox.stvc(&["config", "include.settings", "perhaps"]).exits(1);
}

#[test]
fn a_lorebook_that_many_chats_have_changes_once() {
    let mut sandbox = library();
    for n in 0..30 {
        sandbox.write(&format!("chats/Mira/branch {n}.jsonl"), chat("Mira", 3, Some("Harbour")));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Harbour.json", book("dry"));
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let new: Vec<_> = taken.iter().filter(|line| line["unchanged"] == false).collect();
    assert_eq!(new.len(), 1);
    assert_eq!(new[0]["timeline"], "worlds/Harbour");
    assert_eq!(new[0]["entries"], 1);
    // It shares its objects with the chats that were taken with it.
    let tree = |of: &str| sandbox.git(&["rev-parse", of]);
    assert_eq!(
        tree("refs/heads/worlds/Harbour~1:lorebooks/Harbour"),
        tree("refs/heads/chats/Mira/one:lorebooks/Harbour")
    );
    let told = |sandbox: &Sandbox, command: &[&str]| sandbox.stvc(command).exits(0).stdout;
    assert_eq!(told(&sandbox, &["log", "worlds/Harbour"]).lines().count(), 2);
    assert!(told(&sandbox, &["diff", "worlds/Harbour~1", "worlds/Harbour"]).contains("Pier"));
    let shown = told(&sandbox, &["show", "lorebook / Harbour"]);
    assert!(shown.contains("used by") && shown.contains("32 chats, character Mira"), "{shown}");
    assert!(told(&sandbox, &["search", "dry"]).contains("lorebook / Harbour"));
    // What a chat has now is its messages and its lorebook as they are now; a snapshot is what it was.
    let former = sandbox.read("chats/Mira/one.jsonl");
    fs::remove_file(sandbox.path("chats/Mira/one.jsonl")).unwrap();
    fs::remove_file(sandbox.path("worlds/Harbour.json")).unwrap();
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one"]);
    sandbox.stvc(&["restore", "Mira/one"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/one.jsonl"), former);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("dry").into_bytes());
    sandbox.wait(60);
    sandbox.stvc(&["restore", id.trim(), "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("wet").into_bytes());
    // The lorebook's own history ends with what is there, behind what was.
    let states = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
    assert!(told(&sandbox, &["diff", "worlds/Harbour~1", "worlds/Harbour"]).contains("wet"));
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("dry").into_bytes());
    sandbox.stvc(&["check"]).exits(0);
}

/// A lorebook that is changed after a message was said, before the next: that is what was known at that message.
#[test]
fn the_lorebook_of_a_message_is_that_of_before_the_next() {
    let mut sandbox = library();
    for (words, n) in [("first", 3), ("second", 4)] {
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.write("worlds/Harbour.json", book(words));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.append("chats/Mira/one.jsonl", &message("Mira", n));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Harbour.json", book("much later"));
    sandbox.stvc(&["snapshot"]).exits(0);
    for (at, words) in [("2", "first"), ("3", "second")] {
        let to = sandbox.folder().join(at);
        sandbox.stvc(&["restore", "Mira/one", "--at", at, "--to", text(&to)]).exits(0);
        assert_eq!(files(&to)["worlds/Harbour.json"], book(words).into_bytes(), "{at}");
    }
}

#[test]
fn lorebooks_are_restored_copied_and_followed_when_they_are_renamed() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Unbound 雪.json", book("changed"));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1"]).exits(4);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--as", "As it was.json"]).exits(0);
    assert_eq!(sandbox.read("worlds/As it was.json"), book("nobody asks").into_bytes());
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--as", "As it was"]).exits(4);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("worlds/Unbound 雪.json"), book("nobody asks").into_bytes());
    sandbox.stvc(&["restore", "groups/9", "--as", "10"]).exits(2);

    sandbox.wait(60);
    fs::rename(sandbox.path("worlds/Harbour.json"), sandbox.path("worlds/Port.json")).unwrap();
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let port = taken.iter().find(|line| line["timeline"] == "worlds/Port").unwrap();
    assert_eq!(port["renamed_from"], "worlds/Harbour");
    assert_eq!(sandbox.stvc(&["log", "worlds/Port"]).exits(0).stdout.lines().count(), 2);
    assert!(!places(&sandbox).contains(&"worlds/Harbour".to_owned()));
    // A copy begins where the other was.
    fs::copy(sandbox.path("worlds/Port.json"), sandbox.path("worlds/Twin.json")).unwrap();
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let twin = taken.iter().find(|line| line["timeline"] == "worlds/Twin").unwrap();
    assert_eq!(twin["parents"][0], port["id"]);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

#[test]
fn characters_have_a_history_by_field() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let size = |sandbox: &Sandbox| -> u64 {
        files(&sandbox.store().join("objects")).values().map(|bytes| bytes.len() as u64).sum()
    };
    let before = size(&sandbox);
    sandbox.wait(60);
    // Which chat was opened last is no change.
    let mut json = mira();
    json["chat"] = "two".into();
    sandbox.write(CARD, card(&json, 200_000));
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    json["data"]["description"] = "She keeps no charts any more. ".repeat(9).into();
    sandbox.write(CARD, card(&json, 200_000));
    sandbox.stvc(&["snapshot"]).exits(0);
    let more = size(&sandbox) - before;
    assert!(more < 200_000 / 50, "{more} bytes for another description");

    let told = |sandbox: &Sandbox, command: &[&str]| sandbox.stvc(command).exits(0).stdout;
    let diff = told(&sandbox, &["diff", "characters/Mira~1", "characters/Mira"]);
    assert!(diff.contains("data.description") && diff.contains("any more"), "{diff}");
    assert!(!diff.contains("picture"), "{diff}");
    let shown = told(&sandbox, &["show", "characters/Mira"]);
    assert!(shown.contains("first_mes") && shown.contains("You are late."), "{shown}");
    let found = sandbox.json(&["search", "tide", "waits", "--only", "character"]).exits(0);
    let found = found.of_type("match");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["part"], &found[0]["name"]),
        (&"card".into(), &"data.alternate_greetings.1".into())
    );
    // What is short is found, too.
    let short = sandbox.json(&["search", "late", "--only", "character"]).exits(0);
    assert_eq!(short.of_type("match")[0]["name"], "data.first_mes");
    // Another picture is another state, and the former comes back byte for byte.
    let former = sandbox.read(CARD);
    sandbox.write(CARD, card(&json, 30_000));
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(
        told(&sandbox, &["diff", "characters/Mira~1", "characters/Mira"])
            .contains("another picture")
    );
    sandbox.stvc(&["restore", "characters/Mira~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(CARD), former);
}

#[test]
fn odd_cards_and_books_are_stored_as_they_are() {
    let sandbox = library();
    let odd: [(&str, &[u8]); 9] = [
        ("characters/no picture.png", b"{\"name\":\"json\"}"),
        ("characters/empty.png", b""),
        ("characters/torn.png", &card(&mira(), 100)[..90]),
        ("characters/con.png", b"\x89PNG\r\n\x1a\n"),
        ("characters/雪 🦊.png", &card(&json!({ "x": [1e21, "\u{2028}"] }), 50)),
        ("worlds/broken.json", b"{\"entries\": {\"0\": "),
        ("worlds/bom.json", b"\xef\xbb\xbf{\"entries\":{}}"),
        ("worlds/nul.json", b"{\"entries\":{\"0\":\"\0\"}}"),
        ("User Avatars/%41.jpg", b"\xff\xd8"),
    ];
    for (path, bytes) in odd {
        sandbox.write(path, bytes);
    }
    // Expressions, and what SillyTavern does not list, are none of ours.
    sandbox.write("characters/Mira/joy.png", b"sprite");
    sandbox.write("characters/LOUD.PNG", b"not listed");
    sandbox.write("characters/Mira.png.1234", b"half written");
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    for (path, _) in odd {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["restore", "--all"]).exits(0);
    assert_same(&sandbox.files(), &before);
    assert!(places(&sandbox).iter().all(|place| !place.contains("LOUD") && !place.contains("joy")));
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

#[test]
fn less_can_be_wanted() {
    let sandbox = library();
    let taken = sandbox.json(&["snapshot", "--only", "chats"]).exits(0).of_type("snapshot");
    assert_eq!(taken.len(), 3);
    let taken = sandbox.json(&["snapshot", "--only", "characters", "--only", "personas"]).exits(0);
    assert_eq!(taken.of_type("snapshot").len(), 2);
    sandbox.stvc(&["snapshot", "--only", "moods"]).exits(2);
    sandbox.stvc(&["config", "include.groups", "false"]).exits(0);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(!places(&sandbox).contains(&"groups/9".to_owned()));
}

#[test]
fn who_used_a_group_did_not_change_it() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let group = String::from_utf8(sandbox.read("groups/9.json")).unwrap();
    let used = group.replace("\"chat_id\":\"talk\"", "\"chat_id\":\"talk\",\"date_last_chat\":1.5");
    sandbox.write("groups/9.json", &used);
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    sandbox.write("groups/9.json", used.replace("\"All\"", "\"Everybody\""));
    let taken = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(taken.contains("members of group / 9"), "{taken}");
    assert!(
        sandbox.stvc(&["diff", "groups/9~1", "groups/9"]).exits(0).stdout.contains("Everybody")
    );
}

#[test]
fn doctor_knows_who_is_missed() {
    let sandbox = library();
    sandbox.write("characters/Other.png", card(&json!({ "name": "Other" }), 50));
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(CARD)).unwrap();
    sandbox.write("characters/Bo.png", card(&json!({"data":{"extensions":{"world":"Gone"}}}), 50));
    let answer = sandbox.json(&["doctor"]);
    let find = |code: &str| {
        let found = answer.of_type("finding").into_iter().find(|line| line["code"] == code);
        found.unwrap_or_else(|| panic!("{code} in {}", answer.stdout))
    };
    let missing = find("character-missing");
    assert_eq!(missing["subject"], "chats/Mira");
    assert!(missing["remedy"].as_str().unwrap().contains("stvc restore \"characters/Mira\""));
    assert_eq!(find("card-lorebook-missing")["subject"], "characters/Bo.png");
    sandbox.stvc(&["restore", "characters/Mira"]).exits(0);
    assert!(!sandbox.json(&["doctor"]).stdout.contains("character-missing"));
}

/// The case that asked for it: eight chats with one lorebook, changed on two devices.
#[test]
fn req_82_one_lorebook_is_one_conflict() {
    let mut one = Sandbox::empty();
    let mut two = Sandbox::empty();
    let folder = one.folder().join("shared");
    one.write("worlds/Harbour.json", book("old"));
    for n in 0..8 {
        one.write(&format!("chats/Mira/{n}.jsonl"), chat(&n.to_string(), 3, Some("Harbour")));
    }
    let sync = |sandbox: &mut Sandbox, code| {
        sandbox.wait(60);
        sandbox.json(&["sync", text(&folder)]).exits(code)
    };
    sync(&mut one, 0);
    sync(&mut two, 0);
    one.write("worlds/Harbour.json", book("one"));
    two.write("worlds/Harbour.json", book("two"));
    two.append("chats/Mira/3.jsonl", &message("two", 9));
    sync(&mut one, 0);
    let answer = sync(&mut two, 3);
    let synced = answer.of_type("synced");
    let told: Vec<_> = synced.iter().filter(|line| line["conflicts"] != 0).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["timeline"], "worlds/Harbour");
    let count = |sandbox: &Sandbox| {
        sandbox.files().keys().filter(|path| path.starts_with("chats/")).count()
    };
    assert_eq!(count(&two), 8);
    // The rest went on: what was said here is there.
    sync(&mut one, 0);
    assert_eq!(count(&one), 8);
    assert_eq!(one.read("chats/Mira/3.jsonl"), two.read("chats/Mira/3.jsonl"));
    let settle = told[0]["settle"].as_str().unwrap();
    let other = settle.split('"').nth(1).unwrap();
    two.stvc(&["merge", "worlds/Harbour", other, "--theirs", "--yes"]).exits(0);
    assert_eq!(two.read("worlds/Harbour.json"), book("two").into_bytes());
    sync(&mut two, 0);
    sync(&mut one, 0);
    assert_eq!(one.read("worlds/Harbour.json"), book("two").into_bytes());
    for device in [&one, &two] {
        device.stvc(&["check"]).exits(0);
    }
}

/// A message that names a picture and a text.
fn with_files(n: usize) -> String {
    json!({
        "name": "Mira", "mes": n.to_string(),
        "extra": {
            "media": [{ "url": "/user/images/Mira/map.png", "type": "image" }],
            "files": [{ "url": "/user/files/1_2.txt", "name": "notes.txt" }],
        },
    })
    .to_string()
}

const MAP: &str = "user/images/Mira/map.png";
const NOTES: &str = "user/files/1_2.txt";

fn with_attachments() -> Sandbox {
    let sandbox = library();
    sandbox.write(MAP, [7; 3000]);
    sandbox.write(NOTES, "what the harbour master wrote");
    for name in ["one", "two"] {
        sandbox.append(&format!("chats/Mira/{name}.jsonl"), &with_files(3));
    }
    sandbox
}

#[test]
fn what_messages_name_comes_with_them() {
    let mut sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 4..8 {
        sandbox.wait(60);
        sandbox.append("chats/Mira/one.jsonl", &with_files(n));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    // Each is stored once.
    let blobs = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    assert_eq!(blobs.lines().filter(|line| line.ends_with("blob 3000")).count(), 1);
    let list = "refs/heads/chats/Mira/one:attachments/list.json";
    assert!(sandbox.git(&["show", list]).contains(MAP));
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);

    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&backup)]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    for path in [MAP, NOTES] {
        assert_eq!(other.read(path), sandbox.read(path));
    }
    // One that is gone comes back alone, and one that is another stays.
    fs::remove_file(other.path(MAP)).unwrap();
    other.write(NOTES, "something else");
    let missing = other.json(&["doctor"]).of_type("finding");
    let missing = missing.iter().find(|line| line["code"] == "attachment-missing").unwrap();
    assert!(missing["message"].as_str().unwrap().contains(MAP), "{missing}");
    let answer = other.json(&["restore", "Mira/one"]).exits(0);
    assert!(answer.stdout.contains("attachment-differs"), "{}", answer.stdout);
    assert_eq!(other.read(MAP), sandbox.read(MAP));
    assert_eq!(other.read(NOTES), b"something else");
    other.stvc(&["undo"]).exits(0);
    assert!(!other.path(MAP).exists());
    // A folder gets exactly what the snapshot has, and another ending what its messages name.
    let to = other.folder().join("to");
    other.stvc(&["restore", "Mira/one", "--to", text(&to)]).exits(0);
    assert!(files(&to).contains_key(MAP) && files(&to).contains_key(NOTES));
    other.stvc(&["restore", "Mira/one", "--as", "What if"]).exits(0);
    assert_eq!(other.read(MAP), sandbox.read(MAP));
    other.stvc(&["check"]).exits(0);
}

#[test]
fn what_is_no_file_or_too_much_is_left_out_and_said() {
    let sandbox = with_attachments();
    let link = |url: &str| json!({ "extra": { "image": url, "files": [] } }).to_string();
    for url in [
        "/user/images/../../settings.json",
        "/user/images/gone.png",
        "/user/images/folder",
        "https://example.org/user/x",
    ] {
        sandbox.append("chats/Mira/two.jsonl", &link(url));
    }
    fs::create_dir_all(sandbox.path("user/images/folder")).unwrap();
    sandbox.stvc(&["init"]).exits(0);
    sandbox.stvc(&["config", "attachments", "1000"]).exits(0);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    let found = answer.of_type("finding");
    let left_out = found.iter().find(|line| line["code"] == "attachments-left-out").unwrap();
    assert!(left_out["message"].as_str().unwrap().contains("1 of the files"), "{left_out}");
    let listed = sandbox.git(&["show", "refs/heads/chats/Mira/two:attachments/list.json"]);
    assert!(listed.contains(NOTES) && !listed.contains(MAP) && !listed.contains("settings"));
    // More is kept from the next snapshot on.
    sandbox.stvc(&["config", "attachments", "100000"]).exits(0);
    sandbox.append("chats/Mira/two.jsonl", &with_files(9));
    sandbox.stvc(&["snapshot"]).exits(0);
    let listed = sandbox.git(&["show", "refs/heads/chats/Mira/two:attachments/list.json"]);
    assert!(listed.contains(MAP));
    sandbox.stvc(&["config", "attachments", "a lot"]).exits(1);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn attachments_go_to_the_other_device() {
    let one = with_attachments();
    let two = Sandbox::empty();
    let folder = one.folder().join("shared");
    for device in [&one, &two] {
        device.stvc(&["sync", text(&folder)]).exits(0);
    }
    assert_eq!(two.read(MAP), one.read(MAP));
    assert_eq!(two.read(NOTES), one.read(NOTES));
    // And with a message that came later.
    one.write("user/images/Mira/new.png", [9; 500]);
    one.append("chats/Mira/one.jsonl", &with_files(4).replace("map.png", "new.png"));
    one.stvc(&["sync", text(&folder)]).exits(0);
    let planned = two.json(&["sync", text(&folder), "--dry-run"]).exits(0).of_type("file");
    let done = two.json(&["sync", text(&folder)]).exits(0).of_type("file");
    assert_eq!(planned, done);
    assert!(done.iter().any(|line| line["path"] == "user/images/Mira/new.png"), "{done:?}");
    assert_eq!(two.read("user/images/Mira/new.png"), [9; 500]);
    two.stvc(&["check"]).exits(0);
    let states = two.json(&["status"]).exits(0).of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
}

#[test]
fn an_attachment_that_is_lost_keeps_no_chat_from_coming_back() {
    let sandbox = with_attachments();
    sandbox.stvc(&["snapshot"]).exits(0);
    let ids = sandbox.git(&["ls-tree", "-r", "refs/heads/chats/Mira/one", "attachments/files"]);
    let line = ids.lines().find(|line| line.contains("map.png")).unwrap();
    lose(&sandbox.store(), line.split_whitespace().nth(2).unwrap());
    let checked = sandbox.stvc(&["check"]).exits(1);
    let told = checked.stdout + &checked.stderr;
    assert!(told.contains("map.png is lost or damaged"), "{told}");
    let chat = sandbox.read("chats/Mira/one.jsonl");
    fs::remove_file(sandbox.path("chats/Mira/one.jsonl")).unwrap();
    sandbox.stvc(&["restore", "Mira/one"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/one.jsonl"), chat);
    // As long as the file is there, it is stored again.
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["check"]).exits(0);
}
