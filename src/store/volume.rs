//! Volumes: blobs that join short objects, so that these are compressed together.
//!
//! Short messages have little in common that a delta could copy. Compressed separately, they take
//! one and a half times the space of the chat compressed in one piece. So neighbouring messages are
//! joined into a volume: an additional blob that no other object names. Each message becomes a
//! delta that copies its range of the volume. Git reads such a pack like any other. If git repacks
//! the store, it drops the volumes and finds its own deltas.

use std::ops::Range;

use super::compressor::Compressor;
use super::object::hash;
use super::{Kind, ObjectId, Result, delta};

/// Maximum length, in bytes, of an object that is joined into a volume. Longer objects are stored
/// as deltas of similar objects, or completely.
const LONGEST_MEMBER: usize = 16 << 10;
/// Length in bytes at which a volume is complete. Volumes are short, because reading a message
/// inflates its entire volume.
const COMPLETE: usize = 256 << 10;

/// A volume to which objects are being added.
#[derive(Default)]
pub(super) struct Volume {
    data: Vec<u8>,
    members: usize,
}

/// A volume as it is written to the pack.
pub(super) struct EncodedVolume {
    pub id: ObjectId,
    pub size: usize,
    pub compressed: Vec<u8>,
}

impl Volume {
    /// Whether a blob can be a member. An empty blob would become a delta of less than four bytes,
    /// which git does not accept.
    pub(super) fn takes(blob: &[u8]) -> bool {
        !blob.is_empty() && blob.len() <= LONGEST_MEMBER
    }

    /// Adds a blob and returns its range in the volume.
    pub(super) fn add(&mut self, blob: &[u8]) -> Range<usize> {
        let begin = self.data.len();
        self.data.extend_from_slice(blob);
        let range = begin..self.data.len();
        // A line feed separates the objects, so that the end of one and the beginning of the next
        // do not form a word.
        self.data.push(b'\n');
        self.members += 1;
        range
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members == 0
    }

    pub(super) fn is_complete(&self) -> bool {
        self.data.len() >= COMPLETE
    }

    /// Whether the volume joins anything: a single object does not need a volume.
    pub(super) fn joins_objects(&self) -> bool {
        self.members > 1
    }

    pub(super) fn member(&self, range: Range<usize>) -> &[u8] {
        &self.data[range]
    }

    /// Returns the delta of the member at `range`.
    pub(super) fn delta(&self, range: Range<usize>) -> Vec<u8> {
        delta::copy_of(self.data.len(), range)
    }

    pub(super) fn encode(&self, compressor: &mut Compressor) -> Result<EncodedVolume> {
        let compressed = compressor.compress(&self.data)?;
        Ok(EncodedVolume { id: hash(Kind::Blob, &self.data)?, size: self.data.len(), compressed })
    }
}
