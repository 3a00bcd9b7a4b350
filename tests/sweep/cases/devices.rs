//! Two devices that sync through a folder, a server or a remote on plain storage.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::store::pack_refs;
use super::{CaseEntry, REMOTE, SERVER, SHARED, Scene};
use crate::stage::Stage;
use crate::world::{
    A, B, BOOK, CARD, GULL, MAP, PIER, PIER_EDITED, add_card_and_picture, book, chat,
    empty_library, message, small_library, text_of, write_for_a_day,
};

pub const CASES: &[CaseEntry] = &[
    ("sync", "sync-folder-first", |stage| {
        small_library(stage, "one");
        empty_library(stage, "two");
        Scene { words: vec![text_of("a", 3), text_of("c", 3)], ..sync_scene(SHARED) }
    }),
    ("sync", "sync-folder-join", |stage| {
        small_library(stage, "two");
        stage.stvc("two", &["sync", SHARED]).exits(0);
        empty_library(stage, "one");
        let contents = chats_and_lorebooks(stage, "two");
        Scene { contents, ..sync_scene(SHARED) }
    }),
    ("sync", "sync-folder-receive", |stage| receive(stage, SHARED)),
    ("sync", "sync-folder-send", |stage| send(stage, SHARED)),
    ("sync", "sync-folder-both", |stage| diverged(stage, SHARED)),
    ("sync", "sync-folder-book-conflict", |stage| conflict(stage, SHARED)),
    ("sync", "sync-folder-renamed", |stage| renamed(stage, SHARED)),
    ("sync", "sync-folder-erased", |stage| erased(stage, SHARED)),
    ("sync", "sync-folder-belongings", |stage| {
        synced_pair(stage, SHARED);
        add_card_and_picture(stage, "two");
        stage.stvc("two", &["sync", SHARED]).exits(0);
        let mut contents = chats_and_lorebooks(stage, "two");
        contents.extend([CARD, MAP].map(|path| (path.to_owned(), stage.read("two", path))));
        Scene { contents, ..sync_scene(SHARED) }
    }),
    ("sync", "sync-remote-receive", |stage| receive(stage, REMOTE)),
    ("sync", "sync-remote-send", |stage| send(stage, REMOTE)),
    ("sync", "sync-remote-both", |stage| diverged(stage, REMOTE)),
    ("sync", "sync-remote-erased", |stage| erased(stage, REMOTE)),
    ("sync", "sync-git-receive", |stage| {
        create_server(stage, &["one", "two"]);
        receive(stage, SERVER)
    }),
    ("sync", "sync-git-send", |stage| {
        create_server(stage, &["one", "two"]);
        send(stage, SERVER)
    }),
    ("sync", "sync-git-erased", |stage| {
        create_server(stage, &["one", "two"]);
        erased(stage, SERVER)
    }),
    ("undo", "undo-sync", |stage| {
        let scene = receive(stage, SHARED);
        stage.stvc("one", &["sync", SHARED]).exits(0);
        Scene {
            contents: scene.contents,
            remote: scene.remote,
            ..Scene::new(&["undo"]).not_repeatable()
        }
    }),
];

fn sync_scene(remote: &'static str) -> Scene {
    let backups = match remote {
        SERVER => vec!["server.git"],
        REMOTE => Vec::new(),
        _ => vec!["shared"],
    };
    Scene { remote: Some(remote), backups, ..Scene::new(&["sync", remote]) }
}

/// Creates two devices with equal content.
fn synced_pair(stage: &mut Stage, remote: &str) {
    small_library(stage, "one");
    stage.snapshot("one");
    if remote == REMOTE {
        add_remote(stage, "one");
    }
    stage.stvc("one", &["sync", remote]).exits(0);
    empty_library(stage, "two");
    if remote == REMOTE {
        add_remote(stage, "two");
    }
    stage.stvc("two", &["sync", remote]).exits(0);
    pack_refs(stage);
}

/// Adds the shared folder as a remote on plain storage. Its recorded path becomes relative, because
/// each point has a folder of its own.
fn add_remote(stage: &mut Stage, device: &str) {
    stage.stvc(device, &["remote", "add", SHARED, "--unencrypted"]).exits(0);
    let file = stage.store(device).join("stvc/remotes.json");
    let mut remotes: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    remotes["remotes"][0]["address"] = SHARED.into();
    fs::write(file, remotes.to_string()).unwrap();
}

/// The other device wrote and synced.
fn receive(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    write_for_a_day(stage, "two");
    stage.stvc("two", &["tag", "mark", "Mira/a"]).exits(0);
    stage.stvc("two", &["sync", remote]).exits(0);
    let contents = chats_and_lorebooks(stage, "two");
    Scene { contents, ..sync_scene(remote) }
}

