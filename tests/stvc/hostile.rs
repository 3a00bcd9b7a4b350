//! Stores that are not stvc's, malicious stores, and unwritable places.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{
    A, Sandbox, Stored, assert_no_control_characters, assert_no_panic, assert_valid, chat, check,
    git, tree,
};

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 4, None));
    sandbox
}

/// Asserts that every command refuses the store with `words` and changes no byte.
#[track_caller]
fn assert_refused_and_unchanged(sandbox: &Sandbox, store: &Path, words: &str) {
    let before = tree(sandbox.folder());
    for arguments in [
        &["init"][..],
        &["snapshot"],
        &["snapshot", "--tag", "t"],
        &["status"],
        &["timelines"],
        &["log"],
        &["check"],
        &["tag"],
        &["tag", "t", "abcd"],
        &["show", "abcd"],
        &["diff", "abcd"],
        &["restore", "abcd", "--overwrite"],
    ] {
        let all = [&["--store", store.to_str().unwrap()], arguments].concat();
        let answer = assert_no_panic(sandbox.stvc(&all)).exits(1);
        assert!(answer.stderr.contains(words), "{arguments:?}: {}", answer.stderr);
        assert!(
            answer.stderr.contains(store.to_str().unwrap()),
            "{arguments:?}: {}",
            answer.stderr
        );
    }
    let after = tree(sandbox.folder());
    let changed: Vec<_> = after
        .keys()
        .chain(before.keys())
        .filter(|key| after.get(*key) != before.get(*key))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
fn foreign_repository_is_refused_and_unchanged() {
    let sandbox = library();
    let theirs = sandbox.folder().join("theirs");
    fs::create_dir(&theirs).unwrap();
    git(&theirs, &["init", "-q"]);
    assert_refused_and_unchanged(
        &sandbox,
        &theirs,
        "a git repository that was not created by stvc",
    );
    fs::write(theirs.join("file"), "theirs").unwrap();
    git(&theirs, &["add", "file"]);
    let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "theirs"];
    git(&theirs, &commit);
    assert_refused_and_unchanged(
        &sandbox,
        &theirs,
        "a git repository that was not created by stvc",
    );
    let bare = sandbox.folder().join("bare.git");
    git(&theirs, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    assert_refused_and_unchanged(&sandbox, &bare, "a git repository that was not created by stvc");
}

#[test]
fn file_or_unrelated_folder_is_not_a_store() {
    let sandbox = library();
    let file = sandbox.folder().join("file");
    fs::write(&file, "something").unwrap();
    assert_refused_and_unchanged(&sandbox, &file, "is not a store and not empty");
    let folder = sandbox.folder().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter"), "something").unwrap();
    assert_refused_and_unchanged(&sandbox, &folder, "is not a store and not empty");
}

#[test]
fn commands_report_a_missing_store() {
    let sandbox = library();
    let before = tree(sandbox.folder());
    for arguments in [
        &["log"][..],
        &["check"],
        &["show", "abcd"],
        &["restore", "abcd"],
        &["tag"],
        &["diff", "abcd"],
    ] {
        let answer = assert_no_panic(sandbox.stvc(arguments)).exits(10);
        assert!(answer.stderr.contains(".stvc"), "{arguments:?}: {}", answer.stderr);
    }
    assert_eq!(tree(sandbox.folder()), before);
}

#[test]
fn store_of_a_newer_format_is_refused_and_unchanged() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    for number in ["3", "10", "99999999999999999999"] {
        let words = format!("stvc store format {number}");
        let sum = blake3::hash(words.as_bytes()).to_hex();
        fs::write(sandbox.store().join("stvc/format"), format!("{words} {}\n", &sum[..8])).unwrap();
        assert_refused_and_unchanged(&sandbox, &sandbox.store(), &format!("format {number}"));
    }
}

