//! Everything is lost except the store or a backup.

use std::fs;

use crate::common::{Sandbox, answer};

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
