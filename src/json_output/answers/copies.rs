//! Answers of the verbs that copy snapshots to and from other places.

use super::{Answer, Emit, files, findings};
use crate::engine::copies::last_backups::{BackupAge, LastBackup};
use crate::engine::copies::mirror;
use crate::engine::files::Action;
use crate::engine::receive::{Outcome, ReceivedTimeline};
use crate::engine::safety_snapshots::SafetySnapshots;
use crate::exit;
use crate::json_output::{CopyLine, Counts, Line, counts};
use crate::rules::{Code, Finding, Level, lost_attachments};
use crate::verbs::backup::file;
use crate::verbs::import::chat_backups::{self, ChatBackupOutcome};
use crate::verbs::import::stvc_backup;
use crate::verbs::remote::{self, Remote};
use crate::verbs::restore::all::Restored;
use crate::verbs::sync;
use crate::words::shell;

/// Answer of `backup`: the backup, and the snapshots that were created before it.
pub struct BackedUp<'r> {
    /// The backup itself.
    pub backup: Backup<'r>,
    /// Snapshots of the current files, which the backup includes.
    pub first: &'r SafetySnapshots,
}

/// A backup in one file, or a mirror in a folder or on a server.
pub enum Backup<'r> {
    /// An archive file, or the same data on standard output.
    File(&'r file::Report),
    /// A git repository.
    Mirror(&'r mirror::Report),
}

impl<'r> Backup<'r> {
    fn parts(&self) -> (&'r LastBackup, &'r [Finding], usize) {
        match self {
            Self::File(report) => (&report.backup, &report.findings, report.invalid),
            Self::Mirror(report) => (&report.backup, &report.findings, report.invalid),
        }
    }
}

/// A job that runs in the background.
pub enum InBackground<T> {
    /// No job was started.
    NotStarted,
    /// The job is running.
    Running,
    /// The job is finished.
    Finished(T),
}

impl<T> InBackground<T> {
    fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }
}

impl Answer for InBackground<(LastBackup, Vec<Finding>)> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        if let Self::Finished((backup, found)) = self {
            tell(Line::Copy(backup.into()));
            findings(found, &mut *tell);
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "backup" => running: self.is_running() }
    }
}

impl Answer for InBackground<sync::Report> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        if let Self::Finished(report) = self {
            report.lines(tell);
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (command, mut counts) = counts! { "sync" => running: self.is_running() };
        if let Self::Finished(report) = self {
            counts.0.extend(report.counts().1.0);
        }
        (command, counts)
    }

    fn is_partial(&self) -> bool {
        matches!(self, Self::Finished(report) if report.is_partial())
    }
}

impl Answer for BackedUp<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let (backup, found, _) = self.backup.parts();
        tell(Line::Copy(backup.into()));
        findings(found, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (command, mut counts) = match self.backup {
            Backup::File(report) => counts! { "backup" =>
                snapshots: report.header.snapshots,
                timelines: report.header.timelines.len(),
                objects: report.header.objects,
                bytes: report.backup.bytes,
                encrypted: report.backup.encrypted,
                up_to_date: report.up_to_date,
            },
            Backup::Mirror(report) => counts! { "backup" =>
                snapshots: report.snapshots,
                new_snapshots: report.new_snapshots,
                timelines: report.timelines,
                objects: report.copied.map(|copied| copied.objects),
                bytes: report.copied.map(|copied| copied.bytes),
                moved: report.moved,
                ahead: report.ahead,
                created: report.created,
            },
        };
        let (_, found, invalid) = self.backup.parts();
        let (_, rest) = counts! { command =>
            invalid: invalid,
            attachments_lost: lost_attachments(found),
            taken_first: self.first.new,
            not_taken: self.first.not_taken,
        };
        counts.0.extend(rest.0);
        (command, counts)
    }

    fn is_partial(&self) -> bool {
        let (_, found, invalid) = self.backup.parts();
        invalid + lost_attachments(found) + self.first.not_taken > 0
    }
}

impl Answer for remote::Added {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        tell(remote_line(&self.remote, self.recovery_key.as_deref()));
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "remote" => remotes: 1, created: self.created }
    }
}

/// Answer of the other actions of `remote`.
impl Answer for Vec<Remote> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.iter().map(|remote| remote_line(remote, None)).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "remote" => remotes: self.len() }
    }
}

fn remote_line<'a>(remote: &'a Remote, recovery_key: Option<&'a str>) -> Line<'a> {
    let Remote { name, address, id, .. } = remote;
    Line::Remote { name, address, id, encrypted: remote.is_encrypted(), recovery_key }
}

/// Answer of `backup --last`.
impl Answer for Vec<BackupAge> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.iter().map(|since| Line::Copy(since.into())).for_each(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "backup" => backups: self.len() }
    }
}

