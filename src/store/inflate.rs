//! Inflates an entry of a pack. The recorded length may be forged, so the memory for a long entry
//! grows as bytes arrive.

use gix::odb::pack::data;
use gix::zlib::{Decompress, FlushDecompress, Status};

pub(super) type Fault = &'static str;

pub(super) type InflateResult<T> = std::result::Result<T, Fault>;

/// Maximum recorded length, in bytes, for which the memory is allocated at once.
const MAX_FIRST_ALLOCATION: usize = 1 << 20;
/// No zlib stream inflates to more than this many times its length.
pub(super) const ZLIB_RATIO: u64 = 1032;

pub(super) struct Zlib {
    /// Decompressor for short objects, as most are. It takes a third of the time of `stream`.
    once: libdeflater::Decompressor,
    stream: Option<Decompress>,
}

impl Default for Zlib {
    fn default() -> Self {
        Self { once: libdeflater::Decompressor::new(), stream: None }
    }
}

pub(super) const TORN: Fault = "its bytes cannot be decompressed";
pub(super) const TOO_LONG: Fault = "its recorded length exceeds the limit for such objects";

pub(super) fn inflate(
    data: &data::File,
    entry: &data::Entry,
    longest: u64,
    zlib: &mut Zlib,
    out: &mut Vec<u8>,
) -> InflateResult<()> {
    let size = entry.decompressed_size;
    let there = (data.pack_end() as u64).saturating_sub(entry.data_offset);
    if size > longest {
        return Err(TOO_LONG);
    }
    if size > there.saturating_mul(ZLIB_RATIO) {
        return Err("its recorded length is impossible for the size of its pack");
    }
    let size = usize::try_from(size).map_err(|_| TORN)?;
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    out.clear();
    if size <= MAX_FIRST_ALLOCATION {
        out.resize(size, 0);
        // The stream must inflate to exactly the recorded length.
        let made = zlib.once.zlib_decompress(input, out).map_err(|_| TORN)?;
        return if made == size { Ok(()) } else { Err(TORN) };
    }
    inflate_pieces(input, size, zlib.stream.get_or_insert_default(), out)
}

/// Inflates exactly `size` bytes. `out` grows as bytes arrive.
fn inflate_pieces(
    mut input: &[u8],
    size: usize,
    stream: &mut Decompress,
    out: &mut Vec<u8>,
) -> InflateResult<()> {
    stream.reset();
    let mut filled = 0;
    loop {
        // Room for one byte more than `size`, to detect a stream that is too long.
        let room = (filled * 2).clamp(MAX_FIRST_ALLOCATION, size + 1);
        if out.len() < room {
            out.try_reserve_exact(room - out.len())
                .map_err(|_| "there is not enough memory to read it")?;
            out.resize(room, 0);
        }
        let (taken, written) = (stream.total_in(), stream.total_out());
        let status = stream.decompress(input, &mut out[filled..], FlushDecompress::None);
        let status = status.map_err(|_| TORN)?;
        let (taken, written) = (stream.total_in() - taken, stream.total_out() - written);
        input = &input[taken as usize..];
        filled += written as usize;
        match status {
            Status::StreamEnd if filled == size => {
                out.truncate(size);
                return Ok(());
            }
            Status::StreamEnd => return Err(TORN),
            Status::Ok | Status::BufError if filled > size || (taken == 0 && written == 0) => {
                return Err(TORN);
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

pub(super) fn begin_of<'b>(
    data: &data::File,
    entry: &data::Entry,
    zlib: &mut Zlib,
    begin: &'b mut [u8],
) -> InflateResult<&'b [u8]> {
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    let stream = zlib.stream.get_or_insert_default();
    stream.reset();
    stream.decompress(input, begin, FlushDecompress::None).map_err(|_| TORN)?;
    Ok(&begin[..stream.total_out() as usize])
}
