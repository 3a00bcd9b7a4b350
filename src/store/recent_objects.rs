//! Cache of objects that a reader has decoded, which may be delta bases of the next ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Kind;
use super::inflate::Zlib;

/// Maximum total length of the objects, in bytes.
const KEPT_BYTES: usize = 16 << 20;
/// Maximum total length for a reader of objects in the order of a pack. There is one such reader
/// per core.
const KEPT_IN_ORDER: usize = 4 << 20;

pub(super) struct RecentObjects {
    limit: usize,
    objects: HashMap<(u64, u64), RecentObject>,
    /// Keys of `objects`, in the order of eviction. A key whose object was used in the meantime is
    /// moved to the end instead.
    order: VecDeque<(u64, u64)>,
    bytes: usize,
    pub zlib: Zlib,
    pub delta: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct RecentObject {
    pub kind: Kind,
    pub depth: usize,
    pub data: Arc<Vec<u8>>,
    is_used: bool,
}

impl Default for RecentObjects {
    fn default() -> Self {
        Self::with_limit(KEPT_BYTES)
    }
}

impl RecentObjects {
    /// Returns a small cache, for objects that are read in the order of a pack.
    pub(super) fn in_order() -> Self {
        Self::with_limit(KEPT_IN_ORDER)
    }

    fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            objects: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            zlib: Zlib::default(),
            delta: Vec::new(),
        }
    }

    pub(super) fn get(&mut self, place: (u64, u64)) -> Option<RecentObject> {
        let found = self.objects.get_mut(&place)?;
        found.is_used = true;
        Some(found.clone())
    }

    pub(super) fn put(&mut self, place: (u64, u64), kind: Kind, depth: usize, data: &Arc<Vec<u8>>) {
        if data.len() > self.limit / 2 || self.objects.contains_key(&place) {
            return;
        }
        self.bytes += data.len() + 64;
        let data = Arc::clone(data);
        self.objects.insert(place, RecentObject { kind, depth, data, is_used: false });
        self.order.push_back(place);
        while self.bytes > self.limit
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
