//! Objects with their lengths, and their division into parts of about equal cost.

use std::ops::Range;

use super::{Kind, ObjectId, Result, Store};
use crate::parallel::in_parts;

/// An object to pack. Versions of one thing have equal slots, and similar things are in
/// neighbouring slots.
#[derive(Clone, Copy, Debug)]
pub struct PackSlot {
    pub id: ObjectId,
    pub kind: Kind,
    pub slot: u32,
}

/// Objects with their lengths, which are the cost of packing them.
#[derive(Clone, Copy)]
pub(super) struct MeasuredObjects<'o> {
    pub objects: &'o [PackSlot],
    pub lengths: &'o [u32],
}

impl<'o> MeasuredObjects<'o> {
    pub(super) fn within(self, range: Range<usize>) -> Self {
        Self { objects: &self.objects[range.clone()], lengths: &self.lengths[range] }
    }

    pub(super) fn cost(self, range: Range<usize>) -> u64 {
        self.lengths[range].iter().map(|length| u64::from(*length) + SMALL).sum()
    }

    /// Divides the objects into ranges that each cost about `share`. A slot is never divided. A
    /// delta and its base are always in the same range.
    pub(super) fn ranges(self, share: u64) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let (mut begin, mut held) = (0, 0);
        for n in 0..self.objects.len() {
            if held >= share && self.objects[n].slot != self.objects[n - 1].slot {
                ranges.push(begin..n);
                (begin, held) = (n, 0);
            }
            held += self.cost(n..n + 1);
        }
        ranges.push(begin..self.objects.len());
        ranges
    }
}

impl Store {
    /// Returns the lengths of objects, at most 4 GB for each. A lost object has length 0.
    pub(super) fn lengths(&self, objects: &[PackSlot]) -> Result<Vec<u32>> {
        let readers = self.reader().shared();
        let lengths = |part: &[PackSlot]| {
            let reader = readers.reader();
            let length = |object: &PackSlot| {
                let length = reader.look(object.id)?.map_or(0, |(_, length)| length);
                Ok(u32::try_from(length).unwrap_or(u32::MAX))
            };
            part.iter().map(length).collect::<Result<Vec<_>>>()
        };
        let lengths = in_parts(objects, 256, lengths).into_iter().collect::<Result<Vec<_>>>();
        // Reading the lengths has mapped every pack.
        readers.close_packs();
        Ok(lengths?.concat())
    }
}

/// Fixed cost of packing an object, expressed as a number of bytes.
const SMALL: u64 = 200;
