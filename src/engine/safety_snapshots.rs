//! Creates snapshots before a command that must not lose data.

use super::take_snapshots::{
    Finished, Judgement, Selection, SnapshotPolicy, SnapshotResult, SnapshotSession,
    TimelineResult, count_new,
};
use super::{Include, Result, Workspace, finish_interrupted};
use crate::auto_recap::{self, QueueIntent};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{Captured, TimelineName};

/// The result of the snapshots that are created before a command.
#[derive(Default)]
pub struct SafetySnapshots {
    /// Number of snapshots that were created.
    pub new: usize,
    /// The number of timelines that may have changed and could not be stored.
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
    let selection = only.map_or(Selection::Library, |_| Selection::Named);
    let policy = SnapshotPolicy { selection, ..SnapshotPolicy::as_it_is() };
    let remedy = "its changes were not stored; the rest was done";
    take(workspace, only, policy, remedy, monitor)
}

/// Stores the changes of all timelines, except timelines in which ST-Auto-Recap is working.
pub(crate) fn take_what_is_ready(
    workspace: &Workspace,
    monitor: &mut dyn Monitor,
) -> Result<SafetySnapshots> {
    let gate = |captured: &Captured| {
        let (name, book) = (captured.files.timeline.as_str(), captured.files.book_bytes());
        let active = auto_recap::queue_active(name, book, QueueIntent::Snapshot);
        Judgement { refused: active.into_iter().collect(), warnings: Vec::new() }
    };
    let policy = SnapshotPolicy { gate: &gate, ..SnapshotPolicy::as_it_is() };
    let remedy = "sync again later: only its latest snapshot is sent now";
    take(workspace, None, policy, remedy, monitor)
}

fn take(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    policy: SnapshotPolicy<'_>,
    remedy: &str,
    monitor: &mut dyn Monitor,
) -> Result<SafetySnapshots> {
    // Finish interrupted operations before the library is listed, because this may write and delete
    // files.
    finish_interrupted(workspace)?;
    let library = workspace.library()?;
    let scan = library.scan()?;
    let (store, held) = workspace.hold(&workspace.find_or_create_store()?)?;
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
    let is_busy = |finding: &Finding| finding.code == Code::QueueActive;
    first.findings.extend(findings.into_iter().filter(is_busy));
    Ok(first)
}
