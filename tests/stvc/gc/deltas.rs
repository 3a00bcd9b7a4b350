//! Git reads deltas of every kind.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use stvc::internals::store::Store;
use stvc::progress::NoProgress;
use stvc::verbs;

use super::{DAY, Random, Verified, gc, objects_by_git, put, verify_packs};
use crate::common::{A, Sandbox, Stored, chat, fsck, git_with_input};

/// Packs these versions, and reads each with git and with stvc.
#[track_caller]
fn reads_back(versions: &[Vec<&[u8]>]) -> Verified {
    let sandbox = Sandbox::empty();
    let ids = put(&sandbox, versions, &[]);
    let undo = Duration::from_secs(90 * DAY);
    let options = verbs::gc::Options { undo, grace: Duration::ZERO, dry_run: false };
    verbs::gc::gc(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
    let blobs: Vec<&[u8]> = versions.iter().flatten().copied().collect();
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let answered = git_with_input(&sandbox.store(), &["cat-file", "--batch"], asked.as_bytes());
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

#[derive(Clone, Debug)]
enum Edit {
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Moves a range.
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

/// The first version of an object, and the edits of each later one.
fn family() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<Edit>>)> {
    let first = prop_oneof![
        // Few distinct bytes: many repetitions.
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

    /// Git reads the output of the delta coder. No version is empty: see
    /// `git_reads_an_empty_message`.
    #[test]
    fn git_reads_generated_deltas(families in prop::collection::vec(family(), 1..5)) {
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
fn git_reads_deltas_of_boundary_lengths() {
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
    // The maximal part of a volume, the length of a volume, and copies of exactly that length from
    // a longer object.
    for length in [16_383, 16_384, 16_385, 0xffff, 0x1_0000, 0x1_0001, 98_304, 0x2_0000] {
        let stretch = &base[7..7 + length];
        things.push(vec![base.clone(), stretch.to_vec(), [b"<", stretch, b">"].concat()]);
    }
    // Long chains, and repetitions of one object.
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

/// The longest copy of one instruction, and the largest objects that become deltas.
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

/// SillyTavern's own files have no trailing newline, but others do, and a blank line is an empty
/// message.
#[test]
fn git_reads_an_empty_message() {
    for messages in [2, 3, 20, 400] {
        let sandbox = Sandbox::empty();
        sandbox.write(A, [&chat("a", messages, None)[..], b"\n"].concat());
        let stored = Stored::take(&sandbox, A);
        gc(&sandbox, &[]);
        fsck(&sandbox);
        objects_by_git(&sandbox.store());
        verify_packs(&sandbox.store());
        stored.assert_restores(&sandbox);
        sandbox.git(&["repack", "-q", "-adf"]);
        stored.assert_restores(&sandbox);
    }
    reads_back(&[vec![b""], vec![b"x"], vec![b""], vec![&[7; 100]]]);
}
