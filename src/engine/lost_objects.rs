//! Finds the objects of a snapshot that are missing or damaged.

use std::collections::HashSet;

use super::Result;
use crate::store::{Kind, Loss, Mode, ObjectId, Reader};

/// Returns the missing or damaged objects of a tree, including the tree itself. Does not read blobs
/// for which `is_sound` returns true.
pub(crate) fn below(
    reader: &Reader,
    tree: ObjectId,
    is_sound: impl Fn(ObjectId) -> bool,
) -> Result<Vec<ObjectId>> {
    let (mut lost, mut seen) = (Vec::new(), HashSet::new());
    let mut open = vec![tree];
    while let Some(tree) = open.pop() {
        if !seen.insert(tree) {
            continue;
        }
        let entries = match reader.raw_tree(tree) {
            Ok(tree) => tree.entries,
            Err(error) if error.is_loss() => {
                lost.push(tree);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            if entry.mode == Mode::Folder {
                open.push(entry.id);
            } else if entry.mode.is_blob()
                && seen.insert(entry.id)
                && !is_sound(entry.id)
                && is_lost(reader, entry.id, Kind::Blob)?
            {
                lost.push(entry.id);
            }
        }
    }
    Ok(lost)
}

pub(crate) fn is_lost(reader: &Reader, id: ObjectId, kind: Kind) -> Result<bool> {
    match reader.read(id, kind, &mut Vec::new()) {
        Ok(_) => Ok(false),
        Err(error) if error.is_loss() => Ok(true),
        Err(error) => Err(error.into()),
    }
}
