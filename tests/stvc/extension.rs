//! `stvc extension` installs, updates and removes its own files only.

use std::fs;

use crate::common::{Sandbox, chat};

const FOLDER: &str = "extensions/stvc";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("one", 2, None));
    sandbox
}

#[test]
fn extension_is_installed_and_removed() {
    let sandbox = library();
    sandbox.write("user/files/picture.png", "mine");
    sandbox.write("user/files/stvc-req-2.json/mine.txt", "a folder of such a name");
    let before = sandbox.files();
    let installed = sandbox.json(&["extension"]).exits(0).of_type("extension");
    assert!(installed[0]["installed"].is_null() && installed[0]["watch"] == false);
    sandbox.stvc(&["extension", "install"]).exits(0);
    let manifest: serde_json::Value =
        serde_json::from_slice(&sandbox.read("extensions/stvc/manifest.json")).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    for (name, text) in stvc::api::extension::files() {
        assert_eq!(sandbox.read(&format!("{FOLDER}/{name}")), text.as_bytes());
        // It loads nothing from other hosts and builds no HTML from strings.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "innerHTML", "eval("] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
    // A second update changes nothing; an incomplete installation is completed.
    sandbox.stvc(&["extension", "update"]).exits(0);
    fs::remove_file(sandbox.path("extensions/stvc/actions.js")).unwrap();
    sandbox.stvc(&["extension", "update"]).exits(0);
    assert!(sandbox.path("extensions/stvc/actions.js").exists());
    for name in ["status", "settings", "req-1", "res-1"] {
        sandbox.write(&format!("user/files/stvc-{name}.json"), "{}");
    }
    sandbox.stvc(&["extension", "remove"]).exits(0);
    assert!(!sandbox.path(FOLDER).exists());
    let after = sandbox.files();
    assert_eq!(after, before);
    sandbox.stvc(&["extension", "remove"]).exits(0);
}

#[test]
fn extension_commands_keep_files_that_stvc_did_not_create() {
    let sandbox = library();
    sandbox.write("extensions/stvc/index.js", "// somebody else's");
    for deed in ["install", "update", "remove"] {
        let refused = sandbox.stvc(&["extension", deed]).exits(4);
        assert!(
            refused.stderr.contains("already exists and was not created by stvc"),
            "{}",
            refused.stderr
        );
    }
    fs::remove_dir_all(sandbox.path(FOLDER)).unwrap();
    sandbox.stvc(&["extension", "install"]).exits(0);
    sandbox.write("extensions/stvc/words.js", "// edited");
    sandbox.write("extensions/stvc/notes.txt", "mine");
    let refused = sandbox.stvc(&["extension", "update"]).exits(4);
    assert!(refused.stderr.contains("words.js"), "{}", refused.stderr);
    fs::remove_file(sandbox.path("extensions/stvc/words.js")).unwrap();
    sandbox.stvc(&["extension", "remove"]).exits(0);
    assert_eq!(sandbox.read("extensions/stvc/notes.txt"), b"mine");
}

/// Makes the installed files look like an older version: other modules, and one more.
fn make_older_version(sandbox: &Sandbox) {
    sandbox.stvc(&["extension", "install"]).exits(0);
    let note = sandbox.path("extensions/stvc/stvc.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
    manifest["version"] = "0.0.1".into();
    for name in ["index.js", "former.js"] {
        let text = format!("// {name} of an older version");
        sandbox.write(&format!("{FOLDER}/{name}"), &text);
        manifest["files"][name] = blake3::hash(text.as_bytes()).to_hex().to_string().into();
    }
    fs::write(note, manifest.to_string()).unwrap();
    sandbox.write("extensions/stvc/notes.txt", "mine");
}

/// Asserts that every file has this version and that the user's file is there.
#[track_caller]
fn assert_updated(sandbox: &Sandbox) {
    for (name, text) in stvc::api::extension::files() {
        assert_eq!(sandbox.read(&format!("{FOLDER}/{name}")), text.as_bytes(), "{name}");
    }
    assert!(!sandbox.path("extensions/stvc/former.js").exists());
    assert_eq!(sandbox.read("extensions/stvc/notes.txt"), b"mine");
    let names: Vec<_> = fs::read_dir(sandbox.path("extensions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["stvc"]);
}

#[test]
fn update_replaces_modules_and_keeps_user_files() {
    let sandbox = library();
    make_older_version(&sandbox);
    let installed = sandbox.json(&["extension"]).exits(0).of_type("extension");
    assert_eq!(installed[0]["installed"], "0.0.1");
    sandbox.stvc(&["extension", "update"]).exits(0);
    assert_updated(&sandbox);
}

/// A concurrent reader sees all modules of one version, or no folder.
#[test]
fn update_never_mixes_old_and_new_modules() {
    let sandbox = library();
    make_older_version(&sandbox);
    let new: std::collections::BTreeMap<_, _> = stvc::api::extension::files().into_iter().collect();
    let mut update = sandbox.command(&["extension", "--quiet", "update"]).spawn().unwrap();
    let mut is_over = false;
    while !is_over {
        is_over = update.try_wait().unwrap().is_some();
        // An open folder stays one version, even if another takes its name.
        let Ok(folder) = fs::File::open(sandbox.path(FOLDER)) else { continue };
        #[cfg(target_os = "linux")]
        let folder = {
            use std::os::fd::AsRawFd;
            std::path::PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
        };
        #[cfg(not(target_os = "linux"))]
        let folder = {
            let _ = folder;
            sandbox.path(FOLDER)
        };
        let Ok(index) = fs::read_to_string(folder.join("index.js")) else { continue };
        if index == new["index.js"] {
            assert!(!folder.join("former.js").exists());
            for (name, text) in &new {
                assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), *text, "{name}");
            }
        }
    }
    assert!(update.wait().unwrap().success());
    assert_updated(&sandbox);
}

#[test]
fn interrupted_update_is_completed_or_reverted_by_the_next_update() {
    let aside = ".stvc-replaced/stvc";
    // The old folder is moved away, and the new one is not in place yet.
    let sandbox = library();
    make_older_version(&sandbox);
    let extensions = sandbox.path("extensions");
    fs::create_dir(extensions.join(".stvc-replaced")).unwrap();
    fs::rename(extensions.join("stvc"), extensions.join(aside)).unwrap();
    sandbox.stvc(&["extension", "update"]).exits(0);
    assert_updated(&sandbox);
    // The new folder is in place, and the user's files are still in the old one.
    let sandbox = library();
    make_older_version(&sandbox);
    let extensions = sandbox.path("extensions");
    fs::create_dir(extensions.join(".stvc-replaced")).unwrap();
    fs::rename(extensions.join("stvc"), extensions.join(aside)).unwrap();
    let other = library();
    other.stvc(&["extension", "install"]).exits(0);
    crate::common::copy_folder(&other.path(FOLDER), &sandbox.path(FOLDER));
    sandbox.stvc(&["extension", "update"]).exits(0);
    assert_updated(&sandbox);
    sandbox.stvc(&["extension", "remove"]).exits(0);
    assert_eq!(sandbox.read("extensions/stvc/notes.txt"), b"mine");
}

#[cfg(unix)]
#[test]
fn link_or_git_clone_in_place_of_the_extension_is_not_changed() {
    let sandbox = library();
    let elsewhere = sandbox.folder().join("my-clone");
    fs::create_dir_all(elsewhere.join(".git")).unwrap();
    fs::write(elsewhere.join("index.js"), "// mine").unwrap();
    fs::create_dir_all(sandbox.path("extensions")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, sandbox.path(FOLDER)).unwrap();
    sandbox.stvc(&["extension", "update"]).exits(4);
    fs::remove_file(sandbox.path(FOLDER)).unwrap();
    crate::common::copy_folder(&elsewhere, &sandbox.path(FOLDER));
    sandbox.stvc(&["extension", "update"]).exits(4);
    assert_eq!(sandbox.read("extensions/stvc/index.js"), b"// mine");
    assert!(sandbox.path("extensions/stvc/.git").exists());
}
