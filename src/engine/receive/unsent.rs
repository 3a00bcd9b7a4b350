//! Chooses the refs that are not sent to a remote after a sync: timelines that were not synced,
//! refs with invalid snapshots, and erased timelines.

use super::incoming::Incoming;
use super::plan::{Outcome, ReceivedTimeline, TimelinePlan};
use crate::archive::branch;
use crate::engine::Result;
use crate::engine::copies::erased::{ErasedRef, erased_refs};
use crate::engine::copies::{chosen_refs, mirror};
use crate::history::History;
use crate::store::Store;

/// Returns the results for all timelines, including erased ones, and the refs that are not sent.
pub(super) fn leave_out(
    store: &Store,
    incoming: &Incoming,
    steps: Vec<TimelinePlan<'_>>,
) -> Result<(Vec<ReceivedTimeline>, mirror::Options)> {
    let mut unsent = mirror::Options::default();
    let left = steps.iter().filter(|step| matches!(step.entry.outcome, Outcome::Left(_)));
    // A timeline that was not synced may have a different name on each side. Exclude both names.
    let left = left.flat_map(|step| step.local.into_iter().chain([&step.entry.head]));
    unsent.except.extend(left.map(|snapshot| branch(&snapshot.timeline)));
    unsent.except.extend(incoming.withheld.invalid.iter().cloned());
    unsent.erased.extend(incoming.withheld.erased_and_lost.iter().cloned());
    let refs = chosen_refs::ours(store)?;
    let here = erased_refs(store, &History::load(store)?, &refs, &incoming.withheld.erasures)?;
    let mut reported: Vec<(&ErasedRef, Outcome)> = Vec::new();
    for found in &incoming.withheld.erased {
        // If this store has rewritten the fork without the erased snapshots, the rewritten fork
        // replaces the one on the remote.
        if found.is_fork && !store.find_former(&found.head.id.to_string())?.is_empty() {
            continue;
        }
        if found.is_fork || here.iter().any(|here| here.name == found.name) {
            unsent.except.insert(found.name.clone());
        } else {
            unsent.erased.insert(found.name.clone());
        }
        reported.push((found, Outcome::Erased));
    }
    for found in &here {
        unsent.except.insert(found.name.clone());
        // A tag must not replace the branch of its timeline.
        if found.name.is_branch() {
            reported.retain(|(known, _)| known.head.timeline != found.head.timeline);
            reported.push((found, Outcome::ErasedElsewhere));
        }
    }
    reported.retain(|(found, _)| found.name.is_branch());
    let mut entries: Vec<_> = steps.into_iter().map(|step| step.entry).collect();
    entries.retain(|entry| reported.iter().all(|(found, _)| found.head.timeline != entry.timeline));
    entries.extend(reported.into_iter().map(|(found, outcome)| {
        let outcome = if found.is_fork { Outcome::ForkOfErased } else { outcome };
        ReceivedTimeline::new(found.head.clone(), outcome)
    }));
    Ok((entries, unsent))
}
