//! The index of a pack, version 2: the offset of each object. See git's `gitformat-pack`.

use sha1::{Digest, Sha1};

use super::ObjectId;

pub(super) struct IndexEntry {
    pub id: ObjectId,
    pub crc32: u32,
    pub offset: u64,
}

/// Smallest offset that is stored with 8 bytes, in a separate table.
const LARGE: u64 = 0x8000_0000;

/// Returns the SHA-1 checksum at the end of a pack or index. The checksum only detects damage and
/// does not identify an object. So it is computed without protection against collision attacks,
/// which is three times as fast. Git does the same.
pub(super) fn checksum(bytes: &[u8]) -> ObjectId {
    ObjectId::Sha1(Sha1::digest(bytes).into())
}

pub(super) fn encode(entries: &mut [IndexEntry], pack_checksum: ObjectId) -> Vec<u8> {
    entries.sort_by_key(|entry| entry.id);
    let mut out = Vec::with_capacity(8 + 256 * 4 + entries.len() * 28 + 40);
    out.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut below = 0;
    for byte in 0..=255u8 {
        while below < entries.len() && entries[below].id.as_slice()[0] <= byte {
            below += 1;
        }
        out.extend_from_slice(&(below as u32).to_be_bytes());
    }
    for entry in &*entries {
        out.extend_from_slice(entry.id.as_slice());
    }
    for entry in &*entries {
        out.extend_from_slice(&entry.crc32.to_be_bytes());
    }
    let mut large = Vec::new();
    for entry in &*entries {
        let short = if entry.offset < LARGE {
            entry.offset as u32
        } else {
            large.push(entry.offset);
            LARGE as u32 | (large.len() - 1) as u32
        };
        out.extend_from_slice(&short.to_be_bytes());
    }
    for offset in large {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(pack_checksum.as_slice());
    let checksum = checksum(&out);
    out.extend_from_slice(checksum.as_slice());
    out
}
