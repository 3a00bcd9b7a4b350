//! Two devices that meet in a folder or on a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::store::pack_refs;
use super::{Listed, SERVER, SHARED, Scene};
use crate::stage::Stage;
use crate::world::{
    A, B, BOOK, CARD, GULL, MAP, PIER, PIER_NOW, belongings, book, chat, day, empty, message,
    small, words,
};

pub const CASES: &[Listed] = &[
    ("sync", "sync-folder-first", |stage| {
        small(stage, "one");
        empty(stage, "two");
        Scene { words: vec![words("a", 3), words("c", 3)], ..meet(SHARED) }
    }),
    ("sync", "sync-folder-join", |stage| {
        small(stage, "two");
        stage.stvc("two", &["sync", SHARED]).exits(0);
        empty(stage, "one");
        let contents = newest(stage, "two");
        Scene { contents, ..meet(SHARED) }
    }),
    ("sync", "sync-folder-receive", |stage| receive(stage, SHARED)),
    ("sync", "sync-folder-send", |stage| send(stage, SHARED)),
    ("sync", "sync-folder-both", |stage| both(stage, SHARED)),
    ("sync", "sync-folder-book-conflict", |stage| conflict(stage, SHARED)),
    ("sync", "sync-folder-renamed", |stage| renamed(stage, SHARED)),
    ("sync", "sync-folder-erased", |stage| erased(stage, SHARED)),
    ("sync", "sync-folder-belongings", |stage| {
        pair(stage, SHARED);
        belongings(stage, "two");
        stage.stvc("two", &["sync", SHARED]).exits(0);
        let mut contents = newest(stage, "two");
        contents.extend([CARD, MAP].map(|path| (path.to_owned(), stage.read("two", path))));
        Scene { contents, ..meet(SHARED) }
    }),
    ("sync", "sync-git-receive", |stage| {
        reach(stage, &["one", "two"]);
        receive(stage, SERVER)
    }),
    ("sync", "sync-git-send", |stage| {
        reach(stage, &["one", "two"]);
        send(stage, SERVER)
    }),
    ("sync", "sync-git-erased", |stage| {
        reach(stage, &["one", "two"]);
        erased(stage, SERVER)
    }),
    ("undo", "undo-sync", |stage| {
        let scene = receive(stage, SHARED);
        stage.stvc("one", &["sync", SHARED]).exits(0);
        Scene { contents: scene.contents, remote: scene.remote, ..Scene::of(&["undo"]).once() }
    }),
];

fn meet(remote: &'static str) -> Scene {
    let copy = if remote == SERVER { "server.git" } else { "shared" };
    Scene { remote: Some(remote), ..Scene::of(&["sync", remote]).copy(copy) }
}

/// Two devices that have the same.
fn pair(stage: &mut Stage, remote: &str) {
    small(stage, "one");
    stage.snapshot("one");
    stage.stvc("one", &["sync", remote]).exits(0);
    empty(stage, "two");
    stage.stvc("two", &["sync", remote]).exits(0);
    pack_refs(stage);
}

/// The other one wrote and sent it.
fn receive(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    day(stage, "two");
    stage.stvc("two", &["tag", "mark", "Mira/a"]).exits(0);
    stage.stvc("two", &["sync", remote]).exits(0);
    let contents = newest(stage, "two");
    Scene { contents, ..meet(remote) }
}

/// This one wrote and sends it.
fn send(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    day(stage, "one");
    stage.stvc("one", &["tag", "mark", "Mira/a"]).exits(0);
    let contents = newest(stage, "one");
    Scene { contents, ..meet(remote) }
}

/// Both wrote: one chat on both, one on each, the lorebook in different places.
fn both(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    stage.append("one", A, &message("one", 10));
    stage.append("two", A, &message("two", 10));
    stage.append("two", B, &message("two", 11));
    stage.write("one", "chats/Voss/e.jsonl", chat("e", 2, None));
    let loud = (1, "Gull", "Grey birds laugh over each roof.");
    stage.write("one", BOOK, book(&[PIER_NOW, GULL]));
    stage.write("two", BOOK, book(&[PIER, loud]));
    stage.stvc("two", &["sync", remote]).exits(0);
    let said = [("one", 10), ("two", 10), ("two", 11), ("e", 1)];
    let mut said: Vec<_> = said.iter().map(|(name, n)| words(name, *n)).collect();
    said.extend([PIER_NOW.2.to_owned(), loud.2.to_owned()]);
    Scene { words: said, ..meet(remote) }
}

/// Both wrote into the same field of the lorebook: one of them is what counts, and the other is kept beside it.
fn conflict(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    let dark = (0, "Pier", "No stone, and no lamp at all.");
    stage.write("one", BOOK, book(&[PIER_NOW, GULL]));
    stage.write("two", BOOK, book(&[dark, GULL]));
    stage.append("one", A, &message("one", 10));
    stage.stvc("two", &["sync", remote]).exits(0);
    let words = vec![words("one", 10), PIER_NOW.2.to_owned(), dark.2.to_owned()];
    Scene { words, ..meet(remote) }
}

/// The other one renamed a chat that this one wrote into, and gave its name to another.
fn renamed(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    let library = stage.library("two");
    fs::rename(library.join(A), library.join("chats/Mira/z.jsonl")).unwrap();
    stage.stvc("two", &["snapshot"]).exits(0);
    fs::rename(library.join(B), library.join(A)).unwrap();
    stage.stvc("two", &["sync", remote]).exits(0);
    stage.append("one", A, &message("one", 10));
    Scene { words: vec![words("one", 10), words("a", 2), words("b", 1)], ..meet(remote) }
}

/// This one erased a chat, and the other one still has it on the remote.
fn erased(stage: &mut Stage, remote: &'static str) -> Scene {
    pair(stage, remote);
    fs::remove_file(stage.library("one").join(B)).unwrap();
    stage.stvc("one", &["erase", "Mira/b", "--yes"]).exits(0);
    stage.append("one", A, &message("one", 10));
    stage.append("two", A, &message("two", 10));
    stage.stvc("two", &["sync", remote]).exits(0);
    Scene { words: vec![words("one", 10), words("two", 10)], forgets: true, ..meet(remote) }
}

/// Chats and lorebooks as a device has them.
fn newest(stage: &Stage, device: &str) -> Vec<(String, Vec<u8>)> {
    let ours = |path: &String| {
        ["chats/", "group chats/", "worlds/"].iter().any(|prefix| path.starts_with(prefix))
    };
    stage.files(device).into_iter().filter(|(path, _)| ours(path)).collect()
}

/// A server, and the way there: a script in the place of ssh. The server's git is another machine's: no signal of ours reaches it.
pub fn reach(stage: &mut Stage, devices: &[&str]) {
    let server = stage.server();
    let disk = stage.disk();
    stage.git(&disk, &["init", "-q", "--bare", server.to_str().unwrap()]).exits(0);
    // It tidies up by itself at no moment of its own choice.
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
