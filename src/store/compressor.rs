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
    deflate: libdeflater::Compressor,
    /// For what is so short that time is no matter.
    short: Option<libdeflater::Compressor>,
    buffer: Vec<u8>,
}

/// Up to this length, the best level costs nothing that anybody would notice.
const SHORT: usize = 1 << 10;
/// From this length on, memory for the result is not kept.
const LONG: usize = 4 << 20;

impl Compressor {
    pub(super) fn new() -> Self {
        Self { deflate: at(LEVEL), short: None, buffer: Vec::new() }
    }

    /// For what is packed again in a small step, between two saves.
    pub(super) fn steady() -> Self {
        Self { deflate: at(STEADY), short: None, buffer: Vec::new() }
    }

    /// For what is packed once and read for years.
    pub(super) fn thorough() -> Self {
        Self { deflate: at(THOROUGH), short: Some(at(BEST)), buffer: Vec::new() }
    }

    pub(super) fn compress(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        let short = self.short.as_mut().filter(|_| data.len() <= SHORT);
        let deflate = short.unwrap_or(&mut self.deflate);
        let bound = deflate.zlib_compress_bound(data.len());
        let failed = Error::git("compressing an object");
        if data.len() > LONG {
            // Fresh from the system, so that only what is written to takes room: what shrinks to nothing needs nothing.
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

fn at(level: i32) -> libdeflater::Compressor {
    libdeflater::Compressor::new(CompressionLvl::new(level).unwrap_or_default())
}
