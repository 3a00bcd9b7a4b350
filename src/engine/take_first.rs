//! Storing what is there before a command goes on that must not lose any of it.

use super::take_snapshots::{Finished, How, Judgement, Taken, TakenTimeline, Taking, count_new};
use super::{Result, Workspace, finish_interrupted};
use crate::auto_recap::{self, Wish};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{Captured, TimelineName};

/// What was taken before a command went on that must not lose any of it.
#[derive(Default)]
pub struct TakenFirst {
    /// How many snapshots.
    pub new: usize,
    /// Timelines that may have changed and were not taken: their last good state is what is stored.
    pub not_taken: usize,
    /// Why not; and what was taken though work was pending in its lorebook's queue.
    pub findings: Vec<Finding>,
}

impl TakenFirst {
    fn of(taken: AllTaken, remedy: &str) -> Self {
        let AllTaken { outcomes, unreadable, busy } = taken;
        let mut first = Self { new: count_new(&outcomes), ..Self::default() };
        let unread =
            |subject: &str, why: &str| Finding::new(Code::Unreadable, subject, why).remedy(remedy);
        first.not_taken = unreadable.len();
        first.findings = unreadable.iter().map(|(subject, why)| unread(subject, why)).collect();
        for TakenTimeline { timeline, result } in outcomes {
            let why = match result {
                Taken::Failed(why) => vec![unread(timeline.as_str(), &why)],
                Taken::Refused(why) => why,
                _ => continue,
            };
            first.not_taken += 1;
            first.findings.extend(why.into_iter().map(|finding| finding.remedy(remedy)));
        }
        first.findings.extend(busy);
        first
    }
}

/// Store everything as it is now, ready or not; of all timelines, or of these. What cannot be read is told, and what was taken in the middle of the extension's work is
/// marked as an autosave and told.
pub(crate) fn take_as_it_is(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    monitor: &mut dyn Monitor,
) -> Result<TakenFirst> {
    // Whoever names a chat means its lorebook, too.
    let how = How { named: only.is_some(), ..How::as_it_is() };
    let outcomes = take(workspace, only, how, monitor)?;
    Ok(TakenFirst::of(outcomes, "what changed in it is not stored; the rest was done"))
}

/// Take what changed, as `snapshot` would: what is in the middle of the extension's work, or cannot be read, stays out and is told.
pub(crate) fn take_what_is_ready(
    workspace: &Workspace,
    monitor: &mut dyn Monitor,
) -> Result<TakenFirst> {
    let gate = |captured: &Captured| {
        let files = &captured.files;
        let active =
            auto_recap::queue_active(files.timeline.as_str(), files.book_bytes(), Wish::Take);
        Judgement { refused: active.into_iter().collect(), warnings: Vec::new() }
    };
    let how = How { gate: &gate, ..How::as_it_is() };
    let outcomes = take(workspace, None, how, monitor)?;
    Ok(TakenFirst::of(outcomes, "what changed in it stays here; its newest snapshot goes"))
}

/// What became of the timelines, and what of the library could not even be listed.
struct AllTaken {
    outcomes: Vec<TakenTimeline>,
    /// Folders and files, and why.
    unreadable: Vec<(String, String)>,
    /// What is said of those that were taken in the middle of the extension's work.
    busy: Vec<Finding>,
}

fn take(
    workspace: &Workspace,
    only: Option<&[TimelineName]>,
    how: How<'_>,
    monitor: &mut dyn Monitor,
) -> Result<AllTaken> {
    // Before the library is listed: files may come and go with it.
    finish_interrupted(workspace)?;
    let library = workspace.library()?;
    let scan = library.scan()?;
    let (store, held) = workspace.hold(&workspace.find_or_create_store()?)?;
    let mut taking = Taking::new(workspace, &store, &library, &scan, how)?;
    let all = taking.include.timelines(&scan);
    taking.take(only.unwrap_or(&all), monitor)?;
    if only.is_none() {
        taking.note_deleted()?;
    }
    let Finished { outcomes, findings, .. } = taking.finish(&held)?;
    let is_busy = |finding: &Finding| finding.code == Code::QueueActive;
    let busy = findings.into_iter().filter(is_busy).collect();
    let unreadable = if only.is_none() { scan.unreadable.clone() } else { Vec::new() };
    Ok(AllTaken { outcomes, unreadable, busy })
}
