//! The SHA-1 at the end of packs and of their indices. It tells of damage. No object is found by it, so unlike an object's id it need not be safe from bytes that were made to collide, and may be
//! found three times as quickly; git does so as well.

use sha1::{Digest, Sha1};

use super::ObjectId;

#[derive(Default)]
pub(super) struct Checksum(Sha1);

impl Checksum {
    pub(super) fn of(bytes: &[u8]) -> ObjectId {
        let mut checksum = Self::default();
        checksum.update(bytes);
        checksum.finish()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> ObjectId {
        ObjectId::Sha1(self.0.finalize().into())
    }
}
