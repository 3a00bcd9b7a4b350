//! Visits every object below a tree.

use std::collections::HashSet;

use super::Result;
use crate::store::{Kind, Mode, ObjectId, Reader, unless_lost};

pub struct Reach {
    reader: Reader,
    seen: HashSet<ObjectId>,
}

impl Reach {
    pub fn new(reader: Reader) -> Self {
        Self::without(reader, HashSet::new())
    }

    pub fn without(reader: Reader, lost: HashSet<ObjectId>) -> Self {
        Self { reader, seen: lost }
    }

    /// Calls `each` for the tree and every object below it, except objects that were visited
    /// before. Objects below a missing or damaged tree are skipped.
    pub fn visit(&mut self, tree: ObjectId, each: &mut dyn FnMut(ObjectId, Kind)) -> Result<()> {
        let mut open = vec![tree];
        while let Some(tree) = open.pop() {
            if !self.seen.insert(tree) {
                continue;
            }
            each(tree, Kind::Tree);
            let found = unless_lost(self.reader.raw_tree(tree))?;
            for entry in found.into_iter().flat_map(|tree| tree.entries) {
                match entry.mode {
                    Mode::Folder => open.push(entry.id),
                    mode if mode.is_blob() && self.seen.insert(entry.id) => {
                        each(entry.id, Kind::Blob);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
