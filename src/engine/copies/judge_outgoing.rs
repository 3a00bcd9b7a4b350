//! Validates the snapshots of a backup with the validator that `import` uses, so that every
//! snapshot found valid can be imported. An invalid snapshot does not prevent the backup of other
//! snapshots: it is copied as far as it can be read, and reported.

use std::collections::{BTreeSet, HashSet};

use super::chosen_refs::{ChosenRefs, HEADS, spoken};
use crate::archive::{Snapshot, SnapshotId, Validator};
use crate::engine::verdict_findings::LostAttachments;
use crate::engine::{Result, lost_objects, verdict_findings};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::store::{ObjectId, RefName, Store};

#[derive(Default)]
pub(crate) struct JudgedOutgoing {
    pub findings: Vec<Finding>,
    /// The number of invalid snapshots, which no other store would import.
    pub invalid: usize,
    /// Objects that cannot be read and therefore cannot be copied.
    pub unreadable: HashSet<ObjectId>,
    /// Snapshots that have unreadable objects or a missing parent.
    incomplete: HashSet<SnapshotId>,
}

impl JudgedOutgoing {
    pub(crate) fn of(
        store: &Store,
        chosen: &ChosenRefs,
        is_there: impl Fn(SnapshotId) -> bool,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        let mut judged = Self::default();
        let all = chosen.snapshots();
        let snapshots = all.iter().filter_map(|id| chosen.history.get(*id));
        let mut order: Vec<_> = snapshots.filter(|snapshot| !is_there(snapshot.id)).collect();
        judged.look_for_gaps(chosen, &all, &order);
        // Validate timeline by timeline, because successive snapshots share most messages.
        order.sort_by(|a, b| (&a.timeline, a.time.seconds).cmp(&(&b.timeline, b.time.seconds)));
        monitor.begin("checking snapshots", Some(order.len() as u64));
        let mut validator = Validator::new(store.reader());
        let reader = store.reader();
        let mut lost = LostAttachments::default();
        for snapshot in order {
            let verdict = validator.judge(snapshot)?;
            judged.findings.extend(verdict_findings::finding(snapshot, &verdict));
            lost.note(&snapshot.timeline, verdict.lost_attachments());
            for (id, _) in verdict.lost_attachments().iter().filter_map(|loss| loss.object) {
                judged.unreadable.insert(id);
                judged.incomplete.insert(snapshot.id);
            }
            if !verdict.may_be_taken_in() {
                judged.invalid += 1;
                let unreadable = lost_objects::below(&reader, snapshot.tree, |_| false)?;
                if !unreadable.is_empty() {
                    judged.incomplete.insert(snapshot.id);
                }
                judged.unreadable.extend(unreadable);
            }
            monitor.advance(1);
        }
        judged.findings.extend(lost.findings());
        Ok(judged)
    }

    /// Records the snapshots in `new` that have a missing parent, and reports the unreadable parts
    /// of the chosen history.
    fn look_for_gaps(&mut self, chosen: &ChosenRefs, all: &HashSet<SnapshotId>, new: &[&Snapshot]) {
        let is_lost = |parent: &SnapshotId| chosen.history.get(*parent).is_none();
        let incomplete = new.iter().filter(|snapshot| snapshot.parents.iter().any(is_lost));
        self.incomplete.extend(incomplete.map(|snapshot| snapshot.id));
        for broken in &chosen.history.broken {
            let commit = ObjectId::from_hex(broken.subject.as_bytes()).ok().map(SnapshotId);
            if commit.map_or(chosen.whole, |id| all.contains(&id)) {
                self.invalid += 1;
                let finding = Finding::new(Code::HistoryBroken, &broken.subject, &*broken.why);
                self.findings.push(finding);
            }
        }
    }

    pub(crate) fn lacks_something(&self) -> bool {
        !self.unreadable.is_empty() || !self.incomplete.is_empty()
    }

    /// Omits refs that reach an incomplete snapshot, because a git server would refuse them.
    pub(crate) fn leave_out_incomplete(&mut self, chosen: &mut ChosenRefs) {
        if self.incomplete.is_empty() {
            return;
        }
        let refs: Vec<_> = chosen.refs.iter().map(|(name, id)| (name.clone(), *id)).collect();
        for (name, id) in refs {
            let past = chosen.history.past([SnapshotId(id)]);
            if self.incomplete.iter().any(|lacks| past.contains(lacks)) {
                chosen.refs.remove(&name);
                // Mark the choice as incomplete, so that nothing is deleted from the server because
                // of damage in this store.
                chosen.whole = false;
                self.findings.push(left_out(&name));
            }
        }
        let here = chosen.refs.keys().filter(|name| name.as_str().starts_with(HEADS));
        let here: BTreeSet<_> = here.filter_map(|name| chosen.refs.get(name)).copied().collect();
        let named = here.iter().filter_map(|id| chosen.history.get(SnapshotId(*id)));
        chosen.timelines = named.map(|head| head.timeline.to_string()).collect();
    }
}

fn left_out(name: &RefName) -> Finding {
    let message = "it was not sent: some of its objects are lost, and a git server refuses incomplete branches";
    Finding::new(Code::RefLeftOut, spoken(name), message).remedy(
        "back up to a file or a folder to save the rest; run `stvc check` to see the damage",
    )
}
