//! Those of verbs that only look.

use super::super::{
    ChangeLine, ComparisonLine, Counts, FindingLine, GraphLine, LaneLine, LoreActiveLine,
    LoreBookLine, LoreChangeLine, LoreEntryLine, LoreSentenceLine, MatchLine, MessageElsewhereLine,
    MessageLine, MessageVersionLine, OperationLine, SnapshotLine, Summary, TimelineLine, exit,
    kind_word,
};
use super::answer::{Answer, Tell};
use super::parts::{done, findings, made_of, partly};
use crate::archive::diff::{Change, ChangeKind};
use crate::rules::{Code, Finding, Level};
use crate::verbs::diff::Comparison;
use crate::verbs::timelines::{TimelineChange, graph};
use crate::verbs::{
    doctor, log, lore, message_versions, operations, read, search, show, timelines,
};

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
            "timelines" => self.unreadable().for_each(|it| tell(FindingLine::from(it).into())),
            _ => findings(&self.report.findings, tell),
        }
    }

    fn summary(&self) -> Summary {
        let timelines = &self.report.timelines;
        let of = |change| timelines.iter().filter(|timeline| timeline.change == change).count();
        let counts = Counts::Timelines {
            timelines: timelines.len(),
            new: of(TimelineChange::New),
            changed: of(TimelineChange::Changed),
            unchanged: of(TimelineChange::Unchanged),
            deleted: of(TimelineChange::Deleted),
        };
        Summary { command: self.command, ok: self.exit() == exit::DONE, counts }
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

    fn summary(&self) -> Summary {
        let counts = Counts::Log { snapshots: self.entries.len(), total: self.total };
        Summary { command: "log", ok: self.broken.is_empty(), counts }
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

    fn summary(&self) -> Summary {
        let (versions, elsewhere) = (self.total, self.elsewhere.len());
        let counts = Counts::MessageVersions { versions, elsewhere };
        Summary { command: "log", ok: self.broken.is_empty(), counts }
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

    fn summary(&self) -> Summary {
        done("show", Counts::Show { findings: self.findings.len() })
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

impl Answer for graph::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(GraphLine::from(self).into());
        self.lanes.iter().for_each(|lane| tell(LaneLine::from(lane).into()));
    }

    fn summary(&self) -> Summary {
        done("graph", Counts::Graph { lanes: self.total, columns: self.columns })
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

impl Answer for read::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.messages.iter().for_each(|it| tell(MessageLine::new(&self.snapshot, it).into()));
    }

    fn summary(&self) -> Summary {
        let counts = Counts::Read { messages: self.messages.len(), hidden: self.hidden };
        Summary { command: "show", ok: self.broken.is_empty(), counts }
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

    fn summary(&self) -> Summary {
        let (lorebooks, entries, changes) = match self.report {
            lore::Report::Books(books) => {
                (books.len(), books.iter().map(|book| book.entries.len()).sum(), 0)
            }
            lore::Report::Entry(story) => (1, 1, story.total),
            lore::Report::Then(then) => (1, then.total, 0),
            lore::Report::Active(active) => (0, active.entries.as_ref().map_or(0, Vec::len), 0),
        };
        let counts = Counts::Lore { lorebooks, entries, changes };
        Summary { command: self.command, ok: self.broken().is_empty(), counts }
    }

    fn exit(&self) -> u8 {
        if self.broken().is_empty() { exit::DONE } else { exit::PARTLY }
    }
}

/// `diff`, of two states or of many, one after the other.
#[derive(Default)]
pub struct DiffCounts {
    pub comparisons: usize,
    pub changes: usize,
    kinds: Vec<ChangeKind>,
}

impl DiffCounts {
    pub fn add(&mut self, changes: &[Change<'_>]) {
        self.comparisons += 1;
        self.changes += changes.len();
        self.kinds.extend(changes.iter().map(Change::kind));
    }

    pub fn summary(&self) -> Summary {
        let many = |kind| self.kinds.iter().filter(|other| **other == kind).count();
        let kinds = ChangeKind::ALL.into_iter().map(|kind| (kind_word(kind), many(kind))).collect();
        let (comparisons, changes) = (self.comparisons, self.changes);
        done("diff", Counts::Diff { comparisons, changes, kinds })
    }
}

/// The lines of two states that were compared; with `stat` only how much changed.
pub fn compared<'a>(
    comparison: &'a Comparison,
    changes: &'a [Change<'a>],
    stat: bool,
    tell: Tell<'_, 'a>,
) {
    tell(ComparisonLine::new(comparison, changes).into());
    changes.iter().filter(|_| !stat).for_each(|change| tell(ChangeLine::from(change).into()));
    findings(&comparison.findings, tell);
}

impl Answer for search::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.matches.iter().for_each(|found| tell(MatchLine::from(found).into()));
    }

    fn summary(&self) -> Summary {
        let counts = Counts::Search {
            matches: self.matches.len(),
            more: self.more,
            snapshots: self.snapshots,
            texts: self.texts,
        };
        Summary { command: "search", ok: self.broken.is_empty(), counts }
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
        let entries = self.entries.iter();
        entries.for_each(|it| {
            tell(OperationLine::new(&it.operation, it.undone_by, it.continued_by).into());
        });
    }

    fn summary(&self) -> Summary {
        let (operations, unreadable) = (self.entries.len(), self.unreadable);
        done("operations", Counts::Operations { operations, unreadable })
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

/// `doctor` that only looks.
impl Answer for doctor::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        findings(&self.findings, tell);
    }

    fn summary(&self) -> Summary {
        let of = |level| self.findings.iter().filter(|it| it.level == level).count() as u64;
        let counts = Counts::Doctor {
            timelines: self.timelines,
            lorebooks: self.lorebooks,
            errors: of(Level::Error),
            warnings: of(Level::Warning),
            infos: of(Level::Info),
            repairs: self.repairs.len(),
            fixed: 0,
        };
        Summary { command: "doctor", ok: self.exit() == exit::DONE, counts }
    }

    fn exit(&self) -> u8 {
        let is_bad = self.findings.iter().any(|finding| finding.level == Level::Error);
        if is_bad { exit::FAILED } else { exit::DONE }
    }
}
