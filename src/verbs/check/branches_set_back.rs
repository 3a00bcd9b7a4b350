//! Finds branches that point to an older snapshot than the operation log records. Nothing is lost
//! yet. But the next snapshot would be added after the older snapshot, and `gc` would later drop
//! the newer snapshots.

use std::collections::{BTreeMap, HashSet};

use crate::archive::SnapshotId;
use crate::engine::Result;
use crate::history::History;
use crate::rules::{Code, Finding};
use crate::store::{LoggedOperation, Store};

/// Checks all branches. A branch is reported only if it was moved back to an ancestor of the logged
/// snapshot.
pub(super) fn check(store: &Store, operations: &[LoggedOperation]) -> Result<Vec<Finding>> {
    // A ref of an unfinished operation is not checked, because the operation will still move the
    // ref.
    let unfinished: HashSet<_> =
        store.unfinished()?.into_iter().map(|found| found.number).collect();
    let mut last = BTreeMap::new();
    for operation in operations {
        for change in &operation.effect.refs {
            if unfinished.contains(&operation.number) {
                last.remove(&change.name)
            } else {
                last.insert(&change.name, change.after)
            };
        }
    }
    let (mut findings, mut history) = (Vec::new(), History::default());
    let branches = last.into_iter().filter(|(name, _)| name.as_str().starts_with("refs/heads/"));
    for (name, logged) in branches {
        let (Some(logged), Some(now)) = (logged, store.ref_target(name)?) else { continue };
        if now == logged {
            continue;
        }
        history.add(store, [SnapshotId(logged)])?;
        if history.reaches(SnapshotId(logged), SnapshotId(now)) {
            let message = format!(
                "it points to {now}, but the operation log records the later snapshot {logged}"
            );
            let finding = Finding::new(Code::BranchSetBack, name.as_str(), message);
            findings.push(finding.remedy(format!(
                "if you did not intend this, run `stvc tag NAME {logged}` to keep the later snapshot; run `stvc restore {logged}` to restore its files"
            )));
        }
    }
    Ok(findings)
}
