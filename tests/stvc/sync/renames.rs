//! A rename is synced as a rename, whatever the other device changed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::outcome;
use crate::common::devices::{Remote, chats_and_lorebooks, sync, sync_until_equal, synced_pair};
use crate::common::{A, Sandbox, chat, message, text};

const Z: &str = "chats/Mira/z.jsonl";
const Y: &str = "chats/Mira/y.jsonl";

fn rename(device: &Sandbox, from: &str, to: &str) {
    fs::rename(device.path(from), device.path(to)).unwrap();
}

fn says(device: &Sandbox, path: &str, words: &str) -> bool {
    String::from_utf8(device.read(path)).unwrap().contains(words)
}

/// Syncs both devices twice and asserts that they have these files.
fn sync_twice(one: &mut Sandbox, two: &mut Sandbox, folder: &Path, files: &[&str]) {
    for _ in 0..2 {
        sync(one, folder);
        sync(two, folder);
    }
    for device in [&*one, &*two] {
        let chats: Vec<_> = chats_and_lorebooks(device).into_keys().collect();
        assert_eq!(chats, files);
    }
    sync_until_equal(one, two, folder);
}

fn renamed_while_other_device_wrote(remote: impl Fn(&Sandbox) -> Remote) {
    let (mut one, mut two) = (Sandbox::empty(), Sandbox::empty());
    one.write(A, chat("a", 3, None));
    let remote = remote(&one);
    let [remote, _] = [&one, &two].map(|device| remote.address(device));
    sync(&mut one, &remote);
    sync(&mut two, &remote);
    rename(&two, A, Z);
    sync(&mut two, &remote);
    one.append(A, &message("one", 4));
    let answer = sync(&mut one, &remote);
    assert_eq!(outcome(&answer, "chats/Mira/z"), "merged");
    let synced = answer.iter().find(|line| line["type"] == "synced").unwrap();
    assert_eq!(synced["other"], "chats/Mira/a");
    sync_twice(&mut one, &mut two, &remote, &[Z]);
    assert!(says(&two, Z, "one"));
    // Later syncs of both devices succeed.
    for n in 5..8 {
        one.append(Z, &message("more of one", n));
        sync(&mut one, &remote);
        sync(&mut two, &remote);
    }
    sync_twice(&mut one, &mut two, &remote, &[Z]);
}

#[test]
fn chat_renamed_on_one_device_keeps_new_messages_through_a_folder() {
    renamed_while_other_device_wrote(Remote::folder);
}

#[test]
#[cfg(unix)]
fn chat_renamed_on_one_device_keeps_new_messages_through_a_server() {
    renamed_while_other_device_wrote(Remote::server);
}

#[test]
fn chat_renamed_on_this_device_gets_messages_of_the_other_device() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    two.append(A, &message("two", 4));
    sync(&mut two, &folder);
    rename(&one, A, Z);
    sync(&mut one, &folder);
    sync_twice(&mut one, &mut two, &folder, &[Z]);
    assert!(says(&one, Z, "two"));
}

#[test]
fn chat_renamed_on_both_devices_gets_the_name_that_was_synced_first() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    rename(&two, A, Z);
    two.append(Z, &message("two", 4));
    sync(&mut two, &folder);
    rename(&one, A, Y);
    sync_twice(&mut one, &mut two, &folder, &[Z]);
}

#[test]
fn chats_that_swap_their_names_are_swapped_on_the_other_device() {
    const B: &str = "chats/Mira/b.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(B, chat("b", 4, None));
    });
    for (from, to) in [(A, Z), (B, A), (Z, B)] {
        rename(&two, from, to);
        two.stvc(&["snapshot"]).exits(0);
        two.wait(60);
    }
    one.append(A, &message("one", 9));
    sync_twice(&mut one, &mut two, &folder, &[A, B]);
    assert!(says(&two, B, "one"));
}

#[test]
fn chat_renamed_to_a_used_name_does_not_replace_the_other_chat() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    rename(&two, A, Z);
    sync(&mut two, &folder);
    one.write(Z, chat("another", 2, None));
    one.append(A, &message("one", 4));
    let other = "chats/Mira/z (other version 2026-11-14).jsonl";
    sync_twice(&mut one, &mut two, &folder, &[other, Z]);
    assert!(says(&two, other, "another") && says(&two, Z, "one"));
    // Each keeps its own history.
    let log = two.json(&["log", "Mira/z (other version 2026-11-14)"]).exits(0);
    assert!(!log.of_type("snapshot").iter().any(|line| line["timeline"] == "chats/Mira/a"));
}

#[test]
fn new_chat_with_a_reused_name_is_not_mixed_with_the_renamed_chat() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    rename(&one, A, Z);
    one.stvc(&["snapshot"]).exits(0);
    one.write(A, chat("another", 2, None));
    two.append(A, &message("two", 4));
    sync(&mut two, &folder);
    sync_twice(&mut one, &mut two, &folder, &[A, Z]);
    for device in [&one, &two] {
        assert!(says(device, Z, "two") && says(device, A, "another"));
    }
}

