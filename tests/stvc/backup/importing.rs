//! Import of backups, also into stores that have other snapshots.

use std::fs;

use serde_json::json;

use crate::common::backups::{
    back_up, backup_drill, chat_with_two_snapshots, recap_chat_with_fork,
};
use crate::common::{
    A, Sandbox, answer, assert_same, assert_valid, chat, message, output_of, text,
};

fn drill(sandbox: &Sandbox) {
    backup_drill(sandbox, back_up);
}

#[test]
fn lost_library_is_restored_byte_for_byte() {
    for fixture in ["1.19.0", "1.12.6", "odd"] {
        drill(&Sandbox::from_fixture(fixture));
    }
}

#[test]
fn lost_auto_recap_library_is_restored_byte_for_byte() {
    let sandbox = recap_chat_with_fork();
    drill(&sandbox);
}

#[test]
fn import_keeps_both_sides_of_diverged_stores() {
    let mut one = chat_with_two_snapshots();
    one.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    let backup = back_up(&one);
    let mut other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(A), one.read(A));
    // The backup is ahead: the timeline is fast-forwarded. It is not: nothing changes.
    one.wait(60);
    one.append(A, &message("one", 3));
    one.stvc(&["snapshot"]).exits(0);
    let backup = back_up(&one);
    let dry = other.json(&["import", text(&backup), "--dry-run"]).exits(0);
    let answer = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(dry.of_type("taken_in"), answer.of_type("taken_in"));
    assert_eq!(answer.of_type("taken_in")[0]["outcome"], "forward");
    assert_eq!(other.snapshot_ids(), one.snapshot_ids());
    // The file is updated too; otherwise the old one would look like a newer version.
    assert_eq!(other.read(A), one.read(A));
    assert_eq!(other.json(&["snapshot"]).exits(0).of_type("snapshot")[0]["unchanged"], true);
    let again = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(again.of_type("taken_in")[0]["outcome"], "known");
    // Both stores diverge.
    other.stvc(&["restore", "Mira/a", "--overwrite"]).exits(0);
    for (sandbox, words) in [(&mut one, "here"), (&mut other, "there")] {
        sandbox.wait(60);
        sandbox.append(A, &message(words, 4));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["tag", "--delete", "mark"]).exits(0);
        sandbox.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    }
    let backup = back_up(&one);
    let (before, ids) = (other.files(), other.snapshot_ids());
    let answer = other.json(&["import", text(&backup)]).exits(0);
    let line = answer.of_type("taken_in").remove(0);
    assert_eq!(line["outcome"], "new-name");
    assert_eq!(line["name"], "chats/Mira/a (from backup 2026-11-14)");
    assert_eq!(answer.of_type("tag")[0]["name"], "mark (2)");
    assert_same(&other.files(), &before);
    assert!(ids.iter().all(|id| other.snapshot_ids().contains(id)));
    let head = |name: &str| other.json(&["show", name]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(head("chats/Mira/a")["id"], ids[0]);
    let known = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(known.of_type("taken_in")[0]["outcome"], "known");
    assert_valid(&other);
    // The other version is restored under the new name, and the import can be undone.
    let to = other.folder().join("beside");
    let name = "a (from backup 2026-11-14)";
    other.stvc(&["restore", name, "--to", text(&to)]).exits(0);
    let file = to.join("chats/Mira").join(format!("{name}.jsonl"));
    assert_eq!(fs::read(file).unwrap(), one.read(A));
    other.stvc(&["undo"]).exits(0);
    other.stvc(&["show", name]).exits(1);
    assert_eq!(other.snapshot_ids(), ids);
    assert_valid(&other);
}

/// The file is older than the backup or unrelated to it: file and timeline stay.
#[test]
fn import_does_not_change_older_or_unrelated_files() {
    let one = chat_with_two_snapshots();
    let old = one.read(A);
    one.append(A, &message("one", 3));
    one.stvc(&["snapshot"]).exits(0);
    let backup = back_up(&one);
    let newest = one.read(A);
    let other = |chat: &[u8]| {
        let other = Sandbox::empty();
        other.write(A, chat);
        let answer = other.json(&["import", text(&backup)]).exits(0);
        assert_eq!(other.read(A), chat);
        other.stvc(&["snapshot"]).exits(0);
        let outcome = answer.of_type("taken_in")[0]["outcome"].as_str().unwrap().to_owned();
        let heads = other.json(&["timelines"]).exits(0).of_type("timeline").len();
        (outcome, heads)
    };
    assert_eq!(other(&old), ("new-name".into(), 2));
    assert_eq!(other(&newest), ("new".into(), 1));
    let goes_on = [&newest, format!("\n{}", message("one", 4)).as_bytes()].concat();
    assert_eq!(other(&goes_on), ("new".into(), 1));
    // A chat with text that is in no snapshot.
    let changed = [&old, format!("\n{}", message("other", 3)).as_bytes()].concat();
    assert_eq!(other(&changed), ("new-name".into(), 2));
}

#[test]
fn backup_is_readable_as_a_store_and_not_writable() {
    let sandbox = chat_with_two_snapshots();
    let path = back_up(&sandbox);
    let log = sandbox.json(&["log"]).exits(0).stdout;
    let elsewhere = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command(&[&["--store", text(&path)], arguments].concat());
        answer(output_of(command.current_dir(elsewhere.path())))
    };
    assert_eq!(run(&["--json", "log"]).exits(0).stdout, log);
    run(&["show", "Mira/a"]).exits(0);
    run(&["diff", "Mira/a~1", "Mira/a"]).exits(0);
    run(&["stats"]).exits(0);
    run(&["check"]).exits(0);
    let to = elsewhere.path().join("out");
    run(&["restore", "Mira/a", "--to", text(&to)]).exits(0);
    assert_eq!(fs::read(to.join(A)).unwrap(), sandbox.read(A));
    let before = fs::read(&path).unwrap();
    for arguments in [&["gc"][..], &["snapshot"], &["tag", "x", "Mira/a"], &["restore", "Mira/a"]] {
        let answer = run(arguments).exits(2);
        assert!(
            answer.stderr.contains("is a backup and cannot be changed like a store"),
            "{}",
            answer.stderr
        );
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    sandbox.stvc(&["check", text(&path)]).exits(0);
    sandbox.stvc(&["check", text(&sandbox.path(A))]).exits(1);
}

#[test]
fn restore_all_stores_replaced_files_first() {
    let mut sandbox = Sandbox::empty();
    let book =
        |words: &str| json!({ "entries": { "0": { "uid": 0, "content": words } } }).to_string();
    sandbox.write("worlds/Harbour.json", book("old"));
    for name in ["a", "b", "c"] {
        sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, Some("Harbour")));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    // The deleted chat has the lorebook of that time.
    fs::remove_file(sandbox.path("chats/Mira/c.jsonl")).unwrap();
    sandbox.write("worlds/Harbour.json", book("new"));
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
    sandbox.append(A, &message("mine", 9));
    let mine = sandbox.read(A);
    let answer = sandbox.json(&["restore", "--all", "--deleted"]).exits(3);
    assert_eq!(answer.of_type("failed")[0]["timeline"], "chats/Mira/a");
    assert_eq!(sandbox.read(A), mine);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("new").into_bytes());
    assert_eq!(sandbox.read("chats/Mira/b.jsonl"), before["chats/Mira/b.jsonl"]);
    assert!(sandbox.path("chats/Mira/c.jsonl").exists());
    sandbox.stvc(&["restore", "--all", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(A), before[A]);
    sandbox.stvc(&["restore"]).exits(2);
    sandbox.stvc(&["restore", "--all", "x"]).exits(2);
}
