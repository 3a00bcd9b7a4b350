//! Restores the latest snapshot of every timeline in one operation, for `--all`.
//!
//! A timeline that is refused or fails does not stop the other timelines. The content of the files
//! is read from the store again when the files are written, so memory use does not grow with the
//! size of the library. Characters and lorebooks are restored before chats, because chats need
//! them. If several timelines contain a lorebook or group that has no timeline of its own, the
//! latest version of this file is restored.

use std::collections::{HashMap, HashSet};
use std::io;

use super::job::Mode;
use super::options::{Options, Overwrite, Report, Target};
use super::restore_moment;
use crate::archive::{Blake3, FileRecord, Kind, Role, Snapshot, read_manifest};
use crate::engine::files::{FileAction, WritePermissions};
use crate::engine::operation::{Operation, RunMode};
use crate::engine::{self, Workspace};
use crate::history::History;
use crate::history::moment::Moment;
use crate::progress::Monitor;
use crate::rules::{Code, Finding, lost_attachments};
use crate::st::{self, TimelineName};
use crate::store::{Store, unless_lost};
use crate::verbs::Result;

/// The outcome for one timeline.
pub struct RestoredTimeline {
    /// Name of the timeline whose latest snapshot was restored.
    pub timeline: TimelineName,
    /// The restore, or the error that prevented it.
    pub result: Result<Report>,
}

/// The outcomes for all timelines.
#[non_exhaustive]
pub struct Restored {
    /// Every timeline that was selected.
    pub timelines: Vec<RestoredTimeline>,
    /// Timelines that were not restored, because the user had deleted them.
    pub left_out: Vec<TimelineName>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl Restored {
    /// Returns the reports of the timelines that were restored.
    pub fn restored(&self) -> impl Iterator<Item = &Report> {
        self.timelines.iter().filter_map(|it| it.result.as_ref().ok())
    }

    /// Counts the attachments that could not be restored.
    pub fn attachments_lost(&self) -> usize {
        self.restored().map(|report| lost_attachments(&report.findings)).sum()
    }

    /// Returns the finding that tells the user to reload SillyTavern's page. It is the same for all
    /// timelines.
    pub fn reload(&self) -> Option<&Finding> {
        let mut findings = self.restored().flat_map(|report| &report.findings);
        findings.find(|finding| finding.code == Code::ReloadSillytavern)
    }
}

/// Options that apply to every timeline.
#[derive(Clone, Debug, Default)]
pub struct AllOptions {
    /// Also restore timelines that the user deleted.
    pub deleted: bool,
    /// Files that may be replaced.
    pub overwrite: Overwrite,
    /// Permissions that protect from SillyTavern's own saves.
    pub permissions: WritePermissions,
    /// Also write attachments with uncommon file types that the library never had.
    pub any_attachments: bool,
    /// Only plan the restores.
    pub dry_run: bool,
}

/// Restores every timeline.
pub fn restore_all(
    workspace: &Workspace,
    wanted: &AllOptions,
    monitor: &mut dyn Monitor,
) -> Result<Restored> {
    let (store, held) = workspace.open(RunMode::of_dry_run(wanted.dry_run))?;
    workspace.library()?;
    let history = History::load(&store)?;
    let heads: Vec<_> = history.heads().map(|(_, head)| head.clone()).collect();
    let (gone, mut heads): (Vec<_>, Vec<_>) =
        heads.into_iter().partition(|head| !wanted.deleted && head.kind == Kind::DELETED);
    let order = |head: &Snapshot| (head.timeline.is_chat(), std::cmp::Reverse(head.time.seconds));
    heads.sort_by_key(|head| (order(head), head.timeline.clone()));
    let own = history.heads().map(|(name, _)| name.file().to_string()).collect();
    let all = RestoreAll { workspace, store: &store, history: &history, own, wanted };
    let mut failed = Vec::new();
    let mut timelines = loop {
        let (mut outcomes, operation) = all.plan(&heads, monitor)?;
        let Some(held) = &held else { break outcomes };
        monitor.begin("writing files", None);
        match operation.finish_leaving_saved(held) {
            Ok(_) => break outcomes,
            Err(engine::Error::SavedByOther { paths, .. }) => {
                outcomes.iter_mut().for_each(|outcome| outcome.was_left_alone(&paths));
                break outcomes;
            }
            // A file that cannot be written stops only the timelines that contain this file. The
            // restore of the other timelines is planned again.
            Err(error) => {
                let prevented = prevented_by(&error, &outcomes);
                if prevented.is_empty() {
                    return Err(error.into());
                }
                heads.retain(|head| prevented.iter().all(|other| other.timeline != head.timeline));
                failed.extend(prevented);
            }
        }
    };
    timelines.append(&mut failed);
    timelines.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    let left_out = gone.into_iter().map(|head| head.timeline).collect();
    Ok(Restored { timelines, left_out, dry_run: wanted.dry_run })
}

struct RestoreAll<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    history: &'a History,
    /// Paths of the files that have a timeline of their own.
    own: HashSet<String>,
    wanted: &'a AllOptions,
}

