//! `gc`: one pack that git reads, and nothing lost in any circumstances.

mod between_saves;
mod concurrency;
mod damage;
mod deltas;
mod expiry;
mod interrupted;
mod long_history;
mod packing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use stvc::internals::store::commit::encode as encode_commit;
use stvc::internals::store::tree::encode as encode_tree;
use stvc::internals::store::{
    Effect, Kind, NewCommit, ObjectId, RefChange, RefName, Store, Time, TreeEntry,
};
use stvc::progress::{Monitor, NoProgress};
use stvc::verbs::restore;

use long_history::Lived;

use crate::common::{
    Sandbox, Stored, assert_no_panic, assert_same, chat, files, files_with_extension, git,
    git_with_input, make_writable,
};

type Files = BTreeMap<String, Vec<u8>>;

const DAY: u64 = 86_400;

/// Runs `gc` and returns its summary.
#[track_caller]
fn gc(sandbox: &Sandbox, options: &[&str]) -> Value {
    let answer = assert_no_panic(sandbox.json(&[&["gc"], options].concat())).exits(0);
    answer.of_type("summary").remove(0)
}

fn pack_dir(sandbox: &Sandbox) -> PathBuf {
    sandbox.store().join("objects/pack")
}

fn packs(sandbox: &Sandbox) -> Vec<PathBuf> {
    files_with_extension(&pack_dir(sandbox), "pack")
}

/// Reads the files of every snapshot.
#[track_caller]
fn states(sandbox: &Sandbox) -> BTreeMap<String, Files> {
    let mut states = BTreeMap::new();
    for id in sandbox.snapshot_ids() {
        let to = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let options = restore::Options {
            snapshot: id.clone(),
            target: restore::Target::Folder { dir: to.path().into(), only: None },
            ..Default::default()
        };
        restore::restore(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
        states.insert(id, files(to.path()));
    }
    states
}

/// Asserts that every former snapshot exists with the same bytes.
#[track_caller]
fn assert_has(sandbox: &Sandbox, former: &BTreeMap<String, Files>) {
    let now = states(sandbox);
    for (id, state) in former {
        assert_same(now.get(id).unwrap_or_else(|| panic!("{id} is gone")), state);
    }
}

/// Reads every object with git and asserts its hash.
#[track_caller]
fn objects_by_git(store: &Path) -> BTreeMap<String, (Kind, Vec<u8>)> {
    let out = git_with_input(store, &["cat-file", "--batch-all-objects", "--batch"], b"");
    let mut found = BTreeMap::new();
    let mut rest = &out[..];
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let [id, kind, size] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
        let kind = Kind::from_bytes(kind.as_bytes()).unwrap();
        let bytes = &rest[end + 1..][..size.parse().unwrap()];
        let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, bytes).unwrap();
        assert_eq!(hash.to_string(), id);
        found.insert(id.to_owned(), (kind, bytes.to_vec()));
        rest = &rest[end + 1 + bytes.len() + 1..];
    }
    found
}

/// Result of `git verify-pack`.
struct Verified {
    deltas: usize,
    longest_chain: usize,
    bases: BTreeSet<String>,
}

#[track_caller]
fn verify_packs(store: &Path) -> Verified {
    let mut verified = Verified { deltas: 0, longest_chain: 0, bases: BTreeSet::new() };
    for index in files_with_extension(&store.join("objects/pack"), "idx") {
        let listing = git(store, &["verify-pack", "-v", index.to_str().unwrap()]);
        for line in String::from_utf8(listing).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // Name, kind, size, size in the pack, offset; for a delta depth and base.
            if let [_, _, _, _, _, depth, base] = words[..]
                && base.len() == 40
            {
                verified.deltas += 1;
                verified.longest_chain = verified.longest_chain.max(depth.parse().unwrap());
                verified.bases.insert(base.to_owned());
            }
        }
    }
    verified
}

/// Asserts that the store has only reachable objects and bases of deltas.
#[track_caller]
fn assert_nothing_unreachable(store: &Path) {
    let unreachable = git(store, &["fsck", "--unreachable", "--no-reflogs", "--no-progress"]);
    let unreachable = String::from_utf8(unreachable).unwrap();
    let bases = verify_packs(store).bases;
    let useless: Vec<_> = unreachable
        .lines()
        .filter(|line| !bases.contains(line.split(' ').next_back().unwrap()))
        .collect();
    assert!(useless.is_empty(), "{useless:#?}");
}

