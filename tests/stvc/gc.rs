//! `gc`: one pack that git agrees with, nothing lost, whatever comes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use stvc::progress::{Monitor, Silent};
use stvc::store::commit::encode as encode_commit;
use stvc::store::tree::encode as encode_tree;
use stvc::store::{Effect, Kind, NewCommit, ObjectId, RefChange, RefName, Store, Time, TreeEntry};
use stvc::verbs::{self, restore, snapshot};

use crate::common::recap_library::{Entry, RecapLibrary, Scene};
use crate::common::{
    A, Answer, B, Done, Harm, Sandbox, Stored, assert_same, calm, chat, check, copy, files,
    files_of, fsck, git, git_given, kill_after, len, make_writable, message, refs, sound, unpack,
};

type Files = BTreeMap<String, Vec<u8>>;

const DAY: u64 = 86_400;

/// Collect; the summary.
#[track_caller]
fn gc(sandbox: &Sandbox, options: &[&str]) -> Value {
    let answer = calm(sandbox.json(&[&["gc"], options].concat())).exits(0);
    answer.of_type("summary").remove(0)
}

fn pack_dir(sandbox: &Sandbox) -> PathBuf {
    sandbox.store().join("objects/pack")
}

fn packs(sandbox: &Sandbox) -> Vec<PathBuf> {
    files_of(&pack_dir(sandbox), "pack")
}

/// Everything that every snapshot gives back.
#[track_caller]
fn states(sandbox: &Sandbox) -> BTreeMap<String, Files> {
    let mut states = BTreeMap::new();
    for id in sandbox.snapshot_ids() {
        let to = tempfile::tempdir().unwrap();
        let options = restore::Options {
            snapshot: id.clone(),
            to: Some(to.path().into()),
            ..Default::default()
        };
        restore::restore(&sandbox.workspace(), &options, &mut Silent).unwrap();
        states.insert(id, files(to.path()));
    }
    states
}

/// All of `former` is there and gives back the same bytes.
#[track_caller]
fn must_have(sandbox: &Sandbox, former: &BTreeMap<String, Files>) {
    let now = states(sandbox);
    for (id, state) in former {
        assert_same(now.get(id).unwrap_or_else(|| panic!("{id} is gone")), state);
    }
}

fn take(sandbox: &Sandbox) {
    snapshot::snapshot(&sandbox.workspace(), &snapshot::Options::default(), &mut Silent).unwrap();
}

