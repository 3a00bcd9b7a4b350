//! Random edits, snapshots and restores, compared with plain copies of the files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::{Duration, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use stvc::progress::NoProgress;
use stvc::verbs::snapshot::{self, SnapshotResult};
use stvc::verbs::{check, restore, tag};

use crate::common::{Sandbox, assert_same, files};

type Files = BTreeMap<String, Vec<u8>>;

const BOOK: &str = "worlds/Lore.json";

const GROUP: &str = "groups/9.json";

const TIMELINES: [&str; 4] =
    ["chats/Ann/one", "chats/Ann/two", "chats/雪/三 🦊", "group chats/talk"];

/// Timelines other than chats, ordered by name.
const OTHERS: [&str; 2] = ["groups/9", "worlds/Lore"];

#[derive(Clone, Debug)]
enum Edit {
    Append(String),
    Change(Index, String),
    Remove(Index),
    Hide(Index),
    Swipe(Index),
    Delete,
    Garbage(Vec<u8>),
    Bind(bool),
    /// Edits the lorebook instead of the chat.
    Entry(Index, String),
    /// Replaces the whole lorebook file.
    Book(Option<Vec<u8>>),
    Group(u32),
}

#[derive(Clone, Debug)]
enum Step {
    Edit(Index, Edit),
    Snapshot,
    SnapshotOne(Index),
    At(Index, Index),
    Tag(Index, u8),
    Restore(Index),
    RestoreTag(u8),
    RestoreTo(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let words = || "[a-z雪🦊\\\\\"\n]{0,12}".prop_map(|text| serde_json::to_string(&text).unwrap());
    let garbage = prop_oneof![
        vec(any::<u8>(), 0..80).prop_map(|bytes| [b"\xff".as_slice(), &bytes].concat()),
        select(vec!["", "\n\n\n", "{torn", "[]\r\n", "\u{feff}{}\n{}"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    let edit = prop_oneof![
        6 => words().prop_map(Edit::Append),
        3 => (any::<Index>(), words()).prop_map(|(at, text)| Edit::Change(at, text)),
        2 => any::<Index>().prop_map(Edit::Remove),
        2 => any::<Index>().prop_map(Edit::Hide),
        2 => any::<Index>().prop_map(Edit::Swipe),
        1 => Just(Edit::Delete),
        1 => garbage.clone().prop_map(Edit::Garbage),
        1 => any::<bool>().prop_map(Edit::Bind),
        4 => (any::<Index>(), words()).prop_map(|(at, text)| Edit::Entry(at, text)),
        1 => prop::option::of(garbage).prop_map(Edit::Book),
        1 => any::<u32>().prop_map(Edit::Group),
    ];
    prop_oneof![
        12 => (any::<Index>(), edit).prop_map(|(timeline, edit)| Step::Edit(timeline, edit)),
        4 => Just(Step::Snapshot),
        2 => any::<Index>().prop_map(Step::SnapshotOne),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(timeline, at)| Step::At(timeline, at)),
        2 => (any::<Index>(), 0..4u8).prop_map(|(snapshot, name)| Step::Tag(snapshot, name)),
        4 => any::<Index>().prop_map(Step::Restore),
        1 => (0..4u8).prop_map(Step::RestoreTag),
        2 => any::<Index>().prop_map(Step::RestoreTo),
    ]
}

/// Expected content of a snapshot.
#[derive(Clone, Debug)]
struct Taking {
    id: String,
    timeline: &'static str,
    files: Files,
    /// The snapshot records a deletion.
    deleted: bool,
}

/// The library and store, and their expected contents.
struct Model {
    sandbox: Sandbox,
    files: Files,
    snapshots: Vec<Taking>,
    heads: BTreeMap<&'static str, usize>,
    tags: BTreeMap<String, usize>,
    steps: u64,
}

impl Model {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        let mut model = Self {
            files: sandbox.files(),
            sandbox,
            snapshots: Vec::new(),
            heads: BTreeMap::new(),
            tags: BTreeMap::new(),
            steps: 0,
        };
        for timeline in TIMELINES {
            // Chats share their beginning, like forks. If they were equal, a deletion and a
            // creation would count as a rename, which this model does not have.
            let own = message(&format!("\"… {timeline}\""));
            let chat = [header(timeline != TIMELINES[2]), message("\"Hello\""), own];
            model.write(&file(timeline), Some(chat.join("\n").into_bytes()));
        }
        model.write(BOOK, Some(book(&["\"a\"".into(), "\"b\"".into()])));
        model.write(GROUP, Some(br#"{"id":"9","chats":["talk"],"n":0}"#.to_vec()));
        model
    }

    fn write(&mut self, path: &str, bytes: Option<Vec<u8>>) {
        match bytes {
            None => {
                self.files.remove(path);
                let _ = fs::remove_file(self.sandbox.path(path));
            }
            Some(bytes) => {
                self.sandbox.write(path, &bytes);
                // In the past, but later than the last one, so that caches of unchanged files are
                // tested too.
                self.steps += 1;
                let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000 + self.steps);
                let file = File::options().append(true).open(self.sandbox.path(path)).unwrap();
                file.set_modified(time).unwrap();
                self.files.insert(path.into(), bytes);
            }
        }
    }

    fn take(&mut self, step: &Step) {
        self.sandbox.wait(7);
        let timeline = |index: &Index| *index.get(&TIMELINES);
        match step {
            Step::Edit(index, edit) => self.edit(timeline(index), edit),
            Step::Snapshot => self.snapshot(None),
            Step::SnapshotOne(index) => {
                let name = timeline(index);
                if self.files.contains_key(&file(name)) {
                    self.snapshot(Some(name));
                }
            }
            Step::At(index, at) => self.checkpoint(timeline(index), at),
            Step::Tag(_, _) | Step::Restore(_) | Step::RestoreTo(_)
                if self.snapshots.is_empty() => {}
            Step::Tag(index, name) => {
                self.tag(index.index(self.snapshots.len()), format!("t {name}"))
            }
            Step::Restore(index) => {
                let taking = index.get(&self.snapshots).clone();
                self.restore(taking.id.clone(), &taking);
            }
            Step::RestoreTag(name) => {
                let name = format!("t {name}");
                if let Some(at) = self.tags.get(&name) {
                    self.restore(name, &self.snapshots[*at].clone());
                }
            }
            Step::RestoreTo(index) => self.restore_to(&index.get(&self.snapshots).clone()),
        }
        assert_same(&self.sandbox.files(), &self.files);
    }

    fn edit(&mut self, timeline: &str, edit: &Edit) {
        let path = file(timeline);
        // A deleted chat reappears with its last content. `name_reuse` tests another chat under its
        // name.
        let deleted = self.heads.get(timeline).map(|head| &self.snapshots[*head]);
        if let Some(deleted) = deleted.filter(|head| head.deleted)
            && !matches!(edit, Edit::Entry(..) | Edit::Book(_) | Edit::Group(_) | Edit::Delete)
        {
            let bytes = deleted.files.get(&path).cloned();
            return self.write(&path, bytes);
        }
        match edit {
            Edit::Entry(at, text) => {
                let mut entries = vec!["\"a\"".to_owned(), "\"b\"".into(), "\"c\"".into()];
                entries[at.index(3)] = text.clone();
                return self.write(BOOK, Some(book(&entries)));
            }
            Edit::Book(bytes) => return self.write(BOOK, bytes.clone()),
            Edit::Group(n) => {
                let group = format!("{{\"id\":\"9\",\"chats\":[\"talk\"],\"n\":{n}}}");
                return self.write(GROUP, Some(group.into_bytes()));
            }
            Edit::Delete => return self.write(&path, None),
            Edit::Garbage(bytes) => return self.write(&path, Some(bytes.clone())),
            _ => {}
        }
        let empty = header(true).into_bytes();
        let bytes = self.files.get(&path).unwrap_or(&empty);
        let mut lines: Vec<Vec<u8>> =
            bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let last = lines.len();
        let replace = |line: &mut Vec<u8>, from: &str, to: &str| {
            *line = String::from_utf8_lossy(line).replace(from, to).into_bytes();
        };
        match edit {
            Edit::Append(text) => lines.push(message(text).into_bytes()),
            Edit::Bind(bound) => lines[0] = header(*bound).into_bytes(),
            _ if last == 1 => {}
            Edit::Change(at, text) => lines[1 + at.index(last - 1)] = message(text).into_bytes(),
            Edit::Remove(at) => drop(lines.remove(1 + at.index(last - 1))),
            Edit::Hide(at) => replace(
                &mut lines[1 + at.index(last - 1)],
                "\"is_system\":false",
                "\"is_system\":true",
            ),
            Edit::Swipe(at) => {
                replace(&mut lines[1 + at.index(last - 1)], "\"swipe_id\":0", "\"swipe_id\":1")
            }
            _ => unreachable!("done above"),
        }
        self.write(&path, Some(lines.join(&b'\n')));
    }

    /// Returns the current files of a timeline if its chat exists.
    fn now(&self, timeline: &str) -> Option<Files> {
        let chat = self.files.get(&file(timeline))?;
        let mut state = Files::from([(file(timeline), chat.clone())]);
        let first = chat.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let others =
            [(BOOK, first == header(true).as_bytes()), (GROUP, timeline.starts_with("group"))];
        for (path, _) in others.iter().filter(|(_, belongs)| *belongs) {
            state.extend(self.files.get(*path).map(|bytes| ((*path).to_owned(), bytes.clone())));
        }
        Some(state)
    }

    /// Returns the latest snapshot if it equals the state; a change of the group's file alone
    /// creates none.
    fn is_newest(&self, timeline: &str, state: &Files) -> Option<usize> {
        self.is_newest_but_for(timeline, state, &[GROUP])
    }

    fn is_newest_but_for(&self, timeline: &str, state: &Files, but: &[&str]) -> Option<usize> {
        let head = *self.heads.get(timeline)?;
        let own = file(timeline);
        let but_group = |files: &Files| {
            files
                .iter()
                .filter(|(path, _)| **path == own || !but.contains(&path.as_str()))
                .map(|(a, b)| (a.clone(), b.clone()))
                .collect::<Files>()
        };
        // A chat that reappears gets a snapshot.
        let same = but_group(&self.snapshots[head].files) == but_group(state);
        (same && !self.snapshots[head].deleted).then_some(head)
    }

    fn record(&mut self, id: String, timeline: &'static str, files: Files) -> usize {
        self.snapshots.push(Taking { id, timeline, files, deleted: false });
        self.snapshots.len() - 1
    }

    /// Takes snapshots of everything that changed, or of one chat and its lorebook.
    fn snapshot(&mut self, named: Option<&'static str>) {
        let timelines = named.map(str::to_owned).into_iter().collect();
        let asked = snapshot::SnapshotRequest { timelines, ..Default::default() };
        let subject = asked.try_into().unwrap();
        let options = snapshot::Options { subject, ..Default::default() };
        let report =
            snapshot::snapshot(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap();
        let mut outcomes = report.timelines.iter().peekable();
        let mut untouched = 0;
        let mut names: Vec<_> = match named {
            Some(name) => vec![name],
            None => TIMELINES.into_iter().chain(OTHERS).collect(),
        };
        if let Some(state) = named.and_then(|name| self.now(name))
            && state.contains_key(BOOK)
            && let Some(book) = self.now(OTHERS[1])
            && self.is_newest(OTHERS[1], &book).is_none()
        {
            names.push(OTHERS[1]);
        }
        // A changed lorebook gets one snapshot, not one per chat.
        let but = if named.is_some() { &[GROUP][..] } else { &[GROUP, BOOK] };
        for name in names {
            let Some(state) = self.now(name) else { continue };
            let newest = self.is_newest_but_for(name, &state, but);
            let Some(outcome) = outcomes.next_if(|outcome| outcome.timeline.as_str() == name)
            else {
                assert!(newest.is_some(), "{name} was not looked at");
                untouched += 1;
                continue;
            };
            match (&outcome.result, newest) {
                (SnapshotResult::Unchanged(snapshot, _), Some(head)) => {
                    assert_eq!(snapshot.id.to_string(), self.snapshots[head].id)
                }
                (SnapshotResult::New(snapshot, _), None) => {
                    let at = self.record(snapshot.id.to_string(), name, state);
                    self.heads.insert(name, at);
                }
                (_, newest) => panic!("{name}: the model has {newest:?}"),
            }
        }
        assert!(outcomes.next().is_none());
        assert_eq!(report.untouched, untouched);
        // A deleted chat gets a snapshot with its last content.
        for last in &report.newly_deleted {
            let mut heads = self.heads.iter().map(|(name, head)| (*name, *head));
            let (name, head) = heads.find(|(name, _)| *name == last.timeline.as_str()).unwrap();
            assert!(self.now(name).is_none() && !self.snapshots[head].deleted);
            let at = self.record(last.id.to_string(), name, self.snapshots[head].files.clone());
            self.snapshots[at].deleted = true;
            self.heads.insert(name, at);
        }
    }

    fn checkpoint(&mut self, timeline: &'static str, at: &Index) {
        let Some(mut state) = self.now(timeline) else { return };
        let chat = state.get_mut(&file(timeline)).unwrap();
        let lines: Vec<_> = chat.split(|byte| *byte == b'\n').collect();
        // Sometimes beyond the last message.
        let at = at.index(lines.len());
        let timelines = vec![timeline.into()];
        let asked = snapshot::SnapshotRequest { timelines, at: Some(at), ..Default::default() };
        let subject = asked.try_into().unwrap();
        let options = snapshot::Options { subject, ..Default::default() };
        let report = snapshot::snapshot(&self.sandbox.workspace(), &options, &mut NoProgress);
        // Trailing blank lines are not messages.
        let messages = lines.iter().rposition(|line| !line.trim_ascii().is_empty()).unwrap_or(0);
        if at >= messages {
            assert!(matches!(
                report,
                Err(stvc::verbs::Error::Engine(stvc::internals::engine::Error::Refused { .. }))
            ));
            return;
        }
        *chat = lines[..at + 2].join(&b'\n');
        match &report.unwrap().timelines[0].result {
            SnapshotResult::New(snapshot, tags) | SnapshotResult::Unchanged(snapshot, tags) => {
                assert_eq!(tags.len(), 1);
                let at = self.record(snapshot.id.to_string(), timeline, state);
                self.tags.insert(tags[0].clone(), at);
            }
            _ => panic!("no checkpoint was taken"),
        }
    }

    fn tag(&mut self, snapshot: usize, name: String) {
        let id = self.snapshots[snapshot].id.clone();
        let free = self.tags.get(&name).is_none_or(|at| self.snapshots[*at].id == id);
        let options = tag::Options::Add { name: name.clone(), snapshot: id, lead: false };
        let outcome = tag::tag(&self.sandbox.workspace(), &options);
        assert_eq!(outcome.is_ok(), free, "{name}");
        if free {
            self.tags.insert(name, snapshot);
        }
    }

    fn restore(&mut self, name: String, taking: &Taking) {
        let timeline = taking.timeline;
        let target = restore::Target::InPlace {
            only: None,
            overwrite: restore::Overwrite::All,
            permissions: Default::default(),
        };
        let options = restore::Options { snapshot: name, target, ..Default::default() };
        let report =
            restore::restore(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap();
        assert_eq!(report.source.snapshot.id.to_string(), taking.id);
        // The group lists the chat already, so its file stays.
        let own = file(timeline);
        let comes = |(path, _): &(&String, &Vec<u8>)| *path != GROUP || **path == own;
        let back: Vec<_> = taking.files.iter().filter(comes).collect();
        let in_the_way =
            back.iter().any(|(path, bytes)| self.files.get(*path).is_some_and(|now| now != *bytes));
        let state = self.now(timeline).filter(|_| in_the_way);
        assert_eq!(report.written.safety.is_some(), state.is_some());
        if let (Some(state), Some(safety)) = (state, report.written.safety) {
            let known = self.heads.get(timeline).copied();
            let known = known.filter(|head| self.snapshots[*head].id == safety.id.to_string());
            match self.is_newest(timeline, &state).or(known) {
                Some(head) => assert_eq!(safety.id.to_string(), self.snapshots[head].id),
                None => {
                    let at = self.record(safety.id.to_string(), timeline, state);
                    self.heads.insert(timeline, at);
                }
            }
        }
        for (path, bytes) in back {
            self.files.insert(path.clone(), bytes.clone());
        }
        // The latest snapshot equals the files.
        let Some(state) = self.now(timeline) else { return };
        let newest = self.is_newest(timeline, &state);
        assert_eq!(report.written.restored.is_some(), newest.is_none());
        if let Some(restored) = report.written.restored {
            let at = self.record(restored.id.to_string(), timeline, state);
            self.heads.insert(timeline, at);
        }
        for other in OTHERS {
            self.learn(other);
        }
    }

    /// Records the new state of a file that was written with a chat.
    fn learn(&mut self, other: &'static str) {
        let Some(state) = self.now(other) else { return };
        let branch = format!("refs/heads/{other}");
        let branches = self.sandbox.git(&["for-each-ref", "--format=%(objectname)", &branch]);
        let id = branches.trim();
        let known = self.heads.get(other).map(|head| self.snapshots[*head].id.as_str());
        if !id.is_empty() && known != Some(id) {
            let at = self.record(id.to_owned(), other, state);
            self.heads.insert(other, at);
        }
    }

    fn restore_to(&self, taking: &Taking) {
        let to = tempfile::tempdir_in(self.sandbox.folder()).unwrap();
        let options = restore::Options {
            snapshot: taking.id.clone(),
            target: restore::Target::Folder { dir: to.path().into(), only: None },
            ..Default::default()
        };
        restore::restore(&self.sandbox.workspace(), &options, &mut NoProgress).unwrap();
        assert_same(&files(to.path()), &taking.files);
    }
}

fn file(timeline: &str) -> String {
    let ending = if OTHERS.contains(&timeline) { "json" } else { "jsonl" };
    format!("{timeline}.{ending}")
}

fn header(bound: bool) -> String {
    let book = if bound { r#","world_info":"Lore""# } else { "" };
    format!(
        r#"{{"chat_metadata":{{"integrity":"1"{book}}},"user_name":"unused","character_name":"unused"}}"#
    )
}

fn message(text: &str) -> String {
    format!(
        r#"{{"name":"Ann","is_user":false,"is_system":false,"mes":{text},"swipe_id":0,"swipes":["",{text}],"extra":{{}}}}"#
    )
}

fn book(entries: &[String]) -> Vec<u8> {
    let entry = |(uid, content): (usize, &String)| {
        format!("\n        \"{uid}\": {{ \"uid\": {uid}, \"content\": {content} }}")
    };
    let entries: Vec<_> = entries.iter().enumerate().map(entry).collect();
    format!("{{\n    \"entries\": {{{}\n    }}\n}}", entries.join(",")).into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn store_restores_the_same_files_as_a_model_of_plain_copies(steps in vec(step(), 10..45)) {
        let mut model = Model::new();
        for step in &steps {
            model.take(step);
        }
        model.take(&Step::Snapshot);
        // Every snapshot still has its content.
        for taking in &model.snapshots {
            model.restore_to(taking);
        }
        let report = check::check(&model.sandbox.workspace(), &mut NoProgress).unwrap();
        prop_assert!(report.is_valid(), "{:?}", report.findings);
        model.sandbox.git(&["fsck", "--strict"]);
    }
}
