//! Unreadable is not lost: files of a store that exist and cannot be opened. Every command reports
//! that and changes nothing. Treated as missing, the latest snapshot would be skipped, and
//! collected by the next `gc`.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::{
    A, Answer, B, Sandbox, Stored, answer, assert_no_panic, can_trace, chat, check,
    files_with_extension, message, traced_with,
};

/// A chat with three snapshots, each in its own pack, and a second chat; `newest` is the index of
/// the first chat's latest snapshot.
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
        let before = files_with_extension(&sandbox.store().join("objects/pack"), "idx");
        sandbox.write(A, chat("a", 6, None));
        stored.push(Stored::take(&sandbox, A));
        let mut now = files_with_extension(&sandbox.store().join("objects/pack"), "idx");
        now.retain(|index| !before.contains(index));
        sandbox.append(A, &message("a", 6));
        Self { sandbox, stored, newest: now.remove(0) }
    }

    /// Asserts that the latest snapshot exists and that the next one follows it.
    #[track_caller]
    fn assert_valid_and_growing(&self) {
        assert_eq!(check(&self.sandbox), (0, String::new()));
        for stored in &self.stored {
            stored.assert_restores(&self.sandbox);
        }
        let next = self.sandbox.json(&["snapshot", A]).exits(0);
        let newest = &self.stored[self.stored.len() - 1].id;
        assert_eq!(next.of_type("snapshot")[0]["parents"][0], newest.as_str());
    }
}

/// Commands that would change the store if the latest snapshot counted as lost.
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

/// Asserts that the command fails with the system's error and changes nothing.
#[track_caller]
fn refuses(stage: &Stage, arguments: &[&str], run: impl Fn(&[&str]) -> Answer) {
    let sandbox = &stage.sandbox;
    let before = (sandbox.files(), refs(&sandbox.store()));
    let answer = assert_no_panic(run(arguments));
    assert_eq!(answer.code, 1, "{arguments:?}: {answer:?}");
    let name = stage.newest.file_name().unwrap().to_str().unwrap();
    assert!(answer.stderr.contains(name), "{arguments:?}: {answer:?}");
    assert!(!answer.stderr.contains("missing from the store"), "{arguments:?}: {answer:?}");
    let after = (sandbox.files(), refs(&sandbox.store()));
    assert!(before == after, "{arguments:?} changed something: {answer:?}");
}

/// Reads every ref and the log.
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
fn unreadable_index_stops_every_command() {
    let stage = Stage::new();
    let away = stage.sandbox.folder().join("away");
    fs::rename(&stage.newest, &away).unwrap();
    // A link to itself: not even root can open it.
    symlink(&stage.newest, &stage.newest).unwrap();
    for arguments in COMMANDS {
        refuses(&stage, arguments, |arguments| stage.sandbox.stvc(arguments));
    }
    fs::remove_file(&stage.newest).unwrap();
    fs::rename(&away, &stage.newest).unwrap();
    stage.assert_valid_and_growing();
}

/// Runs the program with one system call failing for one file.
fn failing(sandbox: &Sandbox, call: &str, error: &str, path: &Path, arguments: &[&str]) -> Answer {
    let inject = format!("inject={call}:error={error}");
    let path = path.to_str().unwrap();
    let traced = ["-P", path, "-e", &format!("trace={call}"), "-e", &inject];
    answer(traced_with(sandbox, &traced, arguments).output().unwrap())
}

#[test]
fn read_errors_never_lose_the_latest_snapshot() {
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
        stage.assert_valid_and_growing();
    }
}

#[test]
fn unreadable_pack_is_not_reported_as_damaged() {
    if !can_trace() {
        return;
    }
    let stage = Stage::new();
    let pack = stage.newest.with_extension("pack");
    for arguments in [&["snapshot"][..], &["check"], &["gc", "--keep-undo", "0s"]] {
        let answer =
            assert_no_panic(failing(&stage.sandbox, "openat", "EIO", &pack, arguments)).exits(1);
        assert!(answer.stderr.contains("Input/output error"), "{answer:?}");
        assert!(!answer.stderr.contains("damaged"), "{answer:?}");
    }
    stage.assert_valid_and_growing();
}

