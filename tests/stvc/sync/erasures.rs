//! A chat erased on one device does not return from another and is not sent further.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::outcome;
use crate::common::devices::{Remote, chats_and_lorebooks, sync, sync_until_equal, synced_pair};
use crate::common::{A, Sandbox, chat, git, message, text};

const SECRET: &str = "chats/Mira/Secret.jsonl";
const NAME: &str = "chats/Mira/Secret";

fn erase(device: &Sandbox) {
    fs::remove_file(device.path(SECRET)).unwrap();
    device.stvc(&["erase", "Mira/Secret", "--yes"]).exits(0);
}

fn heads(store: &Path) -> String {
    String::from_utf8(git(store, &["for-each-ref", "--format=%(refname)", "refs/heads"])).unwrap()
}

/// Creates two devices that stored the same library before their first sync. One erases a chat
/// before the other has synced.
fn erased_before_the_other_device_synced(remote: impl Fn(&Sandbox) -> Remote) {
    let [mut one, mut two] = [0, 1].map(|n| {
        let device = Sandbox::empty();
        device.write(A, chat("a", 3, None));
        device.write(SECRET, chat("secret", 3, None));
        for _ in 0..=n {
            device.append(SECRET, &message("more", 9));
            device.stvc(&["snapshot"]).exits(0);
        }
        device
    });
    let shared = remote(&one);
    let [remote, _] = [&one, &two].map(|device| shared.address(device));
    let store = shared.store();
    sync(&mut one, &remote);
    erase(&one);
    assert_eq!(outcome(&sync(&mut one, &remote), NAME), "erased");
    assert!(!heads(store).contains("Secret"), "{}", heads(store));
    // The other device keeps its chat, reports this at each sync, and does not send the chat.
    for _ in 0..2 {
        let lines = sync(&mut two, &remote);
        assert_eq!(outcome(&lines, NAME), "erased-elsewhere");
        assert!(two.path(SECRET).exists());
        sync(&mut one, &remote);
        assert!(!one.path(SECRET).exists());
        assert!(!heads(store).contains("Secret") && !heads(&one.store()).contains("Secret"));
    }
    // A third device does not get it.
    let mut three = Sandbox::empty();
    shared.address(&three);
    sync(&mut three, &remote);
    assert_eq!(chats_and_lorebooks(&three).into_keys().collect::<Vec<_>>(), [A]);
    erase(&two);
    sync_until_equal(&mut one, &mut two, &remote);
    sync_until_equal(&mut one, &mut three, &remote);
    assert_eq!(chats_and_lorebooks(&one).into_keys().collect::<Vec<_>>(), [A]);
}

#[test]
fn erasure_survives_a_later_sync_of_another_device_through_a_folder() {
    erased_before_the_other_device_synced(Remote::folder);
}

#[test]
#[cfg(unix)]
fn erasure_survives_a_later_sync_of_another_device_through_a_server() {
    erased_before_the_other_device_synced(Remote::server);
}

#[test]
fn sync_suggests_erasing_a_chat_that_another_device_erased() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(SECRET, chat("secret", 3, None));
    });
    erase(&one);
    sync(&mut one, &folder);
    two.append(SECRET, &message("two", 4));
    two.wait(60);
    let output = two.stvc(&["sync", text(&folder)]).exits(0).stdout;
    assert!(output.contains("stvc erase chats/Mira/Secret"), "{output}");
    fs::remove_file(two.path(SECRET)).unwrap();
    two.stvc(&["erase", "chats/Mira/Secret", "--yes"]).exits(0);
    assert_eq!(outcome(&sync(&mut two, &folder), NAME), "none");
    sync_until_equal(&mut one, &mut two, &folder);
}

