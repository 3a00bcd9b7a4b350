//! Attacks on an encrypted remote by somebody who can write to its storage and does not have the
//! key (docs/remotes.md, "Who can do what").

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::devices::chats_and_lorebooks;
use crate::common::{A, Sandbox, assert_same, chat, copy_folder, message, text};
use crate::remote::{Shared, has};

const B: &str = "chats/Mira/b.jsonl";
const DAYS: i64 = 3 * 24 * 3600;
const STRANGER: &str = "ffffffffffffffff";

impl Shared {
    /// Returns the paths of the objects whose names begin with `prefix` and are not in `before`.
    fn new_objects(&self, prefix: &str, before: &[PathBuf]) -> Vec<PathBuf> {
        let names = self.objects().into_keys().filter(|name| name.starts_with(prefix));
        names.map(|name| self.folder.join(name)).filter(|path| !before.contains(path)).collect()
    }

    /// Returns the path of the announcement with this number of the only device that announced.
    fn announcement(&self, number: u64) -> PathBuf {
        let names = self.objects().into_keys();
        let mut devices = names.filter_map(|name| Some(name.strip_prefix("devices/")?.to_owned()));
        let device = devices.next().unwrap().split_once('-').unwrap().0.to_owned();
        self.folder.join(format!("devices/{device}-{number}"))
    }

    fn text_of(&self, device: usize, path: &str) -> String {
        String::from_utf8(self.devices[device].read(path)).unwrap()
    }
}

fn messages(lines: &[Value], code: &str) -> String {
    let findings = lines.iter().filter(|line| line["type"] == "finding" && line["code"] == code);
    findings.map(|line| line["message"].as_str().unwrap().to_owned() + "\n").collect()
}

fn name(path: &std::path::Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn deleted_packs_are_named_and_no_device_deletes_anything() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    shared.sync(1, 0);
    let before = shared.new_objects("packs/", &[]);
    shared.devices[0].write(B, chat("b", 3, None));
    shared.sync(0, 0);
    let new = shared.new_objects("packs/", &before);
    for pack in before.iter().chain(&new) {
        fs::remove_file(pack).unwrap();
    }
    shared.devices[1].wait(DAYS);
    let lines = shared.sync(1, 3);
    assert!(messages(&lines, "remote-damaged").contains(name(&new[0])), "{lines:?}");
    assert!(shared.text_of(1, A).contains("a"));
    // The device that wrote the pack learns of it, and writes the objects again.
    shared.sync(0, 0);
    assert!(shared.devices[0].path(A).exists() && shared.devices[0].path(B).exists());
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
}

#[test]
fn deleted_base_of_an_announcement_is_named_until_the_next_change() {
    let mut shared = Shared::new(2);
    for n in 0..40 {
        shared.devices[0].write(&format!("chats/Mira/{n}.jsonl"), chat("a", 3, None));
    }
    shared.sync(0, 0);
    shared.devices[0].append("chats/Mira/7.jsonl", &message("more", 4));
    shared.sync(0, 0);
    let base = shared.announcement(1);
    fs::remove_file(&base).unwrap();
    // It may still be on its way.
    let lines = shared.sync(1, 0);
    assert!(!has(&lines, "remote-damaged"), "{lines:?}");
    shared.devices[1].wait(DAYS);
    let lines = shared.sync(1, 0);
    assert!(messages(&lines, "remote-damaged").contains(name(&base)), "{lines:?}");
    assert!(!shared.devices[1].path("chats/Mira/7.jsonl").exists());
    shared.devices[0].append("chats/Mira/8.jsonl", &message("more", 4));
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert!(shared.text_of(1, "chats/Mira/7.jsonl").contains("more"));
}

#[test]
fn swapped_packs_are_refused() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let first = shared.new_objects("packs/", &[]);
    shared.devices[0].write(B, chat("b", 3, None));
    shared.sync(0, 0);
    let second = shared.new_objects("packs/", &first);
    let packs = [&first[0], &second[0]];
    let bytes = packs.map(|pack| fs::read(pack).unwrap());
    fs::write(packs[0], &bytes[1]).unwrap();
    fs::write(packs[1], &bytes[0]).unwrap();
    shared.devices[1].wait(DAYS);
    let lines = shared.sync(1, 3);
    let damaged = messages(&lines, "remote-damaged");
    assert!(packs.iter().all(|pack| damaged.contains(name(pack))), "{damaged}");
    assert!(!shared.devices[1].path(A).exists() && !shared.devices[1].path(B).exists());
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
}

