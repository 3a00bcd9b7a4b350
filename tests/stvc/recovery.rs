//! Everything is lost except the store or a backup.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::common::{Answer, Sandbox, answer, assert_same, chat, files, fixtures, text};
#[cfg(target_os = "linux")]
use crate::running::Running;

#[test]
fn everything_is_restored_from_the_store_alone() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    for entry in fs::read_dir(sandbox.library()).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true if entry.ends_with(".stvc") => {}
            true => fs::remove_dir_all(entry).unwrap(),
            false => fs::remove_file(entry).unwrap(),
        }
    }
    sandbox.stvc(&["log"]).exits(0);
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(!status.is_empty() && status.iter().all(|line| line["state"] == "deleted"));
    sandbox.stvc(&["restore", "--all"]).exits(0);
    let after = sandbox.files();
    for (path, bytes) in before.iter().filter(|(path, _)| path.contains("chats/")) {
        assert!(after.get(path) == Some(bytes), "{path}");
    }
}

#[test]
fn everything_is_restored_into_a_fresh_sillytavern() {
    let full = Sandbox::from_fixture("1.19.0");
    let backup = full.folder().join("all.stvc");
    full.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    for from in [".", "public/scripts"] {
        let fresh = Sandbox::without_library();
        let install = fresh.library();
        for folder in ["public/scripts", "default/content", "src"] {
            fs::create_dir_all(install.join(folder)).unwrap();
        }
        fs::write(install.join("server.js"), "").unwrap();
        let run = |arguments: &[&str]| {
            answer(fresh.command(arguments).current_dir(install.join(from)).output().unwrap())
        };
        let refused = run(&["status"]).exits(1);
        assert!(refused.stderr.contains("was never started"), "{}", refused.stderr);
        assert!(refused.stderr.contains("stvc import"), "{}", refused.stderr);
        run(&["import", backup.to_str().unwrap()]).exits(0);
        run(&["restore", "--all"]).exits(0);
        let back = fs::read(install.join("data/default-user").join(chat)).unwrap();
        assert!(back == full.read(chat));
        // The folder can be named explicitly.
        run(&["--data", install.to_str().unwrap(), "status"]).exits(0);
    }
}

const SETTINGS: &str = r#"{"power_user":{"personas":{"user-default.png":"User"},"persona_descriptions":{"user-default.png":{"description":"","position":0}}},"tags":[{"name":"ST Default"}]}"#;
const OWN_SETTINGS: &str = r#"{"power_user":{"personas":{"user-default.png":"Ines"},"persona_descriptions":{"user-default.png":{"description":"tall","position":0}}}}"#;
const GREETING: &str = "chats/default_Seraphina/Seraphina.jsonl";

