//! Creates snapshots before a command that must not lose anything.

use super::take_snapshots::{
    Finished, Judgement, Selection, SnapshotPolicy, SnapshotSession, Taken, TakenTimeline,
    count_new,
};
use super::{Include, Result, Workspace, finish_interrupted};
use crate::auto_recap::{self, Wish};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{Captured, TimelineName};

/// The result of the snapshots that precede a command which must not lose anything.
#[derive(Default)]
pub struct TakenFirst {
    pub new: usize,
    /// Timelines that may have changed and could not be stored.
    pub not_taken: usize,
    /// The reasons, and snapshots taken while work was pending in a queue.
    pub findings: Vec<Finding>,
}

/// Stores everything as it is now, of all timelines or of these. Marks snapshots taken while
/// ST-Auto-Recap works as autosaves.
pub(crate) fn take_as_it_is(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    monitor: &mut dyn Monitor,
) -> Result<TakenFirst> {
    let selection = only.map_or(Selection::Library, |_| Selection::Named);
    let policy = SnapshotPolicy { selection, ..SnapshotPolicy::as_it_is() };
    let remedy = "what changed in it is not stored; the rest was done";
    take(workspace, only, policy, remedy, monitor)
}

/// Stores changes as `snapshot` would, without timelines in which ST-Auto-Recap is working.
pub(crate) fn take_what_is_ready(
    workspace: &Workspace,
    monitor: &mut dyn Monitor,
) -> Result<TakenFirst> {
    let gate = |captured: &Captured| {
        let (name, book) = (captured.files.timeline.as_str(), captured.files.book_bytes());
        let active = auto_recap::queue_active(name, book, Wish::Take);
        Judgement { refused: active.into_iter().collect(), warnings: Vec::new() }
    };
    let policy = SnapshotPolicy { gate: &gate, ..SnapshotPolicy::as_it_is() };
    let remedy = "what changed in it stays here; its newest snapshot goes";
    take(workspace, None, policy, remedy, monitor)
}

fn take(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    policy: SnapshotPolicy<'_>,
    remedy: &str,
    monitor: &mut dyn Monitor,
) -> Result<TakenFirst> {
    // Before the library is listed: files may come and go with it.
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
    let mut first = TakenFirst {
        new: count_new(&outcomes),
        not_taken: unreadable.len(),
        findings: unreadable.iter().map(|(subject, why)| unread(subject, why)).collect(),
    };
    for TakenTimeline { timeline, result } in outcomes {
        let why = match result {
            Taken::Failed(why) => vec![unread(timeline.as_str(), &why)],
            Taken::Refused(why) => why,
            _ => continue,
        };
        first.not_taken += 1;
        first.findings.extend(why.into_iter().map(|finding| finding.remedy(remedy)));
    }
    let is_busy = |finding: &Finding| finding.code == Code::QueueActive;
    first.findings.extend(findings.into_iter().filter(is_busy));
    Ok(first)
}
