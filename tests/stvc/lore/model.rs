//! Random edits of a lorebook, compared with a record of each.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use stvc::progress::NoProgress;
use stvc::verbs::lore::{EntryStory, Options, Report, lore};

use crate::common::{Sandbox, chat, message};

const CHAT: &str = "chats/Mira/one.jsonl";

/// An edit by the writer.
#[derive(Clone, Debug)]
enum Edit {
    Add,
    /// Changes some words of the content.
    ChangeContent(Index),
    Rename(Index),
    Delete(Index),
    /// Adds a deleted entry again, under its former UID if that is free.
    AddAgain(Index),
    /// Moves an entry to another UID.
    Move(Index),
    /// Deletes an entry and adds another one with its UID in the same save.
    Replace(Index),
    Say,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => Just(Edit::Add),
        6 => any::<Index>().prop_map(Edit::ChangeContent),
        2 => any::<Index>().prop_map(Edit::Rename),
        2 => any::<Index>().prop_map(Edit::Delete),
        1 => any::<Index>().prop_map(Edit::AddAgain),
        1 => any::<Index>().prop_map(Edit::Move),
        1 => any::<Index>().prop_map(Edit::Replace),
        3 => Just(Edit::Say),
    ]
}

/// An entry with unique words.
#[derive(Clone, Debug)]
struct ModelEntry {
    number: usize,
    uid: u64,
    is_there: bool,
    title: String,
    edits: usize,
    /// Value from each snapshot on, `None` if deleted: snapshot number, number of messages, value.
    values: Vec<(usize, usize, Option<Value>)>,
}

impl ModelEntry {
    /// Returns a key that is not part of any other.
    fn word(&self) -> String {
        format!("key{:03}", self.number)
    }

    fn value(&self) -> Option<Value> {
        let own = (0..12).map(|n| format!("w{}x{n}", self.number)).collect::<Vec<_>>().join(" ");
        let content = format!("{own}. E{}n{}.", self.number, self.edits);
        self.is_there.then(|| {
            json!({ "uid": self.uid, "key": [self.word()], "comment": self.title, "content": content })
        })
    }
}

struct Writer {
    sandbox: Sandbox,
    entries: Vec<ModelEntry>,
    messages: usize,
    snapshots: usize,
}

impl Writer {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(CHAT, chat("one", 1, Some("Harbour")));
        Self { sandbox, entries: Vec::new(), messages: 1, snapshots: 0 }
    }

    fn free_uid(&self) -> u64 {
        let taken =
            |uid: &u64| self.entries.iter().any(|entry| entry.is_there && entry.uid == *uid);
        (0..).find(|uid| !taken(uid)).unwrap()
    }

    fn some(&self, index: &Index, is_there: bool) -> Option<usize> {
        let fits: Vec<_> =
            (0..self.entries.len()).filter(|n| self.entries[*n].is_there == is_there).collect();
        (!fits.is_empty()).then(|| *index.get(&fits))
    }

    fn act(&mut self, edit: &Edit) {
        match edit {
            Edit::Add => self.add(self.free_uid()),
            Edit::Replace(index) => {
                if let Some(n) = self.some(index, true) {
                    self.entries[n].is_there = false;
                    self.add(self.entries[n].uid);
                }
            }
            Edit::ChangeContent(index) => self.change(index, |entry, _| entry.edits += 1),
            Edit::Rename(index) => self.change(index, |entry, _| entry.title += " renamed"),
            Edit::Delete(index) => self.change(index, |entry, _| entry.is_there = false),
            Edit::Move(index) => self.change(index, |entry, free| entry.uid = free),
            Edit::AddAgain(index) => {
                let free = self.free_uid();
                if let Some(n) = self.some(index, false) {
                    let uid = self.entries[n].uid;
                    let is_taken =
                        self.entries.iter().any(|entry| entry.is_there && entry.uid == uid);
                    self.entries[n].uid = if is_taken { free } else { uid };
                    self.entries[n].is_there = true;
                }
            }
            Edit::Say => {
                self.sandbox.append(CHAT, &message("one", self.messages));
                self.messages += 1;
            }
        }
        self.snapshot();
    }

    fn add(&mut self, uid: u64) {
        let number = self.entries.len();
        // Half of the words are common.
        let title = format!("Soul {number}");
        self.entries.push(ModelEntry {
            number,
            uid,
            is_there: true,
            title,
            edits: 0,
            values: Vec::new(),
        });
    }

    fn change(&mut self, index: &Index, act: impl FnOnce(&mut ModelEntry, u64)) {
        let free = self.free_uid();
        if let Some(n) = self.some(index, true) {
            act(&mut self.entries[n], free);
        }
    }

    fn snapshot(&mut self) {
        let entries: BTreeMap<_, _> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.uid.to_string(), entry.value()?)))
            .collect();
        let book = serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap();
        self.sandbox.write("worlds/Harbour.json", book);
        self.sandbox.wait(60);
        self.sandbox.take(&[]);
        for entry in &mut self.entries {
            let value = entry.value();
            let is_new = match entry.values.last() {
                Some((.., last)) => *last != value,
                None => value.is_some(),
            };
            if is_new {
                entry.values.push((self.snapshots, self.messages, value));
            }
        }
        self.snapshots += 1;
    }

    fn story(&self, named: &[&str]) -> EntryStory {
        let mut names = named.iter().rev().map(|&name| name.to_owned());
        let (entry, book) = (names.next(), names.next());
        let options = Options { book, entry, ..Options::default() };
        match lore(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap() {
            Report::Entry(story) => *story,
            _ => panic!("{options:?} is no entry"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Every change of every entry is reported with its message, and no other.
    #[test]
    fn lore_reports_every_change_of_every_entry(edits in prop::collection::vec(edit(), 5..40)) {
        let mut writer = Writer::new();
        writer.act(&Edit::Add);
        edits.iter().for_each(|edit| writer.act(edit));
        for entry in &writer.entries {
            // By its key, whether it exists or not.
            let story = writer.story(&["Harbour", &entry.word()]);
            prop_assert_eq!(story.is_there, entry.is_there);
            // By its UID, although other entries had it before or after.
            let names = (0..).map(|n| if n == 0 { story.uid.clone() } else { format!("{}~{n}", story.uid) });
            let mut names = names.take(story.same_uid.len() + 1);
            let own = names.find(|name| story.same_uid.iter().all(|other| other.name != *name));
            for (name, title) in story.same_uid.iter().map(|it| (it.name.clone(), &it.title)).chain(own.map(|own| (own, &story.title))) {
                prop_assert_eq!(&writer.story(&["Harbour", &name]).title, title, "{}", name);
            }
            prop_assert!(story.broken.is_empty());
            let reported: Vec<_> = story.changes.list.iter().rev().map(|change| {
                let value = |side: &Option<(_, std::sync::Arc<str>)>| {
                    side.as_ref().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap())
                };
                (change.story.as_ref().map(|story| story.messages), value(&change.before), value(&change.after))
            }).collect();
            let mut before = None;
            let expected: Vec<_> = entry.values.iter().map(|(_, messages, value)| {
                (Some(*messages as u64), std::mem::replace(&mut before, value.clone()), value.clone())
            }).collect();
            prop_assert_eq!(reported, expected, "entry {}", entry.number);
        }
    }
}
