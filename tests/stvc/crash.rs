//! Processes that are killed at any time: the store stays valid, acknowledged snapshots restore,
//! and the next command works.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::common::{
    A, Sandbox, Stored, assert_no_panic, assert_valid, chat, check, kill_after, loose_ref,
    mark_last_operation_unfinished, message, resolve_ref,
};

const BRANCH: &str = "refs/heads/chats/Mira/a";

const CHATS: [&str; 4] =
    ["chats/Mira/a.jsonl", "chats/Mira/b.jsonl", "chats/Mira/c.jsonl", "chats/Voss/d.jsonl"];

/// Builds a chat that is long enough to take some time.
fn long_chat(name: &str) -> Vec<u8> {
    chat(name, 150, None)
}

#[test]
fn snapshot_killed_at_any_time_leaves_a_valid_store() {
    const KILLS: u32 = 40;
    let mut killed = 0;
    let mut sandbox = Sandbox::empty();
    let mut whole = Duration::ZERO;
    for kill in 0..KILLS {
        // A new store in every fourth round: its creation is interrupted too, and it stays small.
        let new = kill % 4 == 0;
        if new {
            sandbox = Sandbox::empty();
        }
        for path in CHATS {
            sandbox.write(path, long_chat(&format!("{path} {kill}")));
        }
        if new {
            // Measures an undisturbed run in another folder without a store.
            let elsewhere = sandbox.folder().join("elsewhere");
            let begin = Instant::now();
            sandbox.stvc(&["--store", elsewhere.to_str().unwrap(), "snapshot"]).exits(0);
            whole = begin.elapsed();
        }
        killed +=
            u32::from(kill_after(&sandbox, &["snapshot"], whole * (kill * 7 % KILLS) / KILLS));
        if sandbox.store().exists() {
            assert_valid(&sandbox);
        }
        sandbox.wait(60);
        if kill % 4 == 2 {
            sandbox.stvc(&["snapshot"]).exits(0);
            for path in CHATS {
                Stored::take(&sandbox, path).assert_restores(&sandbox);
            }
            assert_eq!(temporary_packs(&sandbox), 0);
        }
    }
    assert!(killed > KILLS / 4, "only {killed} were killed at work");
}

fn temporary_packs(sandbox: &Sandbox) -> usize {
    let packs = fs::read_dir(sandbox.store().join("objects/pack")).unwrap();
    packs
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("tmp_"))
        .count()
}

#[test]
fn restore_killed_at_any_time_leaves_old_or_new_files() {
    const KILLS: u32 = 24;
    let path = "chats/Mira/a.jsonl";
    let mut sandbox = Sandbox::empty();
    let mut states = Vec::new();
    for n in 0..2 {
        sandbox.write(path, long_chat(&format!("state {n}")));
        states.push(Stored::take(&sandbox, path));
        sandbox.wait(60);
    }
    let restore =
        |state: &Stored| ["restore".to_owned(), state.id.clone(), "--overwrite".to_owned()];
    for kill in 0..KILLS {
        let wanted = &states[kill as usize % 2];
        let other = &states[(kill as usize + 1) % 2];
        sandbox.write(path, &other.bytes);
        let arguments = restore(wanted);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let begin = Instant::now();
        sandbox.stvc(&arguments).exits(0);
        let whole = begin.elapsed();
        sandbox.write(path, &other.bytes);

        kill_after(&sandbox, &arguments, whole * (kill * 7 % KILLS) / KILLS);
        let now = sandbox.read(path);
        assert!(now == wanted.bytes || now == other.bytes, "{} bytes", now.len());
        let listed = assert_no_panic(sandbox.json(&["status"])).exits(0);
        assert_eq!(listed.of_type("timeline").len(), 1, "{}", listed.stdout);
        for entry in fs::read_dir(sandbox.path("chats/Mira")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                name == "a.jsonl" || (name.starts_with(".stvc-") && name.ends_with(".tmp")),
                "{name}"
            );
        }
        assert_valid(&sandbox);
        sandbox.stvc(&arguments).exits(0);
        assert_eq!(sandbox.read(path), wanted.bytes);
    }
}

/// A store with two snapshots of one timeline.
struct Two {
    sandbox: Sandbox,
    first: Stored,
    second: Stored,
}

