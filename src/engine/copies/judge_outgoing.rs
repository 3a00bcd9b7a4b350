//! What a backup will hold, judged before it is called done, by the judge that `import` asks: so
//! that what is confirmed here comes in there. One odd snapshot keeps nothing else from being
//! backed up. It goes along as it is, as far as it can be read, and is named.

use std::collections::{BTreeSet, HashSet};

use super::chosen_refs::{Chosen, HEADS, spoken};
use crate::archive::{Snapshot, SnapshotId, Validator};
use crate::engine::verdict_findings::LostAttachments;
use crate::engine::{Result, lost_objects, verdict_findings};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::store::{ObjectId, RefName, Store};

#[derive(Default)]
pub(crate) struct Judged {
    pub findings: Vec<Finding>,
    /// The number of snapshots that no other store would accept.
    pub odd: usize,
    /// Objects that cannot be read, and so cannot be copied.
    pub unreadable: HashSet<ObjectId>,
    /// Snapshots that lack those objects, or ancestors.
    incomplete: HashSet<SnapshotId>,
}

impl Judged {
    pub(crate) fn of(
        store: &Store,
        chosen: &Chosen,
        is_there: impl Fn(SnapshotId) -> bool,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        let mut judged = Self::default();
        let all = chosen.snapshots();
        let snapshots = all.iter().filter_map(|id| chosen.history.get(*id));
        let mut order: Vec<_> = snapshots.filter(|snapshot| !is_there(snapshot.id)).collect();
        judged.look_for_gaps(chosen, &all, &order);
        // Timeline by timeline: neighbours share most of their messages.
        order.sort_by(|a, b| (&a.timeline, a.time.seconds).cmp(&(&b.timeline, b.time.seconds)));
        monitor.begin("judging snapshots", Some(order.len() as u64));
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
                judged.odd += 1;
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

    /// Notes lost commits that the chosen snapshots follow.
    fn look_for_gaps(&mut self, chosen: &Chosen, all: &HashSet<SnapshotId>, new: &[&Snapshot]) {
        let is_lost = |parent: &SnapshotId| chosen.history.get(*parent).is_none();
        let incomplete = new.iter().filter(|snapshot| snapshot.parents.iter().any(is_lost));
        self.incomplete.extend(incomplete.map(|snapshot| snapshot.id));
        for broken in &chosen.history.broken {
            let commit = ObjectId::from_hex(broken.subject.as_bytes()).ok().map(SnapshotId);
            if commit.map_or(chosen.whole, |id| all.contains(&id)) {
                self.odd += 1;
                let finding = Finding::new(Code::HistoryBroken, &broken.subject, &*broken.why);
                self.findings.push(finding);
            }
        }
    }

    pub(crate) fn lacks_something(&self) -> bool {
        !self.unreadable.is_empty() || !self.incomplete.is_empty()
    }

    /// Leaves out refs with lost objects, which a git server would refuse.
    pub(crate) fn leave_out_incomplete(&mut self, chosen: &mut Chosen) {
        if self.incomplete.is_empty() {
            return;
        }
        let refs: Vec<_> = chosen.refs.iter().map(|(name, id)| (name.clone(), *id)).collect();
        for (name, id) in refs {
            let past = chosen.history.past([SnapshotId(id)]);
            if self.incomplete.iter().any(|lacks| past.contains(lacks)) {
                chosen.refs.remove(&name);
                // Nor may anything there be let go because it is not here.
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
    let message =
        "a server takes nothing that is not whole, and something that it leads to is lost";
    Finding::new(Code::RefLeftOut, spoken(name), message).remedy(
        "back up to a file or a folder, which take the rest; `stvc check` says what is lost",
    )
}
