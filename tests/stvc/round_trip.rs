//! Round trips through the store, of real, unusual and generated libraries.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use stvc::progress::NoProgress;
use stvc::verbs::{self, restore, snapshot};

use crate::common::generated_library;
use crate::common::{Sandbox, assert_same, files, git};

const LIBRARIES: [&str; 3] = ["1.19.0", "1.12.6", "odd"];

/// Lists the paths of a library that snapshots contain: chats, bound lorebooks, groups.
fn stored_paths(sandbox: &Sandbox) -> Vec<String> {
    let mut paths = Vec::new();
    for id in sandbox.snapshot_ids() {
        let shown = sandbox.json(&["show", &id]).exits(0);
        for file in shown.of_type("snapshot")[0]["files"].as_array().unwrap() {
            paths.push(file["path"].as_str().unwrap().to_owned());
        }
    }
    paths.sort();
    paths.dedup();
    paths
}

fn timelines(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.json(&["timelines"]).exits(0);
    let lines = answer.of_type("timeline");
    let name = |line: &serde_json::Value| line["timeline"].as_str().unwrap().to_owned();
    lines.iter().map(name).collect()
}

#[test]
fn every_library_is_restored_after_deletion() {
    for library in LIBRARIES {
        let sandbox = Sandbox::from_fixture(library);
        let before = sandbox.files();
        let chats =
            before.keys().filter(|path| path.ends_with(".jsonl") && !path.starts_with("backups/"));
        let chats: Vec<_> = chats.collect();
        sandbox.stvc(&["snapshot"]).exits(0);
        let stored = stored_paths(&sandbox);
        assert!(chats.iter().all(|chat| stored.contains(chat)), "{library}");
        assert!(stored.len() > chats.len(), "{library}: no lorebook was stored");

        for path in &stored {
            fs::remove_file(sandbox.path(path)).unwrap();
        }
        let names = timelines(&sandbox);
        assert_eq!(names.iter().filter(|name| name.contains("chats/")).count(), chats.len());
        for name in &names {
            sandbox.stvc(&["restore", name]).exits(0);
        }
        assert_same(&sandbox.files(), &before);
        // `check` agrees.
        sandbox.stvc(&["check"]).exits(0);
        let status = sandbox.json(&["status"]).exits(0);
        for line in status.of_type("timeline") {
            assert_eq!(line["state"], "unchanged", "{line}");
        }
    }
}

#[test]
fn restore_to_folder_writes_exactly_the_snapshots_files() {
    for library in LIBRARIES {
        let sandbox = Sandbox::from_fixture(library);
        sandbox.stvc(&["snapshot"]).exits(0);
        let before = sandbox.files();
        for (n, name) in timelines(&sandbox).iter().enumerate() {
            let to = sandbox.folder().join(format!("to {n}"));
            let answer = sandbox.json(&["restore", name, "--to", to.to_str().unwrap()]);
            let answer = answer.exits(0);
            let listed = answer.of_type("file");
            let found = files(&to);
            assert!(found.keys().any(|path| path.starts_with(name.as_str())), "{name}");
            assert_eq!(found.len(), listed.len());
            for (path, bytes) in &found {
                assert!(before[path] == *bytes, "{path}");
            }
            // A folder that is not empty is refused.
            sandbox.stvc(&["restore", name, "--to", to.to_str().unwrap()]).exits(4);
            assert_same(&files(&to), &found);
        }
        assert_same(&sandbox.files(), &before);
    }
}

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";

const BOOK: &str = "worlds/Tide Office Lore.json";

const NAME: &str = "Tide Office";

type Files = BTreeMap<String, Vec<u8>>;

