//! Finds the timelines that share a message. A fork shares the messages before its fork point with
//! its parent.

use std::collections::{HashMap, HashSet};

use crate::archive::{Snapshot, SnapshotId, Tree};
use crate::history::History;
use crate::history::owner_of_snapshot::Owners;
use crate::st::TimelineName;
use crate::store::{ObjectId, Reader, unless_lost};
use crate::verbs::Result;

pub(super) struct Families<'h> {
    /// Parent of each fork, and the number of messages that both share.
    parents: HashMap<&'h TimelineName, (&'h TimelineName, u64)>,
    heads: Vec<(&'h TimelineName, &'h Snapshot)>,
    reader: Reader,
    /// Messages of the latest snapshot of each timeline, loaded on demand.
    messages: HashMap<&'h TimelineName, HashSet<ObjectId>>,
}

impl<'h> Families<'h> {
    /// Reads the parents of all timelines. `gone` are the latest snapshots of deleted timelines.
    pub(super) fn new(
        history: &'h History,
        owners: Owners<'h>,
        gone: &HashSet<SnapshotId>,
        reader: Reader,
    ) -> Self {
        let mut parents = HashMap::new();
        for (name, head) in history.heads() {
            let (own, origin) = history.own(head);
            if let (Some(first), Some(origin)) = (own.last(), origin) {
                let shared = first.fork_at.unwrap_or(0);
                parents.insert(name, (owners.of_snapshot(origin), shared));
            }
        }
        let heads = history.heads().filter(|(_, head)| !gone.contains(&head.id)).collect();
        Self { parents, heads, reader, messages: HashMap::new() }
    }

    /// Returns the timeline in which a message first appeared, and the other existing timelines
    /// whose latest snapshot contains the message.
    pub(super) fn of(
        &mut self,
        timeline: &TimelineName,
        index: usize,
        id: ObjectId,
    ) -> Result<(TimelineName, Vec<TimelineName>)> {
        let first = self.first(timeline, index as u64);
        let mut others = Vec::new();
        for (name, head) in self.heads.clone() {
            if name != timeline
                && self.first(name, index as u64) == first
                && self.has(name, head, id)?
            {
                others.push(name.clone());
            }
        }
        Ok((first, others))
    }

    fn first(&self, timeline: &TimelineName, index: u64) -> TimelineName {
        let mut at = timeline;
        // The number of steps is limited, because the parents in a forged store may form a cycle.
        for _ in 0..self.parents.len() {
            match self.parents.get(at) {
                Some((parent, shared)) if index < *shared => at = parent,
                _ => break,
            }
        }
        at.clone()
    }

    fn has(&mut self, name: &'h TimelineName, head: &Snapshot, id: ObjectId) -> Result<bool> {
        if !self.messages.contains_key(name) {
            let tree = unless_lost(Tree::open(&self.reader, head.tree))?;
            let ids = tree.map(|tree| tree.messages().iter().copied().collect());
            self.messages.insert(name, ids.unwrap_or_default());
        }
        Ok(self.messages.get(name).is_some_and(|ids| ids.contains(&id)))
    }
}
