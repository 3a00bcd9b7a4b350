//! Every byte is stored unchanged.

use std::fs;

use serde_json::{Value, json};
use stvc::internals::st;
use stvc::progress::NoProgress;
use stvc::verbs::restore;

use super::lose_and_restore;
use crate::common::recap_library::{Entry, RecapLibrary, object, pretty};
use crate::common::recap_story::{
    bound_book, codes_and_levels, entries, expected_findings, metadata, recap_versions, story,
};
use crate::common::{Sandbox, assert_same, assert_valid};

#[test]
fn req_01_req_29_req_31_entries_keep_order_and_bytes() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    // Not in alphabetical order, some of them empty, and some that no extension would write.
    library.entries.extend([
        Entry::new(12, "zebra-Last in the alphabet", "z"),
        Entry::new(13, "aardvark-First in the alphabet", "a"),
        Entry::new(14, "__index_characters", "[Characters: Mira]"),
        Entry::raw("15", "null"),
        Entry::raw("16", "0"),
        Entry::raw("17", "\"\""),
        Entry::raw("18", r#"{"uid":18,"comment":"half \ud83d","content":"x","n":1e400,"n":2}"#),
        Entry::raw("__proto__", "false"),
    ]);
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let (original, clone) = (
        sandbox.read(&library.book_path()),
        sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl")),
    );
    let list = entries(&original);
    assert_eq!(list.len(), 13);
    assert_eq!(list.iter().filter(|(_, _, value)| value == "null").count(), 1);
    for title in
        ["_registry_location", "_registry_character", "__index_characters", "__operation_queue"]
    {
        assert_eq!(list.iter().filter(|(_, found, _)| found == title).count(), 1, "{title}");
    }
    assert!(clone == original, "nothing is left out, nothing reordered");
}

