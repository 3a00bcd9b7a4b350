//! Creates snapshots of changed or named timelines.
//!
//! Order: acquire the lock, read the files, write all objects into one pack, sync the pack, log the
//! operation, move the refs. A timeline that cannot be read or that a rule refuses does not stop
//! the other timelines. If the store cannot be written, the command fails and nothing is changed.

mod checkpoint;
mod options;
mod scene_end;
mod scenes;
mod selection;
mod template;

use crate::archive::Kind;
use crate::engine::configuration::Configuration;
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
use checkpoint::{Checkpoints, TagRule};

pub use crate::engine::take_snapshots::{SnapshotResult, TimelineResult};
pub use options::{CheckpointName, OneTimeline, Options, Report, SnapshotRequest, Subject};
pub use template::TEMPLATE;

/// Creates snapshots in one operation. In a dry run, creates them in a copy of the store.
pub fn snapshot(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    if options.dry_run {
        return plan(workspace, options, monitor);
    }
    // Finish interrupted operations before the library is listed, because finishing them may write
    // files.
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
    // If timelines are named, unreadable files of other timelines are not reported.
    let is_named = options.subject.is_named();
    let unreadable = if is_named { Vec::new() } else { unreadable(&scan) };
    let mut report = Report { findings: unreadable.clone(), unreadable, ..Report::default() };
    if existing.is_none()
        && let Some(refused) = all_refused(options, &library, &scan, &names)?
    {
        // There is nothing to store, so no store is created.
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
            // An earlier run of this command was interrupted and has already created the tag.
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
        // A user who runs the command decides.
        longest_file: workspace
            .automatic
            .then(|| Configuration::or_defaults(&store).limits.longest_file())
            .flatten(),
    };
    let taking = SnapshotSession::new(workspace, &store, &library, &scan, policy)?;
    let mut checkpoints = Checkpoints { taking, options };
    match (&options.subject, tag) {
        (Subject::Changed { .. } | Subject::Named(_), _) => {
            checkpoints.taking.take(&names, monitor)?;
        }
        (Subject::One { .. }, tag) => {
            checkpoints.taking.take(&names, monitor)?;
            if let (Some(tag), [name]) = (&tag, names.as_slice()) {
                checkpoints.tag(name, tag)?;
            }
        }
        (Subject::Checkpoint { at, name, .. }, tag) => {
            let rule = match (name, tag) {
                (_, Some(tag)) => TagRule::Exactly(tag),
                (CheckpointName::Template(template), None) => TagRule::Template(template),
                _ => TagRule::AtMessage,
            };
            checkpoints.take_at(&names, *at, &rule)?;
        }
        (Subject::Scenes { template, .. }, _) => {
            checkpoints.take_scenes(&names, &TagRule::Template(template), monitor)?;
        }
    }
    if options.subject.is_of_library() {
        checkpoints.taking.note_deleted()?;
    }
    if !is_named {
        report.deleted = checkpoints.taking.without_files()?;
    }
    let Finished { outcomes, untouched, states, findings, deleted, objects, bytes } =
        checkpoints.taking.finish(&held)?;
    report.untouched = untouched;
    report.timelines.extend(outcomes);
    report.newly_deleted = deleted;
    report.findings.extend(message_not_stored(options, &report.timelines));
    report.findings.extend(findings);
    (report.states, report.objects, report.bytes) = (states, objects, bytes);
    if report.created_store {
        let include = Include::of(Some(&store));
        report.findings.extend(left_out::finding(&library, &include, Some(&store))?);
    }
    answer(report, &names, options)
}

/// Creates the snapshots in a copy of the store, which is deleted afterwards.
fn plan(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (_folder, elsewhere) = workspace.on_a_copy()?;
    let mut real = Options { dry_run: false, ..options.clone() };
    real.gate.wait = None;
    let mut report = snapshot(&elsewhere, &real, monitor)?;
    (report.objects, report.bytes, report.created_store) = (0, 0, false);
    let store = workspace.find_store()?;
    for outcome in &mut report.timelines {
        let SnapshotResult::New(snapshot, _) = &outcome.result else { continue };
        let head = match &store {
            Some(store) => changed_timelines::head(store, &outcome.timeline)?.0,
            None => None,
        };
        outcome.result =
            SnapshotResult::WouldBeNew(snapshot.messages, head.map(|head| head.messages));
    }
    Ok(report)
}

/// Returns a finding if the user's message was not stored because no snapshot was created.
fn message_not_stored(options: &Options, outcomes: &[TimelineResult]) -> Option<Finding> {
    if options.message.is_none() || count_new(outcomes) > 0 {
        return None;
    }
    let what = "nothing changed, so no snapshot was created and the message was not stored";
    let finding = Finding::new(Code::WordsNotKept, "-m", what);
    Some(finding.remedy("use `--tag NAME` to tag the latest snapshot"))
}

/// Returns the report, or an error if the only named chat was refused.
fn answer(report: Report, names: &[TimelineName], options: &Options) -> Result<Report> {
    let named = options.subject.is_named() && names.len() == 1;
    match report.timelines.as_slice() {
        [TimelineResult { result: SnapshotResult::Refused(findings), .. }] if named => {
            Err(engine::Error::Refused { findings: findings.clone() }.into())
        }
        _ => Ok(report),
    }
}

/// Returns the refusals if a rule refuses every timeline, otherwise `None`.
fn all_refused(
    options: &Options,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
) -> Result<Option<Vec<TimelineResult>>> {
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
        let result = SnapshotResult::Refused(judgement.refused);
        refused.push(TimelineResult { timeline: name.clone(), result });
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
