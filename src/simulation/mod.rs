//! A deterministic simulation of devices that share a remote on plain storage (docs/remotes.md).
//!
//! The devices edit, rename, fork, tag, delete, erase and undo, and sync through a storage that
//! delays, reorders, truncates and hides objects and fails calls. In tests, few packs are enough to
//! merge them, so packs are replaced all the time. Then the storage settles, each device syncs
//! twice, erases what another device has erased, and syncs twice again. Now all libraries and all
//! refs must be equal, every message that a sync has acknowledged must be in some snapshot unless
//! it was erased, and the storage must not contain an erased message. A failing run is shrunk to a
//! shorter list of steps.
//!
//! `STVC_REMOTE_SEEDS` sets the number of seeds, and `STVC_REMOTE_FIRST` the first seed.

mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, FixedOffset, TimeDelta};

use crate::archive::Tree;
use crate::engine::copies::chosen_refs::{Refs, ours};
use crate::engine::receive::{Outcome, ReceivedTimeline};
use crate::engine::remotes::{Remote, RemoteKey, Session};
use crate::engine::{CommandRun, Workspace};
use crate::history::History;
use crate::progress::NoProgress;
use crate::store::Kind;
use crate::verbs::sync::{Options, Report, sync_with};
use crate::verbs::{erase, snapshot, tag, undo};
use storage::{Client, Cloud, Dice};

const DEVICES: usize = 3;
const STEPS: u64 = 24;
/// Number of syncs of each device after the storage has settled.
const ROUNDS: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Edit(u64),
    EditBook(u64),
    New,
    Rename(u64),
    Fork(u64),
    Delete(u64),
    Erase(u64),
    Tag(u64),
    Undo,
    Sync,
    /// A sync whose connection breaks after this number of calls.
    BrokenSync(u64),
}

/// An action of one device. Each step has a number of its own, so that its texts stay the same if
/// other steps are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    number: u64,
    device: usize,
    action: Action,
}

fn steps(seed: u64) -> Vec<Step> {
    let mut dice = Dice(seed);
    let mut step = |number| {
        let device = dice.roll(DEVICES as u64) as usize;
        let action = match dice.roll(22) {
            0..=4 => Action::Edit(dice.roll(100)),
            5 => Action::EditBook(dice.roll(100)),
            6 => Action::New,
            7..=8 => Action::Rename(dice.roll(100)),
            9 => Action::Fork(dice.roll(100)),
            10 => Action::Delete(dice.roll(100)),
            11 => Action::Undo,
            12..=14 => Action::BrokenSync(dice.roll(12)),
            15 => Action::Tag(dice.roll(100)),
            16 if dice.roll(2) == 0 => Action::Erase(dice.roll(100)),
            _ => Action::Sync,
        };
        Step { number, device, action }
    };
    (0..STEPS).map(&mut step).collect()
}

struct Device {
    index: usize,
    folder: tempfile::TempDir,
    remote: Remote,
    cloud: Arc<Mutex<Cloud>>,
    /// Messages that were written but not yet acknowledged by a sync.
    written: BTreeSet<String>,
    /// Whether a chat was deleted, which a later sync may divide into two.
    has_deleted: bool,
    /// Messages of erased chats that no other chat has.
    erased: BTreeSet<String>,
}