impl<'a> RestoreAll<'a> {
    fn plan(
        &self,
        heads: &[Snapshot],
        monitor: &mut dyn Monitor,
    ) -> Result<(Vec<RestoredTimeline>, Operation<'a>)> {
        let reader = self.store.reader();
        let mut operation = Operation::new(self.workspace, self.store, Some("before a restore"));
        // For each lorebook: the hash of the version to restore, and the timeline that contains
        // this version.
        let mut books: HashMap<String, (Blake3, TimelineName)> = HashMap::new();
        let mut outcomes = Vec::new();
        monitor.begin("restoring timelines", Some(heads.len() as u64));
        for head in heads {
            let timeline = head.timeline.clone();
            let manifest = unless_lost(read_manifest(&reader, head.tree))?;
            let book =
                manifest.as_ref().and_then(|manifest| manifest.file(Role::Lorebook)).cloned();
            let newer = book.as_ref().and_then(|book| {
                books.get(&book.path).filter(|(written, _)| *written != book.blake3)
            });
            let mut note = newer.map(|(_, with)| newer_book(head, with));
            let mut only = note.is_some().then_some(Role::Chat);
            // A lorebook with a timeline of its own is restored from that timeline.
            let is_own = |book: &FileRecord| self.own.contains(&book.path);
            if head.timeline.is_chat() && book.as_ref().is_some_and(is_own) {
                (note, only) = (None, Some(Role::Chat));
            }
            let AllOptions { overwrite, permissions, any_attachments, dry_run, .. } =
                self.wanted.clone();
            let options = Options {
                snapshot: head.id.to_string(),
                target: Target::InPlace { only, overwrite, permissions },
                any_attachments,
                dry_run,
                ..Options::default()
            };
            // The lorebook in the snapshot suffices: a newer lorebook is restored from its own
            // timeline, or from the latest timeline that contains it.
            let moment = &Moment::latest(head.clone());
            let before = operation.point();
            let mode = if dry_run { Mode::Plan } else { Mode::Part(&mut operation) };
            let (workspace, store, history) = (self.workspace, self.store, self.history);
            let planned = restore_moment(workspace, store, mode, history, moment, &options);
            let mut result = planned.and_then(|report| {
                operation.release(&before)?;
                Ok(report)
            });
            if result.is_err() {
                operation.back_to(&before);
            }
            // The disk is full or missing, so no timeline can be restored.
            if operation.pack.is_broken() {
                result?;
                continue;
            }
            if let Ok(report) = &mut result {
                report.findings.extend(note);
            }
            if let (Ok(_), Some(book)) = (&result, book) {
                books.entry(book.path).or_insert((book.blake3, timeline.clone()));
            }
            outcomes.push(RestoredTimeline { timeline, result });
            monitor.advance(1);
        }
        Ok((outcomes, operation))
    }
}

impl RestoredTimeline {
    /// Replaces the outcome by an error if files of this timeline were not written because another
    /// program saved them in the meantime.
    fn was_left_alone(&mut self, paths: &[String]) {
        let Ok(report) = &self.result else { return };
        let files = &report.written.files;
        let own = |path: &&String| files.iter().any(|file| file.path.as_str() == *path);
        let paths: Vec<_> = paths.iter().filter(own).cloned().collect();
        if !paths.is_empty() {
            let others = files.len() - paths.len();
            self.result = Err(engine::Error::SavedByOther { paths, others }.into());
        }
    }
}

/// Returns the timelines that contain the file or folder that could not be written, with this
/// error. The list is empty if the cause is the disk and not the file.
fn prevented_by(error: &engine::Error, outcomes: &[RestoredTimeline]) -> Vec<RestoredTimeline> {
    let engine::Error::Reverted { source } = error else { return Vec::new() };
    let engine::Error::St(st::Error::Io { path, source }) = source.as_ref() else {
        return Vec::new();
    };
    let is_of_file = matches!(
        source.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::AlreadyExists
    );
    if !is_of_file {
        return Vec::new();
    }
    let has = |report: &Report| {
        let written = &report.written;
        let is_at = |file: &FileAction| file.path.under(&written.root).starts_with(path);
        written.files.iter().any(is_at)
    };
    let prevented = outcomes.iter().filter(|outcome| outcome.result.as_ref().is_ok_and(has));
    let why = || st::Error::Io {
        path: path.clone(),
        source: io::Error::new(source.kind(), source.to_string()),
    };
    let failed = |outcome: &RestoredTimeline| RestoredTimeline {
        timeline: outcome.timeline.clone(),
        result: Err(why().into()),
    };
    prevented.map(failed).collect()
}

fn newer_book(head: &Snapshot, with: &TimelineName) -> Finding {
    let message = format!("its lorebook was restored from {with}, which has a newer version");
    Finding::new(Code::LorebookNewer, head.timeline.as_str(), message)
        .remedy("run `stvc restore NAME --as OTHER` to restore this chat with its own lorebook")
}