#[test]
fn unreadable_pack_folder_is_not_treated_as_empty() {
    if !can_trace() {
        return;
    }
    let stage = Stage::new();
    let packs = stage.sandbox.store().join("objects/pack");
    for arguments in [&["snapshot"][..], &["log"], &["gc", "--keep-undo", "0s"]] {
        let answer =
            assert_no_panic(failing(&stage.sandbox, "getdents64", "EIO", &packs, arguments))
                .exits(1);
        assert!(answer.stderr.contains("Input/output error"), "{answer:?}");
    }
    stage.assert_valid_and_growing();
}

/// A signal during a read is not an error.
#[test]
fn interrupted_read_is_retried() {
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
            // Not while the program is loaded by the system.
            &["-e", "inject=read:error=EINTR:when=12+2"],
            &["-e", "inject=pread64:error=EINTR:when=6+2"],
        ];
        let mut traced = traced_with(sandbox, &options.concat(), arguments);
        let answer = assert_no_panic(answer(traced.output().unwrap()));
        assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    }
}

/// Creates a chat in a folder that becomes unreadable, and one beside it.
fn with_folder() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 4, Some("Lore")));
    sandbox.write("chats/Voss/b.jsonl", chat("b", 3, None));
    sandbox.write("worlds/Lore.json", "{\"entries\": {}}");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox
}

/// Replaces a folder of the library by a link that not even root can follow.
fn make_unreadable(sandbox: &Sandbox, folder: &str, target: &Path) -> PathBuf {
    let away = sandbox.folder().join("away");
    fs::rename(sandbox.path(folder), &away).unwrap();
    symlink(target, sandbox.path(folder)).unwrap();
    away
}

/// Asserts that every command reports the chat in the unreadable folder `chats/Mira`, or `chats`.
#[track_caller]
fn assert_reported_unreadable(sandbox: &Sandbox, folder: &str, run: impl Fn(&[&str]) -> Answer) {
    for command in ["status", "timelines"] {
        let answer = run(&["--json", command]).exits(3);
        let of_mira = |line: &serde_json::Value| line["timeline"] == "chats/Mira/a";
        let line = answer.of_type("timeline").into_iter().find(of_mira).unwrap();
        assert_eq!(line["state"], "unreadable", "{command}: {answer:?}");
        assert_eq!(answer.of_type("summary")[0]["deleted"], 0, "{command}: {answer:?}");
        is_found(&answer, folder);
    }
    let taken = run(&["--json", "snapshot"]).exits(3);
    is_found(&taken, folder);
    assert_eq!(taken.of_type("summary")[0]["deleted"], 0, "{taken:?}");
    is_found(&run(&["--json", "doctor"]).exits(1), folder);
    for command in [&["log"][..], &["search", "a 1"]] {
        let answer = run(command).exits(0);
        assert!(!answer.stdout.contains("deleted"), "{command:?}: {answer:?}");
    }
    let remote = sandbox.folder().join("remote");
    let synced = run(&["--json", "sync", remote.to_str().unwrap()]).exits(3);
    is_found(&synced, folder);
    let kinds = run(&["--json", "log"]).exits(0).of_type("snapshot");
    assert!(kinds.iter().all(|line| line["kind"] != "deleted"), "{kinds:?}");
}

#[track_caller]
fn is_found(answer: &Answer, folder: &str) {
    let found = answer.of_type("finding");
    let is_it = |line: &&serde_json::Value| line["code"] == "unreadable";
    let subjects: Vec<_> = found.iter().filter(is_it).map(|line| &line["subject"]).collect();
    assert_eq!(subjects, [folder], "{answer:?}");
}

#[test]
fn chats_in_an_unreadable_folder_are_reported_as_unreadable_not_deleted() {
    for folder in ["chats/Mira", "chats"] {
        for target in [folder, "no/such/drive"] {
            let sandbox = with_folder();
            let away = make_unreadable(&sandbox, folder, &sandbox.path(target));
            assert_reported_unreadable(&sandbox, folder, |arguments| sandbox.stvc(arguments));
            fs::remove_file(sandbox.path(folder)).unwrap();
            fs::rename(away, sandbox.path(folder)).unwrap();
            let after = sandbox.json(&["status"]).exits(0);
            assert_eq!(after.of_type("summary")[0]["unchanged"], 3, "{after:?}");
        }
    }
}