#[test]
fn renamed_group_chat_is_listed_only_under_its_new_name() {
    const GROUP: &str = "groups/7.json";
    let group = |chats: &[&str]| {
        json!({ "id": "7", "name": "Crew", "members": [], "chat_id": chats[0], "chats": chats })
            .to_string()
    };
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(GROUP, group(&["night"]));
        one.write("group chats/night.jsonl", chat("g", 3, None));
    });
    rename(&two, "group chats/night.jsonl", "group chats/day.jsonl");
    two.write(GROUP, group(&["day"]));
    sync(&mut two, &folder);
    one.append("group chats/night.jsonl", &message("one", 4));
    for _ in 0..2 {
        sync(&mut one, &folder);
        sync(&mut two, &folder);
    }
    for device in [&one, &two] {
        assert!(says(device, "group chats/day.jsonl", "one"));
        assert!(!device.path("group chats/night.jsonl").exists());
        let group: Value = serde_json::from_slice(&device.read(GROUP)).unwrap();
        assert_eq!((&group["chats"], &group["chat_id"]), (&json!(["day"]), &json!("day")));
    }
}

#[test]
fn next_sync_repeats_an_undone_rename() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    rename(&two, A, Z);
    sync(&mut two, &folder);
    one.append(A, &message("one", 4));
    sync(&mut one, &folder);
    one.stvc(&["undo"]).exits(0);
    assert!(one.path(A).exists() && !one.path(Z).exists());
    sync_twice(&mut one, &mut two, &folder, &[Z]);
}

#[test]
fn chat_keeps_its_file_while_its_new_name_is_in_use() {
    const B: &str = "chats/Mira/b.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(B, chat("b", 4, None));
    });
    for (from, to) in [(A, Z), (B, A)] {
        rename(&two, from, to);
        two.stvc(&["snapshot"]).exits(0);
        two.wait(60);
    }
    sync(&mut two, &folder);
    // Unreadable, so it has no snapshot and cannot be moved away.
    fs::create_dir(one.path(Z)).unwrap();
    let before = (one.read(A), one.read(B));
    let answer = one.json(&["sync", text(&folder)]).exits(3);
    assert_eq!(outcome(&answer.lines(), "chats/Mira/z"), "skipped");
    assert_eq!((one.read(A), one.read(B)), before);
    fs::remove_dir(one.path(Z)).unwrap();
    sync_twice(&mut one, &mut two, &folder, &[A, Z]);
}

#[test]
fn chain_of_renames_is_synced() {
    const B: &str = "chats/Mira/b.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(B, chat("b", 4, None));
    });
    rename(&one, A, Z);
    rename(&one, B, A);
    two.append(A, &message("two", 9));
    sync_twice(&mut one, &mut two, &folder, &[A, Z]);
    assert!(says(&one, Z, "two") && says(&one, A, "b 0"));
}

#[test]
fn new_chat_with_a_deleted_name_does_not_replace_the_remote_chat() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(Y, chat("y", 3, None));
    });
    fs::remove_file(two.path(A)).unwrap();
    sync(&mut two, &folder);
    two.write(A, chat("another", 2, None));
    sync(&mut two, &folder);
    one.append(A, &message("one", 4));
    let mut answer = sync(&mut one, &folder);
    for _ in 0..2 {
        sync(&mut two, &folder);
        answer = sync(&mut one, &folder);
    }
    let earlier = "chats/Mira/a (earlier chat 2026-11-14).jsonl";
    assert!(says(&one, A, "another") && says(&one, earlier, "one"), "{answer:?}");
    assert!(says(&two, A, "another"));
}

#[test]
fn lorebook_rename_on_one_device_keeps_new_messages_of_the_other() {
    const HARBOUR: &str = "worlds/Harbour.json";
    const PORT: &str = "worlds/Port.json";
    let with_port = |device: &Sandbox| {
        let renamed = String::from_utf8(device.read(A)).unwrap().replace("Harbour", "Port");
        device.write(A, renamed);
        rename(device, HARBOUR, PORT);
    };
    for writer_is_first in [false, true] {
        let (mut one, mut two, folder) = synced_pair(|one| {
            one.write(HARBOUR, super::book(&[("0", "Pier", "old")]));
            one.write(A, chat("a", 3, Some("Harbour")));
        });
        with_port(&one);
        two.append(A, &message("two", 4));
        if writer_is_first {
            sync(&mut two, &folder);
        }
        sync_twice(&mut one, &mut two, &folder, &[A, PORT]);
        assert!(says(&one, A, "\"Port\"") && says(&one, A, "two"));
    }
}

