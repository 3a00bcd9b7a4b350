//! What keeps a store quick without anybody asking: after each write, in small steps.

use super::{Lock, Result, Store};

impl Store {
    /// Join small packs and pack refs, where there are many.
    pub fn tidy(&self, lock: &Lock) -> Result<()> {
        self.fold_packs(lock)?;
        self.pack_refs(lock)
    }
}
