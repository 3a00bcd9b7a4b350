//! Three devices write, rename, fork, erase, undo and sync in any order, through a folder, a server
//! or plain storage. In the end, all devices have equal files and branches. Every message is in a
//! file of every device, unless its chat was erased. No sync is refused.

#![allow(clippy::print_stdout, reason = "a failure is understood only by the steps that led to it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{BOOK, book};
use crate::common::devices::{Remote, chats_and_lorebooks};
use crate::common::{A, Dice, Sandbox, assert_same, assert_valid, chat, message, refs, text};

/// One device and its address of the remote.
struct Device {
    sandbox: Sandbox,
    remote: PathBuf,
}

impl Device {
    fn chats(&self) -> Vec<String> {
        let files = chats_and_lorebooks(&self.sandbox).into_keys();
        files.filter(|path| path.starts_with("chats/")).collect()
    }

    /// Syncs. The only permitted problems are conflicts and forks of an erased chat that is not
    /// erased everywhere yet.
    fn sync(&mut self) -> Vec<Value> {
        self.sandbox.wait(60);
        let answer = self.sandbox.json(&["sync", text(&self.remote)]);
        let lines = answer.lines();
        let summary = answer.of_type("summary");
        assert!(!summary.is_empty(), "refused: {}", answer.stdout);
        let open =
            summary[0]["conflicts"].as_u64().unwrap() + summary[0]["skipped"].as_u64().unwrap();
        let left: Vec<_> = lines.iter().filter(|line| line["outcome"] == "skipped").collect();
        for line in &left {
            assert_eq!(line["why"], "its parent chat was erased", "{line}");
        }
        answer.exits(if open > 0 { 3 } else { 0 });
        for line in
            lines.iter().filter(|line| line["type"] == "synced" && line["outcome"] != "known")
        {
            println!("    {} {} (other: {})", line["outcome"], line["timeline"], line["other"]);
        }
        lines
    }

    /// Erases a chat; its messages may be lost from now on.
    fn erase(&self, timeline: &str, said: &mut Written) {
        let path = self.sandbox.path(&format!("{timeline}.jsonl"));
        if path.exists() {
            let text = fs::read_to_string(&path).unwrap();
            said.erased.extend(said.words.iter().filter(|words| text.contains(*words)).cloned());
            fs::remove_file(path).unwrap();
        }
        self.sandbox.stvc(&["erase", timeline, "--yes"]).exits(0);
    }
}

/// Every message, and those of erased chats.
#[derive(Default)]
struct Written {
    words: BTreeSet<String>,
    erased: BTreeSet<String>,
}

fn name_of(path: &str) -> &str {
    path.strip_suffix(".jsonl").unwrap()
}

