//! A moment means one pair of chat and lorebook in every command: random edits, renames, forks,
//! tags, undos and clock steps over chats that share lorebooks, compared with a model that
//! remembers the files at each snapshot. Requirements row 89.
//!
//! `STVC_MODEL_CASES` sets the number of sequences: few by default, 500 in a long run.

use std::collections::BTreeMap;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use stvc::api::{self, Request, Rights};
use stvc::internals::archive::diff::Part;
use stvc::internals::archive::{Blake3, Role};
use stvc::internals::engine::files::ChatOpenState;
use stvc::progress::NoProgress;
use stvc::verbs::lore::{self, Report as Lore};
use stvc::verbs::restore::fork;
use stvc::verbs::show::ShownMoment;
use stvc::verbs::snapshot::{self, SnapshotResult};
use stvc::verbs::{diff, log, restore, show, tag, undo};

use crate::common::{Sandbox, files};

#[derive(Clone, Debug)]
enum Step {
    Say(Index, u8),
    EditLast(Index),
    EditEntry(Index, u8),
    /// Whether an entry is edited in the same save, and whether the chats are rebound.
    RenameBook(Index, bool, bool),
    RenameChat(Index),
    Fork(Index, Index),
    Tag(Index),
    /// All, or one chat by its name.
    Snapshot(Option<Index>),
    UndoSnapshot,
    Clock(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), 1..4_u8).prop_map(|(chat, count)| Step::Say(chat, count)),
        1 => index().prop_map(Step::EditLast),
        6 => (index(), 0..4_u8).prop_map(|(book, entry)| Step::EditEntry(book, entry)),
        2 => (index(), any::<bool>(), any::<bool>())
            .prop_map(|(book, edited, follow)| Step::RenameBook(book, edited, follow)),
        1 => index().prop_map(Step::RenameChat),
        1 => (index(), index()).prop_map(|(chat, at)| Step::Fork(chat, at)),
        2 => index().prop_map(Step::Tag),
        10 => prop_oneof![3 => Just(None), 1 => index().prop_map(Some)].prop_map(Step::Snapshot),
        1 => Just(Step::UndoSnapshot),
        3 => prop_oneof![Just(0), Just(1), Just(60), Just(86_400), Just(-120)].prop_map(Step::Clock),
    ]
}

/// A chat and its lorebook at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    messages: Vec<String>,
    book: Option<Vec<u8>>,
}

/// A moment in the model.
#[derive(Clone, Debug)]
struct Moment {
    pair: Pair,
    seconds: i64,
    /// Id of the chat's snapshot, if one was created.
    id: Option<String>,
    /// Lorebook that the header binds, by position.
    bound: usize,
}

#[derive(Clone, Debug)]
struct Chat {
    name: String,
    messages: Vec<String>,
    /// Name of the lorebook that the header binds.
    bound: String,
}

#[derive(Clone, Debug)]
struct Book {
    name: String,
    entries: Vec<String>,
    copied_from: Option<usize>,
}

impl Book {
    fn bytes(&self) -> Vec<u8> {
        let entry = |(uid, text): (usize, &String)| {
            let entry = json!({ "uid": uid, "comment": format!("Entry {uid}"), "content": text });
            (uid.to_string(), entry)
        };
        let entries: serde_json::Map<_, _> = self.entries.iter().enumerate().map(entry).collect();
        serde_json::to_vec_pretty(&json!({ "entries": entries })).unwrap()
    }

    fn path(&self) -> String {
        format!("worlds/{}.json", self.name)
    }
}

/// The model of the store; an undo returns to an earlier one.
#[derive(Clone, Debug, Default)]
struct Stored {
    /// By position of the chat.
    chats: Vec<Option<Known>>,
    /// The bytes of each lorebook.
    books: Vec<Option<Vec<u8>>>,
    tags: BTreeMap<String, Pair>,
}