impl Two {
    fn new() -> Self {
        let mut sandbox = Sandbox::empty();
        sandbox.write(A, chat("a", 3, None));
        let first = Stored::take(&sandbox, A);
        sandbox.wait(60);
        sandbox.append(A, &message("a", 3));
        let second = Stored::take(&sandbox, A);
        sandbox.wait(60);
        Self { sandbox, first, second }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.sandbox.store().join(path)
    }

    /// Simulates a killed holder of the lock.
    fn mark_lock_holder_killed(&self) {
        let holder =
            br#"{"pid":1073741823,"command":["stvc","snapshot"],"since":"2026-11-15T01:46:40Z"}"#;
        fs::write(self.file("stvc/lock.json"), holder).unwrap();
        mark_last_operation_unfinished(&self.sandbox);
    }

    /// Asserts that both snapshots exist in order and that new ones can be added.
    #[track_caller]
    fn assert_valid_and_growing(&self) {
        self.sandbox.append(A, &message("a", 4));
        let third = Stored::take(&self.sandbox, A);
        for stored in [&self.first, &self.second, &third] {
            stored.assert_restores(&self.sandbox);
        }
        assert_eq!(self.sandbox.snapshot_ids(), [&*third.id, &*self.second.id, &*self.first.id]);
        assert_valid(&self.sandbox);
        assert_eq!(temporary_packs(&self.sandbox), 0);
    }

    /// Simulates a kill after the objects were written: the branch has not moved.
    fn reset_branch(&self) {
        let branch = loose_ref(&self.sandbox.store(), BRANCH);
        fs::write(branch, format!("{}\n", self.first.id)).unwrap();
    }
}

#[test]
fn recovery_finishes_a_logged_operation() {
    let two = Two::new();
    two.reset_branch();
    two.mark_lock_holder_killed();
    assert_eq!(two.sandbox.snapshot_ids(), [&*two.first.id]);
    let answer = two.sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(answer.of_type("snapshot")[0]["id"], *two.second.id);
    assert_eq!(answer.of_type("snapshot")[0]["unchanged"], true);
    two.assert_valid_and_growing();
}

#[test]
fn recovery_keeps_a_branch_that_moved_later() {
    let two = Two::new();
    two.reset_branch();
    let taken = Stored::take(&two.sandbox, A);
    assert_ne!(taken.id, two.second.id, "a clean end was taken for a crash");
    assert_eq!(two.sandbox.snapshot_ids(), [&*taken.id, &*two.first.id]);
    assert_valid(&two.sandbox);
}

#[test]
fn recovery_finishes_a_logged_deletion() {
    let two = Two::new();
    two.sandbox.stvc(&["tag", "keep", &two.first.id]).exits(0);
    two.sandbox.stvc(&["tag", "--delete", "keep"]).exits(0);
    // Git removes a folder with its last ref.
    fs::create_dir_all(two.file("refs/tags")).unwrap();
    fs::write(two.file("refs/tags/keep"), format!("{}\n", two.first.id)).unwrap();
    two.mark_lock_holder_killed();
    two.assert_valid_and_growing();
    assert!(two.sandbox.json(&["tag"]).exits(0).of_type("tag").is_empty());
}

#[test]
fn ref_locks_of_a_killed_process_do_not_block_commands() {
    let two = Two::new();
    two.reset_branch();
    fs::write(two.file("refs/heads/chats/Mira/a.lock"), format!("{}\n", two.second.id)).unwrap();
    two.mark_lock_holder_killed();
    two.assert_valid_and_growing();
}

#[test]
fn stale_ref_locks_do_not_block_commands() {
    for words in ["", "1234"] {
        let two = Two::new();
        let lock = loose_ref(&two.sandbox.store(), BRANCH).with_extension("lock");
        fs::write(&lock, words).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        File::options().append(true).open(lock).unwrap().set_modified(long_ago).unwrap();
        two.assert_valid_and_growing();
    }
}

#[test]
fn lock_of_a_dead_process_does_not_block_commands() {
    for words in ["{", "\0\0\0", "{\"pid\":1}"] {
        let two = Two::new();
        fs::write(two.file("stvc/lock.json"), words).unwrap();
        two.assert_valid_and_growing();
        assert_eq!(fs::read(two.file("stvc/lock.json")).unwrap(), b"");
    }
}

