//! Answers of the verbs that create snapshots or write to the library.

use super::{Answer, Emit, files, findings, made_of, snapshots};
use crate::exit;
use crate::json_output::{Counts, Line, RestoredLine, SnapshotLine, counts};
use crate::rules::lost_attachments;
use crate::verbs::restore::fork;
use crate::verbs::snapshot::SnapshotResult;
use crate::verbs::{restore, snapshot, tag, undo};

/// Answer of `snapshot`.
pub struct Snapshots<'r> {
    /// Snapshots that were created, or would be in a dry run.
    pub report: &'r snapshot::Report,
    /// Whether nothing was stored.
    pub dry_run: bool,
}

impl Snapshots<'_> {
    fn taken(&self) -> usize {
        let is_new = |taken: &&snapshot::TimelineResult| {
            matches!(taken.result, SnapshotResult::New(..) | SnapshotResult::WouldBeNew(..))
        };
        self.report.timelines.iter().filter(is_new).count()
    }

    fn unchanged(&self) -> usize {
        let report = self.report;
        let examined = report.timelines.len() + report.unreadable.len();
        examined - self.taken() - report.failed() - report.refused() + report.untouched
    }
}

impl Answer for Snapshots<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let report = self.report;
        for finding in &report.unreadable {
            tell(Line::failed(&finding.subject, &finding.message));
        }
        for outcome in &report.timelines {
            let timeline = outcome.timeline.as_str();
            match &outcome.result {
                SnapshotResult::New(snapshot, tags) => {
                    let state = report.states.get(&snapshot.id);
                    tell(Line::Snapshot(SnapshotLine::taken(snapshot, tags, state)));
                }
                SnapshotResult::WouldBeNew(messages, before) => tell(Line::Plan {
                    timeline: &outcome.timeline,
                    messages: *messages,
                    messages_before: *before,
                }),
                SnapshotResult::Unchanged(snapshot, tags) => {
                    tell(Line::Snapshot(SnapshotLine::unchanged(snapshot, tags)));
                }
                SnapshotResult::Refused(why) => {
                    why.iter().for_each(|it| tell(Line::failed(timeline, &it.message)));
                    findings(why, tell);
                }
                SnapshotResult::Failed(why) => tell(Line::failed(timeline, why)),
            }
        }
        for deleted in &report.newly_deleted {
            tell(Line::Snapshot(SnapshotLine::taken(deleted, &[], None)));
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
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for tag::Tag { name, snapshot } in self {
            let timeline = snapshot.timeline.as_str();
            tell(Line::Tag { name, snapshot: snapshot.id, timeline });
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "tag" => tags: self.len() }
    }
}

impl Answer for restore::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        snapshots(&self.written.safety, tell);
        files(&self.written.files, tell);
        self.source.origin.iter().for_each(|origin| made_of(origin, tell));
        snapshots(self.written.fork.iter().chain(&self.written.restored), tell);
        tell(Line::Restored(RestoredLine::from(self)));
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

    fn is_partial(&self) -> bool {
        lost_attachments(&self.findings) > 0
    }
}

impl Answer for fork::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        files(&self.made.written.files, tell);
        snapshots(&self.made.written.fork, tell);
        tell(Line::Restored(RestoredLine::from(&self.made)));
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

    fn is_partial(&self) -> bool {
        lost_attachments(&self.made.findings) > 0
    }
}

impl Answer for undo::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        if let Some(operation) = &self.operation {
            let undone_by = self.redo.filter(|_| self.already);
            tell(Line::Operation { operation, undone_by, continued_by: None });
        }
        files(&self.files, tell);
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

    fn is_partial(&self) -> bool {
        lost_attachments(&self.findings) > 0
    }
}
