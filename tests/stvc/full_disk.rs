//! Writes that fail midway: what was there stays, and the message says what went wrong where.
#![cfg(unix)]

use std::fs;

use crate::common::{A, Sandbox, Stored, calm, cannot, chat, limited, message, scripted, sound};

/// Nothing of a write that failed is left where somebody could take it for whole.
fn leftovers(sandbox: &Sandbox) -> Vec<String> {
    let mut found = Vec::new();
    for dir in ["", "chats/Mira", ".stvc/objects/pack", ".stvc/stvc", ".stvc/refs/heads/chats/Mira"]
    {
        let Ok(entries) = fs::read_dir(sandbox.path(dir)) else { continue };
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        found.extend(names.filter(|name| name.contains("tmp") || name.ends_with(".lock")));
    }
    found
}

#[test]
fn a_snapshot_whose_write_fails_changes_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    sandbox.write(A, chat("a", 400, None));
    let mut failed = 0;
    for blocks in [1, 2, 4, 8, 16, 32, 64] {
        let answer = calm(limited(&sandbox, blocks, &["snapshot"]));
        if answer.code == 0 {
            break;
        }
        failed += 1;
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert_eq!(sandbox.snapshot_ids(), [&*first.id]);
        assert_eq!(leftovers(&sandbox), Vec::<String>::new());
        sound(&sandbox);
        first.must_come_back(&sandbox);
    }
    assert!(failed > 2);
    Stored::take(&sandbox, A).must_come_back(&sandbox);
    sound(&sandbox);
}

/// The pack fits, and the operation log, which is longer, does not.
#[test]
fn a_snapshot_that_cannot_be_logged_moves_no_ref() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    let log = sandbox.store().join("stvc/operations.jsonl");
    let line = fs::read_to_string(&log).unwrap();
    let long = "x".repeat(8 * 512 - line.len() - 20);
    let logged = line.replace("\"snapshot\"", &format!("\"{long}\""));
    fs::write(&log, &logged).unwrap();
    sandbox.append(A, &message("a", 9));
    let answer = calm(limited(&sandbox, 8, &["snapshot"])).exits(1);
    assert!(answer.stderr.contains("operations.jsonl"), "{}", answer.stderr);
    assert_eq!(sandbox.snapshot_ids(), [&*first.id]);
    let second = Stored::take(&sandbox, A);
    second.must_come_back(&sandbox);
    assert_eq!(sandbox.snapshot_ids(), [&*second.id, &*first.id]);
    sound(&sandbox);
}

#[test]
fn a_store_that_cannot_be_made_leaves_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let answer = calm(limited(&sandbox, 0, &["snapshot"])).exits(1);
    assert!(!answer.stderr.is_empty());
    assert!(!sandbox.store().exists());
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    Stored::take(&sandbox, A).must_come_back(&sandbox);
}

#[test]
fn a_restore_whose_write_fails_leaves_the_old_file() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("long", 400, None));
    let long = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.write(A, chat("short", 2, None));
    let short = Stored::take(&sandbox, A);
    let answer = calm(limited(&sandbox, 16, &["restore", &long.id, "--overwrite"])).exits(1);
    assert!(answer.stderr.contains("a.jsonl"), "{}", answer.stderr);
    assert_eq!(sandbox.read(A), short.bytes);
    fs::remove_file(sandbox.path(A)).unwrap();
    calm(limited(&sandbox, 16, &["restore", &long.id])).exits(1);
    assert!(!sandbox.path(A).exists());
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    sandbox.stvc(&["restore", &long.id]).exits(0);
    assert_eq!(sandbox.read(A), long.bytes);
    sound(&sandbox);
}

/// A disk that is really full, where the system lets a test have one of its own for a moment.
#[test]
fn a_full_disk_is_named_and_costs_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    sandbox.write(A, chat("a", 400, None));
    let disk = sandbox.folder().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"
        exec unshare -rm sh -c '
            disk=$1; library=$2; shift 2
            mount -t tmpfs -o size=1m none "$disk" 2>/dev/null || exit 99
            cp -a "$library" "$disk/u" && cd "$disk/u" || exit 99
            head -c 2000000 /dev/zero > ../filler 2>/dev/null
            "$@" --data . snapshot; echo "snapshot $?"
            "$@" --data . --quiet log; echo "log $?"
            "$@" --data . check; echo "check $?"
            rm ../filler
            "$@" --data . --quiet snapshot; echo "snapshot $?"
            "$@" --data . --quiet check; echo "check $?"
            cp -a .stvc "$library/../after"
        ' sh "#;
    let script = format!("{script} '{}' '{}' \"$@\"", disk.display(), sandbox.library().display());
    let answer = scripted(&sandbox, &script, &[]);
    if answer.code != 0 {
        assert!(!answer.stdout.contains("snapshot"), "{answer:?}");
        cannot("the system lets no test have a disk of its own (unshare, mount)");
        return;
    }
    let codes: Vec<_> =
        answer.stdout.lines().filter(|line| line.ends_with(|c: char| c.is_ascii_digit())).collect();
    let codes: Vec<_> = codes.into_iter().filter(|line| line.split(' ').count() == 2).collect();
    assert_eq!(codes, ["snapshot 1", "log 0", "check 0", "snapshot 0", "check 0"], "{answer:?}");
    assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
    assert!(answer.stderr.contains("the disk is full"), "{}", answer.stderr);
    let ids = git_log(&sandbox.folder().join("after"));
    assert_eq!(ids.lines().count(), 2, "{ids}");
    assert!(ids.contains(&first.id));
}

fn git_log(store: &std::path::Path) -> String {
    String::from_utf8(crate::common::git(store, &["rev-list", "--all"])).unwrap()
}
