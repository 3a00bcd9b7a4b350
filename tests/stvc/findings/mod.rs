//! Every finding about a timeline's own files: a library with exactly that finding, and a valid one
//! without. `rules` has every case, without a process; the others run the program.

mod every_finding;
mod forks;
mod lorebooks;
mod rules;

use serde_json::Value;

use crate::common::recap_library::{Recap, RecapLibrary};
use crate::common::{Answer, Sandbox};

/// Code, level and parts of the message of each expected finding.
type Expected<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// Returns the findings of a snapshot. The readiness check has its own tests.
#[track_caller]
fn findings_of_snapshot(sandbox: &Sandbox) -> Vec<Reported> {
    findings_of_answer(&sandbox.json(&["snapshot", "--allow-active-queue"]).exits(0))
}

fn findings_of_answer(answer: &Answer) -> Vec<Reported> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let finding = |line: &Value| (text(line, "code"), text(line, "level"), text(line, "message"));
    let found = answer.of_type("finding");
    found
        .iter()
        .map(finding)
        .filter(|(code, ..)| !["queue-active", "left-out"].contains(&code.as_str()))
        .collect()
}

type Reported = (String, String, String);

/// Asserts that program and rules report exactly these findings.
#[track_caller]
fn assert_yields(library: &RecapLibrary, expected: Expected<'_>) -> (Sandbox, Vec<Reported>) {
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    let found = findings_of_snapshot(&sandbox);
    assert_findings(&found, expected);
    assert_eq!(rules::findings_of_files(&sandbox.library()), found);
    (sandbox, found)
}

#[track_caller]
fn assert_findings(found: &[Reported], expected: Expected<'_>) {
    let codes: Vec<_> =
        found.iter().map(|(code, level, _)| (code.as_str(), level.as_str())).collect();
    let wanted: Vec<_> = expected.iter().map(|(code, level, _)| (*code, *level)).collect();
    assert_eq!(codes, wanted, "{found:#?}");
    for ((_, _, message), (_, _, words)) in found.iter().zip(expected) {
        for word in *words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
    }
}

fn more(key: &str, json: &str) -> (String, String) {
    (key.to_owned(), json.to_owned())
}

#[track_caller]
fn recap(library: &mut RecapLibrary) -> &mut Recap {
    library.recap.as_mut().unwrap()
}
