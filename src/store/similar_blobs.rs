//! Compresses blobs that are saved together.
//!
//! - Similar blobs: ST-Auto-Recap copies the entire lorebook into every second message. The first
//!   of several similar blobs is compressed, and the others become deltas of it, which is both
//!   smaller and faster.
//! - Many short blobs, such as the messages of a new chat: they are joined into volumes, which are
//!   smaller and faster to compress than single messages.

use std::ops::Range;
use std::slice::Chunks;

use super::compressor::{Compressor, Effort};
use super::delta::{self, Index};
use super::volume::{EncodedVolume, Volume};
use super::{ObjectId, Result};
use crate::parallel::cores;

pub(super) type NewBlob<'b> = (ObjectId, &'b [u8]);

/// The blobs of a part, in their order, and the volumes of some of them.
pub(super) struct EncodedPart {
    pub blobs: Vec<EncodedBlob>,
    pub volumes: Vec<EncodedVolume>,
}

/// A blob as it is written to the pack: compressed, or as a compressed delta of its base.
pub(super) struct EncodedBlob {
    pub base: Option<BlobBase>,
    pub size: usize,
    pub compressed: Vec<u8>,
}

/// Position of a base in its [`EncodedPart`].
#[derive(Clone, Copy)]
pub(super) enum BlobBase {
    /// An earlier blob.
    Blob(usize),
    Volume(usize),
}

/// How short blobs are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShortBlobs {
    /// Each by itself, so that reading one does not inflate others.
    Separate,
    /// In volumes.
    Joined,
}

