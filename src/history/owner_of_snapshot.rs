//! Whose a snapshot is today. A snapshot says what its timeline was called when it was taken; after
//! a rename that is another name.

use std::collections::HashMap;

use super::History;
use crate::archive::{Snapshot, SnapshotId};
use crate::st::TimelineName;

pub(crate) struct Owners {
    own: HashMap<SnapshotId, TimelineName>,
    /// The successors of names that no branch has any more.
    renamed: HashMap<TimelineName, TimelineName>,
}

impl Owners {
    pub(crate) fn of(history: &History) -> Self {
        let mut owners = Self { own: HashMap::new(), renamed: HashMap::new() };
        // Of two branches that share snapshots, as a rename elsewhere leaves them, the newer one
        // goes on.
        let mut heads: Vec<_> = history.heads().collect();
        heads.sort_by_key(|(_, head)| (head.sequence, head.id));
        for (name, head) in heads {
            for snapshot in history.own(head).0 {
                owners.own.insert(snapshot.id, name.clone());
                let former = snapshot.renamed_from.iter().chain([&snapshot.timeline]);
                for former in former.filter(|former| history.head(former).is_none()) {
                    owners.renamed.insert(former.clone(), name.clone());
                }
            }
        }
        owners
    }

    /// Returns the owner by ancestors before names: a renamed timeline left its name to others.
    pub(crate) fn by_descent<'a>(
        &'a self,
        history: &'a History,
        snapshot: &'a Snapshot,
    ) -> &'a TimelineName {
        let mut at = snapshot;
        loop {
            if let Some(owner) = self.own.get(&at.id) {
                return owner;
            }
            match at.parents.first().and_then(|parent| history.get(*parent)) {
                // A checkpoint at a message follows a snapshot of its own timeline.
                Some(parent) if at.fork_at.is_none() || parent.timeline == at.timeline => {
                    at = parent;
                }
                _ => return self.of_snapshot(snapshot),
            }
        }
    }

    /// Returns the timeline that a command writes to when it is given `snapshot`: the one that it
    /// belongs to, by its present name. After an undone rename the files still have the name that
    /// the undone snapshot says, and that is on no branch.
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

    /// Returns the present name of the timeline of `snapshot`. If it is on no branch, like a
    /// checkpoint at a message: the timeline that has, or had, its name.
    pub(crate) fn of_snapshot<'a>(&'a self, snapshot: &'a Snapshot) -> &'a TimelineName {
        let by_name = || self.renamed.get(&snapshot.timeline);
        self.own.get(&snapshot.id).or_else(by_name).unwrap_or(&snapshot.timeline)
    }
}
