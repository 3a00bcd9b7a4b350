//! The written file: complete or absent, and private.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::common::backups::{back_up, chat_with_two_snapshots, growing_recap_chat};
use crate::common::forged_backup::decode;
use crate::common::{
    A, Sandbox, assert_no_panic, assert_valid, chat, files, git, message, run_with_file_limit,
    text, tree,
};

#[test]
#[cfg(unix)]
fn backup_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(back_up(&chat_with_two_snapshots())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn backup_of_some_timelines_has_their_tags_only() {
    let sandbox = Sandbox::empty();
    for name in ["a", "b"] {
        sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, None));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "of a", "Mira/a"]).exits(0);
    sandbox.stvc(&["tag", "of b", "Mira/b"]).exits(0);
    let path = sandbox.folder().join("some.stvc");
    sandbox.stvc(&["backup", text(&path), "Mira/a"]).exits(0);
    let log = sandbox.json(&["--store", text(&path), "log"]).exits(0).of_type("snapshot");
    assert_eq!(log.len(), 1);
    assert_eq!((&log[0]["timeline"], &log[0]["tags"]), (&"chats/Mira/a".into(), &json!(["of a"])));
}

#[test]
fn backup_to_standard_output_prints_its_messages_to_stderr() {
    let sandbox = chat_with_two_snapshots();
    let output = sandbox.command(&["backup", "-"]).output().unwrap();
    assert!(output.status.success());
    decode(&output.stdout).unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("Not verified: run `stvc check FILE` on the result"), "{words}");
    sandbox.json(&["backup", "-"]).exits(2);
}

#[test]
fn backup_file_is_not_replaced_if_snapshots_would_be_lost() {
    let mut sandbox = chat_with_two_snapshots();
    let path = back_up(&sandbox);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 3));
    sandbox.stvc(&["snapshot"]).exits(0);
    back_up(&sandbox);
    let newer = fs::read(&path).unwrap();
    // A lost store that was recreated.
    fs::remove_dir_all(sandbox.store()).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["backup", text(&path)]).exits(4);
    assert!(
        answer.stderr.contains("has snapshots that the new one would not have"),
        "{}",
        answer.stderr
    );
    assert_eq!(fs::read(&path).unwrap(), newer);
    sandbox.stvc(&["backup", text(&path), "--overwrite"]).exits(0);
    assert_ne!(fs::read(&path).unwrap(), newer);
    let other = sandbox.folder().join("letter.stvc");
    fs::write(&other, "Dear Mira").unwrap();
    for more in [&[][..], &["--overwrite"]] {
        sandbox.stvc(&[&["backup", text(&other)], more].concat()).exits(4);
    }
    assert_eq!(fs::read(&other).unwrap(), b"Dear Mira");
}

#[test]
fn backup_leaves_an_up_to_date_file_alone() {
    let mut sandbox = chat_with_two_snapshots();
    let path = back_up(&sandbox);
    let written = fs::read(&path).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    sandbox.wait(60);
    let answer = sandbox.stvc(&["backup", text(&path)]).exits(0);
    assert!(answer.stdout.starts_with("Nothing to do: "), "{answer:?}");
    let summary = sandbox.json(&["backup", text(&path)]).exits(0).of_type("summary").remove(0);
    assert_eq!((&summary["up_to_date"], &summary["snapshots"]), (&true.into(), &2.into()));
    assert!(fs::read(&path).unwrap() == written);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
    // The time of the last backup is the time at which it was verified.
    let last = sandbox.json(&["backup", "--last"]).exits(0).of_type("copy").remove(0);
    assert!(!String::from_utf8_lossy(&written).contains(last["taken"].as_str().unwrap()));
    // A change of any kind, or damage, is a reason to write the file.
    let write = |arguments: &[&str]| {
        let before = fs::read(&path).unwrap();
        let command = [&["backup", text(&path)], arguments].concat();
        let summary = sandbox.json(&command).exits(0).of_type("summary").remove(0);
        assert_eq!(summary["up_to_date"], false, "{arguments:?}");
        let is_forced = !arguments.is_empty();
        assert!(is_forced || fs::read(&path).unwrap() != before, "{arguments:?}");
        sandbox.stvc(&["check", text(&path)]).exits(0);
    };
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    write(&[]);
    let mut damaged = fs::read(&path).unwrap();
    let at = damaged.len() - 40;
    damaged[at] ^= 1;
    fs::write(&path, &damaged).unwrap();
    write(&[]);
    write(&["--overwrite"]);
    // After `gc`, the objects are in another order.
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let summary = sandbox.json(&["backup", text(&path)]).exits(0).of_type("summary").remove(0);
    assert_eq!(summary["up_to_date"], true);
}

