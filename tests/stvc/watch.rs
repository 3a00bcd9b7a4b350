//! `watch`: every save that is followed by a short pause is stored in any circumstances.

use std::fs;
use std::process::Child;
#[cfg(target_os = "linux")]
use std::process::Command;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use crate::common::answer;
use crate::common::recap_library::{Operation, RecapLibrary};
use crate::common::watching::{Watching, signal};
use crate::common::{self, Sandbox};

fn chat(messages: usize, book: &str) -> String {
    let mut text = format!(r#"{{"chat_metadata":{{"world_info":"{book}"}}}}"#);
    for n in 0..messages {
        text += &format!("\n{{\"name\":\"Mira\",\"is_user\":false,\"mes\":\"message {n}\"}}");
    }
    text
}

const BOOK: &str = r#"{"entries":{"0":{"uid":0,"content":"the sea"}}}"#;

/// Asserts that the latest snapshot of each timeline equals its file, and that the store is valid.
#[track_caller]
fn assert_stored(sandbox: &Sandbox) {
    let status = sandbox.json(&["status"]).exits(0);
    let changed: Vec<_> = status
        .of_type("timeline")
        .into_iter()
        .filter(|line| !matches!(line["state"].as_str(), Some("unchanged" | "deleted")))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

/// A save does not wait until packs are joined.
#[test]
fn packs_are_joined_after_the_last_save() {
    let sandbox = Sandbox::empty();
    let packs = || {
        let files = fs::read_dir(sandbox.store().join("objects/pack")).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().path().extension() == Some("pack".as_ref()))
            .count()
    };
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let watching = Watching::start(&sandbox, &["--settle", "400ms"]);
    watching.snapshot_of(1);
    for messages in 2..24 {
        sandbox.save("chats/Mira/one.jsonl", chat(messages, "none"));
        watching.snapshot_of(messages as u64);
    }
    assert!(packs() > 20, "{} packs", packs());
    let begin = Instant::now();
    while packs() > 20 {
        assert!(begin.elapsed() < common::watching::LIMIT, "{} packs", packs());
        std::thread::sleep(Duration::from_millis(100));
    }
    watching.stop();
    assert_stored(&sandbox);
}

#[test]
fn every_save_becomes_a_snapshot() {
    let sandbox = Sandbox::empty();
    sandbox.write("worlds/Sea.json", BOOK);
    sandbox.save("chats/Mira/one.jsonl", chat(1, "Sea"));
    let watching = Watching::start(&sandbox, &[]);
    // Changes from before the start.
    watching.snapshot_of(1);
    sandbox.save("chats/Mira/one.jsonl", chat(2, "Sea"));
    watching.snapshot_of(2);
    // The lorebook alone.
    sandbox.save("worlds/Sea.json", BOOK.replace("sea", "tide"));
    watching.wait_for(|event| event["type"] == "snapshot" && event["timeline"] == "worlds/Sea");
    // A new character with a new folder.
    sandbox.save("chats/Juno/new.jsonl", chat(3, "none"));
    watching.snapshot_of(3);
    // A branch, a rename, a deletion; a chat in a recreated folder.
    sandbox.save("chats/Mira/branch.jsonl", chat(2, "Sea") + "\n{\"mes\":\"otherwise\"}");
    assert_eq!(watching.snapshot_of(3)["fork_at"], 2);
    fs::rename(sandbox.path("chats/Juno/new.jsonl"), sandbox.path("chats/Juno/old.jsonl")).unwrap();
    assert_eq!(watching.snapshot_of(3)["renamed_from"], "chats/Juno/new");
    fs::remove_dir_all(sandbox.path("chats/Juno")).unwrap();
    sandbox.save("chats/Juno/again.jsonl", chat(4, "none"));
    watching.snapshot_of(4);
    let summary = watching.stop();
    assert!(cfg!(windows) || summary["taken"] == 8, "{summary}");
    assert_stored(&sandbox);
}

/// Windows has no signals between programs.
#[cfg(unix)]
#[test]
fn watch_stores_the_last_save_before_it_ends() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    for (n, name) in ["TERM", "INT"].into_iter().enumerate() {
        let mut watching = Watching::start(&sandbox, &["--settle", "1h"]);
        sandbox.save("chats/Mira/one.jsonl", chat(n + 2, "none"));
        signal(&watching.child, name);
        watching.snapshot_of(n as u64 + 2);
        assert_eq!(watching.child.wait().unwrap().code(), Some(0), "{name}");
        assert_stored(&sandbox);
    }
}

