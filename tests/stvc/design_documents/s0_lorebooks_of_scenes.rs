//! S0: lorebooks from the notes of scenes.

use serde_json::{Value, json};
use stvc::st;

use crate::common::recap_library::{Entry, Operation, RecapLibrary, Scene};
use crate::common::recap_story::{bound_book, entries, found, told, untouched, waiting};
use crate::common::{Answer, Sandbox, assert_same};

/// A chat whose scene at message 7 noted these entries. Since then the lorebook has become another: what is restored can only come from the note.
fn noted_entries(notes: Vec<Entry>) -> (Sandbox, RecapLibrary) {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    let book = library.book.clone().unwrap();
    library.scenes[1] = Scene { book, ..Scene::new(7, "The ferry", notes) };
    library.entries = vec![Entry::new(0, "Another entry", "Under a UID that was free again.")];
    library.cache.clear();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    (sandbox, library)
}

/// The lorebook that the chat had at message 7, as that of a timeline of its own; nothing else changes.
#[track_caller]
fn at_7(sandbox: &Sandbox) -> (Vec<u8>, Answer) {
    let before = sandbox.files();
    let answer =
        sandbox.json(&["restore", "Mira/Harbour nights", "--at", "7", "--as", "CP"]).exits(0);
    untouched(sandbox, &before);
    (sandbox.read(&bound_book(sandbox, "chats/Mira/CP.jsonl")), answer)
}

/// The twelve entries of the lorebook that S0 looked at.
fn lyra() -> Vec<Entry> {
    let registered: [(&str, &str); 7] = [
        (
            "character",
            "uid: 7 | name: character-Lyra Heartstrings\n- uid: 8 | name: character-Bon Bon",
        ),
        (
            "location",
            "uid: 9 | name: location-Park\n- uid: 10 | name: location-Lyra and Bon Bon's Home",
        ),
        ("item", ""),
        ("faction", ""),
        ("lore", "uid: 11 | name: lore-Equestria Society"),
        ("quest", ""),
        ("rule", ""),
    ];
    let registry = |(uid, (kind, lines)): (i64, (&str, &str))| {
        let lines = if lines.is_empty() { String::new() } else { format!("\n- {lines}") };
        Entry::registry_of(uid, kind, &format!("[Registry: {kind}]{lines}"))
    };
    let mut entries: Vec<_> = (0..).zip(registered).map(registry).collect();
    let titles = [
        "character-Lyra Heartstrings",
        "character-Bon Bon",
        "location-Park",
        "location-Lyra and Bon Bon's Home",
        "lore-Equestria Society",
    ];
    entries.extend(
        (7..)
            .zip(titles)
            .map(|(uid, title)| Entry::new(uid, title, &format!("All about {title}."))),
    );
    entries
}

/// The keys and titles of a book without its queue, and the queue's key.
fn titled(book: &[u8]) -> (Vec<(String, String)>, String) {
    let mut all: Vec<_> = entries(book).into_iter().map(|(key, title, _)| (key, title)).collect();
    let (key, title) = all.pop().unwrap();
    assert_eq!(title, "__operation_queue", "{all:?}");
    (all, key)
}

#[test]
fn s0_req_52_uids_match_0_1_2() {
    // Whatever the order in which they were noted.
    let mut notes = lyra();
    notes.reverse();
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(found_here.len(), 12);
    for (n, ((key, title), entry)) in found_here.iter().zip(lyra()).enumerate() {
        assert_eq!(key, &n.to_string());
        let noted: Value = serde_json::from_str(&entry.json).unwrap();
        assert_eq!((json!(title), json!(n)), (noted["comment"].clone(), noted["uid"].clone()));
    }
    for (key, entry) in st::entries(&book) {
        assert_eq!(st::entry_uid(entry).unwrap().to_string(), key.to_string_lossy());
    }
    assert_eq!(told(&answer), []);
}

