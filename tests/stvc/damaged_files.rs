//! A store whose small files were hurt: refs, `HEAD`, `config`, and stvc's own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Harm, Sandbox, Three, calm, check, hurt, len, loose_ref, lose, message};

/// `check` names the file, every snapshot still comes back by its id, nothing panics, and the next snapshot works.
#[track_caller]
fn named_and_survived(three: &Three, file: &str, harm: Harm, code: i32) {
    let (found, words) = check(&three.sandbox);
    assert_eq!(found, code, "{file} {harm:?}: {words}");
    assert!(words.contains(file), "{file} {harm:?} is not named: {words:?}");
    survived(three);
}

#[track_caller]
fn survived(three: &Three) {
    for stored in &three.stored {
        stored.must_come_back(&three.sandbox);
    }
    three.nothing_panics();
    three.goes_on();
}

/// One harm to one file of a new store.
#[track_caller]
fn on_a_new_store(file: &str, harm: Harm, look: impl FnOnce(&Three)) {
    let three = Three::new();
    let path = loose_ref(&three.sandbox.store(), file);
    hurt(&path, harm, || look(&three));
}

/// What a real git says about the refs; none if it cannot work on the store.
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

/// Flip every byte of a file in turn: either git sees no difference, or `check` names one of `names`.
#[track_caller]
fn every_byte(three: &Three, file: &Path, step: usize, names: &[&str]) {
    let before = refs(&three.sandbox).unwrap();
    for at in (0..len(file)).step_by(step) {
        hurt(file, Harm::Flipped(at), || {
            let (_, words) = check(&three.sandbox);
            let named = names.iter().any(|name| words.contains(name));
            let harmless = refs(&three.sandbox).as_ref() == Some(&before);
            assert!(named || harmless, "byte {at} of {}: {words:?}", file.display());
            calm(three.sandbox.stvc(&["log"]));
            calm(three.sandbox.stvc(&["status"]));
            three.stored[0].must_come_back(&three.sandbox);
        });
    }
}

#[test]
fn head_is_checked_and_not_needed() {
    for harm in [Harm::Deleted, Harm::CutTo(0), Harm::CutTo(9), Harm::Flipped(2)] {
        on_a_new_store("HEAD", harm, |three| named_and_survived(three, "HEAD", harm, 0));
    }
    let three = Three::new();
    every_byte(&three, &three.sandbox.store().join("HEAD"), 2, &["HEAD"]);
}

#[test]
fn the_configuration_is_checked_and_not_needed() {
    for harm in [Harm::Deleted, Harm::CutTo(0), Harm::CutTo(9), Harm::Flipped(0)] {
        on_a_new_store("config", harm, |three| named_and_survived(three, "config", harm, 0));
    }
}

#[test]
fn every_flipped_byte_of_the_configuration_is_named_or_harmless() {
    let three = Three::new();
    every_byte(&three, &three.sandbox.store().join("config"), 5, &["config"]);
}

#[test]
fn the_format_file_is_checked_and_written_anew() {
    for harm in
        [Harm::Deleted, Harm::CutTo(0), Harm::CutTo(17), Harm::Flipped(18), Harm::Flipped(22)]
    {
        on_a_new_store("stvc/format", harm, |three| {
            named_and_survived(three, "stvc/format", harm, 0);
            assert_eq!(check(&three.sandbox), (0, String::new()));
        });
    }
}

#[test]
fn a_ref_cut_short_or_flipped_is_named_and_stops_nobody() {
    for file in ["refs/heads/chats/Mira/b", "refs/tags/keep"] {
        for harm in [Harm::CutTo(0), Harm::CutTo(20), Harm::Flipped(5), Harm::Flipped(0)] {
            on_a_new_store(file, harm, |three| named_and_survived(three, file, harm, 1));
        }
    }
}

#[test]
fn a_deleted_ref_is_missed() {
    for file in ["refs/heads/chats/Mira/b", "refs/tags/keep"] {
        on_a_new_store(file, Harm::Deleted, |three| {
            survived(three);
        });
        on_a_new_store(file, Harm::Deleted, |three| {
            let (_, words) = check(&three.sandbox);
            assert!(words.contains(file), "{file} is not named: {words:?}");
        });
    }
}

#[test]
fn damaged_packed_refs_are_named() {
    for harm in [Harm::Deleted, Harm::CutTo(0), Harm::CutTo(150), Harm::Flipped(120)] {
        let three = Three::new();
        three.sandbox.git(&["pack-refs", "--all"]);
        let file = three.sandbox.store().join("packed-refs");
        hurt(&file, harm, || {
            let (_, words) = check(&three.sandbox);
            let named = ["packed-refs", "refs/"].iter().any(|name| words.contains(name));
            assert!(named, "{harm:?}: {words:?}");
        });
    }
}

#[test]
fn damaged_packed_refs_stop_nobody() {
    for harm in
        [Harm::Deleted, Harm::CutTo(0), Harm::CutTo(150), Harm::Flipped(120), Harm::Flipped(3)]
    {
        let three = Three::new();
        three.sandbox.git(&["pack-refs", "--all"]);
        let file = three.sandbox.store().join("packed-refs");
        hurt(&file, harm, || survived(&three));
    }
}

#[test]
fn every_flipped_byte_of_a_ref_is_named_or_harmless() {
    let three = Three::new();
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
fn a_damaged_operation_log_is_named_and_costs_only_undo() {
    let file = "stvc/operations.jsonl";
    for harm in [Harm::CutTo(1), Harm::CutBy(30), Harm::Flipped(0)] {
        on_a_new_store(file, harm, |three| named_and_survived(three, file, harm, 0));
    }
    on_a_new_store(file, Harm::CutTo(0), survived);
    on_a_new_store(file, Harm::Deleted, survived);
}

/// The store was made by this program, so the log was there once.
#[test]
fn a_deleted_operation_log_is_missed() {
    let file = "stvc/operations.jsonl";
    on_a_new_store(file, Harm::Deleted, |three| {
        let (_, words) = check(&three.sandbox);
        assert!(words.contains(file), "{words:?}");
    });
}

/// `docs/format.md` says of both that they can be deleted at any time.
#[test]
fn a_damaged_cache_or_lock_file_changes_nothing() {
    for file in ["stvc/cache", "stvc/lock.json", "stvc/lock"] {
        let three = Three::new();
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
            stored.must_come_back(&three.sandbox);
        }
    }
}

fn states(sandbox: &Sandbox) -> Vec<String> {
    let answer = calm(sandbox.json(&["status"])).exits(0);
    let lines = answer.of_chats("timeline");
    lines.iter().map(|line| line["state"].as_str().unwrap().to_owned()).collect()
}

/// The newest snapshot's commit is lost: what came before it in the timeline must stay within reach, also after git's own gc.
#[test]
fn earlier_snapshots_outlive_a_lost_newest_one() {
    let three = Three::new();
    let sandbox = &three.sandbox;
    let first = three.stored[2].clone();
    sandbox.append("chats/Mira/c.jsonl", &message("c", 60));
    let second = crate::common::Stored::take(sandbox, "chats/Mira/c.jsonl");
    lose(&sandbox.store(), &second.id);
    let (code, words) = check(sandbox);
    assert_eq!(code, 1);
    assert!(words.contains("refs/heads/chats/Mira/c"), "{words}");
    first.must_come_back(sandbox);
    let third = crate::common::Stored::take(sandbox, "chats/Mira/c.jsonl");
    third.must_come_back(sandbox);
    let ids = sandbox.snapshot_ids();
    assert!(ids.contains(&first.id), "{} is out of reach", first.id);
}