impl Answer for chat_backups::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        findings(&self.findings, tell);
        for backup in &self.entries {
            let (outcome, timeline, message) = match &backup.outcome {
                ChatBackupOutcome::Imported(timeline) => ("imported", Some(timeline), None),
                ChatBackupOutcome::Known(timeline) => ("known", Some(timeline), None),
                ChatBackupOutcome::Empty => ("empty", None, None),
                ChatBackupOutcome::Failed(why) => ("failed", None, Some(why.as_str())),
            };
            tell(Line::Backup { backup, outcome, timeline, message });
        }
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
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for entry in &self.entries {
            tell(Line::TakenIn {
                timeline: &entry.timeline,
                outcome: entry.outcome.word(),
                name: match &entry.outcome {
                    Outcome::Beside(name) => name.as_str(),
                    Outcome::Tagged(tag) => tag,
                    _ => entry.timeline.as_str(),
                },
                head: entry.head.id,
                messages: entry.head.messages,
                snapshots: entry.snapshots,
            });
        }
        for tag in &self.tags {
            let entry = self.entries.iter().find(|entry| entry.head.id == tag.snapshot);
            let timeline = entry.map_or("", |entry| entry.timeline.as_str());
            tell(Line::Tag { name: &tag.here, snapshot: tag.snapshot, timeline });
        }
        files(&self.files, tell);
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "import" =>
            new: self.count(|outcome| *outcome == Outcome::New),
            forward: self.count(|outcome| *outcome == Outcome::Forward),
            known: self.count(|outcome| *outcome == Outcome::Known),
            renamed: self.count(|it| matches!(it, Outcome::Beside(_) | Outcome::Tagged(_))),
            tags: self.tags.len(),
            left_out: self.left_out,
            attachments_lost: lost_attachments(&self.findings),
            objects: self.objects,
            bytes_written: self.bytes,
            created_store: self.created_store,
            dry_run: self.dry_run,
        }
    }

    fn is_partial(&self) -> bool {
        self.left_out + lost_attachments(&self.findings) > 0
    }
}

/// Answer of `import --restore`, after the lines of the import.
pub struct Recovered<'r> {
    /// The import of the backup.
    pub imported: &'r stvc_backup::Report,
    /// The restore of every timeline.
    pub restored: &'r Restored,
}

impl Answer for Recovered<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.restored.lines(tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let (command, mut counts) = self.imported.counts();
        let is_new = |name: &str| ["restored", "failed", "written", "kept"].contains(&name);
        let (_, restored) = self.restored.counts();
        counts.0.extend(restored.0.into_iter().filter(|(name, _)| is_new(name)));
        (command, counts)
    }

    fn is_partial(&self) -> bool {
        self.imported.is_partial() || !self.restored.is_ok()
    }
}

/// Counts the timelines that a sync skipped.
fn left(report: &sync::Report) -> usize {
    report.count(|it| matches!(it, Outcome::Left(_) | Outcome::ForkOfErased))
}

fn conflicts(report: &sync::Report) -> usize {
    report.entries.iter().filter(|entry| entry.conflict.is_some()).count()
}

/// Returns the target and the source of the merge that resolves a conflict. A lorebook that a sync
/// set aside under another name is merged into the lorebook that chats use.
pub fn sides(entry: &ReceivedTimeline) -> (&str, &str) {
    let there = entry.timeline.as_str();
    let aside = entry.set_aside().map_or(there, |aside| aside.as_str());
    if entry.timeline.is_chat() { (aside, there) } else { (there, aside) }
}

fn synced(entry: &ReceivedTimeline) -> Line<'_> {
    let (other, why) = match &entry.outcome {
        Outcome::Renamed | Outcome::Merged => (entry.former.as_ref(), None),
        Outcome::Apart(other) => (Some(other), None),
        Outcome::ForkOfErased => (None, Some("its parent chat was erased")),
        Outcome::Left(why) => (None, Some(*why)),
        _ => (None, None),
    };
    let conflict = entry.conflict.as_ref();
    let device = conflict.and_then(|conflict| conflict.set_aside_by.as_ref());
    Line::Synced {
        timeline: &entry.timeline,
        outcome: entry.outcome.word(),
        other,
        why,
        head: entry.head.id,
        snapshots: entry.snapshots,
        lorebook: conflict.map(|conflict| conflict.book.as_str()),
        conflicts: conflict.map_or(0, |conflict| conflict.count()),
        device: device.map(|device| device.name.as_str()),
        settle: entry.set_aside().map(|_| {
            let (into, from) = sides(entry);
            format!("stvc merge {} {}", shell(into), shell(from))
        }),
    }
}

impl Answer for sync::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.entries.iter().for_each(|entry| tell(synced(entry)));
        for tag in &self.tags {
            tell(Line::Tag { name: &tag.here, snapshot: tag.snapshot, timeline: "" });
        }
        files(&self.files, tell);
        self.sent.iter().for_each(|sent| tell(Line::Copy(CopyLine::from(&sent.backup))));
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
            set_aside: self.count(|outcome| matches!(outcome, Outcome::Apart(_))),
            erased: self.count(|outcome| *outcome == Outcome::Erased),
            skipped: left(self),
            not_received: self.left_there,
            failed: self.failed,
            conflicts: conflicts(self),
            tags: self.tags.len(),
            files: self.files.iter().filter(|file| file.action != Action::Keep).count(),
            attachments_lost: lost_attachments(&self.findings),
            sent: self.sent.as_ref().map(|sent| sent.new_snapshots),
            dry_run: self.dry_run,
        }
    }

    fn is_partial(&self) -> bool {
        let open = left(self) + self.left_there + self.failed + conflicts(self);
        let is_divided = self.findings.iter().any(|found| found.code == Code::RemoteDivided);
        open + lost_attachments(&self.findings) > 0 || is_divided
    }
}
