//! Creates snapshots before a command that must not lose data.

use super::gate::{GatePolicy, judge_queue};
use super::take_snapshots::{
    Finished, Selection, SnapshotPolicy, SnapshotResult, SnapshotSession, TimelineResult,
    UnchangedPolicy, count_new,
};
use super::{Include, Result, Workspace, finish_interrupted};
use crate::archive::Kind;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{Captured, TimelineName};

/// The result of the snapshots that are created before a command.
#[derive(Default)]
pub struct SafetySnapshots {
    /// Number of snapshots that were created.
    pub new: usize,
    /// The number of timelines that may have changed and could not be stored, or only without their
    /// lorebook.
    pub not_taken: usize,
    /// The reasons why timelines were not stored, and warnings about snapshots that were created
    /// while work was pending in ST-Auto-Recap's queue.
    pub findings: Vec<Finding>,
}

/// Stores the present files of all timelines, or of the timelines in `only`. A snapshot that is
/// created while ST-Auto-Recap is working becomes an autosave.
pub(crate) fn take_as_it_is(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    monitor: &mut dyn Monitor,
) -> Result<SafetySnapshots> {
    let gate = GatePolicy { allow_active_queue: true, ..GatePolicy::default() };
    take(workspace, only, gate, "its changes were not stored; the rest was done", monitor)
}

/// Stores the changes of all timelines, except timelines in which ST-Auto-Recap is working.
pub(crate) fn take_what_is_ready(
    workspace: &Workspace,
    monitor: &mut dyn Monitor,
) -> Result<SafetySnapshots> {
    let remedy = "sync again later: only its latest snapshot is sent now";
    take(workspace, None, GatePolicy::default(), remedy, monitor)
}

fn take(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    gate: GatePolicy,
    remedy: &str,
    monitor: &mut dyn Monitor,
) -> Result<SafetySnapshots> {
    // Finish interrupted operations before the library is listed, because this may write and delete
    // files.
    finish_interrupted(workspace)?;
    let library = workspace.library()?;
    let scan = library.scan()?;
    let (store, held) = workspace.hold(&workspace.find_or_create_store()?)?;
    let gate = |captured: &Captured| {
        judge_queue(gate, &captured.files.timeline, captured.files.book_bytes())
    };
    let policy = SnapshotPolicy {
        message: None,
        kind: Kind::SNAPSHOT,
        kind_if_busy: Kind::AUTOSAVE,
        selection: only.map_or(Selection::Library, |_| Selection::Named),
        unchanged: UnchangedPolicy::Skip,
        gate: &gate,
        longest_file: None,
    };
    let mut session = SnapshotSession::new(workspace, &store, &library, &scan, policy)?;
    let unreadable = match only {
        Some(only) => {
            session.take(only, monitor)?;
            &[][..]
        }
        None => {
            session.take(&Include::of(Some(&store)).timelines(&scan), monitor)?;
            session.note_deleted()?;
            &scan.unreadable
        }
    };
    let Finished { outcomes, findings, .. } = session.finish(&held)?;
    let unread =
        |subject: &str, why: &str| Finding::new(Code::Unreadable, subject, why).remedy(remedy);
    let mut first = SafetySnapshots {
        new: count_new(&outcomes),
        not_taken: unreadable.len(),
        findings: unreadable.iter().map(|(subject, why)| unread(subject, why)).collect(),
    };
    for TimelineResult { timeline, result } in outcomes {
        let why = match result {
            SnapshotResult::Failed(why) => vec![unread(timeline.as_str(), &why)],
            SnapshotResult::Refused(why) => why,
            _ => continue,
        };
        first.not_taken += 1;
        first.findings.extend(why.into_iter().map(|finding| finding.remedy(remedy)));
    }
    for finding in findings {
        match finding.code {
            Code::QueueActive => first.findings.push(finding),
            // The snapshot has only the chat.
            Code::LorebookUnread => {
                first.not_taken += 1;
                first.findings.push(finding);
            }
            _ => {}
        }
    }
    Ok(first)
}
