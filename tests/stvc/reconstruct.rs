//! `reconstruct`: past states of a lorebook from the records in messages.

use stvc::internals::st;

use crate::common::recap_library::{Entry, RecapLibrary};
use crate::common::recap_story::{
    assert_unchanged, bound_book, codes_and_levels, entries, expected_findings, queue_length,
    recap_versions, story,
};
use crate::common::{Sandbox, assert_same, finding_codes};

const QUEUE: &str = "__operation_queue";

fn titles(book: &[u8]) -> Vec<(String, String)> {
    let title = |entry| st::entry_comment(entry).unwrap_or_default();
    st::entries(book)
        .into_iter()
        .map(|(key, entry)| (key.to_string_lossy(), title(entry)))
        .collect()
}

/// Returns chat and lorebook of a snapshot.
fn files_of(sandbox: &Sandbox, snapshot: &str) -> (Vec<u8>, Vec<u8>) {
    let dir = sandbox.folder().join(format!("look {snapshot}"));
    sandbox.stvc(&["restore", snapshot, "--to", dir.to_str().unwrap()]).exits(0);
    let files = crate::common::files(&dir);
    let chat = files.iter().find(|(path, _)| path.ends_with(".jsonl")).unwrap().1.clone();
    let book = files.iter().find(|(path, _)| path.starts_with("worlds/")).unwrap().1.clone();
    (chat, book)
}

fn header(chat: &[u8]) -> serde_json::Value {
    serde_json::from_slice(chat.split(|byte| *byte == b'\n').next().unwrap()).unwrap()
}

#[test]
fn req_46_req_47_req_49_reconstruct_creates_earlier_snapshots_of_a_chat() {
    let mut sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let before = sandbox.files();
    let answer = sandbox.json(&["reconstruct", "Harbour", "--all"]).exits(0);
    assert_same(&sandbox.files(), &before);
    let made = answer.of_type("snapshot");
    assert_eq!(made.len(), 2);
    assert!(made.iter().all(|line| line["kind"] == "reconstructed"));
    let id = |n: usize| made[n]["id"].as_str().unwrap().to_owned();

    // They come before the current state, ordered by scene.
    let log = sandbox.json(&["log", "Harbour"]).exits(0).of_type("snapshot");
    let kinds: Vec<_> = log
        .iter()
        .map(|line| (line["kind"].as_str().unwrap(), line["messages"].as_u64().unwrap()))
        .collect();
    assert_eq!(kinds, [("snapshot", 12), ("reconstructed", 8), ("reconstructed", 4)]);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);

    // Messages 0 to N, the recap and the lorebook of that time under its own UIDs, with an empty
    // queue.
    let (chat, book) = files_of(&sandbox, &id(0));
    let text = String::from_utf8(chat.clone()).unwrap();
    assert_eq!(text.lines().count(), 5);
    assert_eq!(
        text.lines().skip(1).collect::<Vec<_>>(),
        library.chat_bytes().lines().skip(1).take(4).collect::<Vec<_>>()
    );
    let recap = &header(&chat)["chat_metadata"]["auto_recap_running_scene_recaps"];
    assert_eq!(recap["current_version"], 0);
    assert_eq!(recap["versions"].as_array().unwrap().len(), 1);
    let cache = &header(&chat)["chat_metadata"]["auto_lorebooks"]["registry"]["index"];
    assert_eq!(cache.as_object().unwrap().keys().collect::<Vec<_>>(), ["0"]);
    let expected: Vec<(String, String)> = [
        ("0", "location-Quay"),
        ("1", "_registry_location"),
        ("1763632702000", "__operation_queue"),
    ]
    .map(|(key, title)| (key.into(), title.into()))
    .into();
    assert_eq!(titles(&book), expected);
    // The rules find no problem: registries resolve, the queue is empty, the cache matches.
    assert!(finding_codes(&sandbox.json(&["show", &id(0)]).exits(0)).is_empty());

    // A second run adds nothing.
    sandbox.wait(60);
    let again = sandbox.json(&["reconstruct", "Harbour"]).exits(0);
    assert_eq!(again.of_type("summary")[0]["known"], 2);
    assert_eq!(sandbox.chat_ids().len(), 3);
}

