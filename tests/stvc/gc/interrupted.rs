//! `gc` that is killed or fills the disk, and recovery by the next one.

use std::fs;
use std::time::{Duration, Instant};

use super::{assert_nothing_unreachable, gc, leftovers, pack_dir, packs, set_age, stray};
use crate::common::{
    A, Sandbox, Stored, assert_no_panic, assert_same, assert_valid, chat, copy_folder, files,
    files_with_extension, kill_after, message, run_with_file_limit, text,
};

#[test]
fn gc_killed_at_any_time_loses_nothing() {
    const KILLS: u32 = 36;
    let mut sandbox = Sandbox::empty();
    let mut killed = 0;
    let mut stored = Vec::new();
    let mut whole = Duration::ZERO;
    for kill in 0..KILLS {
        // A new store in every ninth round, so that it stays small.
        if kill % 9 == 0 {
            sandbox = Sandbox::empty();
            stored.clear();
        }
        // Work for each round: a pack, loose objects and unreachable ones.
        sandbox.wait(60);
        sandbox.write(A, chat(&format!("a {kill}"), 25, None));
        sandbox.append(A, &message("a", kill as usize));
        stored.push(Stored::take(&sandbox, A));
        stray(&sandbox, &format!("stray {kill}"), 60);
        if kill == 0 {
            let elsewhere = Sandbox::empty();
            copy_folder(&sandbox.library(), &elsewhere.library());
            let begin = Instant::now();
            gc(&elsewhere, &["--grace", "0s"]);
            whole = begin.elapsed();
        }
        killed += u32::from(kill_after(
            &sandbox,
            &["gc", "--grace", "0s"],
            whole * (kill * 7 % KILLS) / KILLS,
        ));
        assert_valid(&sandbox);
        assert_eq!(sandbox.snapshot_ids().len(), stored.len());
        if kill % 9 == 8 {
            let begin = Instant::now();
            gc(&sandbox, &["--grace", "0s"]);
            whole = begin.elapsed();
            // Packs without an index: see `leftovers_of_a_killed_gc_are_removed_by_the_next_gc`.
            assert_eq!(files_with_extension(&pack_dir(&sandbox), "idx").len(), 1);
            let temporary = leftovers(&sandbox);
            let temporary: Vec<_> = temporary.iter().filter(|name| name.contains("tmp")).collect();
            assert!(temporary.is_empty(), "{temporary:?}");
            assert_valid(&sandbox);
            stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
        }
    }
    assert!(killed > KILLS / 4, "only {killed} were killed at work");
    assert_nothing_unreachable(&sandbox.store());
}

/// Killed while removing packs: the index is removed, the pack is not.
#[test]
fn leftovers_of_a_killed_gc_are_removed_by_the_next_gc() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 9, None));
    let stored = Stored::take(&sandbox, A);
    let old = packs(&sandbox).remove(0);
    let bytes = fs::read(&old).unwrap();
    gc(&sandbox, &[]);
    let tidy = files(&sandbox.store());
    fs::write(&old, &bytes).unwrap();
    fs::write(pack_dir(&sandbox).join("tmp_pack_stvc_4711-0.tmp"), &bytes[..50]).unwrap();
    fs::write(sandbox.store().join("stvc/.stvc-4711-0.tmp"), b"{\"number\"").unwrap();
    fs::write(sandbox.store().join("stvc/lock.json"), "{}").unwrap();
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    assert_same(&files(&sandbox.store()), &tidy);
    stored.assert_restores(&sandbox);
    assert_valid(&sandbox);
}

/// Killed between the removal of refs of expired operations and the shortening of the log.
#[test]
fn gc_killed_during_expiry_leaves_a_valid_store() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    let stored = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
    assert_eq!(kept.lines().count(), 1);
    let id = kept.trim().rsplit('/').next().unwrap().to_owned();
    sandbox.wait(60);
    gc(&sandbox, &["--keep-undo", "0s"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/stvc/kept"]), "");
    // The log is shortened first, and the ref still exists.
    sandbox.git(&["update-ref", kept.trim(), &id]);
    assert_valid(&sandbox);
    gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/stvc/kept"]), "");
    assert_valid(&sandbox);
    stored.assert_restores(&sandbox);
}

/// Killed while removing such a ref: git's lock file stays.
#[test]
fn gc_killed_during_ref_deletion_does_not_block_the_next_gc() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    let stored = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    sandbox.wait(60);
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
    let lock = sandbox.store().join(format!("{}.lock", kept.trim()));
    fs::write(&lock, "").unwrap();
    set_age(&lock, 7200);
    fs::write(sandbox.store().join("stvc/lock.json"), "{}").unwrap();
    gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    stored.assert_restores(&sandbox);
    assert_valid(&sandbox);
}

