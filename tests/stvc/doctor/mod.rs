//! `doctor`: findings about single files and their relations, and every repair with its undo.

mod damage;
mod findings;
mod lost_lorebooks;
mod repairs;
mod shared_lorebooks;
mod unlisted_groups;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::recap_library::{RecapLibrary, quoted};
use crate::common::{Answer, Sandbox, assert_same};

/// Runs `doctor` and returns code and subject of each finding.
#[track_caller]
fn look(sandbox: &Sandbox, code: i32) -> Vec<(String, String)> {
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor"]).exits(code);
    assert_same(&sandbox.files(), &before);
    found(&answer)
}

fn found(answer: &Answer) -> Vec<(String, String)> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let lines = answer.of_type("finding");
    lines.iter().map(|line| (text(line, "code"), text(line, "subject"))).collect()
}

/// Returns the findings with this code.
#[track_caller]
fn of_code(sandbox: &Sandbox, code: &str) -> Vec<Value> {
    let answer = sandbox.json(&["doctor"]);
    answer.of_type("finding").into_iter().filter(|line| line["code"] == code).collect()
}

/// Repairs with these options and returns the files. Asserts that exactly `changed` was written or
/// removed and that undo restores every byte.
#[track_caller]
fn fix(sandbox: &Sandbox, options: &[&str], changed: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let before = sandbox.files();
    let arguments = [&["doctor", "--fix", "--yes"], options].concat();
    let answer = sandbox.json(&arguments).exits(0);
    let after = sandbox.files();
    let paths: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differing: Vec<_> =
        paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert_eq!(differing, changed, "{}", answer.stdout);
    let mut printed: Vec<_> =
        answer.of_type("file").iter().map(|line| line["path"].clone()).collect();
    printed.sort_by_key(|path| path.as_str().unwrap().to_owned());
    assert_eq!(printed, changed);
    assert!(answer.of_type("repair").iter().all(|line| line["done"] == true));

    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    // The undo can be undone too.
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation");
    sandbox.stvc(&["undo", &operations[0]["number"].to_string()]).exits(0);
    assert_same(&sandbox.files(), &after);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    after
}

fn header(book: &str, more: &str) -> String {
    format!(r#"{{"chat_metadata":{{"world_info":{book}{more}}}}}"#)
}

const BOOK: &str =
    "{\n    \"entries\": {\n        \"0\": {\"uid\": 0, \"content\": \"Rain.\"}\n    }\n}";

/// Writes a chat that is bound to `book`.
fn write_chat(sandbox: &Sandbox, name: &str, book: Option<&str>, more: &str) {
    let book = book.map_or("null".into(), quoted);
    let message = format!(r#"{{"name":"A","mes":"{name}"}}"#);
    sandbox.write(&format!("{name}.jsonl"), format!("{}\n{message}", header(&book, more)));
}

/// Creates a main chat with a lorebook, and two forks that share it.
fn family() -> (Sandbox, RecapLibrary, [RecapLibrary; 2]) {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::default();
    main.write(&sandbox);
    let forks = [main.fork("Branch #1", 7), main.fork("Dawn: the \"end\"?", 11)];
    let names = ["Branch #1", "Dawn the end"];
    let forks = [0, 1].map(|n| RecapLibrary { chat: names[n].into(), ..forks[n].clone() });
    forks.iter().for_each(|fork| fork.write(&sandbox));
    (sandbox, main, forks)
}
