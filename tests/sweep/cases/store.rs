//! Verbs that write to the store and not to the library.

use super::library::remove;
use super::{CaseEntry, Driver, SHARED, Scene};
use crate::common::recap_library::RecapLibrary;
use crate::stage::Stage;
use crate::world::{
    A, B, BOOK, GULL, PIER_EDITED, add_html_page, book, chat, empty_library, message,
    small_library, write_for_a_day,
};

pub const CASES: &[CaseEntry] = &[
    ("snapshot", "snapshot-first", |stage| {
        small_library(stage, "one");
        Scene::new(&["snapshot"])
    }),
    ("snapshot", "snapshot-further", |stage| {
        stored_library(stage);
        pack_refs(stage);
        write_for_a_day(stage, "one");
        Scene::new(&["snapshot"])
    }),
    ("snapshot", "snapshot-at", |stage| {
        stored_library(stage);
        Scene::new(&["snapshot", "Mira/a", "--at", "1", "--tag", "early"])
    }),
    ("snapshot", "snapshot-scenes", |stage| {
        recap_library(stage);
        Scene::new(&["snapshot", "--scenes"])
    }),
    ("snapshot", "snapshot-fold", |stage| {
        stored_library(stage);
        for n in 0..20 {
            stage.append("one", A, &message("more", n));
            stage.stvc("one", &["snapshot"]).exits(0);
        }
        stage.append("one", A, &message("last", 0));
        Scene::new(&["snapshot"])
    }),
    // Folds onto a pack that was folded before.
    ("snapshot", "snapshot-fold-onto", |stage| {
        stored_library(stage);
        for turns in [1, 2] {
            stage.write("one", A, long_chat(turns));
            stage.snapshot("one");
        }
        stage.write("one", A, long_chat(3));
        Scene::new(&["snapshot"])
    }),
    // One ref more than stay loose.
    ("snapshot", "snapshot-pack-refs", |stage| {
        let write = |stage: &Stage, n: u64| {
            stage.write("one", &format!("worlds/Book {n}.json"), book(&[(n, "Pier", "Wet.")]));
        };
        small_library(stage, "one");
        (0..26).for_each(|n| write(stage, n));
        stage.snapshot("one");
        write(stage, 26);
        Scene::new(&["snapshot"])
    }),
    // So many new refs that they are packed in the same command.
    ("snapshot", "snapshot-many-refs", |stage| {
        stored_library(stage);
        for n in 0..40 {
            stage.write("one", &format!("worlds/Book {n}.json"), book(&[(n, "Pier", "Wet.")]));
        }
        Scene::new(&["snapshot"])
    }),
    // An attachment of a kind that stvc records as the library's own.
    ("snapshot", "snapshot-own-attachment", |stage| {
        stored_library(stage);
        add_html_page(stage, "one");
        Scene::new(&["snapshot"])
    }),
    ("watch", "watch", |stage| {
        stored_library(stage);
        stage.append("one", A, &message("before", 0));
        let command = ["watch", "--settle", "20ms"];
        Scene { driver: Driver::Watch, ..Scene::new(&command) }
    }),
    ("tag", "tag-add", |stage| {
        stored_library(stage);
        Scene::new(&["tag", "keep", "Mira/a"])
    }),
    // Creates a snapshot of the pair first.
    ("tag", "tag-pair", |stage| {
        stored_library(stage);
        stage.write("one", BOOK, book(&[PIER_EDITED, GULL]));
        stage.stvc("one", &["snapshot"]).exits(0);
        Scene::new(&["tag", "keep", "Mira/a"])
    }),
    ("tag", "tag-delete", |stage| {
        stored_library(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        Scene::new(&["tag", "-d", "keep"])
    }),
    ("tag", "tag-move", |stage| {
        stored_library(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        Scene::new(&["tag", "keep", "Mira/b", "--move"])
    }),
    ("timelines", "timelines-parent", |stage| {
        forks_before_parent(stage);
        stage.stvc("one", &["snapshot"]).exits(0);
        pack_refs(stage);
        Scene::new(&["timelines", "Branch #1", "--no-parent"]).compare_history()
    }),
    // A parent chat whose forks were stored before it.
    ("snapshot", "snapshot-late-parent", |stage| {
        forks_before_parent(stage);
        Scene::new(&["snapshot"]).compare_history()
    }),
    ("undo", "undo-snapshot", |stage| {
        stored_library(stage);
        write_for_a_day(stage, "one");
        stage.stvc("one", &["snapshot"]).exits(0);
        pack_refs(stage);
        Scene::new(&["undo"]).not_repeatable().compare_history()
    }),
    ("reconstruct", "reconstruct", |stage| {
        recap_library(stage);
        Scene::new(&["reconstruct", "Harbour nights", "--all"]).compare_history()
    }),
    ("forget", "forget", |stage| {
        library_with_history(stage);
        pack_refs(stage);
        Scene {
            deletes_snapshots: true,
            ..Scene::new(&["forget", "--keep-last", "1"]).compare_history()
        }
    }),
    ("erase", "erase", |stage| {
        stored_library(stage);
        stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
        pack_refs(stage);
        remove(stage, &[A]);
        Scene {
            deletes_snapshots: true,
            ..Scene::new(&["erase", "Mira/a", "--yes"]).compare_history()
        }
    }),
    ("erase", "erase-copies", |stage| {
        deleted_chat_with_backups(stage);
        let command = ["erase", "Mira/a", "--copies", "--yes"];
        Scene { deletes_snapshots: true, ..Scene::new(&command).compare_history().backup("shared") }
    }),
    ("erase", "erase-copies-later", |stage| {
        deleted_chat_with_backups(stage);
        stage.stvc("one", &["erase", "Mira/a", "--yes"]).exits(0);
        let command = ["erase", "--copies", "--yes"];
        Scene { deletes_snapshots: true, ..Scene::new(&command).compare_history().backup("shared") }
    }),
    ("snapshot", "snapshot-deleted", |stage| {
        stored_library(stage);
        remove(stage, &[A]);
        Scene::new(&["snapshot"]).compare_history()
    }),
    ("gc", "gc", |stage| {
        library_with_history(stage);
        Scene::new(&["gc"])
    }),
    ("gc", "gc-again", |stage| {
        stored_library(stage);
        stage.stvc("one", &["gc"]).exits(0);
        write_for_a_day(stage, "one");
        stage.snapshot("one");
        Scene::new(&["gc"])
    }),
    ("gc", "gc-forgotten", |stage| {
        library_with_history(stage);
        stage.stvc("one", &["forget", "--keep-last", "1"]).exits(0);
        pack_refs(stage);
        let command = ["gc", "--grace", "0s", "--keep-undo", "0s"];
        Scene { deletes_snapshots: true, ..Scene::new(&command) }
    }),
];

/// Creates a small library with a first snapshot of everything.
pub fn stored_library(stage: &mut Stage) {
    small_library(stage, "one");
    stage.snapshot("one");
}

/// Creates a deleted chat with a picture, a backup by SillyTavern and one in a folder.
fn deleted_chat_with_backups(stage: &mut Stage) {
    small_library(stage, "one");
    stage.write("one", "user/images/Mira/own.png", "a picture");
    let line = r#"{"name":"Mira","mes":"see","extra":{"image":"/user/images/Mira/own.png"}}"#;
    stage.append("one", A, line);
    stage.snapshot("one");
    stage.stvc("one", &["backup", SHARED]).exits(0);
    // The library is copied to many places, each with the folder beside it.
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

/// Builds a chat that adds a pack of more than 256 kB per turn: one long incompressible message and
/// some short ones.
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

/// Creates a library with several snapshots.
fn library_with_history(stage: &mut Stage) {
    stored_library(stage);
    for n in 0..4 {
        stage.append("one", A, &message("more", n));
        stage.write("one", B, chat(&format!("b{n}"), 3, Some("Harbour")));
        stage.snapshot("one");
    }
}

/// Creates an ST-Auto-Recap chat and a snapshot.
pub fn recap_library(stage: &mut Stage) {
    empty_library(stage, "one");
    let library = RecapLibrary::default();
    stage.write("one", &library.chat_path(), library.chat_bytes());
    stage.write("one", &library.book_path(), library.book_bytes());
    stage.snapshot("one");
}

/// Creates forks that are stored and their parent chat that is not; one fork has new messages.
fn forks_before_parent(stage: &mut Stage) {
    empty_library(stage, "one");
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

/// Packs all refs: deleting one then rewrites all of them.
pub fn pack_refs(stage: &Stage) {
    stage.git(&stage.store("one"), &["pack-refs", "--all"]).exits(0);
}
