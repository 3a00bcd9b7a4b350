//! Two devices: nothing that was written on either is lost, and both end equal.

mod conflicts;
mod erasures;
mod model;
mod renames;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::devices::{chats_and_lorebooks, sync, sync_until_equal, synced_pair};
use crate::common::{
    A, Dice, Sandbox, assert_same, assert_valid, chat, git, message, refs, text, tree,
};

const BOOK: &str = "worlds/Harbour.json";

fn book(entries: &[(&str, &str, &str)]) -> String {
    let entries: BTreeMap<_, _> = entries
        .iter()
        .map(|(uid, title, content)| {
            let uid: u64 = uid.parse().unwrap();
            (
                uid.to_string(),
                json!({ "uid": uid, "comment": title, "key": [title], "content": content }),
            )
        })
        .collect();
    serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap()
}

fn outcome(answer: &[Value], timeline: &str) -> String {
    let line = answer.iter().find(|line| line["type"] == "synced" && line["timeline"] == timeline);
    line.map_or("none".into(), |line| line["outcome"].as_str().unwrap().to_owned())
}

#[test]
fn chat_continued_on_one_device_fast_forwards_the_other() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(BOOK, book(&[("0", "Pier", "old")]));
        one.write(A, chat("a", 3, Some("Harbour")));
    });
    one.append(A, &message("one", 4));
    one.write(BOOK, book(&[("0", "Pier", "new")]));
    one.write("chats/Mira/b.jsonl", chat("b", 2, None));
    sync(&mut one, &folder);
    let before = (chats_and_lorebooks(&two), tree(&two.store()), tree(&folder));
    let dry = two.json(&["sync", text(&folder), "--dry-run"]).exits(0);
    assert_eq!(outcome(&dry.lines(), "chats/Mira/a"), "forward");
    assert!(
        (chats_and_lorebooks(&two), tree(&two.store()), tree(&folder)) == before,
        "a dry run changed something"
    );
    let answer = sync(&mut two, &folder);
    assert_eq!(outcome(&answer, "chats/Mira/a"), "forward");
    assert_eq!(outcome(&answer, "chats/Mira/b"), "new");
    assert_same(&chats_and_lorebooks(&two), &chats_and_lorebooks(&one));
    assert_eq!(refs(&two.store()), refs(&one.store()));
    // One operation, which can be undone.
    two.stvc(&["undo"]).exits(0);
    assert_same(&chats_and_lorebooks(&two), &before.0);
    let again = sync(&mut two, &folder);
    assert_eq!(outcome(&again, "chats/Mira/a"), "forward");
    assert_same(&chats_and_lorebooks(&two), &chats_and_lorebooks(&one));
    assert_eq!(outcome(&sync(&mut two, &folder), "chats/Mira/a"), "known");
    sync_until_equal(&mut one, &mut two, &folder);
}

#[test]
fn sync_dry_run_predicts_the_outcomes_of_the_sync() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    one.append(A, &message("one", 4));
    sync(&mut one, &folder);
    two.append(A, &message("two", 4));
    let files = chats_and_lorebooks(&two);
    let (refs_before, there) = (refs(&two.store()), refs(&folder));
    let plan = two.json(&["sync", text(&folder), "--dry-run"]).exits(0);
    // It begins with a snapshot, of which nothing remains.
    assert_same(&chats_and_lorebooks(&two), &files);
    assert_eq!((refs(&two.store()), refs(&folder)), (refs_before, there));
    assert_eq!(plan.of_type("summary")[0]["taken_first"], 1);
    let done = sync(&mut two, &folder);
    let outcomes = |lines: &[Value]| -> Vec<_> {
        let synced = lines.iter().filter(|line| line["type"] == "synced");
        synced.map(|line| (line["timeline"].clone(), line["outcome"].clone())).collect()
    };
    assert_eq!(outcomes(&plan.lines()), outcomes(&done));
    assert_eq!(outcome(&done, "chats/Mira/a"), "set-aside");
}