/// Lists unfinished temporary files.
fn leftovers(sandbox: &Sandbox) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(&sandbox.store()).into_keys() {
        let file = sandbox.store().join(&path);
        let alone = path.ends_with(".pack") && !file.with_extension("idx").exists()
            || path.ends_with(".idx") && !file.with_extension("pack").exists();
        if path.contains("tmp") || path.ends_with(".lock") || alone {
            found.push(path);
        }
    }
    found
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "rain",
            "harbour",
            "the",
            "lamp",
            "of",
            "Mira",
            "under",
            "雨",
            "a",
            "door",
            "—",
            "Wren",
            "\"quiet\"",
            "and",
            "charts",
            "night",
        ];
        let words: Vec<_> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

/// Writes blobs into a store: each commit of one branch has a tree with one version of every
/// object.
fn put(sandbox: &Sandbox, versions: &[Vec<&[u8]>], strays: &[&[u8]]) -> Vec<ObjectId> {
    let store = Store::create(&sandbox.store()).unwrap();
    let lock = store
        .lock(&["test".into()], "2026-11-15T00:00:00Z", Duration::from_secs(10), &|_| None)
        .unwrap();
    let mut pack = store.pack_writer();
    let name = RefName::branch(["chats", "Mira", "fuzz"]);
    let before = store.ref_target(&name).unwrap();
    let mut tip = before;
    let mut ids = Vec::new();
    for (n, things) in versions.iter().enumerate() {
        let mut entries = Vec::new();
        for (thing, bytes) in things.iter().enumerate() {
            let id = pack.add(Kind::Blob, bytes).unwrap();
            entries.push(TreeEntry::blob(format!("{thing:05}.json"), id));
            ids.push(id);
        }
        let tree = pack.add(Kind::Tree, &encode_tree(&entries)).unwrap();
        let commit = NewCommit {
            tree,
            parents: tip.into_iter().collect(),
            time: Time { seconds: 1_794_000_000 + n as i64, offset: 0 },
            subject: format!("version {n}"),
            trailers: vec![("Stvc-Content".into(), "0".repeat(64))],
        };
        tip = Some(pack.add(Kind::Commit, &encode_commit(&commit)).unwrap());
    }
    for stray in strays {
        ids.push(pack.add(Kind::Blob, stray).unwrap());
    }
    pack.finish().unwrap();
    let moved = RefChange { name, before, after: tip };
    let time = "2026-11-15T00:00:00Z".to_owned();
    store.transact(&lock, time, Effect::moves(vec![moved])).unwrap();
    ids
}

fn set_age(path: &Path, seconds: u64) {
    make_writable(path);
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Writes an unreachable loose object.
fn stray(sandbox: &Sandbox, text: &str, seconds: u64) -> String {
    let id = git_with_input(&sandbox.store(), &["hash-object", "-w", "--stdin"], text.as_bytes());
    let id = String::from_utf8(id).unwrap().trim().to_owned();
    set_age(&sandbox.store().join("objects").join(&id[..2]).join(&id[2..]), seconds);
    id
}

fn exists(sandbox: &Sandbox, id: &str) -> bool {
    let mut git = Command::new("git");
    git.arg("-C").arg(sandbox.store()).args(["cat-file", "-e", id]).stderr(Stdio::null());
    git.status().unwrap().success()
}

/// Creates a store with three packs of unrelated timelines.
fn three() -> (Sandbox, Vec<Stored>, Vec<PathBuf>) {
    let sandbox = Sandbox::empty();
    let (mut stored, mut order) = (Vec::new(), Vec::<PathBuf>::new());
    for name in ["a", "b", "c"] {
        let path = format!("chats/Mira/{name}.jsonl");
        sandbox.write(&path, chat(name, 6, None));
        stored.push(Stored::take(&sandbox, &path));
        order.extend(packs(&sandbox).into_iter().find(|pack| !order.contains(pack)));
    }
    (sandbox, stored, order)
}

/// Runs a function when a phase begins.
struct At<'a> {
    what: &'static str,
    act: Box<dyn FnMut() + 'a>,
}

impl Monitor for At<'_> {
    fn begin(&mut self, what: &str, _steps: Option<u64>) {
        if what == self.what {
            (self.act)();
        }
    }

    fn advance(&mut self, _steps: u64) {}
}