#[test]
fn req_04_recap_object_is_restored_with_all_its_versions() {
    let sandbox = Sandbox::empty();
    let mut library = story("Main", 4);
    let recap = library.recap.as_mut().unwrap();
    (recap.current, recap.versions) = (2, vec![(1, 10), (2, 20), (7, 40)]);
    recap.more.push(("of a later extension".into(), r#"{ "x":[1e3, "\u96e8"] }"#.into()));
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Main", "--as", "Checkpoint"]).exits(0);
    let object = |chat: &[u8]| {
        let header = chat.split(|byte| *byte == b'\n').next().unwrap();
        let raw = st::Raw::parse(header).unwrap();
        let path = ["chat_metadata", "auto_recap_running_scene_recaps"];
        raw.path(&path).unwrap().as_str().to_owned()
    };
    // Byte for byte, except for the chat's name, which must be the new one.
    let original = object(&sandbox.read(&library.chat_path()));
    let checkpoint = object(&sandbox.read("chats/Mira/Checkpoint.jsonl"));
    assert_eq!(checkpoint, original.replace(r#""chat_id":"Main""#, r#""chat_id":"Checkpoint""#));
    assert_eq!(recap_versions(&sandbox.read("chats/Mira/Checkpoint.jsonl")), (2, vec![1, 2, 7]));
}

#[test]
fn req_08_req_16_restored_files_equal_the_snapshot() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::new("Mira", "Another chat").write(&sandbox);
    let mut states = Vec::new();
    for n in 1..=4 {
        let mut library = story("Main", n);
        // Metadata that is added, changed and removed: no state may contain parts of another.
        if n % 2 == 0 {
            library.more.push(("variables".into(), format!(r#"{{"mood":{n}}}"#)));
        } else {
            library.more.push(("note_prompt".into(), format!("\"state {n}\"")));
            library.combined = Some((format!("Until {n}."), n));
        }
        library.write(&sandbox);
        sandbox.stvc(&["snapshot", "Main", "--tag", &format!("state {n}")]).exits(0);
        states.push(sandbox.files());
        sandbox.wait(60);
    }
    for n in [1, 4, 2, 3, 1, 3, 4] {
        sandbox.stvc(&["restore", &format!("state {n}"), "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), &states[n - 1]);
    }
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn req_09_every_field_of_a_lorebook_is_restored() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    let list: Vec<_> =
        library.entries.iter().map(|entry| (entry.key.clone(), entry.json.clone())).collect();
    let reordered = object(&list)
        .replace("\"order\":100", "\"order\":998")
        .replace("\"displayIndex\":", "\"displayIndex\":7");
    let book = pretty(
        &format!(
            r#"{{"name":"As it was called","entries":{reordered},"extensions":{{"x":[null,1.0]}},"originalData":{{"entries":[1]}},"scan_depth":3}}"#
        ),
        4,
    );
    library.write(&sandbox);
    sandbox.write(&library.book_path(), &book);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let clone = sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"));
    assert_eq!(String::from_utf8(clone).unwrap(), book);
}

#[test]
fn req_10_settings_of_sillytavern_are_not_stored() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.write("settings.json", r#"{"a":"secret of the settings"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    for id in sandbox.snapshot_ids() {
        let shown = sandbox.json(&["show", &id]).exits(0).of_type("snapshot").remove(0);
        for file in shown["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            let folder = path.split('/').next().unwrap();
            assert_ne!(folder, "settings.json");
        }
    }
    sandbox.write("settings.json", r#"{"a":"new settings"}"#);
    sandbox.append("chats/Mira Voss/The Tide Office — part 1 (雨).jsonl", r#"{"mes":"x"}"#);
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("settings.json"), br#"{"a":"new settings"}"#);
}

#[test]
fn req_18_lorebook_is_optional_and_found_by_name() {
    let sandbox = Sandbox::empty();
    let bound = |json: &str| format!("{{\"chat_metadata\":{{{json}}}}}\n{{\"mes\":\"hi\"}}");
    for (name, member) in
        [("absent", ""), ("null", r#""world_info":null"#), ("empty", r#""world_info":"""#)]
    {
        sandbox.write(&format!("chats/A/{name}.jsonl"), bound(member));
    }
    sandbox.write("chats/A/bound.jsonl", bound(r#""world_info":"Lore 雨: the \"first\"?""#));
    sandbox.write("worlds/Lore 雨 the first.json", r#"{"entries":{"0":{"uid":0}}}"#);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(codes_and_levels(&answer), []);
    for line in answer.of_type("snapshot") {
        let id = line["id"].as_str().unwrap();
        let shown = sandbox.json(&["show", id]).exits(0).of_type("snapshot").remove(0);
        let files: Vec<_> =
            shown["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
        if line["timeline"] == "chats/A/bound" {
            assert_eq!(files, ["chats/A/bound.jsonl", "worlds/Lore 雨 the first.json"]);
        } else {
            assert_eq!(files.len(), 1);
            assert_eq!(line["lorebook"], Value::Null);
        }
    }
    let answer = sandbox.stvc(&["restore", "A/null", "--as", "fork"]).exits(0);
    assert!(answer.stdout.contains("it has no lorebook"), "{}", answer.stdout);
    assert_eq!(metadata(&sandbox.read("chats/A/fork.jsonl"))["world_info"], Value::Null);
    assert_eq!(codes_and_levels(&sandbox.json(&["doctor"]).exits(0)), []);
    // `show` reports such a chat.
    for name in ["absent", "null", "empty"] {
        let answer = sandbox.json(&["doctor", &format!("A/{name}")]).exits(0);
        assert_eq!(codes_and_levels(&answer), expected_findings(&[("lorebook-none", "info")]));
    }
    assert_eq!(codes_and_levels(&sandbox.json(&["doctor", "A/bound"]).exits(0)), []);
}

#[test]
fn req_45_small_and_timestamp_uids_are_kept_as_keys() {
    let sandbox = Sandbox::empty();
    // The greatest 64-bit number; the queue's key is a timestamp.
    let mut list = vec![Entry::new(i64::MAX, "lore-far", "far")];
    list.extend((0..4).map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")));
    let library = RecapLibrary { entries: list, cache: Vec::new(), ..RecapLibrary::default() };
    library.write(&sandbox);
    assert_eq!(codes_and_levels(&sandbox.json(&["snapshot"]).exits(0)), []);
    let keys: Vec<_> =
        entries(&sandbox.read(&library.book_path())).into_iter().map(|(key, ..)| key).collect();
    let (max, queue) = (i64::MAX.to_string(), "1763632702906".to_owned());
    assert_eq!(keys, ["0", "1", "2", "3", &max, &queue]);
    for (key, entry) in st::entries(&sandbox.read(&library.book_path())) {
        assert_eq!(st::entry_uid(entry).map(|uid| uid.to_string()), Some(key.to_string_lossy()));
    }
    lose_and_restore(&sandbox, &library);
    // A change is reported under its key.
    let book = String::from_utf8(sandbox.read(&library.book_path())).unwrap();
    sandbox.write(&library.book_path(), book.replace("\"far\"", "\"near\""));
    let changes = sandbox.json(&["diff", "Harbour"]).exits(0).of_type("change");
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0]["uid"], &changes[0]["kind"]), (&json!(max), &json!("edited")));
}

#[test]
fn req_55_chat_is_stored_as_header_and_messages() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(taken["messages"], 12);
    let text = library.chat_bytes();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(sandbox.git(&["show", "HEAD:chat/header.json"]), lines[0]);
    for n in [0, 7, 11] {
        let path = format!("HEAD:chat/messages/000/{n:05}.json");
        assert_eq!(sandbox.git(&["show", &path]), lines[n + 1]);
    }
    let stored = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD", "chat/messages"]);
    assert_eq!(stored.lines().count(), 12);
}

#[test]
fn req_76_lines_that_sillytavern_drops_are_reported_and_stored() {
    let whole = RecapLibrary {
        recap: None,
        book: None,
        attached: None,
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    let text = whole.chat_bytes();
    let (header, rest) = text.split_once('\n').unwrap();
    for (bytes, code, words) in [
        (format!("{text}\n{{\"mes\":\"torn"), "chat-line-broken", "line 14"),
        (text.replace("{\"name\":\"Wren\",\"is_user\":true,\"is_system\":false,\"send_date\":\"2026-11-14T23:00:01", "{name:\"2026-11-14T23:00:01"), "chat-line-broken", "line 3"),
        (format!("\u{feff}{text}"), "chat-bom", "byte order mark"),
        (format!("{}\n{rest}", &header[..40]), "chat-header-broken", "metadata and message 0"),
        (format!("[7]\n{rest}"), "chat-header-broken", "metadata"),
        (String::new(), "chat-empty", ""),
    ] {
        let sandbox = Sandbox::empty();
        sandbox.write(&whole.chat_path(), &bytes);
        let answer = sandbox.json(&["snapshot"]).exits(0);
        // SillyTavern opens the others and drops unreadable lines.
        let level = if code == "chat-empty" { "error" } else { "warning" };
        assert_eq!(codes_and_levels(&answer), expected_findings(&[(code, level)]));
        let finding = answer.of_type("finding").remove(0);
        assert!(finding["message"].as_str().unwrap().contains(words), "{finding}");
        fs::remove_file(sandbox.path(&whole.chat_path())).unwrap();
        let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
        assert_eq!(codes_and_levels(&answer), expected_findings(&[(code, level)]));
        assert_eq!(sandbox.read(&whole.chat_path()), bytes.into_bytes());
    }
    // All problems at once; without a header SillyTavern has no metadata, so no lorebook.
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let bytes = format!("\u{feff}{}\nnull\n{{\"mes\":", library.chat_bytes());
    sandbox.write(&library.chat_path(), &bytes);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(
        codes_and_levels(&answer),
        expected_findings(&[("chat-bom", "warning"), ("chat-line-broken", "warning")])
    );
    assert!(answer.stdout.contains("lines 14, 15 cannot be read"), "{}", answer.stdout);
    assert_eq!(answer.of_type("snapshot")[0]["lorebook"], Value::Null);
    // Invalid UTF-8 does not invalidate a header.
    let mut bytes = library.chat_bytes().into_bytes();
    let at = bytes.windows(6).position(|word| word == b"unused").unwrap();
    assert!(!bytes[..at].contains(&b'\n'));
    bytes[at] = 0xff;
    sandbox.write(&library.chat_path(), &bytes);
    assert!(
        codes_and_levels(&sandbox.json(&["snapshot"]).exits(0))
            .iter()
            .all(|(code, _)| code != "chat-header-broken")
    );
}

#[test]
fn req_77_snapshots_are_content_addressed_and_share_storage() {
    let take = |library: &RecapLibrary, wait: i64| {
        let mut sandbox = Sandbox::empty();
        sandbox.wait(wait);
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        let line = sandbox.json(&["log"]).exits(0).of_type("snapshot").remove(0);
        let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
        (line["content"].clone(), line["id"].clone(), tree)
    };
    // Equal states have equal content ids and trees, at any time and place; one more byte gives
    // another.
    let library = story("Main", 20);
    let (content, id, tree) = take(&library, 0);
    let (again, other_id, same_tree) = take(&library, 3600);
    assert_eq!((&content, &tree), (&again, &same_tree));
    assert_ne!(id, other_id);
    let (other, ..) = take(&RecapLibrary { queue: None, ..library.clone() }, 0);
    assert_ne!(content, other);

    // 20 forks of 201 messages and 42 entries are stored as their differences, mostly names.
    let mut sandbox = Sandbox::empty();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let objects = |sandbox: &Sandbox| {
        let list = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        list.lines().count()
    };
    let first = objects(&sandbox);
    assert!(first > 201 + 42);
    for n in 0..20 {
        sandbox.wait(60);
        let options = restore::Options {
            snapshot: "Mira/Main".into(),
            target: restore::Target::NewTimeline { name: format!("Fork {n}"), gate: None },
            ..Default::default()
        };
        restore::restore(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
    }
    let each = (objects(&sandbox) - first) / 20;
    assert!(each <= 10, "{each} new objects a fork");
    // Each keeps its UIDs and can be distinguished.
    let book = library.book_bytes().into_bytes();
    for n in 0..20 {
        assert_eq!(
            sandbox.read(&bound_book(&sandbox, &format!("chats/Mira/Fork {n}.jsonl"))),
            book
        );
    }
    sandbox.stvc(&["diff", "Mira/Fork 1", "Mira/Fork 2", "--exit-code"]).exits(1);
    assert_valid(&sandbox);
}
