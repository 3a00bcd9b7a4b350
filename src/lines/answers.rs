//! What each verb answers: which lines, in which order, and how it ended. Every front end tells these; what is said to a person besides is its own.

use super::exit;
use super::{
    ChangeLine, ComparisonLine, Counts, EntryLine, FailedLine, FileLine, FindingLine, GraphLine,
    LaneLine, Line, LoreActiveLine, LoreBookLine, LoreChangeLine, LoreEntryLine, LoreSentenceLine,
    MatchLine, MessageElsewhereLine, MessageLine, MessageVersionLine, OperationLine, PlanLine,
    RestoredLine, SnapshotLine, Summary, TagLine, TimelineLine, kind_word,
};
use crate::archive::diff::{Change, ChangeKind};
use crate::engine::files::Action;
use crate::history::at_message::Origin;
use crate::rules::{Code, Finding, Level};
use crate::verbs::diff::Comparison;
use crate::verbs::restore::from_message;
use crate::verbs::snapshot::Taken;
use crate::verbs::timelines::{TimelineChange, graph};
use crate::verbs::{
    doctor, log, lore, message_versions, operations, read, restore, search, show, snapshot, tag,
    timelines, undo,
};

/// Takes lines.
pub type Tell<'t, 'a> = &'t mut dyn FnMut(Line<'a>);

/// A report, as an answer.
pub trait Answer {
    /// Every line but the last, in order.
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>);
    /// The last one.
    fn summary(&self) -> Summary;
    /// How it ended.
    fn exit(&self) -> u8;
}

fn findings<'a>(findings: &'a [Finding], tell: Tell<'_, 'a>) {
    findings.iter().for_each(|finding| tell(FindingLine::from(finding).into()));
}

fn done(command: &'static str, counts: Counts) -> Summary {
    Summary { command, ok: true, counts }
}

/// What can be told in part: some could not be read.
fn partly(broken: &[String]) -> u8 {
    if broken.is_empty() { exit::DONE } else { exit::PARTLY }
}

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
            let line = SnapshotLine::new(&entry.snapshot, &entry.tags);
            tell(line.logged(entry.lorebook_only, entry.is_damaged).into());
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
        let line = SnapshotLine::new(&self.snapshot, &self.tags);
        let line = line.files(&self.manifest.files).state(self.manifest.checkpoint.as_ref());
        tell(line.at(self.at).into());
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

/// Where the entries of a state that was put together come from.
fn made_of<'a>(origin: &'a Origin, tell: Tell<'_, 'a>) {
    if origin.scene.is_some() {
        origin.entries.iter().for_each(|entry| tell(EntryLine::new(entry, origin).into()));
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
                entries.for_each(|(key, text)| tell(LoreEntryLine::then(then, key, text).into()));
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
            lore::Report::Then(then) => (1, then.entries.len(), 0),
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
        entries.for_each(|it| tell(OperationLine::new(&it.operation, it.undone_by).into()));
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

/// `snapshot`.
pub struct Snapshots<'r> {
    pub report: &'r snapshot::Report,
    pub dry_run: bool,
}

impl Snapshots<'_> {
    fn taken(&self) -> usize {
        let is_new = |taken: &&snapshot::TakenTimeline| {
            matches!(taken.result, Taken::New(..) | Taken::WouldBeNew(..))
        };
        self.report.timelines.iter().filter(is_new).count()
    }

    fn unchanged(&self) -> usize {
        let report = self.report;
        let looked_at = report.timelines.len() + report.unreadable.len();
        looked_at - self.taken() - report.failed() - report.refused() + report.untouched
    }
}

