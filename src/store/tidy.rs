//! What keeps a store quick without anybody asking: after each write, in small steps.

use super::{Lock, Order, Result, Store};

impl Store {
    /// Join packs and pack refs, where there are many. `order` tells which objects are versions of which.
    pub fn tidy(&self, lock: &Lock, order: Order<'_>) -> Result<()> {
        self.fold_packs(lock, order)?;
        self.pack_refs(lock)
    }
}
