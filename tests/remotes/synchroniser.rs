//! A folder that a stand-in for Syncthing copies between two machines: late, in any order, with
//! temporary files, conflict copies and late deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::devices::chats_and_lorebooks;
use crate::common::{A, Dice, Sandbox, assert_same, assert_valid, chat, files, message, text};

const BOOK: &str = "worlds/Harbour.json";
const STEPS: usize = 40;

/// A change of a file that the other folder does not have yet.
struct Change {
    name: String,
    /// The index of the folder that is to be changed.
    to: usize,
    is_deletion: bool,
}

/// Copies new files between two folders and repeats deletions, one change at a time.
struct Synchroniser {
    folders: [PathBuf; 2],
    /// The files that it has seen in each folder.
    known: [BTreeMap<String, Vec<u8>>; 2],
    pending: Vec<Change>,
    dice: Dice,
    conflict_copies: usize,
    deletions: usize,
}

impl Synchroniser {
    fn new(folders: [PathBuf; 2], seed: u64) -> Self {
        for folder in &folders {
            fs::create_dir_all(folder.join(".stfolder")).unwrap();
            fs::write(folder.join(".stfolder/syncthing-folder-abc123.txt"), "marker").unwrap();
            fs::write(folder.join(".stignore"), "(?d).DS_Store\n").unwrap();
        }
        let (known, pending) = (Default::default(), Vec::new());
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(3));
        Self { folders, known, pending, dice, conflict_copies: 0, deletions: 0 }
    }

    /// Looks for changes in both folders.
    fn scan(&mut self) {
        for from in 0..2 {
            let to = 1 - from;
            let mut found = files(&self.folders[from]);
            found.retain(|name, _| !is_ignored(name));
            for (name, bytes) in &found {
                let before = self.known[from].get(name);
                // Another object of this name would be a conflict in every synchroniser.
                assert!(before.is_none_or(|before| before == bytes), "{name} was changed");
                if before.is_none() && !self.known[to].contains_key(name) {
                    self.pending.push(Change { name: name.clone(), to, is_deletion: false });
                }
            }
            for name in self.known[from].keys().filter(|name| !found.contains_key(*name)) {
                self.pending.push(Change { name: name.clone(), to, is_deletion: true });
            }
            self.known[from] = found;
        }
    }

    /// Does a part of the work.
    fn work(&mut self, changes: usize) {
        self.scan();
        for _ in 0..changes {
            if self.pending.is_empty() {
                return;
            }
            let at = self.dice.roll(self.pending.len());
            let change = self.pending.swap_remove(at);
            let is_done =
                if change.is_deletion { self.delete(&change) } else { self.copy(&change) };
            if !is_done {
                self.pending.push(change);
            }
        }
    }

    /// Copies until both folders have the same files.
    fn settle(&mut self) {
        self.scan();
        while !self.pending.is_empty() {
            self.work(20);
        }
        assert_same(&self.known[1], &self.known[0]);
    }

    /// Copies a file. Returns false if it has only begun.
    fn copy(&mut self, change: &Change) -> bool {
        let Ok(bytes) = fs::read(self.folders[1 - change.to].join(&change.name)) else {
            return true; // It was deleted meanwhile.
        };
        let target = self.folders[change.to].join(&change.name);
        let (folder, name) = (target.parent().unwrap(), file_name(&change.name));
        fs::create_dir_all(folder).unwrap();
        let temporary = folder.join(format!(".syncthing.{name}.tmp"));
        if self.dice.roll(3) == 0 {
            fs::write(temporary, &bytes[..bytes.len() / 2]).unwrap();
            return false;
        }
        let is_copy = name.contains(".sync-conflict-");
        if !is_copy && self.dice.roll(6) == 0 {
            let beside = format!("{name}.sync-conflict-20261119-101010-ABCDEFG");
            fs::write(folder.join(beside), &bytes[..bytes.len() / 3]).unwrap();
            self.conflict_copies += 1;
        }
        fs::write(&temporary, &bytes).unwrap();
        fs::rename(temporary, target).unwrap();
        self.known[change.to].insert(change.name.clone(), bytes);
        true
    }

    /// Repeats a deletion, after some time. Returns whether it has done so.
    fn delete(&mut self, change: &Change) -> bool {
        if self.dice.roll(4) > 0 {
            return false;
        }
        if self.known[change.to].remove(&change.name).is_some() {
            fs::remove_file(self.folders[change.to].join(&change.name)).unwrap();
            self.deletions += 1;
        }
        true
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Whether Syncthing keeps the file to itself.
fn is_ignored(path: &str) -> bool {
    path.starts_with(".stfolder/")
        || path == ".stignore"
        || file_name(path).starts_with(".syncthing.")
}

fn folder_of(machine: &Sandbox) -> PathBuf {
    machine.folder().join("Sync")
}

fn add(machine: &Sandbox) {
    let passphrase = machine.folder().join("passphrase");
    fs::write(&passphrase, "correct horse\n").unwrap();
    let folder = folder_of(machine);
    let options = ["--passphrase-file", text(&passphrase)];
    machine.stvc(&[&["remote", "add", text(&folder)], &options[..]].concat()).exits(0);
}

/// Syncs. Packs may be missing, because they are on their way, but nothing may be damaged.
fn sync(machine: &mut Sandbox) {
    machine.wait(60);
    let answer = machine.json(&["sync"]).exits(0);
    let findings = answer.of_type("finding");
    let is_missing =
        |finding: &Value| finding["message"].as_str().unwrap().contains(" has no object packs/");
    let damaged =
        findings.iter().find(|finding| finding["code"] == "remote-damaged" && !is_missing(finding));
    assert_eq!(damaged, None);
}

fn chats(machine: &Sandbox) -> Vec<String> {
    let files = chats_and_lorebooks(machine).into_keys();
    files.filter(|path| path.starts_with("chats/")).collect()
}

/// Changes one machine. Returns the text of the message that it wrote.
fn edit(machine: &Sandbox, action: usize, path: &str, number: usize) -> Option<String> {
    let words = format!("words {number}.");
    let snapshot = || machine.stvc(&["snapshot"]).exits(0);
    match action {
        // Every entry has its own number, so entries of both machines can be merged.
        0..=1 if machine.path(BOOK).exists() => {
            let mut book: Value = serde_json::from_slice(&machine.read(BOOK)).unwrap();
            let entry =
                json!({ "uid": number, "comment": words, "key": [words], "content": words });
            book["entries"][number.to_string()] = entry;
            machine.write(BOOK, serde_json::to_string_pretty(&book).unwrap());
            return None;
        }
        2 => {
            snapshot();
            let new = format!("chats/Mira/name {number}.jsonl");
            fs::rename(machine.path(path), machine.path(&new)).unwrap();
            snapshot();
            return None;
        }
        3 => {
            snapshot();
            let (timeline, fork) = (path.strip_suffix(".jsonl").unwrap(), format!("fork {number}"));
            machine.stvc(&["fork", timeline, "--as", &fork]).exits(0);
            machine.append(&format!("chats/Mira/{fork}.jsonl"), &message(&words, number));
        }
        _ => machine.append(path, &message(&words, number)),
    }
    Some(words)
}

/// Syncs each machine twice, each time after everything has been copied. Asserts that both have
/// equal chats and lorebooks.
fn sync_all(machines: &mut [Sandbox; 2], synchroniser: &mut Synchroniser) {
    for _ in 0..2 {
        for machine in &mut *machines {
            synchroniser.settle();
            sync(machine);
        }
    }
    synchroniser.settle();
    let [one, two] = machines;
    assert_same(&chats_and_lorebooks(two), &chats_and_lorebooks(one));
    for machine in [one, two] {
        assert_valid(machine);
        machine.stvc(&["check", "remote"]).exits(0);
    }
}

/// The result of one run.
struct Counts {
    /// Syncs while files were on their way.
    early: usize,
    conflict_copies: usize,
    deletions: usize,
}

fn run(seed: u64) -> Counts {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17));
    let mut machines = [Sandbox::empty(), Sandbox::empty()];
    let folders = [folder_of(&machines[0]), folder_of(&machines[1])];
    let mut synchroniser = Synchroniser::new(folders, seed);
    machines[0].write(BOOK, json!({ "entries": {} }).to_string());
    machines[0].write(A, chat("a", 3, Some("Harbour")));
    machines[1].write("chats/Mira/b.jsonl", chat("b", 3, None));
    add(&machines[0]);
    synchroniser.settle();
    add(&machines[1]);
    let mut written = BTreeSet::new();
    let mut early = 0;
    for n in 0..STEPS {
        let which = dice.roll(2);
        machines[which].wait(1 + dice.roll(50) as i64);
        let chats = chats(&machines[which]);
        let path = &chats[dice.roll(chats.len())];
        match dice.roll(12) {
            0..=5 => written.extend(edit(&machines[which], dice.roll(6), path, n)),
            // Both continue one chat.
            6..=7 if machines.iter().all(|machine| machine.path(path).exists()) => {
                for (at, machine) in machines.iter_mut().enumerate() {
                    let words = format!("words {n} of {at}.");
                    machine.append(path, &message(&words, n));
                    written.insert(words);
                    sync(machine);
                }
            }
            _ => {
                synchroniser.scan();
                early += usize::from(!synchroniser.pending.is_empty());
                sync(&mut machines[which]);
            }
        }
        synchroniser.work(dice.roll(6));
    }
    sync_all(&mut machines, &mut synchroniser);
    let one = &machines[0];
    let all: Vec<_> = chats(one).iter().map(|path| one.read(path)).collect();
    let all = String::from_utf8(all.concat()).unwrap();
    let lost: Vec<_> = written.iter().filter(|words| !all.contains(*words)).collect();
    assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
    let Synchroniser { conflict_copies, deletions, .. } = synchroniser;
    Counts { early, conflict_copies, deletions }
}

