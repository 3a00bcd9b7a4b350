//! Links, pipes and devices in place of files and folders: a link redirects writes, a pipe blocks
//! readers, a device has no end.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{A, Answer, Sandbox, Stored, answer, assert_no_panic, chat, message};

/// A library with one snapshot, and a mirror of it.
struct Stage {
    sandbox: Sandbox,
    mirror: PathBuf,
    outside: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(A, chat("a", 5, None));
        Stored::take(&sandbox, A);
        let mirror = sandbox.folder().join("mirror");
        sandbox.stvc(&["backup", mirror.to_str().unwrap()]).exits(0);
        sandbox.append(A, &message("a", 5));
        let outside = sandbox.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        Self { sandbox, mirror, outside }
    }

    /// Replaces a file or folder of `store` by a link to its moved content.
    fn replace_by_link(&self, store: &Path, place: &str) -> PathBuf {
        let (from, to) = (store.join(place), self.outside.join(place.replace('/', "-")));
        if from.exists() {
            fs::rename(&from, &to).unwrap();
        } else {
            fs::write(&to, b"the only copy of something\n").unwrap();
        }
        symlink(&to, &from).unwrap();
        to
    }

    fn remove_link(&self, store: &Path, place: &str, there: &Path) {
        fs::remove_file(store.join(place)).unwrap();
        fs::rename(there, store.join(place)).unwrap();
    }
}

/// Reads every file below a folder, or one file.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path())),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

const PLACES: [&str; 16] = [
    "stvc",
    "stvc/lock",
    "stvc/lock.json",
    "stvc/operations.jsonl",
    "stvc/mirror",
    "stvc/format",
    "stvc/former-ids",
    "stvc/damaged",
    "objects",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/heads/chats",
    "refs/heads/chats/Mira",
    "HEAD",
    "packed-refs",
];

/// Asserts that the command names the link and changes neither the store nor the link's target.
#[track_caller]
fn refuses(stage: &Stage, store: &Path, place: &str, arguments: &[&str]) {
    let there = stage.replace_by_link(store, place);
    let before = (contents(&there), contents(store));
    let answer = assert_no_panic(stage.sandbox.stvc(arguments));
    let link = store.join(place);
    assert_eq!(answer.code, 4, "{place}: {answer:?}");
    assert!(answer.stderr.contains(link.to_str().unwrap()), "{place}: {answer:?}");
    let after = (contents(&there), contents(store));
    if link.starts_with(store.join("refs/heads/chats")) {
        // Objects may be written before a ref is refused.
        assert!(before.0 == after.0, "{place}: {answer:?}");
    } else {
        assert!(before == after, "{place}: {answer:?}");
    }
    match place {
        "stvc/former-ids" | "stvc/damaged" | "packed-refs" => {
            fs::remove_file(&link).unwrap();
            fs::remove_file(&there).unwrap();
        }
        _ => stage.remove_link(store, place, &there),
    }
}

#[test]
fn links_in_a_mirror_are_not_followed() {
    let stage = Stage::new();
    stage.sandbox.stvc(&["snapshot"]).exits(0);
    let mirror = stage.mirror.clone();
    for place in PLACES {
        refuses(&stage, &mirror, place, &["backup", mirror.to_str().unwrap()]);
    }
    stage.sandbox.stvc(&["backup", mirror.to_str().unwrap()]).exits(0);
    stage.sandbox.stvc(&["check", mirror.to_str().unwrap()]).exits(0);
}

#[test]
fn links_in_the_store_are_not_followed() {
    let stage = Stage::new();
    let store = stage.sandbox.store();
    for place in PLACES.into_iter().filter(|place| *place != "stvc/mirror") {
        refuses(&stage, &store, place, &["snapshot"]);
    }
    stage.sandbox.stvc(&["snapshot"]).exits(0);
}

#[test]
fn gc_removes_nothing_in_a_linked_folder() {
    let stage = Stage::new();
    let store = stage.sandbox.store();
    let fan = store.join("objects/ab");
    let outside = stage.outside.join("fan");
    fs::create_dir(&outside).unwrap();
    let object = outside.join("cdef0123456789abcdef0123456789abcdef01");
    fs::write(&object, b"somebody's own").unwrap();
    symlink(&outside, &fan).unwrap();
    let answer = stage.sandbox.stvc(&["gc", "--grace", "0s"]).exits(4);
    assert!(answer.stderr.contains("objects/ab"), "{answer:?}");
    assert_eq!(fs::read(&object).unwrap(), b"somebody's own");
}

/// A user may move the whole store to another disk.
#[test]
fn store_folder_may_be_a_symbolic_link() {
    let stage = Stage::new();
    let elsewhere = stage.outside.join("store");
    fs::rename(stage.sandbox.store(), &elsewhere).unwrap();
    symlink(&elsewhere, stage.sandbox.store()).unwrap();
    Stored::take(&stage.sandbox, A).assert_restores(&stage.sandbox);
    stage.sandbox.stvc(&["gc"]).exits(0);
}

