//! Compresses objects with libdeflate.

use libdeflater::CompressionLvl;

use super::{Error, Result};

/// Compression effort: a trade-off between time and size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Used when messages are saved. The result is as small as with zlib level 3, in half the time;
    /// zlib level 9 would save another 0.7 %.
    Quick,
    /// Used when small packs are joined after a save (`fold_packs`) or objects are removed from
    /// packs (`strip_packs`): the next command waits for the result.
    Steady,
    /// Used by `gc`, whose packs are read for years. The result is 5 % smaller than with zlib level
    /// 9. The next two levels take up to three times as long and save only another 0.5 %.
    Thorough,
}

/// Compresses objects to zlib streams. Reuses its tables, because creating them takes longer than
/// compressing a short message.
pub(super) struct Compressor {
    effort: Effort,
    deflate: Option<libdeflater::Compressor>,
    buffer: Vec<u8>,
}

/// Maximum length of an object, in bytes, for which the result buffer is reused.
const LONG: usize = 4 << 20;

impl Compressor {
    pub(super) fn new(effort: Effort) -> Self {
        Self { effort, deflate: None, buffer: Vec::new() }
    }

    pub(super) fn compress(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        let deflate = match &mut self.deflate {
            Some(deflate) => deflate,
            none => none.insert(tables(self.effort)?),
        };
        let bound = deflate.zlib_compress_bound(data.len());
        let failed = Error::git("cannot compress an object");
        if data.len() > LONG {
            // A new zeroed buffer of this size comes directly from the system, so only pages that
            // are written take memory.
            must_have_memory(bound)?;
            let mut buffer = vec![0; bound];
            let written = deflate.zlib_compress(data, &mut buffer).map_err(failed)?;
            buffer.truncate(written);
            return Ok(buffer);
        }
        // The buffer only grows, so it is not zeroed again for every message.
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let written = deflate.zlib_compress(data, &mut self.buffer).map_err(failed)?;
        Ok(self.buffer[..written].to_vec())
    }
}

/// Creates the compression tables. Checks the available memory first, because libdeflate panics if
/// its own allocation fails.
fn tables(effort: Effort) -> Result<libdeflater::Compressor> {
    // The second number is an upper limit, in bytes, for the memory of the level's tables.
    let (level, memory) = match effort {
        Effort::Quick => (1, 2 << 20),
        Effort::Steady => (6, 2 << 20),
        Effort::Thorough => (10, 12 << 20),
    };
    must_have_memory(memory)?;
    Ok(libdeflater::Compressor::new(CompressionLvl::new(level).unwrap_or_default()))
}

/// Fails if this much memory cannot be allocated. The memory is not reserved, so another thread may
/// still allocate it first.
fn must_have_memory(bytes: usize) -> Result<()> {
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    let no_memory = |_| Error::git("cannot compress an object")("not enough memory");
    reserved.map_err(no_memory)
}
