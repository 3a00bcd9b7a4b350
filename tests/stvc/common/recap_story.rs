//! A long ST-Auto-Recap chat at any version of its running recap, and readers of its files.

use std::collections::BTreeMap;

use serde_json::Value;
use stvc::internals::st;

use super::recap_library::{Entry, Recap, RecapLibrary, Scene, book_name};
use super::{Answer, Sandbox, assert_same};

pub type Files = BTreeMap<String, Vec<u8>>;

/// Builds the chat at a version of its running recap. Version `n` ends with message `10 * n`; the
/// chat ends with that of `version`. Each scene adds two characters to the lorebook and its
/// registry and records the lorebook of that time.
pub fn story(chat: &str, version: i64) -> RecapLibrary {
    let book = book_name("Mira", chat);
    let scene = |n: i64| {
        let at = usize::try_from(10 * n).unwrap();
        Scene { book: book.clone(), ..Scene::new(at, &format!("Scene {n}"), people(2 * n)) }
    };
    RecapLibrary {
        messages: usize::try_from(10 * version).unwrap() + 1,
        scenes: (1..=version).map(scene).collect(),
        recap: Some(Recap {
            chat_id: Some(chat.into()),
            current: version,
            versions: (1..=version).map(|n| (n, 10 * n)).collect(),
            more: Vec::new(),
        }),
        cache: (1..=2 * version).map(|n| (n, "character".into(), format!("No {n}"))).collect(),
        entries: people(2 * version),
        ..RecapLibrary::new("Mira", chat)
    }
}

/// Builds a registry of `count` characters, and their entries.
fn people(count: i64) -> Vec<Entry> {
    let names: Vec<_> = (1..=count).map(|n| (n, format!("character-No {n}"))).collect();
    let listed: Vec<_> = names.iter().map(|(n, name)| (*n, name.as_str())).collect();
    let mut entries = vec![Entry::registry(0, "character", &listed)];
    entries
        .extend(names.iter().map(|(n, name)| Entry::new(*n, name, &format!("They are No {n}."))));
    entries
}

/// Builds the chat file of a fork whose messages differ after message `at`.
pub fn diverging_fork(fork: &RecapLibrary, at: usize) -> String {
    let other = RecapLibrary { story: "another way".into(), ..fork.clone() };
    let bytes = fork.chat_bytes();
    let mut lines = vec![bytes.lines().next().unwrap().to_owned()];
    lines.extend((0..fork.messages).map(|n| (if n > at { &other } else { fork }).message(n)));
    lines.join("\n")
}

/// Returns code and level of each finding except the reminder to reload SillyTavern.
pub fn codes_and_levels(answer: &Answer) -> Vec<(String, String)> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let findings = answer.of_type("finding");
    let pairs = findings.iter().map(|line| (text(line, "code"), text(line, "level")));
    pairs.filter(|(code, _)| code != "reload-sillytavern").collect()
}

pub fn expected_findings(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(code, level)| ((*code).to_owned(), (*level).to_owned())).collect()
}

#[track_caller]
pub fn metadata(chat: &[u8]) -> Value {
    let header = chat.split(|byte| *byte == b'\n').next().unwrap();
    serde_json::from_slice::<Value>(header).unwrap()["chat_metadata"].clone()
}

pub fn count_messages(chat: &[u8]) -> usize {
    chat.split(|byte| *byte == b'\n').count() - 1
}

/// Returns the version in use and all versions of the running recap.
#[track_caller]
pub fn recap_versions(chat: &[u8]) -> (i64, Vec<i64>) {
    let recap = metadata(chat)["auto_recap_running_scene_recaps"].clone();
    let list = recap["versions"].as_array().unwrap().iter();
    (
        recap["current_version"].as_i64().unwrap(),
        list.map(|version| version["version"].as_i64().unwrap()).collect(),
    )
}

/// Returns key, title and JSON text of each entry of a lorebook file.
pub fn entries(book: &[u8]) -> Vec<(String, String, String)> {
    let title = |entry| st::entry_comment(entry).unwrap_or_default();
    st::entries(book)
        .into_iter()
        .map(|(key, entry)| (key.to_string_lossy(), title(entry), entry.as_str().to_owned()))
        .collect()
}

/// Counts the operations in a lorebook's queue.
pub fn queue_length(book: &[u8]) -> u64 {
    stvc::internals::auto_recap::queue_activity(book).total()
}

/// Returns the recap state that a snapshot recorded.
#[track_caller]
pub fn recorded_state(sandbox: &Sandbox, snapshot: &str) -> Value {
    sandbox.json(&["show", snapshot]).exits(0).of_type("snapshot").remove(0)["state"].clone()
}

/// Returns the path of the lorebook that a chat is bound to.
#[track_caller]
pub fn bound_book(sandbox: &Sandbox, chat: &str) -> String {
    let name = metadata(&sandbox.read(chat))["world_info"].as_str().unwrap().to_owned();
    format!("worlds/{name}.json")
}

/// Asserts that every file in `before` still has its bytes.
#[track_caller]
pub fn assert_unchanged(sandbox: &Sandbox, before: &Files) {
    let after = sandbox.files();
    let still = after.into_iter().filter(|(path, _)| before.contains_key(path)).collect();
    assert_same(&still, before);
}