#[test]
fn rebuilt_entries_get_missing_fields_from_a_later_version() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    // The extension's records have no scanDepth and always an empty keysecondary; the current book
    // has both.
    let note = r#"{"uid":5,"comment":"character-Mira","content":"She keeps the charts.","key":["mira"],"keysecondary":[],"world":"W","strategy":"normal","order":3}"#;
    library.scenes[1].entries = vec![
        Entry::raw("5", note),
        Entry::raw("8", r#"{"uid":8,"comment":"item-Lost","content":"gone since"}"#),
    ];
    let now = r#"{"uid":5,"scanDepth":7,"keysecondary":["captain"],"comment":"character-Mira","content":"She has left.","key":["mira"],"order":100,"cooldown":2}"#;
    library.entries = vec![Entry::raw("5", now)];
    library.cache.clear();
    library.write(&sandbox);
    let answer = sandbox.json(&["reconstruct", "Harbour", "--at", "7"]).exits(0);
    let entries = answer.of_type("entry");
    assert_eq!(entries[0]["uid"], "5");
    assert_eq!(entries[0]["filled"], serde_json::json!(["scanDepth", "keysecondary", "cooldown"]));
    assert!(
        entries[0]["filled_from"].as_str().unwrap().len() == 40,
        "the snapshot of now is the nearest: {}",
        entries[0]
    );
    assert!(entries[1]["filled_from"].is_null());
    assert!(entries[1]["defaults"].as_array().unwrap().contains(&"scanDepth".into()));
    let id = answer.of_type("snapshot").remove(0)["id"].as_str().unwrap().to_owned();
    let (_, book) = files_of(&sandbox, &id);
    let book = String::from_utf8(book).unwrap();
    assert!(book.contains(r#"She keeps the charts."#) && !book.contains("She has left."));
    assert!(book.contains("captain") && book.contains("\"scanDepth\": 7"));
}

#[test]
fn req_48_reconstruct_reports_messages_without_a_recorded_lorebook() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    // Nothing was recorded before the end of the first scene.
    let answer = sandbox.json(&["reconstruct", "Harbour", "--at", "2"]).exits(4);
    assert_eq!(finding_codes(&answer), ["lorebook-then-unknown"]);
    assert!(answer.of_type("error")[0]["message"].as_str().unwrap().contains("message 2"));
    sandbox.stvc(&["reconstruct", "Harbour", "--at", "12"]).exits(4);
    for scene in &mut library.scenes {
        scene.entries.clear();
    }
    library.chat = "Without notes".into();
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    let answer = sandbox.json(&["reconstruct", "Without notes"]).exits(4);
    assert_eq!(answer.of_type("summary")[0]["lost"], 2);
    // The chat can be restored without its lorebook.
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Without notes", "--at", "7", "--to", "../nothing"]).exits(4);
    sandbox
        .stvc(&["restore", "Without notes", "--at", "7", "--to", "../chat", "--only", "chat"])
        .exits(0);
}

#[test]
fn req_08_state_at_a_message_is_rebuilt_when_no_snapshot_has_it() {
    let sandbox = Sandbox::empty();
    let (main, then) = (story("Main", 10), story("Main", 5));
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    let answer = sandbox.json(&["restore", "Main", "--at", "50", "--as", "Checkpoint"]).exits(0);
    assert_unchanged(&sandbox, &before);
    assert_eq!(codes_and_levels(&answer), []);
    let chat = sandbox.read("chats/Mira/Checkpoint.jsonl");
    let lines = |chat: &str| chat.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&String::from_utf8(chat.clone()).unwrap()), lines(&then.chat_bytes()));
    assert_eq!(recap_versions(&chat), (5, (1..=5).collect()));
    let book = sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"));
    let values = |book: &[u8]| -> Vec<(String, serde_json::Value)> {
        let without_queue = entries(book).into_iter().filter(|(_, title, _)| title != QUEUE);
        without_queue.map(|(key, _, text)| (key, serde_json::from_str(&text).unwrap())).collect()
    };
    assert_eq!(values(&book), values(then.book_bytes().as_bytes()));
    assert_eq!(queue_length(&book), 0);
}

/// Writes a chat whose scene at message 7 recorded these entries, restores message 7 as a new chat,
/// and returns the keys of its lorebook and the findings.
fn restored_from_notes(notes: Vec<Entry>) -> (Vec<String>, Vec<(String, String)>) {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[1].entries = notes;
    // Only the records have the former lorebook.
    library.entries = vec![Entry::new(0, "Another entry", "Under a UID that was free again.")];
    library.cache.clear();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["restore", "Harbour", "--at", "7", "--as", "Then"]).exits(0);
    let book = sandbox.read(&bound_book(&sandbox, "chats/Mira/Then.jsonl"));
    let keys = titles(&book).into_iter().filter(|(_, title)| title != QUEUE);
    (keys.map(|(key, _)| key).collect(), codes_and_levels(&answer))
}