/// Every object that git finds, as git reads it. Each hashes to its name.
#[track_caller]
fn objects_by_git(store: &Path) -> BTreeMap<String, (Kind, Vec<u8>)> {
    let out = git_given(store, &["cat-file", "--batch-all-objects", "--batch"], b"");
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

/// What git says of a store's packs.
struct Verified {
    deltas: usize,
    longest_chain: usize,
    bases: BTreeSet<String>,
}

#[track_caller]
fn verify_packs(store: &Path) -> Verified {
    let mut verified = Verified { deltas: 0, longest_chain: 0, bases: BTreeSet::new() };
    for index in files_of(&store.join("objects/pack"), "idx") {
        let said = git(store, &["verify-pack", "-v", index.to_str().unwrap()]);
        for line in String::from_utf8(said).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // Name, kind, size, size in the pack, offset; and of a delta depth and base.
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

/// Nothing is in the store but what something refers to, and what deltas are made of.
#[track_caller]
fn nothing_left_over(store: &Path) {
    let said = git(store, &["fsck", "--unreachable", "--no-reflogs", "--no-progress"]);
    let said = String::from_utf8(said).unwrap();
    let bases = verify_packs(store).bases;
    let useless: Vec<_> =
        said.lines().filter(|line| !bases.contains(line.split(' ').next_back().unwrap())).collect();
    assert!(useless.is_empty(), "{useless:#?}");
}

/// Files that a command began and that nobody will ever finish.
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

/// Numbers that look random, the same every time.
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

/// A library in which somebody has lived: chats that grow, are edited, hidden and forked, and a lorebook that never rests.
struct Lived {
    sandbox: Sandbox,
    chats: Vec<(RecapLibrary, Vec<(String, String)>)>,
    random: Random,
}

impl Lived {
    fn new(rounds: usize) -> Self {
        let mut lived = Self {
            sandbox: Sandbox::of_fixture("1.19.0"),
            chats: vec![
                (RecapLibrary::default(), Vec::new()),
                (RecapLibrary::new("Voss", "Ferry"), Vec::new()),
            ],
            random: Random(7),
        };
        for round in 0..rounds {
            lived.go_on(round);
        }
        lived
    }

    fn go_on(&mut self, round: usize) {
        self.sandbox.wait(600);
        if round % 6 == 4 {
            let (parent, edits) = self.chats[round % 2].clone();
            let mut fork =
                parent.fork(&format!("{} - Branch #{round}", parent.chat), 5 + round % 3);
            fork.story = parent.story.clone();
            self.chats.push((fork, edits));
        }
        let random = &mut self.random;
        for (n, (library, edits)) in self.chats.iter_mut().enumerate() {
            library.messages += random.below(4) + usize::from(n == 0);
            if random.below(3) == 0 {
                let at = random.below(library.messages);
                edits.push((
                    format!("Message {at} of"),
                    format!("Message {at} {} of", random.words(40)),
                ));
            }
            if random.below(4) == 0 {
                let sent = format!("23:{:02}:{:02}", 0, random.below(12));
                edits.push((
                    format!(r#""is_system":false,"send_date":"2026-11-14T{sent}"#),
                    format!(r#""is_system":true,"send_date":"2026-11-14T{sent}"#),
                ));
            }
            if random.below(2) == 0 {
                let uid = 10 + random.below(9) as i64;
                library.entries.retain(|entry| entry.key != uid.to_string());
                let words = random.words(60);
                library.entries.push(Entry::new(uid, &format!("event-{uid}"), &words));
            }
            if round % 3 == 2 {
                let mut scene = Scene::new(
                    library.messages - 1,
                    &format!("Scene {round}"),
                    library.entries.clone(),
                );
                scene.book = library.book.clone().unwrap();
                library.scenes.push(scene);
            }
            library.write(&self.sandbox);
            let mut text = library.chat_bytes();
            for (from, to) in edits.iter() {
                text = text.replacen(from, to, 1);
            }
            self.sandbox.write(&library.chat_path(), text);
        }
        take(&self.sandbox);
    }
}

#[test]
fn one_pack_that_git_reads_with_every_byte_where_it_was() {
    let mut lived = Lived::new(9);
    let said = |sandbox: &Sandbox| {
        let ids = sandbox.snapshot_ids();
        [
            sandbox.json(&["log"]).exits(0).stdout,
            sandbox.json(&["timelines"]).exits(0).stdout,
            sandbox.json(&["diff", &ids[1]]).exits(0).stdout,
            sandbox.json(&["diff", &ids[0], &ids[ids.len() - 1]]).exits(0).stdout,
            sandbox.json(&["search", "harbour"]).exits(0).stdout,
            sandbox.stvc(&["log", "--graph"]).exits(0).stdout,
        ]
    };
    for again in 0..2_u64 {
        let sandbox = &lived.sandbox;
        let (former, words) = (states(sandbox), said(sandbox));
        assert!(former.len() > 30, "{}", former.len());
        let objects = objects_by_git(&sandbox.store());
        let packs_before = packs(sandbox).len();
        assert!(packs_before > 1);

        let summary = gc(sandbox, &[]);
        assert_eq!(packs(sandbox).len(), 1);
        assert_eq!(summary["packs_before"], packs_before);
        assert_eq!(
            (&summary["changed"], &summary["dropped"], &summary["spared"], &summary["expired"]),
            (&true.into(), &0.into(), &0.into(), &0.into())
        );
        let bytes = |field: &str| summary[field].as_u64().unwrap();
        assert!(bytes("bytes_after") * (2 - again) < bytes("bytes_before"));

        fsck(sandbox);
        let verified = verify_packs(&sandbox.store());
        assert!(verified.longest_chain <= 33, "{}", verified.longest_chain);
        assert_eq!(summary["deltas"], verified.deltas);
        assert!(verified.deltas > objects.len() / 2);
        nothing_left_over(&sandbox.store());
        let packed = objects_by_git(&sandbox.store());
        let same = objects.iter().filter(|(id, object)| packed.get(*id) == Some(object)).count();
        // What the first gc made its deltas of is no object of the second's.
        let kept = summary["objects"].as_u64().unwrap() as usize;
        assert!(if again == 0 { same == objects.len() } else { same >= kept }, "{same} of {kept}");

        must_have(sandbox, &former);
        assert_eq!(said(sandbox), words);
        sound(sandbox);

        let before = files(&sandbox.store());
        let summary = gc(sandbox, &[]);
        assert_eq!(summary["changed"], false);
        assert_same(&files(&sandbox.store()), &before);
        let words = sandbox.stvc(&["gc"]).exits(0).stdout;
        assert!(words.contains("Nothing to do"), "{words}");

        // Every command goes on.
        lived.go_on(100 + again as usize);
        let sandbox = &lived.sandbox;
        let newest = sandbox.snapshot_ids();
        sandbox.stvc(&["undo"]).exits(0);
        assert!(sandbox.snapshot_ids().len() < newest.len());
        lived.go_on(200 + again as usize);
        sound(&lived.sandbox);
    }
}

#[test]
fn git_tends_what_gc_packed_and_gc_what_git_did() {
    let mut lived = Lived::new(3);
    let tidy: [&[&str]; 5] = [
        &["gc", "--quiet", "--prune=now"],
        &["repack", "-q", "-adf"],
        // Without pruning: what nothing refers to, volumes among it, stays in packs of its own or loose.
        &["gc", "--quiet"],
        &["repack", "-q", "-A", "-d", "-f"],
        &["multi-pack-index", "write"],
    ];
    for (n, arguments) in tidy.into_iter().enumerate() {
        let sandbox = &lived.sandbox;
        gc(sandbox, &[]);
        let former = states(sandbox);
        sandbox.git(arguments);
        sound(sandbox);
        lived.go_on(300 + n);
        let sandbox = &lived.sandbox;
        let summary = gc(sandbox, &[]);
        assert_eq!(
            (&summary["dropped"], &summary["spared"]),
            (&0.into(), &0.into()),
            "{arguments:?}"
        );
        assert_eq!(packs(sandbox).len(), 1, "{arguments:?}");
        assert_eq!(loose(sandbox), 0);
        nothing_left_over(&sandbox.store());
        must_have(sandbox, &former);
    }
    let sandbox = &lived.sandbox;
    let former = states(sandbox);
    let clone = sandbox.folder().join("clone");
    let clone_text = clone.to_str().unwrap();
    let origin = sandbox.store();
    let options = ["clone", "--quiet", "--mirror", origin.to_str().unwrap(), clone_text];
    git(sandbox.folder(), &options);
    sandbox.stvc(&["--store", clone_text, "gc"]).exits(0);
    sandbox.stvc(&["--store", clone_text, "check"]).exits(0);
    git(&clone, &["fsck", "--strict"]);
    let log = sandbox.json(&["--store", clone_text, "log"]).exits(0).of_type("snapshot");
    let ids: BTreeSet<_> = log.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, former.keys().cloned().collect());
    must_have(sandbox, &former);
}

fn loose(sandbox: &Sandbox) -> usize {
    let said = sandbox.git(&["count-objects"]);
    said.split(' ').next().unwrap().parse().unwrap()
}

/// Blobs straight into a store: each commit of one branch has a tree with one version of every thing.
fn put(sandbox: &Sandbox, versions: &[Vec<&[u8]>], strays: &[&[u8]]) -> Vec<ObjectId> {
    let store = Store::create(&sandbox.store()).unwrap();
    let lock =
        store.lock(&["test".into()], "2026-11-15T00:00:00Z", Duration::from_secs(10)).unwrap();
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

/// Pack these versions of things, and read each with git and with stvc.
#[track_caller]
fn reads_back(versions: &[Vec<&[u8]>]) -> Verified {
    let sandbox = Sandbox::empty();
    let ids = put(&sandbox, versions, &[]);
    let undo = Duration::from_secs(90 * DAY);
    let options = verbs::gc::Options { undo, grace: Duration::ZERO, dry_run: false };
    verbs::gc::gc(&sandbox.workspace(), &options, &mut Silent).unwrap();
    let blobs: Vec<&[u8]> = versions.iter().flatten().copied().collect();
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let answered = git_given(&sandbox.store(), &["cat-file", "--batch"], asked.as_bytes());
    let mut rest = &answered[..];
    let reader = Store::open(&sandbox.store()).unwrap().reader();
    for (id, bytes) in ids.iter().zip(&blobs) {
        let head = format!("{id} blob {}\n", bytes.len());
        let (found, next) = rest.split_at(head.len());
        assert_eq!(String::from_utf8_lossy(found), head);
        assert!(next[..bytes.len()] == **bytes, "{id}: git reads something else");
        assert!(reader.blob(*id).unwrap() == **bytes, "{id}: stvc reads something else");
        rest = &next[bytes.len() + 1..];
    }
    verify_packs(&sandbox.store())
}

/// How one version becomes the next.
#[derive(Clone, Debug)]
enum Edit {
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Take a stretch away and put it elsewhere.
    Move(Index, usize, Index),
    Repeat(Index, usize, usize),
    Cut(Index),
    Twice,
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let stretch = |at: &Index, length: usize, bytes: &[u8]| {
            let at = at.index(bytes.len() + 1);
            at..(at + length).min(bytes.len())
        };
        match self {
            Self::Insert(at, new) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, new.iter().copied());
            }
            Self::Remove(at, length) => drop(bytes.drain(stretch(at, *length, bytes))),
            Self::Move(at, length, to) => {
                let part: Vec<_> = bytes.drain(stretch(at, *length, bytes)).collect();
                let to = to.index(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            Self::Repeat(at, length, times) => {
                let part = bytes[stretch(at, *length, bytes)].to_vec();
                bytes.extend(part.repeat(*times));
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Twice => bytes.extend_from_within(..),
        }
        bytes.truncate(200_000);
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(at, new)| Edit::Insert(at, new)),
        3 => (at(), 0..2000_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        3 => (at(), 0..5000_usize, at()).prop_map(|(at, length, to)| Edit::Move(at, length, to)),
        2 => (at(), 0..200_usize, 0..30_usize).prop_map(|(at, length, times)| Edit::Repeat(at, length, times)),
        1 => at().prop_map(Edit::Cut),
        1 => Just(Edit::Twice),
    ]
}

/// The first version of a thing, and the edits that lead to each next one.
fn family() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<Edit>>)> {
    let first = prop_oneof![
        // Few different bytes: much that is alike.
        prop::collection::vec(0..3_u8, 1..600),
        prop::collection::vec(any::<u8>(), 1..3000),
        (any::<u64>(), 1..90_000_usize).prop_map(|(seed, length)| noise(seed, length)),
        (any::<u64>(), 1..3000_usize)
            .prop_map(|(seed, count)| Random(seed).words(count).into_bytes()),
    ];
    (first, prop::collection::vec(prop::collection::vec(edit(), 1..4), 0..6))
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..length).map(|_| random.below(256) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The delta coder against git's own reader. None is empty: see `an_empty_line_is_read_by_git`.
    #[test]
    fn git_reads_what_the_delta_coder_wrote(families in prop::collection::vec(family(), 1..5)) {
        let mut versions: Vec<Vec<Vec<u8>>> = Vec::new();
        for (first, edits) in &families {
            let mut bytes = first.clone();
            let mut line = vec![bytes.clone()];
            for edit in edits.iter() {
                edit.iter().for_each(|edit| edit.apply(&mut bytes));
                if bytes.is_empty() {
                    bytes.push(0);
                }
                line.push(bytes.clone());
            }
            versions.push(line);
        }
        let most = versions.iter().map(Vec::len).max().unwrap();
        let at = |n: usize| {
            let version = |line: &'_ Vec<Vec<u8>>| n.min(line.len() - 1);
            versions.iter().map(|line| line[version(line)].as_slice()).collect::<Vec<_>>()
        };
        let verified = reads_back(&(0..most).map(at).collect::<Vec<_>>());
        prop_assert!(verified.longest_chain <= 33);
    }
}

#[test]
fn git_reads_deltas_of_every_awkward_length() {
    let base = noise(1, 131_100);
    let text = Random(2).words(2000).into_bytes();
    let mut things: Vec<Vec<Vec<u8>>> = Vec::new();
    for length in [1, 2, 15, 16, 17, 31, 47, 48, 49, 127, 128, 129, 255, 256, 257, 4095, 4096, 4097]
    {
        for source in [&base, &text] {
            let first = source[..length].to_vec();
            let shifted = [&first[length / 3..], &first[..length / 3]].concat();
            let framed = [b"\0\xff begin", &first[..], b"end \0"].concat();
            let mut changed = first.clone();
            changed[length / 2] ^= 0x55;
            things.push(vec![framed, first, changed, shifted]);
        }
    }
    // The longest part of a volume, a volume's length, and copies of exactly that length out of something longer.
    for length in [16_383, 16_384, 16_385, 0xffff, 0x1_0000, 0x1_0001, 98_304, 0x2_0000] {
        let stretch = &base[7..7 + length];
        things.push(vec![base.clone(), stretch.to_vec(), [b"<", stretch, b">"].concat()]);
    }
    // Long chains, and one thing over and over.
    let mut grown = Random(3).words(300).into_bytes();
    let mut chain = Vec::new();
    for n in 0..60 {
        grown.extend(Random(n).words(6).bytes());
        chain.push(grown.clone());
    }
    things.push(chain);
    things.push((1..8).map(|n| vec![b'a'; n * 3001]).collect());
    things.push((1..8).map(|n| b"ab".repeat(n * 1499)).collect());
    let most = things.iter().map(Vec::len).max().unwrap();
    let at = |n: usize| things.iter().map(|line| line[n.min(line.len() - 1)].as_slice()).collect();
    let verified = reads_back(&(0..most).map(at).collect::<Vec<_>>());
    assert!((2..=33).contains(&verified.longest_chain), "{}", verified.longest_chain);
    assert!(verified.deltas > 150, "{}", verified.deltas);
}

/// The longest copy that fits into one instruction, and the largest objects that are made deltas.
#[test]
#[cfg_attr(debug_assertions, ignore = "16 MB are slow without optimisation")]
fn git_reads_deltas_of_16_mb() {
    let limit = 0x100_0000;
    let line: Vec<u8> = b"The same words on each page, or nearly. ".repeat(limit / 40 + 2);
    let mut base = line[..limit].to_vec();
    base[5] = b'!';
    base[limit - 9] = b'?';
    let (shorter, larger) = (base[1..].to_vec(), [&base[..], b"one more"].concat());
    reads_back(&[vec![&base], vec![&shorter], vec![&larger], vec![&larger[3..]]]);
}

/// SillyTavern's own files end without one, but others' do not, and a blank line is a message of no bytes.
#[test]
fn an_empty_line_is_read_by_git() {
    for messages in [2, 3, 20, 400] {
        let sandbox = Sandbox::empty();
        sandbox.write(A, [&chat("a", messages, None)[..], b"\n"].concat());
        let stored = Stored::take(&sandbox, A);
        gc(&sandbox, &[]);
        fsck(&sandbox);
        objects_by_git(&sandbox.store());
        verify_packs(&sandbox.store());
        stored.must_come_back(&sandbox);
        sandbox.git(&["repack", "-q", "-adf"]);
        stored.must_come_back(&sandbox);
    }
    reads_back(&[vec![b""], vec![b"x"], vec![b""], vec![&[7; 100]]]);
}

fn set_age(path: &Path, seconds: u64) {
    make_writable(path);
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn age(path: &Path) -> u64 {
    fs::metadata(path).unwrap().modified().unwrap().elapsed().unwrap().as_secs()
}

/// A loose object that nothing refers to.
fn stray(sandbox: &Sandbox, text: &str, seconds: u64) -> String {
    let id = git_given(&sandbox.store(), &["hash-object", "-w", "--stdin"], text.as_bytes());
    let id = String::from_utf8(id).unwrap().trim().to_owned();
    set_age(&sandbox.store().join("objects").join(&id[..2]).join(&id[2..]), seconds);
    id
}

fn exists(sandbox: &Sandbox, id: &str) -> bool {
    let mut git = Command::new("git");
    git.arg("-C").arg(sandbox.store()).args(["cat-file", "-e", id]).stderr(Stdio::null());
    git.status().unwrap().success()
}

#[test]
fn what_nothing_refers_to_goes_when_it_is_old_enough() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 30, None));
    let stored = Stored::take(&sandbox, A);
    let young = stray(&sandbox, "young", 0);
    let middle = stray(&sandbox, "middle", 13 * DAY);
    let old = stray(&sandbox, "old", 15 * DAY);
    let planned = gc(&sandbox, &["--dry-run"]);
    assert_eq!(planned["dropped"], 1);
    assert!(exists(&sandbox, &old));
    assert_eq!(gc(&sandbox, &[])["dropped"], 1);
    assert!(exists(&sandbox, &young) && exists(&sandbox, &middle) && !exists(&sandbox, &old));
    assert_eq!(gc(&sandbox, &["--grace", "12d"])["dropped"], 1);
    assert!(exists(&sandbox, &young) && !exists(&sandbox, &middle));
    assert_eq!(gc(&sandbox, &["--grace", "0s"])["dropped"], 1);
    assert!(!exists(&sandbox, &young));
    stored.must_come_back(&sandbox);
    sound(&sandbox);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

#[test]
fn a_pack_of_spared_objects_is_as_old_as_its_youngest() {
    let sandbox = Sandbox::empty();
    // Each pack has something that is referred to and something that is not.
    let mut strays = Vec::new();
    Store::create(&sandbox.store()).unwrap();
    for (n, days) in [9, 5, 7].into_iter().enumerate() {
        let there = packs(&sandbox);
        let text = format!("stray {n}");
        strays.extend(
            put(&sandbox, &[vec![text.to_uppercase().as_bytes()]], &[text.as_bytes()]).pop(),
        );
        let new = packs(&sandbox).into_iter().find(|pack| !there.contains(pack)).unwrap();
        set_age(&new, days * DAY);
    }
    let all = |there: bool| strays.iter().all(|id| exists(&sandbox, &id.to_string()) == there);
    let summary = gc(&sandbox, &[]);
    assert_eq!((&summary["spared"], &summary["dropped"]), (&3.into(), &0.into()));
    assert!(all(true));
    let ages: Vec<_> = packs(&sandbox).iter().map(|pack| age(pack) / DAY).collect();
    assert_eq!(ages.iter().filter(|days| **days == 5).count(), 1, "{ages:?}");
    assert_eq!(ages.len(), 2, "{ages:?}");

    // Left alone as long as it is young enough, whatever else is packed.
    let before = files(&sandbox.store());
    assert_eq!(gc(&sandbox, &[])["changed"], false);
    assert_same(&files(&sandbox.store()), &before);
    put(&sandbox, &[vec![b"something new"]], &[]);
    gc(&sandbox, &["--grace", "6d"]);
    assert!(all(true));
    assert_eq!(packs(&sandbox).iter().filter(|pack| age(pack) / DAY == 5).count(), 1);
    gc(&sandbox, &["--grace", "4d"]);
    assert!(all(false));
    assert_eq!(packs(&sandbox).len(), 1);
    fsck(&sandbox);
}

/// As in `undo.rs`, but everything that is not needed is dropped after each command.
#[test]
fn nothing_that_can_be_undone_is_dropped() {
    let mut sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    let (chat, book) = (library.chat_path(), library.book_path());
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    library.fork("Branch #1", 7).write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(&chat, r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);

    // What no snapshot has.
    sandbox.write(&chat, b"\xff garbage \n {");
    sandbox.write(&book, b"[no book]");

    let now = |sandbox: &Sandbox| (refs(&sandbox.store()), sandbox.files());
    let mut states = Vec::new();
    let commands: [&[&str]; 7] = [
        &["tag", "here", "Harbour nights"],
        &["restore", "Harbour nights~1", "--overwrite"],
        &["snapshot", "-m", "restored"],
        &["tag", "--delete", "here"],
        &["doctor", "--fix", "--yes"],
        &["snapshot", "Harbour nights", "--at", "4", "--tag", "early"],
        &["restore", "early", "--overwrite"],
    ];
    for command in commands {
        sandbox.wait(3600);
        let before =
            (now(&sandbox), sandbox.json(&["operations"]).exits(0).of_type("operation").len());
        sandbox.stvc(command).exits(0);
        let after = sandbox.json(&["operations"]).exits(0).of_type("operation").len();
        if after > before.1 {
            states.push(before.0);
        }
        gc(&sandbox, &["--grace", "0s"]);
        sound(&sandbox);
    }
    assert!(states.len() > 5, "{}", states.len());
    let last = now(&sandbox);
    let mut undoings = Vec::new();
    for state in states.iter().rev() {
        sandbox.wait(3600);
        sandbox.stvc(&["undo"]).exits(0);
        assert_eq!(now(&sandbox).0, state.0);
        assert_same(&sandbox.files(), &state.1);
        undoings.push(
            sandbox.json(&["operations"]).exits(0).of_type("operation")[0]["number"].to_string(),
        );
        gc(&sandbox, &["--grace", "0s"]);
    }
    // And the way back.
    for undoing in undoings.iter().rev() {
        sandbox.wait(3600);
        sandbox.stvc(&["undo", undoing]).exits(0);
        gc(&sandbox, &["--grace", "0s"]);
    }
    assert_eq!(now(&sandbox).0, last.0);
    assert_same(&sandbox.files(), &last.1);
    sound(&sandbox);
}

/// An operation that stays needs what only one that goes had kept.
#[test]
fn what_a_younger_operation_wrote_is_kept_though_an_older_one_expires() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 3));
    let undone = Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(30 * DAY as i64);
    let now = chat("a", 9, None);
    sandbox.write(A, &now);
    sandbox.stvc(&["restore", &undone.id, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(A), undone.bytes);
    sandbox.wait(60);
    assert_eq!(gc(&sandbox, &["--keep-undo", "10d", "--grace", "0s"])["expired"], 3);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(A), now);
    let last = sandbox.json(&["operations"]).exits(0).of_type("operation")[0]["number"].to_string();
    sandbox.stvc(&["undo", &last]).exits(0);
    assert_eq!(sandbox.read(A), undone.bytes);
    sound(&sandbox);
}

