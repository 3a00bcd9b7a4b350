//! Answers of the verbs that maintain the store and the library.

use super::{Answer, Emit, files, findings, made_of, snapshots};
use crate::engine::copies::last_backups::LastBackup;
use crate::exit;
use crate::json_output::{CopyLine, Counts, Line, MergeLine, RestoredLine, SnapshotLine, counts};
use crate::rules::{Code, Finding, Level};
use crate::verbs::doctor::{self, FixReport, Repair};
use crate::verbs::erase::{self, TraceKind};
use crate::verbs::reconstruct::{self, ReconstructOutcome};
use crate::verbs::restore::all;
use crate::verbs::timelines::parent;
use crate::verbs::{check, config, forget, gc, init, merge, stats};

impl Answer for config::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for (key, value) in &self.settings {
            tell(Line::Setting { key: &key.name, value: value.as_deref() });
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "config" => settings: self.settings.len() }
    }
}

impl Answer for init::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let path = self.path.display().to_string();
        tell(Line::Store { path, created: self.created });
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "init" => created: self.created }
    }
}

impl Answer for check::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "check" =>
            objects: self.objects,
            snapshots: self.snapshots,
            damaged: self.damaged,
            newer: self.newer,
        }
    }

    fn exit(&self) -> u8 {
        if self.is_valid() { exit::DONE } else { exit::FAILED }
    }
}

impl Answer for stats::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.timelines.iter().map(Line::Share).for_each(&mut *tell);
        self.largest.iter().map(Line::Large).for_each(&mut *tell);
        findings(&self.left_out, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "stats" =>
            snapshots: self.snapshots,
            timelines: self.timelines.len(),
            tags: self.tags,
            bytes_as_copies: self.bytes_as_copies,
            bytes_stored: self.bytes_stored,
            bytes_shared: self.bytes_shared,
            damaged: self.damaged,
        }
    }

    fn is_ok(&self) -> bool {
        self.damaged == 0
    }
}

impl Answer for gc::Report {
    fn counts(&self) -> (&'static str, Counts) {
        let collected = &self.collected;
        counts! { "gc" =>
            objects: collected.packed.objects,
            deltas: collected.packed.deltas,
            packs_before: collected.packs_before,
            loose_before: collected.loose_before,
            bytes_before: collected.bytes_before,
            bytes_after: collected.bytes_after,
            dropped: collected.dropped,
            spared: collected.spared,
            expired: self.expired,
            changed: collected.changed,
            dry_run: self.dry_run,
        }
    }
}

impl Answer for forget::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        snapshots(self.timelines.iter().flat_map(|timeline| &timeline.forgotten), tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "forget" =>
            forgotten: self.forgotten(),
            kept: self.kept,
            rewritten: self.rewritten,
            bytes: self.bytes,
            dry_run: self.dry_run,
        }
    }
}

/// Answer of `timelines --parent`.
impl Answer for parent::Parent {
    fn counts(&self) -> (&'static str, Counts) {
        counts! { "timelines" => rewritten: self.rewritten }
    }
}

impl Answer for reconstruct::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for outcome in &self.outcomes {
            match &outcome.result {
                ReconstructOutcome::Made(snapshot, origin) => {
                    let line = |it: &'a _| Line::Snapshot(SnapshotLine::taken(it, &[], None));
                    snapshot.iter().for_each(|snapshot| tell(line(snapshot)));
                    made_of(origin, tell);
                }
                ReconstructOutcome::Known(snapshot) => {
                    tell(Line::Snapshot(SnapshotLine::unchanged(snapshot, &[])));
                }
                ReconstructOutcome::Lost(why) => findings(why, tell),
                ReconstructOutcome::OfParent(_) => {}
            }
        }
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "reconstruct" =>
            reconstructed: self.count(|found| matches!(found, ReconstructOutcome::Made(..))),
            known: self.count(|found| matches!(found, ReconstructOutcome::Known(_))),
            lost: self.count(|found| matches!(found, ReconstructOutcome::Lost(_))),
            of_parent: self.count(|found| matches!(found, ReconstructOutcome::OfParent(_))),
            taken_first: self.taken_first,
            rewritten: self.rewritten,
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        let lost = self.count(|found| matches!(found, ReconstructOutcome::Lost(_)));
        let there = self.count(|found| {
            matches!(found, ReconstructOutcome::Made(..) | ReconstructOutcome::Known(_))
        });
        match (lost, there) {
            (0, _) => exit::DONE,
            (_, 0) => exit::REFUSED,
            _ => exit::PARTLY,
        }
    }
}

