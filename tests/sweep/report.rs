//! What was tried and what was wrong: a table for every verb, and for every kind of failure a point that shows it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::judge::Wrong;
use crate::point::{Kind, Point};
use crate::prepare::Ready;

/// How many failures of one kind in one case are told in full, with their folders kept.
const TOLD: usize = 1;

#[derive(Default)]
pub struct Report {
    /// By verb: points of each kind, and those that failed.
    table: BTreeMap<String, ([usize; 4], usize)>,
    /// By case, kind and class: how often, and what was said.
    failures: BTreeMap<(String, Kind, &'static str), (usize, Vec<String>)>,
    cases_failed: Vec<String>,
    passed: usize,
    failed: usize,
}

impl Report {
    pub fn failed(&self) -> usize {
        self.failed + self.cases_failed.len()
    }

    /// A case that cannot even be tried.
    pub fn case_failed(&mut self, name: &str, why: &str) {
        self.cases_failed.push(format!("{name}: {why}"));
    }

    /// A point was tried; whether its folder is worth keeping.
    pub fn add(&mut self, ready: &Ready, point: Point, call: &str, wrong: &[Wrong]) -> bool {
        let (counts, failed) = self.table.entry(ready.case.verb.to_owned()).or_default();
        counts[point.kind() as usize] += 1;
        if wrong.is_empty() {
            self.passed += 1;
            return false;
        }
        *failed += 1;
        self.failed += 1;
        let mut keep = false;
        let mut classes: Vec<_> = wrong.iter().map(|wrong| wrong.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let key = (ready.case.name.to_owned(), point.kind(), class);
            let (count, told) = self.failures.entry(key).or_default();
            *count += 1;
            if told.len() < TOLD {
                let words = wrong.iter().filter(|wrong| wrong.class == class);
                let words: Vec<_> = words.map(|wrong| wrong.words.as_str()).take(3).collect();
                told.push(format!("--point {}, {call}: {}", point.words(), words.join(" | ")));
                keep = true;
            }
        }
        keep
    }

    pub fn print(&self, ready: &[Ready], base: &Path) {
        for why in &self.cases_failed {
            println!("FAILED case {why}");
        }
        for ((case, kind, class), (count, told)) in &self.failures {
            let kind = kind.words();
            println!("FAILED --case {case} --kind {kind}, {class}: {count} points");
            for words in told {
                println!("    {words}");
            }
        }
        if self.failed > 0 {
            println!("\nThe folders of the points told are in {}\n", base.display());
        }
        println!("| verb | cases | kills | errors | power cuts | failed reads | failures |");
        println!("|---|---|---|---|---|---|---|");
        let mut sum = ([0; 4], 0);
        for (verb, (counts, failed)) in &self.table {
            let cases = ready.iter().filter(|ready| ready.case.verb == verb).count();
            let [kills, errors, cuts, reads] = counts;
            println!("| {verb} | {cases} | {kills} | {errors} | {cuts} | {reads} | {failed} |");
            (0..4).for_each(|n| sum.0[n] += counts[n]);
            sum.1 += failed;
        }
        let ([kills, errors, cuts, reads], failed) = sum;
        println!("| all | {} | {kills} | {errors} | {cuts} | {reads} | {failed} |", ready.len());
        println!("\n{} passed, {} failed", self.passed, self.failed());
    }
}
