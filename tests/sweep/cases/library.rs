//! Verbs that write the user's files.

use std::fs;

use super::store::{begun, recap};
use super::{Listed, Scene};
use crate::common::recap_library::RecapLibrary;
use crate::stage::Stage;
use crate::world::{
    A, B, BOOK, C, CARD, CREW, GULL, MAP, NIGHT, PIER, PIER_NOW, belongings, book, chat, day,
    empty, message, small,
};

pub const CASES: &[Listed] = &[
    ("restore", "restore-missing", |stage| {
        begun(stage);
        remove(stage, &[A, BOOK]);
        Scene::of(&["restore", "Mira/a"])
    }),
    ("restore", "restore-overwrite", |stage| {
        let id = replaced(stage);
        Scene::of(&["restore", &id, "--overwrite"])
    }),
    // The lorebook comes from a snapshot of its own, and nothing of the chat changes.
    ("restore", "restore-pair", |stage| {
        begun(stage);
        for entry in [PIER_NOW, PIER] {
            stage.write("one", BOOK, book(&[entry, GULL]));
            stage.stvc("one", &["snapshot"]).exits(0);
        }
        // By its ids: begun again, `~1` would be another moment.
        let shown = stage.stvc("one", &["show", "Mira/a~1"]).exits(0);
        let moment = shown.of_type("snapshot")[0]["moment"].as_str().unwrap().to_owned();
        Scene::of(&["restore", &moment, "--overwrite"])
    }),
    ("restore", "restore-group", |stage| {
        begun(stage);
        remove(stage, &[NIGHT, CREW]);
        Scene::of(&["restore", "night"])
    }),
    ("restore", "restore-as", |stage| {
        begun(stage);
        Scene::of(&["restore", "Mira/a", "--as", "What if"])
    }),
    ("restore", "restore-at", |stage| {
        recap(stage);
        Scene::of(&["restore", "Harbour nights", "--at", "7", "--as", "Early"])
    }),
    ("restore", "restore-to", |stage| {
        begun(stage);
        Scene::of(&["restore", "Mira/a", "--to", "../../out"])
    }),
    ("restore", "restore-all", |stage| {
        begun(stage);
        remove(stage, &[A, BOOK, C, NIGHT, CREW]);
        Scene::of(&["restore", "--all"])
    }),
    ("restore", "restore-all-overwrite", |stage| {
        replaced(stage);
        Scene::of(&["restore", "--all", "--overwrite"])
    }),
    ("restore", "restore-card", |stage| {
        furnished(stage);
        stage.write("one", CARD, b"another card");
        Scene::of(&["restore", "characters/Mira", "--overwrite"])
    }),
    ("restore", "restore-attachment", |stage| {
        furnished(stage);
        remove(stage, &[A, MAP]);
        Scene::of(&["restore", "Mira/a"])
    }),
    ("extension", "extension-install", |stage| {
        begun(stage);
        Scene::of(&["extension", "install"])
    }),
    ("extension", "extension-update", |stage| {
        begun(stage);
        stage.stvc("one", &["extension", "install"]).exits(0);
        remove(stage, &["extensions/stvc/deeds.js", "extensions/stvc/page.js"]);
        stage.write("one", "extensions/stvc/notes.txt", b"mine");
        Scene::of(&["extension", "update"])
    }),
    ("extension", "extension-remove", |stage| {
        begun(stage);
        stage.stvc("one", &["extension", "install"]).exits(0);
        Scene::of(&["extension", "remove"])
    }),
    ("restore", "restore-lorebook", |stage| {
        begun(stage);
        remove(stage, &[BOOK]);
        Scene::of(&["restore", "worlds/Harbour"])
    }),
    ("restore", "restore-whole-library", |stage| {
        furnished(stage);
        remove(stage, &[A, B, C, BOOK, CARD, MAP, NIGHT, CREW]);
        Scene::of(&["restore", "--all"])
    }),
    ("fork", "fork", |stage| {
        begun(stage);
        stage.append("one", A, &message("later", 0));
        Scene::of(&["fork", "Mira/a", "--at", "1", "--as", "What if"])
    }),
    ("undo", "undo-restore", |stage| {
        let id = replaced(stage);
        stage.stvc("one", &["restore", &id, "--overwrite"]).exits(0);
        Scene::of(&["undo"]).once()
    }),
    ("undo", "undo-restore-all", |stage| {
        replaced(stage);
        stage.stvc("one", &["restore", "--all", "--overwrite"]).exits(0);
        Scene::of(&["undo"]).once()
    }),
    ("undo", "undo-fork", |stage| {
        begun(stage);
        stage.append("one", A, &message("later", 0));
        stage.stvc("one", &["fork", "Mira/a", "--at", "1", "--as", "What if"]).exits(0);
        Scene::of(&["undo"]).once()
    }),
    ("merge", "merge", |stage| {
        begun(stage);
        stage.stvc("one", &["restore", "Mira/a", "--as", "What if"]).exits(0);
        let theirs =
            stage.files("one").into_keys().find(|path| path.starts_with("worlds/") && path != BOOK);
        stage.write("one", BOOK, book(&[PIER_NOW, GULL]));
        let bell = (2, "Bell", "It rings three times before dawn.");
        stage.write("one", &theirs.unwrap(), book(&[PIER, GULL, bell]));
        Scene::of(&["merge", "Mira/a", "What if", "--yes"])
    }),
    ("doctor", "doctor-fix", |stage| {
        empty(stage, "one");
        let main = RecapLibrary::default();
        stage.write("one", &main.book_path(), main.book_bytes());
        for library in [main.clone(), main.fork("Branch #1", 7), main.fork("Dawn", 11)] {
            stage.write("one", &library.chat_path(), library.chat_bytes());
        }
        stage.snapshot("one");
        Scene::of(&["doctor", "--fix", "--yes"])
    }),
    ("doctor", "doctor-missing", |stage| {
        begun(stage);
        day(stage, "one");
        remove(stage, &[BOOK]);
        Scene::of(&["doctor", "--fix", "--yes"])
    }),
    ("doctor", "doctor-damaged", |stage| {
        begun(stage);
        day(stage, "one");
        stage.snapshot("one");
        stage.write("one", BOOK, [0; 300]);
        Scene::of(&["doctor", "--fix", "--yes"])
    }),
    // The lorebook goes together with its entry in the map of checkpoints.
    ("doctor", "doctor-orphan", |stage| {
        empty(stage, "one");
        let mut main = RecapLibrary::default();
        let map = r#"{"checkpoint_lorebook_map":{"Gone":"Left behind","Other":"Elsewhere"}}"#;
        main.more.push(("auto_recap".into(), map.into()));
        stage.write("one", &main.book_path(), main.book_bytes());
        stage.write("one", "worlds/Left behind.json", main.book_bytes());
        stage.write("one", &main.chat_path(), main.chat_bytes());
        stage.snapshot("one");
        Scene::of(&["doctor", "--fix", "--yes"])
    }),
];

pub fn remove(stage: &Stage, paths: &[&str]) {
    for path in paths {
        fs::remove_file(stage.library("one").join(path)).unwrap();
    }
}

/// A library with what belongs to its chats, stored.
fn furnished(stage: &mut Stage) {
    small(stage, "one");
    belongings(stage, "one");
    stage.snapshot("one");
}

/// A state that was stored, another that was not, in both files; the id of the first.
fn replaced(stage: &mut Stage) -> String {
    begun(stage);
    let first = stage.acks.iter().find(|ack| ack.files.contains_key(A)).unwrap().id.clone();
    stage.append("one", A, &message("later", 0));
    stage.snapshot("one");
    stage.write("one", A, chat("quite another", 2, Some("Harbour")));
    stage.append("one", B, &message("later", 1));
    stage.write("one", BOOK, book(&[PIER_NOW]));
    first
}