#[test]
fn chats_in_a_folder_with_io_errors_are_not_reported_as_deleted() {
    if !can_trace() {
        return;
    }
    for (call, error) in [("openat", "EACCES"), ("openat", "EIO"), ("getdents64", "EIO")] {
        let sandbox = with_folder();
        let folder = sandbox.path("chats/Mira");
        assert_reported_unreadable(&sandbox, "chats/Mira", |arguments| {
            failing(&sandbox, call, error, &folder, arguments)
        });
    }
}

#[test]
fn copy_of_a_chat_in_an_unreadable_folder_is_not_a_rename() {
    let sandbox = with_folder();
    sandbox.write("chats/Voss/copy.jsonl", sandbox.read("chats/Mira/a.jsonl"));
    sandbox.write("worlds/Lore copy.json", sandbox.read("worlds/Lore.json"));
    let nowhere = sandbox.path("nowhere");
    make_unreadable(&sandbox, "chats/Mira", &nowhere);
    sandbox.stvc(&["snapshot"]).exits(3);
    let lines = sandbox.json(&["timelines"]).exits(3).of_type("timeline");
    let of = |name: &str| lines.iter().find(|line| line["timeline"] == name).unwrap();
    assert_eq!(of("chats/Voss/copy")["renamed_from"], serde_json::Value::Null);
    assert_eq!(of("chats/Mira/a")["snapshots"], 1);
}

/// Returns the state of each timeline in `status`.
fn states(sandbox: &Sandbox, code: i32) -> Vec<(String, String)> {
    let lines = sandbox.json(&["status"]).exits(code).of_type("timeline");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    lines.iter().map(|line| (text(&line["timeline"]), text(&line["state"]))).collect()
}

#[track_caller]
fn has_state(sandbox: &Sandbox, code: i32, name: &str, state: &str) {
    let states = states(sandbox, code);
    assert!(states.contains(&(name.into(), state.into())), "{states:?}");
}

/// Makes the lorebook of `with_folder`, or its folder, unreadable even for root. Returns the
/// reverse.
fn hide_lorebook(sandbox: &Sandbox, how: &str) -> impl Fn() + use<> {
    let (path, away) = (sandbox.path("worlds/Lore.json"), sandbox.folder().join("away"));
    let worlds = sandbox.path("worlds");
    match how {
        "a folder" => {
            fs::rename(&path, &away).unwrap();
            fs::create_dir(&path).unwrap();
        }
        "a link to itself" => {
            fs::rename(&path, &away).unwrap();
            symlink(&path, &path).unwrap();
        }
        target => {
            fs::rename(&worlds, &away).unwrap();
            symlink(sandbox.path(target), &worlds).unwrap();
        }
    }
    let is_folder = how == "a folder";
    let is_file = is_folder || how == "a link to itself";
    move || {
        let hidden = if is_file { &path } else { &worlds };
        match is_folder {
            true => fs::remove_dir(hidden).unwrap(),
            false => fs::remove_file(hidden).unwrap(),
        }
        fs::rename(&away, hidden).unwrap();
    }
}

