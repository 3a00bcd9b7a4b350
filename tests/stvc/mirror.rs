//! Mirrors: a folder backup gets only new objects, loses nothing, and is a store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::backups::{
    append_and_snapshot, backup_drill, chat_with_two_snapshots, growing_recap_chat,
    recap_chat_with_fork,
};
use crate::common::{
    A, Sandbox, assert_no_panic, assert_same, assert_valid, chat, files_with_extension, git,
    make_writable, refs, run_with_file_limit, text, tree,
};

fn mirror_of(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.folder().join("mirror");
    sandbox.stvc(&["backup", text(&folder)]).exits(0);
    folder
}

fn packs(repository: &Path) -> BTreeSet<PathBuf> {
    files_with_extension(&repository.join("objects/pack"), "pack").into_iter().collect()
}

#[test]
fn lost_library_is_restored_from_a_mirror() {
    for fixture in ["1.19.0", "1.12.6", "odd"] {
        backup_drill(&Sandbox::from_fixture(fixture), mirror_of);
    }
    let sandbox = recap_chat_with_fork();
    backup_drill(&sandbox, mirror_of);
}

#[test]
fn lost_library_is_restored_from_a_mirror_with_deltas() {
    let sandbox = growing_recap_chat(6);
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let mirror = mirror_of(&sandbox);
    // The pack with deltas is copied unchanged.
    assert_eq!(
        packs(&mirror).iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>(),
        packs(&sandbox.store())
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect::<Vec<_>>()
    );
    backup_drill(&sandbox, mirror_of);
}

#[test]
fn mirror_is_a_store_and_gets_only_new_objects() {
    let mut sandbox = chat_with_two_snapshots();
    sandbox.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    let mirror = mirror_of(&sandbox);
    let log = |sandbox: &Sandbox, store: &Path| {
        sandbox.json(&["--store", text(store), "log"]).exits(0).stdout
    };
    assert_eq!(log(&sandbox, &mirror), log(&sandbox, &sandbox.store()));
    assert_eq!(refs(&mirror), refs(&sandbox.store()));
    git(&mirror, &["fsck", "--strict"]);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
    sandbox.stvc(&["--store", text(&mirror), "check"]).exits(0);
    let before = packs(&mirror);
    let again = sandbox.json(&["backup", text(&mirror)]).exits(0).lines().pop().unwrap();
    assert_eq!((&again["moved"], &again["objects"]), (&0.into(), &0.into()));
    assert_eq!(packs(&mirror), before);
    append_and_snapshot(&mut sandbox, 3);
    let answer = sandbox.json(&["backup", text(&mirror)]).exits(0);
    let summary = answer.lines().pop().unwrap();
    assert_eq!((&summary["new_snapshots"], &summary["snapshots"]), (&1.into(), &3.into()));
    assert!(summary["objects"].as_u64().unwrap() < 10, "{summary}");
    assert!(before.is_subset(&packs(&mirror)), "what was there was written again");
    assert_eq!(log(&sandbox, &mirror), log(&sandbox, &sandbox.store()));
    // After `gc` all objects are in another pack, and still none is new for the mirror.
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let again = sandbox.json(&["backup", text(&mirror)]).exits(0).lines().pop().unwrap();
    assert_eq!(again["objects"], 0);
    // `gc` and snapshots work in the mirror itself.
    sandbox.stvc(&["--store", text(&mirror), "gc", "--grace", "0s"]).exits(0);
    append_and_snapshot(&mut sandbox, 4);
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
    assert_eq!(refs(&mirror), refs(&sandbox.store()));
    let last = sandbox.json(&["backup", "--last", text(&mirror)]).exits(0).of_type("copy");
    assert_eq!((&last[0]["kind"], &last[0]["snapshots_since"]), (&"folder".into(), &0.into()));
}

#[test]
fn clone_of_a_mirror_is_a_store() {
    let sandbox = chat_with_two_snapshots();
    let mirror = mirror_of(&sandbox);
    let clone = sandbox.folder().join("clone");
    git(sandbox.folder(), &["clone", "-q", "--mirror", text(&mirror), text(&clone)]);
    let log = |store: &Path| sandbox.json(&["--store", text(store), "log"]).exits(0).stdout;
    assert_eq!(log(&clone), log(&mirror));
    let plain = sandbox.folder().join("plain");
    git(sandbox.folder(), &["clone", "-q", text(&mirror), text(&plain)]);
    assert_eq!(log(&plain), log(&mirror));
    // A bare repository that git created is a valid destination, empty or with snapshots.
    let bare = sandbox.folder().join("bare.git");
    git(sandbox.folder(), &["init", "-q", "--bare", text(&bare)]);
    for folder in [&clone, &bare, &bare] {
        sandbox.stvc(&["backup", text(folder)]).exits(0);
        assert_eq!(log(folder), log(&mirror));
        sandbox.stvc(&["check", text(folder)]).exits(0);
    }
}

