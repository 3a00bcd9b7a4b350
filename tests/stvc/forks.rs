//! `restore --as` creates a timeline that shares no file with others.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use stvc::internals::st;

use crate::common::recap_library::{Entry, Operation, RecapLibrary};
use crate::common::recap_story::metadata;
use crate::common::{Sandbox, assert_same};

/// Asserts that every earlier file still has its bytes.
#[track_caller]
fn assert_unchanged(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in before {
        assert_eq!(after.get(path), Some(bytes), "{path} changed");
    }
}

fn new_files(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    after.keys().filter(|path| !before.contains_key(*path)).cloned().collect()
}

#[test]
fn req_19_req_28_restored_copy_differs_only_in_the_names_in_its_header() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    sandbox.stvc(&["restore", "Harbour", "--as", "What if"]).exits(0);
    let after = sandbox.files();
    assert_unchanged(&before, &after);
    let book = "worlds/z-AutoLB-Mira-What if.json";
    assert_eq!(new_files(&before, &after), ["chats/Mira/What if.jsonl", book]);
    // The book and the messages are copied byte for byte; only the header's names change.
    assert_eq!(after[book], library.book_bytes().into_bytes());
    let chat = String::from_utf8(after["chats/Mira/What if.jsonl"].clone()).unwrap();
    let (header, messages) = chat.split_once('\n').unwrap();
    assert_eq!(Some(messages), library.chat_bytes().split_once('\n').map(|(_, rest)| rest));
    let integrity = metadata(chat.as_bytes())["integrity"].as_str().unwrap().to_owned();
    assert_eq!(integrity.len(), 36);
    assert!(!library.chat_bytes().contains(&integrity));
    let header = header.replace(&integrity, "INTEGRITY").replace("},", "},\n");
    insta::assert_snapshot!(header, @r#"
    {"chat_metadata":{"integrity":"INTEGRITY","world_info":"z-AutoLB-Mira-What if","auto_recap_running_scene_recaps":{"chat_id":"What if","current_version":1,"versions":[{"version":0,"timestamp":1763632702000,"content":"The story so far, 0.","scene_count":1,"excluded_count":0,"prev_scene_index":0,"new_scene_index":3,"event_keys":[]},
    {"version":1,"timestamp":1763632702000,"content":"The story so far, 1.","scene_count":2,"excluded_count":0,"prev_scene_index":3,"new_scene_index":7,"event_keys":[]}]},
    "auto_lorebooks":{"lorebookName":"z-AutoLB-Mira-What if","attachedAt":1763632702000,"registry":{"index":{"0":{"uid":0,"id":"0","type":"location","name":"Quay","comment":"location-Quay","synopsis":"","aliases":[]},
    "5":{"uid":5,"id":"5","type":"character","name":"Mira","comment":"character-Mira","synopsis":"","aliases":[]}}}},
    "main_chat":"Harbour nights","auto_recap_checkpoint_state":{"chat_id":"What if","cloned_lorebook_name":"z-AutoLB-Mira-What if","combined_recap_message_count":null,"combined_recap_timestamp":null,"has_running_recap":true,"has_scene_break":false,"has_scene_recap":false,"message_id":11,"original_lorebook_name":"z-AutoLB-Mira-Harbour nights","queue_was_empty":true,"running_recap_scene_count":2,"running_recap_version":1,"scene_break_name":null,"timestamp":1794700000000,"version":2}},
    "user_name":"unused","character_name":"unused"}
    "#);
}

#[test]
fn restored_copy_is_a_fork_of_its_source() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    let taken = sandbox
        .json(&["snapshot", "--tag", "here", "Harbour"])
        .exits(0)
        .of_type("snapshot")
        .remove(0);
    sandbox.wait(60);
    sandbox.append("chats/Mira/Harbour nights.jsonl", r#"{"name":"Mira","mes":"on"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["restore", "here", "--as", "What if"]).exits(0);
    let fork = answer.of_type("snapshot").remove(0);
    assert_eq!(fork["parents"], serde_json::json!([taken["id"]]));
    assert_eq!(fork["fork_at"], 12);
    assert_eq!(fork["timeline"], "chats/Mira/What if");
    // The files equal that snapshot: nothing is left to store.
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    let timeline = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let fork = timeline.iter().find(|line| line["timeline"] == "chats/Mira/What if").unwrap();
    assert_eq!(
        (&fork["parent"], &fork["fork_at"]),
        (&"chats/Mira/Harbour nights".into(), &12.into())
    );
    sandbox.git(&["fsck", "--strict"]);
    let before = sandbox.files();
    // The whole command can be undone.
    sandbox.stvc(&["undo"]).exits(0);
    let after = sandbox.files();
    assert_eq!(new_files(&after, &before).len(), 2);
    assert!(!sandbox.stvc(&["timelines"]).exits(0).stdout.contains("What if"));
}

