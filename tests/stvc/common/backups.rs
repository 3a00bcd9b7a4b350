//! Backups, taken and brought back.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::recap_library::RecapLibrary;
use super::{A, Sandbox, assert_same, chat, files, message, sound, text};

/// One chat with two snapshots.
pub fn small() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 1, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 2));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

/// A chat of ST-Auto-Recap's with its lorebook, and a fork of it; nothing stored yet.
pub fn forked() -> Sandbox {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    library.fork("Harbour days", 7).write(&sandbox);
    sandbox
}

/// A chat of ST-Auto-Recap's that grew by twelve messages from snapshot to snapshot.
pub fn grown(snapshots: usize) -> Sandbox {
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

/// Back up into a file; its path.
pub fn back_up(sandbox: &Sandbox) -> PathBuf {
    let path = sandbox.folder().join("b.stvc");
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    path
}

/// The files that a store knows of.
fn stored(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let of_ours = |path: &String| {
        let folders =
            ["chats/", "group chats/", "groups/", "worlds/", "characters/", "User Avatars/"];
        folders.iter().any(|folder| path.starts_with(folder))
    };
    files.into_iter().filter(|(path, _)| of_ours(path)).collect()
}

/// Back up in this way, lose the library and the store, take the backup in, restore: every byte is there again.
pub fn drill_with(sandbox: &Sandbox, back_up: impl Fn(&Sandbox) -> PathBuf) {
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = stored(sandbox.files());
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
    sound(sandbox);
}

/// One message more, and a snapshot of it.
pub fn next(sandbox: &mut Sandbox, n: usize) {
    sandbox.wait(60);
    sandbox.append(A, &message("a", n));
    sandbox.stvc(&["snapshot"]).exits(0);
}
