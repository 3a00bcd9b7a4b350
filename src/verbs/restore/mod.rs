//! Restores a snapshot's files under their own names, into another folder, or as a new timeline.
//!
//! Order: rebuild the files and compare them with the manifest; make the requested changes; apply
//! the rules; find the files that would be replaced and, with `overwrite`, store them; write all
//! files in one operation. Nothing is written before all files are rebuilt.

pub mod all;
mod elsewhere;
pub mod fork;
mod in_place;
mod job;
mod new_timeline;
mod options;
mod readiness;

use std::borrow::Cow;

use crate::archive::{Role, State};
use crate::auto_recap::{self, CheckpointState, QueueIntent, uses_auto_recap};
use crate::engine::operation::RunMode;
use crate::engine::{self, Workspace, gate, tags, verdict_findings};
use crate::history::moment::{Moment, NameKind};
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{History, latest_valid};
use crate::parallel::both;
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Library, LibraryPath, TimelineFiles};
use crate::store::Store;
use crate::verbs::{Error, Result};
use job::{Mode, RestoreJob, SnapshotContents};
pub use options::{
    Options, Overwrite, QueueChange, Report, RestoreRange, RestoreResult, Source, Target,
};

/// Restores a snapshot to the target in `options`. In a dry run, only plans the restore.
pub fn restore(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    restore_named(workspace, options, None, monitor)
}

/// Restores a snapshot. `named` overrides whether the snapshot counts as named by its timeline or
/// by its own name.
fn restore_named(
    workspace: &Workspace,
    options: &Options,
    named: Option<NameKind>,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let mut workspace = workspace.clone();
    readiness::wait(&mut workspace, options, monitor)?;
    let workspace = &workspace;
    let only_reads = options.dry_run || matches!(options.target, Target::Folder { .. });
    let run = RunMode::of_dry_run(only_reads);
    // The lock prevents other stvc processes from writing the files and from dropping the snapshot.
    // SillyTavern does not use this lock; see `engine::operation`.
    let (store, held) = workspace.open(run)?;
    let library = workspace.library().ok();
    let names = workspace.names(&store, library.as_ref());
    let mut moment = names.moment_at(&options.snapshot, options.until.message())?;
    moment.named = named.unwrap_or(moment.named);
    monitor.begin("rebuilding files", None);
    // Only a restore as a new timeline needs the other snapshots.
    let history = match options.target {
        Target::NewTimeline { .. } => History::load(&store)?,
        _ => History::default(),
    };
    let mode = held.as_ref().map_or(Mode::Plan, Mode::Now);
    restore_moment(workspace, &store, mode, &history, &moment, options)
}

