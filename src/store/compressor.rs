//! Compresses objects with libdeflate.

use libdeflater::CompressionLvl;

use super::{Error, Result};

/// How much is done to make an object small.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// For messages as they are saved: as small as with level 3 of zlib, in half the time; level 9
    /// would save 0.7 %.
    Quick,
    /// For steps between two saves, which the next save has to wait for.
    Steady,
    /// For packs that are read for years: 5 % smaller than level 9 of zlib. The next two levels take
    /// up to three times as long for another 0.5 %.
    Thorough,
}

/// Makes zlib streams, each of one object. The tables are kept from one to the next: making them
/// again costs more than a short message.
pub(super) struct Compressor {
    effort: Effort,
    deflate: Option<libdeflater::Compressor>,
    buffer: Vec<u8>,
}

/// From this length on the memory for the result is not kept.
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
        let failed = Error::git("compressing an object");
        if data.len() > LONG {
            // Fresh from the system, so that only pages that are written to take memory.
            must_have_memory(bound)?;
            let mut buffer = vec![0; bound];
            let written = deflate.zlib_compress(data, &mut buffer).map_err(failed)?;
            return Ok(buffer[..written].to_vec());
        }
        // Zeroed once and not for every message.
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let written = deflate.zlib_compress(data, &mut self.buffer).map_err(failed)?;
        Ok(self.buffer[..written].to_vec())
    }
}

/// Asks for memory before, because libdeflate would panic without it.
fn tables(effort: Effort) -> Result<libdeflater::Compressor> {
    // Memory that is more than enough for the tables of the level.
    let (level, memory) = match effort {
        Effort::Quick => (1, 2 << 20),
        Effort::Steady => (6, 2 << 20),
        Effort::Thorough => (10, 12 << 20),
    };
    must_have_memory(memory)?;
    Ok(libdeflater::Compressor::new(CompressionLvl::new(level).unwrap_or_default()))
}

/// Fails if there is not so much memory. Other threads may still use it up before us.
fn must_have_memory(bytes: usize) -> Result<()> {
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    let no_memory = |_| Error::git("compressing an object")("there is not enough memory");
    reserved.map_err(no_memory)
}