/// Answer of `restore --all`.
impl Answer for all::Restored {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        for outcome in &self.timelines {
            match &outcome.result {
                Ok(report) => {
                    snapshots(&report.written.safety, tell);
                    files(&report.written.files, tell);
                    snapshots(&report.written.restored, tell);
                    tell(Line::Restored(RestoredLine::from(report)));
                    let is_own = |it: &&Finding| it.code != Code::ReloadSillytavern;
                    findings(report.findings.iter().filter(is_own), tell);
                }
                Err(error) => tell(Line::failed(outcome.timeline.as_str(), error.to_string())),
            }
        }
        findings(self.reload(), tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let restored: Vec<_> = self.restored().collect();
        let written: usize = restored.iter().map(|report| report.written.count()).sum();
        let files: usize = restored.iter().map(|report| report.written.files.len()).sum();
        let left_out: Vec<_> = self.left_out.iter().map(|name| name.to_string()).collect();
        counts! { "restore" =>
            restored: restored.len(),
            failed: self.timelines.len() - restored.len(),
            left_out: left_out,
            written: written,
            kept: files - written,
            attachments_lost: self.attachments_lost(),
            dropped_operations: 0,
            dry_run: self.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        let failed = self.timelines.iter().filter_map(|it| it.result.as_ref().err());
        let codes: Vec<_> = failed.map(|error| error.exit()).collect();
        match (codes.len(), self.timelines.len() - codes.len()) {
            (0, _) if self.attachments_lost() == 0 => exit::DONE,
            (0, _) => exit::PARTLY,
            (_, 0) if codes.iter().all(|code| *code == exit::REFUSED) => exit::REFUSED,
            (_, 0) => exit::FAILED,
            _ => exit::PARTLY,
        }
    }
}

/// The user's decision about the plan of an erasure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The user only asked for the plan.
    Planned,
    /// The user answered no.
    Declined,
    /// The timelines were erased, but not their copies outside the store.
    Erased,
    /// Timelines and copies were erased.
    ErasedWithCopies,
}

/// Answer of `erase`. The removed files are listed in the plan, because they no longer exist when
/// the report is made.
pub struct Erasure<'r> {
    /// The plan that the user saw.
    pub plan: &'r erase::Report,
    /// The result; equal to the plan if nothing was erased.
    pub report: &'r erase::Report,
    /// Files and folders from which copies of the erased timelines were removed.
    pub removed: &'r [String],
    /// The answer to the question that followed the plan.
    pub decision: Decision,
}

impl<'r> Erasure<'r> {
    fn left_backups(&self) -> impl Iterator<Item = &'r LastBackup> {
        self.report.backups.iter().filter(|taken| !self.removed.contains(&taken.destination))
    }
}

impl Answer for Erasure<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.report.timelines.iter().map(Line::Erased).for_each(&mut *tell);
        for trace in &self.plan.traces {
            let is_gone = trace.kind == TraceKind::Mailbox && !self.report.dry_run;
            let removed = is_gone || self.removed.contains(&trace.path);
            tell(Line::Trace { trace, removed });
        }
        self.left_backups().for_each(|taken| tell(Line::Copy(CopyLine::from(taken))));
    }

    fn counts(&self) -> (&'static str, Counts) {
        let report = self.report;
        let snapshots: usize = report.timelines.iter().map(|timeline| timeline.snapshots).sum();
        counts! { "erase" =>
            timelines: report.timelines.len(),
            snapshots: snapshots,
            forks: report.forks.len(),
            backups: self.left_backups().count(),
            bytes: report.bytes,
            dry_run: report.dry_run,
        }
    }

    fn exit(&self) -> u8 {
        // A file that cannot be read may still contain a copy.
        let is_unsure = self.plan.traces.iter().any(|trace| trace.kind == TraceKind::Unreadable);
        match self.decision {
            Decision::Declined => exit::REFUSED,
            Decision::ErasedWithCopies if is_unsure => exit::PARTLY,
            _ => exit::DONE,
        }
    }

    fn is_ok(&self) -> bool {
        self.exit() != exit::PARTLY
    }
}