fn restore_moment(
    workspace: &Workspace,
    store: &Store,
    mode: Mode<'_, '_>,
    history: &History,
    moment: &Moment,
    options: &Options,
) -> Result<Report> {
    let (only, cut) = (options.target.only(), options.until.cut());
    let is_new = matches!(options.target, Target::NewTimeline { .. });
    let at = moment.upto.message();
    let not_ready = readiness::ask(workspace, store, moment, options)?;
    let need = if only == Some(Role::Chat) { NeedBook::No } else { NeedBook::Yes };
    let mut then = StateThen::rebuild(store, moment, need)?;
    let mut passed_over = Vec::new();
    let mut older_book = None;
    let mut moment = Cow::Borrowed(moment);
    // If the user named only the timeline and its latest snapshot is damaged, the latest valid
    // snapshot is restored.
    if moment.named == NameKind::Timeline
        && let Some((valid, findings)) = latest_valid::instead_of(store, &moment, &then, need)?
    {
        then = StateThen::rebuild(store, &valid, need)?;
        let book = |moment: &Moment| moment.book_snapshot().map(|book| book.id);
        older_book = valid.book_snapshot().filter(|it| book(&moment) != Some(it.id)).cloned();
        (moment, passed_over) = (Cow::Owned(valid), findings);
    }
    // If the user named only the timeline, a damaged lorebook is not copied. If the user gave an
    // id, exactly that snapshot is restored.
    if moment.named == NameKind::Timeline
        && is_new
        && let Some(book) = then.contents.files.book()
        && let Some(damage) = st::book_damage(book.bytes)
    {
        let path = book.path.to_string();
        return Err(Error::DamagedLorebook { path, why: damage.words() });
    }
    // A restore into a folder writes the files byte for byte as they were stored.
    if !matches!(options.target, Target::Folder { .. }) {
        then.rename(&moment.timeline);
    }
    if let Some(at) = cut {
        gate::must_have(&then.contents.files, at)?;
        then.contents.files = then.contents.files.cut_after(at);
    }
    let mut findings = match only {
        Some(Role::Lorebook) => {
            Vec::from_iter(verdict_findings::invalid_snapshot(&then.snapshot, &then.problems))
        }
        _ => verdict_findings::all(&then.snapshot, &moment.timeline, &then.problems),
    };
    findings.append(&mut passed_over);
    findings.append(&mut then.findings);
    findings.extend(not_ready);
    let (snapshot, origin) = (then.snapshot.clone(), then.origin.clone());
    let mut material = SnapshotContents::of(then, options.until);
    let state = match (&origin, cut) {
        (None, None) => material.contents.manifest.checkpoint.clone(),
        (Some(_), _) => State::assembled(material.files(), None).manifest.checkpoint,
        (None, Some(_)) => state_in_use(material.files()),
    };
    if origin.is_none() {
        findings.extend(auto_recap::restored(&material.contents));
    }
    if let Some(part) = only
        && material.contents.bytes(part).is_none()
    {
        return Err(engine::Error::NoSuchPart {
            snapshot: snapshot.id.to_string(),
            part: part.as_str(),
        }
        .into());
    }
    let dropped_operations = material.change_queue(options.queue);
    let queue = material.files().book_bytes().filter(|_| only != Some(Role::Chat));
    let active = auto_recap::queue_active(moment.timeline.as_str(), queue, QueueIntent::Restore);
    let is_told = |active: &Finding| findings.contains(active);
    findings.extend(active.filter(|active| !is_told(active)).into_iter().collect::<Vec<_>>());
    let has_book = material.files().timeline.is_chat() && only != Some(Role::Chat);
    let book = material.files().book_bytes().filter(|_| has_book);
    let source = Source {
        timeline: moment.timeline.clone(),
        moment: moment.id(),
        tags: tags::tags_of(store, snapshot.id)?,
        older_book,
        origin,
        snapshot,
    };
    let (messages, entries) = (
        material.files().split().message_count() as u64,
        book.map(|book| st::entries(book).len() as u64),
    );
    let library = workspace.library().ok();
    let template = library.as_ref().map(Library::book_template).cloned().unwrap_or_default();
    let is_there = |path: &_| library.as_ref().is_some_and(|library| library.has(path));
    let look = |has: &dyn Fn(&LibraryPath) -> bool| {
        let files = material.files();
        // For a new timeline, `new_timeline` applies the rules, because the files have a new name.
        if is_new { Vec::new() } else { rules::of_stored(files, &files.split(), &template, has) }
    };
    let material = &material;
    let job = RestoreJob { workspace, store, history, options, source: &source, material, at };
    // The rules do not change the files, so they run in parallel with the restore.
    let (written, mut found) = match (&options.target, mode) {
        (Target::InPlace { overwrite, permissions, .. }, Mode::Part(operation)) => {
            let found = look(&|path| operation.planned_length(path).is_some() || is_there(path));
            (in_place::restore(&job, Mode::Part(operation), overwrite, *permissions), found)
        }
        (target, mode) => both(
            || match target {
                Target::Folder { dir, .. } => elsewhere::restore(&job, dir),
                Target::NewTimeline { name, .. } => new_timeline::restore(&job, &mode, name),
                Target::InPlace { overwrite, permissions, .. } => {
                    in_place::restore(&job, mode, overwrite, *permissions)
                }
            },
            || look(&is_there),
        ),
    };
    let mut written = written?;
    // If only the chat is restored, a missing lorebook is not reported.
    found.retain(|finding| only != Some(Role::Chat) || finding.code != Code::LorebookMissing);
    findings.append(&mut found);
    findings.append(&mut written.findings);
    latest_valid::advise(&mut findings, Some(store))?;
    let dry_run = options.dry_run;
    Ok(Report { source, state, messages, entries, dropped_operations, written, findings, dry_run })
}

fn state_in_use(files: &TimelineFiles) -> Option<CheckpointState> {
    let chat = files.split();
    let in_use = uses_auto_recap(&chat, files.metadata(&chat), files.book_bytes());
    in_use.then(|| State::assembled(files, None).manifest.checkpoint).flatten()
}