#[test]
fn chat_with_unreadable_lorebook_is_stored() {
    for how in ["a folder", "a link to itself", "worlds", "no/such/drive"] {
        let mut sandbox = with_folder();
        let code = 3;
        let book = sandbox.read("worlds/Lore.json");
        let give_back = hide_lorebook(&sandbox, how);
        // Without a change nothing is stored.
        let answer = sandbox.json(&["snapshot"]).exits(code);
        assert_eq!(answer.of_type("summary")[0]["taken"], 0, "{how}: {answer:?}");
        sandbox.append("chats/Mira/a.jsonl", &message("a", 4));
        sandbox.write("chats/Mira/new.jsonl", chat("new", 2, Some("Lore")));
        has_state(&sandbox, code, "chats/Mira/a", "changed");
        let answer = sandbox.json(&["snapshot"]).exits(3);
        assert_eq!(answer.of_type("summary")[0]["taken"], 2, "{how}: {answer:?}");
        let found = answer.of_type("finding");
        let unread: Vec<_> =
            found.iter().filter(|line| line["code"] == "lorebook-unread").collect();
        assert_eq!(unread.len(), 2, "{how}: {answer:?}");
        assert!(found.iter().all(|line| line["code"] != "lorebook-missing"), "{found:?}");
        let found = sandbox.json(&["doctor"]).exits(1).of_type("finding");
        assert!(found.iter().all(|line| line["code"] != "lorebook-missing"), "{found:?}");
        let again = sandbox.json(&["snapshot"]).exits(code);
        assert_eq!(again.of_type("summary")[0]["taken"], 0, "{how}: {again:?}");
        // The latest moment is the current chat with the last stored lorebook.
        let then = sandbox.folder().join(format!("then {}", how.replace('/', " ")));
        sandbox.stvc(&["restore", "chats/Mira/a", "--to", then.to_str().unwrap()]).exits(0);
        let chat = sandbox.read("chats/Mira/a.jsonl");
        assert_eq!(fs::read(then.join("chats/Mira/a.jsonl")).unwrap(), chat);
        assert_eq!(fs::read(then.join("worlds/Lore.json")).unwrap(), book, "{how}");
        // Once it is readable, the next snapshot has both.
        sandbox.wait(60);
        give_back();
        has_state(&sandbox, 0, "chats/Mira/a", "changed");
        let whole = sandbox.json(&["snapshot"]).exits(0);
        assert_eq!(whole.of_type("summary")[0]["taken"], 2, "{how}: {whole:?}");
        let log = sandbox.json(&["log", "chats/Mira/a", "-n", "1"]).exits(0).of_type("snapshot");
        assert_eq!(log[0]["lorebook"], "Lore", "{how}: {log:?}");
        assert_eq!(sandbox.json(&["snapshot"]).exits(0).of_type("summary")[0]["taken"], 0);
        assert_eq!(check(&sandbox), (0, String::new()));
    }
}

