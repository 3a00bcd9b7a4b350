//! The table of instruction counts by commit in docs/performance.md.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::instructions::Count;
use crate::root;

/// A value may grow by this factor.
const ALLOWED: f64 = 1.1;
/// The columns before the counts: date and commit.
const LABELS: usize = 2;

/// The first line of the table names its columns.
const HEAD: &str = "| date | commit |";

/// Prints the counts beside the last recorded ones. Returns the columns that grew too much, or that
/// are not recorded.
pub fn compare(counts: &[Count]) -> Vec<&'static str> {
    let text = fs::read_to_string(page()).expect("read the page");
    let table = table(&text);
    let (head, last) = (cells(table[0]), cells(table[table.len() - 1]));
    println!("Compared with commit {} of {}, in millions of instructions or kB:", last[1], last[0]);
    let mut worse = Vec::new();
    for (name, now) in counts {
        let column = head.iter().position(|cell| cell == name);
        let before = column.and_then(|column| last.get(column)?.parse::<f64>().ok());
        let Some(before) = before else {
            println!("{name:>12} {now:10.1}, not recorded yet");
            worse.push(*name);
            continue;
        };
        let change = (now / before - 1.0) * 100.0;
        println!("{name:>12} {before:10.1} -> {now:10.1} ({change:+.1} %)");
        if now / before > ALLOWED {
            worse.push(*name);
        }
    }
    worse
}

/// Appends a line to the table.
pub fn record(counts: &[Count]) {
    let text = fs::read_to_string(page()).expect("read the page");
    let table = table(&text);
    let day = chrono::Utc::now().format("%Y-%m-%d");
    let mut line = format!("| {day} | {} |", commit());
    for name in &cells(table[0])[LABELS..] {
        let (_, count) = counts.iter().find(|(column, _)| column == name).expect("a known column");
        write!(line, " {count:.1} |").expect("text takes all");
    }
    let last = table[table.len() - 1];
    let text = text.replacen(last, &format!("{last}\n{line}"), 1);
    fs::write(page(), text).expect("write the page");
    println!("{line}");
}

fn page() -> PathBuf {
    root().join("docs/performance.md")
}

/// Returns the lines of the table, the names of the columns first.
fn table(page: &str) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| !line.starts_with(HEAD));
    let table: Vec<_> = lines.take_while(|line| line.starts_with('|')).collect();
    assert!(table.len() > 1, "docs/performance.md has no table of trends");
    table
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns the commit that is measured, which has all changes.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        let output = output.expect("start git");
        assert!(output.status.success(), "git {arguments:?} failed");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    let changed =
        git(&["status", "--porcelain", "--", "src", "benches", "Cargo.toml", "Cargo.lock"]);
    assert!(changed.is_empty(), "commit these changes before a line is recorded:\n{changed}");
    git(&["rev-parse", "--short=8", "HEAD"])
}
