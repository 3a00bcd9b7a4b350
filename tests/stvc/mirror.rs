//! A folder that is kept as a copy: only what is new goes there, nothing is dropped, and it is a store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::backups::{drill_with, forked, grown, next, small};
use crate::common::{
    A, Sandbox, assert_same, calm, chat, files_of, git, limited, make_writable, refs, sound, text,
    tree,
};

fn mirror_of(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.folder().join("mirror");
    sandbox.stvc(&["backup", text(&folder)]).exits(0);
    folder
}

fn packs(repository: &Path) -> BTreeSet<PathBuf> {
    files_of(&repository.join("objects/pack"), "pack").into_iter().collect()
}

#[test]
fn a_lost_library_comes_back_from_a_mirror() {
    for fixture in ["1.19.0", "1.12.6", "odd"] {
        drill_with(&Sandbox::of_fixture(fixture), mirror_of);
    }
    let sandbox = forked();
    drill_with(&sandbox, mirror_of);
}

#[test]
fn a_lost_library_comes_back_from_a_mirror_of_a_store_with_deltas() {
    let sandbox = grown(6);
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let mirror = mirror_of(&sandbox);
    // The pack with deltas went there as it is.
    assert_eq!(
        packs(&mirror).iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>(),
        packs(&sandbox.store())
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect::<Vec<_>>()
    );
    drill_with(&sandbox, mirror_of);
}

#[test]
fn a_mirror_is_a_store_and_gets_only_what_is_new() {
    let mut sandbox = small();
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
    next(&mut sandbox, 3);
    let answer = sandbox.json(&["backup", text(&mirror)]).exits(0);
    let summary = answer.lines().pop().unwrap();
    assert_eq!((&summary["new_snapshots"], &summary["snapshots"]), (&1.into(), &3.into()));
    assert!(summary["objects"].as_u64().unwrap() < 10, "{summary}");
    assert!(before.is_subset(&packs(&mirror)), "what was there was written again");
    assert_eq!(log(&sandbox, &mirror), log(&sandbox, &sandbox.store()));
    // After gc here all objects are in another pack, and still nothing is new there.
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let again = sandbox.json(&["backup", text(&mirror)]).exits(0).lines().pop().unwrap();
    assert_eq!(again["objects"], 0);
    // The mirror can be collected and written to itself.
    sandbox.stvc(&["--store", text(&mirror), "gc", "--grace", "0s"]).exits(0);
    next(&mut sandbox, 4);
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
    assert_eq!(refs(&mirror), refs(&sandbox.store()));
    let last = sandbox.json(&["backup", "--last", text(&mirror)]).exits(0).of_type("copy");
    assert_eq!((&last[0]["kind"], &last[0]["snapshots_since"]), (&"folder".into(), &0.into()));
}

#[test]
fn a_clone_of_a_mirror_is_a_store() {
    let sandbox = small();
    let mirror = mirror_of(&sandbox);
    let clone = sandbox.folder().join("clone");
    git(sandbox.folder(), &["clone", "-q", "--mirror", text(&mirror), text(&clone)]);
    let log = |store: &Path| sandbox.json(&["--store", text(store), "log"]).exits(0).stdout;
    assert_eq!(log(&clone), log(&mirror));
    let plain = sandbox.folder().join("plain");
    git(sandbox.folder(), &["clone", "-q", text(&mirror), text(&plain)]);
    assert_eq!(log(&plain), log(&mirror));
    // A bare repository that git made is a place for a backup, too, empty or with snapshots in it.
    let bare = sandbox.folder().join("bare.git");
    git(sandbox.folder(), &["init", "-q", "--bare", text(&bare)]);
    for folder in [&clone, &bare, &bare] {
        sandbox.stvc(&["backup", text(folder)]).exits(0);
        assert_eq!(log(folder), log(&mirror));
        sandbox.stvc(&["check", text(folder)]).exits(0);
    }
}

