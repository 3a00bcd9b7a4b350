//! Expiry of unreachable objects and operations.

use std::fs;
use std::path::Path;

use stvc::internals::store::Store;

use super::{DAY, assert_has, exists, gc, leftovers, packs, put, set_age, states, stray};
use crate::common::recap_library::RecapLibrary;
use crate::common::{
    A, B, Sandbox, Stored, assert_no_panic, assert_same, assert_valid, chat, check, copy_folder,
    files, fsck, loose_ref, message, refs,
};

fn age(path: &Path) -> u64 {
    fs::metadata(path).unwrap().modified().unwrap().elapsed().unwrap().as_secs()
}

#[test]
fn unreachable_objects_are_dropped_when_old_enough() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 30, None));
    let stored = Stored::take(&sandbox, A);
    let young = stray(&sandbox, "young", 0);
    let middle = stray(&sandbox, "middle", 13 * DAY);
    let old = stray(&sandbox, "old", 15 * DAY);
    let planned = gc(&sandbox, &["--dry-run"]);
    assert_eq!(planned["dropped"], 1);
    assert!(exists(&sandbox, &old));
    assert_eq!(gc(&sandbox, &[])["dropped"], 1);
    assert!(exists(&sandbox, &young) && exists(&sandbox, &middle) && !exists(&sandbox, &old));
    assert_eq!(gc(&sandbox, &["--grace", "12d"])["dropped"], 1);
    assert!(exists(&sandbox, &young) && !exists(&sandbox, &middle));
    assert_eq!(gc(&sandbox, &["--grace", "0s"])["dropped"], 1);
    assert!(!exists(&sandbox, &young));
    stored.assert_restores(&sandbox);
    assert_valid(&sandbox);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

#[test]
fn pack_of_unreachable_objects_has_the_age_of_its_newest_object() {
    let sandbox = Sandbox::empty();
    // Each pack has reachable and unreachable objects.
    let mut strays = Vec::new();
    Store::create(&sandbox.store()).unwrap();
    for (n, days) in [9, 5, 7].into_iter().enumerate() {
        let there = packs(&sandbox);
        let text = format!("stray {n}");
        strays.extend(
            put(&sandbox, &[vec![text.to_uppercase().as_bytes()]], &[text.as_bytes()]).pop(),
        );
        let new = packs(&sandbox).into_iter().find(|pack| !there.contains(pack)).unwrap();
        set_age(&new, days * DAY);
    }
    let all = |there: bool| strays.iter().all(|id| exists(&sandbox, &id.to_string()) == there);
    let summary = gc(&sandbox, &[]);
    assert_eq!((&summary["spared"], &summary["dropped"]), (&3.into(), &0.into()));
    assert!(all(true));
    let ages: Vec<_> = packs(&sandbox).iter().map(|pack| age(pack) / DAY).collect();
    assert_eq!(ages.iter().filter(|days| **days == 5).count(), 1, "{ages:?}");
    assert_eq!(ages.len(), 2, "{ages:?}");

    // A young pack stays unchanged, whatever else is packed.
    let before = files(&sandbox.store());
    assert_eq!(gc(&sandbox, &[])["changed"], false);
    assert_same(&files(&sandbox.store()), &before);
    put(&sandbox, &[vec![b"something new"]], &[]);
    gc(&sandbox, &["--grace", "6d"]);
    assert!(all(true));
    assert_eq!(packs(&sandbox).iter().filter(|pack| age(pack) / DAY == 5).count(), 1);
    gc(&sandbox, &["--grace", "4d"]);
    assert!(all(false));
    assert_eq!(packs(&sandbox).len(), 1);
    fsck(&sandbox);
}

/// Like `undo.rs`, with a `gc` of everything unneeded after each command.
#[test]
fn gc_keeps_everything_that_undo_needs() {
    let mut sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    let (chat, book) = (library.chat_path(), library.book_path());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    library.fork("Branch #1", 7).write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(&chat, r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);

    // A state that is in no snapshot.
    sandbox.write(&chat, b"\xff garbage \n {");
    sandbox.write(&book, b"[no book]");

    let now = |sandbox: &Sandbox| (refs(&sandbox.store()), sandbox.files());
    let mut states = Vec::new();
    let commands: [&[&str]; 7] = [
        &["tag", "here", "Harbour nights"],
        &["restore", "Harbour nights~1", "--overwrite"],
        &["snapshot", "-m", "restored"],
        &["tag", "--delete", "here"],
        &["doctor", "--fix", "--yes"],
        &["snapshot", "Harbour nights", "--at", "4", "--tag", "early"],
        &["restore", "early", "--overwrite"],
    ];
    for command in commands {
        sandbox.wait(3600);
        let before =
            (now(&sandbox), sandbox.json(&["operations"]).exits(0).of_type("operation").len());
        sandbox.stvc(command).exits(0);
        let after = sandbox.json(&["operations"]).exits(0).of_type("operation").len();
        if after > before.1 {
            states.push(before.0);
        }
        gc(&sandbox, &["--grace", "0s"]);
        assert_valid(&sandbox);
    }
    assert!(states.len() > 5, "{}", states.len());
    let last = now(&sandbox);
    let mut undoings = Vec::new();
    for state in states.iter().rev() {
        sandbox.wait(3600);
        sandbox.stvc(&["undo"]).exits(0);
        let (refs, files) = now(&sandbox);
        // A state that was in no snapshot is in one now, as a child of the previous one.
        for was in state.0.difference(&refs) {
            let (id, name) = was.split_once(" commit\t").unwrap();
            assert_eq!(sandbox.git(&["rev-parse", &format!("{name}^")]).trim(), id);
        }
        assert_eq!(refs.len(), state.0.len());
        assert_same(&files, &state.1);
        undoings.push(
            sandbox.json(&["operations"]).exits(0).of_type("operation")[0]["number"].to_string(),
        );
        gc(&sandbox, &["--grace", "0s"]);
    }
    // Redo in reverse order.
    for undoing in undoings.iter().rev() {
        sandbox.wait(3600);
        sandbox.stvc(&["undo", undoing]).exits(0);
        gc(&sandbox, &["--grace", "0s"]);
    }
    assert_eq!(now(&sandbox).0, last.0);
    assert_same(&sandbox.files(), &last.1);
    assert_valid(&sandbox);
}