#[test]
fn fork_of_erased_chat_is_synced_after_every_device_erased_the_chat() {
    const FORK: &str = "chats/Mira/Fork.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(SECRET, chat("secret", 4, None));
        one.stvc(&["snapshot"]).exits(0);
        let mut fork = chat("secret", 3, None);
        fork.extend(format!("\n{}", message("fork", 9)).bytes());
        one.write(FORK, fork);
    });
    erase(&one);
    sync(&mut one, &folder);
    let lines = two.json(&["sync", text(&folder)]).exits(3).lines();
    assert_eq!(outcome(&lines, NAME), "erased-elsewhere");
    assert_eq!(outcome(&lines, "chats/Mira/Fork"), "skipped");
    erase(&two);
    two.append(FORK, &message("two", 10));
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).into_keys().collect::<Vec<_>>(), [FORK]);
}

#[test]
fn reimported_erased_chat_is_synced_to_all_devices() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(SECRET, chat("secret", 3, None));
    });
    let backup = one.folder().join("all.stvc");
    one.stvc(&["backup", text(&backup)]).exits(0);
    for device in [&mut one, &mut two] {
        erase(device);
        sync(device, &folder);
    }
    one.stvc(&["import", text(&backup)]).exits(0);
    one.stvc(&["restore", "Mira/Secret"]).exits(0);
    sync_until_equal(&mut one, &mut two, &folder);
    assert!(two.path(SECRET).exists());
}

#[test]
fn record_of_erasures_contains_no_names() {
    let device = Sandbox::empty();
    device.write(SECRET, chat("secret", 3, None));
    device.stvc(&["snapshot"]).exits(0);
    erase(&device);
    let record = fs::read_to_string(device.store().join("stvc/erased")).unwrap();
    let is_hex = |line: &str| line.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(record.lines().count() >= 2 && record.lines().all(is_hex), "{record}");
    let status: Vec<Value> = device.json(&["status"]).exits(0).of_type("timeline");
    assert!(status.is_empty(), "{status:?}");
}

#[test]
fn name_of_erased_chat_can_be_used_again_before_the_next_sync() {
    for other_device_goes_on in [false, true] {
        let (mut one, mut two, folder) = synced_pair(|one| {
            one.write(A, chat("a", 3, None));
            one.write(SECRET, chat("secret", 3, None));
        });
        if other_device_goes_on {
            two.append(SECRET, &message("two", 4));
            sync(&mut two, &folder);
        }
        erase(&one);
        one.write(SECRET, chat("quite another", 2, None));
        sync(&mut one, &folder);
        sync(&mut one, &folder);
        assert!(heads(&folder).contains("Secret"));
        assert!(String::from_utf8(one.read(SECRET)).unwrap().contains("quite another"));
    }
}

#[test]
fn remote_removes_fork_snapshots_that_reach_the_erased_chat() {
    let mut one = Sandbox::empty();
    one.write(SECRET, chat("secret", 4, None));
    let folder = one.folder().join("shared");
    sync(&mut one, &folder);
    one.json(&["fork", "Mira/Secret", "--at", "1", "--as", "Fork"]).exits(0);
    sync(&mut one, &folder);
    let has_it = || {
        let all = git(&folder, &["cat-file", "--batch-all-objects", "--batch"]);
        String::from_utf8_lossy(&all).contains("secret 3: ")
    };
    assert!(has_it());
    erase(&one);
    sync(&mut one, &folder);
    git(&folder, &["gc", "-q", "--prune=now"]);
    assert!(!has_it());
}

#[test]
fn erased_chat_is_never_sent_after_another_chat_got_its_name() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 3, None));
        one.write(SECRET, chat("secret", 3, None));
    });
    erase(&one);
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    one.write(SECRET, chat("quite another", 2, None));
    sync(&mut one, &folder);
    let aside = "chats/Mira/Secret (other version 2026-11-14)";
    for _ in 0..3 {
        let lines = sync(&mut two, &folder);
        assert_eq!(outcome(&lines, aside), "erased-elsewhere", "{lines:?}");
        sync(&mut one, &folder);
    }
    let has_secret = |device: &Sandbox| {
        chats_and_lorebooks(device)
            .values()
            .any(|bytes| String::from_utf8_lossy(bytes).contains("secret 0"))
    };
    assert!(has_secret(&two) && !has_secret(&one));
    assert!(!heads(&folder).contains("other version"), "{}", heads(&folder));
    // The printed command erases the right chat.
    let output = two.stvc(&["sync", text(&folder)]).exits(0).stdout;
    assert!(output.contains(&format!("stvc erase \"{aside}\"")), "{output}");
    fs::remove_file(two.path(&format!("{aside}.jsonl"))).unwrap();
    two.stvc(&["erase", aside, "--yes"]).exits(0);
    sync_until_equal(&mut one, &mut two, &folder);
    assert!(String::from_utf8(two.read(SECRET)).unwrap().contains("quite another"));
}