/// Commits an edited copy of the snapshot's manifest and returns the id.
fn forge(sandbox: &Sandbox, id: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut manifest =
        serde_json::from_str(&sandbox.git(&["cat-file", "blob", &format!("{id}:snapshot.json")]))
            .unwrap();
    edit(&mut manifest);
    let blob = write_object(sandbox, "blob", manifest.to_string().as_bytes());
    let listing = sandbox.git(&["ls-tree", id]);
    let mut entries = Vec::new();
    for line in listing.lines() {
        let (what, name) = line.split_once('\t').unwrap();
        let mut what = what.split(' ');
        let (mode, object) = (what.next().unwrap(), what.next_back().unwrap());
        let object = if name == "snapshot.json" { blob.as_str() } else { object };
        entries.extend(tree_entry(mode, name, object));
    }
    forge_tree(sandbox, id, &entries)
}

/// Commits a tree of these bytes in place of the snapshot's, on a new branch, and returns the id.
fn forge_tree(sandbox: &Sandbox, id: &str, entries: &[u8]) -> String {
    let tree = write_object(sandbox, "tree", entries);
    let commit = sandbox.git(&["cat-file", "commit", id]);
    let (_, rest) = commit.split_once('\n').unwrap();
    let commit = write_object(sandbox, "commit", format!("tree {tree}\n{rest}").as_bytes());
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/forged", &commit]);
    commit
}

fn tree_entry(mode: &str, name: &str, object: &str) -> Vec<u8> {
    let raw = (0..20).map(|n| u8::from_str_radix(&object[2 * n..2 * n + 2], 16).unwrap());
    let mode = mode.trim_start_matches('0');
    format!("{mode} {name}\0").into_bytes().into_iter().chain(raw).collect()
}

fn write_object(sandbox: &Sandbox, kind: &str, bytes: &[u8]) -> String {
    let file = sandbox.folder().join("object");
    fs::write(&file, bytes).unwrap();
    let arguments = ["hash-object", "-w", "--literally", "-t", kind, file.to_str().unwrap()];
    let id = sandbox.git(&arguments).trim().to_owned();
    fs::remove_file(file).unwrap();
    id
}

/// Asserts that every way to restore the forged snapshot fails with `words` and writes nothing.
#[track_caller]
fn assert_writes_nothing(sandbox: &Sandbox, forged: &str, words: &str) {
    let before = tree(sandbox.folder());
    let target = sandbox.folder().join("library/below/out");
    for arguments in [
        &["restore", forged][..],
        &["restore", forged, "--overwrite"],
        &["restore", forged, "--to", target.to_str().unwrap()],
    ] {
        let answer = assert_no_panic(sandbox.stvc(arguments)).exits(1);
        assert!(answer.stderr.contains(words), "{arguments:?}: {}", answer.stderr);
        assert_no_control_characters(&answer);
    }
    assert_eq!(
        tree(sandbox.folder()).keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    for arguments in [&["show", forged][..], &["diff", forged], &["log"], &["status"]] {
        assert_no_control_characters(&assert_no_panic(sandbox.stvc(arguments)));
    }
}

#[test]
fn req_39_manifest_of_a_newer_format_is_refused() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    let forged = forge(&sandbox, &stored.id, |manifest| manifest["format"] = 3.into());
    fs::remove_file(sandbox.path(A)).unwrap();
    assert_writes_nothing(&sandbox, &forged, "format 3");
    let (code, words) = check(&sandbox);
    assert_eq!(code, 1);
    assert!(words.contains(&forged) && words.contains("format 3"), "{words}");
    stored.assert_restores(&sandbox);
}

#[test]
fn manifest_cannot_name_paths_outside_the_library() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    fs::remove_file(sandbox.path(A)).unwrap();
    let absolute = sandbox.folder().join("absolute").to_str().unwrap().to_owned();
    for path in [
        "../../evil",
        "../evil",
        "chats/../../evil",
        &absolute,
        "",
        ".",
        "..",
        "chats//evil",
        "chats\\..\\evil",
        "C:evil",
        "C:/evil",
        "nul\0l",
    ] {
        let forged =
            forge(&sandbox, &stored.id, |manifest| manifest["files"][0]["path"] = path.into());
        assert_writes_nothing(&sandbox, &forged, "is not a valid name of a library file");
    }
    stored.assert_restores(&sandbox);
}

