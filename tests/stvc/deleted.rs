//! Deletions by the user, as opposed to losses.

use std::fs;

use serde_json::Value;

use crate::common::{A, B, Sandbox, chat};

pub fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("Mira", 4, None));
    sandbox.write(B, chat("Voss", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

fn head(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.json(&["show", name]).exits(0).of_type("snapshot").remove(0)
}

#[test]
fn restore_all_restores_present_chats_and_lists_deleted_ones() {
    let mut sandbox = library();
    let (a, b) = (sandbox.read(A), sandbox.read(B));
    fs::remove_file(sandbox.path(B)).unwrap();
    sandbox.wait(60);
    let answer = sandbox.stvc(&["snapshot"]).exits(0);
    assert!(answer.stdout.contains("  deleted; 3 messages kept"), "{}", answer.stdout);
    assert_eq!(head(&sandbox, "Mira/b")["kind"], "deleted");
    // Recorded once.
    sandbox.wait(60);
    let again = sandbox.stvc(&["snapshot"]).exits(0);
    assert!(!again.stdout.contains("deleted; "), "{}", again.stdout);
    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", backup.to_str().unwrap()]).exits(0);

    let fresh = Sandbox::empty();
    fresh.stvc(&["import", backup.to_str().unwrap()]).exits(0);
    let words = fresh.stvc(&["restore", "--all"]).exits(0).stdout;
    assert!(words.contains("1 timeline skipped, recorded as deleted: Mira / b"), "{words}");
    assert_eq!(fresh.read(A), a);
    assert!(!fresh.path(B).exists());
    let counted = fresh.json(&["restore", "--all", "--dry-run"]).exits(0).of_type("summary");
    assert_eq!(counted[0]["left_out"][0], "chats/Mira/b");
    fresh.stvc(&["restore", "--all", "--deleted"]).exits(0);
    assert_eq!(fresh.read(B), b);
    // The chat exists again, also in a new backup.
    assert_ne!(head(&fresh, "Mira/b")["kind"], "deleted");
}

#[test]
fn recreated_chat_is_no_longer_reported_as_deleted() {
    let mut sandbox = library();
    let b = sandbox.read(B);
    fs::remove_file(sandbox.path(B)).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    // Restored from the recycle bin by hand.
    sandbox.write(B, &b);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(head(&sandbox, "Mira/b")["kind"], "snapshot");
    assert_eq!(sandbox.json(&["log", "Mira/b"]).exits(0).of_type("snapshot").len(), 3);
    fs::remove_file(sandbox.path(B)).unwrap();
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(head(&sandbox, "Mira/b")["kind"], "deleted");
    sandbox.stvc(&["restore", "Mira/b"]).exits(0);
    assert_eq!(sandbox.read(B), b);
    assert_ne!(head(&sandbox, "Mira/b")["kind"], "deleted");
}

#[test]
fn renamed_chat_and_missing_folder_are_not_reported_as_deletions() {
    let mut sandbox = library();
    fs::rename(sandbox.path(B), sandbox.path("chats/Mira/c.jsonl")).unwrap();
    sandbox.wait(60);
    let output = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(output.contains("was called b") && !output.contains("deleted; "), "{output}");
    fs::remove_dir_all(sandbox.path("chats/Mira")).unwrap();
    sandbox.wait(60);
    let output = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(!output.contains("deleted; "), "{output}");
    sandbox.stvc(&["restore", "--all"]).exits(0);
    assert!(sandbox.path(A).exists());
}

#[test]
fn store_used_with_another_library_reports_no_deletion() {
    let sandbox = library();
    let (store, other) = (sandbox.store(), Sandbox::empty());
    other.write("chats/Voss/c.jsonl", chat("c", 2, None));
    let store = store.to_str().unwrap();
    for from in [&other, &sandbox, &other] {
        let output = from.stvc(&["--store", store, "snapshot"]).exits(0).stdout;
        assert!(!output.contains("deleted; "), "{output}");
    }
}

#[cfg(unix)]
#[test]
fn disconnected_drive_is_not_reported_as_a_deletion() {
    let mut sandbox = library();
    let drive = sandbox.folder().join("drive");
    fs::create_dir(&drive).unwrap();
    std::os::unix::fs::symlink(&drive, sandbox.path("chats/Wren")).unwrap();
    sandbox.write("chats/Wren/far.jsonl", chat("far", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::rename(&drive, sandbox.folder().join("unplugged")).unwrap();
    sandbox.wait(60);
    let answer = sandbox.stvc(&["snapshot"]).exits(3);
    assert!(!answer.stdout.contains("deleted; "), "{}", answer.stdout);
    assert!(answer.stderr.contains("chats/Wren: it is a link to"), "{}", answer.stderr);
}
