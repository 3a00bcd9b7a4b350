//! Take snapshots: of every timeline that changed, or of the named ones.
//!
//! Order: lock, read, write all objects into one pack, sync it, log the operation, move the refs. A timeline that cannot be read
//! or that a rule refuses does not stop the others; a store that cannot be written stops everything, and then nothing has changed.

mod gate;
mod plan;
mod run;
mod scenes;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::lineage::without_blank_end;
use super::time_true::message_not_found;
use super::{Error, Result, Workspace, finish_interrupted, resolve, survey};
use crate::archive::{CheckpointState, Snapshot, SnapshotId, history};
use crate::progress::Monitor;
use crate::rules::{Finding, Level};
use crate::st::{self, Captured, Chat, Disk, Library, Scan, TimelineName};
use crate::store::Store;
use run::Run;

pub use scenes::TEMPLATE;

/// What to take.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name; none: every one that changed.
    pub timelines: Vec<String>,
    /// Cut after this message.
    pub at: Option<usize>,
    /// Checkpoints at the end of every scene instead.
    pub scenes: bool,
    /// What these are called; see [`TEMPLATE`].
    pub template: Option<String>,
    /// Refuse where the extension is not ready for a checkpoint, instead of warning.
    pub strict: bool,
    /// Wait for the lorebook's queue first; `Some(None)` without a limit.
    pub wait: Option<Option<Duration>>,
    /// Take it though work is pending in the queue.
    pub allow_active_queue: bool,
    /// Mark it as taken without being asked, in the middle of that work.
    pub autosave: bool,
    /// The user's words for it.
    pub message: Option<String>,
    /// A tag for it.
    pub tag: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl Options {
    /// Whether it is a checkpoint that the user means: then the rules are asked also where nothing changed.
    fn is_on_purpose(&self) -> bool {
        self.at.is_some() || self.tag.is_some() || self.strict
    }

    /// Everything as it is, ready or not: for commands that must not go on before it is stored.
    pub(super) fn as_it_is() -> Self {
        Self { allow_active_queue: true, ..Self::default() }
    }
}

/// What was taken.
#[derive(Default)]
pub struct Report {
    /// The timelines that were looked at, in order.
    pub timelines: Vec<Outcome>,
    /// What the new snapshots say of the state of ST-Auto-Recap.
    pub states: HashMap<SnapshotId, CheckpointState>,
    /// What was noticed about them.
    pub findings: Vec<Finding>,
    /// How many timelines have snapshots but no file any more; counted when no chat was named.
    pub deleted: usize,
    /// Whether the store was made for it.
    pub created_store: bool,
    /// How many objects were written.
    pub objects: usize,
    /// How many bytes they take.
    pub bytes: u64,
}

impl Report {
    /// How many timelines could not be taken.
    pub fn failed(&self) -> usize {
        self.timelines.iter().filter(|outcome| matches!(outcome.result, Taken::Failed(_))).count()
    }

    /// How many a rule refused.
    pub fn refused(&self) -> usize {
        self.timelines.iter().filter(|outcome| matches!(outcome.result, Taken::Refused(_))).count()
    }
}

/// What became of one timeline.
pub struct Outcome {
    /// Which.
    pub timeline: String,
    /// What.
    pub result: Taken,
}

/// What became of a timeline.
pub enum Taken {
    /// A new snapshot, and its tags.
    New(Box<Snapshot>, Vec<String>),
    /// A new snapshot that a dry run did not write: its message count, and how many the newest one has.
    WouldBeNew(u64, Option<u64>),
    /// The newest snapshot already is this state.
    Unchanged(Box<Snapshot>, Vec<String>),
    /// It could not be read.
    Failed(String),
    /// A rule forbids it.
    Refused(Vec<Finding>),
}

/// Take snapshots.
pub fn snapshot(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    if !options.dry_run {
        // Before the library is listed: files may come and go with it.
        finish_interrupted(workspace)?;
    }
    let library = workspace.library()?;
    let scan = library.scan()?;
    let existing = workspace.find_store()?;
    let names = select(options, &library, &scan, existing.as_ref())?;
    let mut workspace = workspace.clone();
    if let (Some(limit), false) = (options.wait, options.dry_run) {
        let changed = changed(options, &library, &scan, &names, existing.as_ref())?;
        let waited = gate::wait(&library, &scan, &changed, limit, monitor);
        // The state is of after the waiting.
        workspace.now += chrono::Duration::seconds(waited.as_secs().try_into().unwrap_or(0));
    }
    let workspace = &workspace;
    if options.at.is_some() && names.len() != 1 {
        return Err(Error::NeedsOneTimeline { option: "--at" });
    }
    if options.tag.is_some() && (names.len() != 1 || options.scenes) {
        return Err(Error::NeedsOneTimeline { option: "--tag" });
    }
    // Whoever asks for one chat is not told of another.
    let findings = if options.timelines.is_empty() { unreadable(&scan) } else { Vec::new() };
    let mut report = Report { findings, ..Report::default() };
    for finding in &report.findings {
        let failed = Taken::Failed(finding.message.clone());
        report.timelines.push(Outcome { timeline: finding.subject.clone(), result: failed });
    }
    if options.dry_run && options.scenes {
        return plan::plan_scenes(workspace, existing, &library, &scan, &names, options, report);
    }
    if options.dry_run {
        return plan::plan(existing.as_ref(), &library, &scan, &names, options, report, monitor);
    }
    if existing.is_none()
        && let Some(refused) = all_refused(options, &library, &scan, &names)?
    {
        // Nothing to take: then no store is made either.
        report.timelines.extend(refused);
        return answer(report, &names, options);
    }
    report.created_store = existing.is_none();
    let store = match existing {
        Some(store) => store,
        None => Store::create(&workspace.store_path()?)?,
    };
    let (store, held) = workspace.hold(store)?;
    let tag = match &options.tag {
        Some(name) => Some(match super::tag::free(&store, name) {
            // The same command was interrupted, and its tag is there by now.
            Err(Error::TagExists { .. }) if held.done_before(workspace, &store)?.is_some() => {
                super::tag::tag_ref(name)?
            }
            tag => tag?,
        }),
        None => None,
    };
    let mut run = Run::new(workspace, &store, &library, &scan, options, report);
    if options.scenes {
        run.take_scenes(&names, monitor)?;
    } else {
        run.take(&names, monitor)?;
    }
    if let Some(tag) = &tag {
        run.tag(|_| Ok(tag.clone()))?;
    } else if options.at.is_some() {
        run.tag(|snapshot| super::tag::free_for(&store, snapshot, options.at))?;
    }
    answer(run.finish(&held)?, &names, options)
}