#[test]
fn both_versions_of_a_diverged_chat_are_kept() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    one.append(A, &message("one", 4));
    two.append(A, &message("two", 4));
    let (of_one, of_two) = (one.read(A), two.read(A));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    assert_eq!(outcome(&answer, "chats/Mira/a"), "set-aside");
    let other = "chats/Mira/a (other version 2026-11-14)";
    assert_eq!(answer.iter().find(|line| line["type"] == "synced").unwrap()["other"], other);
    assert_eq!(two.read(A), of_one);
    assert_eq!(two.read(&format!("{other}.jsonl")), of_two);
    sync_until_equal(&mut one, &mut two, &folder);
    let listed = one.json(&["timelines"]).exits(0).of_type("timeline");
    let names: Vec<_> = listed.iter().map(|line| line["timeline"].as_str().unwrap()).collect();
    assert_eq!(names, ["chats/Mira/a", other]);
    assert_eq!(listed[1]["parent"], "chats/Mira/a");
    // Both grow separately.
    one.append(A, &message("one", 5));
    two.append(&format!("{other}.jsonl"), &message("two", 5));
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 2);
}

#[test]
fn diverged_lorebook_is_merged() {
    const PIER: &str = "Wet stones under the old lamp, slippery at low tide.";
    const GULL: &str = "Grey birds scream over each roof before the rain comes.";
    const NET: &str = "It hangs behind the chapel and nobody mends it.";
    let wet = PIER.replace("old", "new");
    let loud = GULL.replace("scream", "laugh");
    let (rope, sail) = ("Hemp from the north quay, tarred twice.", "Canvas, patched by Ines.");
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(BOOK, book(&[("0", "Pier", PIER), ("1", "Gull", GULL), ("2", "Net", NET)]));
        one.write(A, chat("a", 3, Some("Harbour")));
        one.write("chats/Mira/b.jsonl", chat("b", 2, Some("Harbour")));
    });
    let of_one =
        [("0", "Pier", &*wet), ("1", "Gull", GULL), ("2", "Net", NET), ("3", "Rope", rope)];
    let of_two =
        [("0", "Pier", PIER), ("1", "Gull", &*loud), ("2", "Net", NET), ("3", "Sail", sail)];
    one.write(BOOK, book(&of_one));
    one.append(A, &message("one", 4));
    two.write(BOOK, book(&of_two));
    two.append("chats/Mira/b.jsonl", &message("two", 3));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    assert_eq!(outcome(&answer, "worlds/Harbour"), "merged");
    // Each chat changed on one side only.
    assert_eq!(outcome(&answer, "chats/Mira/a"), "forward");
    assert_eq!(outcome(&answer, "chats/Mira/b"), "known");
    let merged: Value = serde_json::from_slice(&two.read(BOOK)).unwrap();
    let entries = merged["entries"].as_object().unwrap().values();
    let contents: BTreeSet<_> = entries.map(|entry| entry["content"].as_str().unwrap()).collect();
    assert_eq!(contents, BTreeSet::from([&*wet, &*loud, NET, rope, sail]));
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 3);
}