impl ShortBlobs {
    /// Chooses the layout for blobs that are saved together. The next join of packs makes volumes
    /// of the messages of small saves.
    pub(super) fn of(blobs: &[NewBlob<'_>]) -> Self {
        let short = blobs.iter().map(|(_, blob)| *blob).filter(|blob| Volume::takes(blob));
        if short.map(<[u8]>::len).sum::<usize>() < WORTH_VOLUMES {
            return Self::Separate;
        }
        Self::Joined
    }
}

/// Total length of short blobs, in bytes, from which they are joined into volumes.
const WORTH_VOLUMES: usize = 128 << 10;

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

/// Encodes the blobs of one part.
pub(super) fn compress_together(blobs: &[NewBlob<'_>], short: ShortBlobs) -> Result<EncodedPart> {
    let mut compressor = Compressor::new(Effort::Quick);
    // Numbers and indices of the bases, the most recently used first.
    let mut bases: Vec<(usize, Index)> = Vec::with_capacity(BASES + 1);
    let mut volumes = vec![Volume::default()];
    let mut choices = Vec::with_capacity(blobs.len());
    for (n, (_, blob)) in blobs.iter().enumerate() {
        let is_long = (LEAST..=LARGE).contains(&blob.len());
        let delta_of = |(number, index): &(usize, Index)| {
            let base = blobs[*number].1;
            let may_have = base.len() >= blob.len() / 2 && index.has_much_of(base, blob);
            may_have.then(|| delta::encode(base, index, blob, blob.len() / 4)).flatten()
        };
        let mut tried = bases.iter().enumerate().filter(|_| is_long);
        let delta = tried.find_map(|(at, base)| Some((at, delta_of(base)?)));
        if let Some((at, delta)) = delta {
            bases[..=at].rotate_right(1);
            choices.push(Choice::Delta { base: bases[0].0, delta });
            continue;
        }
        if is_long {
            bases.insert(0, (n, Index::new(blob)));
            bases.truncate(BASES);
        }
        if short == ShortBlobs::Separate || !Volume::takes(blob) {
            choices.push(Choice::Whole);
            continue;
        }
        if volumes.last().is_some_and(Volume::is_complete) {
            volumes.push(Volume::default());
        }
        let volume = volumes.len() - 1;
        choices.push(Choice::Member { volume, range: volumes[volume].add(blob) });
    }
    let mut encode = |bytes: &[u8], base| {
        let compressed = compressor.compress(bytes)?;
        Ok(EncodedBlob { base, size: bytes.len(), compressed })
    };
    let encoded = choices.into_iter().zip(blobs).map(|(choice, (_, blob))| match choice {
        Choice::Delta { base, delta } => encode(&delta, Some(BlobBase::Blob(base))),
        Choice::Member { volume, range } if volumes[volume].joins_objects() => {
            encode(&volumes[volume].delta(range), Some(BlobBase::Volume(volume)))
        }
        Choice::Member { .. } | Choice::Whole => encode(blob, None),
    });
    let blobs = encoded.collect::<Result<_>>()?;
    // Only the last volume can have fewer than two members, so no other position changes.
    volumes.retain(Volume::joins_objects);
    let volumes = volumes.iter().map(|volume| volume.encode(&mut compressor));
    Ok(EncodedPart { blobs, volumes: volumes.collect::<Result<_>>()? })
}

/// How a blob is encoded, before the lengths of all volumes are known.
enum Choice {
    Whole,
    Delta { base: usize, delta: Vec<u8> },
    Member { volume: usize, range: Range<usize> },
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;
    use std::process::Command;

    use super::super::Store;
    use super::super::packed_mark::PackedMark;
    use super::{Compressor, Effort};

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
        git_accepts(&store);
    }

    fn git_accepts(store: &Store) {
        let git = Command::new("git")
            .arg("-C")
            .arg(store.path())
            .args(["fsck", "--strict", "--full", "--no-dangling"])
            .status();
        assert!(git.is_err() || git.is_ok_and(|status| status.success()));
    }

    /// Adds the blobs to a new store, reads them back, and returns the store and the bytes of the
    /// pack.
    fn stored(folder: &Path, blobs: &[Vec<u8>]) -> (Store, u64) {
        let store = Store::create(folder).unwrap();
        let mut writer = store.pack_writer();
        let list: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
        let ids = writer.add_blobs(&list, &HashSet::new()).unwrap();
        let bytes = writer.bytes();
        writer.finish().unwrap();
        let reader = store.reader();
        for (id, blob) in ids.iter().zip(blobs) {
            assert!(reader.blob(*id).unwrap() == *blob);
        }
        git_accepts(&store);
        (store, bytes)
    }

    /// Returns a message like those of SillyTavern: its beginning is always the same.
    fn message(seed: u64, bytes: usize) -> Vec<u8> {
        let fields = br#"{"name":"Mira","is_user":false,"is_system":false,"extra":{},"mes":""#;
        [fields, &noise(seed, bytes)[..], br#""}"#].concat()
    }

    #[test]
    fn many_short_blobs_are_joined_and_the_packed_mark_lists_their_volumes() {
        let folder = tempfile::tempdir().unwrap();
        let mut blobs: Vec<_> = (0..1500).map(|n| message(n, 100 + n as usize % 700)).collect();
        // A repeated blob, an empty one, one that is too long for a volume, and a member that is
        // long enough to be a delta base.
        blobs.extend([blobs[3].clone(), vec![], noise(7, 40_000), message(8, 9_000)]);
        blobs.push([&blobs.last().unwrap()[..], b"!"].concat());
        let (store, joined) = stored(&folder.path().join("joined"), &blobs);
        let mark = PackedMark::read(&store.packed_mark()).unwrap();
        assert!(mark.volumes.len() > 1, "{} volumes", mark.volumes.len());
        let reader = store.reader();
        for volume in &mark.volumes {
            assert!(reader.blob(*volume).unwrap().len() > 1);
        }
        let (mut alone, separate) =
            (Compressor::new(Effort::Quick), folder.path().join("separate"));
        let one_by_one: usize =
            blobs[..1500].iter().map(|blob| alone.compress(blob).unwrap().len()).sum();
        assert!((joined as usize) < one_by_one, "{joined} bytes, separately {one_by_one}");

        let few: Vec<_> = blobs[..100].to_vec();
        assert!(few.iter().map(Vec::len).sum::<usize>() < super::WORTH_VOLUMES);
        let (store, _) = stored(&separate, &few);
        assert!(PackedMark::read(&store.packed_mark()).unwrap().volumes.is_empty());
    }
}