/// Being inside the library does not suffice: a snapshot may write its chat, lorebook and group
/// only.
#[test]
fn manifest_can_only_name_files_of_its_timeline() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    fs::remove_file(sandbox.path(A)).unwrap();
    for path in [
        ".stvc/hooks/post-update",
        ".stvc/stvc/evil",
        "secrets.json",
        "chats/Mira/../evil.jsonl",
        "worlds/evil.json",
    ] {
        let forged =
            forge(&sandbox, &stored.id, |manifest| manifest["files"][0]["path"] = path.into());
        assert_no_panic(sandbox.stvc(&["restore", &forged]));
        assert!(!sandbox.path(path).exists(), "{path} was written");
    }
}

#[test]
fn tree_with_dot_segments_writes_nothing_outside_the_library() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    let id = &stored.id;
    let object =
        |path: &str| sandbox.git(&["rev-parse", &format!("{id}:{path}")]).trim().to_owned();
    let (manifest, chat) = (object("snapshot.json"), object("chat"));
    let evil = write_object(&sandbox, "blob", b"evil");
    fs::remove_file(sandbox.path(A)).unwrap();
    let dots = tree_entry("100644", "..", &evil);
    let whole = [
        &dots[..],
        &tree_entry("40000", "chat", &chat),
        &tree_entry("100644", "snapshot.json", &manifest),
    ]
    .concat();
    let before = tree(sandbox.folder()).len();
    // A file that the manifest does not name is never written.
    let forged = forge_tree(&sandbox, id, &whole);
    assert_no_panic(sandbox.stvc(&["restore", &forged])).exits(0);
    assert_eq!(sandbox.read(A), stored.bytes);
    fs::remove_file(sandbox.path(A)).unwrap();
    // A tree as a message, a blob as a folder, a link.
    for (mode, name, object) in [
        ("40000", "chat", &evil),
        ("100644", "chat", &evil),
        ("120000", "chat", &chat),
        ("160000", "chat", &chat),
    ] {
        let entries =
            [tree_entry(mode, name, object), tree_entry("100644", "snapshot.json", &manifest)]
                .concat();
        let forged = forge_tree(&sandbox, id, &entries);
        let answer = assert_no_panic(sandbox.stvc(&["restore", &forged])).exits(1);
        assert!(!answer.stderr.is_empty());
        assert_eq!(check(&sandbox).0, 1);
    }
    assert!(!sandbox.path(A).exists());
    let new: Vec<_> =
        tree(sandbox.folder()).into_keys().filter(|key| !key.contains(".stvc")).collect();
    assert!(new.len() < before && !new.iter().any(|key| key.contains("evil")), "{new:?}");
}

/// A user may have moved a character's chats to another disk: they are read and restored through
/// the link.
#[cfg(unix)]
#[test]
fn restore_follows_links_owned_by_the_user() {
    let sandbox = library();
    let outside = sandbox.folder().join("outside");
    fs::rename(sandbox.path("chats/Mira"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.path("chats/Mira")).unwrap();
    let stored = Stored::take(&sandbox, A);
    let bytes = sandbox.read(A);
    fs::remove_file(outside.join("a.jsonl")).unwrap();
    assert_no_panic(sandbox.stvc(&["restore", &stored.id])).exits(0);
    assert_eq!(fs::read(outside.join("a.jsonl")).unwrap(), bytes);
    assert!(sandbox.path("chats/Mira").is_symlink());
    assert_no_panic(sandbox.stvc(&["undo"])).exits(0);
    assert!(!outside.join("a.jsonl").exists());
}

/// Only root can give a link to another user.
#[cfg(unix)]
#[test]
fn links_owned_by_another_user_are_reported_and_not_followed() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    let outside = sandbox.folder().join("outside");
    fs::rename(sandbox.path("chats/Mira"), &outside).unwrap();
    let link = sandbox.path("chats/Mira");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    if std::os::unix::fs::lchown(&link, Some(4711), Some(4711)).is_err() {
        return;
    }
    fs::write(outside.join("b.jsonl"), "{}").unwrap();
    let taken = sandbox.json(&["snapshot"]);
    let findings = taken.of_type("finding");
    assert!(findings.iter().any(|it| it["subject"] == "chats/Mira"), "{findings:?}");
    let log = sandbox.json(&["log"]).of_type("snapshot");
    assert!(log.iter().all(|it| it["timeline"] != "chats/Mira/b"), "{log:?}");
    fs::remove_file(outside.join("a.jsonl")).unwrap();
    let answer = assert_no_panic(sandbox.stvc(&["restore", &stored.id])).exits(1);
    assert!(answer.stderr.contains("a link created by another user"), "{}", answer.stderr);
    assert!(!outside.join("a.jsonl").exists());
}