#[test]
fn expired_operations_are_gone_and_lost_refs_are_still_noticed() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    sandbox.write(B, chat("b", 5, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    let kept = Stored::take(&sandbox, A);
    sandbox.stvc(&["tag", "here", "Mira/b"]).exits(0);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 6));
    let undone = Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    let former = states(&sandbox);
    let planned = gc(&sandbox, &["--keep-undo", "0s", "--dry-run"]);
    assert_eq!(planned["expired"], 5);
    assert_eq!(sandbox.json(&["operations"]).exits(0).of_type("operation").len(), 5);
    let summary = gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(summary["expired"], 5);
    assert!(summary["dropped"].as_u64().unwrap() > 0);
    assert!(!exists(&sandbox, &undone.id));
    assert!(sandbox.json(&["operations"]).exits(0).of_type("operation").is_empty());
    let answer = sandbox.stvc(&["undo"]).exits(1);
    assert!(answer.stderr.contains("nothing to undo"), "{}", answer.stderr);
    must_have(&sandbox, &former);
    kept.must_come_back(&sandbox);
    sound(&sandbox);
    // Nothing expires twice.
    assert_eq!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["expired"], 0);

    for (path, named) in
        [("refs/heads/chats/Mira/a", "chats/Mira/a"), ("refs/tags/here", "refs/tags/here")]
    {
        let copy_of = Sandbox::empty();
        copy(&sandbox.library(), &copy_of.library());
        fs::remove_file(copy_of.store().join(path)).unwrap();
        let (code, words) = check(&copy_of);
        assert_eq!(code, 1, "{path}");
        assert!(words.contains(named), "{words}");
    }
    // What the file still says is taken again, though its objects were dropped, and numbers count on.
    assert_eq!(sandbox.read(A), undone.bytes);
    let again = Stored::take(&sandbox, A);
    assert_ne!(again.id, undone.id);
    again.must_come_back(&sandbox);
    let lines = sandbox.json(&["operations"]).exits(0).of_type("operation");
    assert_eq!((lines.len(), &lines[0]["number"]), (1, &6.into()));
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.snapshot_ids().len(), former.len());
    sound(&sandbox);
}