#[test]
fn strict_checkpoint_needs_a_readable_lorebook() {
    let sandbox = with_folder();
    let _ = hide_lorebook(&sandbox, "a folder");
    sandbox.append("chats/Mira/a.jsonl", &message("a", 4));
    let refused = sandbox.json(&["snapshot", "chats/Mira/a", "--strict"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stdout.contains("lorebook-unread"), "{refused:?}");
    let log = sandbox.json(&["log", "chats/Mira/a"]).exits(0).of_type("snapshot");
    assert_eq!(log.len(), 1, "{refused:?}");
}

#[test]
fn command_that_doctor_suggests_for_an_unreadable_lorebook_works() {
    for how in ["a folder", "a link to itself", "worlds"] {
        for messages in [0, 1] {
            let sandbox = with_folder();
            let _ = hide_lorebook(&sandbox, how);
            if messages > 0 {
                sandbox.append("chats/Mira/a.jsonl", &message("a", 4));
                let taken = sandbox.json(&["snapshot"]).of_type("summary");
                assert_eq!(taken[0]["taken"], 1, "{taken:?}");
            }
            // Twice: the suggested name must be free.
            for _ in 0..2 {
                let found = sandbox.json(&["doctor"]).exits(1).of_type("finding");
                let is_it = |line: &&serde_json::Value| {
                    line["subject"] == "chats/Mira/a" && line["code"] == "unreadable"
                };
                let found = found.iter().find(is_it).unwrap();
                let remedy = found["remedy"].as_str().unwrap();
                let command = remedy.split('`').nth(1).unwrap();
                let words: Vec<_> = command.split('"').collect();
                match words[..] {
                    ["stvc restore ", name, " --as ", new, ""] => {
                        sandbox.stvc(&["restore", name, "--as", new]).exits(0);
                    }
                    ["stvc restore ", name, " --to FOLDER"] => {
                        let folder = tempfile::tempdir().unwrap().path().join("restored");
                        let folder = folder.to_str().unwrap();
                        sandbox.stvc(&["restore", name, "--to", folder]).exits(0);
                    }
                    _ => panic!("{command}"),
                }
            }
        }
    }
}

#[test]
fn restore_all_does_not_suggest_the_same_command() {
    let sandbox = with_folder();
    let _ = hide_lorebook(&sandbox, "a folder");
    let answer = sandbox.stvc(&["restore", "--all", "--overwrite"]).exits(3);
    let words = format!("{}{}", answer.stdout, answer.stderr);
    assert!(!words.contains("`stvc restore --all --overwrite`"), "{words}");
    assert!(words.contains("not restored"), "{words}");
}

#[test]
fn unwritable_file_is_not_reported_as_missing_library() {
    if !can_trace() {
        return;
    }
    for error in ["EROFS", "EACCES"] {
        let sandbox = with_folder();
        fs::remove_file(sandbox.path("chats/Mira/a.jsonl")).unwrap();
        let folder = sandbox.path("chats/Mira");
        for call in ["openat", "renameat", "linkat"] {
            let answer = failing(&sandbox, call, error, &folder, &["restore", "chats/Mira/a"]);
            let words = format!("{}{}", answer.stdout, answer.stderr);
            assert!(!words.contains("SillyTavern folder"), "{call} {error}: {words}");
        }
    }
}

#[test]
fn group_chat_with_header_is_stored_without_its_unreadable_group() {
    let sandbox = Sandbox::empty();
    sandbox.write("groups/1.json", r#"{"id":"1","chats":["g","old"],"chat_id":"g"}"#);
    sandbox.write("group chats/g.jsonl", chat("g", 3, None));
    // SillyTavern 1.12 stores the metadata of such a chat in the group's file.
    sandbox.write("group chats/old.jsonl", message("old", 0));
    sandbox.stvc(&["snapshot"]).exits(0);
    let path = sandbox.path("groups/1.json");
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    sandbox.append("group chats/g.jsonl", &message("g", 3));
    sandbox.append("group chats/old.jsonl", &message("old", 1));
    let answer = sandbox.json(&["snapshot"]).exits(3);
    let taken: Vec<_> = answer
        .of_type("snapshot")
        .iter()
        .filter(|line| line["unchanged"] == false)
        .map(|line| line["timeline"].clone())
        .collect();
    assert_eq!(taken, ["group chats/g"], "{answer:?}");
}

#[test]
fn sync_skips_a_chat_with_unreadable_lorebook() {
    let one = with_folder();
    let folder = one.folder().join("shared");
    let remote = folder.to_str().unwrap();
    one.stvc(&["sync", remote]).exits(0);
    let mut two = Sandbox::empty();
    two.stvc(&["sync", remote]).exits(0);
    one.append("chats/Mira/a.jsonl", &message("one", 4));
    one.stvc(&["sync", remote]).exits(0);
    let before = two.read("chats/Mira/a.jsonl");
    let give_back = hide_lorebook(&two, "a link to itself");
    two.wait(60);
    let left = two.json(&["sync", remote]).exits(3).of_type("synced");
    let left = left.iter().find(|line| line["timeline"] == "chats/Mira/a").unwrap();
    assert_eq!(left["outcome"], "skipped", "{left}");
    assert_eq!(two.read("chats/Mira/a.jsonl"), before);
    give_back();
    two.wait(60);
    two.stvc(&["sync", remote]).exits(0);
    assert_eq!(two.read("chats/Mira/a.jsonl"), one.read("chats/Mira/a.jsonl"));
}

#[test]
fn sync_and_backup_report_a_chat_stored_without_its_lorebook() {
    let sandbox = with_folder();
    sandbox.stvc(&["snapshot"]).exits(0);
    let folder = sandbox.folder().join("shared");
    let _give_back = hide_lorebook(&sandbox, "a link to itself");
    let reports = |command: &[&str], code| {
        sandbox.append("chats/Mira/a.jsonl", &message("more", 9));
        let lines = sandbox.json(command).exits(code).lines();
        assert!(lines.iter().any(|line| line["code"] == "lorebook-unread"), "{lines:?}");
    };
    reports(&["backup", folder.to_str().unwrap()], 3);
    reports(&["sync", folder.to_str().unwrap()], 3);
}

#[test]
fn folder_in_the_place_of_a_chat_is_not_a_deletion() {
    let sandbox = with_folder();
    let chat = sandbox.path("chats/Mira/a.jsonl");
    fs::remove_file(&chat).unwrap();
    fs::create_dir(&chat).unwrap();
    has_state(&sandbox, 3, "chats/Mira/a", "unreadable");
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(1);
    assert!(sandbox.path("worlds/Lore.json").exists());
}