impl Device {
    fn new(index: usize, key: &RemoteKey, cloud: &Arc<Mutex<Cloud>>) -> Self {
        // The simulation is not about disks, so it uses memory where that is possible.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        fs::create_dir_all(folder.path().join("chats/Mira")).unwrap();
        fs::create_dir_all(folder.path().join("worlds")).unwrap();
        let remote = Remote::new("remote".into(), "simulated".into(), key);
        Self {
            index,
            folder,
            remote,
            cloud: Arc::clone(cloud),
            written: BTreeSet::new(),
            has_deleted: false,
            erased: BTreeSet::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("chats/Mira").join(name)
    }

    fn workspace(&self, now: DateTime<FixedOffset>) -> Workspace {
        let mut workspace = Workspace::at(self.folder.path(), "simulation");
        workspace.now = now;
        workspace.command = CommandRun::new(vec!["simulation".into()]);
        workspace
    }

    fn chats(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("chats/Mira")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn pick(&self, number: u64) -> Option<String> {
        let chats = self.chats();
        let count = chats.len().max(1) as u64;
        chats.into_iter().nth((number % count) as usize)
    }

    fn snapshot(&self, now: DateTime<FixedOffset>) {
        let workspace = self.workspace(now);
        snapshot::snapshot(&workspace, &snapshot::Options::default(), &mut NoProgress).unwrap();
    }

    fn act(&mut self, step: &Step, now: DateTime<FixedOffset>) -> bool {
        let n = step.number;
        let words = format!("words {n}.");
        match step.action {
            Action::Edit(which) => {
                let Some(name) = self.pick(which) else { return false };
                let text = fs::read_to_string(self.path(&name)).unwrap();
                fs::write(self.path(&name), format!("{text}\n{}", message(&words))).unwrap();
                self.written.insert(words);
            }
            Action::EditBook(which) => {
                let path = self.folder.path().join("worlds/Book.json");
                let entry = |uid: u64, content: &str| {
                    serde_json::json!({ "uid": uid, "key": ["k"], "keysecondary": [],
                        "comment": format!("entry {uid}"), "content": content })
                };
                let mut book: serde_json::Value = match fs::read(&path) {
                    Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
                    Err(_) => serde_json::json!({ "entries": {} }),
                };
                let uid = which % 3;
                book["entries"][uid.to_string()] = entry(uid, &words);
                fs::write(path, serde_json::to_string_pretty(&book).unwrap()).unwrap();
            }
            Action::New => {
                let name = format!("new {n}.jsonl");
                fs::write(self.path(&name), chat(&words)).unwrap();
                self.written.insert(words);
            }
            Action::Rename(which) => {
                let Some(name) = self.pick(which) else {
                    return false;
                };
                self.snapshot(now);
                fs::rename(self.path(&name), self.path(&format!("name {n}.jsonl"))).unwrap();
                self.snapshot(now + TimeDelta::seconds(1));
            }
            Action::Fork(which) => {
                let Some(name) = self.pick(which) else { return false };
                self.snapshot(now);
                let text = fs::read_to_string(self.path(&name)).unwrap();
                let text = format!("{text}\n{}", message(&words));
                fs::write(self.path(&format!("fork {n}.jsonl")), text).unwrap();
                self.snapshot(now + TimeDelta::seconds(1));
                self.written.insert(words);
            }
            Action::Delete(which) => {
                // An empty library may be a disk that is not mounted, so the deletion of the last
                // chat is recorded only when there is a chat again.
                let chats = self.chats().len();
                let Some(name) = self.pick(which).filter(|_| chats > 1) else { return false };
                self.snapshot(now);
                fs::remove_file(self.path(&name)).unwrap();
                self.has_deleted = true;
                // The deletion is recorded now, and not by one of the last syncs.
                self.snapshot(now + TimeDelta::seconds(1));
            }
            Action::Erase(which) => {
                let chats = self.chats().len();
                let Some(name) = self.pick(which).filter(|_| chats > 1) else { return false };
                self.snapshot(now);
                self.erase(name.trim_end_matches(".jsonl"), now + TimeDelta::seconds(1));
            }
            Action::Tag(which) => {
                let Some(name) = self.pick(which) else { return false };
                self.snapshot(now);
                let snapshot = format!("chats/Mira/{}", name.trim_end_matches(".jsonl"));
                let options =
                    tag::Options::Add { name: format!("tag {}", n % 2), snapshot, lead: true };
                tag::tag(&self.workspace(now), &options).unwrap();
            }
            Action::Undo => {
                let options = undo::Options::default();
                // Later changes may prevent it.
                let _ = undo::undo(&self.workspace(now), &options);
                // Messages that an undo removes are not acknowledged by a later sync.
                self.written.clear();
            }
            Action::Sync => return self.sync(now, None).is_some(),
            Action::BrokenSync(calls) => return self.sync(now, Some(calls)).is_some(),
        }
        false
    }

    /// Erases a chat, and deletes its file.
    fn erase(&mut self, name: &str, now: DateTime<FixedOffset>) {
        let before = self.messages(now);
        let _ = fs::remove_file(self.path(&format!("{name}.jsonl")));
        self.has_deleted = true;
        self.snapshot(now);
        let timelines = vec![format!("chats/Mira/{name}")];
        let options = erase::Options { timelines, dry_run: false };
        erase::erase(&self.workspace(now), &options, &mut NoProgress).unwrap();
        let after = self.messages(now);
        self.erased.extend(before.difference(&after).cloned());
    }

    /// Erases the chats that another device has erased, as `stvc sync` suggests. Returns whether
    /// there was one.
    fn erase_what_others_erased(&mut self, now: DateTime<FixedOffset>) -> bool {
        let report = self.sync(now, None).unwrap();
        let is_erased = |entry: &&ReceivedTimeline| entry.outcome == Outcome::ErasedElsewhere;
        let erased: Vec<_> = report.entries.iter().filter(is_erased).collect();
        for entry in &erased {
            self.erase(entry.timeline.chat(), now + TimeDelta::seconds(1));
        }
        !erased.is_empty()
    }

    /// Opens the remote.
    fn session(&self, workspace: &Workspace, breaks_after: Option<u64>) -> Session {
        let storage = Client {
            cloud: Arc::clone(&self.cloud),
            device: self.index,
            breaks_after: Mutex::new(breaks_after),
        };
        let store = workspace.find_or_create_store().unwrap();
        Session::over(workspace, &store, &self.remote, Arc::new(storage)).unwrap()
    }

    /// Syncs. Returns the report if the sync succeeded, so that everything written is acknowledged.
    fn sync(&self, now: DateTime<FixedOffset>, breaks_after: Option<u64>) -> Option<Report> {
        let options = Options {
            place: crate::engine::copies::CopyPlace::Storage("simulated".into()),
            closed: Default::default(),
            dry_run: false,
            receive_only: false,
        };
        let open = |workspace: &Workspace, _: &str| Ok(self.session(workspace, breaks_after));
        match sync_with(&self.workspace(now), &options, &open, &mut NoProgress) {
            Ok(report) => Some(report),
            Err(error) if breaks_after.is_some() => {
                assert!(error.to_string().contains("broken"), "{error}");
                None
            }
            Err(error) => panic!("device {}: the sync failed: {error}", self.index),
        }
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in ["chats/Mira", "worlds"] {
            for entry in fs::read_dir(self.folder.path().join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(self.folder.path()).unwrap().to_owned(), bytes);
            }
        }
        files
    }

    fn refs(&self, now: DateTime<FixedOffset>) -> Refs {
        ours(&self.workspace(now).open_store().unwrap()).unwrap()
    }

    /// Returns the lines of all messages of all snapshots.
    fn messages(&self, now: DateTime<FixedOffset>) -> BTreeSet<String> {
        let store = self.workspace(now).open_store().unwrap();
        let (history, reader) = (History::load(&store).unwrap(), store.reader());
        let mut seen = BTreeSet::new();
        for snapshot in history.iter() {
            let tree = Tree::open(&reader, snapshot.tree).unwrap();
            seen.extend(tree.messages().iter().copied());
        }
        let lines = seen.into_iter().map(|id| reader.blob(id).unwrap());
        lines.map(|line| String::from_utf8(line).unwrap()).collect()
    }

    /// Returns all text in the packs of the remote that this new device can read.
    fn stored_text(&self, now: DateTime<FixedOffset>) -> String {
        let workspace = self.workspace(now);
        let mut session = self.session(&workspace, None);
        session.refresh(&mut NoProgress).unwrap();
        let mut text = String::new();
        for announcement in session.new_announcements() {
            let beside = self.folder.path();
            let opened = session.open_state(announcement, None, beside, &mut NoProgress).unwrap();
            let (store, _folder) = opened.unwrap().1.store().unwrap();
            let reader = store.reader();
            for prefix in "0123456789abcdef".chars() {
                for id in reader.with_prefix(&prefix.to_string(), Kind::Blob).unwrap() {
                    text += &String::from_utf8_lossy(&reader.blob(id).unwrap());
                }
            }
        }
        text
    }
}

fn message(words: &str) -> String {
    format!(
        "{{\"name\":\"Mira\",\"is_user\":false,\"send_date\":\"2026-01-01T00:00:00.000Z\",\"mes\":\"{words}\"}}"
    )
}

fn chat(words: &str) -> String {
    let header = "{\"user_name\":\"u\",\"character_name\":\"Mira\",\"create_date\":\"2026-01-01@00h00m00s\",\"chat_metadata\":{}}";
    format!("{header}\n{}\n{}", message("Hello."), message(words))
}

fn start() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-19T08:00:00+01:00").unwrap()
}

