//! Answers of the verbs that only read.

use std::ops::Range;

use base64::Engine;

use super::{Answer, Emit, findings, made_of};
use crate::archive::diff::{Change, ChangeKind};
use crate::engine::operation::log::LogEntry;
use crate::exit;
use crate::json_output::{
    ChangeLine, ComparisonLine, Counts, Line, LoreEntryLine, SnapshotLine, counts, kind_word,
};
use crate::rules::{Code, Finding};
use crate::st::{self, Category};
use crate::verbs::diff::Comparison;
use crate::verbs::names::GroupNames;
use crate::verbs::search::MatchPlace;
use crate::verbs::timelines::{TimelineChange, graph};
use crate::verbs::{
    log, lore, message_versions, operations, picture, read, search, show, timelines,
};

/// Answer of `timelines` and of `status`.
pub struct Timelines<'r> {
    /// `timelines`, `status` or `library`, for the summary.
    pub command: &'static str,
    /// The timelines that the lines describe.
    pub report: &'r timelines::Report,
}

impl Timelines<'_> {
    /// Returns the findings about timelines that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = &Finding> {
        let is_unreadable = |finding: &&Finding| finding.code == Code::Unreadable;
        self.report.findings.iter().filter(is_unreadable)
    }
}

impl Answer for Timelines<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for timeline in &self.report.timelines {
            tell(Line::Timeline {
                timeline,
                head: timeline.latest.snapshot.as_ref().map(|head| head.id),
                time: timeline.latest.snapshot.as_ref().map(|head| head.time),
                changed: timeline.changed_parts(),
                damaged: timeline.latest.damaged.is_some(),
                last_valid: timeline.latest.damaged.flatten(),
            });
        }
        match self.command {
            "timelines" => findings(self.unreadable(), tell),
            _ => findings(&self.report.findings, tell),
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        let timelines = &self.report.timelines;
        let of =
            |change| timelines.iter().filter(|timeline| timeline.latest.change == change).count();
        counts! { self.command =>
            timelines: timelines.len(),
            new: of(TimelineChange::New),
            changed: of(TimelineChange::Changed),
            unchanged: of(TimelineChange::Unchanged),
            deleted: of(TimelineChange::Deleted),
        }
    }

    fn is_partial(&self) -> bool {
        self.unreadable().next().is_some()
    }
}

impl Answer for log::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let line = |entry| Line::Snapshot(SnapshotLine::logged(entry));
        self.entries.iter().map(line).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "log" => snapshots: self.entries.len(), total: self.total }
    }

    fn is_partial(&self) -> bool {
        !self.broken.is_empty()
    }
}

impl Answer for message_versions::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for version in &self.versions {
            tell(Line::MessageVersion {
                snapshot: &version.snapshot,
                timeline: &version.snapshot.timeline,
                index: version.after.0,
                message: self.message,
                again: version.is_again,
                change: version.change().as_ref().map(ChangeLine::from),
            });
        }
        for other in &self.elsewhere {
            let line = other.now.as_ref().and_then(|(_, line)| line.as_deref());
            tell(Line::MessageElsewhere {
                timeline: &other.timeline,
                head: other.head.id,
                index: other.now.as_ref().map(|(number, _)| *number),
                same: other.is_same,
                same_as: other.same_as.as_ref().map(|snapshot| snapshot.id),
                text: line.and_then(st::text_of).map(|message| message.text),
            });
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "log" => versions: self.total, elsewhere: self.elsewhere.len() }
    }

    fn is_partial(&self) -> bool {
        !self.broken.is_empty()
    }
}

impl Answer for show::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        tell(Line::Snapshot(SnapshotLine::shown(&self.shown)));
        self.origin.iter().for_each(|origin| made_of(origin, tell));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "show" => findings: self.findings.len() }
    }
}

/// Answer of `show` to a request for the moment without the contents of its files.
impl Answer for show::ShownMoment {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        tell(Line::Snapshot(SnapshotLine::shown(self)));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "show" => }
    }
}

impl Answer for graph::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        tell(Line::Graph(self));
        self.lanes.iter().map(Line::Lane).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "graph" => lanes: self.total, columns: self.columns }
    }
}

impl Answer for read::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let (snapshot, timeline) = (self.snapshot.id, &self.snapshot.timeline);
        let line = |message| Line::Message { snapshot, timeline, message };
        self.messages.iter().map(line).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "show" => messages: self.messages.len(), hidden: self.hidden }
    }

    fn is_partial(&self) -> bool {
        !self.broken.is_empty()
    }
}

/// Answer of `lore`, and of `show` for a lorebook.
pub struct Lore<'r> {
    /// `lore` or `show`, for the summary.
    pub command: &'static str,
    /// The lorebooks or entries that the lines describe.
    pub report: &'r lore::Report,
}

impl Lore<'_> {
    /// Returns the reasons why parts of the lorebooks could not be read.
    pub fn broken(&self) -> Vec<&String> {
        match self.report {
            lore::Report::Books(books) => books.iter().flat_map(|book| &book.broken).collect(),
            lore::Report::Entry(story) => story.broken.iter().collect(),
            lore::Report::Then(_) | lore::Report::Active(_) => Vec::new(),
        }
    }
}

