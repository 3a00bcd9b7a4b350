//! stvc against real git, and against restic and borg where they are installed: the same file states, side by side in one run.
//!
//! `cargo bench --bench compare -- [--quick] [--only N]`
//!
//! Only the ratios mean something: all tools share the machine and its noise, and take turns; where others use it too, the CPU
//! rows say more than the clock. git does not sync loose objects nor
//! the files it checks out; stvc syncs everything it writes before it says that it is done.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot go on should stop loudly"
)]

mod library;
mod measure;
mod peers;
mod prose;
mod rows;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use table::Row;

/// How much is measured.
struct Scale {
    /// Messages of the long chat.
    messages: usize,
    /// Rounds of what takes milliseconds.
    rounds: usize,
    /// Rounds of what takes longer.
    some: usize,
    /// Rounds of what takes seconds.
    few: usize,
    /// Saves for the size of stores.
    saves: usize,
    /// Snapshots in the store that has many.
    snapshots: usize,
}

const FULL: Scale =
    Scale { messages: 5000, rounds: 21, some: 9, few: 5, saves: 100, snapshots: 1000 };

const QUICK: Scale =
    Scale { messages: 1250, rounds: 7, some: 5, few: 3, saves: 40, snapshots: 200 };

type Measurement = fn(&Path, &Scale) -> Vec<Row>;

const MEASUREMENTS: [(&str, Measurement); 7] = [
    ("one more snapshot", rows::one_more_snapshot),
    ("first snapshot", rows::first_snapshot),
    ("restore", rows::restore),
    ("memory", rows::memory),
    ("store size", rows::store_size),
    ("many snapshots", rows::many_snapshots),
    ("restic and borg", rows::archives),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--bench") {
        println!("Run me by `cargo bench --bench compare`.");
        return;
    }
    let scale = if has("--quick") { QUICK } else { FULL };
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.map(|at| {
        let number = arguments.get(at + 1).and_then(|number| number.parse().ok());
        number.expect("--only takes a number from 1 to 7")
    });
    print_versions();
    let mut rows = Vec::new();
    for (n, (name, measure)) in MEASUREMENTS.iter().enumerate() {
        if only.is_none_or(|only: usize| only == n + 1) {
            eprintln!("{}: {name} …", n + 1);
            let scratch = Scratch::new(n + 1);
            rows.extend(measure(&scratch.0, &scale));
        }
    }
    println!();
    table::print(&rows);
    println!(
        "\nTimes are medians by the clock, or means of what was used on all cores where it says CPU.\n\
         A ratio is stvc's value to the other's."
    );
}

fn print_versions() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} on {cores} cores", std::env::consts::OS);
    let tools = [
        (env!("CARGO_BIN_EXE_stvc"), "--version"),
        ("git", "--version"),
        ("restic", "version"),
        ("borg", "--version"),
    ];
    for (program, argument) in tools {
        match peers::version(program, argument) {
            Some(version) => println!("{version}"),
            None => println!("{program} is not installed: left out"),
        }
    }
}

/// An empty folder on the disk that holds the build, gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(number: usize) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compare-{number}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("make a folder for the benchmark");
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
