//! The targets of stvc relative to its peers.

use crate::grid::Grid;
use crate::remote_steps::{Quantity, Step};
use crate::remotes::STVC;
use crate::sheet::{Measure, Sheet};
use crate::value::Value;

/// Target for the ratio of stvc's value to the peer's.
#[derive(Clone, Copy)]
pub enum Target {
    /// The peer's value is at least this many times larger.
    Better(f64),
    /// stvc's value is at most this many times the peer's.
    AtMost(f64),
    /// stvc's value is at least this many times the peer's.
    AtLeast(f64),
    /// Informational only.
    None,
}

use Target::{AtLeast, AtMost, Better};

/// Workloads, measure, peer and target.
const TARGETS: &[(&str, Measure, &str, Target)] = &[
    ("c", Measure::First, "git", AtMost(1.0)),
    ("c", Measure::First, "borg", AtMost(1.0)),
    ("abcde", Measure::Further, "git", Better(15.0)),
    ("c", Measure::Further, "git", Better(4.0)),
    ("a", Measure::Further, "cp", AtMost(1.5)),
    ("e", Measure::Further, "cp", AtMost(1.2)),
    ("abcde", Measure::Further, "restic", Better(40.0)),
    ("abcde", Measure::Further, "borg", Better(40.0)),
    ("ad", Measure::Restore, "git", AtMost(2.0)),
    ("be", Measure::Restore, "git", AtMost(1.0)),
    ("c", Measure::Restore, "git", AtMost(1.3)),
    ("c", Measure::Log, "git", AtMost(1.3)),
    ("abcde", Measure::Restore, "restic", Better(4.0)),
    ("b", Measure::Gc, "git", Better(5.0)),
    ("a", Measure::Size, "restic", Better(20.0)),
    ("a", Measure::Size, "borg", Better(20.0)),
    ("b", Measure::Size, "restic", Better(1.5)),
    ("b", Measure::Size, "borg", Better(1.5)),
    ("a", Measure::SizePacked, "zstd", Target::None),
    ("b", Measure::SizePacked, "zstd", AtMost(1.6)),
    ("a", Measure::SizePacked, "git", AtMost(1.0)),
    ("b", Measure::SizePacked, "git", Better(3.0)),
    ("b", Measure::SizePacked, "restic", Better(20.0)),
    ("b", Measure::SizePacked, "borg", Better(12.0)),
];

pub struct Row {
    pub letter: char,
    pub what: String,
    pub stvc: Value,
    pub peer: String,
    pub other: Value,
    pub target: Target,
}

pub fn rows(sheet: &Sheet) -> Vec<Row> {
    let mut rows = Vec::new();
    for &(letters, measure, peer, target) in TARGETS {
        let values = sheet.get(measure, "stvc").zip(sheet.get(measure, peer));
        if let Some((stvc, other)) = values.filter(|_| letters.contains(sheet.letter)) {
            let (letter, what) = (sheet.letter, measure.label());
            rows.push(Row { letter, what, stvc, peer: peer.into(), other, target });
        }
    }
    rows.extend(size_before_gc(sheet));
    rows.extend(cores_used(sheet));
    rows.extend(backup(sheet));
    rows.extend(memory(sheet));
    rows
}

/// Compares the store before `gc` with the store after it.
fn size_before_gc(sheet: &Sheet) -> Option<Row> {
    let stvc = sheet.get(Measure::Size, "stvc")?;
    let other = sheet.get(Measure::SizePacked, "stvc").filter(|_| sheet.letter == 'b')?;
    let what = "size, nothing typed".to_owned();
    let peer = "after gc".to_owned();
    Some(Row { letter: sheet.letter, what, stvc, peer, other, target: AtMost(1.3) })
}

/// Returns how many cores a first snapshot of many chats uses.
fn cores_used(sheet: &Sheet) -> Option<Row> {
    let stvc = sheet.get(Measure::FirstCpu, "stvc")?;
    let other = sheet.get(Measure::First, "stvc").filter(|_| sheet.letter == 'c')?;
    let what = "first snapshot, CPU".to_owned();
    let peer = "by the clock".to_owned();
    Some(Row { letter: sheet.letter, what, stvc, peer, other, target: AtLeast(1.7) })
}

