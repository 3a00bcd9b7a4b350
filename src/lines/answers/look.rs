//! Those of verbs that only look.

use super::super::{
    ChangeLine, ComparisonLine, Counts, LoreActiveLine, LoreBookLine, LoreChangeLine,
    LoreEntryLine, LoreSentenceLine, MatchLine, MessageElsewhereLine, MessageLine,
    MessageVersionLine, OperationLine, SnapshotLine, TimelineLine, counts, exit, kind_word,
};
use super::answer::{Answer, Tell};
use super::parts::{findings, made_of, partly};
use crate::archive::diff::{Change, ChangeKind};
use crate::rules::{Code, Finding};
use crate::verbs::diff::Comparison;
use crate::verbs::timelines::{TimelineChange, graph};
use crate::verbs::{log, lore, message_versions, operations, read, search, show, timelines};

/// `timelines` and `status`.
pub struct Timelines<'r> {
    pub command: &'static str,
    pub report: &'r timelines::Report,
}

impl Timelines<'_> {
    /// What keeps a timeline from being read.
    pub fn unreadable(&self) -> impl Iterator<Item = &Finding> {
        let is_unreadable = |finding: &&Finding| finding.code == Code::Unreadable;
        self.report.findings.iter().filter(is_unreadable)
    }
}

impl Answer for Timelines<'_> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.report.timelines.iter().for_each(|it| tell(TimelineLine::from(it).into()));
        match self.command {
            // The listing is the answer.
            "timelines" => self.unreadable().for_each(|it| tell(it.into())),
            _ => findings(&self.report.findings, tell),
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        let timelines = &self.report.timelines;
        let of = |change| timelines.iter().filter(|timeline| timeline.change == change).count();
        counts! { self.command =>
            timelines: timelines.len(),
            new: of(TimelineChange::New),
            changed: of(TimelineChange::Changed),
            unchanged: of(TimelineChange::Unchanged),
            deleted: of(TimelineChange::Deleted),
        }
    }

    fn exit(&self) -> u8 {
        if self.unreadable().next().is_some() { exit::PARTLY } else { exit::DONE }
    }
}

impl Answer for log::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        for entry in &self.entries {
            tell(SnapshotLine::logged(entry).into());
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "log" => snapshots: self.entries.len(), total: self.total }
    }

    fn exit(&self) -> u8 {
        partly(&self.broken)
    }
}

impl Answer for message_versions::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.versions.iter().for_each(|it| tell(MessageVersionLine::new(self, it).into()));
        self.elsewhere.iter().for_each(|it| tell(MessageElsewhereLine::from(it).into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "log" => versions: self.total, elsewhere: self.elsewhere.len() }
    }

    fn exit(&self) -> u8 {
        partly(&self.broken)
    }
}

impl Answer for show::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(SnapshotLine::shown(self).into());
        self.origin.iter().for_each(|origin| made_of(origin, tell));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "show" => findings: self.findings.len() }
    }
}

impl Answer for graph::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(self.into());
        self.lanes.iter().for_each(|lane| tell(lane.into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "graph" => lanes: self.total, columns: self.columns }
    }
}

impl Answer for read::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.messages.iter().for_each(|it| tell(MessageLine::new(&self.snapshot, it).into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "show" => messages: self.messages.len(), hidden: self.hidden }
    }

    fn exit(&self) -> u8 {
        partly(&self.broken)
    }
}

/// `lore`, and `show` of a lorebook.
pub struct Lore<'r> {
    pub command: &'static str,
    pub report: &'r lore::Report,
}

impl Lore<'_> {
    /// What could not be read, in words.
    pub fn broken(&self) -> Vec<&String> {
        match self.report {
            lore::Report::Books(books) => books.iter().flat_map(|book| &book.broken).collect(),
            lore::Report::Entry(story) => story.broken.iter().collect(),
            lore::Report::Then(_) | lore::Report::Active(_) => Vec::new(),
        }
    }
}

