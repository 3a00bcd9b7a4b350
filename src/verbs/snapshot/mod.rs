//! Creates snapshots of changed or named timelines.
//!
//! Order: lock, read, write all objects into one pack, sync it, log the operation, move the refs. A
//! timeline that cannot be read or that a rule refuses does not stop the others; a store that
//! cannot be written stops everything, and then nothing has changed.

mod checkpoint;
mod options;
mod scenes;
mod selection;
mod template;

use crate::archive::Kind;
use crate::engine::gate::{self, SceneRule};
use crate::engine::take_snapshots::{
    Finished, Selection, SnapshotPolicy, SnapshotSession, count_new,
};
use crate::engine::{
    self, Include, TagError, Workspace, changed_timelines, finish_interrupted, left_out, tags,
};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{self, Disk, Library, Scan, TimelineName};
use crate::store::Store;
use crate::verbs::Result;
use checkpoint::Checkpoints;

pub use crate::engine::take_snapshots::{Taken, TakenTimeline};
pub use options::{Asked, CheckpointName, OneTimeline, Options, Report, Subject};
pub use template::TEMPLATE;

/// Creates snapshots.
pub fn snapshot(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    if options.dry_run {
        return plan(workspace, options, monitor);
    }
    // Before the library is listed, because it may write files.
    finish_interrupted(workspace)?;
    let library = workspace.library()?;
    let scan = library.scan()?;
    let existing = workspace.find_store()?;
    let names = selection::timelines(&options.subject, &library, &scan, existing.as_ref())?;
    let mut workspace = workspace.clone();
    if let Some(wait) = options.gate.wait {
        let touched =
            selection::touched(&options.subject, &library, &scan, &names, existing.as_ref())?;
        gate::wait(&mut workspace, &library, &scan, &touched, wait, monitor);
    }
    let workspace = &workspace;
    selection::must_be_saved(&options.subject, &library, &names)?;
    // A named chat's report does not mention others.
    let is_named = options.subject.is_named();
    let unreadable = if is_named { Vec::new() } else { unreadable(&scan) };
    let mut report = Report { findings: unreadable.clone(), unreadable, ..Report::default() };
    if existing.is_none()
        && let Some(refused) = all_refused(options, &library, &scan, &names)?
    {
        // Nothing to store, so no store is created either.
        report.timelines.extend(refused);
        return answer(report, &names, options);
    }
    report.created_store = existing.is_none();
    let store = match existing {
        Some(store) => store,
        None => Store::create(&workspace.store_path()?)?,
    };
    let (store, held) = workspace.hold(&store)?;
    let tag = match options.subject.tag() {
        Some(name) => Some(match tags::free(&store, name) {
            // The same command was interrupted, and its tag exists by now.
            Err(engine::Error::Tag(TagError::Taken { .. }))
                if held.done_before(workspace, &store)?.is_some() =>
            {
                tags::tag_ref(name)?
            }
            tag => tag?,
        }),
        None => None,
    };
    let policy = SnapshotPolicy {
        message: options.message.as_deref(),
        kind: if options.autosave { Kind::AUTOSAVE } else { Kind::SNAPSHOT },
        kind_if_busy: if options.autosave { Kind::AUTOSAVE } else { Kind::SNAPSHOT },
        selection: if is_named { Selection::Named } else { Selection::Library },
        unchanged: options.unchanged(),
        gate: &|captured| gate::judge(options.gate, &captured.files, None),
    };
    let taking = SnapshotSession::new(workspace, &store, &library, &scan, policy)?;
    let mut checkpoints = Checkpoints { taking, options };
    match &options.subject {
        Subject::Scenes { template, .. } => checkpoints.take_scenes(&names, template, monitor)?,
        Subject::Checkpoint { at, .. } => checkpoints.take_at(&names, *at)?,
        Subject::Changed { .. } | Subject::Named(_) | Subject::One { .. } => {
            checkpoints.taking.take(&names, monitor)?;
        }
    }
    match &options.subject {
        Subject::Changed { only } if only.is_empty() => checkpoints.taking.note_deleted()?,
        Subject::Scenes { timelines, .. } if timelines.is_empty() => {
            checkpoints.taking.note_deleted()?;
        }
        Subject::Checkpoint { at, name: CheckpointName::Template(template), .. } => {
            checkpoints.name_by_template(&names, *at, template)?;
        }
        Subject::Checkpoint { at, name: CheckpointName::Default, .. } => {
            checkpoints.tag(&names, |snapshot| tags::free_for(&store, snapshot, Some(*at)))?;
        }
        _ => {}
    }
    if let Some(tag) = &tag {
        checkpoints.tag(&names, |_| Ok(tag.clone()))?;
    }
    if !is_named {
        report.deleted = checkpoints.taking.without_files()?;
    }
    let Finished { outcomes, untouched, states, findings, deleted, objects, bytes } =
        checkpoints.taking.finish(&held)?;
    report.untouched = untouched;
    report.timelines.extend(outcomes);
    report.newly_deleted = deleted;
    report.findings.extend(words_not_kept(options, &report.timelines));
    report.findings.extend(findings);
    (report.states, report.objects, report.bytes) = (states, objects, bytes);
    if report.created_store {
        let include = Include::of(Some(&store));
        report.findings.extend(left_out::finding(&library, &include, Some(&store))?);
    }
    answer(report, &names, options)
}

