//! Verbs that write to the store and leave the library alone.

use super::library::remove;
use super::{Driver, Listed, SHARED, Scene};
use crate::common::recap_library::RecapLibrary;
use crate::stage::Stage;
use crate::world::{A, B, BOOK, GULL, PIER_NOW, book, chat, day, empty, message, page, small};

pub const CASES: &[Listed] = &[
    ("snapshot", "snapshot-first", |stage| {
        small(stage, "one");
        Scene::of(&["snapshot"])
    }),
    ("snapshot", "snapshot-further", |stage| {
        begun(stage);
        pack_refs(stage);
        day(stage, "one");
        Scene::of(&["snapshot"])
    }),
    ("snapshot", "snapshot-at", |stage| {
        begun(stage);
        Scene::of(&["snapshot", "Mira/a", "--at", "1", "--tag", "early"])
    }),
    ("snapshot", "snapshot-scenes", |stage| {
        recap(stage);
        Scene::of(&["snapshot", "--scenes"])
    }),
    ("snapshot", "snapshot-fold", |stage| {
        begun(stage);
        for n in 0..20 {
            stage.append("one", A, &message("more", n));
            stage.stvc("one", &["snapshot"]).exits(0);
        }
        stage.append("one", A, &message("last", 0));
        Scene::of(&["snapshot"])
    }),
    // Onto what was joined before.
    ("snapshot", "snapshot-fold-onto", |stage| {
        begun(stage);
        for turns in [1, 2] {
            stage.write("one", A, long_chat(turns));
            stage.snapshot("one");
        }
        stage.write("one", A, long_chat(3));
        Scene::of(&["snapshot"])
    }),
    // One ref more than are left in files of their own.
    ("snapshot", "snapshot-pack-refs", |stage| {
        let write = |stage: &Stage, n: u64| {
            stage.write("one", &format!("worlds/Book {n}.json"), book(&[(n, "Pier", "Wet.")]));
        };
        small(stage, "one");
        (0..26).for_each(|n| write(stage, n));
        stage.snapshot("one");
        write(stage, 26);
        Scene::of(&["snapshot"])
    }),
    // So many at once that they go there at once.
    ("snapshot", "snapshot-many-refs", |stage| {
        begun(stage);
        for n in 0..40 {
            stage.write("one", &format!("worlds/Book {n}.json"), book(&[(n, "Pier", "Wet.")]));
        }
        Scene::of(&["snapshot"])
    }),
    // A file of a kind that is noted as the library's own.
    ("snapshot", "snapshot-own-attachment", |stage| {
        begun(stage);
        page(stage, "one");
        Scene::of(&["snapshot"])
    }),
    ("watch", "watch", |stage| {
        begun(stage);
        stage.append("one", A, &message("before", 0));
        let command = ["watch", "--settle", "20ms"];
        Scene { driver: Driver::Watch, ..Scene::of(&command) }
    }),
    ("tag", "tag-add", |stage| {
        begun(stage);
        Scene::of(&["tag", "keep", "Mira/a"])
    }),
    // A snapshot of the pair is created first.
    ("tag", "tag-pair", |stage| {
        begun(stage);
        stage.write("one", BOOK, book(&[PIER_NOW, GULL]));
        stage.stvc("one", &["snapshot"]).exits(0);
        Scene::of(&["tag", "keep", "Mira/a"])
    }),
    ("tag", "tag-delete", |stage| {
        begun(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        Scene::of(&["tag", "-d", "keep"])
    }),
    ("tag", "tag-move", |stage| {
        begun(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        Scene::of(&["tag", "keep", "Mira/b", "--move"])
    }),
    ("timelines", "timelines-parent", |stage| {
        late_parent(stage);
        stage.stvc("one", &["snapshot"]).exits(0);
        pack_refs(stage);
        Scene::of(&["timelines", "Branch #1", "--no-parent"]).history()
    }),
    // A main chat whose forks were stored before it.
    ("snapshot", "snapshot-late-parent", |stage| {
        late_parent(stage);
        Scene::of(&["snapshot"]).history()
    }),
    ("undo", "undo-snapshot", |stage| {
        begun(stage);
        day(stage, "one");
        stage.stvc("one", &["snapshot"]).exits(0);
        pack_refs(stage);
        Scene::of(&["undo"]).once().history()
    }),
    ("reconstruct", "reconstruct", |stage| {
        recap(stage);
        Scene::of(&["reconstruct", "Harbour nights", "--all"]).history()
    }),
    ("forget", "forget", |stage| {
        long(stage);
        pack_refs(stage);
        Scene { forgets: true, ..Scene::of(&["forget", "--keep-last", "1"]).history() }
    }),
    ("erase", "erase", |stage| {
        begun(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        remove(stage, &[A]);
        Scene { forgets: true, ..Scene::of(&["erase", "Mira/a", "--yes"]).history() }
    }),
    ("erase", "erase-copies", |stage| {
        with_copies(stage);
        let command = ["erase", "Mira/a", "--copies", "--yes"];
        Scene { forgets: true, ..Scene::of(&command).history().copy("shared") }
    }),
    ("erase", "erase-copies-later", |stage| {
        with_copies(stage);
        stage.stvc("one", &["erase", "Mira/a", "--yes"]).exits(0);
        let command = ["erase", "--copies", "--yes"];
        Scene { forgets: true, ..Scene::of(&command).history().copy("shared") }
    }),
    ("snapshot", "snapshot-deleted", |stage| {
        begun(stage);
        remove(stage, &[A]);
        Scene::of(&["snapshot"]).history()
    }),
    ("gc", "gc", |stage| {
        long(stage);
        Scene::of(&["gc"])
    }),
    ("gc", "gc-again", |stage| {
        begun(stage);
        stage.stvc("one", &["gc"]).exits(0);
        day(stage, "one");
        stage.snapshot("one");
        Scene::of(&["gc"])
    }),
    ("gc", "gc-forgotten", |stage| {
        long(stage);
        stage.stvc("one", &["forget", "--keep-last", "1"]).exits(0);
        pack_refs(stage);
        let command = ["gc", "--grace", "0s", "--keep-undo", "0s"];
        Scene { forgets: true, ..Scene::of(&command) }
    }),
];

/// A small library with a first snapshot of everything.
pub fn begun(stage: &mut Stage) {
    small(stage, "one");
    stage.snapshot("one");
}

/// A deleted chat with a picture, a backup by SillyTavern and one in a folder.
fn with_copies(stage: &mut Stage) {
    small(stage, "one");
    stage.write("one", "user/images/Mira/own.png", "a picture");
    let line = r#"{"name":"Mira","mes":"see","extra":{"image":"/user/images/Mira/own.png"}}"#;
    stage.append("one", A, line);
    stage.snapshot("one");
    stage.stvc("one", &["backup", SHARED]).exits(0);
    // The library is tried in many places, each with the folder beside it.
    let note = stage.store("one").join("stvc/backups.json");
    let mut backups: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    backups["backups"][0]["destination"] = SHARED.into();
    std::fs::write(&note, backups.to_string()).unwrap();
    let text = std::fs::read(stage.library("one").join(A)).unwrap();
    stage.write("one", "backups/chat_mira_20260101-120001.jsonl", text);
    pack_refs(stage);
    remove(stage, &[A]);
}

/// A chat that makes a pack of more than 256 kB in each turn: a long message that cannot be made smaller, and short ones.
fn long_chat(turns: u64) -> String {
    let noise = |seed: u64| {
        let mut state = seed;
        let letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + ((state >> 40) % 90) as u8)
        };
        std::iter::repeat_with(letter)
            .filter(|c| !"\"\\".contains(*c))
            .take(330_000)
            .collect::<String>()
    };
    let mut lines = vec![chat("a", 0, None)];
    for turn in 1..=turns {
        lines.push(format!(r#"{{"name":"Mira","mes":"{}"}}"#, noise(turn)));
        lines.extend((0..4).map(|n| message(&format!("turn {turn}"), n)));
    }
    lines.join("\n")
}

/// One with a history.
fn long(stage: &mut Stage) {
    begun(stage);
    for n in 0..4 {
        stage.append("one", A, &message("more", n));
        stage.write("one", B, chat(&format!("b{n}"), 3, Some("Harbour")));
        stage.snapshot("one");
    }
}

/// Chats that ST-Auto-Recap has worked on.
pub fn recap(stage: &mut Stage) {
    empty(stage, "one");
    let library = RecapLibrary::default();
    stage.write("one", &library.chat_path(), library.chat_bytes());
    stage.write("one", &library.book_path(), library.book_bytes());
    stage.snapshot("one");
}

/// Forks that are stored, and the chat that they come from, which is not; one of them has gone on.
fn late_parent(stage: &mut Stage) {
    empty(stage, "one");
    let main = RecapLibrary::default();
    stage.write("one", &main.book_path(), main.book_bytes());
    for (name, at) in [("Branch #1", 7), ("Branch #2", 11)] {
        let fork = main.fork(name, at);
        stage.write("one", &fork.chat_path(), fork.chat_bytes());
        stage.snapshot("one");
    }
    let fork = main.fork("Branch #1", 7).chat_path();
    stage.append("one", &fork, &message("more", 0));
    stage.write("one", &main.chat_path(), main.chat_bytes());
}

/// Refs as git packs them: deleting one means writing all of them anew.
pub fn pack_refs(stage: &Stage) {
    stage.git(&stage.store("one"), &["pack-refs", "--all"]).exits(0);
}
