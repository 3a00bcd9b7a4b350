//! Cache of the identities of stored messages, so that each message is read only once.

use std::collections::HashMap;

use crate::archive::message_identity::Identity;
use crate::history::Result;
use crate::store::{ObjectId, Reader, unless_lost};

pub(crate) struct Identities {
    pub reader: Reader,
    known: HashMap<ObjectId, Identity>,
}

impl Identities {
    pub fn new(reader: Reader) -> Self {
        Self { reader, known: HashMap::new() }
    }

    /// Returns the identity of a stored message; `None` if the message is lost.
    pub fn find(&mut self, message: ObjectId) -> Result<Option<Identity>> {
        if let Some(identity) = self.known.get(&message) {
            return Ok(Some(*identity));
        }
        let Some(line) = unless_lost(self.reader.blob(message))? else { return Ok(None) };
        let identity = Identity::of(&line);
        self.known.insert(message, identity);
        Ok(Some(identity))
    }

    /// Returns whether the stored messages `messages` begin with messages of the identities
    /// `wanted`.
    pub fn begin_with(&mut self, messages: &[ObjectId], wanted: &[Identity]) -> Result<bool> {
        if messages.len() < wanted.len() {
            return Ok(false);
        }
        for (message, wanted) in messages.iter().zip(wanted) {
            if self.find(*message)? != Some(*wanted) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