#[test]
fn an_operation_of_the_future_stays_and_a_clock_in_the_future_loses_no_snapshot() {
    const YEAR: i64 = 365 * DAY as i64;
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    sandbox.wait(30 * YEAR);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.wait(-29 * YEAR);
    sandbox.append(A, &message("a", 6));
    Stored::take(&sandbox, A);
    sandbox.wait(YEAR);
    let former = states(&sandbox);
    assert_eq!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["expired"], 1);
    must_have(&sandbox, &former);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.snapshot_ids().len(), 1);
    let numbers: Vec<_> = sandbox.json(&["operations"]).exits(0).of_type("operation");
    let numbers: Vec<_> = numbers.iter().map(|line| line["number"].to_string()).collect();
    sandbox.stvc(&["undo", &numbers[0]]).exits(0);
    sandbox.stvc(&["undo", &numbers[1]]).exits(0);
    must_have(&sandbox, &former);

    sandbox.wait(5000 * YEAR);
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert!(summary["expired"].as_u64().unwrap() > 0);
    must_have(&sandbox, &former);
    sound(&sandbox);
}

#[test]
fn a_time_longer_than_any_clock_is_no_panic() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    for time in ["200000000d", "999999999999d", "213503982334601d"] {
        assert_eq!(gc(&sandbox, &["--keep-undo", time, "--grace", time])["expired"], 0);
    }
    for time in ["", "d", "-1d", "1y", "1.5h", "999999999999999999999d", "213503982334602d"] {
        calm(sandbox.stvc(&["gc", &format!("--grace={time}")])).exits(2);
    }
}

