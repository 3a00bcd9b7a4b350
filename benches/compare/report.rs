//! Writes docs/performance.md and the plot beside it.

use std::fs;
use std::ops::Range;

use crate::bounds;
use crate::grid::Grid;
use crate::growth::Point;
use crate::plot;
use crate::root;
use crate::sheet::Sheet;
use crate::targets::{self, Row};

#[derive(Default)]
pub struct Report {
    pub sheets: Vec<Sheet>,
    pub rows: Vec<Row>,
    pub points: Vec<Point>,
}

impl Report {
    pub fn print(&self) {
        for sheet in &self.sheets {
            println!("\n({}) {}\n\n{}", sheet.letter, sheet.title, sheet.grid().plain());
        }
        if !self.points.is_empty() {
            println!("\nGrowth\n\n{}", self.growth().plain());
        }
        println!("\nAims\n\n{}", targets::grid(&self.rows).plain());
    }

    fn growth(&self) -> Grid {
        let mut grid =
            Grid::new(&["tool", "snapshots", "size", "after gc", "further snapshot"], 1..);
        for point in &self.points {
            let megabytes = |bytes: u64| crate::value::Value::Bytes(bytes).to_string();
            grid.line([
                point.tool.to_owned(),
                point.snapshots.to_string(),
                megabytes(point.size),
                point.packed.map_or(String::new(), megabytes),
                point.further.map_or(String::new(), |time| time.to_string()),
            ]);
        }
        grid
    }

    /// Writes the page. Separate sections that were not measured in this run stay unchanged.
    pub fn write(&self, head: &str) {
        let docs = root().join("docs");
        let before = fs::read_to_string(docs.join("performance.md")).unwrap_or_default();
        fs::write(docs.join("performance.md"), self.markdown(head, &before))
            .expect("write the report");
        fs::write(docs.join("performance.svg"), plot::svg(&self.points)).expect("write the plot");
    }

    fn markdown(&self, head: &str, before: &str) -> String {
        let mut text = format!("# Performance\n\n{INTRODUCTION}\n{head}\n## Aims\n\n{RATIO}\n");
        let (apart, main): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|row| SEPARATE_SECTIONS.contains(row.letter));
        text += &targets::grid(main.iter().copied()).markdown();
        text += &missed(main);
        for sheet in &self.sheets {
            text +=
                &format!("\n## ({}) {}\n\n{}", sheet.letter, sheet.title, sheet.grid().markdown());
        }
        for letter in SEPARATE_SECTIONS.chars() {
            let rows: Vec<_> = apart.iter().copied().filter(|row| row.letter == letter).collect();
            let section = match rows.is_empty() {
                true => find_section(before, letter)
                    .map(|place| before[place].trim_end().to_owned() + "\n"),
                false => Some(section(letter, &rows)),
            };
            text.extend(section.map(|section| format!("\n{section}")));
        }
        text += "\n## Growth\n\n![Store size and time of a further snapshot against the number of snapshots](performance.svg)\n\n";
        text += &self.growth().markdown();
        text + "\n" + MEANING
    }

    /// Replaces the section of one workload.
    pub fn write_section(&self, letter: char) {
        let path = root().join("docs/performance.md");
        let page = fs::read_to_string(&path).expect("read the report");
        let rows: Vec<_> = self.rows.iter().filter(|row| row.letter == letter).collect();
        let place = find_section(&page, letter).unwrap_or_else(|| {
            let growth = page.find("## Growth").expect("a place for it");
            growth..growth
        });
        let section = section(letter, &rows);
        let text = format!("{}{section}\n{}", &page[..place.start], &page[place.end..]);
        fs::write(path, text).expect("write the report");
    }
}

/// Finds a workload's section in the page.
fn find_section(page: &str, letter: char) -> Option<Range<usize>> {
    let begin = page.find(&format!("## ({letter})"))?;
    let next = page[begin..].match_indices("\n## ").map(|(at, _)| begin + at + 1).next();
    Some(begin..next.unwrap_or(page.len()))
}

/// Workloads with a section of their own.
pub const SEPARATE_SECTIONS: &str = "fghi";