fn run(seed: u64, steps: &[Step]) {
    let key = RemoteKey::new_encrypted();
    let cloud = Cloud::new(seed, DEVICES, key.id());
    let mut devices: Vec<_> = (0..DEVICES).map(|n| Device::new(n, &key, &cloud)).collect();
    let mut now = start();
    fs::write(devices[0].path("first.jsonl"), chat("the beginning")).unwrap();
    for device in &devices {
        now += TimeDelta::seconds(10);
        device.sync(now, None);
    }
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    for step in steps {
        now += TimeDelta::seconds(60);
        let device = &mut devices[step.device];
        if device.act(step, now) {
            acknowledged.append(&mut device.written);
        }
    }
    Cloud::settle(&cloud);
    let mut must_sync = true;
    while must_sync {
        for device in (0..ROUNDS).flat_map(|_| &devices) {
            now += TimeDelta::seconds(60);
            assert!(device.sync(now, None).is_some());
        }
        must_sync = false;
        for device in &mut devices {
            now += TimeDelta::seconds(60);
            must_sync |= device.erase_what_others_erased(now);
        }
    }
    let messages = devices[0].messages(now);
    let mut all = BTreeMap::new();
    for device in &devices {
        all.extend(device.files());
    }
    for device in &devices {
        let (n, files) = (device.index, device.files());
        assert_eq!(devices[0].refs(now), device.refs(now), "refs of device {n}");
        let lacking: Vec<_> = all.keys().filter(|path| !files.contains_key(*path)).collect();
        // A chat that was deleted on a device stays deleted there, and stays on the others.
        assert!(device.has_deleted || lacking.is_empty(), "device {n} lacks {lacking:?}");
        for (path, bytes) in files {
            assert!(all[&path] == bytes, "{} of device {n}", path.display());
        }
    }
    let erased: BTreeSet<_> = devices.iter().flat_map(|device| &device.erased).collect();
    let erased: Vec<_> = erased.into_iter().filter(|line| !messages.contains(*line)).collect();
    for line in acknowledged.iter().map(|words| message(words)) {
        let is_kept = messages.contains(&line) || erased.contains(&&line);
        assert!(is_kept, "{line:?} was acknowledged and is lost");
    }
    if !erased.is_empty() {
        let stored = Device::new(DEVICES, &key, &cloud).stored_text(now);
        for line in erased {
            assert!(!stored.contains(line.as_str()), "{line:?} was erased and is still stored");
        }
    }
}