impl Answer for Lore<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        match self.report {
            lore::Report::Books(books) => {
                for book in books {
                    tell(Line::LoreBook {
                        lorebook: book.name.chat(),
                        timeline: &book.name,
                        entries: book.entries.len(),
                        states: book.states,
                        snapshot: book.last.as_ref().map(|last| last.id),
                        time: book.last.as_ref().map(|last| last.time),
                    });
                    let line = |entry| Line::LoreEntry(LoreEntryLine::listed(book, entry));
                    book.entries.iter().map(line).for_each(&mut *tell);
                }
            }
            lore::Report::Entry(story) => {
                tell(Line::LoreEntry(LoreEntryLine::of_story(story)));
                if !story.sentences.is_empty() {
                    return story.sentences.iter().map(Line::LoreSentence).for_each(tell);
                }
                for entry in &story.changes.list {
                    let change = entry.change().as_ref().map(ChangeLine::from);
                    tell(Line::LoreChange { entry, change });
                }
                let line = |entry| Line::LoreEntry(LoreEntryLine::elsewhere(entry));
                story.elsewhere.iter().map(line).for_each(tell);
            }
            lore::Report::Then(then) => {
                let line = |entry| Line::LoreEntry(LoreEntryLine::then(then, entry));
                then.entries.iter().map(line).for_each(tell);
            }
            lore::Report::Active(active) => {
                let (timeline, snapshot) = (&active.chat.timeline, active.chat.id);
                let index = active.message;
                let line = |entry| Line::LoreActive { timeline, snapshot, index, entry };
                active.entries.iter().flatten().map(line).for_each(tell);
            }
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (lorebooks, entries, changes) = match self.report {
            lore::Report::Books(books) => {
                (books.len(), books.iter().map(|book| book.entries.len()).sum(), 0)
            }
            lore::Report::Entry(story) => (1, 1, story.changes.total),
            lore::Report::Then(then) => (1, then.total, 0),
            lore::Report::Active(active) => (0, active.entries.as_ref().map_or(0, Vec::len), 0),
        };
        counts! { self.command => lorebooks: lorebooks, entries: entries, changes: changes }
    }

    fn is_partial(&self) -> bool {
        !self.broken().is_empty()
    }
}

impl Answer for GroupNames {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.0.iter().map(|(timeline, group)| Line::Group { timeline, group }).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "groups" => timelines: self.0.len() }
    }
}

impl Answer for picture::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let data = base64::engine::general_purpose::STANDARD.encode(&self.bytes);
        tell(Line::Picture { path: &self.path, kind: self.kind, bytes: self.bytes.len(), data });
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "picture" => bytes: self.bytes.len() }
    }
}

/// Answer of `diff` for two moments.
pub struct Diffed<'r> {
    /// The two moments.
    pub comparison: &'r Comparison,
    /// Changes to print, as [`Comparison::changes`] selected them.
    pub changes: Vec<Change<'r>>,
    /// Whether to report only the number of changes.
    pub stat: bool,
    /// Indexes of the changes to list. The counts include all changes.
    pub listed: Range<usize>,
}

impl Answer for Diffed<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        tell(Line::Comparison(ComparisonLine::new(self.comparison, &self.changes)));
        let Range { start, end } = self.listed;
        let changes = self.changes.iter().take(end).skip(start).filter(|_| !self.stat);
        changes.map(|change| Line::Change(change.into())).for_each(&mut *tell);
        findings(&self.comparison.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let mut counts = DiffCounts::default();
        counts.add(&self.changes);
        counts.counts()
    }
}

/// The counts of all comparisons of one `diff`.
#[derive(Default)]
pub struct DiffCounts {
    /// Number of comparisons that were added.
    pub comparisons: usize,
    kinds: Vec<ChangeKind>,
}

impl DiffCounts {
    /// Adds the changes of one comparison to the counts.
    pub fn add(&mut self, changes: &[Change<'_>]) {
        self.comparisons += 1;
        self.kinds.extend(changes.iter().map(Change::kind));
    }

    /// Returns the number of changes in all comparisons.
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
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for found in &self.matches {
            let lorebook = match (&found.place, found.timeline.category()) {
                (MatchPlace::Entry { .. }, Category::Lorebook) => Some(found.timeline.chat()),
                (MatchPlace::Entry { .. }, _) => found.snapshot.lorebook.as_deref(),
                _ => None,
            };
            let (hidden, swipe) = match found.place {
                MatchPlace::Message { hidden, swipe, .. } => (hidden, swipe.map(|(n, _)| n)),
                _ => (false, None),
            };
            tell(Line::Match { found, lorebook, hidden, swipe });
        }
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
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let line = |entry: &'a LogEntry| Line::Operation {
            operation: &entry.operation,
            undone_by: entry.undone_by,
            continued_by: entry.continued_by,
        };
        self.entries.iter().map(line).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "operations" => operations: self.entries.len(), unreadable: self.unreadable }
    }
}