#[test]
fn a_gc_killed_at_any_moment_loses_nothing() {
    const KILLS: u32 = 36;
    let mut sandbox = Sandbox::empty();
    let mut killed = 0;
    let mut stored = Vec::new();
    let mut whole = Duration::ZERO;
    for kill in 0..KILLS {
        // A new store now and then, so that it does not grow without end.
        if kill % 9 == 0 {
            sandbox = Sandbox::empty();
            stored.clear();
        }
        // Something to do each time: a pack, loose objects, and things that nothing refers to.
        sandbox.wait(60);
        sandbox.write(A, chat(&format!("a {kill}"), 25, None));
        sandbox.append(A, &message("a", kill as usize));
        stored.push(Stored::take(&sandbox, A));
        stray(&sandbox, &format!("stray {kill}"), 60);
        if kill == 0 {
            let elsewhere = Sandbox::empty();
            copy(&sandbox.library(), &elsewhere.library());
            let begin = Instant::now();
            gc(&elsewhere, &["--grace", "0s"]);
            whole = begin.elapsed();
        }
        killed += u32::from(kill_after(
            &sandbox,
            &["gc", "--grace", "0s"],
            whole * (kill * 7 % KILLS) / KILLS,
        ));
        sound(&sandbox);
        assert_eq!(sandbox.snapshot_ids().len(), stored.len());
        if kill % 9 == 8 {
            let begin = Instant::now();
            gc(&sandbox, &["--grace", "0s"]);
            whole = begin.elapsed();
            // Packs without an index: see `what_a_killed_gc_left_is_removed_by_the_next`.
            assert_eq!(files_of(&pack_dir(&sandbox), "idx").len(), 1);
            let temporary = leftovers(&sandbox);
            let temporary: Vec<_> = temporary.iter().filter(|name| name.contains("tmp")).collect();
            assert!(temporary.is_empty(), "{temporary:?}");
            sound(&sandbox);
            stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
        }
    }
    assert!(killed > KILLS / 4, "only {killed} were killed at work");
    nothing_left_over(&sandbox.store());
}

/// Killed while it removed packs: the index is gone, the pack is not.
#[test]
fn what_a_killed_gc_left_is_removed_by_the_next() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 9, None));
    let stored = Stored::take(&sandbox, A);
    let old = packs(&sandbox).remove(0);
    let bytes = fs::read(&old).unwrap();
    gc(&sandbox, &[]);
    let tidy = files(&sandbox.store());
    fs::write(&old, &bytes).unwrap();
    fs::write(pack_dir(&sandbox).join("tmp_pack_stvc_4711-0.tmp"), &bytes[..50]).unwrap();
    fs::write(sandbox.store().join("stvc/.stvc-4711-0.tmp"), b"{\"number\"").unwrap();
    fs::write(sandbox.store().join("stvc/lock.json"), "{}").unwrap();
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    assert_same(&files(&sandbox.store()), &tidy);
    stored.must_come_back(&sandbox);
    sound(&sandbox);
}

