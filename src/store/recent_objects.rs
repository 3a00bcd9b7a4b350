//! Cache of objects that a reader has decoded, which may be delta bases of the next ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Kind;
use super::inflate::Zlib;

const KEPT_BYTES: usize = 16 << 20;

#[derive(Default)]
pub(super) struct RecentObjects {
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