#[test]
fn req_28_restored_copy_never_uses_an_existing_chat_or_lorebook_name() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write("worlds/z-AutoLB-Mira-What if.json", "{\"entries\":{}}");
    sandbox.write("worlds/Z-AUTOLB-mira-what IF (2).json", "{\"entries\":{}}");
    sandbox.stvc(&["restore", "Harbour", "--as", "What if"]).exits(0);
    assert_eq!(
        metadata(&sandbox.read("chats/Mira/What if.jsonl"))["world_info"],
        "z-AutoLB-Mira-What if (3)"
    );
    let before = sandbox.files();
    for taken in ["What if", "what IF", "Harbour nights", "Harbour nights.jsonl"] {
        let answer = sandbox.stvc(&["restore", "Harbour", "--as", taken]).exits(4);
        assert!(answer.stderr.contains("already exists"), "{}", answer.stderr);
    }
    sandbox.stvc(&["restore", "Harbour", "--as", " "]).exits(2);
    assert_same(&sandbox.files(), &before);
    // Names are sanitized as in SillyTavern.
    sandbox.stvc(&["restore", "Harbour", "--as", "../../A/B: c?"]).exits(0);
    assert!(sandbox.path("chats/Mira/....AB c.jsonl").exists());
}

#[test]
fn copied_lorebook_is_named_after_the_new_chat() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary {
        book: Some("Tide Lore 雨".into()),
        attached: None,
        ..RecapLibrary::default()
    };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--as", "🦊"]).exits(0);
    assert_eq!(sandbox.read("worlds/Tide Lore 雨 - 🦊.json"), library.book_bytes().into_bytes());
}