/// Killed between the removal of the refs that only expired operations needed and the shorter log.
#[test]
fn a_gc_killed_while_operations_expire_leaves_a_sound_store() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    let stored = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
    assert_eq!(kept.lines().count(), 1);
    let id = kept.trim().rsplit('/').next().unwrap().to_owned();
    sandbox.wait(60);
    gc(&sandbox, &["--keep-undo", "0s"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/stvc/kept"]), "");
    // The log is shortened first, and the ref is still there.
    sandbox.git(&["update-ref", kept.trim(), &id]);
    sound(&sandbox);
    gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/stvc/kept"]), "");
    sound(&sandbox);
    stored.must_come_back(&sandbox);
}

/// Killed while it removed such a ref: git's lock on it stays, and is nobody's.
#[test]
fn a_gc_killed_while_it_deletes_a_ref_does_not_block_the_next() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    let stored = Stored::take(&sandbox, A);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 5));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    sandbox.wait(60);
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/stvc/kept"]);
    let lock = sandbox.store().join(format!("{}.lock", kept.trim()));
    fs::write(&lock, "").unwrap();
    set_age(&lock, 7200);
    fs::write(sandbox.store().join("stvc/lock.json"), "{}").unwrap();
    gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    stored.must_come_back(&sandbox);
    sound(&sandbox);
}

/// No file may grow beyond so many blocks, from none to more than the pack needs.
#[test]
#[cfg(unix)]
fn a_disk_that_is_full_midway_costs_nothing() {
    let mut large = Sandbox::empty();
    let mut stored = Vec::new();
    for n in 0..3 {
        large.write(A, chat(&format!("a {n}"), 150, None));
        stored.push(Stored::take(&large, A));
        large.wait(60);
    }
    let limits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let before = files(&large.store());
    let mut failed = 0;
    for blocks in limits {
        let answer = calm(crate::common::limited(&large, blocks, &["gc", "--grace", "0s"]));
        if answer.code == 0 {
            break;
        }
        failed += 1;
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains(".stvc"), "{}", answer.stderr);
        assert_same(&files(&large.store()), &before);
        sound(&large);
    }
    assert!(failed > 4, "{failed}");
    gc(&large, &["--grace", "0s"]);
    assert_eq!(packs(&large).len(), 1);
    stored.iter().for_each(|stored| stored.must_come_back(&large));
    sound(&large);
}

/// The pack fits, its index, which is longer here, does not.
#[test]
#[cfg(unix)]
fn a_disk_that_is_full_at_the_index_leaves_no_pack() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 1, None));
    Stored::take(&sandbox, A);
    let before = files(&sandbox.store());
    let answer = calm(crate::common::limited(&sandbox, 2, &["gc"])).exits(1);
    assert!(answer.stderr.contains(".idx"), "{}", answer.stderr);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
    assert_same(&files(&sandbox.store()), &before);
}

/// A store with three packs, of timelines that have nothing to do with each other.
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

/// Hurt one file of a copy; what `gc` says of it. Nothing may change unless all of it could be read, and what stands in other packs (`elsewhere`) must come back in any case.
#[track_caller]
fn gc_of_hurt(
    sandbox: &Sandbox,
    stored: &[Stored],
    elsewhere: &[usize],
    file: &Path,
    harm: Harm,
) -> i32 {
    let hurt = Sandbox::empty();
    copy(&sandbox.library(), &hurt.library());
    let file = hurt.library().join(file.strip_prefix(sandbox.library()).unwrap());
    let mut bytes = fs::read(&file).unwrap();
    match harm {
        Harm::Deleted => fs::remove_file(&file).unwrap(),
        Harm::CutTo(length) => fs::write(&file, &bytes[..length]).unwrap(),
        Harm::Flipped(at) => {
            bytes[at] ^= 0x15;
            fs::write(&file, bytes).unwrap();
        }
    }
    let before = files(&hurt.store());
    let answer = calm(hurt.stvc(&["gc", "--grace", "0s"]));
    if answer.code == 0 {
        // What was hurt was nothing that anybody needs, such as a checksum.
        sound(&hurt);
        stored.iter().for_each(|stored| stored.must_come_back(&hurt));
    } else {
        assert_eq!(answer.code, 1, "{harm:?}: {answer:?}");
        assert!(answer.stderr.starts_with("error: "), "{harm:?}: {}", answer.stderr);
        assert_same(&files(&hurt.store()), &before);
        elsewhere.iter().for_each(|n| stored[*n].must_come_back(&hurt));
    }
    answer.code
}

#[test]
fn a_damaged_pack_is_said_and_nothing_is_dropped() {
    let (sandbox, stored, order) = three();
    let pack = &order[1];
    let index = pack.with_extension("idx");
    let refused = |file: &Path, harm| gc_of_hurt(&sandbox, &stored, &[0, 2], file, harm) == 1;
    let (mut data, mut tried) = (0, 0);
    for at in (12..len(pack) - 20).step_by(41) {
        data += usize::from(refused(pack, Harm::Flipped(at)));
        tried += 1;
    }
    assert!(data * 10 > tried * 9, "{data} of {tried}");
    for at in [0, 4, 7, 8, 11, len(pack) - 20, len(pack) - 1] {
        refused(pack, Harm::Flipped(at));
    }
    for length in [0, 12, 31, len(pack) / 2, len(pack) - 40] {
        assert!(refused(pack, Harm::CutTo(length)), "{length}");
    }
    assert!(refused(pack, Harm::Deleted));
    for at in (0..len(&index)).step_by(97) {
        refused(&index, Harm::Flipped(at));
    }
    for length in [0, 8, 1000, len(&index) / 2] {
        assert!(refused(&index, Harm::CutTo(length)), "{length}");
    }
    assert!(refused(&index, Harm::Deleted));
}

