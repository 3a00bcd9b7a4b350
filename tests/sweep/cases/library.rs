//! Verbs that write the user's files.

use std::fs;

use super::store::{recap_library, stored_library};
use super::{CaseEntry, Scene};
use crate::common::recap_library::RecapLibrary;
use crate::stage::Stage;
use crate::world::{
    A, B, BOOK, C, CARD, CREW, GULL, MAP, NIGHT, PIER, PIER_EDITED, add_card_and_picture, book,
    chat, empty_library, message, small_library, write_for_a_day,
};

pub const CASES: &[CaseEntry] = &[
    ("restore", "restore-missing", |stage| {
        stored_library(stage);
        remove(stage, &[A, BOOK]);
        Scene::new(&["restore", "Mira/a"])
    }),
    ("restore", "restore-overwrite", |stage| {
        let id = overwritten_library(stage);
        Scene::new(&["restore", &id, "--overwrite"])
    }),
    // Restores the lorebook from its own snapshot; the chat does not change.
    ("restore", "restore-pair", |stage| {
        stored_library(stage);
        for entry in [PIER_EDITED, PIER] {
            stage.write("one", BOOK, book(&[entry, GULL]));
            stage.stvc("one", &["snapshot"]).exits(0);
        }
        // By ids: on a second run `~1` would be another snapshot.
        let shown = stage.stvc("one", &["show", "Mira/a~1"]).exits(0);
        let moment = shown.of_type("snapshot")[0]["moment"].as_str().unwrap().to_owned();
        Scene::new(&["restore", &moment, "--overwrite"])
    }),
    ("restore", "restore-group", |stage| {
        stored_library(stage);
        remove(stage, &[NIGHT, CREW]);
        Scene::new(&["restore", "night"])
    }),
    ("restore", "restore-as", |stage| {
        stored_library(stage);
        Scene::new(&["restore", "Mira/a", "--as", "What if"])
    }),
    ("restore", "restore-at", |stage| {
        recap_library(stage);
        Scene::new(&["restore", "Harbour nights", "--at", "7", "--as", "Early"])
    }),
    ("restore", "restore-to", |stage| {
        stored_library(stage);
        Scene::new(&["restore", "Mira/a", "--to", "../../out"])
    }),
    ("restore", "restore-all", |stage| {
        stored_library(stage);
        remove(stage, &[A, BOOK, C, NIGHT, CREW]);
        Scene::new(&["restore", "--all"])
    }),
    ("restore", "restore-all-overwrite", |stage| {
        overwritten_library(stage);
        Scene::new(&["restore", "--all", "--overwrite"])
    }),
    ("restore", "restore-card", |stage| {
        library_with_attachments(stage);
        stage.write("one", CARD, b"another card");
        Scene::new(&["restore", "characters/Mira", "--overwrite"])
    }),
    ("restore", "restore-attachment", |stage| {
        library_with_attachments(stage);
        remove(stage, &[A, MAP]);
        Scene::new(&["restore", "Mira/a"])
    }),
    ("extension", "extension-install", |stage| {
        stored_library(stage);
        Scene::new(&["extension", "install"])
    }),
    ("extension", "extension-update", |stage| {
        stored_library(stage);
        stage.stvc("one", &["extension", "install"]).exits(0);
        remove(stage, &["extensions/stvc/actions.js", "extensions/stvc/page.js"]);
        stage.write("one", "extensions/stvc/notes.txt", b"mine");
        Scene::new(&["extension", "update"])
    }),
    ("extension", "extension-remove", |stage| {
        stored_library(stage);
        stage.stvc("one", &["extension", "install"]).exits(0);
        Scene::new(&["extension", "remove"])
    }),
    ("restore", "restore-lorebook", |stage| {
        stored_library(stage);
        remove(stage, &[BOOK]);
        Scene::new(&["restore", "worlds/Harbour"])
    }),
    ("restore", "restore-whole-library", |stage| {
        library_with_attachments(stage);
        remove(stage, &[A, B, C, BOOK, CARD, MAP, NIGHT, CREW]);
        Scene::new(&["restore", "--all"])
    }),
    ("fork", "fork", |stage| {
        stored_library(stage);
        stage.append("one", A, &message("later", 0));
        Scene::new(&["fork", "Mira/a", "--at", "1", "--as", "What if"])
    }),
    ("undo", "undo-restore", |stage| {
        let id = overwritten_library(stage);
        stage.stvc("one", &["restore", &id, "--overwrite"]).exits(0);
        Scene::new(&["undo"]).not_repeatable()
    }),
    ("undo", "undo-restore-all", |stage| {
        overwritten_library(stage);
        stage.stvc("one", &["restore", "--all", "--overwrite"]).exits(0);
        Scene::new(&["undo"]).not_repeatable()
    }),
    ("undo", "undo-fork", |stage| {
        stored_library(stage);
        stage.append("one", A, &message("later", 0));
        stage.stvc("one", &["fork", "Mira/a", "--at", "1", "--as", "What if"]).exits(0);
        Scene::new(&["undo"]).not_repeatable()
    }),
    ("merge", "merge", |stage| {
        stored_library(stage);
        stage.stvc("one", &["restore", "Mira/a", "--as", "What if"]).exits(0);
        let theirs =
            stage.files("one").into_keys().find(|path| path.starts_with("worlds/") && path != BOOK);
        stage.write("one", BOOK, book(&[PIER_EDITED, GULL]));
        let bell = (2, "Bell", "It rings three times before dawn.");
        stage.write("one", &theirs.unwrap(), book(&[PIER, GULL, bell]));
        Scene::new(&["merge", "Mira/a", "What if", "--yes"])
    }),
    ("doctor", "doctor-fix", |stage| {
        empty_library(stage, "one");
        let main = RecapLibrary::default();
        stage.write("one", &main.book_path(), main.book_bytes());
        for library in [main.clone(), main.fork("Branch #1", 7), main.fork("Dawn", 11)] {
            stage.write("one", &library.chat_path(), library.chat_bytes());
        }
        stage.snapshot("one");
        Scene::new(&["doctor", "--fix", "--yes"])
    }),
    ("doctor", "doctor-missing", |stage| {
        stored_library(stage);
        write_for_a_day(stage, "one");
        remove(stage, &[BOOK]);
        Scene::new(&["doctor", "--fix", "--yes"])
    }),
    ("doctor", "doctor-damaged", |stage| {
        stored_library(stage);
        write_for_a_day(stage, "one");
        stage.snapshot("one");
        stage.write("one", BOOK, [0; 300]);
        Scene::new(&["doctor", "--fix", "--yes"])
    }),
    // Deletes the lorebook together with its entry in the map of checkpoints.
    ("doctor", "doctor-orphan", |stage| {
        empty_library(stage, "one");
        let mut main = RecapLibrary::default();
        let map = r#"{"checkpoint_lorebook_map":{"Gone":"Left behind","Other":"Elsewhere"}}"#;
        main.more.push(("auto_recap".into(), map.into()));
        stage.write("one", &main.book_path(), main.book_bytes());
        stage.write("one", "worlds/Left behind.json", main.book_bytes());
        stage.write("one", &main.chat_path(), main.chat_bytes());
        stage.snapshot("one");
        Scene::new(&["doctor", "--fix", "--yes"])
    }),
];

pub fn remove(stage: &Stage, paths: &[&str]) {
    for path in paths {
        fs::remove_file(stage.library("one").join(path)).unwrap();
    }
}

/// Creates a library with characters and attachments, and a snapshot.
fn library_with_attachments(stage: &mut Stage) {
    small_library(stage, "one");
    add_card_and_picture(stage, "one");
    stage.snapshot("one");
}

/// Creates a snapshot and then changes both files without another. Returns the snapshot's id.
fn overwritten_library(stage: &mut Stage) -> String {
    stored_library(stage);
    let first = stage.acks.iter().find(|ack| ack.files.contains_key(A)).unwrap().id.clone();
    stage.append("one", A, &message("later", 0));
    stage.snapshot("one");
    stage.write("one", A, chat("quite another", 2, Some("Harbour")));
    stage.append("one", B, &message("later", 1));
    stage.write("one", BOOK, book(&[PIER_EDITED]));
    first
}
