//! A lorebook has its own timeline, whichever chats are bound to it.

use super::*;

#[test]
fn change_of_a_shared_lorebook_is_stored_once() {
    let mut sandbox = library();
    for n in 0..30 {
        sandbox.write(&format!("chats/Mira/branch {n}.jsonl"), chat("Mira", 3, Some("Harbour")));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Harbour.json", book("dry"));
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let new: Vec<_> = taken.iter().filter(|line| line["unchanged"] == false).collect();
    assert_eq!(new.len(), 1);
    assert_eq!(new[0]["timeline"], "worlds/Harbour");
    assert_eq!(new[0]["entries"], 1);
    // It shares its objects with the chats' snapshots.
    let tree = |of: &str| sandbox.git(&["rev-parse", of]);
    assert_eq!(
        tree("refs/heads/worlds/Harbour~1:lorebooks/Harbour"),
        tree("refs/heads/chats/Mira/one:lorebooks/Harbour")
    );
    let run = |sandbox: &Sandbox, command: &[&str]| sandbox.stvc(command).exits(0).stdout;
    assert_eq!(run(&sandbox, &["log", "worlds/Harbour"]).lines().count(), 2);
    assert!(run(&sandbox, &["diff", "worlds/Harbour~1", "worlds/Harbour"]).contains("Pier"));
    let shown = run(&sandbox, &["show", "lorebook / Harbour"]);
    assert!(shown.contains("used by") && shown.contains("32 chats, character Mira"), "{shown}");
    assert!(run(&sandbox, &["search", "dry"]).contains("lorebook / Harbour"));
    // A chat's latest moment has the current messages and lorebook; a snapshot has those of its
    // time.
    let former = sandbox.read("chats/Mira/one.jsonl");
    fs::remove_file(sandbox.path("chats/Mira/one.jsonl")).unwrap();
    fs::remove_file(sandbox.path("worlds/Harbour.json")).unwrap();
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/one"]);
    sandbox.stvc(&["restore", "Mira/one"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/one.jsonl"), former);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("dry").into_bytes());
    sandbox.wait(60);
    sandbox.stvc(&["restore", id.trim(), "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("wet").into_bytes());
    // The lorebook's latest snapshot equals the file, after the former ones.
    let states = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
    assert!(run(&sandbox, &["diff", "worlds/Harbour~1", "worlds/Harbour"]).contains("wet"));
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("dry").into_bytes());
    sandbox.stvc(&["check"]).exits(0);
}

/// A lorebook change between a message and the next one belongs to the first.
#[test]
fn message_is_restored_with_the_lorebook_just_before_the_next_message() {
    let mut sandbox = library();
    for (words, n) in [("first", 3), ("second", 4)] {
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.write("worlds/Harbour.json", book(words));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.append("chats/Mira/one.jsonl", &message("Mira", n));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Harbour.json", book("much later"));
    sandbox.stvc(&["snapshot"]).exits(0);
    for (at, words) in [("2", "first"), ("3", "second")] {
        let to = sandbox.folder().join(at);
        sandbox.stvc(&["restore", "Mira/one", "--at", at, "--to", text(&to)]).exits(0);
        assert_eq!(files(&to)["worlds/Harbour.json"], book(words).into_bytes(), "{at}");
    }
}

#[test]
fn lorebooks_can_be_restored_copied_and_renamed() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.write("worlds/Unbound 雪.json", book("changed"));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1"]).exits(4);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--as", "As it was.json"]).exits(0);
    assert_eq!(sandbox.read("worlds/As it was.json"), book("nobody asks").into_bytes());
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--as", "As it was"]).exits(4);
    sandbox.stvc(&["restore", "worlds/Unbound 雪~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("worlds/Unbound 雪.json"), book("nobody asks").into_bytes());
    sandbox.stvc(&["restore", "groups/9", "--as", "10"]).exits(2);

    sandbox.wait(60);
    fs::rename(sandbox.path("worlds/Harbour.json"), sandbox.path("worlds/Port.json")).unwrap();
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let port = taken.iter().find(|line| line["timeline"] == "worlds/Port").unwrap();
    assert_eq!(port["renamed_from"], "worlds/Harbour");
    assert_eq!(sandbox.stvc(&["log", "worlds/Port"]).exits(0).stdout.lines().count(), 2);
    assert!(!places(&sandbox).contains(&"worlds/Harbour".to_owned()));
    // A copy starts with the history of its source.
    fs::copy(sandbox.path("worlds/Port.json"), sandbox.path("worlds/Twin.json")).unwrap();
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot");
    let twin = taken.iter().find(|line| line["timeline"] == "worlds/Twin").unwrap();
    assert_eq!(twin["parents"][0], port["id"]);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

/// Eight chats with one lorebook that was changed on two devices.
#[test]
fn req_82_conflict_in_a_shared_lorebook_is_reported_once() {
    let mut one = Sandbox::empty();
    let mut two = Sandbox::empty();
    let folder = one.folder().join("shared");
    one.write("worlds/Harbour.json", book("old"));
    for n in 0..8 {
        one.write(&format!("chats/Mira/{n}.jsonl"), chat(&n.to_string(), 3, Some("Harbour")));
    }
    let sync = |sandbox: &mut Sandbox, code| {
        sandbox.wait(60);
        sandbox.json(&["sync", text(&folder)]).exits(code)
    };
    sync(&mut one, 0);
    sync(&mut two, 0);
    one.write("worlds/Harbour.json", book("one"));
    two.write("worlds/Harbour.json", book("two"));
    two.append("chats/Mira/3.jsonl", &message("two", 9));
    sync(&mut one, 0);
    let answer = sync(&mut two, 3);
    let synced = answer.of_type("synced");
    let conflicts: Vec<_> = synced.iter().filter(|line| line["conflicts"] != 0).collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["timeline"], "worlds/Harbour");
    let count = |sandbox: &Sandbox| {
        sandbox.files().keys().filter(|path| path.starts_with("chats/")).count()
    };
    assert_eq!(count(&two), 8);
    // Everything else is synced: the new message is there.
    sync(&mut one, 3);
    assert_eq!(count(&one), 8);
    assert_eq!(one.read("chats/Mira/3.jsonl"), two.read("chats/Mira/3.jsonl"));
    // Each sync repeats an unresolved conflict, because the earlier report may not have been seen.
    let again = sync(&mut two, 3).of_type("synced");
    assert_eq!(again.iter().filter(|line| line["conflicts"] != 0).count(), 1);
    sync(&mut one, 3);
    let settle = conflicts[0]["settle"].as_str().unwrap();
    let other = settle.split('"').nth(1).unwrap();
    two.stvc(&["merge", "worlds/Harbour", other, "--keep", "b", "--yes"]).exits(0);
    assert_eq!(two.read("worlds/Harbour.json"), book("two").into_bytes());
    sync(&mut two, 0);
    sync(&mut one, 0);
    assert_eq!(one.read("worlds/Harbour.json"), book("two").into_bytes());
    // The opposite choice: the local value stays.
    one.write("worlds/Harbour.json", book("three"));
    two.write("worlds/Harbour.json", book("four"));
    sync(&mut one, 0);
    let conflict = sync(&mut two, 3).of_type("synced");
    let conflict = conflict.iter().find(|line| line["conflicts"] != 0).unwrap();
    let other = conflict["settle"].as_str().unwrap().split('"').nth(1).unwrap().to_owned();
    two.stvc(&["merge", "worlds/Harbour", &other, "--keep", "a", "--yes"]).exits(0);
    sync(&mut two, 0);
    sync(&mut one, 0);
    assert_eq!(one.read("worlds/Harbour.json"), book("three").into_bytes());
    for device in [&one, &two] {
        device.stvc(&["check"]).exits(0);
    }
}
