//! Computes and verifies the ids of objects.

use super::{Error, Kind, ObjectId, Result};

/// Returns the id of an object. Fails only on bytes that were crafted for a SHA-1 collision.
pub fn hash(kind: Kind, data: &[u8]) -> Result<ObjectId> {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data)
        .map_err(Error::git("cannot hash an object"))
}

pub(super) fn verify(id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
    let actual = hash(kind, data)?;
    if actual == id {
        Ok(())
    } else {
        Err(Error::Damaged { id, why: format!("its bytes hash to {actual}") })
    }
}