#[test]
fn req_50_req_51_req_52_rebuilt_lorebook_keeps_gaps_and_registries() {
    let lore = |uid: i64| Entry::new(uid, &format!("lore-{uid}"), "x");
    let registry = |uid: i64| Entry::registry(uid, "lore", &[(1, "lore-1"), (7, "lore-7")]);
    let all = vec![lore(7), lore(6), registry(5), lore(2), lore(1), lore(0)];
    let (keys, findings) = restored_from_notes(all);
    assert_eq!(keys, ["0", "1", "2", "5", "6", "7"]);
    assert_eq!(findings, expected_findings(&[("uid-gaps", "info")]));
    let (keys, findings) = restored_from_notes(vec![lore(0), lore(1), registry(2)]);
    assert_eq!(keys, ["0", "1", "2"]);
    assert_eq!(findings, expected_findings(&[("registry-dangling", "warning")]));
    // The scene recorded nothing, so the previous one is used.
    let (keys, findings) = restored_from_notes(Vec::new());
    assert_eq!(keys, ["0", "1"]);
    let not_ready = ("scene-lorebook-missing", "warning");
    assert_eq!(findings, expected_findings(&[("note-missing", "warning"), not_ready]));
}

#[test]
fn reconstruct_prefers_a_snapshot_at_the_message() {
    let mut sandbox = Sandbox::empty();
    let full = RecapLibrary::default();
    let early = RecapLibrary { main_chat: None, ..full.fork("Harbour nights", 5) };
    let early = RecapLibrary {
        entries: vec![Entry::new(0, "location-Quay", "As it really was.")],
        cache: Vec::new(),
        ..early
    };
    early.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let then = sandbox.files();
    sandbox.wait(60);
    full.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    // A checkpoint at that message has the current lorebook, so it is not a source.
    sandbox.stvc(&["snapshot", "Harbour", "--at", "5"]).exits(0);
    sandbox
        .stvc(&["restore", "chats/Mira/Harbour nights", "--at", "5", "--to", "../then"])
        .exits(0);
    let there = crate::common::files(&sandbox.folder().join("then"));
    assert_eq!(there[&full.book_path()], then[&full.book_path()]);
    assert_eq!(there[&full.chat_path()], then[&full.chat_path()]);
    // Without a snapshot: the latest scene up to the message.
    let answer = sandbox
        .json(&["restore", "chats/Mira/Harbour nights", "--at", "9", "--to", "../nine"])
        .exits(0);
    let line = answer.of_type("restored").remove(0);
    assert_eq!(line["reconstructed"]["scene_message"], 7);
    assert_eq!(line["messages"], 10);
    assert_eq!(answer.of_type("entry").len(), 4);
}

#[test]
fn req_49_reconstruction_can_become_a_new_timeline() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    sandbox.stvc(&["restore", "Harbour", "--at", "4", "--as", "Another way"]).exits(0);
    for (path, bytes) in &before {
        assert_eq!(&sandbox.read(path), bytes);
    }
    let chat = sandbox.read("chats/Mira/Another way.jsonl");
    let metadata = &header(&chat)["chat_metadata"];
    assert_eq!(metadata["auto_recap_running_scene_recaps"]["chat_id"], "Another way");
    assert_eq!(metadata["world_info"], "z-AutoLB-Mira-Another way");
    assert_eq!(metadata["main_chat"], "Harbour nights");
    assert_eq!(titles(&sandbox.read("worlds/z-AutoLB-Mira-Another way.json")).len(), 3);
    let fork =
        sandbox.json(&["show", "chats/Mira/Another way"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!((&fork["fork_at"], &fork["messages"]), (&5.into(), &5.into()));
    // In place it needs `--overwrite`, and can be undone.
    sandbox.stvc(&["restore", "chats/Mira/Harbour nights", "--at", "4"]).exits(4);
    let before = sandbox.files();
    sandbox.stvc(&["restore", "chats/Mira/Harbour nights", "--at", "4", "--overwrite"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn fork_is_reconstructed_from_its_own_scenes() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let mut fork = library.fork("Fork", 5);
    fork.messages = 9;
    fork.scenes = vec![
        library.scenes[0].clone(),
        crate::common::recap_library::Scene::new(7, "Elsewhere", library.entries.clone()),
    ];
    fork.story = "harbour".into();
    fork.write(&sandbox);
    // From message 6 on it differs.
    let text = String::from_utf8(sandbox.read("chats/Mira/Fork.jsonl")).unwrap();
    sandbox.write("chats/Mira/Fork.jsonl", text.replace("Message 6 of", "Another 6 of"));
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["reconstruct", "chats/Mira/Fork"]).exits(0);
    let summary = &answer.of_type("summary")[0];
    assert_eq!((&summary["reconstructed"], &summary["of_parent"]), (&1.into(), &1.into()));
    let made = answer.of_type("snapshot").remove(0);
    assert_eq!((&made["messages"], &made["fork_at"]), (&8.into(), &6.into()));
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn invalid_scene_records_do_not_make_reconstruct_fail() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[0].entries = vec![
        Entry::raw("", "null"),
        Entry::raw("", "[1]"),
        Entry::raw("", r#"{"uid":2000000,"comment":"__proto__","content":"\ud83d","tags":{}}"#),
        Entry::raw("", r#"{"uid":"7"}"#),
    ];
    library.scenes[1].entries = vec![Entry::raw("", "null")];
    library.write(&sandbox);
    let answer = sandbox.json(&["reconstruct", "Harbour"]).exits(0);
    assert!(finding_codes(&answer).contains(&"note-unreadable".to_owned()));
    let id = answer.of_type("snapshot").remove(0)["id"].as_str().unwrap().to_owned();
    let (_, book) = files_of(&sandbox, &id);
    assert_eq!(titles(&book)[0], ("2000000".into(), "__proto__".into()));
}

#[test]
fn dry_run_writes_nothing() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    let answer = sandbox.json(&["reconstruct", "Harbour", "--dry-run"]).exits(0);
    assert_eq!(answer.of_type("summary")[0]["reconstructed"], 2);
    assert!(!sandbox.store().exists());
}

#[test]
fn library_without_the_extension_has_nothing_to_reconstruct() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let answer = sandbox.stvc(&["reconstruct", "Snow shrine"]).exits(0);
    assert!(answer.stdout.contains("Nothing to reconstruct: no message of "), "{}", answer.stdout);
}

#[test]
fn refused_reconstruct_writes_nothing() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["reconstruct", "Harbour", "--at", "1"]).exits(4);
    assert!(!sandbox.store().exists());
    for scene in &mut library.scenes {
        scene.entries.clear();
    }
    library.write(&sandbox);
    sandbox.stvc(&["reconstruct", "Harbour"]).exits(4);
    assert!(!sandbox.store().exists());
}