#[test]
fn lorebook_conflict_keeps_both_versions_and_names_the_merge_command() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(BOOK, book(&[("0", "Pier", "old")]));
        one.write(A, chat("a", 3, Some("Harbour")));
    });
    one.write(BOOK, book(&[("0", "Pier", "one")]));
    two.write(BOOK, book(&[("0", "Pier", "two")]));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    let line = answer.iter().find(|line| line["timeline"] == "worlds/Harbour").unwrap();
    assert_eq!(
        (&line["outcome"], &line["conflicts"], &line["lorebook"]),
        (&"merged".into(), &1.into(), &BOOK.into())
    );
    // No chat is duplicated or changed.
    assert_eq!(outcome(&answer, "chats/Mira/a"), "known");
    let settle_it = line["settle"].as_str().unwrap().to_owned();
    assert_eq!(two.read(BOOK), book(&[("0", "Pier", "one")]).into_bytes());
    let aside = two.files().into_keys().find(|path| path.contains("other version")).unwrap();
    assert_eq!(two.read(&aside), book(&[("0", "Pier", "two")]).into_bytes());
    sync_until_equal(&mut one, &mut two, &folder);
    let all = |sandbox: &Sandbox| {
        let worlds = sandbox.files().into_iter().filter(|(path, _)| path.starts_with("worlds/"));
        worlds.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect::<String>()
    };
    for words in ["\"one\"", "\"two\""] {
        assert!(all(&one).contains(words) && all(&two).contains(words), "{words} is lost");
    }
    if cfg!(windows) {
        // The printed line is for PowerShell.
        return;
    }
    let script = format!("{settle_it} --keep local --yes").replace("stvc merge", "\"$0\" merge");
    let program = two.command(&[]);
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(program.get_program())
        .current_dir(two.library())
        .output()
        .unwrap();
    assert!(status.status.success(), "{script}: {status:?}");
    assert_eq!(two.read(BOOK), book(&[("0", "Pier", "two")]).into_bytes());
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(one.read(BOOK), two.read(BOOK));
}

#[test]
fn unrelated_lorebooks_with_the_same_name_are_not_overwritten() {
    let mut one = Sandbox::empty();
    let mut two = Sandbox::empty();
    let folder = one.folder().join("shared");
    one.write(BOOK, book(&[("0", "Pier", "one"), ("1", "Gull", "same")]));
    one.write(A, chat("a", 3, Some("Harbour")));
    two.write(BOOK, book(&[("0", "Pier", "two"), ("1", "Gull", "same")]));
    two.write("chats/Mira/b.jsonl", chat("b", 3, Some("Harbour")));
    sync_until_equal(&mut one, &mut two, &folder);
    let worlds: String = chats_and_lorebooks(&one)
        .into_iter()
        .filter(|(path, _)| path.starts_with("worlds/"))
        .map(|(_, bytes)| String::from_utf8(bytes).unwrap())
        .collect();
    assert!(worlds.contains("\"one\"") && worlds.contains("\"two\""), "{worlds}");
}

#[test]
fn sync_transfers_renames_and_tags() {
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(A, chat("a", 4, None));
        one.write("chats/Mira/c.jsonl", chat("c", 4, None));
    });
    one.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    two.stvc(&["tag", "mark", "Mira/c"]).exits(0);
    fs::rename(one.path(A), one.path("chats/Mira/z.jsonl")).unwrap();
    one.append("chats/Mira/z.jsonl", &message("one", 5));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    assert_eq!(outcome(&answer, "chats/Mira/z"), "renamed");
    assert!(!two.path(A).exists());
    sync_until_equal(&mut one, &mut two, &folder);
    let tags: BTreeSet<_> = one
        .json(&["tag"])
        .exits(0)
        .of_type("tag")
        .iter()
        .map(|line| {
            (
                line["name"].as_str().unwrap().to_owned(),
                line["timeline"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let names: Vec<_> = tags.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["mark", "mark (2)"], "{tags:?}");
}

#[test]
fn sync_treats_a_reused_name_as_another_chat() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 4, None)));
    let renamed = "chats/Mira/z.jsonl";
    fs::rename(one.path(A), one.path(renamed)).unwrap();
    one.stvc(&["snapshot"]).exits(0);
    one.write(A, chat("quite another", 2, None));
    sync(&mut one, &folder);
    let answer = sync(&mut two, &folder);
    assert_eq!(outcome(&answer, "chats/Mira/a"), "new");
    // The chat under its new name is not duplicated.
    assert_same(&chats_and_lorebooks(&two), &chats_and_lorebooks(&one));
    assert_eq!(chats_and_lorebooks(&two).len(), 2);
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 2);
}

