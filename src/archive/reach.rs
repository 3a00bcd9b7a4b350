//! Every object below a tree.

use std::collections::HashSet;

use super::Result;
use crate::store::{Kind, Mode, ObjectId, Reader, unless_lost};

/// Goes through trees, each object once.
pub struct Reach {
    reader: Reader,
    seen: HashSet<ObjectId>,
}

impl Reach {
    /// Nothing seen yet.
    pub fn new(reader: Reader) -> Self {
        Self::without(reader, HashSet::new())
    }

    /// Leaves out these objects and what only they lead to.
    pub fn without(reader: Reader, lost: HashSet<ObjectId>) -> Self {
        Self { reader, seen: lost }
    }

    /// Call `each` with every object of a tree, itself included, that was not seen before. Trees that are lost are passed over: what a tree is needed for, the validator tells.
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