#[test]
fn undone_sync_of_names_that_differ_only_in_case_creates_no_copy() {
    const B: &str = "chats/Mira/b.jsonl";
    const BIG: &str = "chats/Mira/Z.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(B, chat("b", 4, None));
    });
    rename(&one, A, Z);
    sync(&mut one, &folder);
    rename(&two, B, BIG);
    sync(&mut two, &folder);
    two.stvc(&["undo"]).exits(0);
    for _ in 0..3 {
        sync(&mut two, &folder);
        sync(&mut one, &folder);
    }
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 2, "{:?}", chats_and_lorebooks(&one).keys());
}

#[test]
fn lorebooks_that_swap_names_keep_changes_of_the_other_device() {
    const L: &str = "worlds/L.json";
    const M: &str = "worlds/M.json";
    const B: &str = "chats/Mira/b.jsonl";
    let book_of = |kind: &str, value: &str| {
        super::book(&[("0", &format!("{kind} 0"), kind), ("1", &format!("{kind} 1"), value)])
    };
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(L, book_of("key", "old"));
        one.write(M, book_of("moon", "old"));
        one.write(A, chat("a", 3, Some("L")));
        one.write(B, chat("b", 3, Some("M")));
    });
    for (from, to) in [(L, "worlds/x.json"), (M, L), ("worlds/x.json", M)] {
        rename(&one, from, to);
    }
    one.write(A, chat("a", 3, Some("M")));
    one.write(B, chat("b", 3, Some("L")));
    two.write(L, book_of("key", "of two"));
    sync_twice(&mut one, &mut two, &folder, &[A, B, L, M]);
    assert!(says(&one, M, "of two") && says(&one, M, "key 1") && !says(&one, L, "of two"));
}

#[test]
fn new_chat_with_a_name_deleted_on_all_devices_is_synced() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(Y, chat("y", 3, None));
    });
    for device in [&mut one, &mut two] {
        fs::remove_file(device.path(A)).unwrap();
        sync(device, &folder);
    }
    sync(&mut one, &folder);
    two.write(A, chat("another", 2, None));
    sync_twice(&mut two, &mut one, &folder, &[A, Y]);
    assert_eq!(one.json(&["log", "Mira/a"]).exits(0).of_type("snapshot").len(), 1);
}

#[test]
fn chat_renamed_before_the_first_sync_is_not_duplicated() {
    let [mut one, mut two] = [(); 2].map(|()| Sandbox::empty());
    for device in [&one, &two] {
        device.write(A, chat("a", 3, None));
        device.write(Y, chat("y", 3, None));
    }
    let folder = one.folder().join("shared");
    rename(&two, A, Z);
    two.append(Z, &message("two", 4));
    sync(&mut one, &folder);
    // The name that reached the remote first counts.
    sync_twice(&mut two, &mut one, &folder, &[A, Y]);
    assert!(says(&one, A, "two"));
}

#[test]
fn chats_whose_names_differ_in_case_keep_their_own_lorebooks() {
    const L: &str = "worlds/L.json";
    const BIG: &str = "chats/Mira/A.jsonl";
    let [mut one, mut two] = [(BIG, "one"), (A, "two")].map(|(path, value)| {
        let device = Sandbox::empty();
        device.write(L, super::book(&[("0", "Pier", value)]));
        device.write(path, chat(value, 2, Some("L")));
        device
    });
    let folder = one.folder().join("shared");
    sync(&mut two, &folder);
    let other = "worlds/L (other version 2026-11-14).json";
    let aside = "chats/Mira/A (other version 2026-11-14).jsonl";
    sync_twice(&mut one, &mut two, &folder, &[aside, A, other, L]);
    assert!(says(&two, aside, "L (other version 2026-11-14)") && says(&two, other, "one"));
}

#[test]
fn group_changed_on_both_devices_keeps_the_chats_of_both() {
    const GROUP: &str = "groups/7.json";
    let group = |name: &str, chats: &[&str]| {
        json!({ "id": "7", "name": name, "members": [], "chat_id": chats[0], "chats": chats })
            .to_string()
    };
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(GROUP, group("Crew", &["night"]));
        one.write("group chats/night.jsonl", chat("g", 3, None));
    });
    one.write("group chats/day.jsonl", chat("day", 3, None));
    one.write(GROUP, group("Crew", &["day", "night"]));
    two.write(GROUP, group("Pirates", &["night"]));
    for _ in 0..2 {
        sync(&mut two, &folder);
        sync(&mut one, &folder);
    }
    for device in [&one, &two] {
        let group: Value = serde_json::from_slice(&device.read(GROUP)).unwrap();
        assert_eq!(group["name"], "Pirates");
        let mut chats: Vec<_> = group["chats"].as_array().unwrap().iter().collect();
        chats.sort_by_key(|chat| chat.as_str());
        assert_eq!(chats, ["day", "night"]);
    }
}