#[test]
fn group_metadata_is_synced_in_both_directions() {
    let group = |note: &str| {
        json!({
            "id": "7", "name": "Crew", "members": [], "chat_id": "night", "chats": ["night"],
            "chat_metadata": { "note_prompt": note },
        })
        .to_string()
    };
    let headless = |messages: usize| {
        let lines: Vec<_> = (0..messages).map(|n| message("g", n)).collect();
        lines.join("\n")
    };
    const GROUP: &str = "groups/7.json";
    const NIGHT: &str = "group chats/night.jsonl";
    let (mut one, mut two, folder) = synced_pair(|one| {
        one.write(GROUP, group("before"));
        one.write(NIGHT, headless(3));
    });
    one.write(GROUP, group("after"));
    two.write(NIGHT, headless(4));
    sync(&mut two, &folder);
    sync(&mut one, &folder);
    sync_until_equal(&mut one, &mut two, &folder);
    for device in [&one, &two] {
        assert_eq!(device.read(NIGHT), headless(4).into_bytes());
        let group: Value = serde_json::from_slice(&device.read(GROUP)).unwrap();
        assert_eq!(group["chat_metadata"]["note_prompt"], "after");
    }
    // Changed on both sides: both versions are kept.
    one.write(GROUP, group("by one"));
    two.write(GROUP, group("by two"));
    sync(&mut two, &folder);
    sync(&mut one, &folder);
    let all = one.stvc(&["timelines"]).exits(0).stdout;
    assert!(all.contains("other version"), "{all}");
}

/// A killed sync leaves objects, which do not prove that this device knew the remote branch.
#[test]
fn backup_after_an_interrupted_sync_does_not_overwrite_the_mirror() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    one.append(A, &message("one", 4));
    two.append(A, &message("two", 4));
    sync(&mut two, &folder);
    one.stvc(&["snapshot"]).exits(0);
    git(&one.store(), &["fetch", "-q", text(&folder), "refs/heads/*:refs/junk/*"]);
    for name in one.git(&["for-each-ref", "--format=%(refname)", "refs/junk"]).lines() {
        git(&one.store(), &["update-ref", "-d", name]);
    }
    let before = tree(&folder);
    one.stvc(&["backup", text(&folder)]).exits(4);
    assert!(tree(&folder) == before, "the mirror changed");
    sync(&mut one, &folder);
    sync_until_equal(&mut one, &mut two, &folder);
}

#[test]
fn forgotten_snapshots_are_not_fetched_again() {
    let (mut one, mut two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
    for n in 4..8 {
        one.append(A, &message("one", n));
        sync(&mut one, &folder);
    }
    one.stvc(&["forget", "--keep-last", "1"]).exits(0);
    let ids = one.snapshot_ids();
    assert!(ids.len() < 5);
    assert_eq!(outcome(&sync(&mut one, &folder), "chats/Mira/a"), "known");
    assert_eq!(one.snapshot_ids(), ids);
    one.stvc(&["import", text(&folder)]).exits(0);
    assert_eq!(one.snapshot_ids(), ids);
    // A device that has not forgotten them sends them again, without duplicates.
    sync(&mut two, &folder);
    sync_until_equal(&mut one, &mut two, &folder);
    assert_eq!(chats_and_lorebooks(&one).len(), 1);
}

/// Sync does not transfer objects that exist here. If `gc` drops them during the sync, they must be
/// transferred.
#[cfg(target_os = "linux")]
#[test]
fn gc_during_sync_loses_nothing() {
    use std::process::Stdio;

    use crate::common::{can_trace, traced_with};

    if !can_trace() {
        return;
    }
    for what in ["sync", "import"] {
        let (mut one, two, folder) = synced_pair(|one| one.write(A, chat("a", 3, None)));
        for n in 4..8 {
            one.append(A, &message("one", n));
            sync(&mut one, &folder);
            if n < 7 {
                two.stvc(&["sync", text(&folder)]).exits(0);
            }
        }
        // The lock of the transfer; the previous one is that of the first snapshot, if any.
        for nth in 1..=3 {
            let inject = format!("inject=flock:delay_enter=1500000:when={nth}");
            let mut traced =
                traced_with(&two, &["-e", "trace=flock", "-e", &inject], &[what, text(&folder)]);
            let running = traced.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(700));
            two.stvc(&["forget", "--keep-last", "1"]).exits(0);
            two.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"]).exits(0);
            let answer = crate::common::answer(running.wait_with_output().unwrap());
            assert_eq!(answer.code, 0, "{what}, lock {nth}: {answer:?}");
            assert_valid(&two);
            let newest = one.git(&["rev-parse", "refs/heads/chats/Mira/a"]);
            let to = tempfile::tempdir().unwrap();
            let to = to.path().join("restored");
            two.stvc(&["restore", newest.trim(), "--to", text(&to)]).exits(0);
            assert!(std::fs::read(to.join(A)).unwrap() == one.read(A), "{what}, lock {nth}");
            assert!(what != "sync" || two.read(A) == one.read(A), "lock {nth}");
            one.append(A, &message("one", 10 + nth));
            sync(&mut one, &folder);
        }
    }
}