#[derive(Clone, Debug)]
struct Known {
    /// Name of the chat in its latest snapshot.
    name: String,
    /// Oldest first.
    moments: Vec<Moment>,
    /// Number of moments that belong to the parent.
    inherited: usize,
    /// Name of the lorebook in the header of the latest snapshot.
    bound: String,
}

impl Known {
    /// Records a snapshot of the chat. A snapshot of a pair that a lorebook change had already
    /// produced is not another moment.
    fn record(&mut self, moment: Moment, name: &str, bound: &str) {
        let is_same_file = self.name == name && self.bound == bound;
        match self.moments.last_mut().filter(|last| last.id.is_none() && is_same_file) {
            Some(last) if last.pair == moment.pair => last.id = moment.id,
            _ => self.moments.push(moment),
        }
        (self.name, self.bound) = (name.to_owned(), bound.to_owned());
    }
}

struct World {
    sandbox: Sandbox,
    chats: Vec<Chat>,
    books: Vec<Book>,
    stored: Stored,
    /// State before the last operation if that was a plain snapshot.
    before: Option<Stored>,
    /// Lorebook of each name.
    named: BTreeMap<String, usize>,
    count: usize,
}

fn message(text: &str) -> String {
    json!({ "name": "Mira", "is_user": false, "mes": text }).to_string()
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        let book = |n: usize| Book {
            name: format!("Book {n}"),
            entries: (0..4).map(|uid| format!("book {n} entry {uid}")).collect(),
            copied_from: None,
        };
        // The first two share a lorebook.
        let chat = |(n, bound): (usize, usize)| Chat {
            name: format!("chat {n}"),
            messages: (0..2).map(|m| message(&format!("chat {n} message {m}"))).collect(),
            bound: format!("Book {bound}"),
        };
        let chats: Vec<_> = [(0, 0), (1, 0), (2, 1)].into_iter().map(chat).collect();
        let mut world = Self {
            sandbox,
            chats,
            books: vec![book(0), book(1)],
            stored: Stored::default(),
            before: None,
            named: (0..2).map(|n| (format!("Book {n}"), n)).collect(),
            count: 0,
        };
        (0..world.books.len()).for_each(|book| world.save_book(book));
        (0..world.chats.len()).for_each(|chat| world.save_chat(chat));
        world.snapshot(None);
        world
    }

    fn unique(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what} {}", self.count)
    }

    fn save_book(&self, book: usize) {
        self.sandbox.write(&self.books[book].path(), self.books[book].bytes());
    }

    fn path(chat: &str) -> String {
        format!("chats/Mira/{chat}.jsonl")
    }

    /// Writes a chat. An existing header keeps the fields that stvc wrote.
    fn save_chat(&self, chat: usize) {
        let Chat { name, messages, bound, .. } = &self.chats[chat];
        let path = Self::path(name);
        let header = fs::read_to_string(self.sandbox.path(&path)).ok();
        let header = header.as_deref().and_then(|text| text.lines().next());
        let mut header: Value = header.map_or_else(
            || json!({ "user_name": "You", "character_name": "Mira", "chat_metadata": {} }),
            |header| serde_json::from_str(header).unwrap(),
        );
        header["chat_metadata"]["world_info"] = json!(bound);
        let lines: Vec<_> = std::iter::once(header.to_string()).chain(messages.clone()).collect();
        self.sandbox.write(&path, lines.join("\n"));
    }

    fn now(&self) -> i64 {
        self.sandbox.workspace().now.timestamp()
    }

    /// Returns the lorebook on disk with this name.
    fn called(&self, name: &str) -> Option<usize> {
        self.books.iter().position(|book| book.name == name)
    }

    /// Takes a snapshot and records the files in the model.
    fn snapshot(&mut self, only: Option<usize>) {
        let timelines = only.map(|chat| format!("chats/Mira/{}", self.chats[chat].name));
        let timelines = timelines.into_iter().collect();
        let asked = snapshot::SnapshotRequest { timelines, ..Default::default() };
        let subject = asked.try_into().unwrap();
        let options = snapshot::Options { subject, ..Default::default() };
        let before = self.stored.clone();
        let taken =
            snapshot::snapshot(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap();
        let mut new = BTreeMap::new();
        for outcome in &taken.timelines {
            match &outcome.result {
                SnapshotResult::New(snapshot, _) => {
                    new.insert(outcome.timeline.to_string(), snapshot.id.to_string());
                }
                SnapshotResult::Unchanged(..) => {}
                _ => panic!("{} was not taken", outcome.timeline),
            }
        }
        self.note(only, &new);
        self.before = (!new.is_empty()).then_some(before);
    }

    /// Records a stored state: of all, or of one chat and its lorebook.
    fn note(&mut self, only: Option<usize>, new: &BTreeMap<String, String>) {
        let seconds = self.now();
        self.stored.books.resize(self.books.len(), None);
        self.stored.chats.resize(self.chats.len(), None);
        let of_chat = only.map(|chat| self.called(&self.chats[chat].bound));
        let mut changed = vec![false; self.books.len()];
        for (n, book) in self.books.iter().enumerate() {
            let is_stored = of_chat.is_none_or(|of_chat| of_chat == Some(n));
            if is_stored {
                let bytes = Some(book.bytes());
                changed[n] = self.stored.books[n] != bytes;
                self.stored.books[n] = bytes;
            }
        }
        for chat in 0..self.chats.len() {
            let Chat { name, messages, bound, .. } = &self.chats[chat];
            let id = new.get(&format!("chats/Mira/{name}"));
            let mut known = self.stored.chats[chat].clone().unwrap_or(Known {
                name: name.clone(),
                moments: Vec::new(),
                inherited: 0,
                bound: bound.clone(),
            });
            if let Some(id) = id {
                let here = self.called(bound);
                let book = here.and_then(|book| self.stored.books[book].clone());
                let pair = Pair { messages: messages.clone(), book };
                let (id, bound_to) = (Some(id.clone()), self.named[bound]);
                known.record(Moment { pair, seconds, id, bound: bound_to }, name, bound);
            } else if let Some(last) = known.moments.last() {
                let (bound, book) = (last.bound, self.stored.books[last.bound].clone());
                if changed[bound] && last.pair.book != book {
                    let pair = Pair { messages: last.pair.messages.clone(), book };
                    known.moments.push(Moment { pair, seconds, id: None, bound });
                }
            }
            if !known.moments.is_empty() {
                self.stored.chats[chat] = Some(known);
            }
        }
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::Say(chat, count) => {
                let chat = chat.index(self.chats.len());
                for _ in 0..count {
                    let text = self.unique("said");
                    self.chats[chat].messages.push(message(&text));
                }
                self.save_chat(chat);
            }
            Step::EditLast(chat) => {
                let chat = chat.index(self.chats.len());
                let text = self.unique("edited");
                *self.chats[chat].messages.last_mut().unwrap() = message(&text);
                self.save_chat(chat);
            }
            Step::EditEntry(book, entry) => {
                let book = book.index(self.books.len());
                self.books[book].entries[usize::from(entry)] = self.unique("fact");
                self.save_book(book);
            }
            Step::RenameBook(book, edited, follow) => {
                // A rename is recognised by stored content, so everything is stored first.
                self.snapshot(None);
                let book = book.index(self.books.len());
                let (old, new) = (self.books[book].name.clone(), self.unique("Renamed"));
                fs::remove_file(self.sandbox.path(&self.books[book].path())).unwrap();
                self.books[book].name = new.clone();
                self.named.insert(new.clone(), book);
                if edited {
                    self.books[book].entries[0] = self.unique("fact");
                }
                self.save_book(book);
                for chat in 0..self.chats.len() {
                    if follow && self.chats[chat].bound == old {
                        self.chats[chat].bound = new.clone();
                        self.save_chat(chat);
                    }
                }
                self.snapshot(None);
                // After an undo and another edit it could be a rename with most entries edited,
                // which counts as another book.
                self.before = None;
            }
            Step::RenameChat(chat) => {
                self.snapshot(None);
                let chat = chat.index(self.chats.len());
                let new = self.unique("chat renamed");
                let old = std::mem::replace(&mut self.chats[chat].name, new);
                let new = self.sandbox.path(&Self::path(&self.chats[chat].name));
                fs::rename(self.sandbox.path(&Self::path(&old)), new).unwrap();
                self.snapshot(None);
            }
            Step::Fork(chat, at) => self.fork(chat, at),
            Step::Tag(chat) => {
                self.snapshot(None);
                let chat = chat.index(self.chats.len());
                let name = self.unique("mark");
                let options = tag::Options::Add {
                    name: name.clone(),
                    snapshot: format!("chats/Mira/{}", self.chats[chat].name),
                    lead: false,
                };
                let tagged = tag::tag(&self.sandbox.workspace(), &options).unwrap();
                let seconds = self.now();
                let known = self.stored.chats[chat].as_mut().unwrap();
                let last = known.moments.last().unwrap().clone();
                if last.id.is_none() {
                    // A snapshot of the pair was created.
                    let id = Some(tagged[0].snapshot.id.to_string());
                    let (name, bound) = (known.name.clone(), known.bound.clone());
                    known.record(Moment { id, seconds, ..last.clone() }, &name, &bound);
                }
                self.stored.tags.insert(name, last.pair);
                self.before = None;
            }
            Step::Snapshot(chat) => {
                let chat = chat.map(|chat| chat.index(self.chats.len()));
                self.snapshot(chat);
            }
            Step::UndoSnapshot => {
                let Some(before) = self.before.take() else { return };
                let options = undo::Options {
                    operation: None,
                    closed: ChatOpenState::Closed,
                    dry_run: false,
                };
                undo::undo(&self.sandbox.workspace(), &options).unwrap();
                self.stored = before;
            }
            Step::Clock(seconds) => self.sandbox.wait(seconds),
        }
    }

    fn fork(&mut self, chat: Index, at: Index) {
        if self.chats.len() > 5 {
            return;
        }
        self.snapshot(None);
        let chat = chat.index(self.chats.len());
        let known = self.stored.chats[chat].clone().unwrap();
        if self.called(&self.chats[chat].bound).is_none() {
            return;
        }
        let from = self.chats[chat].clone();
        let at = at.index(from.messages.len());
        let name = self.unique("fork");
        let options = fork::Options {
            timeline: format!("chats/Mira/{}", from.name),
            at: Some(at),
            name: Some(name.clone()),
            dry_run: false,
            ..fork::Options::default()
        };
        let made = fork::fork(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap();
        // If the lorebook changed alone, a snapshot of the pair is created first; it is the same
        // moment.
        let mut origin = known.moments;
        origin.last_mut().unwrap().id.get_or_insert_default();
        self.stored.chats[chat].as_mut().unwrap().moments = origin.clone();
        let lorebook = made.lorebook.unwrap();
        // The lorebook is that of the message, if known.
        let then = self.at_message(&origin, at).and_then(|then| then.pair.book.clone());
        let entries = match &then {
            Some(bytes) => {
                let book: Value = serde_json::from_slice(bytes).unwrap();
                let text = |uid: usize| book["entries"][uid.to_string()]["content"].clone();
                (0..4).map(|uid| text(uid).as_str().unwrap().to_owned()).collect()
            }
            None => self.books[self.called(&from.bound).unwrap()].entries.clone(),
        };
        self.named.insert(lorebook.clone(), self.books.len());
        let copied_from = Some(self.named[&from.bound]);
        self.books.push(Book { name: lorebook.clone(), entries, copied_from });
        let messages = from.messages[..=at].to_vec();
        let bytes = self.sandbox.read(&self.books.last().unwrap().path());
        assert_eq!(text_of(bytes.clone()), text_of(self.books.last().unwrap().bytes()));
        let pair = Pair { messages: messages.clone(), book: Some(bytes.clone()) };
        let id = made.made.written.fork.unwrap().id.to_string();
        let inherited = origin.len();
        let bound = self.books.len() - 1;
        origin.push(Moment { pair, seconds: self.now(), id: Some(id), bound });
        self.stored.books.push(Some(bytes));
        let bound = lorebook.clone();
        let known = Known { name: name.clone(), moments: origin, inherited, bound };
        self.stored.chats.push(Some(known));
        self.chats.push(Chat { name, messages, bound: lorebook });
        self.before = None;
    }

    /// Compares every name with the model.
    fn check(&self) {
        for known in self.stored.chats.iter().flatten() {
            self.check_chat(&format!("chats/Mira/{}", known.name), known);
        }
        for (tag, pair) in &self.stored.tags {
            self.expect(tag, pair);
        }
    }

    fn check_chat(&self, name: &str, known: &Known) {
        let moments = &known.moments;
        let last = moments.len() - 1;
        self.expect(name, &moments[last].pair);
        for (back, moment) in moments.iter().rev().enumerate() {
            if last - back >= known.inherited {
                self.expect(&format!("{name}~{back}"), &moment.pair);
            }
            if let Some(id) = moment.id.as_ref().filter(|id| !id.is_empty()) {
                self.expect(id, &moment.pair);
            }
        }
        let own = &moments[known.inherited..];
        for moment in own {
            for seconds in [moment.seconds, moment.seconds + 1] {
                let date = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
                let text = format!("{name}@{{{}}}", date.format("%Y-%m-%dT%H:%M:%SZ"));
                let then = own.iter().rev().find(|moment| moment.seconds <= seconds).unwrap();
                self.expect(&text, &then.pair);
            }
        }
        let now = &moments[last].pair.messages;
        for at in 0..now.len() {
            let cut = &now[..=at];
            if let Some(then) = self.at_message(moments, at) {
                let pair = Pair { messages: cut.to_vec(), book: then.pair.book.clone() };
                self.expect(&format!("{name}:{at}"), &pair);
            }
        }
        let workspace = self.sandbox.workspace();
        let options = log::Options { timeline: Some(name.to_owned()), ..Default::default() };
        let log = log::log(&workspace, &options).unwrap();
        for entry in log.entries.iter().filter(|entry| entry.step.is_some()) {
            let step = entry.step.unwrap();
            if last - step >= known.inherited {
                self.expect(&entry.moment, &moments[last - step].pair);
            }
        }
    }

    /// Returns the moment with the latest lorebook before the chat passed a message, if known.
    fn at_message<'m>(&self, moments: &'m [Moment], at: usize) -> Option<&'m Moment> {
        let last = moments.last().unwrap();
        let now = &last.pair.messages;
        let line: Vec<_> =
            std::iter::successors(Some(last.bound), |book| self.books[*book].copied_from).collect();
        let has_book = |moment: &&Moment| moment.pair.book.is_some();
        let mut exact = moments.iter().rev().filter(has_book);
        let mut before = moments.iter().rev().filter(has_book);
        let exact = exact.find(|moment| moment.pair.messages == now[..=at]);
        exact.or_else(|| {
            before.find(|moment| {
                let messages = &moment.pair.messages;
                line.contains(&moment.bound)
                    && messages.len() <= at
                    && now[messages.len() - 1] == messages[messages.len() - 1]
            })
        })
    }

    /// Asserts that every command and the API resolve `text` to this pair.
    #[track_caller]
    fn expect(&self, text: &str, pair: &Pair) {
        let workspace = &self.sandbox.workspace();
        let hash = pair.book.as_deref().map(Blake3::of);
        // `restore --to`
        let folder = tempfile::tempdir_in(self.sandbox.folder()).unwrap();
        let to = folder.path().join("to");
        let options = restore::Options {
            snapshot: text.to_owned(),
            target: restore::Target::Folder { dir: to.clone(), only: None },
            ..Default::default()
        };
        let report = restore::restore(workspace, &options, &mut NoProgress);
        let report = report.unwrap_or_else(|error| panic!("{text}: {error}"));
        let restored = files(&to);
        let is = |folder: &str| {
            let mut found = restored.iter().filter(|(path, _)| path.starts_with(folder));
            let one = found.next().map(|(_, bytes)| bytes.clone());
            assert!(found.next().is_none());
            one
        };
        let chat = String::from_utf8(is("chats/").unwrap()).unwrap();
        let messages: Vec<_> = chat.lines().skip(1).map(str::to_owned).collect();
        assert_eq!(messages, pair.messages, "restore --to {text}");
        assert_eq!(
            is("worlds/").map(text_of),
            pair.book.clone().map(text_of),
            "restore --to {text}"
        );
        // The printed name means the same moment.
        let pinned = show::show(workspace, &report.source.moment).unwrap().shown;
        assert_eq!(book_hash(&pinned), hash, "show {}", report.source.moment);
        let shown = show::show(workspace, text).unwrap().shown;
        assert_eq!(book_hash(&shown), hash, "show {text}");
        assert_eq!(shown.moment, report.source.moment, "{text}");
        // `show` of the API, which reads the files or only lists them
        for brief in [false, true] {
            let arguments = json!({ "snapshot": text, "brief": brief });
            let request = Request::of("show", Some(arguments)).unwrap();
            let jobs = api::BackgroundJobs::default();
            let answer = api::serve(workspace, &request, Rights::Read, &jobs);
            let line: Value = serde_json::from_str(answer.lines[0].get()).unwrap();
            let files = line["files"].as_array().unwrap();
            let book = files.iter().find(|file| file["role"] == "lorebook");
            let book = book.map(|book| book["blake3"].as_str().unwrap().to_owned());
            let expected = hash.map(|hash| hash.to_string());
            assert_eq!(book, expected, "API show {text}, brief: {brief}");
        }
        // `diff` between the moment and its printed name is empty.
        let options = diff::Options {
            before: text.to_owned(),
            after: Some(report.source.moment.clone()),
            ..Default::default()
        };
        let same = diff::diff(workspace, &options).unwrap();
        let changed: Vec<_> = same.changes(Some(Part::Lorebook));
        assert!(changed.is_empty(), "diff {text} {}", report.source.moment);
        // `lore --at`
        if let Some(book) = &pair.book {
            let options = lore::Options { snapshot: Some(text.to_owned()), ..Default::default() };
            let report = lore::lore(workspace, &options, &mut NoProgress).unwrap();
            let Lore::Then(then) = report else { panic!("{text}") };
            let book: Value = serde_json::from_slice(book).unwrap();
            let found_entries: BTreeMap<_, Value> = then
                .entries
                .iter()
                .map(|entry| {
                    (entry.key.to_string_lossy(), serde_json::from_str(&entry.text).unwrap())
                })
                .collect();
            assert_eq!(json!(found_entries), book["entries"], "lore --at {text}");
        }
        // A fork from the moment
        let options = restore::Options {
            snapshot: text.to_owned(),
            target: restore::Target::NewTimeline { name: "another ending".into(), gate: None },
            dry_run: true,
            ..Default::default()
        };
        let plan = restore::restore(workspace, &options, &mut NoProgress).unwrap();
        let book = plan.written.files.iter().find(|file| file.path.as_str().starts_with("worlds/"));
        if pair.book.is_some() {
            assert_eq!(book.map(|book| book.blake3), hash, "restore --as from {text}");
        }
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn book_hash(shown: &ShownMoment) -> Option<Blake3> {
    shown.manifest.file(Role::Lorebook).map(|file| file.blake3)
}

fn cases() -> u32 {
    std::env::var("STVC_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn req_89_name_selects_the_same_chat_and_lorebook_in_every_command(steps in vec(step(), 1..24)) {
        let mut world = World::new();
        for step in steps {
            world.go(step);
        }
        world.check();
    }
}
