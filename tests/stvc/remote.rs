//! Remotes on plain storage: what they contain, what they cost, and what damage and strangers do to
//! them. `sync/model.rs` and the simulation in the library test that devices converge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::devices::chats_and_lorebooks;
use serde_json::json;

use crate::common::watching::Watching;
use crate::common::{A, Sandbox, assert_same, chat, message, text};

/// Devices that have added the same encrypted remote.
pub struct Shared {
    pub devices: Vec<Sandbox>,
    pub folder: PathBuf,
    _cloud: tempfile::TempDir,
}

impl Shared {
    pub fn new(count: usize) -> Self {
        let devices: Vec<_> = (0..count).map(|_| Sandbox::empty()).collect();
        let cloud = tempfile::tempdir().unwrap();
        let folder = cloud.path().to_owned();
        let shared = Self { devices, folder, _cloud: cloud };
        for device in &shared.devices {
            shared.add(device);
        }
        shared
    }

    /// Adds the remote to a device.
    pub fn add(&self, device: &Sandbox) {
        let passphrase = device.folder().join("passphrase");
        fs::write(&passphrase, "correct horse\n").unwrap();
        let add = ["remote", "add", text(&self.folder), "--passphrase-file"];
        device.stvc(&[&add[..], &[text(&passphrase)]].concat()).exits(0);
    }

    pub fn sync(&mut self, device: usize, code: i32) -> Vec<serde_json::Value> {
        self.devices[device].wait(60);
        let answer = self.devices[device].json(&["sync"]);
        let lines = answer.lines();
        answer.exits(code);
        lines
    }

    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let mut objects = BTreeMap::new();
        collect(&self.folder, &self.folder, &mut objects);
        objects
    }
}

fn collect(root: &Path, folder: &Path, objects: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, objects);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            objects.insert(name, fs::read(&path).unwrap());
        }
    }
}

pub fn has(lines: &[serde_json::Value], code: &str) -> bool {
    lines.iter().any(|line| line["type"] == "finding" && line["code"] == code)
}

#[test]
fn save_adds_one_small_pack_and_one_announcement() {
    let mut shared = Shared::new(2);
    let names: Vec<_> = (0..40).map(|n| format!("chats/雪/第{n}章.jsonl")).collect();
    for name in &names {
        shared.devices[0].write(name, chat(name, 30, None));
    }
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
    let before = shared.objects();
    shared.devices[0].append(&names[3], &message(&"新的消息。".repeat(130), 40));
    shared.sync(0, 0);
    let after = shared.objects();
    let new: Vec<_> = after.iter().filter(|(name, _)| !before.contains_key(*name)).collect();
    assert_eq!(new.len(), 2, "{:?}", new.iter().map(|(name, _)| name).collect::<Vec<_>>());
    let bytes: usize = new.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 6000, "{bytes}");
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    // The other device only reads, and a sync with nothing new writes nothing.
    shared.sync(1, 0);
    shared.sync(0, 0);
    assert_eq!(shared.objects(), after);
}

#[test]
fn storage_shows_no_names_and_no_text() {
    let mut shared = Shared::new(1);
    shared.devices[0].write("chats/Secretive/diary.jsonl", chat("hidden words", 3, None));
    shared.sync(0, 0);
    for (name, bytes) in shared.objects() {
        for secret in ["Secretive", "diary", "hidden", "AGE-SECRET"] {
            let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
            assert!(!has(name.as_bytes()) && !has(&bytes), "{secret} in {name}");
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = shared.devices[0].store().join("stvc/remotes.json");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn damaged_pack_is_named_and_written_again_and_the_rest_is_synced() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    shared.devices[0].write("chats/Mira/b.jsonl", chat("b", 3, None));
    let before = shared.objects();
    shared.sync(0, 0);
    let after = shared.objects();
    let pack = after.keys().find(|name| name.starts_with("packs/") && !before.contains_key(*name));
    let pack = shared.folder.join(pack.unwrap());
    let mut damaged = fs::read(&pack).unwrap();
    damaged[100] ^= 1;
    fs::write(&pack, damaged).unwrap();
    // After more than a day, the pack is no longer expected to be on its way.
    shared.devices[1].wait(3 * 24 * 3600);
    let lines = shared.sync(1, 3);
    assert!(has(&lines, "remote-damaged"), "{lines:?}");
    assert!(shared.devices[1].path(A).exists());
    assert!(!shared.devices[1].path("chats/Mira/b.jsonl").exists());
    // The device that wrote the pack learns of the damage, and writes its objects again.
    shared.sync(0, 0);
    shared.sync(1, 0);
    assert!(shared.devices[1].path("chats/Mira/b.jsonl").exists());
    let lines = shared.sync(1, 0);
    assert!(!has(&lines, "remote-damaged"), "{lines:?}");
}

#[test]
fn late_pack_delays_only_its_announcement() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let first = shared.objects();
    shared.devices[0].append(A, &message("more", 4));
    shared.sync(0, 0);
    let all = shared.objects();
    let late = all.keys().find(|name| name.starts_with("packs/") && !first.contains_key(*name));
    let late = shared.folder.join(late.unwrap());
    let bytes = fs::read(&late).unwrap();
    fs::remove_file(&late).unwrap();
    shared.sync(1, 0);
    assert!(!String::from_utf8(shared.devices[1].read(A)).unwrap().contains("more"));
    fs::write(&late, bytes).unwrap();
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
}

#[test]
fn rolled_back_device_is_reported_and_nothing_is_undone() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let old = shared.objects();
    shared.devices[0].append(A, &message("newest", 4));
    shared.sync(0, 0);
    shared.sync(1, 0);
    for name in shared.objects().keys().filter(|name| !old.contains_key(*name)) {
        fs::remove_file(shared.folder.join(name)).unwrap();
    }
    let lines = shared.sync(1, 0);
    assert!(has(&lines, "remote-went-back"), "{lines:?}");
    assert!(String::from_utf8(shared.devices[1].read(A)).unwrap().contains("newest"));
}