fn has_text(store: &Path, words: &str) -> bool {
    let all = git(store, &["cat-file", "--batch-all-objects", "--batch"]);
    String::from_utf8_lossy(&all).contains(words)
}

#[test]
fn folder_has_no_object_of_an_erased_chat_after_the_next_sync() {
    let mut one = Sandbox::empty();
    one.write(A, chat("a", 3, None));
    one.write(SECRET, chat("secret", 3, None));
    let folder = one.folder().join("shared");
    sync(&mut one, &folder);
    // Both chats have hidden snapshots there.
    for n in 0..2 {
        one.append(SECRET, &message("secret", 10 + n));
        one.append(A, &message("a", 10 + n));
        sync(&mut one, &folder);
    }
    one.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sync(&mut one, &folder);
    let kept = || {
        let kept = git(&folder, &["for-each-ref", "--format=%(objectname)", "refs/stvc/kept"]);
        String::from_utf8(kept).unwrap().lines().count()
    };
    assert_eq!(kept(), 2);
    erase(&one);
    sync(&mut one, &folder);
    assert!(!has_text(&folder, "secret "));
    assert_eq!(kept(), 1, "what is kept of the other chat stays");
    // An undo there does not restore it.
    one.stvc(&["--store", text(&folder), "undo"]).exits(0);
    assert!(!heads(&folder).contains("Secret"));
    one.stvc(&["check", text(&folder)]).exits(0);
    sync(&mut one, &folder);
}

#[test]
#[cfg(unix)]
fn server_has_no_ref_to_an_erased_chat_after_the_next_sync() {
    let mut one = Sandbox::empty();
    one.write(A, chat("a", 3, None));
    one.write(SECRET, chat("secret", 3, None));
    let shared = Remote::server(&one);
    let remote = shared.address(&one);
    for n in 0..2 {
        sync(&mut one, &remote);
        one.append(SECRET, &message("secret", 10 + n));
        one.append(A, &message("a", 10 + n));
    }
    sync(&mut one, &remote);
    one.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sync(&mut one, &remote);
    let tips = || {
        let tips = git(shared.store(), &["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
        String::from_utf8(tips).unwrap().lines().count()
    };
    assert_eq!(tips(), 2);
    erase(&one);
    sync(&mut one, &remote);
    assert_eq!(tips(), 1, "what is kept of the other chat stays");
    git(shared.store(), &["gc", "-q", "--prune=now"]);
    assert!(!has_text(shared.store(), "secret "));
    assert!(has_text(shared.store(), "a 1: "));
}

#[test]
fn new_chat_with_erased_name_and_greeting_is_sent() {
    let greeted = |words: &str| {
        let lines = [chat("hello", 1, None), message(words, 1).into_bytes()];
        lines.join(&b'\n')
    };
    for is_synced_between in [false, true] {
        let (mut one, mut two, folder) = synced_pair(|one| {
            one.write(A, chat("a", 3, None));
            one.write(SECRET, greeted("secret"));
        });
        erase(&one);
        if is_synced_between {
            sync(&mut one, &folder);
        }
        one.write(SECRET, greeted("quite another"));
        for _ in 0..2 {
            sync(&mut one, &folder);
            let lines = sync(&mut two, &folder);
            let aside = "chats/Mira/Secret (other version 2026-11-14)";
            assert_eq!(outcome(&lines, aside), "erased-elsewhere", "{lines:?}");
        }
        assert!(String::from_utf8(two.read(SECRET)).unwrap().contains("quite another"));
        assert!(!has_text(&folder, "secret 1: "));
        assert!(!has_text(&one.store(), "secret 1: "));
    }
}