/// This device wrote and syncs.
fn send(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    write_for_a_day(stage, "one");
    stage.stvc("one", &["tag", "mark", "Mira/a"]).exits(0);
    let contents = chats_and_lorebooks(stage, "one");
    Scene { contents, ..sync_scene(remote) }
}

/// Both devices wrote: the same chat, one chat each, and different lorebook entries.
fn diverged(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    stage.append("one", A, &message("one", 10));
    stage.append("two", A, &message("two", 10));
    stage.append("two", B, &message("two", 11));
    stage.write("one", "chats/Voss/e.jsonl", chat("e", 2, None));
    let loud = (1, "Gull", "Grey birds laugh over each roof.");
    stage.write("one", BOOK, book(&[PIER_EDITED, GULL]));
    stage.write("two", BOOK, book(&[PIER, loud]));
    stage.stvc("two", &["sync", remote]).exits(0);
    let texts = [("one", 10), ("two", 10), ("two", 11), ("e", 1)];
    let mut texts: Vec<_> = texts.iter().map(|(name, n)| text_of(name, *n)).collect();
    texts.extend([PIER_EDITED.2.to_owned(), loud.2.to_owned()]);
    Scene { words: texts, ..sync_scene(remote) }
}

/// Both devices wrote the same field of the lorebook: one value is in use, the other is kept beside
/// it.
fn conflict(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    let dark = (0, "Pier", "No stone, and no lamp at all.");
    stage.write("one", BOOK, book(&[PIER_EDITED, GULL]));
    stage.write("two", BOOK, book(&[dark, GULL]));
    stage.append("one", A, &message("one", 10));
    stage.stvc("two", &["sync", remote]).exits(0);
    let words = vec![text_of("one", 10), PIER_EDITED.2.to_owned(), dark.2.to_owned()];
    Scene { words, ..sync_scene(remote) }
}

/// The other device renamed a chat that this one appended to, and reused its name.
fn renamed(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    let library = stage.library("two");
    fs::rename(library.join(A), library.join("chats/Mira/z.jsonl")).unwrap();
    stage.stvc("two", &["snapshot"]).exits(0);
    fs::rename(library.join(B), library.join(A)).unwrap();
    stage.stvc("two", &["sync", remote]).exits(0);
    stage.append("one", A, &message("one", 10));
    Scene {
        words: vec![text_of("one", 10), text_of("a", 2), text_of("b", 1)],
        ..sync_scene(remote)
    }
}

/// This device erased a chat that the remote still has.
fn erased(stage: &mut Stage, remote: &'static str) -> Scene {
    synced_pair(stage, remote);
    fs::remove_file(stage.library("one").join(B)).unwrap();
    stage.stvc("one", &["erase", "Mira/b", "--yes"]).exits(0);
    stage.append("one", A, &message("one", 10));
    stage.append("two", A, &message("two", 10));
    stage.stvc("two", &["sync", remote]).exits(0);
    Scene {
        words: vec![text_of("one", 10), text_of("two", 10)],
        deletes_snapshots: true,
        ..sync_scene(remote)
    }
}

fn chats_and_lorebooks(stage: &Stage, device: &str) -> Vec<(String, Vec<u8>)> {
    let ours = |path: &String| {
        ["chats/", "group chats/", "worlds/"].iter().any(|prefix| path.starts_with(prefix))
    };
    stage.files(device).into_iter().filter(|(path, _)| ours(path)).collect()
}

/// Creates a server and a script in place of ssh. The server's git counts as another machine: the
/// sweep's signals do not reach it.
pub fn create_server(stage: &mut Stage, devices: &[&str]) {
    let server = stage.server();
    let disk = stage.disk();
    stage.git(&disk, &["init", "-q", "--bare", server.to_str().unwrap()]).exits(0);
    // Automatic maintenance would run at unpredictable times.
    for setting in ["receive.autogc", "maintenance.auto"] {
        stage.git(&server, &["config", setting, "false"]).exits(0);
    }
    for device in devices {
        let home = disk.join(device);
        fs::create_dir_all(&home).unwrap();
        let ssh = home.join("ssh");
        let script = "#!/bin/sh\nfor last; do :; done\n\
            exec setsid sh -c \"$(echo \"$last\" | sed \"s|'/server.git'|'$HOME/../server.git'|\")\"\n";
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let config = "[core]\n\tsshCommand = \"$HOME/ssh\"\n[ssh]\n\tvariant = ssh\n\
            [safe]\n\tdirectory = *\n";
        fs::write(home.join(".gitconfig"), config).unwrap();
    }
}
