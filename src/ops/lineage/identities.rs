//! What stored messages say, each read once.

use std::collections::HashMap;

use crate::archive::lineage::Identity;
use crate::store::{ObjectId, Reader};

/// Identities of stored messages.
pub(in crate::ops) struct Identities {
    pub reader: Reader,
    known: HashMap<ObjectId, Identity>,
}

impl Identities {
    pub fn new(reader: Reader) -> Self {
        Self { reader, known: HashMap::new() }
    }

    /// The identity of a stored message; `None` if it cannot be read.
    pub fn of(&mut self, message: ObjectId) -> Option<Identity> {
        if let Some(identity) = self.known.get(&message) {
            return Some(*identity);
        }
        let identity = Identity::of(&self.reader.blob(message).ok()?);
        self.known.insert(message, identity);
        Some(identity)
    }
}
