//! Compresses similar blobs that are saved together. For example, ST-Auto-Recap copies the entire
//! lorebook into every second message. The first of several similar blobs is compressed, and the
//! others become deltas of it, which is both smaller and faster.

use std::slice::Chunks;

use super::compressor::{Compressor, Effort};
use super::delta::{self, Index};
use super::{ObjectId, Result};
use crate::parallel::cores;

pub(super) type NewBlob<'b> = (ObjectId, &'b [u8]);

/// A blob as it is written to the pack: compressed, or as a compressed delta of an earlier blob.
pub(super) struct EncodedBlob {
    pub base: Option<usize>,
    pub size: usize,
    pub compressed: Vec<u8>,
}

/// Minimum length, in bytes, of a blob that is stored as a delta or used as a base. Shorter blobs
/// are compressed just as fast.
const LEAST: usize = 4 << 10;
/// Maximum length, in bytes, of a blob that is stored as a delta or used as a base. Longer blobs
/// would need too much memory.
const LARGE: usize = 4 << 20;
/// Total length of all blobs, in bytes, from which a second thread is worth its cost even for few
/// blobs.
const LONG: usize = 1 << 20;

/// Maximum number of blobs in a part. With longer parts, some cores would be idle while the last
/// part is compressed.
const MAX_BLOBS_PER_PART: usize = 512;

pub(super) fn worth_a_thread<'b>(blobs: impl Iterator<Item = &'b [u8]>) -> usize {
    let is_long = blobs.map(<[u8]>::len).sum::<usize>() >= LONG;
    if is_long { 2 } else { 256 }
}

pub(super) fn parts<'p, 'b>(blobs: &'p [NewBlob<'b>]) -> Chunks<'p, NewBlob<'b>> {
    let least = worth_a_thread(blobs.iter().map(|(_, blob)| *blob));
    let of_one = blobs.len().div_ceil(cores()).min(MAX_BLOBS_PER_PART);
    blobs.chunks(if blobs.len() < least { least } else { of_one })
}

/// Number of bases that are tried. One is not enough, because other blobs come between similar
/// ones.
const BASES: usize = 4;

pub(super) fn compress_together(blobs: &[NewBlob<'_>]) -> Result<Vec<EncodedBlob>> {
    let mut compressor = Compressor::new(Effort::Quick);
    // Numbers and indices of the bases, the most recently used first.
    let mut bases: Vec<(usize, Index)> = Vec::with_capacity(BASES + 1);
    let mut ready = Vec::with_capacity(blobs.len());
    for (n, (_, blob)) in blobs.iter().enumerate() {
        let is_long = (LEAST..=LARGE).contains(&blob.len());
        let delta_of = |(number, index): &(usize, Index)| {
            let base = blobs[*number].1;
            let may_have = base.len() >= blob.len() / 2 && index.has_much_of(base, blob);
            may_have.then(|| delta::encode(base, index, blob, blob.len() / 4)).flatten()
        };
        let mut tried = bases.iter().enumerate().filter(|_| is_long);
        let delta = tried.find_map(|(at, base)| Some((at, delta_of(base)?)));
        ready.push(match delta {
            Some((at, delta)) => {
                bases[..=at].rotate_right(1);
                let (base, size) = (Some(bases[0].0), delta.len());
                EncodedBlob { base, size, compressed: compressor.compress(&delta)? }
            }
            None => {
                if is_long {
                    bases.insert(0, (n, Index::new(blob)));
                    bases.truncate(BASES);
                }
                EncodedBlob { base: None, size: blob.len(), compressed: compressor.compress(blob)? }
            }
        });
    }
    Ok(ready)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::Store;

    /// Returns pseudo-random letters, without repeated passages.
    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + ((state >> 40) % 26) as u8
        };
        std::iter::repeat_with(byte).take(bytes).collect()
    }

    #[test]
    fn similar_blobs_are_stored_as_deltas_and_read_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let common = noise(1, 100_000);
        let mut blobs: Vec<Vec<u8>> = Vec::new();
        for n in 0..30 {
            // Some of these blobs are long enough to be bases.
            blobs.push(noise(100 + n, 300 + 1000 * (n as usize % 6)));
            blobs.push([&noise(200 + n, 500), &common[..], &noise(300 + n, 10)].concat());
        }
        let list: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
        let mut writer = store.pack_writer();
        let mut ids = writer.add_blobs(&list, &HashSet::new()).unwrap();
        // Each core compresses only one of the long blobs completely. Without deltas, the pack
        // would have about 18 times the length of `common`.
        let most = crate::parallel::cores() * common.len();
        assert!((writer.bytes() as usize) < most, "{} bytes, not {most}", writer.bytes());
        // A blob unlike the others, one of the minimum length, one that is too short, one that is
        // too long, and an empty one.
        let others = [noise(7, 50_000), noise(8, 4096), noise(9, 4095), noise(10, 5 << 20), vec![]];
        let list: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
        ids.extend(writer.add_blobs(&list, &HashSet::new()).unwrap());
        blobs.extend(others);
        writer.finish().unwrap();
        let reader = store.reader();
        for (id, blob) in ids.iter().zip(&blobs) {
            assert!(reader.blob(*id).unwrap() == *blob);
        }
        let said = std::process::Command::new("git")
            .arg("-C")
            .arg(store.path())
            .args(["fsck", "--strict", "--full"])
            .status();
        assert!(said.is_err() || said.is_ok_and(|status| status.success()));
    }
}
