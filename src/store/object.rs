//! Computes and verifies the ids of objects.

use super::{Error, Kind, ObjectId, Result};

/// Returns the id of an object. Fails only on bytes that were crafted for a SHA-1 collision.
pub fn hash(kind: Kind, data: &[u8]) -> Result<ObjectId> {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data)
        .map_err(Error::git("cannot hash an object"))
}

/// Computes the id of an object whose bytes are read in pieces.
pub struct ObjectHasher(gix::hash::Hasher);

impl ObjectHasher {
    /// Begins with the kind and length of the object.
    pub fn new(kind: Kind, length: u64) -> Self {
        let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
        hasher.update(&gix::objs::encode::loose_header(kind, length));
        Self(hasher)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Fails only on bytes that were crafted for a SHA-1 collision.
    pub fn finish(self) -> Result<ObjectId> {
        self.0.try_finalize().map_err(Error::git("cannot hash an object"))
    }
}

pub(super) fn verify(id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
    let actual = hash(kind, data)?;
    if actual == id {
        Ok(())
    } else {
        Err(Error::Damaged { id, why: format!("its bytes hash to {actual}") })
    }
}