#[test]
fn s0_req_52_registry_references_work() {
    let (sandbox, _) = noted_entries(lyra());
    let (book, answer) = at_7(&sandbox);
    let all = entries(&book);
    let mut references = 0;
    for (_, _, text) in all.iter().filter(|(_, title, _)| title.starts_with("_registry_")) {
        let registry: Value = serde_json::from_str(text).unwrap();
        for line in registry["content"].as_str().unwrap().lines().skip(1) {
            let (uid, name) = line.split_once(" | name: ").unwrap();
            let uid = uid.strip_prefix("- uid: ").unwrap();
            let entry = all.iter().find(|(key, ..)| key == uid).unwrap();
            assert_eq!(entry.1, name);
            references += 1;
        }
    }
    assert_eq!(references, 5);
    assert_eq!(told(&answer), []);
    // A reference that leads nowhere is found.
    let mut notes = lyra();
    notes.remove(8);
    let (sandbox, _) = noted_entries(notes);
    let (_, answer) = at_7(&sandbox);
    assert!(told(&answer).contains(&("registry-dangling".into(), "warning".into())));
}

#[test]
fn s0_req_52_no_cross_contamination() {
    let (sandbox, library) = noted_entries(lyra());
    let main = sandbox.files();
    let (book, _) = at_7(&sandbox);
    let fork_book = bound_book(&sandbox, "chats/Mira/CP.jsonl");
    // The fork's lorebook changes, and main's does not; nor the other way round.
    sandbox
        .write(&fork_book, String::from_utf8(book).unwrap().replace("All about", "Nothing about"));
    sandbox.append("chats/Mira/CP.jsonl", &library.message(8));
    sandbox.stvc(&["snapshot"]).exits(0);
    untouched(&sandbox, &main);
    let fork = sandbox.files();
    sandbox.stvc(&["restore", "chats/Mira/Harbour nights", "--at", "7", "--overwrite"]).exits(0);
    for path in [fork_book.as_str(), "chats/Mira/CP.jsonl"] {
        assert_eq!(sandbox.read(path), fork[path], "{path}");
    }
    assert_ne!(sandbox.read(&library.book_path()), main[&library.book_path()]);
}

#[test]
fn s0_ec1_the_queue_is_left_out_and_a_fresh_one_made() {
    let mut notes = lyra();
    notes.push(Entry::queue(1_763_632_438_061, &[Operation::new("pending").about(3)]));
    let (sandbox, _) = noted_entries(notes);
    let (book, _) = at_7(&sandbox);
    let (found_here, queue) = titled(&book);
    assert_eq!(found_here.len(), 12);
    assert_eq!(waiting(&book), 0);
    assert_ne!(queue, "1763632438061", "a new moment, not the noted one");
    assert!(queue.parse::<i64>().unwrap() > 1_000_000_000_000, "{queue}");
    assert!(!String::from_utf8(book).unwrap().contains("GENERATE_SCENE_RECAP"));
}

#[test]
fn s0_ec2_uids_that_do_not_start_at_0_are_kept() {
    let notes: Vec<_> = lyra().into_iter().skip(5).take(4).collect();
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(
        found_here.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["5", "6", "7", "8"]
    );
    assert_eq!(told(&answer), found(&[("uid-gaps", "info")]));
}

#[test]
fn s0_ec3_gaps_are_kept_and_registries_still_resolve() {
    let mut notes: Vec<_> =
        [0, 1, 2].map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")).into();
    notes.push(Entry::registry(5, "lore", &[(1, "lore-1"), (7, "lore-7")]));
    notes.extend([6, 7].map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")));
    let (sandbox, _) = noted_entries(notes);
    let (book, answer) = at_7(&sandbox);
    let (found_here, _) = titled(&book);
    assert_eq!(
        found_here.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "5", "6", "7"]
    );
    assert_eq!(told(&answer), found(&[("uid-gaps", "info")]), "no reference dangles");
}

#[test]
fn s0_missing_metadata_is_handled() {
    let (sandbox, library) = noted_entries(Vec::new());
    // The scene before it has notes: these are taken, and that is said.
    let (book, answer) = at_7(&sandbox);
    assert_eq!(titled(&book).0.len(), library.scenes[0].entries.len());
    let not_ready = ("scene-lorebook-missing", "warning");
    assert_eq!(told(&answer), found(&[("note-missing", "warning"), not_ready]));
    // None has: an error that names the message, and nothing is written.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes.iter_mut().for_each(|scene| scene.entries.clear());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    let answer = sandbox.json(&["restore", "Harbour", "--at", "7", "--as", "CP"]).exits(4);
    assert_eq!(told(&answer), found(&[("lorebook-then-unknown", "error")]));
    assert!(answer.of_type("error")[0]["message"].as_str().unwrap().contains("message 7"));
    assert_same(&sandbox.files(), &before);
}