#[test]
fn what_is_no_mirror_is_not_touched() {
    let sandbox = small();
    let folder = sandbox.folder().join("theirs");
    let refused = |folder: &Path, words: &str| {
        let before = tree(folder);
        for more in [&[][..], &["--overwrite"], &["--prune"]] {
            let answer = sandbox.stvc(&[&["backup", text(folder)], more].concat()).exits(4);
            assert!(answer.stderr.contains(words), "{}", answer.stderr);
        }
        assert!(tree(folder) == before, "{words}");
    };
    // A folder with a letter, a repository with work in it, a bare one, a library's store, a file.
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter.txt"), "Dear Mira").unwrap();
    refused(&folder, "not empty");
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "."]);
    git(&folder, &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "work"]);
    refused(&folder, "a git repository that is no backup");
    let bare = sandbox.folder().join("bare");
    git(sandbox.folder(), &["clone", "-q", "--bare", text(&folder), text(&bare)]);
    refused(&bare, "a git repository that is no backup");
    let other = small();
    refused(&other.store(), "a store of its own");
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
fn nothing_is_dropped_from_a_mirror_unless_asked() {
    let mut sandbox = small();
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
    // Undone here: it stays there. Gone on otherwise since: what was there is out of sight, and still there.
    next(&mut sandbox, 3);
    let gone = sandbox.snapshot_ids()[0].clone();
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    let answer = sandbox.json(&["backup", text(&mirror), "--no-snapshot"]).exits(0);
    let answer = answer.lines().pop().unwrap();
    assert_eq!((&answer["ahead"], &answer["moved"]), (&1.into(), &0.into()));
    next(&mut sandbox, 4);
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
fn a_mirror_with_other_snapshots_is_not_led_away_from_them() {
    let sandbox = small();
    let mirror = mirror_of(&sandbox);
    let mut other = small();
    next(&mut other, 7);
    // Another store that has chats of the same names.
    other.write(A, chat("quite another", 4, None));
    fs::remove_dir_all(other.store()).unwrap();
    other.stvc(&["snapshot"]).exits(0);
    let before = tree(&mirror.join("refs"));
    let answer = other.stvc(&["backup", text(&mirror)]).exits(4);
    assert!(answer.stderr.contains("holds snapshots that are not here"), "{}", answer.stderr);
    assert!(tree(&mirror.join("refs")) == before);
    other.stvc(&["backup", text(&mirror), "--overwrite"]).exits(0);
    let id = &sandbox.snapshot_ids()[0];
    sandbox.stvc(&["--store", text(&mirror), "show", id]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_the_mirror_as_it_was() {
    let mut sandbox = small();
    let mirror = mirror_of(&sandbox);
    let log = |sandbox: &Sandbox| sandbox.json(&["--store", text(&mirror), "log"]).exits(0).stdout;
    let before = (packs(&mirror), log(&sandbox));
    sandbox.wait(60);
    sandbox.write(A, chat("a", 400, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    for blocks in [1, 8, 16] {
        calm(limited(&sandbox, blocks, &["backup", text(&mirror)])).exits(1);
        assert_eq!((packs(&mirror), log(&sandbox)), before);
        let left = fs::read_dir(mirror.join("objects/pack")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.contains("tmp")).count(), 0);
        sandbox.stvc(&["check", text(&mirror)]).exits(0);
    }
    sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    sandbox.stvc(&["check", text(&mirror)]).exits(0);
    // None is there yet, and none is afterwards.
    let none = sandbox.folder().join("none");
    calm(limited(&sandbox, 0, &["backup", text(&none)])).exits(1);
    assert!(!none.exists());
}

#[test]
fn a_backup_that_is_killed_leaves_a_sound_mirror() {
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
        next(&mut sandbox, kill as usize + 3);
    }
    sandbox.stvc(&["backup", text(&folder)]).exits(0);
    assert_eq!(refs(&folder), refs(&sandbox.store()));
    sandbox.stvc(&["check", text(&folder)]).exits(0);
    let left = fs::read_dir(folder.join("objects/pack")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains("tmp")).count(), 0);
    sound(&sandbox);
}

#[test]
fn a_damaged_mirror_is_mended_by_the_next_backup() {
    let sandbox = small();
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
fn a_place_that_is_not_there_is_not_made_up() {
    let sandbox = small();
    let stick = sandbox.folder().join("media/stick/chats");
    let answer = sandbox.stvc(&["backup", text(&stick)]).exits(1);
    assert!(answer.stderr.contains("plugged in"), "{}", answer.stderr);
    assert!(!sandbox.folder().join("media").exists());
    for name in ["x.zip", "chats.stvc.bak", "notes.txt"] {
        let answer = sandbox.stvc(&["backup", text(&sandbox.folder().join(name))]).exits(2);
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert!(!sandbox.folder().join(name).exists());
    }
    sandbox.stvc(&["backup", &format!("{}/", text(&sandbox.folder().join("v1.2")))]).exits(0);
    sandbox.stvc(&["backup", text(&sandbox.folder().join("chats.git"))]).exits(0);
}