#[test]
fn erased_text_leaves_the_remote() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.devices[0].write("chats/Mira/b.jsonl", chat("b", 3, None));
    shared.sync(0, 0);
    let before = shared.objects();
    fs::remove_file(shared.devices[0].path(A)).unwrap();
    let timeline = A.strip_suffix(".jsonl").unwrap();
    shared.devices[0].stvc(&["erase", timeline, "--yes"]).exits(0);
    shared.sync(0, 0);
    let after = shared.objects();
    let left: Vec<_> = before.keys().filter(|name| after.contains_key(*name)).collect();
    assert!(left.iter().all(|name| name.starts_with("stvc-remote/")), "{left:?}");
    shared.sync(1, 0);
    assert!(!shared.devices[1].path(A).exists());
    assert!(shared.devices[1].path("chats/Mira/b.jsonl").exists());
}

#[test]
fn new_machine_is_restored_from_the_remote_alone() {
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 30, None));
    shared.sync(0, 0);
    let fresh = Sandbox::empty();
    let passphrase = shared.devices[0].folder().join("passphrase");
    let with = ["--passphrase-file", text(&passphrase)];
    let address = text(&shared.folder);
    fresh.stvc(&[&["check", address][..], &with].concat()).exits(0);
    fresh.stvc(&[&["import", address, "--restore"][..], &with].concat()).exits(0);
    assert_same(&chats_and_lorebooks(&fresh), &chats_and_lorebooks(&shared.devices[0]));
    fresh.stvc(&["import", address]).exits(1);
}

#[test]
fn many_small_packs_are_merged_and_the_old_ones_deleted() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    for n in 0..36 {
        shared.devices[0].append(A, &message(&format!("message {n}"), n));
        shared.sync(0, 0);
    }
    let packs = |shared: &Shared| {
        shared.objects().into_keys().filter(|name| name.starts_with("packs/")).count()
    };
    assert!(packs(&shared) < 10, "{}", packs(&shared));
    shared.sync(1, 0);
    assert_same(&chats_and_lorebooks(&shared.devices[1]), &chats_and_lorebooks(&shared.devices[0]));
}