fn section(letter: char, rows: &[&Row]) -> String {
    let title = match letter {
        'f' => "a chat among cards and lorebooks",
        'g' => "looking back over years of writing",
        'i' => "many timelines, many checkpoints, and no process of its own",
        _ => "a library of 1,000 timelines and 10,000 snapshots in the browser (headless Chromium)",
    };
    let date = chrono::Local::now().format("%Y-%m-%d");
    let grid = targets::grid(rows.iter().copied()).markdown();
    format!("## ({letter}) {title}\n\nMeasured on {date}.\n\n{grid}{}", missed(rows.to_vec()))
}

/// Lists the missed targets, grouped by reason.
fn missed(rows: Vec<&Row>) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.met() == Some(false)) {
        let why = bounds::reason_for(row).unwrap_or("not looked into yet");
        let name = format!("({}) {} against {}", row.letter, row.what, row.peer);
        match groups.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => groups.push((why, vec![name])),
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let line = |(why, names): &(&str, Vec<String>)| format!("- {}: {why}.\n", names.join("; "));
    let lines: String = groups.iter().map(line).collect();
    format!("\nNot reached, and what bounds it:\n\n{lines}")
}

const INTRODUCTION: &str = "\
Written by `cargo run --release --locked --manifest-path benches/Cargo.toml -- --write`, which takes the same states of
made-up libraries through stvc, git, restic, borg and bup side by side, with `cp` and `zstd` as the floor. Only ratios
mean something: the tools take turns and share the machine and its noise.
";

const RATIO: &str = "A ratio is stvc's value to the other's.\n";

const MEANING: &str = "\
## What the rows mean

Every save is one snapshot, commit, backup or copy of the whole library. The text is as hard to compress as English
(zlib makes it 2.3 to 2.8 times smaller).

- **Times** are medians by the clock over several rounds, a further snapshot's over all saves; gc is done once. Where it
  says CPU, it is the mean of what was used on all cores: where others use the machine too, that says more than the clock.
  Before each, everything written earlier is synced. stvc syncs all it writes before it says that it is done; git does
  not sync loose objects nor the files it checks out, `cp` syncs nothing.
- **before**: an earlier stvc, the program that `STVC_BEFORE` names.
- **first snapshot**: into an empty store. **further snapshot**: after one save; `git add -A && git commit`,
  `restic backup`, `borg create`, `bup index && bup save`, `cp -a` of the library.
- **restore of a chat**: the chat's newest state, whose file is gone; held against the original byte for byte.
- **log**: `stvc log --graph`, `git log --graph --oneline --all`, `restic snapshots`, `borg list`, `bup ls`.
- **check**: everything is read: `stvc check` (rebuilds every snapshot), `git fsck --full`, `restic check --read-data`,
  `borg check --verify-data`, `bup fsck`.
- **gc**: `stvc gc --grace 0s`, `git gc --aggressive --prune=now`, `restic prune --max-unused 0`, `borg compact`,
  `bup gc`, and for zstd all copies as one tar through `zstd -T0 -19 --long=31`. restic, borg and bup only drop what is not
  needed any more, which here is nothing.
- **backup to a file**: `stvc backup FILE.stvc` after gc, read back and verified before it is done. What others have for
  this is their store itself, and for zstd the one file of all copies.
- **size**: the length of all files of the store; caches of restic and borg are not counted.
- **memory**: the largest resident set of any process of the command. The aim takes the command that needs most.
- **Settings**: git with `gc.auto=0`; borg without encryption; restic always encrypts, and spends a good part of a second on its
  key in every command; otherwise the defaults.
- In (d), a chat that has 400 messages makes way for a new one, so that a save is as large in the end as in the
  beginning. The peers take part in the first saves only, and stvc's numbers beside theirs are from that moment.
  A point of the curve is the median of ten saves, and stvc's size after gc that of a copy.
- In (f), a chat of 3 MB is saved in a library of its own and, in turn, in one with 200 cards (100 MB) and 300 lorebooks that nobody touches; then the
  description of a card is written anew.
- In (g), a lorebook of 300 entries changes in one of them for each of 10,000 snapshots, and its chat goes on with every tenth; then everything is collected. git is asked the same of the same
  store. It greps the newest 200 commits only: all of them would take it hours.
- In (i), chats of ten messages, each with a branch: one of them goes on, one is lost and restored. A checkpoint is taken in the middle of a chat of 3.6 MB that has been saved so often. Where no
  process is started, the library of this program is called as `watch` and the mailbox call it, once a file has been left alone.
";