#[test]
fn announcement_under_another_name_and_forged_ones_are_refused() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let real = shared.announcement(1);
    let stranger = shared.folder.join(format!("devices/{STRANGER}-1"));
    let forged = shared.announcement(4);
    fs::copy(&real, shared.announcement(3)).unwrap();
    fs::copy(&real, &stranger).unwrap();
    // Encrypted by somebody else, and not encrypted at all.
    let mut other = Shared::new(1);
    other.devices[0].write(B, chat("forged", 3, None));
    other.sync(0, 0);
    fs::copy(other.announcement(1), &forged).unwrap();
    fs::write(shared.announcement(5), "{\"format\":1}").unwrap();
    let lines = shared.sync(1, 0);
    let damaged = messages(&lines, "remote-damaged");
    for path in [&stranger, &forged, &shared.announcement(3), &shared.announcement(5)] {
        assert!(damaged.contains(name(path)), "{} is not in {damaged}", name(path));
    }
    assert!(shared.devices[1].path(A).exists());
    assert!(!shared.devices[1].path(B).exists());
    // Both devices go on.
    shared.devices[0].append(A, &message("more", 4));
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert!(shared.text_of(1, A).contains("more"));
}

/// The number after the highest one would not exist.
#[test]
fn planted_number_does_not_silence_its_device() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let planted = [u64::MAX, 1 << 53, 20].map(|number| shared.announcement(number));
    planted.iter().for_each(|path| fs::write(path, "x").unwrap());
    shared.devices[0].append(A, &message("more", 4));
    shared.sync(0, 0);
    assert!(shared.announcement(21).exists());
    shared.sync(1, 0);
    assert!(shared.text_of(1, A).contains("more"));
    planted.iter().for_each(|path| fs::remove_file(path).unwrap());
    shared.devices[0].append(A, &message("most", 5));
    for device in [0, 1] {
        let lines = shared.sync(device, 0);
        assert!(!has(&lines, "remote-went-back"), "{lines:?}");
    }
    assert!(shared.text_of(1, A).contains("most"));
}

#[test]
fn many_planted_announcements_do_not_hide_a_known_device() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    shared.sync(1, 0);
    for n in 0..2000 {
        fs::write(shared.folder.join(format!("devices/{n:016}-1")), "x").unwrap();
    }
    shared.devices[0].append(A, &message("more", 4));
    shared.sync(0, 0);
    let lines = shared.sync(1, 0);
    assert!(shared.text_of(1, A).contains("more"));
    let count = messages(&lines, "remote-damaged").lines().count();
    assert!((1..300).contains(&count), "{count}");
}

/// Withheld announcements cannot be noticed, but a device never goes back.
#[test]
fn older_state_of_the_storage_changes_no_device() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let old = tempfile::tempdir().unwrap();
    copy_folder(&shared.folder, &old.path().join("copy"));
    shared.devices[0].append(A, &message("newest", 4));
    shared.sync(0, 0);
    shared.sync(1, 0);
    fs::remove_dir_all(&shared.folder).unwrap();
    copy_folder(&old.path().join("copy"), &shared.folder);
    let lines = shared.sync(1, 0);
    assert!(has(&lines, "remote-went-back"), "{lines:?}");
    assert!(shared.text_of(1, A).contains("newest"));
    // The device whose announcement is gone writes it again, and a third device gets everything.
    let lines = shared.sync(0, 0);
    assert!(has(&lines, "remote-went-back"), "{lines:?}");
    assert!(shared.text_of(0, A).contains("newest"));
}

