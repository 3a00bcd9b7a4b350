//! Those of verbs that change something.

use super::super::{
    Counts, FailedLine, OperationLine, PlanLine, RestoredLine, SnapshotLine, TagLine, counts, exit,
};
use super::answer::{Answer, Tell};
use super::parts::{findings, made_of};
use crate::rules::{Finding, lost_attachments};
use crate::verbs::restore::fork;
use crate::verbs::snapshot::Taken;
use crate::verbs::{restore, snapshot, tag, undo};

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
            tell(FailedLine::new(&finding.subject, &finding.message).into());
        }
        for outcome in &report.timelines {
            let timeline = outcome.timeline.as_str();
            match &outcome.result {
                Taken::New(snapshot, tags) => {
                    let state = report.states.get(&snapshot.id);
                    tell(SnapshotLine::taken(snapshot, tags, state).into());
                }
                Taken::WouldBeNew(messages, before) => {
                    let (messages, messages_before) = (*messages, *before);
                    tell(PlanLine { timeline, messages, messages_before }.into());
                }
                Taken::Unchanged(snapshot, tags) => {
                    tell(SnapshotLine::unchanged(snapshot, tags).into());
                }
                Taken::Refused(why) => {
                    let failed = why.iter().map(|it| FailedLine::new(timeline, &it.message));
                    failed.for_each(|line| tell(line.into()));
                    findings(why, tell);
                }
                Taken::Failed(why) => tell(FailedLine::new(timeline, why).into()),
            }
        }
        for deleted in &report.newly_deleted {
            tell(SnapshotLine::taken(deleted, &[], None).into());
        }
        findings(&report.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let report = self.report;
        counts! { "snapshot" =>
            taken: self.taken(),
            unchanged: self.unchanged(),
            failed: report.failed(),
            refused: report.refused(),
            dry_run: self.dry_run,
            objects: report.objects,
            bytes: report.bytes,
            created_store: report.created_store,
            deleted: report.deleted,
        }
    }

    fn exit(&self) -> u8 {
        match (self.report.failed(), self.report.refused(), self.taken() + self.unchanged()) {
            (0, 0, _) if self.report.is_without_lorebook() => exit::PARTLY,
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

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "tag" => tags: self.len() }
    }
}

/// Everything was done, but for attachments that the store has lost.
fn exit_but_attachments(found: &[Finding]) -> u8 {
    if lost_attachments(found) == 0 { exit::DONE } else { exit::PARTLY }
}

impl Answer for restore::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.written.safety.iter().for_each(|safety| tell(SnapshotLine::new(safety, &[]).into()));
        self.written.files.iter().for_each(|file| tell(file.into()));
        self.source.origin.iter().for_each(|origin| made_of(origin, tell));
        let new = self.written.fork.iter().chain(&self.written.restored);
        new.for_each(|new| tell(SnapshotLine::new(new, &[]).into()));
        tell(RestoredLine::from(self).into());
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "restore" =>
            written: self.written.count(),
            kept: self.written.files.len() - self.written.count(),
            attachments_lost: lost_attachments(&self.findings),
            dropped_operations: self.dropped_operations,
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        exit_but_attachments(&self.findings)
    }
}

impl Answer for fork::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.made.written.files.iter().for_each(|file| tell(file.into()));
        self.made.written.fork.iter().for_each(|new| tell(SnapshotLine::new(new, &[]).into()));
        tell(RestoredLine::from(&self.made).into());
        findings(&self.made.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "fork" =>
            written: self.made.written.files.len(),
            messages: self.messages,
            attachments_lost: lost_attachments(&self.made.findings),
            dry_run: self.made.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        exit_but_attachments(&self.made.findings)
    }
}

impl Answer for undo::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        if let Some(operation) = &self.operation {
            let undone_by = self.redo.filter(|_| self.already);
            tell(OperationLine { operation, undone_by, continued_by: None }.into());
        }
        self.files.iter().for_each(|file| tell(file.into()));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "undo" =>
            operation: self.operation.as_ref().map(|operation| operation.number),
            redo: self.redo,
            refs: self.refs.len(),
            files: self.files.len(),
            attachments_lost: lost_attachments(&self.findings),
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        exit_but_attachments(&self.findings)
    }
}