#[test]
fn sync_refuses_a_folder_that_is_not_a_mirror() {
    let one = Sandbox::empty();
    one.write(A, chat("a", 3, None));
    let folder = one.folder().join("theirs");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter"), "Dear Mira").unwrap();
    one.stvc(&["sync", text(&folder)]).exits(4);
    one.stvc(&["sync", "x.stvc"]).exits(2);
    let other = Sandbox::empty();
    other.write(A, chat("b", 3, None));
    other.stvc(&["snapshot"]).exits(0);
    one.stvc(&["sync", text(&other.store())]).exits(4);
    assert!(!one.store().exists());
}

/// A server that both reach; another device pushes between a fetch and its push.
#[test]
#[cfg(unix)]
fn rejected_push_is_retried() {
    use crate::common::git_server::{configure_ssh, create_server, set_connection};
    let mut one = Sandbox::empty();
    let mut two = Sandbox::empty();
    let path = create_server(one.folder());
    let url = PathBuf::from(configure_ssh(&one, &path));
    configure_ssh(&two, &path);
    one.write(A, chat("a", 3, None));
    sync(&mut one, &url);
    sync(&mut two, &url);
    assert_same(&chats_and_lorebooks(&two), &chats_and_lorebooks(&one));
    one.append(A, &message("one", 4));
    two.write("chats/Mira/b.jsonl", chat("b", 3, None));
    two.append(A, &message("two", 4));
    // The first device pushes during the push of the second.
    let script = format!(
        "cd '{}' && HOME='{}' SOURCE_DATE_EPOCH={} '{}' sync '{}' >/dev/null 2>&1",
        one.library().display(),
        one.folder().display(),
        crate::common::NOW + 30,
        one.command(&[]).get_program().display(),
        url.display()
    );
    fs::write(two.folder().join("race.sh"), script).unwrap();
    set_connection(&two, "race");
    let answer = sync(&mut two, &url);
    assert!(!two.folder().join("way").exists(), "nobody raced");
    assert_eq!(outcome(&answer, "chats/Mira/a"), "set-aside");
    sync_until_equal(&mut one, &mut two, &url);
    git(&path, &["fsck", "--strict"]);
    // Without a network: reported, and nothing changes here.
    set_connection(&two, "down");
    let before = chats_and_lorebooks(&two);
    two.stvc(&["sync", text(&url)]).exits(1);
    assert_same(&chats_and_lorebooks(&two), &before);
}

