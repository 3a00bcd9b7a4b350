//! Commands that were interrupted between log and files: the next command finishes them, but does
//! not overwrite a file that was saved in between. An unwritten file never counts as new. (The
//! sweep interrupts at every call; these tests build the states by hand and check the messages.)

use std::fs;

use crate::common::devices::{chats_and_lorebooks, sync, sync_until_equal, synced_pair};
use crate::common::recap_library::{Operation, RecapLibrary};
use crate::common::{
    A, Sandbox, assert_valid, chat, finding_codes, has_terminal, mark_last_operation_unfinished,
    message, run_in_shell, text,
};

/// Creates a sync on the second device that was interrupted before the file was written.
fn unfinished_sync() -> (Sandbox, Sandbox, std::path::PathBuf, Vec<u8>, Vec<u8>) {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    let old = two.read(A);
    one.append(A, &message("one", 4));
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    let new = two.read(A);
    assert_ne!(old, new);
    two.write(A, &old);
    mark_last_operation_unfinished(&two);
    (one, two, folder, old, new)
}

#[test]
fn file_left_unwritten_by_sync_is_written_by_the_next_command() {
    for next in
        [&["snapshot"][..], &["tag", "here", "Mira/a"], &["gc"], &["forget", "--keep-last", "9"]]
    {
        let (mut one, mut two, folder, _, new) = unfinished_sync();
        let answer = two.json(next).exits(0);
        assert_eq!(finding_codes(&answer), ["operation-finished"], "{next:?}");
        assert_eq!(two.read(A), new, "{next:?}");
        sync_until_equal(&mut one, &mut two, &folder);
        assert_eq!(one.read(A), new);
        assert_eq!(chats_and_lorebooks(&one).len(), 1);
    }
}

#[test]
fn both_versions_of_a_chat_saved_during_interrupted_sync_are_kept() {
    let (mut one, mut two, folder, old, new) = unfinished_sync();
    let saved = [&old, format!("\n{}", message("two", 4)).as_bytes()].concat();
    two.write(A, &saved);
    let answer = two.json(&["snapshot"]).exits(0);
    assert_eq!(finding_codes(&answer), ["operation-finished", "saved-meanwhile"]);
    assert_eq!(two.read(A), saved);
    assert_valid(&two);
    sync_until_equal(&mut one, &mut two, &folder);
    let states: Vec<_> = chats_and_lorebooks(&one).into_values().collect();
    assert!(states.contains(&new) && states.contains(&saved), "{} states", states.len());
}

#[test]
fn lorebook_saved_during_an_interrupted_sync_is_merged() {
    let book = |pier: &str, gull: &str| {
        format!(
            r#"{{"entries":{{"0":{{"uid":0,"comment":"Pier","content":"{pier}"}},"1":{{"uid":1,"comment":"Gull","content":"{gull}"}}}}}}"#
        )
    };
    let path = "worlds/Harbour.json";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(path, book("old", "old"));
        one.write(A, chat("a", 3, Some("Harbour")));
    });
    one.append(A, &message("one", 4));
    one.write(path, book("new", "old"));
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    // The chat was written, the lorebook was not, and SillyTavern saved it.
    two.write(path, book("old", "saved"));
    mark_last_operation_unfinished(&two);
    two.wait(60);
    two.json(&["snapshot"]).exits(0);
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(String::from_utf8(one.read(path)).unwrap(), book("new", "saved"));
    assert_eq!(chats_and_lorebooks(&one).len(), 2, "{:?}", chats_and_lorebooks(&one).keys());
}

