//! Random edits of a lorebook by somebody who remembers each of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use stvc::progress::Silent;
use stvc::verbs::lore::{EntryStory, Options, Report, lore};

use crate::common::{Sandbox, chat, message};

const CHAT: &str = "chats/Mira/one.jsonl";

/// What the writer does.
#[derive(Clone, Debug)]
enum Deed {
    Add,
    /// Some words of the content.
    Edit(Index),
    Rename(Index),
    Delete(Index),
    /// One that was deleted, under the UID that it had if that is free.
    AddAgain(Index),
    /// The same entry under another UID.
    Move(Index),
    /// Deletes one and adds another, which gets its UID, in one save.
    Replace(Index),
    Say,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => Just(Deed::Add),
        6 => any::<Index>().prop_map(Deed::Edit),
        2 => any::<Index>().prop_map(Deed::Rename),
        2 => any::<Index>().prop_map(Deed::Delete),
        1 => any::<Index>().prop_map(Deed::AddAgain),
        1 => any::<Index>().prop_map(Deed::Move),
        1 => any::<Index>().prop_map(Deed::Replace),
        3 => Just(Deed::Say),
    ]
}

/// An entry with words that only it has.
#[derive(Clone, Debug)]
struct Soul {
    number: usize,
    uid: u64,
    is_there: bool,
    title: String,
    /// How often it was edited.
    edits: usize,
    /// What it said from each snapshot on; nothing if it was gone: the snapshot's number, how many messages there were, the value.
    told: Vec<(usize, usize, Option<Value>)>,
}

impl Soul {
    /// A key word that no other has, nor as a part.
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
    souls: Vec<Soul>,
    messages: usize,
    snapshots: usize,
}

impl Writer {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write(CHAT, chat("one", 1, Some("Harbour")));
        Self { sandbox, souls: Vec::new(), messages: 1, snapshots: 0 }
    }

    fn free_uid(&self) -> u64 {
        let taken = |uid: &u64| self.souls.iter().any(|soul| soul.is_there && soul.uid == *uid);
        (0..).find(|uid| !taken(uid)).unwrap()
    }

    fn some(&self, index: &Index, is_there: bool) -> Option<usize> {
        let fits: Vec<_> =
            (0..self.souls.len()).filter(|n| self.souls[*n].is_there == is_there).collect();
        (!fits.is_empty()).then(|| *index.get(&fits))
    }

    fn act(&mut self, deed: &Deed) {
        match deed {
            Deed::Add => self.add(self.free_uid()),
            Deed::Replace(index) => {
                if let Some(n) = self.some(index, true) {
                    self.souls[n].is_there = false;
                    self.add(self.souls[n].uid);
                }
            }
            Deed::Edit(index) => self.change(index, |soul, _| soul.edits += 1),
            Deed::Rename(index) => self.change(index, |soul, _| soul.title += " renamed"),
            Deed::Delete(index) => self.change(index, |soul, _| soul.is_there = false),
            Deed::Move(index) => self.change(index, |soul, free| soul.uid = free),
            Deed::AddAgain(index) => {
                let free = self.free_uid();
                if let Some(n) = self.some(index, false) {
                    let uid = self.souls[n].uid;
                    let is_taken = self.souls.iter().any(|soul| soul.is_there && soul.uid == uid);
                    self.souls[n].uid = if is_taken { free } else { uid };
                    self.souls[n].is_there = true;
                }
            }
            Deed::Say => {
                self.sandbox.append(CHAT, &message("one", self.messages));
                self.messages += 1;
            }
        }
        self.snapshot();
    }

    fn add(&mut self, uid: u64) {
        let number = self.souls.len();
        // Half of it is what others have.
        let title = format!("Soul {number}");
        self.souls.push(Soul { number, uid, is_there: true, title, edits: 0, told: Vec::new() });
    }

    fn change(&mut self, index: &Index, act: impl FnOnce(&mut Soul, u64)) {
        let free = self.free_uid();
        if let Some(n) = self.some(index, true) {
            act(&mut self.souls[n], free);
        }
    }

    fn snapshot(&mut self) {
        let entries: BTreeMap<_, _> = self
            .souls
            .iter()
            .filter_map(|soul| Some((soul.uid.to_string(), soul.value()?)))
            .collect();
        let book = serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap();
        self.sandbox.write("worlds/Harbour.json", book);
        self.sandbox.wait(60);
        self.sandbox.take(&[]);
        for soul in &mut self.souls {
            let value = soul.value();
            let is_new = match soul.told.last() {
                Some((.., last)) => *last != value,
                None => value.is_some(),
            };
            if is_new {
                soul.told.push((self.snapshots, self.messages, value));
            }
        }
        self.snapshots += 1;
    }

    fn story(&self, named: &[&str]) -> EntryStory {
        let mut names = named.iter().rev().map(|&name| name.to_owned());
        let (entry, book) = (names.next(), names.next());
        let options = Options { book, entry, ..Options::default() };
        match lore(&self.sandbox.workspace(), &options, &mut Silent).unwrap() {
            Report::Entry(story) => *story,
            _ => panic!("{options:?} is no entry"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Every change of every entry, with the message it came at, and none that was not.
    #[test]
    fn lore_tells_what_the_writer_did(deeds in prop::collection::vec(deed(), 5..40)) {
        let mut writer = Writer::new();
        writer.act(&Deed::Add);
        deeds.iter().for_each(|deed| writer.act(deed));
        for soul in &writer.souls {
            // By its key word, whether it is there or not.
            let story = writer.story(&["Harbour", &soul.word()]);
            prop_assert_eq!(story.is_there, soul.is_there);
            // By its UID, too, though others had it before or after.
            let names = (0..).map(|n| if n == 0 { story.uid.clone() } else { format!("{}~{n}", story.uid) });
            let mut names = names.take(story.same_uid.len() + 1);
            let own = names.find(|name| story.same_uid.iter().all(|other| other.name != *name));
            for (name, title) in story.same_uid.iter().map(|it| (it.name.clone(), &it.title)).chain(own.map(|own| (own, &story.title))) {
                prop_assert_eq!(&writer.story(&["Harbour", &name]).title, title, "{}", name);
            }
            prop_assert!(story.broken.is_empty());
            let told: Vec<_> = story.changes.iter().rev().map(|change| {
                let value = |side: &Option<(_, std::sync::Arc<str>)>| {
                    side.as_ref().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap())
                };
                (change.story.as_ref().map(|story| story.messages), value(&change.before), value(&change.after))
            }).collect();
            let mut before = None;
            let expected: Vec<_> = soul.told.iter().map(|(_, messages, value)| {
                (Some(*messages as u64), std::mem::replace(&mut before, value.clone()), value.clone())
            }).collect();
            prop_assert_eq!(told, expected, "entry {}", soul.number);
        }
    }
}