/// The limit on file sizes rises from nothing to more than the pack needs.
#[test]
#[cfg(unix)]
fn disk_full_during_gc_loses_nothing() {
    let mut large = Sandbox::empty();
    let mut stored = Vec::new();
    for n in 0..3 {
        large.write(A, chat(&format!("a {n}"), 150, None));
        stored.push(Stored::take(&large, A));
        large.wait(60);
    }
    let limits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let before = files(&large.store());
    let mut failed = 0;
    for blocks in limits {
        let answer = assert_no_panic(run_with_file_limit(&large, blocks, &["gc", "--grace", "0s"]));
        if answer.code == 0 {
            break;
        }
        failed += 1;
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert_same(&files(&large.store()), &before);
        assert_valid(&large);
    }
    assert!(failed > 4, "{failed}");
    gc(&large, &["--grace", "0s"]);
    assert_eq!(packs(&large).len(), 1);
    stored.iter().for_each(|stored| stored.assert_restores(&large));
    assert_valid(&large);
}

/// The pack fits, its longer index does not.
#[test]
#[cfg(unix)]
fn disk_full_while_writing_the_index_leaves_no_pack() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 1, None));
    Stored::take(&sandbox, A);
    let before = files(&sandbox.store());
    let answer = assert_no_panic(run_with_file_limit(&sandbox, 2, &["gc"])).exits(1);
    assert!(answer.stderr.contains(".idx"), "{}", answer.stderr);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    assert_same(&files(&sandbox.store()), &before);
}

/// The process that holds the lock knows that leftovers are unused, whatever their age.
#[test]
fn gc_removes_leftovers_of_any_age() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 9, None));
    let stored = Stored::take(&sandbox, A);
    let old = packs(&sandbox).remove(0);
    let (pack, index) = (fs::read(&old).unwrap(), fs::read(old.with_extension("idx")).unwrap());
    gc(&sandbox, &[]);
    let tidy = files(&sandbox.store());
    for name in ["tmp_pack_stvc_4711-0.tmp", ".stvc-4711-1.tmp"] {
        fs::write(pack_dir(&sandbox).join(name), &pack[..50]).unwrap();
    }
    fs::write(sandbox.store().join("stvc/.stvc-4711-0.tmp"), b"{\"number\"").unwrap();
    fs::write(old.with_extension("idx"), &index).unwrap();
    gc(&sandbox, &[]);
    assert_same(&files(&sandbox.store()), &tidy);
    // Git may be about to rename the index of a new pack; for a minute it stays.
    fs::write(&old, &pack).unwrap();
    gc(&sandbox, &[]);
    assert_eq!(fs::read(&old).unwrap(), pack);
    set_age(&old, 90);
    gc(&sandbox, &[]);
    assert_same(&files(&sandbox.store()), &tidy);
    stored.assert_restores(&sandbox);
    assert_valid(&sandbox);
}

/// After a power cut the removal of a pack may persist and the earlier one of its index may not.
#[test]
fn next_gc_removes_an_index_without_pack() {
    for command in
        [&["gc", "--grace", "0s", "--keep-undo", "0s"][..], &["erase", "Mira/b", "--yes"]]
    {
        let mut sandbox = Sandbox::empty();
        for round in 0..3 {
            sandbox.wait(60);
            sandbox.write(A, chat(&format!("a {round}"), 5, None));
            sandbox.write("chats/Mira/b.jsonl", chat(&format!("b {round}"), 5, None));
            sandbox.stvc(&["snapshot"]).exits(0);
        }
        fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
        let stored = Stored::take(&sandbox, A);
        let old: Vec<_> = files_with_extension(&pack_dir(&sandbox), "idx")
            .into_iter()
            .map(|index| (fs::read(&index).unwrap(), index))
            .collect();
        sandbox.stvc(command).exits(0);
        for (bytes, index) in &old {
            assert!(!index.exists());
            fs::write(index, bytes).unwrap();
            fs::write(index.with_extension("rev"), "of a pack that is gone").unwrap();
        }
        let check = sandbox.json(&["check"]).exits(0);
        assert!(check.of_type("finding").is_empty(), "{check:?}");
        stored.assert_restores(&sandbox);
        let mirror = sandbox.folder().join("mirror");
        sandbox.stvc(&["backup", text(&mirror)]).exits(0);
        sandbox.stvc(&["check", text(&mirror)]).exits(0);
        sandbox.stvc(&["gc"]).exits(0);
        for (_, index) in &old {
            assert!(!index.exists() && !index.with_extension("rev").exists(), "{index:?}");
        }
        assert_valid(&sandbox);
    }
}

#[test]
fn check_reports_an_index_whose_pack_was_lost() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 9));
    sandbox.stvc(&["snapshot"]).exits(0);
    let index = files_with_extension(&pack_dir(&sandbox), "idx").remove(0);
    fs::remove_file(index.with_extension("pack")).unwrap();
    let check = sandbox.stvc(&["check"]).exits(1);
    let output = format!("{}{}", check.stdout, check.stderr);
    assert!(output.contains("its pack is missing"), "{output}");
}
