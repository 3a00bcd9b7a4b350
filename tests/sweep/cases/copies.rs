//! Copies elsewhere, and taking them in: a file, a folder, a git server, SillyTavern's own backups.

use super::devices::reach;
use super::store::begun;
use super::{Listed, SERVER, SHARED, Scene};
use crate::stage::Stage;
use crate::world::{A, chat, day, empty, message, small};

const FILE: &str = "../../copy.stvc";

pub const CASES: &[Listed] = &[
    ("backup", "backup-file", |stage| {
        begun(stage);
        Scene::of(&["backup", FILE]).copy("copy.stvc")
    }),
    ("backup", "backup-file-again", |stage| {
        backed_up(stage, FILE);
        Scene::of(&["backup", FILE]).copy("copy.stvc")
    }),
    ("backup", "backup-folder", |stage| {
        begun(stage);
        Scene::of(&["backup", SHARED]).copy("shared")
    }),
    ("backup", "backup-folder-again", |stage| {
        backed_up(stage, SHARED);
        Scene::of(&["backup", SHARED, "--prune"]).copy("shared")
    }),
    ("backup", "backup-git", |stage| {
        begun(stage);
        reach(stage, &["one"]);
        Scene::of(&["backup", SERVER]).copy("server.git")
    }),
    ("backup", "backup-git-again", |stage| {
        reach(stage, &["one"]);
        backed_up(stage, SERVER);
        Scene::of(&["backup", SERVER]).copy("server.git")
    }),
    ("import", "import-backups", |stage| {
        begun(stage);
        for n in 1..4 {
            let file = format!("backups/chat_mira_20260101-12000{n}.jsonl");
            stage.write("one", &file, chat("a", n, Some("Harbour")));
        }
        let other = "backups/chat_nobody_20260101-120000.jsonl";
        stage.write("one", other, chat("stranger", 3, None));
        Scene::of(&["import"]).history()
    }),
    ("import", "import-file", |stage| {
        elsewhere(stage, FILE);
        Scene::of(&["import", FILE]).history()
    }),
    ("import", "import-folder", |stage| {
        elsewhere(stage, SHARED);
        Scene::of(&["import", SHARED]).history()
    }),
    ("import", "import-git", |stage| {
        reach(stage, &["one", "two"]);
        elsewhere(stage, SERVER);
        Scene::of(&["import", SERVER]).history()
    }),
    ("import", "import-new", |stage| {
        elsewhere(stage, FILE);
        std::fs::remove_dir_all(stage.disk().join("one")).unwrap();
        stage.acks.clear();
        empty(stage, "one");
        Scene::of(&["import", FILE]).history()
    }),
];

/// A first backup, and what happened since.
fn backed_up(stage: &mut Stage, place: &str) {
    begun(stage);
    stage.stvc("one", &["tag", "keep", "Mira/a"]).exits(0);
    stage.stvc("one", &["backup", place]).exits(0);
    stage.stvc("one", &["tag", "-d", "keep"]).exits(0);
    day(stage, "one");
    stage.snapshot("one");
}

/// Another device's backup, of which a part is here, too.
fn elsewhere(stage: &mut Stage, place: &str) {
    small(stage, "two");
    stage.stvc("two", &["snapshot"]).exits(0);
    stage.stvc("two", &["tag", "mark", "Mira/a"]).exits(0);
    day(stage, "two");
    stage.stvc("two", &["snapshot"]).exits(0);
    stage.stvc("two", &["backup", place]).exits(0);
    empty(stage, "one");
    stage.write("one", A, chat("a", 3, None));
    stage.write("one", "chats/Mira/own.jsonl", chat("own", 2, None));
    stage.snapshot("one");
    stage.append("one", A, &message("one", 5));
    stage.snapshot("one");
}
