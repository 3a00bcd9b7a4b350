//! What a stored snapshot already has, so that the next one writes only what is new.

use std::collections::HashSet;

use crate::store::{EntryKind, ObjectId, Reader, Result};

/// Every object below `tree`, itself included. An unreadable subtree counts as unknown: its objects are written again,
/// which is how a damaged store heals where it can.
pub(super) fn objects_below(reader: &Reader, tree: ObjectId) -> Result<HashSet<ObjectId>> {
    let mut known = HashSet::new();
    let mut open = vec![tree];
    while let Some(tree) = open.pop() {
        let Ok(entries) = reader.tree(tree) else {
            continue;
        };
        known.insert(tree);
        for entry in entries {
            match entry.kind {
                EntryKind::Tree => open.push(entry.id),
                EntryKind::Blob => {
                    known.insert(entry.id);
                }
            }
        }
    }
    Ok(known)
}