/// Creates snapshots in a copy of the store, which is dropped afterwards.
fn plan(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (_folder, elsewhere) = workspace.on_a_copy()?;
    let mut real = Options { dry_run: false, ..options.clone() };
    real.gate.wait = None;
    let mut report = snapshot(&elsewhere, &real, monitor)?;
    (report.objects, report.bytes, report.created_store) = (0, 0, false);
    let store = workspace.find_store()?;
    for outcome in &mut report.timelines {
        let Taken::New(snapshot, _) = &outcome.result else { continue };
        let head = match &store {
            Some(store) => changed_timelines::head(store, &outcome.timeline)?.0,
            None => None,
        };
        outcome.result = Taken::WouldBeNew(snapshot.messages, head.map(|head| head.messages));
    }
    Ok(report)
}

/// Without a new snapshot nothing holds the user's words.
fn words_not_kept(options: &Options, outcomes: &[TakenTimeline]) -> Option<Finding> {
    if options.message.is_none() || count_new(outcomes) > 0 {
        return None;
    }
    let what = "nothing changed, so no snapshot was taken and your words are not kept";
    let finding = Finding::new(Code::WordsNotKept, "-m", what);
    Some(finding.remedy("`--tag NAME` names a state that is there already"))
}

/// If the only named chat was refused, that is an error.
fn answer(report: Report, names: &[TimelineName], options: &Options) -> Result<Report> {
    let named = options.subject.is_named() && names.len() == 1;
    match report.timelines.as_slice() {
        [TakenTimeline { result: Taken::Refused(findings), .. }] if named => {
            Err(engine::Error::Refused { findings: findings.clone() }.into())
        }
        _ => Ok(report),
    }
}

/// Returns the refusals, if a rule refuses every timeline.
fn all_refused(
    options: &Options,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
) -> Result<Option<Vec<TakenTimeline>>> {
    let mut refused = Vec::new();
    for name in names {
        let Ok(captured) = st::capture(library, &scan.groups, name, &Disk) else { return Ok(None) };
        let at = options.subject.at();
        if let Some(at) = at {
            gate::must_have(&captured.files, at)?;
        }
        let judgement = gate::judge(options.gate, &captured.files, at);
        let is_of_scenes = matches!(options.subject, Subject::Scenes { .. });
        if judgement.refused.is_empty() || (is_of_scenes && options.gate.scene == SceneRule::Strict)
        {
            return Ok(None);
        }
        let result = Taken::Refused(judgement.refused);
        refused.push(TakenTimeline { timeline: name.clone(), result });
    }
    Ok(Some(refused).filter(|refused| !refused.is_empty()))
}

fn unreadable(scan: &Scan) -> Vec<Finding> {
    let finding = |(subject, why): &(String, String)| {
        Finding::new(Code::Unreadable, subject, why)
            .remedy("check its name and permissions; it was not stored")
    };
    scan.unreadable.iter().map(finding).collect()
}