// A killed process cannot take a last snapshot.
#[cfg(unix)]
#[test]
fn durations_of_zero_and_never_are_accepted() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let never = "99999999999d";
    for (settle, patience, poll) in [(never, never, never), ("0s", "0s", "0s")] {
        let options = ["--settle", settle, "--patience", patience, "--poll", poll];
        let watching = Watching::start(&sandbox, &options);
        watching.stop();
        assert_stored(&sandbox);
    }
}

#[test]
fn only_one_watch_runs_per_library() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let mut watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(1);
    let second = sandbox.stvc(&["watch"]).exits(11);
    assert!(second.stderr.contains(&format!("(process {})", watching.child.id())), "{second:?}");
    // Other commands work, and the lock ends with its process.
    sandbox.stvc(&["snapshot"]).exits(0);
    watching.kill();
    Watching::start(&sandbox, &[]).stop();
}

#[test]
fn watch_polls_when_file_events_are_unavailable() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    watching.snapshot_of(1);
    for messages in 2..5 {
        sandbox.save("chats/Mira/one.jsonl", chat(messages, "none"));
        watching.snapshot_of(messages as u64);
    }
    // Without changes nothing is stored.
    let summary = watching.stop();
    assert!(cfg!(windows) || summary["taken"] == 4, "{summary}");
}

#[cfg(unix)]
#[test]
fn watch_waits_for_the_queue_up_to_a_time_limit() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    let watching = Watching::start(&sandbox, &["--patience", "2s"]);
    watching.wait_for(|event| event["type"] == "snapshot");
    // The queue becomes empty: no snapshot before that.
    let busy = Some(vec![Operation::new("pending").about(7)]);
    library.messages += 1;
    library.queue = busy.clone();
    library.write(&sandbox);
    watching.wait_for(|event| event["event"] == "waiting");
    library.queue = Some(Vec::new());
    library.write(&sandbox);
    let taken = watching.wait_for(|event| event["type"] == "snapshot");
    assert_eq!(
        (&taken["kind"], &taken["messages"]),
        (&"snapshot".into(), &library.messages.into())
    );
    // The queue stays active: stored and marked after the limit.
    library.messages += 1;
    library.queue = busy;
    library.write(&sandbox);
    let taken = watching.wait_for(|event| event["type"] == "snapshot");
    assert_eq!(
        (&taken["kind"], &taken["messages"]),
        (&"autosave".into(), &library.messages.into())
    );
    // Stopped during the wait: stored.
    library.messages += 1;
    library.write(&sandbox);
    watching.wait_for(|event| event["event"] == "waiting");
    // The chat twice, and its lorebook.
    let summary = watching.stop();
    assert!(cfg!(windows) || summary["autosaves"] == 3, "{summary}");
    assert_stored(&sandbox);
    let log = sandbox.stvc(&["log"]).exits(0);
    assert!(log.stdout.contains("autosave"), "{}", log.stdout);
}

// Windows cannot move a watched folder.
#[cfg(unix)]
#[test]
fn watch_survives_a_folder_that_disappears() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    watching.snapshot_of(1);
    let elsewhere = sandbox.folder().join("unplugged");
    fs::rename(sandbox.library(), &elsewhere).unwrap();
    watching.wait_for(|event| event["event"] == "gone");
    // An empty folder is a mount point, not a library without chats.
    fs::create_dir(sandbox.library()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    fs::remove_dir(sandbox.library()).expect("nothing was put into it");
    fs::rename(&elsewhere, sandbox.library()).unwrap();
    watching.wait_for(|event| event["event"] == "back");
    sandbox.save("chats/Mira/one.jsonl", chat(2, "none"));
    watching.snapshot_of(2);
    watching.stop();
    assert_stored(&sandbox);
}

#[test]
fn folder_created_later_is_watched() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "Sea"));
    fs::remove_dir(sandbox.path("worlds")).unwrap();
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(1);
    let of_book =
        |watching: &Watching| watching.wait_for(|event| event["timeline"] == "worlds/Sea");
    sandbox.save("worlds/Sea.json", BOOK);
    of_book(&watching);
    sandbox.save("worlds/Sea.json", BOOK.replace("sea", "tide"));
    of_book(&watching);
    watching.stop();
}