#[test]
fn interrupted_undo_is_applied_once() {
    for (between, said) in [(None, 1), (Some("gc"), 0)] {
        let mut sandbox = Sandbox::empty();
        let mut states = Vec::new();
        for n in 0..3 {
            sandbox.write(A, chat("a", 3 + n, None));
            sandbox.stvc(&["snapshot"]).exits(0);
            states.push(sandbox.read(A));
            sandbox.wait(60);
        }
        let id = sandbox.snapshot_ids()[2].clone();
        sandbox.stvc(&["restore", &id, "--overwrite"]).exits(0);
        sandbox.stvc(&["--json", "undo"]).exits(0);
        assert_eq!(sandbox.read(A), states[2]);
        sandbox.write(A, &states[0]);
        mark_last_operation_unfinished(&sandbox);
        if let Some(between) = between {
            sandbox.stvc(&[between]).exits(0);
            assert_eq!(sandbox.read(A), states[2]);
        }
        let again = sandbox.json(&["undo"]).exits(0);
        let finished =
            finding_codes(&again).iter().filter(|code| *code == "operation-finished").count();
        assert_eq!(finished, said);
        assert_eq!(again.of_type("operation")[0]["number"], 4, "{}", again.stdout);
        assert_eq!(sandbox.read(A), states[2]);
        assert_eq!(sandbox.snapshot_ids().len(), 3, "an older one was taken back, too");
        // The next undo is that of the previous snapshot.
        sandbox.stvc(&["--json", "undo"]).exits(0);
        assert_eq!(sandbox.snapshot_ids().len(), 2);
        assert_valid(&sandbox);
    }
}

#[test]
fn interrupted_restore_under_a_new_name_is_finished_by_the_same_command() {
    for between in [false, true] {
        let sandbox = Sandbox::empty();
        sandbox.write("worlds/Harbour.json", r#"{"entries":{}}"#);
        sandbox.write(A, chat("a", 3, Some("Harbour")));
        sandbox.stvc(&["snapshot"]).exits(0);
        let command = ["--json", "restore", "Mira/a", "--as", "b"];
        sandbox.stvc(&command).exits(0);
        let whole = sandbox.files();
        fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
        mark_last_operation_unfinished(&sandbox);
        if between {
            sandbox.stvc(&["snapshot"]).exits(0);
        }
        let again = sandbox.stvc(&command).exits(0);
        assert_eq!(again.of_type("file").len(), 2, "{}", again.stdout);
        assert_eq!(sandbox.files(), whole);
        // The name is taken on a second run.
        sandbox.stvc(&command).exits(4);
        assert_valid(&sandbox);
    }
}

#[test]
fn interrupted_tag_deletion_is_finished_by_the_same_command() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    sandbox.stvc(&["snapshot", "--tag", "here"]).exits(0);
    let tag = sandbox.store().join("refs/tags/here");
    let target = fs::read(&tag).unwrap();
    sandbox.stvc(&["tag", "--delete", "here"]).exits(0);
    fs::create_dir_all(tag.parent().unwrap()).unwrap();
    fs::write(&tag, target).unwrap();
    mark_last_operation_unfinished(&sandbox);
    sandbox.stvc(&["tag", "--delete", "here"]).exits(0);
    assert!(!tag.exists());
    sandbox.stvc(&["tag", "--delete", "here"]).exits(1);
    assert_valid(&sandbox);
}

/// The second file does not fit on the disk: the first file and every branch are reverted.
#[test]
#[cfg(unix)]
fn operation_is_reverted_when_one_file_cannot_be_written() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write("chats/Mira/b.jsonl", chat("b", 3, None));
    });
    let heads = two.git(&["for-each-ref", "refs/heads"]);
    let before = two.files();
    one.append(A, &message("one", 4));
    // The store compresses it to almost nothing.
    let long = serde_json::json!({ "name": "Mira", "mes": "a".repeat(200_000) }).to_string();
    one.append("chats/Mira/b.jsonl", &long);
    sync(&mut one, &folder);
    let answer =
        crate::common::run_with_file_limit(&two, 128, &["--json", "sync", text(&folder)]).exits(1);
    let error = &answer.of_type("error")[0];
    assert!(error["message"].as_str().unwrap().contains("b.jsonl"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("All its changes were reverted"), "{error}");
    assert_eq!(two.files(), before);
    assert_eq!(two.git(&["for-each-ref", "refs/heads"]), heads);
    assert_valid(&two);
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&two).len(), 2);
}