#[test]
fn temporary_packs_are_removed() {
    let two = Two::new();
    fs::write(two.file("objects/pack/tmp_pack_stvc_4711-0.tmp"), b"PACK\0\0").unwrap();
    two.mark_lock_holder_killed();
    assert_valid(&two.sandbox);
    two.assert_valid_and_growing();
}

#[test]
fn truncated_last_log_line_loses_only_that_line() {
    let two = Two::new();
    let log = two.file("stvc/operations.jsonl");
    let whole = fs::read(&log).unwrap();
    for torn in [&b"{"[..], b"{\"number\":3,\"time\":\"20", b"\xff\xfe", b"\0\0\0\0"] {
        fs::write(&log, [&whole, torn].concat()).unwrap();
        two.mark_lock_holder_killed();
        let (code, words) = check(&two.sandbox);
        assert_eq!(code, 0, "{words}");
        assert!(words.contains("operations.jsonl"), "{words}");
        two.sandbox.stvc(&["tag", "keep", &two.first.id]).exits(0);
        two.sandbox.stvc(&["tag", "--delete", "keep"]).exits(0);
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        let numbers: Vec<_> = text.lines().filter_map(number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{text}");
    }
    two.assert_valid_and_growing();
}

fn number(line: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(line).ok()?["number"].as_u64()
}

/// Killed between the two renames: the pack has its name, its index does not, and neither log nor
/// refs have changed.
#[test]
fn pack_without_its_index_does_not_block_commands() {
    let two = Two::new();
    two.reset_branch();
    let log = fs::read_to_string(two.file("stvc/operations.jsonl")).unwrap();
    fs::write(two.file("stvc/operations.jsonl"), format!("{}\n", log.lines().next().unwrap()))
        .unwrap();
    fs::remove_file(index_of(&two.sandbox, &two.second.id)).unwrap();
    two.mark_lock_holder_killed();
    assert_eq!(two.sandbox.snapshot_ids(), [&*two.first.id]);
    two.first.assert_restores(&two.sandbox);
    let taken = Stored::take(&two.sandbox, A);
    taken.assert_restores(&two.sandbox);
    assert_valid(&two.sandbox);
}

/// Finds the index that lists an object by its bytes.
fn index_of(sandbox: &Sandbox, id: &str) -> PathBuf {
    let raw: Vec<u8> =
        (0..20).map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap()).collect();
    let indices = crate::common::files_with_extension(&sandbox.store().join("objects/pack"), "idx");
    let lists = |path: &Path| fs::read(path).unwrap().windows(20).any(|window| window == raw);
    indices.into_iter().find(|path| lists(path)).unwrap()
}

#[test]
fn incomplete_store_does_not_prevent_the_first_snapshot() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    fs::create_dir_all(sandbox.path(".stvc-new-4711.tmp/objects")).unwrap();
    fs::create_dir(sandbox.store()).unwrap();
    Stored::take(&sandbox, A).assert_restores(&sandbox);
    assert_valid(&sandbox);
}

/// Another program locks a ref: the command fails and logs that, so that recovery does not finish
/// it.
#[test]
fn failed_operation_is_not_finished_by_recovery() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    sandbox.append(A, &message("a", 9));
    let lock = loose_ref(&sandbox.store(), BRANCH).with_extension("lock");
    fs::write(&lock, "").unwrap();
    sandbox.stvc(&["snapshot"]).exits(1);
    fs::remove_file(&lock).unwrap();
    fs::write(sandbox.store().join("stvc/lock.json"), "{}").unwrap();
    sandbox.stvc(&["tag", "keep", &first.id]).exits(0);
    assert_eq!(resolve_ref(&sandbox.store(), BRANCH), first.id);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_ne!(resolve_ref(&sandbox.store(), BRANCH), first.id);
    assert_valid(&sandbox);
}

/// Killed between log and refs: nothing is damaged, and nothing is reported.
#[test]
fn check_does_not_report_an_interrupted_command_as_damage() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let stored = Stored::take(&sandbox, A);
    fs::remove_file(loose_ref(&sandbox.store(), BRANCH)).unwrap();
    assert_eq!(check(&sandbox).0, 1, "gone without a reason");
    mark_last_operation_unfinished(&sandbox);
    assert_valid(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(resolve_ref(&sandbox.store(), BRANCH), stored.id);
    assert_valid(&sandbox);
}