/// Returns the files that SillyTavern creates at its first start: the name in `default/content`,
/// the path in the user's folder, and the content.
fn default_files() -> [(&'static str, &'static str, Vec<u8>); 4] {
    let card = |name: &str| {
        let folder = fixtures().join("1.19.0/default-user/characters");
        fs::read(folder.join(name)).unwrap()
    };
    [
        ("settings.json", "settings.json", br#"{"firstRun":true}"#.to_vec()),
        ("default_Seraphina.png", "characters/default_Seraphina.png", card("Mira Voss.png")),
        ("user-default.png", "User Avatars/user-default.png", card("Ærin 雪 🦊.png")),
        ("Eldoria.json", "worlds/Eldoria.json", br#"{"entries":{}}"#.to_vec()),
    ]
}

/// A SillyTavern that was started once, and whose page was opened once.
struct FreshInstall {
    sandbox: Sandbox,
    install: PathBuf,
}

impl FreshInstall {
    fn new() -> Self {
        let sandbox = Sandbox::without_library();
        let install = sandbox.folder().join("SillyTavern");
        for folder in ["public/scripts", "default/content", "data/default-user/chats"] {
            fs::create_dir_all(install.join(folder)).unwrap();
        }
        fs::write(install.join("server.js"), "").unwrap();
        let fresh = Self { sandbox, install };
        for (name, path, bytes) in default_files() {
            fs::write(fresh.install.join("default/content").join(name), &bytes).unwrap();
            fresh.write(path, &bytes);
        }
        fresh.write("settings.json", SETTINGS.as_bytes());
        // A chat that was only opened has only the greeting.
        let greeting = String::from_utf8(chat("hello", 1, None)).unwrap();
        fresh.write(GREETING, greeting.replace("true", "false").as_bytes());
        fresh
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.install.join("data/default-user").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = files(&self.install.join("data/default-user"));
        files.retain(|path, _| !path.starts_with(".stvc"));
        files
    }

    fn stvc(&self, arguments: &[&str]) -> Answer {
        answer(self.sandbox.command(arguments).current_dir(&self.install).output().unwrap())
    }
}

/// Creates a library whose user changed the files that SillyTavern created, and a backup of it.
fn library_in_use() -> (Sandbox, PathBuf) {
    let full = Sandbox::from_fixture("1.19.0");
    for (_, path, bytes) in default_files() {
        full.write(path, bytes);
    }
    full.stvc(&["config", "include.settings", "true"]).exits(0);
    full.stvc(&["snapshot"]).exits(0);
    full.write("settings.json", OWN_SETTINGS);
    full.write("worlds/Eldoria.json", r#"{"entries":{"0":{"uid":0,"content":"The sea."}}}"#);
    full.write("User Avatars/user-default.png", full.read("characters/Mira Voss.png"));
    let backup = full.folder().join("all.stvc");
    full.stvc(&["backup", text(&backup)]).exits(0);
    (full, backup)
}

fn stored(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let folders = ["chats/", "group chats/", "groups/", "worlds/", "characters/", "User Avatars/"];
    let is_stored = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    files.retain(|path, _| path == "settings.json" || is_stored(path));
    files
}

#[test]
fn import_with_restore_recovers_everything_with_one_command() {
    let (full, backup) = library_in_use();
    let fresh = FreshInstall::new();
    let before = fresh.files();
    let plan = fresh.stvc(&["import", text(&backup), "--restore", "--dry-run"]).exits(0);
    assert!(plan.stdout.contains("Every timeline would then be restored."), "{plan:?}");
    assert_same(&fresh.files(), &before);
    let done = fresh.stvc(&["--json", "import", text(&backup), "--restore"]).exits(0);
    let [summary] = done.of_type("summary").try_into().unwrap();
    assert_eq!((&summary["command"], &summary["failed"]), (&"import".into(), &0.into()));
    let mut expected = stored(full.files());
    expected.insert(GREETING.into(), before[GREETING].clone());
    assert_same(&stored(fresh.files()), &expected);
    // A repetition changes nothing.
    let again = fresh.stvc(&["import", text(&backup), "--restore"]).exits(0);
    assert!(again.stdout.contains("Nothing to do"), "{again:?}");
    assert_same(&stored(fresh.files()), &expected);
    // One undo reverts the restore and the import.
    fresh.stvc(&["undo"]).exits(0);
    assert_same(&fresh.files(), &before);
    let mut timelines = fresh.stvc(&["--json", "timelines"]).exits(0).of_type("timeline");
    // The files that were replaced have been stored.
    timelines.retain(|it| !it["head"].is_null());
    let names: Vec<_> = timelines.iter().map(|it| it["timeline"].as_str().unwrap()).collect();
    assert_eq!(names, ["settings.json", "User Avatars/user-default.png", "worlds/Eldoria"]);
}

#[test]
fn import_with_restore_leaves_files_that_somebody_worked_on() {
    let (full, backup) = library_in_use();
    let fresh = FreshInstall::new();
    let mine: [(&str, &[u8]); 3] = [
        ("settings.json", br#"{"power_user":{"persona_description":"short"}}"#),
        ("worlds/Eldoria.json", br#"{"entries":{"0":{"uid":0,"content":"Mine."}}}"#),
        ("User Avatars/user-default.png", b"a picture of mine"),
    ];
    mine.iter().for_each(|(path, bytes)| fresh.write(path, bytes));
    let partly = fresh.stvc(&["import", text(&backup), "--restore"]).exits(3);
    assert!(partly.stdout.contains("3 timelines not restored"), "{partly:?}");
    let after = fresh.files();
    for (path, bytes) in mine {
        assert_eq!(after[path], bytes, "{path}");
    }
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    assert!(after[chat] == full.read(chat));
    fresh.stvc(&["restore", "--all", "--overwrite"]).exits(0);
    assert_eq!(fresh.files()["settings.json"], OWN_SETTINGS.as_bytes());
}

#[test]
fn import_with_restore_keeps_settings_of_a_user_who_wrote_messages() {
    let (_full, backup) = library_in_use();
    let fresh = FreshInstall::new();
    fresh.write("chats/Mira Voss/new.jsonl", b"{}\n{\"is_user\":true,\"mes\":\"Hello.\"}");
    fresh.stvc(&["import", text(&backup), "--restore"]).exits(3);
    let after = fresh.files();
    assert_eq!(after["settings.json"], SETTINGS.as_bytes());
    assert_ne!(after["worlds/Eldoria.json"], br#"{"entries":{}}"#);
}

#[test]
#[cfg(target_os = "linux")]
fn import_with_restore_names_the_next_step_if_sillytavern_is_running() {
    let (full, backup) = library_in_use();
    let here = Sandbox::empty();
    for (_, path, bytes) in default_files() {
        here.write(path, bytes);
    }
    here.write("settings.json", SETTINGS);
    let running = Running::on(&here, "");
    let partly = here.stvc(&["import", text(&backup), "--restore"]).exits(3);
    let hint = "Close SillyTavern's page, then run `stvc restore --all --overwrite --chat-closed`";
    assert!(partly.stdout.contains(hint), "{partly:?}");
    here.stvc(&["restore", "--all", "--overwrite", "--chat-closed"]).exits(0);
    assert_same(&stored(here.files()), &stored(full.files()));
    drop(running);
}

#[test]
fn import_with_restore_needs_a_backup_of_stvc() {
    let fresh = FreshInstall::new();
    fresh.stvc(&["import", "--restore"]).exits(2);
    let folder = fresh.install.join("public");
    let refused = fresh.stvc(&["import", text(&folder), "--restore"]).exits(2);
    assert!(refused.stderr.contains("needs a backup that stvc created"), "{refused:?}");
}