fn run(seed: u64, steps: usize, shared: impl Fn(&Sandbox) -> Remote) {
    println!("seed {seed}");
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(11));
    let first = Sandbox::empty();
    first.write(BOOK, book(&[("0", "Pier", "first")]));
    first.write(A, chat("a", 3, Some("Harbour")));
    first.write("chats/Mira/b.jsonl", chat("b", 2, None));
    let remote = shared(&first);
    let sandboxes = [first, Sandbox::empty(), Sandbox::empty()];
    let mut devices = sandboxes.map(|sandbox| {
        let remote = remote.address(&sandbox);
        Device { sandbox, remote }
    });
    for device in &mut devices {
        device.sync();
    }
    let mut written = Written::default();
    for n in 0..steps {
        let which = dice.roll(3);
        let device = &mut devices[which];
        device.sandbox.wait(1 + dice.roll(50) as i64);
        let chats = device.chats();
        let pick = |dice: &mut Dice| chats.get(dice.roll(chats.len().max(1))).cloned();
        let what = dice.roll(18);
        println!("  {n}: device {which} does {what} with {chats:?}");
        match what {
            0..=3 => {
                let Some(path) = pick(&mut dice) else { continue };
                let words = format!("words {seed}-{n}.");
                device.sandbox.append(&path, &message(&words, 100 + n));
                written.words.insert(words);
            }
            4..=5 => {
                let Some(path) = pick(&mut dice) else { continue };
                let new = format!("chats/Mira/name {n}.jsonl");
                fs::rename(device.sandbox.path(&path), device.sandbox.path(&new)).unwrap();
                // The next snapshot recognises a rename.
                device.sandbox.stvc(&["snapshot"]).exits(0);
            }
            6 => {
                let Some(path) = pick(&mut dice) else { continue };
                device.sandbox.stvc(&["snapshot"]).exits(0);
                let new = format!("fork {n}");
                let fork = ["fork", name_of(&path), "--as", &new];
                device.sandbox.json(&fork).exits(0);
            }
            7 => {
                let path = format!("chats/Mira/new {n}.jsonl");
                device.sandbox.write(&path, chat(&format!("new {n}"), 2, None));
            }
            // The first sync may be undone.
            8 if device.sandbox.path(BOOK).exists() => {
                let mut found: Value = serde_json::from_slice(&device.sandbox.read(BOOK)).unwrap();
                found["entries"]["0"]["content"] = format!("entry {seed}-{n}").into();
                let bytes = serde_json::to_string_pretty(&found).unwrap();
                device.sandbox.write(BOOK, bytes);
            }
            9 if dice.roll(3) == 0 => {
                let Some(path) = pick(&mut dice) else { continue };
                device.sandbox.stvc(&["snapshot"]).exits(0);
                device.erase(name_of(&path), &mut written);
            }
            10 => {
                let lines = device.sync();
                let came = lines.iter().any(|line| line["type"] == "file");
                if came {
                    device.sandbox.stvc(&["undo"]).exits(0);
                }
            }
            // Two chats are renamed, one to the other's name, without a snapshot between.
            12 if chats.len() > 1 => {
                let (Some(from), Some(to)) = (pick(&mut dice), pick(&mut dice)) else { continue };
                // Forks of one chat can be distinguished only by a snapshot between the renames.
                let first = |path: &str| {
                    let text = String::from_utf8(device.sandbox.read(path)).unwrap();
                    text.lines().nth(1).map(str::to_owned)
                };
                if first(&from) == first(&to) {
                    continue;
                }
                device.sandbox.stvc(&["snapshot"]).exits(0);
                let new = format!("chats/Mira/chain {n}.jsonl");
                fs::rename(device.sandbox.path(&to), device.sandbox.path(&new)).unwrap();
                fs::rename(device.sandbox.path(&from), device.sandbox.path(&to)).unwrap();
                device.sandbox.stvc(&["snapshot"]).exits(0);
            }
            13 => {
                let Some(path) = pick(&mut dice) else { continue };
                let text = String::from_utf8(device.sandbox.read(&path)).unwrap();
                let (before, after) = text.split_once("\"chat_metadata\":{").unwrap();
                let comma = if after.starts_with('}') { "" } else { "," };
                let note = format!("\"chat_metadata\":{{\"note {n}\":\"{seed}\"{comma}");
                device.sandbox.write(&path, format!("{before}{note}{after}"));
            }
            // Later changes may prevent it.
            11 => drop(device.sandbox.stvc(&["undo"])),
            _ => drop(device.sync()),
        }
    }
    settle(&mut devices, &mut written, seed);
    for device in &devices {
        let chats = device.chats().iter().map(|path| device.sandbox.read(path)).collect::<Vec<_>>();
        let text = String::from_utf8(chats.concat()).unwrap();
        let mut lost =
            written.words.difference(&written.erased).filter(|words| !text.contains(*words));
        assert_eq!(lost.next(), None, "seed {seed}: lost");
    }
}

/// Syncs all devices until none has changes, erases what was erased elsewhere, and asserts that
/// they are equal.
fn settle(devices: &mut [Device; 3], said: &mut Written, seed: u64) {
    for _ in 0..8 {
        for (n, device) in devices.iter_mut().enumerate() {
            println!("  device {n} has {:?}", device.chats());
            let lines = device.sync();
            for line in lines.iter().filter(|line| line["outcome"] == "erased-elsewhere") {
                device.erase(line["timeline"].as_str().unwrap(), said);
            }
        }
    }
    let [one, others @ ..] = &*devices;
    for other in others {
        assert_same(&chats_and_lorebooks(&other.sandbox), &chats_and_lorebooks(&one.sandbox));
        assert_eq!(refs(&other.sandbox.store()), refs(&one.sandbox.store()), "seed {seed}");
    }
    for device in devices.iter() {
        assert_valid(&device.sandbox);
    }
}

const STEPS: usize = 40;

fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("STVC_SYNC_FIRST").unwrap_or(0);
    first..first + number("STVC_SYNC_SEEDS").unwrap_or(3)
}

#[test]
fn three_devices_converge_through_folder() {
    for seed in seeds() {
        run(seed, STEPS, Remote::folder);
    }
}

#[test]
fn three_devices_converge_through_storage() {
    for seed in seeds() {
        run(seed, STEPS, Remote::storage);
    }
}

#[test]
#[cfg(unix)]
fn three_devices_converge_through_server() {
    for seed in seeds() {
        run(seed, STEPS, Remote::server);
    }
}