#[test]
fn snapshot_without_lorebook_is_not_used_for_an_earlier_message() {
    let mut sandbox = Sandbox::empty();
    let full = RecapLibrary::default();
    let early = RecapLibrary { main_chat: None, ..full.fork("Harbour nights", 3) };
    sandbox.write(&early.chat_path(), early.chat_bytes());
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    full.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--at", "3", "--as", "Early"]).exits(0);
    assert_eq!(titles(&sandbox.read("worlds/z-AutoLB-Mira-Early.json")).len(), 3);
}

#[test]
fn reconstruct_keeps_the_largest_uid() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    let entry = format!(r#"{{"uid":{},"comment":"last"}}"#, i64::MAX);
    library.scenes[0].entries = vec![Entry::raw("", &entry)];
    library.write(&sandbox);
    let answer = sandbox.json(&["reconstruct", "Harbour", "--at", "3"]).exits(0);
    let id = answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned();
    let keys: Vec<_> = titles(&files_of(&sandbox, &id).1).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["9223372036854775807", "1763632702000"]);
}

#[test]
fn restore_at_scene_end_skips_snapshot_without_the_scene_record() {
    let mut sandbox = Sandbox::empty();
    let full = RecapLibrary::default();
    // Saved right after message 7: no scene break, no record, the previous lorebook.
    let mut early = RecapLibrary { main_chat: None, ..full.fork("Harbour nights", 7) };
    early.scenes.truncate(1);
    early.entries.truncate(2);
    early.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    full.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--at", "7", "--as", "Then"]).exits(0);
    assert_eq!(titles(&sandbox.read("worlds/z-AutoLB-Mira-Then.json")).len(), 5);
    let answer = sandbox.json(&["reconstruct", "chats/Mira/Harbour nights"]).exits(0);
    assert_eq!(answer.of_type("summary")[0]["reconstructed"], 2);
}

#[test]
fn combined_recap_of_later_scenes_is_removed_and_reported() {
    let sandbox = Sandbox::empty();
    let library =
        RecapLibrary { combined: Some(("All of it.".into(), 12)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["snapshot", "Harbour", "--at", "7"]).exits(0);
    assert!(answer.stderr.contains("the combined recap covers 12 messages"), "{}", answer.stderr);
    let answer = sandbox.stvc(&["restore", "Harbour nights", "--at", "7", "--as", "then"]).exits(0);
    assert!(
        answer.stdout.contains("The combined recap covered 12 messages and was removed."),
        "{}",
        answer.stdout
    );
    let chat = String::from_utf8(sandbox.read("chats/Mira/then.jsonl")).unwrap();
    assert!(!chat.contains("All of it."), "{chat}");
    // A recap that can be of that time stays, and is reported as by `restore`.
    let words = ["restore", "Harbour nights", "--at", "11", "--as", "now"];
    let answer = sandbox.json(&words).exits(0).of_type("restored").remove(0);
    assert_eq!(answer["combined_recap_message_count"], 12);
    assert_eq!(answer["running_recap_scene_count"], 2);
}