#[test]
fn machines_that_add_the_folder_before_it_is_copied_are_told_which_one_adds_it_again() {
    let mut machines = [Sandbox::empty(), Sandbox::empty()];
    let folders = [folder_of(&machines[0]), folder_of(&machines[1])];
    let mut synchroniser = Synchroniser::new(folders, 1);
    for (name, machine) in ["a", "b"].into_iter().zip(&mut machines) {
        machine.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, None));
        add(machine);
        sync(machine);
    }
    synchroniser.settle();
    let told = machines.each_ref().map(|machine| {
        let findings = machine.json(&["sync"]).exits(3).of_type("finding");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0]["code"], "remote-divided", "{findings:?}");
        findings[0]["remedy"].as_str().unwrap().ends_with("on this device")
    });
    assert_ne!(told[0], told[1]);
    let machine = &mut machines[usize::from(told[1])];
    machine.stvc(&["remote", "remove", "remote"]).exits(0);
    add(machine);
    // Now the other machine sees that this one uses its key.
    sync(machine);
    sync_all(&mut machines, &mut synchroniser);
    assert_eq!(chats(&machines[0]), ["chats/Mira/a.jsonl", "chats/Mira/b.jsonl"]);
}

#[test]
fn machines_converge_through_a_folder_that_is_copied_late_and_in_any_order() {
    let counts: Vec<_> = (0..3).map(run).collect();
    let sum = |count: fn(&Counts) -> usize| counts.iter().map(count).sum::<usize>();
    assert!(sum(|counts| counts.early) > 0, "every sync came after all copies");
    assert!(sum(|counts| counts.conflict_copies) > 0, "there were no conflict copies");
    assert!(sum(|counts| counts.deletions) > 0, "nothing was deleted");
}
