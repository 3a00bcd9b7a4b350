//! A value that two devices changed: each device calls its own value local, and the printed command
//! keeps the named one.

use serde_json::Value;

use super::{BOOK, book, outcome};
use crate::common::devices::{chats_and_lorebooks, sync, sync_until_equal, synced_pair};
use crate::common::{A, Sandbox, chat, git, message, text};

/// Creates two named devices that changed one value; the second has just synced.
fn conflict() -> (Sandbox, Sandbox, std::path::PathBuf, Vec<Value>) {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(BOOK, book(&[("0", "Pier", "old")]));
        one.write(A, chat("a", 3, Some("Harbour")));
    });
    one.stvc(&["config", "device", "desk"]).exits(0);
    two.stvc(&["config", "device", "phone"]).exits(0);
    one.write(BOOK, book(&[("0", "Pier", "of the desk")]));
    two.write(BOOK, book(&[("0", "Pier", "of the phone")]));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    (one, two, folder, answer)
}

fn sync_output(device: &mut Sandbox, folder: &std::path::Path) -> String {
    device.wait(60);
    device.stvc(&["sync", text(folder)]).exits(3).stdout
}

/// Runs the printed command for one side.
fn keep(device: &Sandbox, side: &str) {
    let other = "worlds/Harbour (other version 2026-11-14)";
    let plan = device.stvc(&["merge", "worlds/Harbour", other]).exits(0).stdout;
    assert!(plan.contains("--keep local --yes") && plan.contains("--keep remote --yes"), "{plan}");
    device.stvc(&["merge", "worlds/Harbour", other, "--keep", side, "--yes"]).exits(0);
}

#[test]
fn each_device_calls_its_own_value_local() {
    let (mut one, mut two, folder, _) = conflict();
    for (device, own, other) in
        [(&mut two, "of the phone", "of the desk"), (&mut one, "of the desk", "of the phone")]
    {
        let output = sync_output(device, &folder);
        let has = |label: &str, value: &str| {
            output.lines().any(|line| line.contains(label) && line.contains(value))
        };
        assert!(has(" local: ", own), "{output}");
        assert!(has(" remote", other), "{output}");
    }
    let output = sync_output(&mut one, &folder);
    assert!(output.contains("remote (phone): "), "{output}");
}

#[test]
fn first_sync_of_each_device_reports_the_conflict() {
    let (mut one, _two, folder, answer) = conflict();
    for lines in [answer, sync(&mut one, &folder)] {
        let line = lines.iter().find(|line| line["timeline"] == "worlds/Harbour").unwrap();
        assert_eq!((&line["conflicts"], &line["lorebook"]), (&1.into(), &BOOK.into()));
    }
}

#[test]
fn keep_local_and_keep_remote_use_the_values_printed_on_that_device() {
    for (on_two, side, kept) in [
        (true, "local", "of the phone"),
        (true, "remote", "of the desk"),
        (false, "local", "of the desk"),
        (false, "remote", "of the phone"),
    ] {
        let (mut one, mut two, folder, _) = conflict();
        sync(&mut one, &folder);
        keep(if on_two { &two } else { &one }, side);
        for _ in 0..2 {
            for device in [&mut two, &mut one] {
                device.wait(60);
                device.json(&["sync", text(&folder)]);
            }
        }
        for device in [&mut one, &mut two] {
            let has = String::from_utf8(device.read(BOOK)).unwrap();
            assert!(has.contains(kept), "{on_two} {side}: {has}");
            // Resolved on all devices.
            device.wait(60);
            device.stvc(&["sync", text(&folder)]).exits(0);
        }
        sync_until_equal(&mut one, &mut two, &folder);
    }
}

#[test]
fn merge_without_file_changes_reports_the_resolved_conflict() {
    let (_one, two, ..) = conflict();
    let other = "worlds/Harbour (other version 2026-11-14)";
    let output =
        two.stvc(&["merge", "worlds/Harbour", other, "--keep", "remote", "--yes"]).exits(0).stdout;
    assert!(
        output.contains("Conflicts resolved: worlds/Harbour.json keeps its values"),
        "{output}"
    );
    assert!(
        !output.contains("nothing else differs") && !output.contains("Merged and verified"),
        "{output}"
    );
}

#[test]
fn keep_local_is_refused_without_a_conflict() {
    let device = Sandbox::empty();
    device.write("worlds/One.json", book(&[("0", "Pier", "one")]));
    device.write("worlds/Two.json", book(&[("0", "Pier", "two")]));
    device.stvc(&["snapshot"]).exits(0);
    let refused = device.stvc(&["merge", "worlds/One", "worlds/Two", "--keep", "local", "--yes"]);
    let refused = refused.exits(2);
    assert!(refused.stderr.contains("--keep a"), "{}", refused.stderr);
}