#[test]
fn folder_that_is_not_a_mirror_is_not_changed() {
    let sandbox = chat_with_two_snapshots();
    let folder = sandbox.folder().join("theirs");
    let refused = |folder: &Path, words: &str| {
        let before = tree(folder);
        for more in [&[][..], &["--overwrite"], &["--prune"]] {
            let answer = sandbox.stvc(&[&["backup", text(folder)], more].concat()).exits(4);
            assert!(answer.stderr.contains(words), "{}", answer.stderr);
        }
        assert!(tree(folder) == before, "{words}");
    };
    // A folder with a file, a repository with a work tree, a bare one, a library's store, a file.
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter.txt"), "Dear Mira").unwrap();
    refused(&folder, "the folder is not empty");
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "."]);
    git(&folder, &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "work"]);
    refused(&folder, "a git repository that was not created by `stvc backup`");
    let bare = sandbox.folder().join("bare");
    git(sandbox.folder(), &["clone", "-q", "--bare", text(&folder), text(&bare)]);
    refused(&bare, "a git repository that was not created by `stvc backup`");
    let other = chat_with_two_snapshots();
    refused(&other.store(), "it is the store of another library");
    let own = sandbox.store();
    let before = crate::common::files(&own.join("refs"));
    for place in [own.clone(), own.join("objects"), own.join("copy")] {
        sandbox.stvc(&["backup", text(&place)]).exits(4);
    }
    assert_same(&crate::common::files(&own.join("refs")), &before);
    let bytes = sandbox.read(A);
    sandbox.stvc(&["backup", text(&sandbox.path(A))]).exits(4);
    assert_eq!(sandbox.read(A), bytes);
    sandbox.stvc(&["backup", text(&sandbox.folder().join("m")), "--encrypt"]).exits(2);
    for bad in ["ext::sh -c true", "--receive-pack=x", "ftp://host/x"] {
        sandbox.stvc(&["backup", "--", bad]).exits(2);
    }
}

#[test]
fn mirror_loses_nothing_without_prune() {
    let mut sandbox = chat_with_two_snapshots();
    sandbox.write("chats/Mira/b.jsonl", chat("b", 2, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "mark", "Mira/b"]).exits(0);
    let mirror = mirror_of(&sandbox);
    let before = refs(&mirror);
    let ids = sandbox.snapshot_ids();
    sandbox.stvc(&["tag", "--delete", "mark"]).exits(0);
    sandbox.git(&["update-ref", "-d", "refs/heads/chats/Mira/b"]);
    sandbox.stvc(&["backup", text(&mirror), "--no-snapshot"]).exits(0);
    assert_eq!(refs(&mirror), before);
    // Undone here, it stays there. After a diverging save, the former branch is hidden there and
    // still exists.
    append_and_snapshot(&mut sandbox, 3);
    let gone = sandbox.snapshot_ids()[0].clone();
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    let answer = sandbox.json(&["backup", text(&mirror), "--no-snapshot"]).exits(0);
    let answer = answer.lines().pop().unwrap();
    assert_eq!((&answer["ahead"], &answer["moved"]), (&1.into(), &0.into()));
    append_and_snapshot(&mut sandbox, 4);
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    let kept = git(&mirror, &["for-each-ref", "refs/stvc/kept"]);
    assert!(String::from_utf8(kept).unwrap().contains(&gone));
    sandbox.stvc(&["--store", text(&mirror), "show", &gone]).exits(0);
    sandbox.stvc(&["--store", text(&mirror), "show", &ids[0]]).exits(0);
    sandbox.stvc(&["backup", text(&mirror), "--prune"]).exits(0);
    assert_eq!(refs(&mirror), refs(&sandbox.store()));
    assert!(git(&mirror, &["for-each-ref", "refs/stvc/kept"]).is_empty());
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
}

