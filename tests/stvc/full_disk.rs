//! Failing writes: existing files stay, and the error names the file and the reason.
#![cfg(unix)]

use std::fs;

use crate::common::{
    A, Answer, Sandbox, Stored, assert_no_panic, assert_valid, chat, message, run_in_shell,
    run_with_file_limit, skip, text,
};

/// Lists temporary files of failed writes.
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
fn failed_snapshot_changes_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    sandbox.write(A, chat("a", 400, None));
    let mut failed = 0;
    for blocks in [1, 2, 4, 8, 16, 32, 64] {
        let answer = assert_no_panic(run_with_file_limit(&sandbox, blocks, &["snapshot"]));
        if answer.code == 0 {
            break;
        }
        failed += 1;
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert_eq!(sandbox.snapshot_ids(), [&*first.id]);
        assert_eq!(leftovers(&sandbox), Vec::<String>::new());
        assert_valid(&sandbox);
        first.assert_restores(&sandbox);
    }
    assert!(failed > 2);
    Stored::take(&sandbox, A).assert_restores(&sandbox);
    assert_valid(&sandbox);
}

/// The pack fits, the longer operation log does not.
#[test]
fn snapshot_that_cannot_be_logged_moves_no_ref() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    let log = sandbox.store().join("stvc/operations.jsonl");
    let line = fs::read_to_string(&log).unwrap();
    let long = "x".repeat(8 * 512 - line.len() - 20);
    let logged = line.replace("\"snapshot\"", &format!("\"{long}\""));
    fs::write(&log, &logged).unwrap();
    sandbox.append(A, &message("a", 9));
    let answer = assert_no_panic(run_with_file_limit(&sandbox, 8, &["snapshot"])).exits(1);
    assert!(answer.stderr.contains("operations.jsonl"), "{}", answer.stderr);
    assert_eq!(sandbox.snapshot_ids(), [&*first.id]);
    let second = Stored::take(&sandbox, A);
    second.assert_restores(&sandbox);
    assert_eq!(sandbox.snapshot_ids(), [&*second.id, &*first.id]);
    assert_valid(&sandbox);
}

#[test]
fn failed_store_creation_leaves_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let answer = assert_no_panic(run_with_file_limit(&sandbox, 0, &["snapshot"])).exits(1);
    assert!(!answer.stderr.is_empty());
    assert!(!sandbox.store().exists());
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    Stored::take(&sandbox, A).assert_restores(&sandbox);
}

#[test]
fn failed_restore_leaves_the_old_file() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("long", 400, None));
    let long = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.write(A, chat("short", 2, None));
    let short = Stored::take(&sandbox, A);
    let answer =
        assert_no_panic(run_with_file_limit(&sandbox, 16, &["restore", &long.id, "--overwrite"]))
            .exits(1);
    assert!(answer.stderr.contains("a.jsonl"), "{}", answer.stderr);
    assert_eq!(sandbox.read(A), short.bytes);
    fs::remove_file(sandbox.path(A)).unwrap();
    assert_no_panic(run_with_file_limit(&sandbox, 16, &["restore", &long.id])).exits(1);
    assert!(!sandbox.path(A).exists());
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    sandbox.stvc(&["restore", &long.id]).exits(0);
    assert_eq!(sandbox.read(A), long.bytes);
    assert_valid(&sandbox);
}

/// A real full disk, where the system permits to mount one.
#[test]
fn full_disk_is_reported_and_loses_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    sandbox.write(A, chat("a", 400, None));
    let disk = sandbox.folder().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"
        exec unshare -rm sh -c '
            disk=$1; library=$2; shift 2
            mount -t tmpfs -o size=3m none "$disk" 2>/dev/null || exit 99
            cp -a "$library" "$disk/u" && cd "$disk/u" || exit 99
            head -c 4000000 /dev/zero > ../filler 2>/dev/null
            "$@" --data . snapshot; echo "snapshot $?"
            "$@" --data . --quiet log; echo "log $?"
            "$@" --data . check; echo "check $?"
            rm ../filler
            "$@" --data . --quiet snapshot; echo "snapshot $?"
            "$@" --data . --quiet check; echo "check $?"
            cp -a .stvc "$library/../after"
        ' sh "#;
    let script = format!("{script} '{}' '{}' \"$@\"", disk.display(), sandbox.library().display());
    let answer = run_in_shell(&sandbox, &script, &[]);
    if answer.code != 0 {
        assert!(!answer.stdout.contains("snapshot"), "{answer:?}");
        skip("the system lets no test have a disk of its own (unshare, mount)");
        return;
    }
    let codes: Vec<_> =
        answer.stdout.lines().filter(|line| line.ends_with(|c: char| c.is_ascii_digit())).collect();
    let codes: Vec<_> = codes.into_iter().filter(|line| line.split(' ').count() == 2).collect();
    assert_eq!(codes, ["snapshot 1", "log 0", "check 0", "snapshot 0", "check 0"], "{answer:?}");
    assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
    assert!(answer.stderr.contains("free some disk space and try again"), "{}", answer.stderr);
    let ids = git_log(&sandbox.folder().join("after"));
    assert_eq!(ids.lines().count(), 2, "{ids}");
    assert!(ids.contains(&first.id));
}

