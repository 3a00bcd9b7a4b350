//! What could not be read just now is not lost: a store whose files are there and cannot be opened. Every command says so and changes nothing; taken for "it is not there", the
//! newest snapshot would be passed over, and collected by the next `gc`.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::{
    A, Answer, B, Sandbox, Stored, answer, calm, can_trace, chat, check, files_of, message,
    traced_with,
};

/// A chat with three snapshots, each in a pack of its own, and a second one; the index that has the newest of the first.
struct Stage {
    sandbox: Sandbox,
    stored: Vec<Stored>,
    newest: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(B, chat("b", 3, None));
        let mut stored = vec![Stored::take(&sandbox, B)];
        for messages in 4..6 {
            sandbox.write(A, chat("a", messages, None));
            stored.push(Stored::take(&sandbox, A));
        }
        let before = files_of(&sandbox.store().join("objects/pack"), "idx");
        sandbox.write(A, chat("a", 6, None));
        stored.push(Stored::take(&sandbox, A));
        let mut now = files_of(&sandbox.store().join("objects/pack"), "idx");
        now.retain(|index| !before.contains(index));
        sandbox.append(A, &message("a", 6));
        Self { sandbox, stored, newest: now.remove(0) }
    }

    /// The newest snapshot is still there, and the next one follows it.
    #[track_caller]
    fn goes_on(&self) {
        assert_eq!(check(&self.sandbox), (0, String::new()));
        for stored in &self.stored {
            stored.must_come_back(&self.sandbox);
        }
        let next = self.sandbox.json(&["snapshot", A]).exits(0);
        let newest = &self.stored[self.stored.len() - 1].id;
        assert_eq!(next.of_type("snapshot")[0]["parents"][0], newest.as_str());
    }
}

/// What commands would do who take the newest snapshot for lost.
const COMMANDS: &[&[&str]] = &[
    &["snapshot"],
    &["snapshot", A, "--at", "2", "--tag", "then"],
    &["status"],
    &["timelines"],
    &["log"],
    &["show", "Mira/a"],
    &["diff", "Mira/a"],
    &["restore", "Mira/a", "--dry-run"],
    &["restore", "Mira/a", "--as", "other"],
    &["reconstruct", "Mira/a", "--all"],
    &["search", "a"],
    &["stats"],
    &["forget", "--keep-last", "1"],
    &["gc", "--keep-undo", "0s", "--grace", "0s"],
    &["backup", "copy.stvc"],
    &["backup", "copy"],
    &["doctor"],
    &["check"],
];

/// Refused with the system's own word, and nothing is different afterwards.
#[track_caller]
fn refuses(stage: &Stage, arguments: &[&str], run: impl Fn(&[&str]) -> Answer) {
    let sandbox = &stage.sandbox;
    let before = (sandbox.files(), refs(&sandbox.store()));
    let answer = calm(run(arguments));
    assert_eq!(answer.code, 1, "{arguments:?}: {answer:?}");
    let name = stage.newest.file_name().unwrap().to_str().unwrap();
    assert!(answer.stderr.contains(name), "{arguments:?}: {answer:?}");
    assert!(!answer.stderr.contains("missing from the store"), "{arguments:?}: {answer:?}");
    let after = (sandbox.files(), refs(&sandbox.store()));
    assert!(before == after, "{arguments:?} changed something: {answer:?}");
}

/// Every ref and the log, as they stand on the disk.
fn refs(store: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![store.join("refs"), store.join("stvc/operations.jsonl")];
    while let Some(path) = open.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn an_index_that_cannot_be_opened_stops_every_command() {
    let stage = Stage::new();
    let away = stage.sandbox.folder().join("away");
    fs::rename(&stage.newest, &away).unwrap();
    // A link to itself: it is there, and nobody can open it, not even root.
    symlink(&stage.newest, &stage.newest).unwrap();
    for arguments in COMMANDS {
        refuses(&stage, arguments, |arguments| stage.sandbox.stvc(arguments));
    }
    fs::remove_file(&stage.newest).unwrap();
    fs::rename(&away, &stage.newest).unwrap();
    stage.goes_on();
}

/// Run the program with one call of the system's failing for one file.
fn failing(sandbox: &Sandbox, call: &str, error: &str, path: &Path, arguments: &[&str]) -> Answer {
    let inject = format!("inject={call}:error={error}");
    let path = path.to_str().unwrap();
    let traced = ["-P", path, "-e", &format!("trace={call}"), "-e", &inject];
    answer(traced_with(sandbox, &traced, arguments).output().unwrap())
}

#[test]
fn whatever_the_system_says_the_newest_snapshot_is_not_lost() {
    if !can_trace() {
        return;
    }
    for (call, error) in [
        ("openat", "EMFILE"),
        ("openat", "EIO"),
        ("openat", "EACCES"),
        ("mmap", "ENOMEM"),
        ("mmap", "EACCES"),
    ] {
        let stage = Stage::new();
        for arguments in [
            &["snapshot"][..],
            &["log"],
            &["forget", "--keep-last", "1"],
            &["gc", "--keep-undo", "0s", "--grace", "0s"],
            &["check"],
        ] {
            refuses(&stage, arguments, |arguments| {
                failing(&stage.sandbox, call, error, &stage.newest, arguments)
            });
        }
        stage.goes_on();
    }
}

#[test]
fn a_pack_that_cannot_be_opened_is_not_damaged() {
    if !can_trace() {
        return;
    }
    let stage = Stage::new();
    let pack = stage.newest.with_extension("pack");
    for arguments in [&["snapshot"][..], &["check"], &["gc", "--keep-undo", "0s"]] {
        let answer = calm(failing(&stage.sandbox, "openat", "EIO", &pack, arguments)).exits(1);
        assert!(answer.stderr.contains("Input/output error"), "{answer:?}");
        assert!(!answer.stderr.contains("damaged"), "{answer:?}");
    }
    stage.goes_on();
}

#[test]
fn a_folder_of_packs_that_cannot_be_listed_is_not_empty() {
    if !can_trace() {
        return;
    }
    let stage = Stage::new();
    let packs = stage.sandbox.store().join("objects/pack");
    for arguments in [&["snapshot"][..], &["log"], &["gc", "--keep-undo", "0s"]] {
        let answer = calm(failing(&stage.sandbox, "getdents64", "EIO", &packs, arguments)).exits(1);
        assert!(answer.stderr.contains("Input/output error"), "{answer:?}");
    }
    stage.goes_on();
}

/// A signal that comes while something is read is no reason to fail.
#[test]
fn a_read_that_was_only_interrupted_is_done_again() {
    if !can_trace() {
        return;
    }
    let stage = Stage::new();
    let sandbox = &stage.sandbox;
    let copy = sandbox.folder().join("copy.stvc");
    let copy = copy.to_str().unwrap();
    for arguments in [
        &["snapshot"][..],
        &["gc"],
        &["check"],
        &["log"],
        &["backup", copy],
        &["check", copy],
        &["import", copy],
        &["doctor"],
    ] {
        let options = [
            &["-e", "trace=read,pread64"][..],
            // Not while the program is being loaded: that is not ours.
            &["-e", "inject=read:error=EINTR:when=12+2"],
            &["-e", "inject=pread64:error=EINTR:when=6+2"],
        ];
        let mut traced = traced_with(sandbox, &options.concat(), arguments);
        let answer = calm(answer(traced.output().unwrap()));
        assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    }
}