/// Runs the steps. Returns the reason of the failure, if they fail.
fn failure(seed: u64, steps: &[Step]) -> Option<String> {
    let failed = catch_unwind(AssertUnwindSafe(|| run(seed, steps))).err()?;
    let text = failed.downcast_ref::<String>().cloned();
    Some(
        text.or_else(|| failed.downcast_ref::<&str>().map(|text| text.to_string()))
            .unwrap_or_default(),
    )
}

/// Removes steps as long as the run still fails.
fn shrink(seed: u64, mut steps: Vec<Step>) -> Vec<Step> {
    let mut length = steps.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + length).min(steps.len()));
            if failure(seed, &fewer).is_some() { steps = fewer } else { at += length }
        }
        length /= 2;
    }
    steps
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("STVC_REMOTE_FIRST").unwrap_or(0);
    first..first + number("STVC_REMOTE_SEEDS").unwrap_or(50)
}

#[test]
fn devices_converge_through_unreliable_storage() {
    let next = Mutex::new(seeds());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..crate::parallel::cores() {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().unwrap().next() else { break };
                    if let Some(why) = failure(seed, &steps(seed)) {
                        failed.lock().unwrap().push((seed, why));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let Some((seed, why)) = failed.iter().min() else { return };
    let steps = shrink(*seed, steps(*seed));
    let lines: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
    let again = failure(*seed, &steps).unwrap_or_default();
    let seeds: Vec<_> = failed.iter().map(|(seed, _)| seed).collect();
    panic!("seeds {seeds:?} fail; seed {seed}: {why}\nshrunk: {again}\n{}", lines.join("\n"));
}

/// A device that had undone snapshots rewrote its packs without what the remote keeps of them.
#[test]
fn objects_that_the_remote_keeps_survive_an_erasure() {
    for seed in [301, 621] {
        assert_eq!(failure(seed, &steps(seed)), None, "seed {seed}");
    }
}
