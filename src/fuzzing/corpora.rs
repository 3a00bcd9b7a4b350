//! Runs every fuzz target for a short time, so that `cargo test` finds regressions. The inputs are
//! the files of the corpus, the inputs of earlier failures, and a few mutations of each.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::TARGETS;

/// Mutations of each file, unless [`MAX_TIME`] is reached first.
const MUTATIONS: usize = 200;
/// The maximum time for the mutations of one target.
const MAX_TIME: Duration = Duration::from_millis(300);

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn files_in(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = names_in(folder).into_iter().map(|name| folder.join(name));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_fuzz_target_has_a_corpus_and_every_corpus_has_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&fuzz().join("corpus")), targets);
    let stem = |name: String| name.strip_suffix(".rs").unwrap().to_owned();
    let files: BTreeSet<_> = names_in(&fuzz().join("fuzz_targets")).into_iter().map(stem).collect();
    assert_eq!(files, targets);
    assert!(names_in(&fuzz().join("regressions")).is_subset(&targets));
    for name in &targets {
        assert!(!names_in(&fuzz().join("corpus").join(name)).is_empty(), "{name} has no seed");
    }
}

/// Mutates inputs. The mutations are the same in every run, so that a failure can be reproduced.
struct Mutator(u64);

impl Mutator {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }

    fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut input = input.to_vec();
        for _ in 0..1 + self.next(4) {
            let at = self.next(input.len());
            let end = (at + 1 + self.next(16)).min(input.len());
            match self.next(7) {
                0 if !input.is_empty() => input[at] ^= 1 << self.next(8),
                1 if !input.is_empty() => input[at] = self.next(256) as u8,
                2 => drop(input.drain(at.min(end)..end)),
                3 => input.truncate(at),
                4 => {
                    let copy = input[at.min(end)..end].to_vec();
                    let to = self.next(input.len() + 1);
                    input.splice(to..to, copy);
                }
                5 => {
                    let from = self.next(other.len());
                    let until = (from + 1 + self.next(64)).min(other.len());
                    let piece = other.get(from..until).unwrap_or_default();
                    input.splice(at.min(end)..at.min(end), piece.iter().copied());
                }
                _ => {
                    const ODD: [&[u8]; 6] =
                        [b"\0", b"\"", b"\\ud83d", b"\n", b"-1", b"\xff\xff\xff\xff"];
                    let odd = ODD[self.next(ODD.len())];
                    input.splice(at.min(end)..at.min(end), odd.iter().copied());
                }
            }
        }
        input
    }
}

/// Runs a target on one input. If the target panics, the input is saved, and the failure names the
/// file.
fn run(name: &str, target: fn(&[u8]), input: &[u8], from: &Path) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let kept = std::env::temp_dir().join(format!("stvc-fuzz-{name}"));
        fs::write(&kept, input).unwrap();
        panic!("target {name} fails; made of {}, kept as {}", from.display(), kept.display());
    }
}

fn run_all(name: &str) {
    let (_, target) = TARGETS.iter().find(|(other, _)| *other == name).unwrap();
    let files: Vec<_> = ["corpus", "regressions"]
        .iter()
        .flat_map(|folder| files_in(&fuzz().join(folder).join(name)))
        .collect();
    for (path, input) in &files {
        run(name, *target, input, path);
    }
    let begin = Instant::now();
    let mut mutator = Mutator(0x9e37_79b9_7f4a_7c15);
    for round in 0..MUTATIONS {
        for (n, (path, input)) in files.iter().enumerate() {
            if begin.elapsed() > MAX_TIME {
                return;
            }
            let (_, other) = &files[(n + round) % files.len()];
            run(name, *target, &mutator.mutate(input, other), path);
        }
    }
}

macro_rules! short_runs {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                run_all(stringify!($name));
            }
        )*

        #[test]
        fn every_fuzz_target_has_a_short_run() {
            let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

short_runs! {
    announcement, backup, card, chat, config, date, delta, http, json, lorebook, mailbox, manifest,
    moment, operation_log, pack, pack_index, remote_object, s3_list, snapshot, tree, webdav_list,
}