#[test]
fn req_20_every_restore_writes_the_matching_chat_and_lorebook() {
    let mut sandbox = Sandbox::empty();
    let mut states = BTreeMap::new();
    let mut library = RecapLibrary::default();
    for (n, tag) in ["CP1", "CP2", "CP3", "main"].into_iter().enumerate() {
        library.messages = 12 + n;
        library.entries.push(Entry::new(20 + n as i64, &format!("item-{tag}"), tag));
        library.write(&sandbox);
        sandbox.stvc(&["snapshot", "Harbour", "--tag", tag]).exits(0);
        states.insert(tag, sandbox.files());
        sandbox.wait(60);
    }
    for tag in ["CP1", "CP2", "main", "CP3", "CP1"] {
        sandbox.stvc(&["restore", tag, "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), &states[tag]);
    }
    // Each becomes its own timeline, side by side.
    for (n, tag) in ["CP1", "CP2", "main", "CP3", "CP1"].into_iter().enumerate() {
        let name = format!("{tag} again {n}");
        sandbox.stvc(&["restore", tag, "--as", &name]).exits(0);
        let chat = sandbox.read(&format!("chats/Mira/{name}.jsonl"));
        let book = metadata(&chat)["world_info"].as_str().unwrap().to_owned();
        assert_eq!(sandbox.read(&format!("worlds/{book}.json")), states[tag][&library.book_path()]);
    }
}

#[test]
fn req_68_req_69_queue_is_cleared_only_on_request() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary {
        queue: Some(vec![
            Operation::new("pending").about(3),
            Operation { id: "op_2".into(), ..Operation::new("pending").about(40) },
            Operation { id: "op_3".into(), ..Operation::new("pending") },
        ]),
        ..RecapLibrary::default()
    };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "--allow-active-queue"]).exits(0);
    let active = |name: &str| {
        stvc::internals::auto_recap::queue_activity(
            &sandbox.read(&format!("worlds/z-AutoLB-Mira-{name}.json")),
        )
        .total()
    };
    sandbox.stvc(&["restore", "Harbour", "--as", "kept"]).exits(0);
    assert_eq!(active("kept"), 3);
    let trimmed =
        sandbox.json(&["restore", "Harbour nights", "--as", "trimmed", "--trim-queue"]).exits(0);
    assert_eq!(trimmed.of_type("summary")[0]["dropped_operations"], 1);
    assert_eq!(active("trimmed"), 2);
    sandbox.stvc(&["restore", "Harbour nights", "--as", "cleared", "--clear-queue"]).exits(0);
    assert_eq!(active("cleared"), 0);
    // The other entries of the book stay.
    let others = |name: &str| {
        let book = sandbox.read(&format!("worlds/z-AutoLB-Mira-{name}.json"));
        let entries = st::entries(&book);
        entries
            .iter()
            .filter(|(_, entry)| st::entry_comment(*entry).as_deref() != Some("__operation_queue"))
            .map(|(key, entry)| (key.to_string_lossy(), entry.as_str().to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(others("cleared"), others("kept"));
    // In place too: only on request, and undone byte for byte.
    let before = sandbox.files();
    sandbox.stvc(&["restore", "Harbour nights", "--clear-queue", "--overwrite"]).exits(0);
    assert_eq!(
        stvc::internals::auto_recap::queue_activity(&sandbox.read(&library.book_path())).total(),
        0
    );
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn restored_chat_does_not_name_a_deleted_parent() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    sandbox.stvc(&["restore", "Harbour", "--as", "Back"]).exits(0);
    assert!(metadata(&sandbox.read("chats/Mira/Back.jsonl"))["main_chat"].is_null());
}

#[test]
fn imported_chat_without_lorebook_is_restored_with_the_nearest_one() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.write(
        "backups/chat_mira_20251101-101010.jsonl",
        library.fork("x", 9).chat_bytes().replace(",\"main_chat\":\"Harbour nights\"", ""),
    );
    sandbox.stvc(&["import"]).exits(0);
    let log = sandbox.json(&["log"]).exits(0).of_type("snapshot");
    let backup = log.iter().find(|line| line["kind"] == "import").unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = sandbox.json(&["restore", &backup, "--as", "From backup"]).exits(0);
    let codes: Vec<_> = answer
        .of_type("finding")
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect();
    assert!(codes.contains(&"lorebook-from-elsewhere".to_owned()), "{codes:?}");
    let book = metadata(&sandbox.read("chats/Mira/From backup.jsonl"))["world_info"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(sandbox.read(&format!("worlds/{book}.json")), library.book_bytes().into_bytes());
}

#[test]
fn req_71_group_chats_of_both_layouts_are_restored() {
    for (fixture, chat, group, book) in [
        // The metadata is in the chat.
        ("1.19.0", "Ferry main", "groups/1794700910763.json", "Ferry Lore"),
        // The metadata is in the group's file, under `chat_metadata` for the open chat.
        ("1.12.6", "2024-09-28@01h02m36s", "groups/1794702122839.json", "Old Lore"),
    ] {
        let sandbox = Sandbox::from_fixture(fixture);
        let in_group = fixture == "1.12.6";
        if in_group {
            let text = String::from_utf8(sandbox.read(group)).unwrap();
            let bound =
                text.replacen("\"variables\"", "\"world_info\": \"Old Lore\", \"variables\"", 1);
            sandbox.write(group, bound);
        }
        let path = format!("group chats/{chat}.jsonl");
        let answer = sandbox.json(&["snapshot"]).exits(0);
        let taken = answer.of_type("snapshot");
        let taken = taken.iter().find(|line| line["timeline"] == format!("group chats/{chat}"));
        let taken = taken.unwrap_or_else(|| panic!("{fixture}: {}", answer.stdout));
        assert_eq!(taken["lorebook"], book, "{fixture}");
        let before = sandbox.files();

        // A lost group chat is restored with its lorebook.
        fs::remove_file(sandbox.path(&path)).unwrap();
        fs::remove_file(sandbox.path(&format!("worlds/{book}.json"))).unwrap();
        sandbox.stvc(&["restore", &path]).exits(0);
        assert_same(&sandbox.files(), &before);

        // A copy: the group lists it, its metadata is where this SillyTavern reads it, and nothing
        // else changes.
        sandbox.stvc(&["restore", &path, "--as", "Another evening"]).exits(0);
        let after = sandbox.files();
        let mut rest = before.clone();
        rest.remove(group);
        assert_unchanged(&rest, &after);
        let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        let (old, mut new) = (json(&before[group]), json(&after[group]));
        assert_eq!(new["chats"].as_array_mut().unwrap().pop().unwrap(), "Another evening");
        let fork = &after["group chats/Another evening.jsonl"];
        let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (mut theirs, mut ours): (Vec<_>, Vec<_>) = (lines(fork), lines(&before[&path]));
        let own = if in_group {
            let past = new["past_metadata"].as_object_mut().unwrap();
            past.remove("Another evening").unwrap_or_else(|| panic!("{fixture}"))
        } else {
            let header = json(&theirs.remove(0));
            ours.remove(0);
            header["chat_metadata"].clone()
        };
        assert_eq!(new, old, "{fixture}");
        assert!(theirs == ours, "{fixture}: the messages are the same");
        let clone = own["world_info"].as_str().unwrap();
        assert_ne!(clone, book);
        assert_eq!(after[&format!("worlds/{clone}.json")], before[&format!("worlds/{book}.json")]);
        assert_eq!(new_files(&before, &after).len(), 2, "{fixture}");
        assert!(
            sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"),
            "{fixture}"
        );
        sandbox.stvc(&["undo"]).exits(0);
        assert_same(&sandbox.files(), &before);
    }
}

#[test]
fn timed_effects_in_a_fork_get_the_name_of_its_new_lorebook() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    let book = sandbox.read("worlds/Tide Office Lore.json");
    let (key, entry) = st::entries(&book).into_iter().next().unwrap();
    let uid = key.to_string_lossy();
    let hash = st::effect_hash(entry, "Tide Office Lore").unwrap();
    let text = String::from_utf8(sandbox.read(chat)).unwrap();
    let timed = format!(
        "{{\"chat_metadata\":{{\"timedWorldInfo\":{{\"sticky\":{{\"Tide Office Lore.{uid}\":{{\"hash\":{hash},\"start\":3,\"end\":99,\"protected\":false}},\"Other.1\":{{\"hash\":1,\"start\":1,\"end\":2}}}},\"cooldown\":{{}}}},"
    );
    let text = text.replacen("{\"chat_metadata\":{", &timed, 1);
    sandbox.write(chat, &text);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Tide Office", "--as", "Quiet"]).exits(0);
    let new = "Tide Office Lore - Quiet";
    let effects = metadata(&sandbox.read("chats/Mira Voss/Quiet.jsonl"));
    let metadata = &effects["timedWorldInfo"]["sticky"];
    let effect = &metadata[format!("{new}.{uid}")];
    assert_eq!(effect["hash"], st::effect_hash(entry, new).unwrap());
    assert_eq!((&effect["start"], &effect["end"]), (&3.into(), &99.into()));
    assert!(
        metadata["Other.1"].is_object() && metadata[format!("Tide Office Lore.{uid}")].is_null()
    );
}

#[test]
fn unreadable_headers_are_restored_and_reported() {
    let sandbox = Sandbox::empty();
    sandbox.write(
        "chats/Ann/Broken.jsonl",
        "{\"chat_metadata\":{\"world_info\":\"L\"\n{\"mes\":\"a\"}",
    );
    sandbox.write("worlds/L.json", "{\"entries\":{}}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["restore", "Broken", "--as", "Copy"]).exits(0);
    let codes: Vec<_> = answer
        .of_type("finding")
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect();
    assert!(codes.contains(&"not-isolated".to_owned()), "{codes:?}");
    assert_eq!(sandbox.read("chats/Ann/Copy.jsonl"), sandbox.read("chats/Ann/Broken.jsonl"));
}

#[test]
fn name_of_a_deleted_chat_stays_reserved() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    RecapLibrary { story: "another".into(), ..RecapLibrary::new("Mira", "Other") }.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::remove_file(sandbox.path("chats/Mira/Other.jsonl")).unwrap();
    let before = sandbox.snapshot_ids();
    for name in ["Other", "oTHER"] {
        let answer = sandbox.stvc(&["restore", "Harbour", "--as", name]).exits(4);
        assert!(
            answer.stderr.contains("is the name of a deleted chat that still has snapshots"),
            "{}",
            answer.stderr
        );
    }
    assert_eq!(sandbox.snapshot_ids(), before);
}

#[test]
fn fork_restored_at_a_message_of_its_parent_keeps_its_name() {
    let mut sandbox = Sandbox::empty();
    let full = RecapLibrary::default();
    let early = RecapLibrary { main_chat: None, ..full.fork("Harbour nights", 5) };
    early.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    full.write(&sandbox);
    let mut fork = full.fork("Forked", 9);
    fork.book = Some("Forked book".into());
    fork.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    // The snapshot belongs to the parent: its book is copied under the fork's name.
    let answer =
        sandbox.json(&["restore", "chats/Mira/Forked", "--at", "5", "--overwrite"]).exits(0);
    let written: Vec<_> = answer
        .of_type("file")
        .iter()
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(written, ["chats/Mira/Forked.jsonl", "worlds/Forked book.json"]);
    let after = sandbox.files();
    assert_eq!(after["chats/Mira/Harbour nights.jsonl"], before["chats/Mira/Harbour nights.jsonl"]);
    assert_eq!(metadata(&after["chats/Mira/Forked.jsonl"])["main_chat"], "Harbour nights");
    assert_eq!(after["worlds/Forked book.json"], early.book_bytes().into_bytes());
    assert_eq!(answer.of_type("restored")[0]["timeline"], "chats/Mira/Forked");
}

#[test]
fn new_chat_is_written_to_the_renamed_characters_folder() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::rename(sandbox.path("chats/Mira"), sandbox.path("chats/Mirabel")).unwrap();
    sandbox.append("chats/Mirabel/Harbour nights.jsonl", r#"{"name":"Mira","mes":"on"}"#);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Mirabel/Harbour nights~1", "--as", "X"]).exits(0);
    assert!(sandbox.path("chats/Mirabel/X.jsonl").exists());
    assert_eq!(metadata(&sandbox.read("chats/Mirabel/X.jsonl"))["main_chat"], "Harbour nights");
}

#[test]
fn fork_point_is_found_in_messages_that_a_chat_added_later() {
    let mut sandbox = Sandbox::empty();
    let full = RecapLibrary { messages: 40, ..RecapLibrary::default() };
    RecapLibrary { main_chat: None, ..full.fork("Harbour nights", 5) }.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    full.write(&sandbox);
    full.fork("Forked", 34).write(&sandbox);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    let fork = answer
        .of_type("snapshot")
        .into_iter()
        .find(|line| line["timeline"] == "chats/Mira/Forked")
        .unwrap();
    assert_eq!(fork["fork_at"], 35);
}

#[test]
fn imported_group_chat_is_listed_in_its_group() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["import"]).exits(0);
    let log = sandbox.json(&["log"]).exits(0).of_type("snapshot");
    let backup = log.iter().find(|line| {
        line["kind"] == "import" && line["timeline"].as_str().unwrap().starts_with("group chats/")
    });
    let id = backup.expect("the fixture has one")["id"].as_str().unwrap().to_owned();
    sandbox.stvc(&["restore", &id, "--as", "From a backup"]).exits(0);
    let listed = sandbox.files().into_iter().any(|(path, bytes)| {
        path.starts_with("groups/") && String::from_utf8_lossy(&bytes).contains("From a backup")
    });
    assert!(listed);
}

