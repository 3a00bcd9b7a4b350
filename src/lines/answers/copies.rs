//! Those of verbs that copy the store elsewhere and back.

use super::super::{CopyLine, Counts, ImportLine, SyncLine, TagLine, TakenInLine, counts, exit};
use super::answer::{Answer, Tell};
use super::parts::findings;
use crate::engine::copies::last_backups::Since;
use crate::engine::copies::mirror;
use crate::engine::files::Action;
use crate::engine::receive::Outcome;
use crate::engine::take_first::TakenFirst;
use crate::rules::{Finding, Level, lost_attachments};
use crate::verbs::backup::file;
use crate::verbs::import::chat_backups::{self, ChatBackupOutcome};
use crate::verbs::import::stvc_backup;
use crate::verbs::sync;

/// `backup`, and the snapshots that were created before it.
pub struct BackedUp<'r, R> {
    pub report: &'r R,
    pub first: &'r TakenFirst,
}

impl<R> BackedUp<'_, R> {
    /// What is odd is backed up as it is, as far as it can be read, but does not come in elsewhere.
    fn exit_of(&self, odd: usize, found: &[Finding]) -> u8 {
        let left_out = odd + lost_attachments(found) + self.first.not_taken;
        if left_out == 0 { exit::DONE } else { exit::PARTLY }
    }
}

impl Answer for BackedUp<'_, file::Report> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(CopyLine::from(&self.report.backup).into());
        findings(&self.report.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (report, header) = (self.report, &self.report.header);
        counts! { "backup" =>
            snapshots: header.snapshots,
            timelines: header.timelines.len(),
            objects: header.objects,
            bytes: report.backup.bytes,
            encrypted: report.backup.encrypted,
            odd: report.odd,
            attachments_lost: lost_attachments(&report.findings),
            taken_first: self.first.new,
            not_taken: self.first.not_taken,
        }
    }

    fn exit(&self) -> u8 {
        self.exit_of(self.report.odd, &self.report.findings)
    }
}

impl Answer for BackedUp<'_, mirror::Report> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        tell(CopyLine::from(&self.report.backup).into());
        findings(&self.report.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let report = self.report;
        counts! { "backup" =>
            snapshots: report.snapshots,
            new_snapshots: report.new_snapshots,
            timelines: report.timelines,
            objects: report.copied.map(|copied| copied.objects),
            bytes: report.copied.map(|copied| copied.bytes),
            moved: report.moved,
            ahead: report.ahead,
            created: report.created,
            odd: report.odd,
            attachments_lost: lost_attachments(&report.findings),
            taken_first: self.first.new,
            not_taken: self.first.not_taken,
        }
    }

    fn exit(&self) -> u8 {
        self.exit_of(self.report.odd, &self.report.findings)
    }
}

/// `backup --last`.
impl Answer for Vec<Since> {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.iter().for_each(|since| tell(CopyLine::from(since).into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "backup" => backups: self.len() }
    }
}

impl Answer for chat_backups::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        findings(&self.findings, tell);
        self.entries.iter().for_each(|entry| tell(ImportLine::from(entry).into()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "import" =>
            imported: self.count(|outcome| matches!(outcome, ChatBackupOutcome::Imported(_))),
            known: self.count(|outcome| matches!(outcome, ChatBackupOutcome::Known(_))),
            empty: self.count(|outcome| *outcome == ChatBackupOutcome::Empty),
            failed: self.count(|outcome| matches!(outcome, ChatBackupOutcome::Failed(_))),
            new_timelines: self.new_timelines.len(),
            taken_first: self.taken_first,
            rewritten: self.rewritten,
            bytes_there: self.bytes_there,
            bytes_written: self.bytes_written,
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        let is_complete = self.findings.iter().all(|finding| finding.level < Level::Error);
        let failed = self.count(|outcome| matches!(outcome, ChatBackupOutcome::Failed(_)));
        match failed {
            0 if is_complete => exit::DONE,
            failed if failed == self.entries.len() => exit::FAILED,
            _ => exit::PARTLY,
        }
    }
}

impl Answer for stvc_backup::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.entries.iter().for_each(|entry| tell(TakenInLine::from(entry).into()));
        for tag in &self.tags {
            let entry = self.entries.iter().find(|entry| entry.head.id == tag.snapshot);
            let timeline = entry.map_or("", |entry| entry.timeline.as_str());
            tell(TagLine { name: &tag.here, snapshot: tag.snapshot, timeline }.into());
        }
        self.files.iter().for_each(|file| tell(file.into()));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "import" =>
            new: self.count(|outcome| *outcome == Outcome::New),
            forward: self.count(|outcome| *outcome == Outcome::Forward),
            known: self.count(|outcome| *outcome == Outcome::Known),
            beside: self.count(|it| matches!(it, Outcome::Beside(_) | Outcome::Tagged(_))),
            tags: self.tags.len(),
            left_out: self.left_out,
            attachments_lost: lost_attachments(&self.findings),
            objects: self.objects,
            bytes_written: self.bytes,
            created_store: self.created_store,
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        let is_complete = self.left_out == 0 && lost_attachments(&self.findings) == 0;
        if is_complete { exit::DONE } else { exit::PARTLY }
    }
}

/// Counts what a sync left as it was on one of the sides.
fn left(report: &sync::Report) -> usize {
    report.count(|it| matches!(it, Outcome::Left(_) | Outcome::ForkOfErased))
}

fn conflicts(report: &sync::Report) -> usize {
    report.entries.iter().filter(|entry| entry.conflict.is_some()).count()
}

impl Answer for sync::Report {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        self.entries.iter().for_each(|entry| tell(SyncLine::from(entry).into()));
        for tag in &self.tags {
            tell(TagLine { name: &tag.here, snapshot: tag.snapshot, timeline: "" }.into());
        }
        self.files.iter().for_each(|file| tell(file.into()));
        self.sent.iter().for_each(|sent| tell(CopyLine::from(&sent.backup).into()));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "sync" =>
            taken_first: self.taken_first,
            known: self.count(|outcome| *outcome == Outcome::Known),
            new: self.count(|outcome| *outcome == Outcome::New),
            renamed: self.count(|outcome| *outcome == Outcome::Renamed),
            forward: self.count(|outcome| *outcome == Outcome::Forward),
            merged: self.count(|outcome| *outcome == Outcome::Merged),
            apart: self.count(|outcome| matches!(outcome, Outcome::Apart(_))),
            erased: self.count(|outcome| *outcome == Outcome::Erased),
            left: left(self),
            left_there: self.left_there,
            failed: self.failed,
            conflicts: conflicts(self),
            tags: self.tags.len(),
            files: self.files.iter().filter(|file| file.action != Action::Keep).count(),
            attachments_lost: lost_attachments(&self.findings),
            sent: self.sent.as_ref().map(|sent| sent.new_snapshots),
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        let open = left(self) + self.left_there + self.failed + conflicts(self);
        if open + lost_attachments(&self.findings) == 0 { exit::DONE } else { exit::PARTLY }
    }
}