/// A recent operation needs objects that only an expired one had kept.
#[test]
fn objects_of_recent_operations_are_kept() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 3));
    let undone = Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(30 * DAY as i64);
    let now = chat("a", 9, None);
    sandbox.write(A, &now);
    sandbox.stvc(&["restore", &undone.id, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(A), undone.bytes);
    sandbox.wait(60);
    assert_eq!(gc(&sandbox, &["--keep-undo", "10d", "--grace", "0s"])["expired"], 3);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(A), now);
    let last = sandbox.json(&["operations"]).exits(0).of_type("operation")[0]["number"].to_string();
    sandbox.stvc(&["undo", &last]).exits(0);
    assert_eq!(sandbox.read(A), undone.bytes);
    assert_valid(&sandbox);
}

#[test]
fn expired_operations_are_removed_and_lost_refs_reported() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    sandbox.write(B, chat("b", 5, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    let kept = Stored::take(&sandbox, A);
    sandbox.stvc(&["tag", "here", "Mira/b"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 6));
    let undone = Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    let former = states(&sandbox);
    let planned = gc(&sandbox, &["--keep-undo", "0s", "--dry-run"]);
    assert_eq!(planned["expired"], 5);
    assert_eq!(sandbox.json(&["operations"]).exits(0).of_type("operation").len(), 5);
    let summary = gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(summary["expired"], 5);
    assert!(summary["dropped"].as_u64().unwrap() > 0);
    assert!(!exists(&sandbox, &undone.id));
    assert!(sandbox.json(&["operations"]).exits(0).of_type("operation").is_empty());
    let answer = sandbox.stvc(&["undo"]).exits(0);
    assert!(answer.stdout.contains("Nothing to undo"), "{}", answer.stdout);
    assert_has(&sandbox, &former);
    kept.assert_restores(&sandbox);
    assert_valid(&sandbox);
    // Nothing expires twice.
    assert_eq!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["expired"], 0);

    for (path, named) in
        [("refs/heads/chats/Mira/a", "chats/Mira/a"), ("refs/tags/here", "refs/tags/here")]
    {
        let copy_of = Sandbox::empty();
        copy_folder(&sandbox.library(), &copy_of.library());
        fs::remove_file(loose_ref(&copy_of.store(), path)).unwrap();
        let (code, words) = check(&copy_of);
        assert_eq!(code, 1, "{path}");
        assert!(words.contains(named), "{words}");
    }
    // The file is stored again, although its objects were dropped, and operation numbers continue.
    assert_eq!(sandbox.read(A), undone.bytes);
    let again = Stored::take(&sandbox, A);
    assert_ne!(again.id, undone.id);
    again.assert_restores(&sandbox);
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    assert_eq!((lines.len(), &lines[0]["number"]), (1, &6.into()));
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.snapshot_ids().len(), former.len());
    assert_valid(&sandbox);
}

#[test]
fn clock_in_the_future_loses_no_snapshot_or_operation() {
    const YEAR: i64 = 365 * DAY as i64;
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    sandbox.wait(30 * YEAR);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.wait(-29 * YEAR);
    sandbox.append(A, &message("a", 6));
    Stored::take(&sandbox, A);
    sandbox.wait(YEAR);
    let former = states(&sandbox);
    assert_eq!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["expired"], 1);
    assert_has(&sandbox, &former);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.snapshot_ids().len(), 1);
    let numbers: Vec<_> = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let numbers: Vec<_> = numbers.iter().map(|line| line["number"].to_string()).collect();
    sandbox.stvc(&["undo", &numbers[0]]).exits(0);
    sandbox.stvc(&["undo", &numbers[1]]).exits(0);
    assert_has(&sandbox, &former);

    sandbox.wait(5000 * YEAR);
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert!(summary["expired"].as_u64().unwrap() > 0);
    assert_has(&sandbox, &former);
    assert_valid(&sandbox);
}

#[test]
fn huge_expiry_does_not_panic() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    for time in ["999999999999d", "213503982334601d"] {
        assert_eq!(gc(&sandbox, &["--keep-undo", time, "--grace", time])["expired"], 0);
    }
    // `history/retention` tests the format of durations.
    for time in ["", "-1d", "213503982334602d"] {
        assert_no_panic(sandbox.stvc(&["gc", &format!("--grace={time}")])).exits(2);
    }
}