/// Whether a snapshot would have anything to take. Nothing is locked for it, and what is learnt of unchanged files is kept.
pub(super) fn has_changed(workspace: &Workspace) -> Result<bool> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let store = workspace.open_store()?;
    if !store.unfinished()?.is_empty() {
        return Ok(true);
    }
    let mut cache = Some(super::cache::Cache::load(&store));
    for name in &scan.timelines {
        let look = survey::look(Some(&store), &library, &scan.groups, name, &mut cache)?;
        if !look.unchanged || look.astray {
            return Ok(true);
        }
    }
    if let Some(cache) = cache {
        cache.save(&store);
    }
    Ok(false)
}

/// The timelines of which a state will be taken: those that were named, or that changed. Nobody waits for the others.
fn changed(
    options: &Options,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    store: Option<&Store>,
) -> Result<Vec<TimelineName>> {
    if !options.timelines.is_empty() {
        return Ok(names.to_vec());
    }
    let mut cache = store.map(super::cache::Cache::load);
    let mut changed = Vec::new();
    for name in names {
        match survey::look(store, library, &scan.groups, name, &mut cache) {
            Ok(look) if look.unchanged => {}
            Ok(_) => changed.push(name.clone()),
            // A chat that cannot be read is said to be so when it is its turn.
            Err(Error::St(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}

/// The report; or, if the one chat that was named was refused, the refusal itself.
fn answer(report: Report, names: &[TimelineName], options: &Options) -> Result<Report> {
    let named = !options.timelines.is_empty() && names.len() == 1;
    match report.timelines.as_slice() {
        [Outcome { result: Taken::Refused(findings), .. }] if named => {
            Err(Error::Refused { findings: findings.clone() })
        }
        _ => Ok(report),
    }
}

/// What became of all timelines, if a rule refuses every one.
fn all_refused(
    options: &Options,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
) -> Result<Option<Vec<Outcome>>> {
    let mut refused = Vec::new();
    for name in names {
        let Ok(captured) = st::capture(library, &scan.groups, name, &Disk) else { return Ok(None) };
        if let Some(at) = options.at {
            cut(&captured, at)?;
        }
        let verdict = gate::judge(options, &captured, options.at);
        if verdict.refused.is_empty() || (options.scenes && options.strict) {
            return Ok(None);
        }
        let result = Taken::Refused(verdict.refused);
        refused.push(Outcome { timeline: name.to_string(), result });
    }
    Ok(Some(refused).filter(|refused| !refused.is_empty()))
}

fn select(
    options: &Options,
    library: &Library,
    scan: &Scan,
    store: Option<&Store>,
) -> Result<Vec<TimelineName>> {
    if options.timelines.is_empty() {
        return Ok(scan.timelines.clone());
    }
    let here: BTreeSet<_> = scan.timelines.iter().cloned().collect();
    let mut names = Vec::new();
    for text in &options.timelines {
        let name = match resolve::timeline(text, Some(library), &here) {
            // Perhaps it is stored but its file is gone: then say that.
            Err(Error::NoSuchTimeline { name }) => match store {
                Some(store) => {
                    let stored =
                        history::heads(store)?.into_iter().map(|head| head.timeline).collect();
                    resolve::timeline(&name, Some(library), &stored)?
                }
                None => return Err(Error::NoSuchTimeline { name }),
            },
            other => other?,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn unreadable(scan: &Scan) -> Vec<Finding> {
    let finding = |(subject, why): &(String, String)| {
        Finding::new("unreadable", Level::Error, subject, why)
            .remedy("check its name and permissions; it was not stored")
    };
    scan.unreadable.iter().map(finding).collect()
}

/// The chat cut after message `at`, joined, and how many messages that is.
fn cut(captured: &Captured, at: usize) -> Result<(Vec<u8>, u64)> {
    let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
    let messages = without_blank_end(&chat.messages).len();
    if at >= messages {
        return Err(Error::refused(message_not_found(&captured.name, messages, at)));
    }
    let cut = chat.upto(at);
    Ok((cut.join(), cut.message_count() as u64))
}
