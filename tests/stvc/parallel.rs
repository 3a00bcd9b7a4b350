//! Several processes at once: writers take turns, readers never wait, and nothing is lost.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{
    Answer, Sandbox, SetOnDrop, Stored, answer, assert_no_panic, assert_valid, chat, message,
};

fn path(n: usize) -> String {
    format!("chats/Mira/c{n}.jsonl")
}

fn library(chats: usize) -> Sandbox {
    let sandbox = Sandbox::empty();
    for n in 0..chats {
        sandbox.write(&path(n), chat(&format!("c{n}"), 40, None));
    }
    sandbox
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    let mut command = sandbox.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn end(child: Child) -> Answer {
    assert_no_panic(answer(child.wait_with_output().unwrap())).exits(0)
}

/// Returns the operation numbers of the log.
fn numbers(sandbox: &Sandbox) -> Vec<u64> {
    let log = fs::read_to_string(sandbox.store().join("stvc/operations.jsonl")).unwrap();
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    // Lines without a number mark an operation as finished.
    log.lines().filter_map(|line| parse(line)["number"].as_u64()).collect()
}

/// Each process stores its own timeline; the first one creates the store.
#[test]
fn parallel_snapshots_of_different_timelines_are_all_stored() {
    for processes in [2, 8] {
        let sandbox = library(processes);
        let paths: Vec<_> = (0..processes).map(path).collect();
        let children: Vec<_> =
            paths.iter().map(|path| start(&sandbox, &["snapshot", path])).collect();
        children.into_iter().for_each(|child| {
            end(child);
        });
        assert_eq!(sandbox.snapshot_ids().len(), processes);
        assert_eq!(numbers(&sandbox), (1..=processes as u64).collect::<Vec<_>>());
        for path in &paths {
            Stored::take(&sandbox, path).assert_restores(&sandbox);
        }
        assert_eq!(sandbox.snapshot_ids().len(), processes, "something was not stored");
        assert_valid(&sandbox);
        let leftovers =
            fs::read_dir(sandbox.library()).unwrap().map(|entry| entry.unwrap().file_name());
        let leftovers: Vec<_> =
            leftovers.filter(|name| name.to_string_lossy().ends_with(".tmp")).collect();
        assert!(leftovers.is_empty(), "{leftovers:?}");
    }
}

/// All store everything; one is first, and the others find nothing new.
#[test]
fn parallel_snapshots_of_the_same_timelines_are_stored_once() {
    for processes in [2, 8] {
        let sandbox = library(3);
        let children: Vec<_> =
            (0..processes).map(|_| start(&sandbox, &["--json", "snapshot"])).collect();
        let mut ids = Vec::new();
        for child in children {
            let lines = end(child).of_type("snapshot");
            assert_eq!(lines.len(), 3);
            ids.extend(lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()));
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "the same state was stored twice");
        assert_valid(&sandbox);
    }
}

/// Enough snapshots that packs are folded while others wait.
#[test]
fn eight_processes_store_growing_timelines_in_parallel() {
    const ROUNDS: usize = 6;
    let sandbox = library(8);
    let grow = |n: usize| {
        let mut stored = Vec::new();
        for round in 0..ROUNDS {
            sandbox.append(&path(n), &message(&format!("c{n}"), 100 + round));
            stored.push(Stored::take(&sandbox, &path(n)));
        }
        stored
    };
    let stored: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|n| scope.spawn(move || grow(n))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut ids = sandbox.snapshot_ids();
    let mut expected: Vec<_> = stored.iter().map(|stored| stored.id.clone()).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(numbers(&sandbox), (1..=8 * ROUNDS as u64).collect::<Vec<_>>());
    for stored in stored.iter().step_by(3) {
        stored.assert_restores(&sandbox);
    }
    assert_valid(&sandbox);
}

#[test]
fn readers_work_while_a_writer_runs() {
    let sandbox = library(2);
    let first = Stored::take(&sandbox, &path(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let guard = SetOnDrop(&done);
            for round in 0..45 {
                sandbox.append(&path(1), &message("c1", 100 + round));
                Stored::take(&sandbox, &path(1));
            }
            drop(guard);
        });
        let mut seen = 0;
        let mut rounds = 0;
        while !done.load(Ordering::Relaxed) || rounds == 0 {
            let log = assert_no_panic(sandbox.json(&["log"])).exits(0).of_type("snapshot").len();
            assert!(log >= seen, "{log} snapshots after {seen}");
            seen = log;
            first.assert_restores(&sandbox);
            assert_no_panic(sandbox.stvc(&["show", &first.id])).exits(0);
            rounds += 1;
        }
        writer.join().unwrap();
    });
    assert_eq!(sandbox.snapshot_ids().len(), 46);
    assert_valid(&sandbox);
}

#[test]
fn held_lock_blocks_writers_and_not_readers() {
    let sandbox = library(1);
    let first = Stored::take(&sandbox, &path(0));
    let private = sandbox.store().join("stvc");
    let lock = File::options().write(true).open(private.join("lock")).unwrap();
    lock.lock().unwrap();
    let holder =
        r#"{"pid":4711,"command":["stvc","snapshot","--at","7"],"since":"2026-11-15T01:46:40Z"}"#;
    fs::write(private.join("lock.json"), holder).unwrap();
    sandbox.append(&path(0), &message("c0", 100));

    let writer = start(&sandbox, &["snapshot"]);
    let json_writer = start(&sandbox, &["--json", "tag", "keep", &first.id]);
    for arguments in [
        &["log"][..],
        &["status"],
        &["timelines"],
        &["show", &first.id],
        &["diff", &first.id],
        &["check"],
        &["tag"],
    ] {
        assert_no_panic(sandbox.stvc(arguments)).exits(0);
    }
    first.assert_restores(&sandbox);
    assert_no_panic(sandbox.stvc(&["restore", &first.id, "--overwrite", "--dry-run"])).exits(0);
    assert_no_panic(sandbox.stvc(&["snapshot", "--dry-run"])).exits(0);

    let refused = answer(writer.wait_with_output().unwrap()).exits(11);
    for words in ["4711", "stvc snapshot --at 7", "2026-11-15T01:46:40Z", ".stvc"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    let refused = answer(json_writer.wait_with_output().unwrap()).exits(11);
    let error = &refused.of_type("error")[0];
    assert_eq!(error["exit"], 11);
    assert!(error["message"].as_str().unwrap().contains("process 4711"), "{error}");
    assert_eq!(fs::read_to_string(private.join("lock.json")).unwrap(), holder);
    assert_eq!(sandbox.snapshot_ids(), [&*first.id]);

    // The holder exits.
    drop(lock);
    Stored::take(&sandbox, &path(0)).assert_restores(&sandbox);
    assert_eq!(fs::read(private.join("lock.json")).unwrap(), b"");
    assert_valid(&sandbox);
}

/// A writer waits for the previous one.
#[test]
fn writer_waits_for_the_lock() {
    let sandbox = library(1);
    Stored::take(&sandbox, &path(0));
    let lock = File::options().write(true).open(sandbox.store().join("stvc/lock")).unwrap();
    lock.lock().unwrap();
    sandbox.append(&path(0), &message("c0", 100));
    let mut writer = start(&sandbox, &["snapshot"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(writer.try_wait().unwrap().is_none(), "it did not wait");
    assert_eq!(sandbox.snapshot_ids().len(), 1);
    drop(lock);
    end(writer);
    assert_eq!(sandbox.snapshot_ids().len(), 2);
}
