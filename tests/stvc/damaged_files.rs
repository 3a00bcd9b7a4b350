//! A store with damage to its small files: refs, `HEAD`, `config`, and stvc's own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    Damage, Sandbox, ThreeTimelines, assert_no_panic, check, delete_object, file_size, loose_ref,
    message, with_damage,
};

/// Asserts that `check` names the file, every snapshot restores by its id, nothing panics, and the
/// next snapshot works.
#[track_caller]
fn assert_reported_and_survived(three: &ThreeTimelines, file: &str, damage: Damage, code: i32) {
    let (found, words) = check(&three.sandbox);
    assert_eq!(found, code, "{file} {damage:?}: {words}");
    assert!(words.contains(file), "{file} {damage:?} is not named: {words:?}");
    assert_survived(three);
}

#[track_caller]
fn assert_survived(three: &ThreeTimelines) {
    for stored in &three.stored {
        stored.assert_restores(&three.sandbox);
    }
    three.assert_no_command_panics();
    three.assert_new_snapshots_work();
}

/// Damages one file of a new store.
#[track_caller]
fn on_a_new_store(file: &str, damage: Damage, look: impl FnOnce(&ThreeTimelines)) {
    let three = ThreeTimelines::new();
    let path = loose_ref(&three.sandbox.store(), file);
    with_damage(&path, damage, || look(&three));
}

/// Lists the refs with git; `None` if git fails on the store.
fn refs(sandbox: &Sandbox) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(sandbox.store()).args(arguments);
        let answer = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        let quiet = answer.status.success() && answer.stderr.is_empty();
        quiet.then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
    };
    let bare = git(&["rev-parse", "--is-bare-repository", "HEAD"])?;
    Some(bare + &git(&["for-each-ref"])?)
}

/// Flips every byte of a file: either git sees no difference, or `check` names one of `names`.
#[track_caller]
fn every_byte(three: &ThreeTimelines, file: &Path, step: usize, names: &[&str]) {
    let before = refs(&three.sandbox).unwrap();
    for at in (0..file_size(file)).step_by(step) {
        with_damage(file, Damage::Flipped(at), || {
            let (_, words) = check(&three.sandbox);
            let named = names.iter().any(|name| words.contains(name));
            let harmless = refs(&three.sandbox).as_ref() == Some(&before);
            assert!(named || harmless, "byte {at} of {}: {words:?}", file.display());
            assert_no_panic(three.sandbox.stvc(&["log"]));
            assert_no_panic(three.sandbox.stvc(&["status"]));
            three.stored[0].assert_restores(&three.sandbox);
        });
    }
}

#[test]
fn damaged_head_is_reported_and_does_not_block_commands() {
    for damage in [Damage::Deleted, Damage::CutTo(0), Damage::CutTo(9), Damage::Flipped(2)] {
        on_a_new_store("HEAD", damage, |three| {
            assert_reported_and_survived(three, "HEAD", damage, 0)
        });
    }
    let three = ThreeTimelines::new();
    every_byte(&three, &three.sandbox.store().join("HEAD"), 2, &["HEAD"]);
}

#[test]
fn damaged_git_config_is_reported_and_does_not_block_commands() {
    for damage in [Damage::Deleted, Damage::CutTo(0), Damage::CutTo(9), Damage::Flipped(0)] {
        on_a_new_store("config", damage, |three| {
            assert_reported_and_survived(three, "config", damage, 0)
        });
    }
}

#[test]
fn every_flipped_byte_of_the_git_config_is_reported_or_harmless() {
    let three = ThreeTimelines::new();
    every_byte(&three, &three.sandbox.store().join("config"), 5, &["config"]);
}

#[test]
fn damaged_format_file_is_reported_and_rewritten() {
    for damage in [
        Damage::Deleted,
        Damage::CutTo(0),
        Damage::CutTo(17),
        Damage::Flipped(18),
        Damage::Flipped(22),
    ] {
        on_a_new_store("stvc/format", damage, |three| {
            assert_reported_and_survived(three, "stvc/format", damage, 0);
            assert_eq!(check(&three.sandbox), (0, String::new()));
        });
    }
}

#[test]
fn damaged_ref_is_reported_and_does_not_block_commands() {
    for file in ["refs/heads/chats/Mira/b", "refs/tags/keep"] {
        for damage in [Damage::CutTo(0), Damage::CutTo(20), Damage::Flipped(5), Damage::Flipped(0)]
        {
            on_a_new_store(file, damage, |three| {
                assert_reported_and_survived(three, file, damage, 1)
            });
        }
    }
}

#[test]
fn deleted_ref_is_reported() {
    for file in ["refs/heads/chats/Mira/b", "refs/tags/keep"] {
        on_a_new_store(file, Damage::Deleted, |three| {
            assert_survived(three);
        });
        on_a_new_store(file, Damage::Deleted, |three| {
            let (_, words) = check(&three.sandbox);
            assert!(words.contains(file), "{file} is not named: {words:?}");
        });
    }
}

