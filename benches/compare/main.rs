//! stvc against git, restic, borg and bup, as far as they are installed: the same states side by side in one run, with
//! cp and zstd as the floor.
//!
//! `cargo run --release --locked --manifest-path benches/Cargo.toml -- [--quick] [--only LETTERS] [--write]`
//!
//! `--write` puts what came out into docs/performance.md and docs/performance.svg.

#![allow(clippy::disallowed_methods, reason = "nobody else has the files of a benchmark open")]

mod aims;
mod bounds;
mod chat;
#[allow(dead_code)]
#[path = "../../tests/sillytavern/equipment.rs"]
mod equipment;
mod grid;
mod growth;
mod library;
mod lorebook;
mod machine;
mod measure;
mod plot;
mod prose;
mod reading;
mod recap;
mod report;
mod run;
mod sheet;
mod timelines;
mod tools;
mod value;
mod viewing;
mod whole;
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};

use growth::Saves;
use reading::Years;
use report::Report;
use sheet::Sheet;
use timelines::Timelines;
use viewing::Shelves;
use whole::Whole;
use workloads::{Large, Many, Plain, Recap, Workload};

/// The workloads.
const ALL: &str = "abcdefghi";

/// How much is measured.
struct Scale {
    name: &'static str,
    /// (a): saves.
    plain: usize,
    /// (b): messages and saves of the main chat, entries of its lorebook.
    recap: (usize, usize, u64),
    /// (c): chats and megabytes.
    many: (u64, usize),
    /// (d): saves.
    growth: Saves,
    /// (e): megabytes.
    large: usize,
    /// (f): cards, lorebooks and the chat among them.
    whole: Whole,
    /// (g): what there is to look back on.
    years: Years,
    /// (h): what there is to look at.
    shelves: Shelves,
    /// (i): how many there are.
    timelines: Timelines,
    /// Saves of (c), (e) and, three times that, (f).
    some: usize,
    /// Rounds of what can be done again.
    rounds: usize,
}

const FULL: Scale = Scale {
    name: "Full scale",
    plain: 100,
    recap: (600, 26, 150),
    many: (200, 100),
    growth: Saves { peers: 100, all: 10_000 },
    large: 100,
    whole: Whole { cards: 200, books: 300, chat: 3_000_000 },
    years: Years { snapshots: 10_000, entries: 300 },
    shelves: Shelves { characters: 10, stories: 5, forks: 19, snapshots: 10 },
    timelines: Timelines {
        counts: &[200, 10, 1000, 2000, 5000],
        snapshots: [121, 1000],
        tenths: 36,
        rounds: 11,
    },
    some: 10,
    rounds: 5,
};

const QUICK: Scale = Scale {
    name: "Quick scale, too small to judge by",
    plain: 20,
    recap: (150, 8, 60),
    many: (20, 10),
    growth: Saves { peers: 30, all: 300 },
    large: 10,
    whole: Whole { cards: 20, books: 30, chat: 300_000 },
    years: Years { snapshots: 300, entries: 60 },
    shelves: Shelves { characters: 4, stories: 2, forks: 9, snapshots: 5 },
    timelines: Timelines { counts: &[20, 10, 200], snapshots: [12, 100], tenths: 4, rounds: 5 },
    some: 6,
    rounds: 3,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let only = arguments.iter().position(|argument| argument == "--only");
    let letters = only.map_or(ALL, |at| match arguments.get(at + 1) {
        Some(letters) if letters.chars().all(|letter| ALL.contains(letter)) => letters,
        _ => panic!("--only takes some of {ALL}"),
    });
    let write = has("--write");
    let apart = letters.chars().all(|letter| report::APART.contains(letter));
    let main = "abcde".chars().all(|letter| letters.contains(letter));
    assert!(!write || apart || main, "--write takes all of abcde, or none of them");
    let scale = if has("--quick") { QUICK } else { FULL };
    let head = head(&scale);
    println!("{head}");
    let mut report = Report::default();
    for letter in letters.chars() {
        let scratch = Scratch::new(letter);
        measure(letter, &scratch.0, &scale, &mut report);
    }
    report.print();
    match (write, apart) {
        (true, true) => letters.chars().for_each(|letter| report.write_apart(letter)),
        (true, false) => report.write(&head),
        (false, _) => {}
    }
}

/// When, where and with what.
fn head(scale: &Scale) -> String {
    let mut text = format!("{}. {}.\n\n", scale.name, machine::describe());
    for version in tools::versions() {
        text += &format!("- {version}\n");
    }
    text
}

fn measure(letter: char, dir: &Path, scale: &Scale, report: &mut Report) {
    let (mut workload, saves, title): (Box<dyn Workload>, _, _) = match letter {
        'a' => (
            Box::new(Plain::new(scale.plain)),
            scale.plain,
            format!("a plain chat, {} saves, four forks", scale.plain),
        ),
        'b' => {
            let (messages, saves, entries) = scale.recap;
            let recap = Recap::new(messages, saves, entries);
            let all = recap.all_saves();
            let title = format!(
                "an Auto-Recap chat of {messages} messages and {entries} entries, {all} saves, four forks"
            );
            (Box::new(recap), all, title)
        }
        'c' => {
            let (chats, megabytes) = scale.many;
            let title = format!("a library of {chats} chats, {megabytes} MB, {} saves", scale.some);
            (Box::new(Many::new(chats, megabytes)), scale.some, title)
        }
        'd' => {
            eprintln!("(d) {} snapshots …", scale.growth.all);
            let growth = growth::measure(dir, &scale.growth, scale.rounds);
            report.rows.extend(aims::rows(&growth.sheets[0]));
            report.rows.extend(growth.rows);
            report.sheets.extend(growth.sheets);
            report.points = growth.points;
            return;
        }
        'f' => {
            eprintln!("(f) a chat among all else …");
            report.rows.extend(whole::measure(dir, &scale.whole, scale.some * 3));
            return;
        }
        'g' => {
            eprintln!("(g) looking back on {} snapshots …", scale.years.snapshots);
            report.rows.extend(reading::measure(dir, &scale.years, scale.rounds));
            return;
        }
        'h' => {
            eprintln!("(h) looking at a large library …");
            report.rows.extend(viewing::measure(dir, &scale.shelves));
            return;
        }
        'i' => {
            eprintln!("(i) many timelines …");
            report.rows.extend(timelines::measure(dir, &scale.timelines));
            return;
        }
        _ => (
            Box::new(Large::new(scale.large)),
            scale.some,
            format!("one chat of {} MB, {} saves", scale.large, scale.some),
        ),
    };
    eprintln!("({letter}) {title} …");
    let sheet = Sheet::new(letter, title, Vec::new());
    let sheet = run::whole(dir, sheet, &mut *workload, saves, scale.rounds);
    report.rows.extend(aims::rows(&sheet));
    report.sheets.push(sheet);
}

/// Returns the folder of the program's sources.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder above benches")
}

/// An empty folder on the disk that holds the build, gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(letter: char) -> Self {
        let program = std::env::current_exe().expect("find the benchmark's own program");
        let dir = program.with_file_name(format!("compare-{letter}"));
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
