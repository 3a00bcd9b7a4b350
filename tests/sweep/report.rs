//! The report: a table by verb, and one example point per kind of violation.

use std::collections::BTreeMap;
use std::path::Path;

use crate::judge::Violation;
use crate::point::{Kind, Point};
use crate::prepare::PreparedCase;

/// Failures per kind and case that are printed in full and whose folders are kept.
const EXAMPLES: usize = 1;

#[derive(Default)]
pub struct Report {
    /// By verb: number of points of each kind, and of failures.
    table: BTreeMap<String, ([usize; 4], usize)>,
    /// By case, kind and class: count and messages.
    failures: BTreeMap<(String, Kind, &'static str), (usize, Vec<String>)>,
    cases_failed: Vec<String>,
    passed: usize,
    failed: usize,
}

impl Report {
    pub fn failed(&self) -> usize {
        self.failed + self.cases_failed.len()
    }

    /// Records a case that cannot be prepared.
    pub fn case_failed(&mut self, name: &str, why: &str) {
        self.cases_failed.push(format!("{name}: {why}"));
    }

    /// Records a point and returns whether to keep its folder.
    pub fn add(
        &mut self,
        prepared: &PreparedCase,
        point: Point,
        call: &str,
        violations: &[Violation],
    ) -> bool {
        let (counts, failed) = self.table.entry(prepared.case.verb.to_owned()).or_default();
        counts[point.kind() as usize] += 1;
        if violations.is_empty() {
            self.passed += 1;
            return false;
        }
        *failed += 1;
        self.failed += 1;
        let mut keep = false;
        let mut classes: Vec<_> = violations.iter().map(|violation| violation.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let key = (prepared.case.name.to_owned(), point.kind(), class);
            let (count, examples) = self.failures.entry(key).or_default();
            *count += 1;
            if examples.len() < EXAMPLES {
                let words = violations.iter().filter(|violation| violation.class == class);
                let words: Vec<_> =
                    words.map(|violation| violation.words.as_str()).take(3).collect();
                examples.push(format!(
                    "--point {}, {call}: {}",
                    point.argument(),
                    words.join(" | ")
                ));
                keep = true;
            }
        }
        keep
    }

    pub fn print(&self, prepared: &[PreparedCase], base: &Path) {
        for why in &self.cases_failed {
            println!("FAILED case {why}");
        }
        for ((case, kind, class), (count, examples)) in &self.failures {
            let kind = kind.name();
            println!("FAILED --case {case} --kind {kind}, {class}: {count} points");
            for words in examples {
                println!("    {words}");
            }
        }
        if self.failed > 0 {
            println!("\nThe folders of these points are in {}\n", base.display());
        }
        println!("| verb | cases | kills | errors | power cuts | failed reads | failures |");
        println!("|---|---|---|---|---|---|---|");
        let mut sum = ([0; 4], 0);
        for (verb, (counts, failed)) in &self.table {
            let cases = prepared.iter().filter(|prepared| prepared.case.verb == verb).count();
            let [kills, errors, cuts, reads] = counts;
            println!("| {verb} | {cases} | {kills} | {errors} | {cuts} | {reads} | {failed} |");
            (0..4).for_each(|n| sum.0[n] += counts[n]);
            sum.1 += failed;
        }
        let ([kills, errors, cuts, reads], failed) = sum;
        println!("| all | {} | {kills} | {errors} | {cuts} | {reads} | {failed} |", prepared.len());
        println!("\n{} passed, {} failed", self.passed, self.failed());
    }
}
