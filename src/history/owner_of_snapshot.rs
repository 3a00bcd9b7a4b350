//! Finds the timeline that a snapshot belongs to today. A snapshot records the name that its
//! timeline had when the snapshot was created; the timeline may have been renamed later.

use super::History;
use super::owner_index::OwnerIndex;
use crate::archive::Snapshot;
use crate::st::TimelineName;

#[derive(Clone, Copy)]
pub(crate) struct Owners<'h> {
    history: &'h History,
    index: &'h OwnerIndex,
}

impl History {
    /// Returns the timelines that own the snapshots today. They are found once for each history.
    pub(crate) fn owners(&self) -> Owners<'_> {
        Owners { history: self, index: self.owners.get_or_init(|| index(self)) }
    }
}

fn index(history: &History) -> OwnerIndex {
    let mut index = OwnerIndex::default();
    // After a rename on another device, two branches may share snapshots. The newer branch owns
    // them.
    let mut heads: Vec<_> = history.heads().collect();
    heads.sort_by_key(|(_, head)| (head.sequence, head.id));
    for (name, head) in heads {
        let number = index.timelines.len();
        index.timelines.push(name.clone());
        for snapshot in history.own(head).0 {
            index.own.insert(snapshot.id, number);
            let former = snapshot.renamed_from.iter().chain([&snapshot.timeline]);
            for former in former.filter(|former| history.head(former).is_none()) {
                index.renamed.insert(former.clone(), name.clone());
            }
        }
    }
    index
}

impl<'h> Owners<'h> {
    /// Returns the timeline that owns a snapshot. Searches the snapshot's ancestors for one on a
    /// branch, and uses the recorded name only if there is none, because another timeline may have
    /// taken the former name of a renamed timeline.
    pub(crate) fn by_descent<'a>(self, snapshot: &'a Snapshot) -> &'a TimelineName
    where
        'h: 'a,
    {
        let mut at = snapshot;
        loop {
            if let Some(owner) = self.by_branch(at) {
                return owner;
            }
            match at.parents.first().and_then(|parent| self.history.get(*parent)) {
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
    pub(crate) fn target<'a>(self, snapshot: &'a Snapshot) -> &'a TimelineName
    where
        'h: 'a,
    {
        let nearest =
            self.history.ancestry(snapshot).find(|it| self.index.own.contains_key(&it.id));
        let is_renamed = nearest.is_some_and(|nearest| nearest.timeline != snapshot.timeline);
        let is_undone = self.by_branch(snapshot).is_none() && snapshot.fork_at.is_none();
        if is_undone && is_renamed && self.history.head(&snapshot.timeline).is_none() {
            &snapshot.timeline
        } else {
            self.by_descent(snapshot)
        }
    }

    /// Returns the current name of the timeline of `snapshot`. If the snapshot is on no branch,
    /// like a checkpoint at a message, returns the current name of the timeline that has or had the
    /// recorded name.
    pub(crate) fn of_snapshot<'a>(self, snapshot: &'a Snapshot) -> &'a TimelineName
    where
        'h: 'a,
    {
        let by_name = || self.index.renamed.get(&snapshot.timeline);
        self.by_branch(snapshot).or_else(by_name).unwrap_or(&snapshot.timeline)
    }

    fn by_branch(self, snapshot: &Snapshot) -> Option<&'h TimelineName> {
        Some(&self.index.timelines[*self.index.own.get(&snapshot.id)?])
    }
}