/// A random tree of forks: each names an earlier chat and the fork point.
fn fork_trees() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, any::<bool>()), 0..5)
        .prop_map(|list| {
            list.into_iter()
                .enumerate()
                .map(|(n, (parent, at, own_book))| (parent.index(n + 1), at, own_book))
                .collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// With any tree of forks, `--as` changes no existing file, and the new book has the entries of
    /// the source byte for byte.
    #[test]
    fn req_25_restore_under_a_new_name_changes_no_existing_file(tree in fork_trees(), pick in any::<prop::sample::Index>()) {
        let sandbox = Sandbox::empty();
        let mut chats = vec![RecapLibrary::default()];
        for (n, (parent, at, own_book)) in tree.into_iter().enumerate() {
            let parent = &chats[parent];
            let mut fork = parent.fork(&format!("Fork {n}"), at.min(parent.messages.saturating_sub(1)));
            if own_book {
                fork.book = Some(format!("{} of {n}", fork.book.unwrap()));
                fork.entries.push(Entry::raw("gone", "null"));
                fork.entries.push(Entry::raw("77", "{\"uid\":77,\"odd\":1e21,\"t\":\"\\ud83d\", \"__proto__\":[]}"));
            }
            chats.push(fork);
        }
        for chat in &chats {
            chat.write(&sandbox);
        }
        sandbox.stvc(&["snapshot"]).exits(0);
        let source = &chats[pick.index(chats.len())];
        let before = sandbox.files();
        sandbox.stvc(&["restore", &format!("chats/Mira/{}", source.chat), "--as", "New one"]).exits(0);
        let after = sandbox.files();
        assert_unchanged(&before, &after);
        let chat = after.get("chats/Mira/New one.jsonl").unwrap();
        let book = metadata(chat)["world_info"].as_str().unwrap().to_owned();
        let path = format!("worlds/{book}.json");
        prop_assert!(!before.contains_key(&path));
        prop_assert_eq!(&after[&path], &before[&source.book_path()]);
        prop_assert_eq!(new_files(&before, &after).len(), 2);
    }
}

/// A fork records its own lorebook as isolated.
#[test]
fn req_38_req_41_fork_records_both_lorebooks() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    let old = library.book.clone().unwrap();
    // The extension recorded one at an earlier checkpoint.
    let noted = format!(
        r#"{{"version":2,"chat_id":"Harbour nights","cloned_lorebook_name":"{old}","running_recap_version":1}}"#
    );
    for noted in [None, Some(noted)] {
        library.more =
            noted.map(|noted| ("auto_recap_checkpoint_state".into(), noted)).into_iter().collect();
        library.chat =
            if library.more.is_empty() { "Harbour nights" } else { "Harbour days" }.into();
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        let name = format!("What if of {}", library.chat);
        let answer = sandbox.stvc(&["restore", &library.chat, "--as", &name]).exits(0);
        assert!(!answer.stderr.contains("isolation"), "{}", answer.stderr);
        let chat = sandbox.read(&format!("chats/Mira/{name}.jsonl"));
        let state = metadata(&chat)["auto_recap_checkpoint_state"].clone();
        let new = metadata(&chat)["world_info"].as_str().unwrap().to_owned();
        assert_eq!(state["cloned_lorebook_name"], new.as_str());
        assert_eq!(state["original_lorebook_name"], old.as_str());
        assert_eq!(state["chat_id"], name.as_str());
        // Another restore reproduces the record.
        let shown = sandbox.json(&["show", &name]).exits(0).of_type("snapshot").remove(0);
        assert_eq!(shown["state"]["original_lorebook_name"], old.as_str());
        assert_eq!(shown["state"]["cloned_lorebook_name"], new.as_str());
        std::fs::remove_file(sandbox.path(&format!("chats/Mira/{name}.jsonl"))).unwrap();
        let answer = sandbox.stvc(&["restore", &name]).exits(0);
        assert!(!answer.stderr.contains("mismatch"), "{}", answer.stderr);
    }
}

