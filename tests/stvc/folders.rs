//! Messages are stored in folders of a hundred, and known folders are not read again. The tree must
//! equal that of a new store.

use proptest::prelude::*;
use stvc::progress::NoProgress;
use stvc::verbs::{check, restore, snapshot};

use crate::common::Sandbox;

const CHAT: &str = "chats/Mira/long.jsonl";

fn write(sandbox: &Sandbox, messages: &[String]) {
    let header = "{\"chat_metadata\":{}}".to_owned();
    let lines: Vec<_> = std::iter::once(&header).chain(messages).map(String::as_str).collect();
    sandbox.write(CHAT, lines.join("\n"));
}

/// Takes a snapshot and compares its tree with that of a new store.
fn take(sandbox: &Sandbox) {
    let options = snapshot::Options::default();
    snapshot::snapshot(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
    let fresh = Sandbox::empty();
    fresh.write(CHAT, sandbox.read(CHAT));
    snapshot::snapshot(&fresh.workspace(), &options, &mut NoProgress).unwrap();
    let tree = |sandbox: &Sandbox| sandbox.git(&["rev-parse", "refs/heads/chats/Mira/long^{tree}"]);
    assert_eq!(tree(sandbox), tree(&fresh));
}

fn said(words: &str) -> String {
    format!("{{\"mes\":\"{words}\"}}")
}

#[test]
fn message_folders_with_shifted_messages_are_stored_correctly() {
    let sandbox = Sandbox::empty();
    let mut messages: Vec<_> = (0..350).map(|n| said(&format!("message {n}"))).collect();
    write(&sandbox, &messages);
    take(&sandbox);
    messages.drain(..100);
    write(&sandbox, &messages);
    take(&sandbox);
    let new = (0..100).map(|n| said(&format!("in front {n}")));
    messages.splice(..0, new);
    write(&sandbox, &messages);
    take(&sandbox);
    let bytes = sandbox.read(CHAT);
    std::fs::remove_file(sandbox.path(CHAT)).unwrap();
    let options = restore::Options { snapshot: "long".into(), ..restore::Options::default() };
    restore::restore(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
    assert_eq!(sandbox.read(CHAT), bytes);
    assert!(check::check(&sandbox.workspace(), &mut NoProgress).unwrap().is_valid());
}

#[test]
fn message_folders_with_equal_bytes_are_distinguished() {
    let sandbox = Sandbox::empty();
    let mut messages = vec![String::new(); 250];
    write(&sandbox, &messages);
    take(&sandbox);
    messages.push(said("at last"));
    write(&sandbox, &messages);
    take(&sandbox);
    assert!(check::check(&sandbox.workspace(), &mut NoProgress).unwrap().is_valid());
}

/// Removes, inserts and repeats ranges of whole folders and of single messages.
fn edit() -> impl Strategy<Value = (u8, usize, usize)> {
    let length = prop_oneof![Just(1usize), Just(50), Just(100), Just(200)];
    (0u8..4, 0usize..4, length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn reuse_of_known_message_folders_yields_the_same_tree(edits in prop::collection::vec(edit(), 1..6)) {
        let sandbox = Sandbox::empty();
        let mut messages: Vec<_> = (0..330).map(|n| said(&format!("m{}", n % 7))).collect();
        write(&sandbox, &messages);
        take(&sandbox);
        for (kind, place, length) in edits {
            let at = (place * 100).min(messages.len());
            let end = (at + length).min(messages.len());
            match kind {
                0 => drop(messages.drain(at..end)),
                1 => drop(messages.splice(at..at, (0..length).map(|n| said(&format!("new {n}")))).collect::<Vec<_>>()),
                2 => {
                    let again = messages[at..end].to_vec();
                    messages.extend(again);
                }
                _ => messages[at..end].iter_mut().for_each(|line| line.insert(0, ' ')),
            }
            write(&sandbox, &messages);
            take(&sandbox);
        }
    }
}
