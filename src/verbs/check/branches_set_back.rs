//! Branches that lead to an older snapshot than the operation log says. Nothing is lost yet, but
//! the next snapshot would follow the older one, and `gc` would drop the rest in time.

use std::collections::{BTreeMap, HashSet};

use crate::engine::Result;
use crate::rules::{Code, Finding};
use crate::store::{LoggedOperation, Loss, ObjectId, Store};

/// Checks all branches. Another git may have moved one forward or elsewhere.
pub(super) fn check(store: &Store, operations: &[LoggedOperation]) -> Result<Vec<Finding>> {
    // A ref of an unfinished operation is about to move.
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
    let mut findings = Vec::new();
    let branches = last.into_iter().filter(|(name, _)| name.as_str().starts_with("refs/heads/"));
    for (name, logged) in branches {
        let (Some(logged), Some(now)) = (logged, store.ref_target(name)?) else { continue };
        if now != logged && is_before(store, now, logged)? {
            let message =
                format!("it leads to {now}, though the log says {logged}, which follows it");
            let finding = Finding::new(Code::BranchSetBack, name.as_str(), message);
            findings.push(finding.remedy(format!(
                "if you did not do that: `stvc tag NAME {logged}` keeps what follows, and `stvc restore {logged}` brings its files back"
            )));
        }
    }
    Ok(findings)
}

fn is_before(store: &Store, id: ObjectId, of: ObjectId) -> Result<bool> {
    let reader = store.reader();
    let mut seen = HashSet::new();
    let mut open = vec![of];
    while let Some(next) = open.pop() {
        if next == id {
            return Ok(true);
        }
        if !seen.insert(next) {
            continue;
        }
        match reader.commit(next) {
            Ok(commit) => open.extend(commit.parents),
            // A lost commit leads nowhere.
            Err(error) if error.is_loss() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