#[test]
fn watch_applies_the_retention_policy() {
    let mut sandbox = Sandbox::empty();
    for messages in 1..8 {
        sandbox.save("chats/Mira/one.jsonl", chat(messages, "none"));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    fs::write(sandbox.store().join("stvc/config.toml"), "[retention]\nkeep-last = 3\n").unwrap();
    let watching = Watching::start(&sandbox, &[]);
    let tidied = watching.wait_for(|event| event["event"] == "tidied");
    assert_eq!(tidied["forgotten"], 4);
    watching.stop();
    assert_eq!(sandbox.snapshot_ids().len(), 3);
    assert_stored(&sandbox);
}

#[test]
fn watch_reports_an_unreadable_file_once() {
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    fs::create_dir_all(sandbox.path("chats/Mira/two.jsonl")).unwrap();
    fs::write(sandbox.path("chats/Mira/two.jsonl/x"), "").unwrap();
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(1);
    sandbox.save("chats/Mira/one.jsonl", chat(2, "none"));
    watching.snapshot_of(2);
    watching.stop();
}

/// Rapid saves, with pauses in which the last one must be stored.
#[test]
fn watch_stores_the_last_of_a_thousand_saves() {
    const SAVES: usize = 1000;
    let sandbox = Sandbox::empty();
    let filler = "all that was said at sea, ".repeat(200);
    let mut text = chat(1, "none");
    for n in 0..1000 {
        text += &format!("\n{{\"name\":\"Mira\",\"mes\":\"{n} {filler}\"}}");
    }
    assert!(text.len() > 5_000_000);
    sandbox.save("chats/Mira/one.jsonl", &text);
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(1001);
    let mut memory = Vec::new();
    for n in 1..=SAVES {
        text += &format!("\n{{\"name\":\"Mira\",\"mes\":\"one more, {n}\"}}");
        sandbox.save("chats/Mira/one.jsonl", &text);
        if n % 100 == 0 {
            watching.snapshot_of(1001 + n as u64);
            memory.push(resident(&watching.child));
        }
    }
    if let (Some(Some(early)), Some(Some(late))) = (memory.get(1), memory.last()) {
        assert!(*late < early + early / 2, "{memory:?} kB");
    }
    watching.stop();
    assert_stored(&sandbox);
}

/// Kilobytes; `None` outside Linux.
fn resident(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn kills_during_many_saves_leave_a_valid_store() {
    const KILLS: usize = 50;
    let sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "Sea"));
    sandbox.save("worlds/Sea.json", BOOK);
    let mut messages = 1;
    let mut dice: u64 = 0x5eed;
    for round in 0..KILLS {
        let mut watching = Watching::start(&sandbox, &["--settle", "5ms"]);
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let end = Instant::now() + Duration::from_millis(dice >> 57);
        while Instant::now() < end {
            messages += 1;
            sandbox.save("chats/Mira/one.jsonl", chat(messages, "Sea"));
            sandbox.save("worlds/Sea.json", BOOK.replace("sea", &messages.to_string()));
        }
        watching.kill();
        if round % 10 == 0 {
            sandbox.git(&["fsck", "--strict"]);
        }
    }
    let watching = Watching::start(&sandbox, &[]);
    messages += 1;
    sandbox.save("chats/Mira/one.jsonl", chat(messages, "Sea"));
    watching.snapshot_of(messages as u64);
    watching.stop();
    assert_stored(&sandbox);
}

#[cfg(target_os = "linux")]
#[test]
fn install_writes_and_starts_a_systemd_unit() {
    let sandbox = Sandbox::empty();
    let services = crate::common::services::Services::new(&sandbox);
    let unit = || {
        let dir = sandbox.folder().join(".config/systemd/user");
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        names.collect::<Vec<_>>()
    };
    let result = services.stvc(&["watch", "--install", "--poll", "5s"]).exits(0);
    assert!(result.stdout.contains("The watch is running"), "{result:?}");
    assert!(services.is_watched());
    let [path] = unit().try_into().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    // The line has no special characters of systemd, so a shell reads it equally.
    let run = Command::new("sh").arg("-c").arg(format!("exec timeout 5 {start} --help")).output();
    let run = answer(run.unwrap()).exits(0);
    assert!(run.stdout.contains("--settle"), "{run:?}");
    assert!(start.contains("\"--poll\" \"5s\""), "{start}");
    // New options restart the watch.
    services.calls();
    services.stvc(&["watch", "--install", "--poll", "6s"]).exits(0);
    assert!(services.calls().contains(&"systemctl --user restart UNIT".to_owned()));
    // A foreign unit is neither replaced nor removed.
    fs::write(&path, "[Unit]\n").unwrap();
    services.stvc(&["watch", "--install"]).exits(4);
    services.stvc(&["watch", "--uninstall"]).exits(4);
    assert_eq!(fs::read_to_string(&path).unwrap(), "[Unit]\n");
    fs::remove_file(&path).unwrap();
    services.stvc(&["watch", "--install"]).exits(0);
    services.calls();
    services.stvc(&["watch", "--uninstall"]).exits(0);
    assert!(services.calls().contains(&"systemctl --user disable --now UNIT".to_owned()));
    assert!(!path.exists() && !services.is_watched());
    let none = services.stvc(&["watch", "--uninstall"]).exits(0).stdout;
    assert!(none.contains("The watch is not installed"), "{none}");
}