#[test]
fn control_characters_of_a_foreign_store_do_not_reach_the_terminal() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, A);
    let evil = "\u{1b}[31m\u{7}\u{9b}2J\u{202e}\r";
    let commit = sandbox.git(&["cat-file", "commit", &stored.id]);
    let commit = commit
        .replace("a: 4 messages", evil)
        .replace("Last-Words: ", &format!("Last-Words: {evil}"));
    let commit = commit.replace("Stvc-Kind: snapshot", &format!("Stvc-Kind: {evil}"));
    let commit = commit.replace("chats/Mira/a", "chats/Mi%1B[31mra/a%07%C2%9B%0A");
    let forged = write_object(&sandbox, "commit", commit.as_bytes());
    sandbox.git(&["update-ref", "refs/heads/evil", &forged]);
    sandbox.git(&["update-ref", "refs/tags/%1B]0;x%07", &forged]);
    sandbox.append(
        A,
        &serde_json::json!({ "name": evil, "mes": evil, "extra": { evil: evil } }).to_string(),
    );
    for arguments in [
        &["log"][..],
        &["log", "--graph"],
        &["timelines"],
        &["status"],
        &["tag"],
        &["show", &forged],
        &["diff", &stored.id],
        &["restore", &forged, "--dry-run"],
        &["snapshot"],
        &["show", "chats/Mira/a"],
        &["check"],
    ] {
        let answer = assert_no_panic(sandbox.stvc(arguments));
        assert_no_control_characters(&answer);
    }
    let shown = sandbox.stvc(&["show", "chats/Mira/a"]).exits(0);
    assert!(shown.stdout.contains("\\u{1b}"), "{}", shown.stdout);
}

/// A place in which not even root can create a folder.
#[test]
fn unwritable_folder_is_reported_and_nothing_is_lost() {
    let sandbox = library();
    fs::write(sandbox.folder().join("file"), "something").unwrap();
    let store = sandbox.folder().join("file/store");
    let before = tree(sandbox.folder());
    let answer =
        assert_no_panic(sandbox.stvc(&["--store", store.to_str().unwrap(), "snapshot"])).exits(1);
    assert!(answer.stderr.contains("file"), "{}", answer.stderr);
    assert_eq!(tree(sandbox.folder()), before);

    let stored = Stored::take(&sandbox, A);
    fs::remove_dir_all(sandbox.path("chats/Mira")).unwrap();
    sandbox.write("chats/Mira", "a file where the folder was");
    let answer = assert_no_panic(sandbox.stvc(&["restore", &stored.id])).exits(1);
    assert!(answer.stderr.contains("Mira"), "{}", answer.stderr);
    assert_eq!(sandbox.read("chats/Mira"), b"a file where the folder was");
    let target = sandbox.folder().join("file/out");
    let answer =
        assert_no_panic(sandbox.stvc(&["restore", &stored.id, "--to", target.to_str().unwrap()]))
            .exits(1);
    assert!(answer.stderr.contains("file"), "{}", answer.stderr);
    assert_valid(&sandbox);
}