/// Runs the program on a new disk of `size` (`$disk`) with a copy of the library. `$stvc` is the
/// program, `fill` fills the disk. `None` where the system forbids it.
fn on_own_disk(sandbox: &Sandbox, size: &str, steps: &str) -> Option<Answer> {
    let disk = sandbox.folder().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let script = format!(
        r#"
        exec unshare -rm sh -c '
            disk=$1; library=$2; size=$3; shift 3
            mount -t tmpfs -o size=$size none "$disk" 2>/dev/null || exit 99
            cp -a "$library" "$disk/u" && cd "$disk/u" || exit 99
            fill() {{ cat /dev/zero > ../filler 2>/dev/null; true; }}
            run() {{ name=$1; shift; "$program" --data . "$@"; echo "$name $?"; }}
            program=$1
            {steps}
        ' sh '{}' '{}' {size} "$@"
        "#,
        disk.display(),
        sandbox.library().display()
    );
    let answer = run_in_shell(sandbox, &script, &[]);
    if answer.code == 99 {
        skip("the system lets no test have a disk of its own (unshare, mount)");
        return None;
    }
    Some(assert_no_panic(answer))
}

/// Returns the lines `name code` of an answer.
fn codes(answer: &Answer) -> Vec<&str> {
    let is_code = |line: &&str| {
        line.split_once(' ').is_some_and(|(name, code)| {
            name.starts_with('=') && code.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    answer.stdout.lines().filter(is_code).collect()
}

/// Creates several snapshots of two chats, one of which is deleted.
fn library_with_much_to_remove() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    for round in 0..6 {
        sandbox.write(A, chat("a", 20 + round, None));
        sandbox.write("chats/Mira/b.jsonl", chat(&format!("b{round}"), 30, None));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

#[test]
fn forget_erase_gc_and_backup_to_another_disk_work_on_a_full_disk() {
    let sandbox = library_with_much_to_remove();
    let copies = sandbox.folder().join("copies");
    fs::create_dir(&copies).unwrap();
    for (name, command) in [
        ("=forget", "forget --keep-last 1"),
        ("=gc", "gc --keep-undo 0s --grace 0s"),
        ("=erase", "erase Mira/b --yes"),
        ("=file", "backup $copies/all.stvc"),
        ("=folder", "backup $copies/folder"),
    ] {
        let steps = format!(
            r#"
            copies="{}"
            fill
            run {name} {command}
            rm ../filler
            run =check check
            run =restore restore Mira/a --to ../restored
            cmp ../restored/chats/Mira/a.jsonl chats/Mira/a.jsonl; echo "=same $?"
            "#,
            copies.display()
        );
        let Some(answer) = on_own_disk(&sandbox, "8m", &steps) else { return };
        let done = format!("{name} 0");
        assert_eq!(codes(&answer), [&*done, "=check 0", "=restore 0", "=same 0"], "{answer:?}");
    }
    for place in ["all.stvc", "folder"] {
        sandbox.stvc(&["check", text(&copies.join(place))]).exits(0);
    }
}

#[test]
fn backup_from_a_full_disk_reports_changes_that_were_not_stored() {
    let sandbox = library_with_much_to_remove();
    let copy = sandbox.folder().join("all.stvc");
    let steps = format!(
        r#"
        echo >> chats/Mira/a.jsonl
        fill
        run =backup --json backup "{}"
        "#,
        copy.display()
    );
    let Some(answer) = on_own_disk(&sandbox, "8m", &steps) else { return };
    assert_eq!(codes(&answer), ["=backup 3"], "{answer:?}");
    assert!(answer.stdout.contains("not-stored"), "{answer:?}");
    sandbox.stvc(&["check", text(&copy)]).exits(0);
}

/// The new pack and the old one do not fit together.
#[test]
fn gc_reports_needed_space_and_loses_nothing() {
    let sandbox = Sandbox::empty();
    let noise = |seed: u64| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            format!("{state:016x}")
        };
        let words: Vec<_> = (0..120_000).map(|_| next()).collect();
        format!("{{\"chat_metadata\":{{}}}}\n{{\"mes\":\"{}\"}}", words.join(" "))
    };
    sandbox.write(A, noise(1));
    sandbox.write("chats/Mira/b.jsonl", noise(2));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(A, "\n{\"mes\":\"more\"}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let steps = r#"
        fill
        run =gc gc
        run =check check
        run =restore restore Mira/a --to ../../restored
    "#;
    let Some(answer) = on_own_disk(&sandbox, "16m", steps) else { return };
    assert_eq!(codes(&answer), ["=gc 1", "=check 0", "=restore 0"], "{answer:?}");
    assert!(answer.stderr.contains("the new pack is written before the old ones"), "{answer:?}");
    assert!(answer.stderr.contains("free some disk space; or move the store"), "{answer:?}");
}

#[test]
fn read_only_store_can_be_read_backed_up_and_restored_from() {
    let sandbox = library_with_much_to_remove();
    let copies = sandbox.folder().join("copies");
    fs::create_dir(&copies).unwrap();
    let steps = format!(
        r#"
        copies="{}"
        mount --bind .stvc .stvc && mount -o remount,bind,ro .stvc || exit 99
        for command in log timelines status stats check operations doctor "show Mira/a" "diff Mira/a" "search 24:" lore; do
            set -- $command
            run "=$1" $command
        done
        run =view view --out $copies/page.html
        run =restore restore Mira/a --to $copies/restored
        run =file backup $copies/all.stvc
        run =folder backup $copies/folder
        run =overwrite restore Mira/a~3 --overwrite
        run =snapshot snapshot
        cp chats/Mira/a.jsonl $copies/a.jsonl
        mkdir -p ../other/chats
        echo "{{}}" > ../other/settings.json
        "$program" --data ../other import "$disk/u/.stvc"; echo "=import $?"
        "#,
        copies.display()
    );
    let Some(answer) = on_own_disk(&sandbox, "20m", &steps) else { return };
    let (failed, done): (Vec<_>, Vec<_>) =
        codes(&answer).into_iter().partition(|line| !line.ends_with(" 0"));
    assert_eq!(failed, ["=overwrite 1", "=snapshot 1"], "{answer:?}");
    assert_eq!(done.len(), 16, "{answer:?}");
    assert!(answer.stderr.contains("--to DIR"), "{answer:?}");
    assert_eq!(fs::read(copies.join("restored/chats/Mira/a.jsonl")).unwrap(), sandbox.read(A));
    assert_eq!(fs::read(copies.join("a.jsonl")).unwrap(), sandbox.read(A));
    for place in ["all.stvc", "folder"] {
        sandbox.stvc(&["check", text(&copies.join(place))]).exits(0);
    }
}

fn git_log(store: &std::path::Path) -> String {
    String::from_utf8(crate::common::git(store, &["rev-list", "--all"])).unwrap()
}

/// Every command that writes names the cause and what to do.
#[test]
fn every_command_that_writes_reports_a_full_disk() {
    let sandbox = library_with_much_to_remove();
    let copy = sandbox.folder().join("copy.stvc");
    sandbox.stvc(&["backup", copy.to_str().unwrap()]).exits(0);
    let other = sandbox.folder().join("other");
    fs::create_dir(&other).unwrap();
    for command in [
        "snapshot",
        "--store ../new snapshot",
        "restore a~2 --as c",
        "restore a~2 --to ../restored",
        "fork a --at 5",
        "tag sunrise a",
        "undo",
        "backup ../copy.stvc",
        "backup ../mirror/",
        "sync ../synced",
        "sync \"$other\"",
        "import \"$copy\"",
        "--store \"$copy\" log",
        "view --out ../page.html",
        "show a -o ../story.md",
        "config date iso",
        "extension install",
        "man --dir ../pages",
    ] {
        let steps = format!(
            "TMPDIR=$disk; export TMPDIR; other='{}'; copy='{}'
            echo more >> chats/Mira/a.jsonl
            fill; run ={} {command}",
            other.display(),
            copy.display(),
            command.replace(['"', '$', ' '], "."),
        );
        let Some(answer) = on_own_disk(&sandbox, "3m", &steps) else { return };
        let code = codes(&answer).concat();
        assert!(code.ends_with(" 1"), "{command}: {answer:?}");
        assert!(answer.stderr.contains("free some disk space"), "{command}: {answer:?}");
    }
}