impl Answer for Snapshots<'_> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        let report = self.report;
        for finding in &report.unreadable {
            let (timeline, message) = (finding.subject.as_str(), finding.message.as_str());
            tell(FailedLine { timeline, message }.into());
        }
        for outcome in &report.timelines {
            let timeline = outcome.timeline.as_str();
            match &outcome.result {
                Taken::New(snapshot, tags) => {
                    let state = report.states.get(&snapshot.id);
                    tell(SnapshotLine::new(snapshot, tags).unchanged(false).state(state).into());
                }
                Taken::WouldBeNew(messages, before) => {
                    let (messages, messages_before) = (*messages, *before);
                    tell(PlanLine { timeline, messages, messages_before }.into());
                }
                Taken::Unchanged(snapshot, tags) => {
                    tell(SnapshotLine::new(snapshot, tags).unchanged(true).into());
                }
                Taken::Refused(why) => {
                    for finding in why {
                        let message = finding.message.as_str();
                        tell(FailedLine { timeline, message }.into());
                    }
                    findings(why, tell);
                }
                Taken::Failed(why) => tell(FailedLine { timeline, message: why }.into()),
            }
        }
        for deleted in &report.newly_deleted {
            tell(SnapshotLine::new(deleted, &[]).unchanged(false).into());
        }
        findings(&report.findings, tell);
    }

    fn summary(&self) -> Summary {
        let report = self.report;
        let (failed, refused) = (report.failed(), report.refused());
        let counts = Counts::Snapshot {
            taken: self.taken(),
            unchanged: self.unchanged(),
            failed,
            refused,
            dry_run: self.dry_run,
            objects: report.objects,
            bytes: report.bytes,
            created_store: report.created_store,
            deleted: report.deleted,
        };
        Summary { command: "snapshot", ok: failed + refused == 0, counts }
    }

    fn exit(&self) -> u8 {
        match (self.report.failed(), self.report.refused(), self.taken() + self.unchanged()) {
            (0, 0, _) => exit::DONE,
            (0, _, 0) => exit::REFUSED,
            (_, _, 0) => exit::FAILED,
            _ => exit::PARTLY,
        }
    }
}

impl Answer for Vec<tag::Tag> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        for tag in self {
            let (name, snapshot) = (tag.name.as_str(), tag.snapshot.id);
            tell(TagLine { name, snapshot, timeline: tag.snapshot.timeline.as_str() }.into());
        }
    }

    fn summary(&self) -> Summary {
        done("tag", Counts::Tag { tags: self.len() })
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

impl Answer for restore::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.safety.iter().for_each(|safety| tell(SnapshotLine::new(safety, &[]).into()));
        self.files.iter().for_each(|file| tell(FileLine::from(file).into()));
        self.origin.iter().for_each(|origin| made_of(origin, tell));
        let new = self.fork.iter().chain(&self.restored);
        new.for_each(|new| tell(SnapshotLine::new(new, &[]).into()));
        tell(RestoredLine::from(self).into());
        findings(&self.findings, tell);
    }

    fn summary(&self) -> Summary {
        let is_written = |file: &&crate::engine::files::FileAction| file.action == Action::Write;
        let written = self.files.iter().filter(is_written).count();
        let counts = Counts::Restore {
            written,
            kept: self.files.len() - written,
            dropped_operations: self.dropped_operations,
            dry_run: self.dry_run,
        };
        done("restore", counts)
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

impl Answer for from_message::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.made.files.iter().for_each(|file| tell(FileLine::from(file).into()));
        self.made.fork.iter().for_each(|new| tell(SnapshotLine::new(new, &[]).into()));
        findings(&self.made.findings, tell);
    }

    fn summary(&self) -> Summary {
        let (written, dry_run) = (self.made.files.len(), self.made.dry_run);
        done("fork", Counts::Fork { written, messages: self.messages, dry_run })
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}

impl Answer for undo::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(OperationLine::new(&self.operation, None).into());
        self.files.iter().for_each(|file| tell(FileLine::from(file).into()));
        findings(&self.findings, tell);
    }

    fn summary(&self) -> Summary {
        let counts = Counts::Undo {
            operation: self.operation.number,
            refs: self.refs.len(),
            files: self.files.len(),
            dry_run: self.dry_run,
        };
        done("undo", counts)
    }

    fn exit(&self) -> u8 {
        exit::DONE
    }
}
