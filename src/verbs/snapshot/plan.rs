//! What would be taken: it is taken in a copy of the store, which is gone afterwards.

use super::options::{Options, Report};
use super::snapshot;
use crate::engine::take_snapshots::Taken;
use crate::engine::{Workspace, changed_timelines};
use crate::progress::Monitor;
use crate::verbs::Result;

pub(super) fn plan(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
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
