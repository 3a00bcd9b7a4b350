//! Compares stvc with git, restic, borg, bup and rclone, as far as they are installed: all tools
//! store the same states in one run, with cp and zstd as the baseline.
//!
//! `cargo run --release --locked --manifest-path benches/Cargo.toml -- [--quick] [--only LETTERS]
//! [--markdown]`
//!
//! `--markdown` prints the tables for docs/performance.md and writes docs/performance.svg.
//!
//! `… -- --instructions [--record | --compare]` counts the instructions of stvc's commands instead:
//! `--record` appends a line to the trends in docs/performance.md, `--compare` fails if a command
//! is more than 10 % worse than in the last line.

#![allow(clippy::disallowed_methods, reason = "nobody else has the files of a benchmark open")]

mod chat;
#[allow(dead_code)]
#[path = "../../tests/sillytavern/equipment.rs"]
mod equipment;
mod grid;
mod growth;
mod instructions;
mod library;
mod lorebook;
mod machine;
mod measure;
mod plot;
mod prose;
mod proxy;
mod reading;
mod recap;
mod remote_steps;
mod remotes;
mod report;
mod run;
#[allow(dead_code)]
#[path = "../../tests/remotes/servers.rs"]
mod servers;
mod sheet;
mod targets;
mod timelines;
mod tools;
mod trends;
mod value;
mod viewing;
mod whole;
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};

use growth::Saves;
use reading::HistorySize;
use remotes::Remotes;
use report::{Format, Report};
use sheet::Sheet;
use timelines::Timelines;
use viewing::{LibrarySize, LongChat};
use whole::Whole;
use workloads::{Large, Many, Plain, Recap, Workload};

const ALL: &str = "abcdefghij";

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
    /// (g): snapshots and lorebook entries to query.
    history_size: HistorySize,
    /// (h): size of the library in the viewer.
    library_size: LibrarySize,
    /// (i): numbers of chats and snapshots.
    timelines: Timelines,
    /// (j): chats, megabytes and repetitions.
    remotes: Remotes,
    /// Saves of (c) and (e), and a third of those of (f).
    few_saves: usize,
    /// Repetitions of repeatable measurements.
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
    history_size: HistorySize { snapshots: 10_000, entries: 300 },
    library_size: LibrarySize {
        characters: 10,
        stories: 5,
        forks: 19,
        snapshots: 10,
        long: LongChat { messages: 10_000, snapshots: 500 },
    },
    timelines: Timelines {
        counts: &[200, 10, 1000, 2000, 5000],
        snapshots: [121, 1000],
        tenths: 36,
        rounds: 11,
    },
    remotes: Remotes { chats: 200, megabytes: 100, saves: 40, repetitions: 5 },
    few_saves: 10,
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
    history_size: HistorySize { snapshots: 300, entries: 60 },
    library_size: LibrarySize {
        characters: 4,
        stories: 2,
        forks: 9,
        snapshots: 5,
        long: LongChat { messages: 400, snapshots: 20 },
    },
    timelines: Timelines { counts: &[20, 10, 200], snapshots: [12, 100], tenths: 4, rounds: 5 },
    remotes: Remotes { chats: 20, megabytes: 10, saves: 4, repetitions: 2 },
    few_saves: 6,
    rounds: 3,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--instructions") {
        return trend(has("--record"), has("--compare"));
    }
    let only = arguments.iter().position(|argument| argument == "--only");
    let letters = only.map_or(ALL, |at| match arguments.get(at + 1) {
        Some(letters) if letters.chars().all(|letter| ALL.contains(letter)) => letters,
        _ => panic!("--only takes some of {ALL}"),
    });
    let scale = if has("--quick") { QUICK } else { FULL };
    let head = head(&scale);
    println!("{head}");
    let mut report = Report::default();
    for letter in letters.chars() {
        let scratch = Scratch::new(&letter.to_string());
        measure(letter, &scratch.0, &scale, &mut report);
    }
    let format = if has("--markdown") { Format::Markdown } else { Format::Plain };
    report.print(format);
    if format == Format::Markdown {
        report.write_plot();
    }
}

fn trend(is_recorded: bool, is_compared: bool) {
    let scratch = Scratch::new("instructions");
    let counts = instructions::measure(&scratch.0);
    let worse = trends::compare(&counts);
    if is_recorded {
        trends::record(&counts);
    }
    if is_compared && !worse.is_empty() {
        eprintln!("not recorded, or more than 10 % worse than recorded: {}", worse.join("; "));
        eprintln!("If the change is worth it, add --record, which appends a line to the page.");
        std::process::exit(1);
    }
}

/// Describes date, machine and tools.
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
            let title =
                format!("a library of {chats} chats, {megabytes} MB, {} saves", scale.few_saves);
            (Box::new(Many::new(chats, megabytes)), scale.few_saves, title)
        }
        'd' => {
            eprintln!("(d) {} snapshots …", scale.growth.all);
            let growth = growth::measure(dir, &scale.growth, scale.rounds);
            report.rows.extend(targets::rows(&growth.sheets[0]));
            report.rows.extend(growth.rows);
            report.sheets.extend(growth.sheets);
            report.points = growth.points;
            return;
        }
        'f' => {
            eprintln!("(f) a chat among all else …");
            report.rows.extend(whole::measure(dir, &scale.whole, scale.few_saves * 3));
            return;
        }
        'g' => {
            eprintln!("(g) looking back on {} snapshots …", scale.history_size.snapshots);
            report.rows.extend(reading::measure(dir, &scale.history_size, scale.rounds));
            return;
        }
        'h' => {
            eprintln!("(h) looking at a large library …");
            report.rows.extend(viewing::measure(dir, &scale.library_size));
            return;
        }
        'i' => {
            eprintln!("(i) many timelines …");
            report.rows.extend(timelines::measure(dir, &scale.timelines));
            return;
        }
        'j' => {
            eprintln!("(j) remotes …");
            let sheet = remotes::measure(dir, &scale.remotes);
            report.rows.extend(sheet.iter().flat_map(targets::of_remotes));
            report.sheets.extend(sheet);
            return;
        }
        _ => (
            Box::new(Large::new(scale.large)),
            scale.few_saves,
            format!("one chat of {} MB, {} saves", scale.large, scale.few_saves),
        ),
    };
    eprintln!("({letter}) {title} …");
    let sheet = Sheet::new(letter, title, Vec::new());
    let sheet = run::whole(dir, sheet, &mut *workload, saves, scale.rounds);
    report.rows.extend(targets::rows(&sheet));
    report.sheets.push(sheet);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder above benches")
}

/// A temporary folder on the disk of the build.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let program = std::env::current_exe().expect("find the benchmark's own program");
        let dir = program.with_file_name(format!("compare-{name}"));
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