/// Compares the backup file of an Auto-Recap chat with its store, and with the stores of the peers.
fn backup(sheet: &Sheet) -> Vec<Row> {
    let others = [
        ("stvc", "the store after gc", AtMost(0.6)),
        ("zstd", "zstd -19 of all states", Target::None),
        ("restic", "restic", Target::None),
        ("borg", "borg", Target::None),
    ];
    let row = |(tool, peer, target): (&'static str, &str, Target)| {
        let stvc = sheet.get(Measure::BackupSize, "stvc")?;
        let other = sheet.get(Measure::SizePacked, tool)?;
        let what = Measure::BackupSize.label();
        Some(Row { letter: sheet.letter, what, stvc, peer: peer.into(), other, target })
    };
    let asked = others.into_iter().filter(|_| sheet.letter == 'b');
    asked.filter_map(row).collect()
}

/// Compares the command with the highest memory use with the limit.
pub fn memory(sheet: &Sheet) -> Option<Row> {
    let found = Measure::MEMORY.map(|measure| Some((measure, sheet.get(measure, "stvc")?)));
    let most = found.into_iter().flatten();
    let most = most.max_by(|(_, one), (_, two)| one.number().total_cmp(&two.number()));
    most.map(|(measure, stvc)| Row {
        letter: sheet.letter,
        what: measure.label(),
        stvc,
        peer: MEMORY_LIMIT.into(),
        other: Value::Bytes(3 * sheet.largest + 64_000_000),
        target: AtMost(1.0),
    })
}

/// Compares the cost of a remote with its limits. Adding a remote is left out of the memory,
/// because the derivation of the key from the passphrase takes 256 MB.
pub fn of_remotes(sheet: &Sheet) -> Vec<Row> {
    let memory_limit = Value::Bytes(3 * sheet.largest + 64_000_000);
    let limits = [
        (Step::Nothing, Quantity::Requests, "a list and two reads", Value::Count(3.0)),
        (Step::First, Quantity::Memory, MEMORY_LIMIT, memory_limit),
        (Step::Save, Quantity::Memory, MEMORY_LIMIT, memory_limit),
        (Step::Restore, Quantity::Memory, MEMORY_LIMIT, memory_limit),
    ];
    let rows = limits.into_iter().flat_map(|(step, quantity, peer, other)| {
        STVC.into_iter().filter_map(move |tool| {
            let measure = Measure::Remote(step, quantity);
            let stvc = sheet.get(measure, tool)?;
            let what = format!("{tool}: {}", measure.label());
            Some(Row { letter: 'j', what, stvc, peer: peer.into(), other, target: AtMost(1.0) })
        })
    });
    rows.collect()
}

const MEMORY_LIMIT: &str = "3 x the chat + 64 MB";

impl Row {
    fn ratio(&self) -> f64 {
        let (own, other) = (self.stvc.number(), self.other.number());
        match self.target {
            Better(_) => other / own,
            AtMost(_) | AtLeast(_) | Target::None => own / other,
        }
    }

    /// `None` without a target.
    pub fn met(&self) -> Option<bool> {
        match self.target {
            Better(target) => Some(self.ratio() >= target),
            AtMost(target) => Some(self.ratio() <= target),
            AtLeast(target) => Some(self.ratio() >= target),
            Target::None => None,
        }
    }

    fn cells(&self) -> [String; 8] {
        let (direction, target) = match self.target {
            Better(target) => ("1/", format!("<= 1/{target}")),
            AtMost(target) => ("", format!("<= {target}")),
            AtLeast(target) => ("", format!(">= {target}")),
            Target::None => ("", String::new()),
        };
        let ratio = self.ratio();
        let digits = if ratio < 100.0 { 2 } else { 0 };
        let met = self.met().map_or("", |met| if met { "yes" } else { "NO" });
        [
            format!("({})", self.letter),
            self.what.clone(),
            self.peer.clone(),
            self.stvc.to_string(),
            self.other.to_string(),
            format!("{direction}{ratio:.digits$}"),
            target,
            met.to_owned(),
        ]
    }
}

pub fn grid<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Grid {
    let head = ["", "what", "against", "stvc", "the other", "ratio", "aim", "met"];
    let mut grid = Grid::new(&head, 3..);
    rows.into_iter().for_each(|row| grid.line(row.cells()));
    grid
}