/// Caches are not written through links either.
#[test]
fn caches_are_not_written_through_links() {
    let stage = Stage::new();
    let store = stage.sandbox.store();
    stage.sandbox.stvc(&["snapshot"]).exits(0);
    for name in ["cache", "cache.tmp", "lineage.json", "lineage.tmp"] {
        let place = store.join("stvc").join(name);
        let precious = stage.outside.join(name);
        fs::write(&precious, b"precious").unwrap();
        let _ = fs::remove_file(&place);
        symlink(&precious, &place).unwrap();
        assert_no_panic(stage.sandbox.stvc(&["status"]));
        assert_eq!(fs::read(&precious).unwrap(), b"precious", "{name}");
        fs::remove_file(&place).unwrap();
    }
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs the program with a time limit: waiting for a pipe ends with an exit code that stvc does not
/// have.
fn run_with_timeout(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    let mut program = sandbox.command(arguments);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    answer(child.wait_with_output().unwrap())
}

/// Creates a pipe, and then a link to an endless device.
fn with_pipe_and_device(path: &Path, mut look: impl FnMut(&str)) {
    pipe(path);
    look("it is a pipe, not a file");
    fs::remove_file(path).unwrap();
    symlink("/dev/zero", path).unwrap();
    look("it is a device, not a file");
    fs::remove_file(path).unwrap();
}

#[test]
fn named_pipe_in_the_library_does_not_hang_commands() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, Some("Harbour")));
    sandbox.write("chats/Mira/b.jsonl", chat("b", 3, None));
    // A lorebook: its chat is stored without it.
    with_pipe_and_device(&sandbox.path("worlds/Harbour.json"), |why| {
        sandbox.append(A, &message("a", 3));
        let answer = run_with_timeout(&sandbox, &["snapshot"]).exits(3);
        let output = format!("{}{}", answer.stdout, answer.stderr);
        assert!(output.contains(why) && output.contains("Harbour.json"), "{answer:?}");
        run_with_timeout(&sandbox, &["status"]);
        run_with_timeout(&sandbox, &["doctor"]);
    });
    sandbox.write("worlds/Harbour.json", b"{\"entries\":{}}");
    // Chats and groups: reported and skipped.
    for place in ["chats/Mira/c.jsonl", "group chats/g.jsonl", "groups/g.json"] {
        with_pipe_and_device(&sandbox.path(place), |why| {
            let answer = run_with_timeout(&sandbox, &["snapshot"]);
            let output = format!("{}{}", answer.stdout, answer.stderr);
            assert_ne!(answer.code, -1, "{place}");
            assert!(output.contains(why) && output.contains(place), "{place}: {answer:?}");
        });
    }
    // `doctor` reads settings and cards.
    for place in ["settings.json", "characters/Mira.png"] {
        with_pipe_and_device(&sandbox.path(place), |why| {
            let answer = run_with_timeout(&sandbox, &["doctor"]);
            let output = format!("{}{}", answer.stdout, answer.stderr);
            assert_ne!(answer.code, -1, "{place}");
            assert!(output.contains(why) && output.contains(place), "{place}: {answer:?}");
        });
        sandbox.write("settings.json", b"{}");
    }
}

#[test]
fn named_pipe_given_as_a_backup_does_not_hang_commands() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let file = sandbox.folder().join("copy.stvc");
    let name = file.to_str().unwrap().to_owned();
    with_pipe_and_device(&file, |why| {
        for arguments in [
            &["import", &name][..],
            &["check", &name],
            &["--store", &name, "log"],
            &["backup", &name],
        ] {
            let answer = run_with_timeout(&sandbox, arguments);
            assert!(![0, -1].contains(&answer.code), "{arguments:?}: {answer:?}");
            assert!(answer.stderr.contains("copy.stvc"), "{why} {arguments:?}: {answer:?}");
        }
    });
    let backup = sandbox.path("backups/chat_mira_20261115-000055.jsonl");
    with_pipe_and_device(&backup, |why| {
        let answer =
            run_with_timeout(&sandbox, &["import", sandbox.path("backups").to_str().unwrap()]);
        let output = format!("{}{}", answer.stdout, answer.stderr);
        assert!(output.contains(why), "{answer:?}");
    });
}

#[test]
fn named_pipe_in_a_mirror_does_not_hang_commands() {
    let stage = Stage::new();
    stage.sandbox.stvc(&["snapshot"]).exits(0);
    let mirror = stage.mirror.clone();
    let name = mirror.to_str().unwrap();
    let pack = fs::read_dir(mirror.join("objects/pack")).unwrap();
    let pack =
        pack.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "pack");
    let pack = pack.unwrap().strip_prefix(&mirror).unwrap().to_str().unwrap().to_owned();
    let index = pack.replace(".pack", ".idx");
    for place in [
        "stvc/format",
        "stvc/lock",
        "stvc/lock.json",
        "stvc/packed",
        "packed-refs",
        "refs/heads/chats/Mira/a",
        "objects/info/alternates",
        &pack,
        &index,
    ] {
        let path = mirror.join(place);
        let was = fs::read(&path).ok();
        pipe(&path);
        for arguments in [&["check", name][..], &["import", name], &["backup", name]] {
            let answer = run_with_timeout(&stage.sandbox, arguments);
            assert_ne!(answer.code, -1, "{place} {arguments:?}: {answer:?}");
        }
        fs::remove_file(&path).unwrap();
        if let Some(was) = was {
            fs::write(&path, was).unwrap();
        }
    }
}