/// The watch and the command line may sync at the same time.
#[test]
fn sync_waits_for_another_sync_with_the_same_remote() {
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let sandbox = &shared.devices[0];
    let remotes = fs::read_dir(sandbox.store().join("stvc/remotes")).unwrap();
    let folder = remotes.flatten().next().unwrap().path();
    let lock = fs::File::options().write(true).open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let refused = sandbox.json(&["sync"]).exits(11);
    assert_eq!(refused.of_type("error")[0]["code"], "remote-in-use");

    sandbox.append(A, &message("a", 4));
    let before = shared.objects();
    let mut sync = sandbox.command(&["sync"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(sync.try_wait().unwrap().is_none(), "it did not wait");
    assert_eq!(shared.objects(), before);
    drop(lock);
    assert!(sync.wait().unwrap().success());
    assert_ne!(shared.objects(), before);
}

#[test]
fn watch_syncs_at_the_configured_interval_and_status_shows_it() {
    let mut shared = Shared::new(2);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    let receiver = &mut shared.devices[1];
    receiver.stvc(&["config", "sync.every", "10m"]).exits(0);
    let protection = |device: &Sandbox| {
        let lines = device.json(&["status"]).lines();
        lines.into_iter().find(|line| line["type"] == "protection").unwrap()
    };
    let watching = Watching::start(receiver, &["--poll", "100ms"]);
    let done = watching.wait_for(|event| event["event"] == "synced");
    assert_eq!((&done["received"], &done["sent"]), (&1.into(), &0.into()), "{done}");
    watching.stop();
    assert!(receiver.path(A).exists());
    let found = protection(receiver);
    assert_eq!(
        (&found["sync"], &found["sync_failure"]),
        (&text(&shared.folder).into(), &json!(null))
    );
    let succeeded = found["sync_time"].clone();
    assert!(succeeded.is_string(), "{found}");
    // The last sync is recent, so the watch does not sync although there is something to send.
    receiver.wait(300);
    receiver.append(A, &message("a", 4));
    let watching = Watching::start(receiver, &["--poll", "100ms"]);
    watching.wait_for(|event| event["type"] == "snapshot");
    std::thread::sleep(Duration::from_millis(500));
    watching.stop();
    assert_eq!(protection(receiver)["sync_time"], succeeded);
    // A folder that is not connected fails once; the status says why.
    receiver.wait(600);
    let away = shared.folder.with_extension("away");
    fs::rename(&shared.folder, &away).unwrap();
    let watching = Watching::start(receiver, &["--poll", "100ms"]);
    let failed = watching.wait_for(|event| event["event"] == "sync_failed");
    watching.stop();
    let found = protection(receiver);
    assert_eq!((&found["sync_failure"], &found["sync_time"]), (&failed["message"], &succeeded));
    let shown = receiver.stvc(&["status"]).exits(0);
    assert!(shown.stderr.contains("The last sync with"), "{}", shown.stderr);
    fs::rename(&away, &shared.folder).unwrap();
    receiver.wait(600);
    let watching = Watching::start(receiver, &["--poll", "100ms"]);
    let done = watching.wait_for(|event| event["event"] == "synced");
    assert_eq!(done["sent"], 1, "{done}");
    watching.stop();
    assert_eq!(protection(receiver)["sync_failure"], json!(null));
}

#[test]
fn scheduled_backup_and_check_accept_the_name_of_a_remote() {
    let mut shared = Shared::new(1);
    shared.devices[0].write(A, chat("a", 3, None));
    shared.sync(0, 0);
    shared.devices[0].stvc(&["config", "backup.destination", "remote"]).exits(0);
    shared.devices[0].stvc(&["backup"]).exits(0);
    shared.devices[0].stvc(&["check", "remote"]).exits(0);
    assert!(!Path::new("remote").exists());
}

#[test]
fn folder_with_a_git_repository_becomes_a_remote_with_one_command() {
    let mut shared = Shared::new(0);
    fs::create_dir(shared.folder.join(".stfolder")).unwrap();
    shared.folder.push("chats");
    let folder = &shared.folder;
    let (first, second) = (Sandbox::empty(), Sandbox::empty());
    let passphrase = first.folder().join("passphrase");
    fs::write(&passphrase, "correct horse\n").unwrap();
    let add = ["remote", "add", text(folder), "--passphrase-file", text(&passphrase)];
    first.write(A, chat("a", 3, None));
    second.write("chats/Mira/b.jsonl", chat("b", 3, None));
    let warned = first.json(&["sync", text(folder)]).exits(0).lines();
    assert!(has(&warned, "synchronised-folder"), "{warned:?}");
    second.stvc(&["sync", text(folder)]).exits(0);
    // The first device has not received the other chat yet.
    let added = first.stvc(&add).exits(0);
    assert!(added.stdout.contains("git repository"), "{}", added.stdout);
    assert!(first.path("chats/Mira/b.jsonl").exists());
    let refused = second.stvc(&["sync", text(folder)]).exits(4);
    assert!(refused.stderr.contains("stvc remote add"), "{}", refused.stderr);
    second.stvc(&add).exits(0);
    second.stvc(&["sync"]).exits(0);
    assert_same(&chats_and_lorebooks(&second), &chats_and_lorebooks(&first));
    shared.devices = vec![first, second];
    let lines = shared.sync(0, 0);
    assert!(!has(&lines, "synchronised-folder"), "{lines:?}");
}
