//! Libraries to back up, and the backup drill.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::recap_library::RecapLibrary;
use super::{A, Sandbox, assert_same, assert_valid, chat, files, message, text};

/// Creates a library with one chat and two snapshots.
pub fn chat_with_two_snapshots() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 1, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 2));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

/// Creates a library with an ST-Auto-Recap chat, its lorebook and a fork; takes no snapshot.
pub fn recap_chat_with_fork() -> Sandbox {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    library.fork("Harbour days", 7).write(&sandbox);
    sandbox
}

/// Creates an ST-Auto-Recap chat that grows by twelve messages per snapshot.
pub fn growing_recap_chat(snapshots: usize) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    for n in 1..=snapshots {
        library.messages = 12 * n;
        library.write(&sandbox);
        sandbox.take(&[]);
        sandbox.wait(60);
    }
    sandbox
}

/// Backs up into a file and returns its path.
pub fn back_up(sandbox: &Sandbox) -> PathBuf {
    let path = sandbox.folder().join("b.stvc");
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    path
}

/// Keeps the files that a snapshot can contain.
fn keep_stored_files(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let of_ours = |path: &String| {
        let folders =
            ["chats/", "group chats/", "groups/", "worlds/", "characters/", "User Avatars/"];
        folders.iter().any(|folder| path.starts_with(folder))
    };
    files.into_iter().filter(|(path, _)| of_ours(path)).collect()
}

/// Backs up with `back_up`, deletes library and store, imports the backup, restores everything, and
/// asserts that every byte is back.
pub fn backup_drill(sandbox: &Sandbox, back_up: impl Fn(&Sandbox) -> PathBuf) {
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = keep_stored_files(sandbox.files());
    let log = sandbox.json(&["log"]).exits(0).stdout;
    let backup = back_up(sandbox);
    fs::remove_dir_all(sandbox.library()).unwrap();
    fs::create_dir(sandbox.library()).unwrap();
    let library = sandbox.library();
    let here = ["--data", text(&library)];
    let run = |arguments: &[&str]| sandbox.stvc(&[&here, arguments].concat()).exits(0);
    run(&["import", text(&backup)]);
    run(&["restore", "--all"]);
    let after = files(&sandbox.library());
    assert_same(&after, &before);
    let again = sandbox.stvc(&[&here[..], &["--json", "log"]].concat()).exits(0).stdout;
    assert_eq!(log, again);
    let known = run(&["import", text(&backup)]).stdout;
    assert!(known.starts_with("Nothing to do"), "{known}");
    assert_valid(sandbox);
}

/// Appends message `n` and takes a snapshot.
pub fn append_and_snapshot(sandbox: &mut Sandbox, n: usize) {
    sandbox.wait(60);
    sandbox.append(A, &message("a", n));
    sandbox.stvc(&["snapshot"]).exits(0);
}
