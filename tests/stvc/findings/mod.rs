//! Every finding about a timeline's own files: a library that has it and no other, and a sound one that has none. What the rules say in
//! every case is in `src/rules/tests`; here is that the program says it.

mod every_finding;
mod forks;
mod lorebooks;

use serde_json::Value;
use stvc::rules::{self, Finding};
use stvc::st::{Chat, Disk, Library, capture};

use crate::common::recap_library::{Recap, RecapLibrary};
use crate::common::{Answer, Sandbox};

/// Code, level and words of the message of each finding that is expected.
type Expected<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// What a snapshot of the library says. The gate for active queues has tests of its own.
#[track_caller]
fn told(sandbox: &Sandbox) -> Vec<Told> {
    of_answer(&sandbox.json(&["snapshot", "--allow-active-queue"]).exits(0))
}

fn of_answer(answer: &Answer) -> Vec<Told> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let told = |line: &Value| (text(line, "code"), text(line, "level"), text(line, "message"));
    let found = answer.of_type("finding");
    found
        .iter()
        .map(told)
        .filter(|(code, ..)| !["queue-active", "left-out"].contains(&code.as_str()))
        .collect()
}

type Told = (String, String, String);

/// What the rules say of the only chat's files, without a process.
#[track_caller]
fn of_files(sandbox: &Sandbox) -> Vec<Told> {
    let library = Library::open(&sandbox.library(), None).unwrap();
    let scan = library.scan().unwrap();
    let captured = capture(&library, &scan.groups, &scan.chats[0], &Disk).unwrap();
    let chat = Chat::split(&captured.files.main.bytes, false);
    let found = rules::of_files(&captured.files, &chat, rules::ALL, library.book_template());
    let told = |finding: Finding| {
        (finding.code.to_string(), finding.level.as_str().to_owned(), finding.message)
    };
    found.into_iter().map(told).collect()
}

/// The program tells just these findings of a library, and the rules by themselves the same.
#[track_caller]
fn yields(library: &RecapLibrary, expected: Expected<'_>) -> (Sandbox, Vec<Told>) {
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    let found = told(&sandbox);
    expect(&found, expected);
    assert_eq!(of_files(&sandbox), found);
    (sandbox, found)
}

#[track_caller]
fn expect(found: &[Told], expected: Expected<'_>) {
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
