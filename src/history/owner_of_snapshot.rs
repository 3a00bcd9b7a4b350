//! Finds the timeline that a snapshot belongs to today. A snapshot records the name that its
//! timeline had when the snapshot was created; the timeline may have been renamed later.

use std::collections::HashMap;

use super::History;
use crate::archive::{Snapshot, SnapshotId};
use crate::st::TimelineName;

/// The owners of all snapshots on branches. See [`History::owners`].
#[derive(Default)]
pub(crate) struct Owners {
    timelines: Vec<TimelineName>,
    /// Maps each snapshot to the index of its owner in `timelines`.
    own: HashMap<SnapshotId, usize>,
    /// Maps each former name that no branch has any more to the current name of the timeline.
    renamed: HashMap<TimelineName, TimelineName>,
}

impl Owners {
    pub(super) fn of(history: &History) -> Self {
        let mut owners = Self::default();
        // After a rename on another device, two branches may share snapshots. The newer branch owns
        // them.
        let mut heads: Vec<_> = history.heads().collect();
        heads.sort_by_key(|(_, head)| (head.sequence, head.id));
        for (name, head) in heads {
            let number = owners.timelines.len();
            owners.timelines.push(name.clone());
            for snapshot in history.own(head).0 {
                owners.own.insert(snapshot.id, number);
                let former = snapshot.renamed_from.iter().chain([&snapshot.timeline]);
                for former in former.filter(|former| history.head(former).is_none()) {
                    owners.renamed.insert(former.clone(), name.clone());
                }
            }
        }
        owners
    }

    /// Returns the timeline that owns a snapshot. Searches the snapshot's ancestors for one on a
    /// branch, and uses the recorded name only if there is none, because another timeline may have
    /// taken the former name of a renamed timeline.
    pub(crate) fn by_descent<'a>(
        &'a self,
        history: &'a History,
        snapshot: &'a Snapshot,
    ) -> &'a TimelineName {
        let mut at = snapshot;
        loop {
            if let Some(owner) = self.by_branch(at) {
                return owner;
            }
            match at.parents.first().and_then(|parent| history.get(*parent)) {
                // The parent of a checkpoint at a message is a snapshot of the same timeline,
                // although the checkpoint has a `fork_at`.
                Some(parent) if at.fork_at.is_none() || parent.timeline == at.timeline => {
                    at = parent;
                }
                _ => return self.of_snapshot(snapshot),
            }
        }
    }

    /// Returns the timeline to which a command writes when the user passes `snapshot`: its owner,
    /// by the current name. There is one exception: after `undo` of the snapshot that recorded a
    /// rename, that snapshot is on no branch, but the files still have its name.
    pub(crate) fn target<'a>(
        &'a self,
        history: &'a History,
        snapshot: &'a Snapshot,
    ) -> &'a TimelineName {
        let nearest = history.ancestry(snapshot).find(|it| self.own.contains_key(&it.id));
        let is_renamed = nearest.is_some_and(|nearest| nearest.timeline != snapshot.timeline);
        let is_undone = !self.own.contains_key(&snapshot.id) && snapshot.fork_at.is_none();
        if is_undone && is_renamed && history.head(&snapshot.timeline).is_none() {
            &snapshot.timeline
        } else {
            self.by_descent(history, snapshot)
        }
    }

    /// Returns the current name of the timeline of `snapshot`. If the snapshot is on no branch,
    /// like a checkpoint at a message, returns the current name of the timeline that has or had the
    /// recorded name.
    pub(crate) fn of_snapshot<'a>(&'a self, snapshot: &'a Snapshot) -> &'a TimelineName {
        let by_name = || self.renamed.get(&snapshot.timeline);
        self.by_branch(snapshot).or_else(by_name).unwrap_or(&snapshot.timeline)
    }

    fn by_branch(&self, snapshot: &Snapshot) -> Option<&TimelineName> {
        Some(&self.timelines[*self.own.get(&snapshot.id)?])
    }
}