/// An operation whose objects are lost cannot be finished, and must not block later commands.
#[test]
fn operation_that_cannot_be_finished_does_not_block_commands() {
    let (_one, two, _folder, old, _) = unfinished_sync();
    // The latest pack contains the snapshot to be written.
    let packs = crate::common::files_with_extension(&two.store().join("objects/pack"), "pack");
    let newest = packs.iter().max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let index = newest.unwrap().with_extension("idx");
    fs::remove_file(newest.unwrap()).unwrap();
    fs::remove_file(index).unwrap();
    let answer = two.json(&["snapshot"]);
    assert!(answer.code == 0 || answer.code == 1, "{}", answer.stdout);
    assert_eq!(two.read(A), old);
}

/// All places with temporary files: the store, its caches, the library, the mailbox, and the
/// destinations of backups.
#[cfg(target_os = "linux")]
#[test]
fn temporary_files_of_a_killed_command_are_removed_by_the_next() {
    use crate::common::watching::Watching;
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    sandbox.write("user/files/picture.png", "a picture");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["extension", "install"]).exits(0);
    let copies = sandbox.folder().join("copies");
    let mirror = copies.join("mirror");
    fs::create_dir(&copies).unwrap();
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    let mut killed = std::process::Command::new("true").spawn().unwrap();
    let (dead, live) = (killed.id(), std::process::id());
    killed.wait().unwrap();
    let store = sandbox.store();
    fs::create_dir_all(store.join("stvc/folders")).unwrap();
    let plant = |id: u32| {
        let names = [
            store.join(format!(".stvc-{id}-0.tmp")),
            store.join(format!("stvc/.stvc-{id}-1.tmp")),
            store.join(format!("stvc/.stvc-{id}-cache.tmp")),
            store.join(format!("stvc/folders/.stvc-{id}-ab.tmp")),
            mirror.join(format!("stvc/.stvc-{id}-2.tmp")),
            copies.join(format!(".stvc-{id}-3.tmp")),
            sandbox.path(&format!("extensions/.stvc-{id}-4.tmp")),
            sandbox.path(&format!("user/files/.stvc-mail-{id}.tmp")),
        ];
        names.iter().for_each(|name| fs::write(name, "half of it").unwrap());
        names
    };
    let (left, at_work) = (plant(dead), plant(live));
    let others = copies.join(".stvc-my-own-notes");
    fs::write(&others, "mine").unwrap();
    sandbox.stvc(&["backup", text(&copies.join("all.stvc"))]).exits(0);
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["extension", "update"]).exits(0);
    sandbox.wait(60);
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    sandbox.save(A, chat("a", 4, None));
    watching.snapshot_of(4);
    let begin = std::time::Instant::now();
    while left[7].exists() && begin.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    watching.stop();
    for path in &left {
        assert!(!path.exists(), "{path:?}");
    }
    for path in at_work.iter().chain([&others]) {
        assert!(path.exists(), "{path:?}");
    }
}

/// Ctrl-C on a terminal prints one line about what was left undone.
#[cfg(unix)]
#[test]
fn ctrl_c_names_the_unfinished_work() {
    if !has_terminal() {
        return;
    }
    let sandbox = Sandbox::empty();
    let queue = Some(vec![Operation::new("pending")]);
    RecapLibrary { queue, ..RecapLibrary::default() }.write(&sandbox);
    let interrupt = |arguments: &str| {
        let script = format!(
            "script -qec \"timeout --foreground --preserve-status -s INT 1 '$1' {arguments}\" /dev/null"
        );
        let answer = run_in_shell(&sandbox, &script, &[]);
        assert_eq!(answer.code, 130, "{answer:?}");
        answer.stdout
    };
    let screen = interrupt("snapshot --wait 60");
    let line = "Interrupted while waiting for ST-Auto-Recap (0 of 1). Nothing is lost; run the command again to do the rest.";
    assert!(screen.contains(line), "{screen}");
    assert!(!sandbox.store().exists());
}