#[test]
fn backup_to_a_mirror_with_other_snapshots_is_refused() {
    let sandbox = chat_with_two_snapshots();
    let mirror = mirror_of(&sandbox);
    let mut other = chat_with_two_snapshots();
    append_and_snapshot(&mut other, 7);
    // Another store with chats of the same names.
    other.write(A, chat("quite another", 4, None));
    fs::remove_dir_all(other.store()).unwrap();
    other.stvc(&["snapshot"]).exits(0);
    let before = tree(&mirror.join("refs"));
    let answer = other.stvc(&["backup", text(&mirror)]).exits(4);
    assert!(
        answer.stderr.contains("has snapshots of chats/Mira/a that this store does not have"),
        "{}",
        answer.stderr
    );
    assert!(tree(&mirror.join("refs")) == before);
    other.stvc(&["backup", text(&mirror), "--overwrite"]).exits(0);
    let id = &sandbox.snapshot_ids()[0];
    sandbox.stvc(&["--store", text(&mirror), "show", id]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
}

#[test]
#[cfg(unix)]
fn full_disk_leaves_the_mirror_unchanged() {
    let mut sandbox = chat_with_two_snapshots();
    let mirror = mirror_of(&sandbox);
    let log = |sandbox: &Sandbox| sandbox.json(&["--store", text(&mirror), "log"]).exits(0).stdout;
    let before = (packs(&mirror), log(&sandbox));
    sandbox.wait(60);
    sandbox.write(A, chat("a", 400, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    for blocks in [1, 8, 16] {
        assert_no_panic(run_with_file_limit(&sandbox, blocks, &["backup", text(&mirror)])).exits(1);
        assert_eq!((packs(&mirror), log(&sandbox)), before);
        let left = fs::read_dir(mirror.join("objects/pack")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.contains("tmp")).count(), 0);
        sandbox.stvc(&["check", text(&mirror)]).exits(0);
    }
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
    // No mirror exists before or after.
    let none = sandbox.folder().join("none");
    assert_no_panic(run_with_file_limit(&sandbox, 0, &["backup", text(&none)])).exits(1);
    assert!(!none.exists());
}

#[test]
fn killed_backup_leaves_a_valid_mirror() {
    let mut sandbox = Sandbox::empty();
    for n in 0..6 {
        sandbox.write(&format!("chats/Mira/{n}.jsonl"), chat(&format!("chat {n}"), 200, None));
    }
    sandbox.write(A, chat("a", 2, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let folder = sandbox.folder().join("mirror");
    let begin = Instant::now();
    sandbox.stvc(&["backup", text(&folder)]).exits(0);
    let whole = begin.elapsed();
    fs::remove_dir_all(&folder).unwrap();
    for kill in 0..12_u32 {
        let mut command = sandbox.command(&["backup", text(&folder)]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep((whole * (kill % 6) / 6).min(Duration::from_secs(5)));
        child.kill().unwrap();
        child.wait().unwrap();
        if folder.exists() {
            sandbox.stvc(&["check", text(&folder)]).exits(0);
        }
        append_and_snapshot(&mut sandbox, kill as usize + 3);
    }
    sandbox.stvc(&["backup", text(&folder)]).exits(0);
    assert_eq!(refs(&folder), refs(&sandbox.store()));
    sandbox.stvc(&["check", text(&folder)]).exits(0);
    let left = fs::read_dir(folder.join("objects/pack")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains("tmp")).count(), 0);
    assert_valid(&sandbox);
}

#[test]
fn damaged_mirror_is_repaired_by_the_next_backup() {
    let sandbox = chat_with_two_snapshots();
    let mirror = mirror_of(&sandbox);
    let pack = packs(&mirror).pop_first().unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    make_writable(&pack);
    fs::write(&pack, &bytes).unwrap();
    sandbox.stvc(&["check", text(&mirror)]).exits(1);
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    let log = sandbox.json(&["--store", text(&mirror), "log"]).exits(0);
    for line in log.of_type("snapshot") {
        let to = sandbox.folder().join(line["id"].as_str().unwrap());
        let id = line["id"].as_str().unwrap();
        sandbox.stvc(&["--store", text(&mirror), "restore", id, "--to", text(&to)]).exits(0);
    }
}

#[test]
fn backup_does_not_create_the_missing_parent_folder() {
    let sandbox = chat_with_two_snapshots();
    let stick = sandbox.folder().join("media/stick/chats");
    let answer = sandbox.stvc(&["backup", text(&stick)]).exits(1);
    assert!(answer.stderr.contains("connect the drive"), "{}", answer.stderr);
    assert!(!sandbox.folder().join("media").exists());
    for name in ["x.zip", "chats.stvc.bak", "notes.txt"] {
        let answer = sandbox.stvc(&["backup", text(&sandbox.folder().join(name))]).exits(2);
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert!(!sandbox.folder().join(name).exists());
    }
    sandbox.stvc(&["backup", &format!("{}/", text(&sandbox.folder().join("v1.2")))]).exits(0);
    sandbox.stvc(&["backup", text(&sandbox.folder().join("chats.git"))]).exits(0);
}