/// The same for the pack that `gc` made, with one thing more to pack.
#[test]
fn damage_to_a_pack_of_gc_is_said_by_the_next() {
    let (sandbox, stored, _) = three();
    gc(&sandbox, &[]);
    let pack = packs(&sandbox).remove(0);
    sandbox.write("chats/Mira/d.jsonl", chat("d", 4, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let mut refused = 0;
    for at in (0..len(&pack)).step_by(53) {
        let code = gc_of_hurt(&sandbox, &stored, &[], &pack, Harm::Flipped(at));
        refused += usize::from(code == 1);
    }
    assert!(refused > len(&pack) / 53 / 2, "{refused}");
}

/// A damaged store forgets no operation either: the log says where branches were.
#[test]
fn a_damaged_store_expires_nothing() {
    let (mut sandbox, stored, order) = three();
    sandbox.wait(60);
    sandbox.append(A, &message("a", 70));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    let mut bytes = fs::read(&order[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x15;
    fs::write(&order[1], bytes).unwrap();
    let before = files(&sandbox.store());
    calm(sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"])).exits(1);
    assert_same(&files(&sandbox.store()), &before);
    stored[0].must_come_back(&sandbox);
}

/// What `check` advises: the files are there, so a new snapshot mends the store; then it can be packed.
#[test]
fn a_mended_store_is_packed() {
    let (sandbox, stored, order) = three();
    let index = order[1].with_extension("idx");
    let said = sandbox.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let blobs = said.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.get(1) == Some(&"blob")).then(|| words[4].parse::<usize>().unwrap())
    });
    let mut mended = 0;
    for offset in blobs {
        let hurt = Sandbox::empty();
        copy(&sandbox.library(), &hurt.library());
        let pack = pack_dir(&hurt).join(order[1].file_name().unwrap());
        let mut bytes = fs::read(&pack).unwrap();
        bytes[offset + 6] ^= 0x15;
        fs::write(&pack, bytes).unwrap();
        calm(hurt.stvc(&["gc"])).exits(1);
        assert_eq!(check(&hurt).0, 1);
        hurt.stvc(&["snapshot"]).exits(0);
        if calm(hurt.stvc(&["gc", "--grace", "0s"])).code == 0 {
            mended += 1;
            assert_eq!(packs(&hurt).len(), 1);
            sound(&hurt);
            stored.iter().for_each(|stored| stored.must_come_back(&hurt));
        }
    }
    // The manifest is not in the files; whatever is, is mended.
    assert!(mended >= 6, "{mended}");
}

#[test]
fn snapshots_and_readers_go_on_while_gc_works() {
    const ROUNDS: usize = 16;
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 60, None));
    sandbox.write(B, chat("b", 60, None));
    let first = Stored::take(&sandbox, A);
    sandbox.stvc(&["snapshot"]).exits(0);
    let done = AtomicBool::new(false);
    let mut collected = 0;
    let mut stored = Vec::new();
    std::thread::scope(|scope| {
        let sandbox = &sandbox;
        let writer = scope.spawn(|| {
            let guard = Done(&done);
            let mut stored = Vec::new();
            for round in 0..ROUNDS {
                sandbox.append(A, &message("a", 100 + round));
                stored.push(Stored::take(sandbox, A));
            }
            drop(guard);
            stored
        });
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let log = calm(sandbox.json(&["log"])).exits(0).of_type("snapshot").len();
                assert!(log >= seen, "{log} snapshots after {seen}");
                seen = log;
                first.must_come_back(sandbox);
                calm(sandbox.stvc(&["show", &first.id])).exits(0);
                calm(sandbox.stvc(&["search", "a 3"])).exits(0);
            }
        });
        while !done.load(Ordering::Relaxed) {
            let summary = gc(sandbox, &["--grace", "0s"]);
            collected += usize::from(summary["changed"] == true);
        }
        stored = writer.join().unwrap();
        reader.join().unwrap();
    });
    assert!(collected > 2, "{collected}");
    assert_eq!(sandbox.snapshot_ids().len(), ROUNDS + 2);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(packs(&sandbox).len(), 1);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    sound(&sandbox);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

/// A command that looked at the store, and then waited for its lock while `gc` dropped what it had seen there.
#[test]
fn a_writer_that_waited_for_gc_does_not_believe_what_it_saw_before() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 5, None));
    Stored::take(&sandbox, A);
    let id = put(&sandbox, &[vec![b"one"]], &[b"what nothing refers to yet"]).pop().unwrap();
    let store = Store::open(&sandbox.store()).unwrap();
    assert!(store.reader().has(id).unwrap());
    assert!(gc(&sandbox, &["--grace", "0s"])["dropped"].as_u64().unwrap() > 0);
    let lock =
        store.lock(&["test".into()], "2026-11-15T00:00:00Z", Duration::from_secs(10)).unwrap();
    let mut pack = store.pack_writer();
    pack.add(Kind::Blob, b"what nothing refers to yet").unwrap();
    pack.finish().unwrap();
    drop(lock);
    assert!(exists(&sandbox, &id.to_string()));
}

#[test]
fn kept_packs_stay_and_loose_objects_are_taken_in() {
    let (sandbox, stored, order) = three();
    let keep = order[0].with_extension("keep");
    fs::write(&keep, "somebody's\n").unwrap();
    let kept = fs::read(&order[0]).unwrap();
    // All of the second pack, loose.
    unpack(&sandbox.store(), &order[1]);
    let before = loose(&sandbox);
    assert!(before > 8);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(summary["loose_before"], before);
    assert_eq!(loose(&sandbox), 0);
    assert_eq!(fs::read(&order[0]).unwrap(), kept);
    assert!(keep.exists() && order[0].with_extension("idx").exists());
    assert_eq!(packs(&sandbox).len(), 2);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    sound(&sandbox);
    fs::remove_file(&keep).unwrap();
    gc(&sandbox, &[]);
    assert_eq!(packs(&sandbox).len(), 1);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    sound(&sandbox);
}

/// What stays beside the new pack must not make every further gc write all of it again.
#[test]
fn nothing_to_do_is_seen_beside_what_must_stay() {
    let (sandbox, _, _) = three();
    stray(&sandbox, "young", 60);
    gc(&sandbox, &[]);
    assert_eq!(gc(&sandbox, &[])["changed"], false, "a young loose object");
    let (sandbox, _, order) = three();
    fs::write(order[0].with_extension("keep"), "").unwrap();
    gc(&sandbox, &[]);
    assert_eq!(gc(&sandbox, &[])["changed"], false, "a kept pack");
}

/// Somebody used a real git on the store: a tag with a message, a ref to something that is no commit, a `HEAD` of its own.
#[test]
fn what_refs_of_git_lead_to_stays() {
    let (sandbox, stored, _) = three();
    let commit = &stored[0].id;
    let me = ["-c", "user.name=a", "-c", "user.email=a@b"];
    sandbox.git(&[&me[..], &["tag", "-a", "signed", "-m", "words", commit]].concat());
    let blob = stray(&sandbox, "a blob", 60);
    sandbox.git(&["update-ref", "refs/notes/mine", &blob]);
    let tree = sandbox.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    sandbox.git(&["update-ref", "refs/tags/a-tree", tree.trim()]);
    let lone = sandbox.git(&[&me[..], &["commit-tree", "-m", "x", tree.trim()]].concat());
    fs::write(sandbox.store().join("HEAD"), &lone).unwrap();
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(sandbox.git(&["cat-file", "-t", "signed"]).trim(), "tag");
    for id in [&blob, tree.trim(), lone.trim()] {
        assert!(exists(&sandbox, id), "{id}");
    }
    fsck(&sandbox);
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
}