#[test]
fn planted_description_of_a_remote_is_not_used() {
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let id = "0".repeat(32);
    let planted = format!(
        r#"{{"format": "stvc remote", "version": 1, "id": "{id}", "created": "2026-11-19T00:00:00Z"}}"#
    );
    fs::write(shared.folder.join(format!("stvc-remote/{id}")), planted).unwrap();
    // Only readers that expect no encryption use it.
    let fresh = Sandbox::empty();
    let refused = fresh.json(&["import", text(&shared.folder)]).exits(1);
    assert_eq!(refused.of_type("error")[0]["code"], "remote-no-passphrase");
    shared.add(&fresh);
    shared.devices.push(fresh);
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
}

/// A second remote in the folder would never join the first one.
#[test]
fn deleted_description_of_a_remote_is_not_replaced_by_another_remote() {
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    fs::remove_dir_all(shared.folder.join("stvc-remote")).unwrap();
    let before = shared.objects();
    let fresh = Sandbox::empty();
    fs::write(fresh.folder().join("passphrase"), "correct horse\n").unwrap();
    let passphrase = fresh.folder().join("passphrase");
    let add = ["remote", "add", text(&shared.folder), "--passphrase-file", text(&passphrase)];
    let refused = fresh.json(&add).exits(1);
    assert_eq!(refused.of_type("error")[0]["code"], "remote-incomplete");
    assert_eq!(shared.objects(), before);
    // Devices that have the key go on.
    shared.devices[0].append(A, &message("more", 4));
    shared.sync(0, 0);
}

#[cfg(unix)]
#[test]
fn links_pipes_and_huge_files_are_as_good_as_missing() {
    use std::os::unix::fs::symlink;
    use std::process::Command;
    let pipe = |path: &std::path::Path| {
        let _ = fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let first = shared.new_objects("packs/", &[]);
    shared.devices[0].write(B, chat("b", 3, None));
    shared.sync(0, 0);
    let second = shared.new_objects("packs/", &first);
    let [fifo, link, folder, huge] = [30, 31, 32, 33].map(|number| shared.announcement(number));
    pipe(&second[0]);
    pipe(&fifo);
    symlink("/dev/zero", link).unwrap();
    fs::create_dir(folder).unwrap();
    for path in [&huge, &shared.folder.join("stvc-remote").join("0".repeat(32))] {
        fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
    }
    shared.devices[1].wait(DAYS);
    let lines = shared.sync(1, 3);
    let damaged = messages(&lines, "remote-damaged");
    for path in [&second[0], &huge] {
        assert!(damaged.contains(name(path)), "{} is not in {damaged}", name(path));
    }
    assert!(shared.devices[1].path(A).exists());
    assert!(!shared.devices[1].path(B).exists());
    let third = Sandbox::empty();
    shared.add(&third);
    // The pack gets a new name, because the pipe has that of the former one.
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert!(shared.devices[1].path(B).exists());
}

/// A git repository in the folder is not encrypted, and its content has no checksum of a key.
#[test]
fn planted_git_repository_is_not_read_and_receives_nothing() {
    let attacker = Sandbox::empty();
    attacker.write(B, chat("planted", 3, None));
    let repository = attacker.folder().join("repository");
    attacker.stvc(&["sync", text(&repository)]).exits(0);
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    copy_folder(&repository, &shared.folder);
    let planted = shared.new_objects("", &[]);
    let fresh = Sandbox::empty();
    fresh.write("chats/Mira/own.jsonl", chat("own", 3, None));
    shared.add(&fresh);
    assert_eq!(shared.new_objects("", &planted), [] as [PathBuf; 0]);
    fresh.stvc(&["sync"]).exits(0);
    assert!(fresh.path(A).exists() && !fresh.path(B).exists());
    // Where no remote is yet, the snapshots are received, and nothing is sent to the repository.
    let new = Shared::new(0);
    copy_folder(&repository, &new.folder);
    let device = Sandbox::empty();
    device.write("chats/Mira/own.jsonl", chat("own", 3, None));
    let before = new.new_objects("", &[]);
    new.add(&device);
    assert!(device.path(B).exists());
    let added = new.new_objects("", &before);
    let is_encrypted = |path: &PathBuf| {
        let name = path.strip_prefix(&new.folder).unwrap();
        ["stvc-remote", "packs", "devices"].iter().any(|folder| name.starts_with(folder))
    };
    assert!(!added.is_empty() && added.iter().all(is_encrypted), "{added:?}");
}