/// ST-Auto-Recap isolates a fork by `world_info` alone and leaves the parent's name in
/// `auto_lorebooks.lorebookName`. A fork of that fork must record its own book.
#[test]
fn fork_of_a_fork_records_its_own_lorebook() {
    let main = RecapLibrary::default();
    let mut fork = main.fork("Branch #1", 7);
    fork.book = Some("z-AutoLB-Mira-Branch #1".into());
    for words in [
        &["restore", "Branch #1", "--as", "Second"][..],
        &["restore", "Branch #1", "--as", "Second", "--at", "3"],
        &["fork", "Branch #1", "--at", "3", "--as", "Second"],
    ] {
        let sandbox = Sandbox::empty();
        main.write(&sandbox);
        fork.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(words).exits(0);
        let made = metadata(&sandbox.read("chats/Mira/Second.jsonl"));
        assert_eq!(made["world_info"], "z-AutoLB-Mira-Second", "{words:?}");
        assert_eq!(made["auto_lorebooks"]["lorebookName"], "z-AutoLB-Mira-Second", "{words:?}");
        assert_eq!(made["auto_lorebooks"]["attachedAt"], 1_763_632_702_000_i64, "{words:?}");
    }
    // A repair that isolates a fork records it too.
    let sandbox = Sandbox::empty();
    for library in [&main, &fork, &fork.fork("Branch #2", 5)] {
        library.write(&sandbox);
    }
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let made = metadata(&sandbox.read("chats/Mira/Branch #2.jsonl"));
    assert_ne!(made["world_info"], fork.book.unwrap());
    assert_eq!(made["auto_lorebooks"]["lorebookName"], made["world_info"]);
}
