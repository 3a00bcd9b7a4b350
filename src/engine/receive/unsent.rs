//! Chooses what is not sent to a remote after a sync: timelines that were left alone, refs with
//! invalid snapshots, and what was erased.

use super::incoming::Incoming;
use super::plan::{Outcome, ReceivedTimeline, TimelinePlan};
use crate::archive::branch;
use crate::engine::Result;
use crate::engine::copies::erased::{ErasedRef, erased_refs};
use crate::engine::copies::{chosen_refs, mirror};
use crate::history::History;
use crate::store::Store;

/// Returns what is not sent, and the timelines with those that were erased.
pub(super) fn leave_out(
    store: &Store,
    incoming: &Incoming,
    steps: Vec<TimelinePlan<'_>>,
) -> Result<(Vec<ReceivedTimeline>, mirror::Options)> {
    let mut unsent = mirror::Options::default();
    let left = steps.iter().filter(|step| matches!(step.entry.outcome, Outcome::Left(_)));
    // A timeline that was left alone keeps its name on either side.
    let left = left.flat_map(|step| step.local.into_iter().chain([&step.entry.head]));
    unsent.except.extend(left.map(|snapshot| branch(&snapshot.timeline)));
    unsent.except.extend(incoming.withheld.odd.iter().cloned());
    let refs = chosen_refs::ours(store)?;
    let here = erased_refs(store, &History::load(store)?, &refs, &incoming.withheld.erasures)?;
    let mut told: Vec<(&ErasedRef, Outcome)> = Vec::new();
    for found in &incoming.withheld.erased {
        // A fork that was rewritten locally replaces the one that still leads to erased snapshots.
        if found.is_fork && !store.find_former(&found.head.id.to_string())?.is_empty() {
            continue;
        }
        if found.is_fork || here.iter().any(|here| here.name == found.name) {
            unsent.except.insert(found.name.clone());
        } else {
            unsent.erased.insert(found.name.clone());
        }
        told.push((found, Outcome::Erased));
    }
    for found in &here {
        unsent.except.insert(found.name.clone());
        told.retain(|(known, _)| known.head.timeline != found.head.timeline);
        told.push((found, Outcome::ErasedElsewhere));
    }
    told.retain(|(found, _)| found.name.is_branch());
    let mut entries: Vec<_> = steps.into_iter().map(|step| step.entry).collect();
    entries.retain(|entry| told.iter().all(|(found, _)| found.head.timeline != entry.timeline));
    entries.extend(told.into_iter().map(|(found, outcome)| {
        let outcome = if found.is_fork { Outcome::ForkOfErased } else { outcome };
        ReceivedTimeline::new(found.head.clone(), outcome)
    }));
    Ok((entries, unsent))
}