/// `git gc` writes a graph of all commits; it must not go on naming those that were dropped.
#[test]
fn a_commit_graph_of_gits_names_nothing_that_is_gone() {
    let mut sandbox = Sandbox::empty();
    for n in 0..3 {
        sandbox.write(A, chat("a", 5 + n, None));
        Stored::take(&sandbox, A);
        sandbox.wait(60);
    }
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    sandbox.git(&["gc", "--quiet"]);
    sandbox.wait(60);
    assert!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["dropped"].as_u64().unwrap() > 0);
    fsck(&sandbox);
    sandbox.git(&["commit-graph", "verify"]);
}

#[test]
fn a_dry_run_writes_nothing_and_the_summary_is_as_documented() {
    let (mut sandbox, _, _) = three();
    stray(&sandbox, "old", 15 * DAY);
    sandbox.wait(100 * DAY as i64);
    let before = files(&sandbox.store());
    let planned = gc(&sandbox, &["--dry-run"]);
    assert_same(&files(&sandbox.store()), &before);
    let words = sandbox.stvc(&["gc", "--dry-run"]).exits(0).stdout;
    assert!(words.contains("3 packs") && words.contains("would"), "{words}");
    assert_same(&files(&sandbox.store()), &before);
    let done = gc(&sandbox, &[]);
    for field in ["packs_before", "loose_before", "bytes_before", "dropped", "spared", "expired"] {
        assert_eq!(planned[field], done[field], "{field}");
    }
    assert_eq!((&planned["changed"], &planned["dry_run"]), (&false.into(), &true.into()));
    assert_eq!((&done["changed"], &done["dry_run"]), (&true.into(), &false.into()));
    assert_eq!((&done["packs_before"], &done["loose_before"]), (&3.into(), &1.into()));
    assert_eq!((&done["dropped"], &done["expired"]), (&1.into(), &3.into()));

    let documented = include_str!("../../docs/json.md");
    let (_, fields) = documented.split_once("; `gc` ").unwrap();
    let fields: BTreeSet<_> = fields
        .split(';')
        .next()
        .unwrap()
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    let said: BTreeSet<_> = done.as_object().unwrap().keys().cloned().collect();
    let always = ["type", "command", "ok"].map(str::to_owned);
    assert_eq!(said, fields.into_iter().chain(always).collect());
}

#[test]
fn a_store_with_nothing_in_it_is_packed_well() {
    let sandbox = Sandbox::empty();
    let refused: Answer = calm(sandbox.stvc(&["gc"]));
    assert_ne!(refused.code, 0, "there is no store");
    assert!(!sandbox.store().exists());
    sandbox.stvc(&["init"]).exits(0);
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert_eq!((&summary["changed"], &summary["objects"]), (&false.into(), &0.into()));
    sandbox.write(A, chat("a", 1, None));
    let stored = Stored::take(&sandbox, A);
    gc(&sandbox, &[]);
    stored.must_come_back(&sandbox);
    sound(&sandbox);
}

/// Does something when a stretch of work begins.
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

/// The disk gives back something else than was written to it: the old packs must still be there when that is seen.
#[test]
fn what_was_packed_is_read_back_before_the_old_packs_go() {
    let sandbox = Sandbox::empty();
    let mut stored = Vec::new();
    for messages in [40, 41, 42] {
        sandbox.write(A, chat("a", messages, None));
        stored.push(Stored::take(&sandbox, A));
    }
    let before = packs(&sandbox);
    let mut hurt = Vec::new();
    let act = Box::new(|| {
        for pack in packs(&sandbox).into_iter().filter(|pack| !before.contains(pack)) {
            let mut bytes = fs::read(&pack).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            fs::write(&pack, bytes).unwrap();
            hurt.push(pack);
        }
    });
    let options = stvc::verbs::gc::Options::default();
    let mut monitor = At { what: "reading objects", act };
    let done = stvc::verbs::gc::gc(&sandbox.workspace(), &options, &mut monitor);
    drop(monitor);
    assert_eq!(hurt.len(), 1, "the new pack is read back");
    let error = done.err().expect("it is not what was written").to_string();
    assert!(error.contains("read back"), "{error}");
    assert_eq!(packs(&sandbox), before, "the old packs are there, and the new one is gone");
    for stored in &stored {
        stored.must_come_back(&sandbox);
    }
    sound(&sandbox);
    gc(&sandbox, &[]);
    sound(&sandbox);
}

/// However young they are: who has the lock knows that nobody needs them any more.
#[test]
fn what_is_left_over_goes_at_once() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 9, None));
    let stored = Stored::take(&sandbox, A);
    let old = packs(&sandbox).remove(0);
    let (pack, index) = (fs::read(&old).unwrap(), fs::read(old.with_extension("idx")).unwrap());
    gc(&sandbox, &[]);
    let tidy = files(&sandbox.store());
    for name in ["tmp_pack_stvc_4711-0.tmp", ".stvc-4711-1.tmp"] {
        fs::write(pack_dir(&sandbox).join(name), &pack[..50]).unwrap();
    }
    fs::write(sandbox.store().join("stvc/.stvc-4711-0.tmp"), b"{\"number\"").unwrap();
    fs::write(old.with_extension("idx"), &index).unwrap();
    gc(&sandbox, &[]);
    assert_same(&files(&sandbox.store()), &tidy);
    // A pack may be a git's that is about to name its index; for a minute it is.
    fs::write(&old, &pack).unwrap();
    gc(&sandbox, &[]);
    assert_eq!(fs::read(&old).unwrap(), pack);
    set_age(&old, 90);
    gc(&sandbox, &[]);
    assert_same(&files(&sandbox.store()), &tidy);
    stored.must_come_back(&sandbox);
    sound(&sandbox);
}

/// A `gc` takes the packs away that a check is reading.
#[test]
fn check_beside_gc_finds_no_damage() {
    let sandbox = Sandbox::empty();
    let mut messages = 5;
    let mut grow = || {
        for _ in 0..3 {
            messages += 1;
            sandbox.write(A, chat("a", messages, None));
            Stored::take(&sandbox, A);
        }
    };
    grow();
    // Once; more often than it is patient, so that it has to lock the others out; and in the end always, but then the others wait for it.
    for times in [1, 5] {
        let mut disturbed = 0;
        let act = Box::new(|| {
            if disturbed < times {
                disturbed += 1;
                grow();
                gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"]);
            }
        });
        let mut monitor = At { what: "reading objects", act };
        let report = stvc::verbs::check::check(&sandbox.workspace(), &mut monitor).unwrap();
        drop(monitor);
        let findings: Vec<_> = report.findings.iter().map(|found| &found.message).collect();
        assert!(findings.is_empty(), "{findings:#?}");
        assert!(disturbed > 0);
        grow();
    }
    assert!(!sandbox.store().join("stvc/damaged").exists());
    sound(&sandbox);
}