impl Answer for Lore<'_> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        match self.report {
            lore::Report::Books(books) => {
                for book in books {
                    tell(LoreBookLine::from(book).into());
                    let entries = book.entries.iter();
                    entries.for_each(|entry| tell(LoreEntryLine::listed(book, entry).into()));
                }
            }
            lore::Report::Entry(story) => {
                tell(LoreEntryLine::of_story(story).into());
                story.sentences.iter().for_each(|it| tell(LoreSentenceLine::from(it).into()));
                if story.sentences.is_empty() {
                    story.changes.iter().for_each(|it| tell(LoreChangeLine::from(it).into()));
                    story.elsewhere.iter().for_each(|it| tell(LoreEntryLine::elsewhere(it).into()));
                }
            }
            lore::Report::Then(then) => {
                let entries = then.entries.iter();
                entries.for_each(|entry| tell(LoreEntryLine::then(then, entry).into()));
            }
            lore::Report::Active(active) => {
                let entries = active.entries.iter().flatten();
                entries.for_each(|entry| tell(LoreActiveLine::new(active, entry).into()));
            }
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (lorebooks, entries, changes) = match self.report {
            lore::Report::Books(books) => {
                (books.len(), books.iter().map(|book| book.entries.len()).sum(), 0)
            }
            lore::Report::Entry(story) => (1, 1, story.total),
            lore::Report::Then(then) => (1, then.total, 0),
            lore::Report::Active(active) => (0, active.entries.as_ref().map_or(0, Vec::len), 0),
        };
        counts! { self.command => lorebooks: lorebooks, entries: entries, changes: changes }
    }

    fn exit(&self) -> u8 {
        if self.broken().is_empty() { exit::DONE } else { exit::PARTLY }
    }
}

/// `diff` of two states.
pub struct Diffed<'r> {
    pub comparison: &'r Comparison,
    pub changes: Vec<Change<'r>>,
    /// Only how much changed.
    pub stat: bool,
}

impl Answer for Diffed<'_> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(ComparisonLine::new(self.comparison, &self.changes).into());
        let changes = self.changes.iter().filter(|_| !self.stat);
        changes.for_each(|change| tell(ChangeLine::from(change).into()));
        findings(&self.comparison.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let mut counts = DiffCounts::default();
        counts.add(&self.changes);
        counts.counts()
    }
}

/// `diff` of many states, each with the one before: what all of them count.
#[derive(Default)]
pub struct DiffCounts {
    pub comparisons: usize,
    kinds: Vec<ChangeKind>,
}

impl DiffCounts {
    pub fn add(&mut self, changes: &[Change<'_>]) {
        self.comparisons += 1;
        self.kinds.extend(changes.iter().map(Change::kind));
    }

    pub fn changes(&self) -> usize {
        self.kinds.len()
    }
}

impl Answer for DiffCounts {
    fn counts(&self) -> (&'static str, Counts) {
        let many = |kind| self.kinds.iter().filter(|other| **other == kind).count();
        let kinds = ChangeKind::ALL.into_iter().map(|kind| (kind_word(kind), many(kind).into()));
        let (command, mut counts) =
            counts! { "diff" => comparisons: self.comparisons, changes: self.changes() };
        counts.0.extend(kinds);
        (command, counts)
    }
}

impl Answer for search::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.matches.iter().for_each(|found| tell(MatchLine::from(found).into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "search" =>
            matches: self.matches.len(),
            more: self.more,
            snapshots: self.snapshots,
            texts: self.texts,
        }
    }

    fn is_ok(&self) -> bool {
        self.broken.is_empty()
    }

    fn exit(&self) -> u8 {
        match (self.broken.is_empty(), self.matches.is_empty()) {
            (false, _) => exit::PARTLY,
            (true, true) => exit::NOT_FOUND,
            (true, false) => exit::DONE,
        }
    }
}

impl Answer for operations::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        for entry in &self.entries {
            let (undone_by, continued_by) = (entry.undone_by, entry.continued_by);
            tell(OperationLine { operation: &entry.operation, undone_by, continued_by }.into());
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "operations" => operations: self.entries.len(), unreadable: self.unreadable }
    }
}