#[test]
fn watch_reports_a_deleted_chat() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", common::chat("a", 3, None));
    sandbox.write("chats/Mira/b.jsonl", common::chat("b", 2, None));
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(3);
    fs::remove_file(sandbox.path("chats/Mira/a.jsonl")).unwrap();
    let deletion = watching.wait_for(|event| event["kind"] == "deleted");
    assert_eq!((&deletion["timeline"], &deletion["messages"]), (&"chats/Mira/a".into(), &3.into()));
    watching.stop();
}

#[test]
fn watch_backs_up_on_schedule() {
    let mut sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let (drive, unplugged) = (sandbox.folder().join("drive"), sandbox.folder().join("unplugged"));
    let place = drive.join("chats");
    fs::create_dir(&drive).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["config", "backup.destination", common::text(&place)]).exits(0);
    sandbox.stvc(&["config", "backup.schedule", "never"]).exits(1);
    sandbox.stvc(&["config", "backup.schedule", "daily"]).exits(0);
    // There is no backup yet.
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    let done = watching.wait_for(|event| event["event"] == "backed_up");
    assert_eq!(done["destination"], common::text(&place));
    watching.stop();
    let heads = |place: &std::path::Path| common::refs(place);
    assert_eq!(heads(&place), heads(&sandbox.store()));
    // It is recent.
    sandbox.wait(23 * 3600);
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    sandbox.save("chats/Mira/one.jsonl", chat(2, "none"));
    watching.snapshot_of(2);
    std::thread::sleep(Duration::from_millis(500));
    watching.stop();
    assert_ne!(heads(&place), heads(&sandbox.store()));
    // It is due, but the drive is not connected: the failure is reported once, and nothing is
    // written in place of the drive.
    sandbox.wait(3600);
    fs::rename(&drive, &unplugged).unwrap();
    fs::create_dir(&drive).unwrap();
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    let failed = watching.wait_for(|event| event["event"] == "backup_failed");
    assert!(failed["message"].as_str().unwrap().contains("does not exist"), "{failed}");
    sandbox.save("chats/Mira/one.jsonl", chat(3, "none"));
    let next = watching.wait_for(|event| event["type"] != "user");
    assert_eq!(next["type"], "snapshot", "{next}");
    assert_eq!(fs::read_dir(&drive).unwrap().count(), 0);
    fs::remove_dir(&drive).unwrap();
    fs::rename(&unplugged, &drive).unwrap();
    watching.wait_for(|event| event["event"] == "backed_up");
    watching.stop();
    assert_eq!(heads(&place), heads(&sandbox.store()));
}

#[test]
fn scheduled_backup_never_replaces_an_encrypted_one() {
    let mut sandbox = Sandbox::empty();
    sandbox.save("chats/Mira/one.jsonl", chat(1, "none"));
    let (file, secret) = (sandbox.folder().join("all.stvc"), sandbox.folder().join("secret"));
    fs::write(&secret, "open sesame\n").unwrap();
    let [file_text, secret] = [&file, &secret].map(|path| common::text(path));
    let backup = ["--passphrase-file", secret, "backup", "--encrypt", file_text];
    sandbox.stvc(&backup).exits(0);
    sandbox.stvc(&["config", "backup.schedule", "daily"]).exits(0);
    let before = fs::read(&file).unwrap();
    sandbox.wait(25 * 3600);
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    let failed = watching.wait_for(|event| event["event"] == "backup_failed");
    assert!(failed["message"].as_str().unwrap().contains("is encrypted"), "{failed}");
    watching.stop();
    assert_eq!(fs::read(&file).unwrap(), before);
}