#[test]
fn damaged_packed_refs_are_reported() {
    for damage in [Damage::Deleted, Damage::CutTo(0), Damage::CutTo(150), Damage::Flipped(120)] {
        let three = ThreeTimelines::new();
        three.sandbox.git(&["pack-refs", "--all"]);
        let file = three.sandbox.store().join("packed-refs");
        with_damage(&file, damage, || {
            let (_, words) = check(&three.sandbox);
            let named = ["packed-refs", "refs/"].iter().any(|name| words.contains(name));
            assert!(named, "{damage:?}: {words:?}");
        });
    }
}

#[test]
fn damaged_packed_refs_do_not_block_commands() {
    for damage in [
        Damage::Deleted,
        Damage::CutTo(0),
        Damage::CutTo(150),
        Damage::Flipped(120),
        Damage::Flipped(3),
    ] {
        let three = ThreeTimelines::new();
        three.sandbox.git(&["pack-refs", "--all"]);
        let file = three.sandbox.store().join("packed-refs");
        with_damage(&file, damage, || assert_survived(&three));
    }
}

#[test]
fn every_flipped_byte_of_a_ref_is_reported_or_harmless() {
    let three = ThreeTimelines::new();
    let store = three.sandbox.store();
    every_byte(
        &three,
        &loose_ref(&store, "refs/heads/chats/Mira/b"),
        3,
        &["refs/heads/chats/Mira/b"],
    );
    every_byte(&three, &loose_ref(&store, "refs/tags/keep"), 4, &["refs/tags/keep"]);
    three.sandbox.git(&["pack-refs", "--all"]);
    every_byte(&three, &store.join("packed-refs"), 7, &["packed-refs", "refs/"]);
}

#[test]
fn damaged_operation_log_is_reported_and_loses_only_undo() {
    let file = "stvc/operations.jsonl";
    for damage in [Damage::CutTo(1), Damage::CutBy(30), Damage::Flipped(0)] {
        on_a_new_store(file, damage, |three| assert_reported_and_survived(three, file, damage, 0));
    }
    on_a_new_store(file, Damage::CutTo(0), assert_survived);
    on_a_new_store(file, Damage::Deleted, assert_survived);
}

/// stvc created the store, so it had a log.
#[test]
fn deleted_operation_log_is_reported() {
    let file = "stvc/operations.jsonl";
    on_a_new_store(file, Damage::Deleted, |three| {
        let (_, words) = check(&three.sandbox);
        assert!(words.contains(file), "{words:?}");
    });
}

/// `docs/format.md` allows to delete both at any time.
#[test]
fn damaged_cache_or_lock_file_changes_nothing() {
    for file in ["stvc/cache", "stvc/lock.json", "stvc/lock"] {
        let three = ThreeTimelines::new();
        let path = three.sandbox.store().join(file);
        let whole = fs::read(&path).unwrap();
        let flipped: Vec<u8> = whole.iter().map(|byte| byte ^ 0x15).collect();
        let half = whole[..whole.len() / 2].to_vec();
        for bytes in
            [None, Some(Vec::new()), Some(half), Some(flipped), Some(b"{\"version\":1".to_vec())]
        {
            match bytes {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            let (code, words) = check(&three.sandbox);
            assert_eq!(code, 0, "{words}");
            assert_eq!(states(&three.sandbox), ["unchanged"; 3]);
            three.sandbox.append("chats/Mira/c.jsonl", &message("c", 50));
            assert_eq!(states(&three.sandbox), ["unchanged", "unchanged", "changed"]);
            three.sandbox.stvc(&["snapshot"]).exits(0);
        }
        for stored in &three.stored {
            stored.assert_restores(&three.sandbox);
        }
    }
}

fn states(sandbox: &Sandbox) -> Vec<String> {
    let answer = assert_no_panic(sandbox.json(&["status"])).exits(0);
    let lines = answer.chat_lines("timeline");
    lines.iter().map(|line| line["state"].as_str().unwrap().to_owned()).collect()
}

/// The commit of the latest snapshot is lost: its ancestors must stay reachable, even after `git
/// gc`.
#[test]
fn earlier_snapshots_stay_reachable_when_the_latest_is_lost() {
    let three = ThreeTimelines::new();
    let sandbox = &three.sandbox;
    let first = three.stored[2].clone();
    sandbox.append("chats/Mira/c.jsonl", &message("c", 60));
    let second = crate::common::Stored::take(sandbox, "chats/Mira/c.jsonl");
    delete_object(&sandbox.store(), &second.id);
    let (code, words) = check(sandbox);
    assert_eq!(code, 1);
    assert!(words.contains("refs/heads/chats/Mira/c"), "{words}");
    first.assert_restores(sandbox);
    let third = crate::common::Stored::take(sandbox, "chats/Mira/c.jsonl");
    third.assert_restores(sandbox);
    let ids = sandbox.snapshot_ids();
    assert!(ids.contains(&first.id), "{} is out of reach", first.id);
}
