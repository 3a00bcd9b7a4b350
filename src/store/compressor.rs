//! Making objects small.

use libdeflater::CompressionLvl;

use super::{Error, Result};

/// libdeflate's level, for messages as they are saved: as small as with level 3 of zlib, in half the time; level 9 would save 0.7 %.
const LEVEL: i32 = 1;
/// The level of the small steps in between, which a save has to wait for.
const STEADY: i32 = 6;
/// The level of `gc`: 5 % smaller than level 9 of zlib. The next two take up to three times as long for another 0.5 %.
const THOROUGH: i32 = 10;
const BEST: i32 = 12;

/// Makes zlib streams, each of one object, with its tables kept from one to the next: making them anew costs more than a short message.
pub(super) struct Compressor {
    level: i32,
    deflate: Option<libdeflater::Compressor>,
    /// The level for what is so short that time is no matter.
    short_level: i32,
    short: Option<libdeflater::Compressor>,
    buffer: Vec<u8>,
}

/// Up to this length, the best level costs nothing that anybody would notice.
const SHORT: usize = 1 << 10;
/// From this length on, memory for the result is not kept.
const LONG: usize = 4 << 20;

impl Compressor {
    pub(super) fn new() -> Self {
        Self::of(LEVEL, LEVEL)
    }

    /// For what is packed again in a small step, between two saves.
    pub(super) fn steady() -> Self {
        Self::of(STEADY, STEADY)
    }

    /// For what is packed once and read for years.
    pub(super) fn thorough() -> Self {
        Self::of(THOROUGH, BEST)
    }

    fn of(level: i32, short_level: i32) -> Self {
        Self { level, deflate: None, short_level, short: None, buffer: Vec::new() }
    }

    pub(super) fn compress(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        let (level, kept) = if data.len() <= SHORT && self.short_level != self.level {
            (self.short_level, &mut self.short)
        } else {
            (self.level, &mut self.deflate)
        };
        let deflate = match kept {
            Some(deflate) => deflate,
            None => kept.insert(at(level)?),
        };
        let bound = deflate.zlib_compress_bound(data.len());
        let failed = Error::git("compressing an object");
        if data.len() > LONG {
            // Fresh from the system, so that only what is written to takes room: what shrinks to nothing needs nothing.
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

/// Makes the tables of a level. Without memory for them the library would panic; it is asked for before.
fn at(level: i32) -> Result<libdeflater::Compressor> {
    /// More than the tables of any level below [`THOROUGH`] take, and more than those of any level.
    const TABLES: [usize; 2] = [2 << 20, 12 << 20];
    must_have_memory(TABLES[usize::from(level >= THOROUGH)])?;
    Ok(libdeflater::Compressor::new(CompressionLvl::new(level).unwrap_or_default()))
}

/// Fails if there is not so much memory. Other threads may use it up a moment later; the next allocation then ends the program, as it does for all Rust programs.
fn must_have_memory(bytes: usize) -> Result<()> {
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    let no_memory = |_| Error::git("compressing an object")("there is not enough memory");
    reserved.map_err(no_memory)
}