/// Two devices write, take snapshots and sync in any order. In the end every message and every
/// entry is in a file on both, and every snapshot is in both stores.
fn model(seed: u64, steps: usize) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(7));
    let (one, two, folder) = synced_pair(|one| {
        one.write(BOOK, book(&[("0", "Pier", "first")]));
        one.write(A, chat("a", 3, Some("Harbour")));
        one.write("chats/Mira/b.jsonl", chat("b", 2, Some("Harbour")));
    });
    let mut devices = [one, two];
    let mut written: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for n in 0..steps {
        let at = dice.roll(2);
        let device = &mut devices[at];
        device.wait(1 + dice.roll(50) as i64);
        let chats: Vec<_> = chats_and_lorebooks(device)
            .into_keys()
            .filter(|path| path.starts_with("chats/"))
            .collect();
        match dice.roll(10) {
            0..=3 => {
                let words = format!("words {seed}-{n}");
                let chat = &chats[dice.roll(chats.len())];
                device.append(chat, &message(&words, 100 + n));
                written.insert(words);
            }
            4..=5 => {
                // Adds an entry or changes one.
                let books: Vec<_> = chats_and_lorebooks(device)
                    .into_keys()
                    .filter(|path| path.starts_with("worlds/"))
                    .collect();
                let path = &books[dice.roll(books.len())];
                let mut found: Value = serde_json::from_slice(&device.read(path)).unwrap();
                let entries = found["entries"].as_object_mut().unwrap();
                // Unique words, so that no entry matches another.
                let hash = blake3::hash(format!("{seed}/{n}").as_bytes()).to_hex();
                let words = format!("entry {seed}-{n} {}", &hash[..40]);
                if dice.roll(3) == 0 {
                    let keys: Vec<_> = entries.keys().cloned().collect();
                    let key = &keys[dice.roll(keys.len())];
                    let old = entries[key]["content"].as_str().unwrap().to_owned();
                    // Appended to the old text, so that nothing may be lost.
                    entries[key]["content"] = format!("{old}; {words}").into();
                } else {
                    let uid =
                        (0..).find(|uid: &u64| !entries.contains_key(&uid.to_string())).unwrap();
                    entries.insert(
                        uid.to_string(),
                        json!({ "uid": uid, "comment": words, "key": [words], "content": words }),
                    );
                }
                known.insert(words);
                let bytes = serde_json::to_string_pretty(&found).unwrap();
                device.write(path, bytes);
            }
            6 => device
                .write(&format!("chats/Mira/new {n}.jsonl"), chat(&format!("new {n}"), 2, None)),
            7 => drop(device.take(&[])),
            _ => drop(sync(device, &folder)),
        }
        ids.extend(devices[at].snapshot_ids());
    }
    let [mut one, mut two] = devices;
    sync_until_equal(&mut one, &mut two, &folder);
    for device in [&one, &two] {
        let all: BTreeSet<_> = device.snapshot_ids().into_iter().collect();
        let lost: Vec<_> = ids.difference(&all).collect();
        assert!(lost.is_empty(), "seed {seed}: snapshots {lost:?} are lost");
        // Conflicting values are in a lorebook that no chat uses yet.
        let files = device.files();
        let everything = |prefix: &str| {
            let of = files.iter().filter(|(path, _)| path.starts_with(prefix));
            of.map(|(_, bytes)| String::from_utf8(bytes.clone()).unwrap()).collect::<String>()
        };
        let (chats, worlds) = (everything("chats/"), everything("worlds/"));
        for words in &written {
            assert!(chats.contains(words.as_str()), "seed {seed}: {words:?} is lost");
        }
        for words in &known {
            assert!(worlds.contains(words.as_str()), "seed {seed}: {words:?} is lost");
        }
    }
}

#[test]
fn two_devices_converge_in_any_order() {
    let seeds: u64 =
        std::env::var("STVC_SYNC_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let first =
        std::env::var("STVC_SYNC_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        model(seed, 40);
    }
}