#[test]
fn sync_after_undoing_a_sync_with_a_conflict_creates_no_second_copy() {
    let (mut one, mut two, folder, _) = conflict();
    let files = two.files();
    two.stvc(&["undo"]).exits(0);
    sync(&mut two, &folder);
    assert_eq!(two.files().keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
    sync_until_equal(&mut one, &mut two, &folder);
    // Neither does that of a chat that grew on both sides.
    one.append(A, &message("one", 7));
    two.append(A, &message("two", 7));
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    let files = two.files();
    two.stvc(&["undo"]).exits(0);
    sync(&mut two, &folder);
    assert_eq!(two.files().keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 3);
}

#[test]
fn settings_stored_by_one_device_do_not_replace_those_of_the_other() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    one.stvc(&["config", "include.settings", "true"]).exits(0);
    for (device, theme) in [(&one, "dark"), (&two, "light")] {
        device.write("settings.json", format!("{{\"theme\":\"{theme}\"}}"));
    }
    sync(&mut one, &folder);
    let two_has = two.read("settings.json");
    assert_eq!(outcome(&sync(&mut two, &folder), "settings.json"), "new");
    one.write("settings.json", "{\"theme\":\"grey\"}");
    sync(&mut one, &folder);
    assert_eq!(outcome(&sync(&mut two, &folder), "settings.json"), "forward");
    assert_eq!(two.read("settings.json"), two_has);
    // It may contain passwords.
    sync(&mut one, &folder);
    assert_eq!(one.read("settings.json"), b"{\"theme\":\"grey\"}");
    let sent = git(&folder, &["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!String::from_utf8_lossy(&sent).contains("light"));
    let status = two.json(&["status"]).exits(0).of_type("timeline");
    assert!(!status.iter().any(|line| line["state"] == "deleted"), "{status:?}");
    sync_until_equal(&mut one, &mut two, &folder);
}

#[test]
fn messages_written_after_an_undone_sync_create_no_second_copy() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    one.append(A, &message("one", 7));
    two.append(A, &message("two", 7));
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    two.stvc(&["undo"]).exits(0);
    two.append(A, &message("two again", 8));
    sync(&mut two, &folder);
    sync_until_equal(&mut one, &mut two, &folder);
    let files = chats_and_lorebooks(&one);
    let aside = "chats/Mira/a (other version 2026-11-14).jsonl";
    assert_eq!(files.keys().collect::<Vec<_>>(), [aside, A]);
    assert!(String::from_utf8_lossy(&files[aside]).contains("two again"));
}

#[test]
fn undo_of_a_sync_after_conflict_resolution_creates_no_second_copy() {
    for settled_here in [false, true] {
        let (mut one, mut two, folder, _) = conflict();
        sync(&mut one, &folder);
        keep(if settled_here { &two } else { &one }, "local");
        sync(if settled_here { &mut two } else { &mut one }, &folder);
        sync(if settled_here { &mut one } else { &mut two }, &folder);
        let device = if settled_here { &mut one } else { &mut two };
        device.stvc(&["undo"]).exits(0);
        for _ in 0..3 {
            for device in [&mut one, &mut two] {
                device.wait(60);
                device.json(&["sync", text(&folder)]);
            }
        }
        let books = |device: &Sandbox| {
            device.files().into_keys().filter(|path| path.starts_with("worlds/")).count()
        };
        assert_eq!((books(&one), books(&two)), (2, 2), "{settled_here}");
        sync_until_equal(&mut one, &mut two, &folder);
    }
}

#[test]
fn third_device_reports_every_open_conflict_of_a_lorebook() {
    let (mut one, mut two, folder, _) = conflict();
    let mut three = Sandbox::empty();
    sync(&mut three, &folder);
    let mut found: Value = serde_json::from_slice(&three.read(BOOK)).unwrap();
    found["entries"]["0"]["content"] = "of the tablet".into();
    three.write(BOOK, found.to_string());
    one.write(BOOK, book(&[("0", "Pier", "of the desk again")]));
    sync(&mut one, &folder);
    sync(&mut three, &folder);
    for device in [&mut one, &mut two, &mut three] {
        let lines = sync(device, &folder);
        let open = lines.iter().filter(|line| line["type"] == "synced" && line["conflicts"] == 1);
        let settle: std::collections::BTreeSet<_> =
            open.map(|line| line["settle"].to_string()).collect();
        assert_eq!(settle.len(), 2, "{lines:?}");
    }
}

#[test]
fn conflict_resolved_differently_on_two_devices_is_a_new_conflict() {
    let (mut one, mut two, folder, _) = conflict();
    sync(&mut one, &folder);
    keep(&one, "local");
    keep(&two, "local");
    sync(&mut one, &folder);
    let lines = sync(&mut two, &folder);
    let line = lines.iter().find(|line| line["timeline"] == "worlds/Harbour").unwrap();
    assert_eq!(line["conflicts"], 1, "{lines:?}");
    let all = two.files();
    for value in ["of the desk", "of the phone"] {
        let has = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(value);
        assert!(all.values().any(has), "{value} is lost");
    }
}

#[test]
fn deleting_the_other_version_resolves_the_conflict_on_all_devices() {
    let (mut one, mut two, folder, _) = conflict();
    sync(&mut one, &folder);
    std::fs::remove_file(two.path("worlds/Harbour (other version 2026-11-14).json")).unwrap();
    for _ in 0..2 {
        for device in [&mut two, &mut one] {
            device.wait(60);
            device.json(&["sync", text(&folder)]);
        }
    }
    for device in [&mut one, &mut two] {
        device.wait(60);
        device.stvc(&["sync", text(&folder)]).exits(0);
    }
    let kept = book(&[("0", "Pier", "of the desk")]).into_bytes();
    assert_eq!(one.read(BOOK), kept);
    assert_eq!(two.read(BOOK), kept);
}

#[test]
fn metadata_changed_on_both_devices_yields_exactly_two_chats() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    let with_note = |device: &Sandbox, note: &str| {
        let text = String::from_utf8(device.read(A)).unwrap();
        let note = format!("\"chat_metadata\":{{\"note\":\"{note}\"}}");
        device.write(A, text.replacen("\"chat_metadata\":{}", &note, 1));
    };
    with_note(&two, "two");
    sync(&mut two, &folder);
    two.append(A, &message("two again", 8));
    with_note(&one, "one");
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    sync_until_equal(&mut one, &mut two, &folder);
    let files = chats_and_lorebooks(&one);
    let aside = "chats/Mira/a (other version 2026-11-14).jsonl";
    assert_eq!(files.keys().collect::<Vec<_>>(), [aside, A]);
    assert!(String::from_utf8_lossy(&files[A]).contains("two again"));
}
