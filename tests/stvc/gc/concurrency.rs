//! Other processes that write and read during `gc`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stvc::internals::store::{Kind, ObjectId, Store};

use super::{At, exists, gc, leftovers, packs, put, three};
use crate::common::{
    A, B, Sandbox, SetOnDrop, Stored, assert_no_panic, assert_valid, chat, fsck, message,
};

#[test]
fn snapshots_and_readers_work_during_gc() {
    const ROUNDS: usize = 16;
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 60, None));
    sandbox.write(B, chat("b", 60, None));
    let first = Stored::take(&sandbox, A);
    sandbox.stvc(&["snapshot"]).exits(0);
    let done = AtomicBool::new(false);
    let mut collected = 0;
    let mut stored = Vec::new();
    std::thread::scope(|scope| {
        let sandbox = &sandbox;
        let writer = scope.spawn(|| {
            let guard = SetOnDrop(&done);
            let mut stored = Vec::new();
            for round in 0..ROUNDS {
                sandbox.append(A, &message("a", 100 + round));
                stored.push(Stored::take(sandbox, A));
            }
            drop(guard);
            stored
        });
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let log =
                    assert_no_panic(sandbox.json(&["log"])).exits(0).of_type("snapshot").len();
                assert!(log >= seen, "{log} snapshots after {seen}");
                seen = log;
                first.assert_restores(sandbox);
                assert_no_panic(sandbox.stvc(&["show", &first.id])).exits(0);
                assert_no_panic(sandbox.stvc(&["search", "a 3"])).exits(0);
            }
        });
        while !done.load(Ordering::Relaxed) {
            let summary = gc(sandbox, &["--grace", "0s"]);
            collected += usize::from(summary["changed"] == true);
        }
        stored = writer.join().unwrap();
        reader.join().unwrap();
    });
    assert!(collected > 2, "{collected}");
    assert_eq!(sandbox.snapshot_ids().len(), ROUNDS + 2);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(packs(&sandbox).len(), 1);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    assert_valid(&sandbox);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

/// A command reads the store, then waits for the lock while `gc` drops objects that it read.
#[test]
fn writer_that_waited_for_gc_reads_the_store_again() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    let id = put(&sandbox, &[vec![b"one"]], &[b"what nothing refers to yet"]).pop().unwrap();
    let store = Store::open(&sandbox.store()).unwrap();
    assert!(store.reader().has(id).unwrap());
    assert!(gc(&sandbox, &["--grace", "0s"])["dropped"].as_u64().unwrap() > 0);
    let lock = store
        .lock(&["test".into()], "2026-11-15T00:00:00Z", Duration::from_secs(10), &|_| None)
        .unwrap();
    let mut pack = store.pack_writer();
    pack.add(Kind::Blob, b"what nothing refers to yet").unwrap();
    pack.finish().unwrap();
    drop(lock);
    assert!(exists(&sandbox, &id.to_string()));
}

/// `gc` removes packs that `check` is reading.
#[test]
fn check_during_gc_reports_no_damage() {
    let sandbox = Sandbox::empty();
    let mut messages = 5;
    let mut grow = || {
        for _ in 0..3 {
            messages += 1;
            sandbox.write(A, chat("a", messages, None));
            Stored::take(&sandbox, A);
        }
    };
    grow();
    // Once; more often than `check` retries, so that it takes the lock; and every time, in which
    // case the others wait for it.
    for times in [1, 5] {
        let mut disturbed = 0;
        let act = Box::new(|| {
            if disturbed < times {
                disturbed += 1;
                grow();
                gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
            }
        });
        let mut monitor = At { what: "reading objects", act };
        let report = stvc::verbs::check::check(&sandbox.workspace(), &mut monitor).unwrap();
        drop(monitor);
        let findings: Vec<_> = report.findings.iter().map(|found| &found.message).collect();
        assert!(findings.is_empty(), "{findings:#?}");
        assert!(disturbed > 0);
        grow();
    }
    assert!(!sandbox.store().join("stvc/damaged").exists());
    assert_valid(&sandbox);
}

/// Another process has the old packs mapped. Windows cannot delete such a file: it is set aside,
/// and the next command removes it.
#[test]
fn gc_replaces_packs_while_a_reader_uses_them() {
    let (sandbox, stored, old) = three();
    let store = Store::open(&sandbox.store()).unwrap();
    let reader = store.reader();
    let ids: Vec<ObjectId> = stored.iter().map(|stored| stored.id.parse().unwrap()).collect();
    let commits: Vec<_> = ids.iter().map(|id| reader.commit(*id).unwrap()).collect();
    gc(&sandbox, &["--grace", "0s"]);
    assert!(old.iter().all(|pack| !pack.exists()));
    assert_eq!(packs(&sandbox).len(), 1);
    assert_eq!(!leftovers(&sandbox).is_empty(), cfg!(windows));
    // The process can read both the old and the new objects.
    for (id, commit) in ids.iter().zip(&commits) {
        assert_eq!(reader.commit(*id).unwrap().tree, commit.tree);
    }
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    fsck(&sandbox);
    drop((reader, store));
    gc(&sandbox, &[]);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    assert_valid(&sandbox);
}