#[test]
fn backup_on_the_same_disk_is_reported_once() {
    let sandbox = chat_with_two_snapshots();
    let found = |place: &Path| {
        let answer = sandbox.json(&["backup", text(place)]).exits(0);
        let mut found = answer.of_type("finding");
        found.retain(|finding| finding["code"] == "backup-same-disk");
        found.into_iter().map(|it| it["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for place in ["b.stvc", "mirror"] {
        let place = sandbox.folder().join(place);
        let [message] = found(&place).try_into().unwrap();
        assert!(message.contains("the same disk as the store"), "{message}");
        assert_eq!(found(&place), [""; 0]);
    }
    for place in ["backups/b.stvc", "mirror"] {
        fs::create_dir_all(sandbox.path("backups")).unwrap();
        let [message] = found(&sandbox.path(place)).try_into().unwrap();
        assert!(message.contains("inside SillyTavern's data folder"), "{message}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        let folders = ["/dev/shm", env!("CARGO_TARGET_TMPDIR")];
        let folders = folders.into_iter().filter_map(|it| tempfile::tempdir_in(it).ok());
        for other in folders.filter(|it| device(it.path()) != device(sandbox.folder())) {
            assert_eq!(found(&other.path().join("b.stvc")), [""; 0]);
        }
    }
}

/// Creates three snapshots of two chats, and a backup of all.
fn backed_up() -> (Sandbox, PathBuf) {
    let mut sandbox = Sandbox::empty();
    for messages in 3..6 {
        sandbox.write(A, chat("a", messages, None));
        sandbox.write("chats/Mira/b.jsonl", chat("b", messages, None));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    let path = back_up(&sandbox);
    (sandbox, path)
}

/// Commands that remove snapshots on purpose: `forget`, `erase`, `undo`; the log may have expired.
const REMOVALS: [&[&[&str]]; 5] = [
    &[&["forget", "--keep-last", "1"]],
    &[&["forget", "--keep-last", "1"], &["gc", "--keep-undo", "0s", "--grace", "0s"]],
    &[&["undo"]],
    &[&["undo"], &["gc", "--keep-undo", "0s", "--grace", "0s"]],
    &[&["erase", "Mira/b", "--yes"]],
];

#[test]
fn backup_works_after_snapshots_were_removed_on_purpose() {
    for removal in REMOVALS {
        let (mut sandbox, path) = backed_up();
        let folder = sandbox.folder().join("mirror");
        sandbox.stvc(&["backup", text(&folder)]).exits(0);
        fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
        sandbox.stvc(&["backup", text(&path)]).exits(0);
        for command in removal {
            sandbox.stvc(command).exits(0);
        }
        sandbox.wait(60);
        sandbox.append(A, &message("a", 9));
        let answer = sandbox.json(&["backup", text(&path)]).exits(0);
        let found = answer.of_type("finding");
        assert!(
            found.iter().any(|found| found["code"] == "removed-here"),
            "{removal:?}: {found:?}"
        );
        sandbox.stvc(&["check", text(&path)]).exits(0);
        sandbox.stvc(&["backup", text(&folder)]).exits(0);
        sandbox.stvc(&["check", text(&folder)]).exits(0);
        // Reported once.
        let again = sandbox.json(&["backup", text(&path)]).exits(0).of_type("finding");
        assert!(!again.iter().any(|found| found["code"] == "removed-here"), "{again:?}");
    }
}

/// The branch disappeared without a command: the backup may be the only copy.
#[test]
fn backup_does_not_replace_a_file_after_a_branch_was_lost() {
    for removal in [&[][..], &[&["forget", "--keep-last", "1"][..]]] {
        let (sandbox, path) = backed_up();
        for command in removal {
            sandbox.stvc(command).exits(0);
        }
        let before = fs::read(&path).unwrap();
        fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
        let branch = sandbox.store().join("refs/heads/chats/Mira/b");
        fs::remove_file(branch).unwrap();
        let answer = sandbox.stvc(&["backup", text(&path), "--no-snapshot"]).exits(4);
        assert!(
            answer.stderr.contains("has snapshots that the new one would not have"),
            "{}",
            answer.stderr
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn backup_of_one_chat_does_not_replace_full_backup_after_forget() {
    for removal in REMOVALS {
        let (sandbox, path) = backed_up();
        fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
        for command in removal {
            sandbox.stvc(command).exits(0);
        }
        // `erase` removes the timeline, so nothing is missing from the backup.
        let expected = if removal[0][0] == "erase" { 0 } else { 4 };
        sandbox.stvc(&["backup", text(&path), "Mira/a", "--no-snapshot"]).exits(expected);
    }
}

fn leftovers(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("tmp") || name.contains("incoming")).collect()
}

#[test]
#[cfg(unix)]
fn backup_on_full_disk_leaves_no_file() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 400, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let path = sandbox.folder().join("b.stvc");
    let answer =
        assert_no_panic(run_with_file_limit(&sandbox, 8, &["backup", text(&path)])).exits(1);
    assert!(answer.stderr.contains("b.stvc"), "{}", answer.stderr);
    assert!(!path.exists());
    assert_eq!(leftovers(sandbox.folder()), [""; 0]);
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    let other = chat_with_two_snapshots();
    let before = tree(other.folder());
    assert_no_panic(run_with_file_limit(&other, 8, &["import", text(&path)])).exits(1);
    assert!(tree(other.folder()) == before);
    other.stvc(&["import", text(&path)]).exits(0);
}

#[test]
fn killed_backup_leaves_no_partial_file() {
    let sandbox = Sandbox::empty();
    for n in 0..6 {
        sandbox.write(&format!("chats/Mira/{n}.jsonl"), chat(&format!("chat {n}"), 200, None));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let path = sandbox.folder().join("b.stvc");
    let begin = Instant::now();
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    let whole = begin.elapsed();
    for kill in 0..12_u32 {
        let _ = fs::remove_file(&path);
        let mut command = sandbox.command(&["backup", text(&path)]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep((whole * kill / 12).min(Duration::from_secs(5)));
        child.kill().unwrap();
        child.wait().unwrap();
        if path.exists() {
            decode(&fs::read(&path).unwrap()).unwrap();
        }
    }
    sandbox.stvc(&["backup", text(&path), "--overwrite"]).exits(0);
    assert_valid(&sandbox);
}

#[test]
fn status_reports_that_the_last_backup_is_old() {
    let mut sandbox = chat_with_two_snapshots();
    let none = sandbox.stvc(&["backup", "--last"]).exits(0);
    assert!(none.stdout.contains("There are no backups yet"), "{}", none.stdout);
    let path = back_up(&sandbox);
    sandbox.wait(20 * 86_400);
    let notes = |sandbox: &Sandbox| {
        let findings = sandbox.json(&["status"]).exits(0).of_type("finding");
        findings.into_iter().filter(|line| line["code"] == "backup-old").count()
    };
    assert_eq!(notes(&sandbox), 0, "nothing came since");
    sandbox.append(A, &message("a", 3));
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(notes(&sandbox), 1);
    let last = sandbox.json(&["backup", "--last", text(&path)]).exits(0).of_type("copy").remove(0);
    assert_eq!((&last["snapshots_since"], &last["timelines_since"]), (&1.into(), &1.into()));
    assert_eq!((&last["kind"], &last["complete"]), (&"file".into(), &true.into()));
    assert!(sandbox.json(&["backup", "--last", "x.stvc"]).exits(0).of_type("copy").is_empty());
    back_up(&sandbox);
    assert_eq!(notes(&sandbox), 0);
}

#[test]
fn backup_is_smaller_than_store_after_gc() {
    let sandbox = growing_recap_chat(10);
    let backup = fs::metadata(back_up(&sandbox)).unwrap().len();
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let pack = files(&sandbox.store().join("objects"));
    let store: usize = pack.values().map(Vec::len).sum();
    let ratio = backup as f64 / store as f64;
    println!("{backup} bytes for {store} in the store: {ratio:.2}");
    assert!(ratio < 0.8, "{ratio}");
    git(&sandbox.store(), &["fsck", "--strict"]);
}