impl Answer for merge::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        MergeLine::all(&self.merged).into_iter().map(Line::Merge).for_each(&mut *tell);
        snapshots(&self.safety, tell);
        tell(Line::File(&self.file));
        findings(&self.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let merged = &self.merged;
        counts! { "merge" =>
            added: merged.added.len(),
            removed: merged.removed.len(),
            edited: merged.edited.len(),
            renumbered: merged.renumbered.len(),
            conflicts: merged.conflicts.len(),
            written: !self.planned && self.file.replaces,
            base: self.base.as_ref().map(|base| base.id.to_string()),
        }
    }
}

fn examined(report: &doctor::Report, repairs: usize, fixed: usize) -> (&'static str, Counts) {
    let of = |level| report.findings.iter().filter(|it| it.level == level).count();
    counts! { "doctor" =>
        timelines: report.timelines,
        lorebooks: report.lorebooks,
        errors: of(Level::Error),
        warnings: of(Level::Warning),
        infos: of(Level::Info),
        repairs: repairs,
        fixed: fixed,
    }
}

fn has_error<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> bool {
    findings.into_iter().any(|finding| finding.level == Level::Error)
}

/// Answer of `doctor` before any repair.
impl Answer for doctor::Report {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        findings(&self.findings, tell);
        for (repair, choice) in self.possible_repairs() {
            tell(Line::Repair { repair, choice, done: false });
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        examined(self, self.repairs.len(), 0)
    }

    fn exit(&self) -> u8 {
        if has_error(&self.findings) { exit::FAILED } else { exit::DONE }
    }
}

/// Answer of one confirmed repair.
pub struct Repaired<'r> {
    /// The confirmed repair.
    pub repair: &'r Repair,
    /// Its result.
    pub fixed: &'r FixReport,
}

impl Answer for Repaired<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let done = self.fixed.done == [true];
        tell(Line::Repair { repair: self.repair, choice: None, done });
        files(&self.fixed.files, tell);
        findings(&self.fixed.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        counts! { "repair" => fixed: self.fixed.done.iter().filter(|done| **done).count() }
    }

    fn exit(&self) -> u8 {
        if self.fixed.done != [true] {
            exit::REFUSED
        } else if has_error(&self.fixed.findings) {
            exit::PARTLY
        } else {
            exit::DONE
        }
    }
}

/// Answer of `doctor` with the repairs that the user chose.
pub struct Doctored<'r> {
    /// The examination that proposed the repairs.
    pub report: &'r doctor::Report,
    /// Repairs that the user selected where several were possible.
    pub decided: &'r [Repair],
    /// Repairs that the user accepted, in the order of `fixed.done`.
    pub chosen: &'r [&'r Repair],
    /// Results of the accepted repairs.
    pub fixed: &'r FixReport,
}

impl<'r> Doctored<'r> {
    /// Returns every repair, and whether it was made.
    pub fn repairs(&self) -> impl Iterator<Item = (&'r Repair, bool)> {
        let done = self.done();
        let is_done = move |repair| done.iter().any(|done| std::ptr::eq(*done, repair));
        let all = self.report.repairs.iter().chain(self.decided);
        all.map(move |repair| (repair, is_done(repair)))
    }

    /// Returns the repairs that were made.
    pub fn done(&self) -> Vec<&'r Repair> {
        let chosen = self.chosen.iter().zip(&self.fixed.done);
        chosen.filter(|(_, done)| **done).map(|(repair, _)| *repair).collect()
    }
}

impl Answer for Doctored<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        findings(&self.report.findings, tell);
        for (repair, done) in self.repairs() {
            tell(Line::Repair { repair, choice: None, done });
        }
        for (repair, choice) in self.report.possible_repairs() {
            let is_open = !self.decided.iter().any(|decided| decided.what == repair.what);
            if choice.is_some() && is_open {
                tell(Line::Repair { repair, choice, done: false });
            }
        }
        files(&self.fixed.files, tell);
        findings(&self.fixed.findings, tell);
    }

    fn counts(&self) -> (&'static str, Counts) {
        let repairs = self.report.repairs.len() + self.decided.len();
        examined(self.report, repairs, self.done().len())
    }

    fn exit(&self) -> u8 {
        let done = self.done();
        let is_partly = has_error(&self.fixed.findings) || done.len() < self.chosen.len();
        if is_partly {
            if done.is_empty() { exit::REFUSED } else { exit::PARTLY }
        } else if has_error(self.report.left(&done)) {
            exit::FAILED
        } else {
            exit::DONE
        }
    }
}
