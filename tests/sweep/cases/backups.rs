//! Backups and imports: a file, a folder, a git server, SillyTavern's own backups.

use super::devices::create_server;
use super::store::stored_library;
use super::{CaseEntry, SERVER, SHARED, Scene};
use crate::stage::Stage;
use crate::world::{A, chat, empty_library, message, small_library, write_for_a_day};

const FILE: &str = "../../copy.stvc";

pub const CASES: &[CaseEntry] = &[
    ("backup", "backup-file", |stage| {
        stored_library(stage);
        Scene::new(&["backup", FILE]).backup("copy.stvc")
    }),
    ("backup", "backup-file-again", |stage| {
        backed_up(stage, FILE);
        Scene::new(&["backup", FILE]).backup("copy.stvc")
    }),
    ("backup", "backup-file-unchanged", |stage| {
        stored_library(stage);
        stage.stvc("one", &["backup", FILE]).exits(0);
        Scene::new(&["backup", FILE]).backup("copy.stvc")
    }),
    ("backup", "backup-folder", |stage| {
        stored_library(stage);
        Scene::new(&["backup", SHARED]).backup("shared")
    }),
    ("backup", "backup-folder-again", |stage| {
        backed_up(stage, SHARED);
        Scene::new(&["backup", SHARED, "--prune"]).backup("shared")
    }),
    ("backup", "backup-git", |stage| {
        stored_library(stage);
        create_server(stage, &["one"]);
        Scene::new(&["backup", SERVER]).backup("server.git")
    }),
    ("backup", "backup-git-again", |stage| {
        create_server(stage, &["one"]);
        backed_up(stage, SERVER);
        Scene::new(&["backup", SERVER]).backup("server.git")
    }),
    ("import", "import-backups", |stage| {
        stored_library(stage);
        for n in 1..4 {
            let file = format!("backups/chat_mira_20260101-12000{n}.jsonl");
            stage.write("one", &file, chat("a", n, Some("Harbour")));
        }
        let other = "backups/chat_nobody_20260101-120000.jsonl";
        stage.write("one", other, chat("stranger", 3, None));
        Scene::new(&["import"]).compare_history()
    }),
    ("import", "import-file", |stage| {
        other_device_backup(stage, FILE);
        Scene::new(&["import", FILE]).compare_history()
    }),
    ("import", "import-folder", |stage| {
        other_device_backup(stage, SHARED);
        Scene::new(&["import", SHARED]).compare_history()
    }),
    ("import", "import-git", |stage| {
        create_server(stage, &["one", "two"]);
        other_device_backup(stage, SERVER);
        Scene::new(&["import", SERVER]).compare_history()
    }),
    ("import", "import-new", |stage| {
        other_device_backup(stage, FILE);
        std::fs::remove_dir_all(stage.disk().join("one")).unwrap();
        stage.acks.clear();
        empty_library(stage, "one");
        Scene::new(&["import", FILE]).compare_history()
    }),
    ("import", "import-and-restore", |stage| {
        other_device_backup(stage, FILE);
        std::fs::remove_dir_all(stage.disk().join("one")).unwrap();
        stage.acks.clear();
        empty_library(stage, "one");
        Scene::new(&["import", FILE, "--restore"]).compare_history()
    }),
];

/// Takes a first backup and then changes the library.
fn backed_up(stage: &mut Stage, place: &str) {
    stored_library(stage);
    stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
    stage.stvc("one", &["backup", place]).exits(0);
    stage.stvc("one", &["tag", "-d", "keep"]).exits(0);
    write_for_a_day(stage, "one");
    stage.snapshot("one");
}

/// Creates another device's backup that overlaps with this library.
fn other_device_backup(stage: &mut Stage, place: &str) {
    small_library(stage, "two");
    stage.stvc("two", &["snapshot"]).exits(0);
    stage.stvc("two", &["tag", "mark", "Mira/a"]).exits(0);
    write_for_a_day(stage, "two");
    stage.stvc("two", &["snapshot"]).exits(0);
    stage.stvc("two", &["backup", place]).exits(0);
    empty_library(stage, "one");
    stage.write("one", A, chat("a", 3, None));
    stage.write("one", "chats/Mira/own.jsonl", chat("own", 2, None));
    stage.snapshot("one");
    stage.append("one", A, &message("one", 5));
    stage.snapshot("one");
}