/// Creates a library in which chat and lorebook were edited after the first snapshot.
fn edited() -> (Sandbox, Files, Files) {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot", NAME]).exits(0);
    let before = sandbox.files();
    sandbox.append(CHAT, r#"{"name":"Wren","is_user":true,"mes":"And then?","extra":{}}"#);
    let book = String::from_utf8(sandbox.read(BOOK)).unwrap();
    sandbox.write(BOOK, book.replacen("\"content\": \"", "\"content\": \"Once: ", 1));
    let after = sandbox.files();
    assert_ne!(before[BOOK], after[BOOK]);
    (sandbox, before, after)
}

#[test]
fn restore_stores_files_before_it_overwrites_them() {
    let (sandbox, before, after) = edited();
    let refused = sandbox.stvc(&["restore", NAME]).exits(4);
    assert!(refused.stderr.contains(CHAT) && refused.stderr.contains(BOOK));
    assert_same(&sandbox.files(), &after);
    assert_eq!(sandbox.chat_ids().len(), 1);

    sandbox.stvc(&["restore", NAME, "--overwrite"]).exits(0);
    assert_same(&sandbox.files(), &before);
    // The replaced content is the previous snapshot, repeatedly.
    let before_it = format!("{NAME}~1");
    for expected in [&after, &before, &after] {
        sandbox.stvc(&["restore", &before_it, "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), expected);
    }
    assert_eq!(sandbox.chat_ids().len(), 6);
}

#[test]
fn restore_of_only_chat_or_lorebook_leaves_the_other_unchanged() {
    let (sandbox, before, after) = edited();
    sandbox.stvc(&["snapshot", NAME]).exits(0);
    let old = sandbox.chat_ids().pop().unwrap();
    sandbox.stvc(&["restore", &old, "--only", "chat", "--overwrite"]).exits(0);
    let mut expected = after.clone();
    expected.insert(CHAT.into(), before[CHAT].clone());
    assert_same(&sandbox.files(), &expected);

    sandbox.write(CHAT, &after[CHAT]);
    sandbox.stvc(&["restore", &old, "--only", "lorebook", "--overwrite"]).exits(0);
    let mut expected = after.clone();
    expected.insert(BOOK.into(), before[BOOK].clone());
    assert_same(&sandbox.files(), &expected);

    // A chat without a lorebook has no such part.
    let unbound = Sandbox::empty();
    unbound.write("chats/A/a.jsonl", "{}\n{}");
    unbound.stvc(&["snapshot"]).exits(0);
    unbound.stvc(&["restore", "A/a", "--only", "lorebook"]).exits(1);
}

#[test]
fn dry_run_of_restore_or_snapshot_changes_nothing() {
    let (sandbox, _, after) = edited();
    sandbox.stvc(&["restore", NAME, "--overwrite", "--dry-run"]).exits(0);
    sandbox.stvc(&["snapshot", "--dry-run"]).exits(0);
    let to = sandbox.folder().join("to");
    sandbox.stvc(&["restore", NAME, "--dry-run", "--to", to.to_str().unwrap()]).exits(0);
    assert!(!to.exists());
    assert_same(&sandbox.files(), &after);
    assert_eq!(sandbox.chat_ids().len(), 1);

    let fresh = Sandbox::from_fixture("1.19.0");
    fresh.stvc(&["snapshot", "--dry-run"]).exits(0);
    assert!(!fresh.store().exists());
}

/// The chat is deleted, so it cannot be stored; its lorebook has changed.
#[test]
fn restore_stores_a_lorebook_without_chat_before_overwriting_it() {
    let (sandbox, before, after) = edited();
    fs::remove_file(sandbox.path(CHAT)).unwrap();
    sandbox.stvc(&["restore", NAME]).exits(4);
    sandbox.stvc(&["restore", NAME, "--overwrite"]).exits(0);
    assert_same(&sandbox.files(), &before);
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
    let kept = kept.trim();
    let file = sandbox.git(&["ls-tree", "--name-only", "-z", kept]);
    let object = format!("{kept}:{}", file.trim_end_matches('\0'));
    assert!(git(&sandbox.store(), &["show", &object]) == after[BOOK]);
}

/// A chat of the newer layout has its metadata in its own file; its group only lists it.
#[test]
fn restored_group_chat_is_listed_in_its_group_again() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let (chat, group) = ("group chats/Ferry main.jsonl", "groups/1794700910763.json");
    let bytes = sandbox.read(chat);
    let whole = String::from_utf8(sandbox.read(group)).unwrap();
    // The user deleted the chat in SillyTavern and renamed the group.
    fs::remove_file(sandbox.path(chat)).unwrap();
    let without = whole.replace(",\n        \"Ferry main\"\n", "\n");
    let without =
        without.replace("\"chat_id\": \"Ferry main\"", "\"chat_id\": \"Ferry checkpoint\"");
    let without = without.replace("Ferry Crew", "The Crew — 雨");
    sandbox.write(group, &without);
    sandbox.stvc(&["restore", "Ferry main"]).exits(0);
    assert!(sandbox.read(chat) == bytes);
    let expected = without.replace("Branch #1\"\n", "Branch #1\",\n        \"Ferry main\"\n");
    assert_eq!(String::from_utf8(sandbox.read(group)).unwrap(), expected);
}

/// A chat of the older layout has no header: its metadata is restored into the group's file.
#[test]
fn restore_writes_metadata_of_headerless_group_chat_into_its_group() {
    let sandbox = Sandbox::from_fixture("1.12.6");
    sandbox.stvc(&["snapshot"]).exits(0);
    let group = "groups/1794702122839.json";
    let chat = "group chats/G checkpoint - 2026-11-15@00h22m21s.jsonl";
    let bytes = sandbox.read(chat);
    let whole = String::from_utf8(sandbox.read(group)).unwrap();
    let past = whole.split("\"past_metadata\": ").nth(1).unwrap();
    let past = past.trim_end().strip_suffix('}').unwrap().trim_end();
    fs::remove_file(sandbox.path(chat)).unwrap();
    let without = whole
        .replace(past, "{}")
        .replace(",\n        \"G checkpoint - 2026-11-15@00h22m21s\"\n    ]", "\n    ]");
    let without = without.replace("\"fav\": false", "\"fav\": true");
    assert!(!without.contains("G checkpoint"));
    sandbox.write(group, &without);

    sandbox.stvc(&["restore", "G checkpoint"]).exits(0);
    assert!(sandbox.read(chat) == bytes);
    let restored = String::from_utf8(sandbox.read(group)).unwrap();
    let before: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let after: serde_json::Value = serde_json::from_str(&restored).unwrap();
    assert_eq!(after["past_metadata"], before["past_metadata"]);
    assert_eq!(after["chats"], before["chats"]);
    assert_eq!(after["fav"], true);
    // Every other byte is unchanged.
    let (start, end) = without.split_once("\"past_metadata\": {}").unwrap();
    let (start, listed) = start.rsplit_once("\n    ]").unwrap();
    assert!(restored.starts_with(start) && restored.contains(listed) && restored.ends_with(end));
}

/// A group lists names as they were typed; file names are sanitized.
#[test]
fn chat_listed_by_its_typed_name_is_not_listed_twice() {
    let sandbox = Sandbox::from_fixture("odd");
    let group = String::from_utf8(sandbox.read("groups/77.json")).unwrap();
    sandbox.write("groups/77.json", group.replace("Q typed", "Q: typed?"));
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    fs::remove_file(sandbox.path("group chats/Q typed.jsonl")).unwrap();
    sandbox.stvc(&["restore", "Q typed"]).exits(0);
    assert_same(&sandbox.files(), &before);
}

/// Names that are special in git or on other file systems.
#[test]
#[cfg(target_os = "linux")]
fn names_that_break_other_file_systems_are_restored() {
    let sandbox = Sandbox::empty();
    let long = "雪".repeat(80);
    let names = [
        "a..b.lock",
        "@{-1}",
        "-n",
        ".git",
        "con",
        "CON",
        "100%",
        "%41",
        "a~1",
        "a^b",
        "[x]",
        "tail.",
        "tail ",
        " lead",
        "tab\there",
        "esc\u{1b}[2J",
        "\u{202e}gpj",
        "quote\"'`$",
        &long,
        "e\u{301}",
        "é",
        "HEAD",
        "..a",
    ];
    for name in names {
        sandbox.write(&format!("chats/{name}/{name}.jsonl"), format!("{{}}\n{{\"mes\":{name:?}}}"));
    }
    let before = sandbox.files();
    assert_eq!(before.len(), names.len() + 1);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_dir_all(sandbox.path("chats")).unwrap();
    for name in timelines(&sandbox) {
        sandbox.stvc(&["restore", &name]).exits(0);
    }
    assert_same(&sandbox.files(), &before);
    sandbox.git(&["fsck", "--strict"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_libraries_are_restored(library in generated_library::library()) {
        let sandbox = Sandbox::empty();
        for (path, bytes) in &library.files {
            sandbox.write(path, bytes);
        }
        let before = sandbox.files();
        let workspace = sandbox.workspace();
        let taken = snapshot::snapshot(&workspace, &snapshot::Options::default(), &mut NoProgress).unwrap();
        prop_assert_eq!(taken.failed(), 0);
        let chats = taken.timelines.iter().filter(|taken| taken.timeline.is_chat()).count();
        prop_assert_eq!(chats, library.timelines.len());
        let all = taken.timelines.len();

        for path in &library.to_delete {
            fs::remove_file(sandbox.path(path)).unwrap();
        }
        for name in &library.timelines {
            let options = restore::Options { snapshot: name.clone(), ..Default::default() };
            restore::restore(&workspace, &options, &mut NoProgress).unwrap();
        }
        assert_same(&sandbox.files(), &before);
        let checked = verbs::check::check(&workspace, &mut NoProgress).unwrap();
        prop_assert!(checked.is_valid(), "{:?}", checked.findings);
        prop_assert_eq!(checked.snapshots, all);
        // A second snapshot is empty.
        let again = snapshot::snapshot(&workspace, &snapshot::Options::default(), &mut NoProgress).unwrap();
        prop_assert_eq!(again.objects, 0);
    }
}
