//! Objects that deltas are made of, kept by each reader for the next delta.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Kind;
use super::inflate::Zlib;

/// How much of what deltas are made of a reader keeps.
const KEPT_BYTES: usize = 16 << 20;

/// What a reader keeps of what deltas are made of.
#[derive(Default)]
pub(super) struct RecentObjects {
    /// By pack and offset.
    objects: HashMap<(u64, u64), RecentObject>,
    /// In the order in which they came: the oldest goes first, unless it was asked for since.
    order: VecDeque<(u64, u64)>,
    bytes: usize,
    pub zlib: Zlib,
    /// The delta at work.
    pub delta: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct RecentObject {
    pub kind: Kind,
    /// How many deltas it is made of.
    pub depth: usize,
    pub data: Arc<Vec<u8>>,
    /// It was asked for since it came, or since it was spared.
    is_used: bool,
}

impl RecentObjects {
    pub(super) fn get(&mut self, place: (u64, u64)) -> Option<RecentObject> {
        let found = self.objects.get_mut(&place)?;
        found.is_used = true;
        Some(found.clone())
    }

    pub(super) fn put(&mut self, place: (u64, u64), kind: Kind, depth: usize, data: &Arc<Vec<u8>>) {
        if data.len() > KEPT_BYTES / 2 || self.objects.contains_key(&place) {
            return;
        }
        self.bytes += data.len() + 64;
        let data = Arc::clone(data);
        self.objects.insert(place, RecentObject { kind, depth, data, is_used: false });
        self.order.push_back(place);
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            match self.objects.get_mut(&oldest) {
                Some(used) if used.is_used => {
                    used.is_used = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    let gone = self.objects.remove(&oldest);
                    self.bytes -= gone.map_or(0, |gone| gone.data.len() + 64);
                }
            }
        }
    }
}
