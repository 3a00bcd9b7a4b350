//! Inflates an entry of a pack. Memory is taken as bytes come, not as they are promised.

use gix::odb::pack::data;
use gix::zlib::{Decompress, FlushDecompress, Status};

pub(super) type Fault = &'static str;

pub(super) type Made<T> = std::result::Result<T, Fault>;

/// Up to this length memory is taken at once.
const AT_ONCE: usize = 1 << 20;
/// No zlib stream inflates to more than this many times its length.
pub(super) const ZLIB_RATIO: u64 = 1032;

pub(super) struct Zlib {
    /// For short objects, which most are: it takes a third of the time of zlib.
    once: libdeflater::Decompressor,
    stream: Option<Decompress>,
}

impl Default for Zlib {
    fn default() -> Self {
        Self { once: libdeflater::Decompressor::new(), stream: None }
    }
}

const TORN: Fault = "its bytes cannot be unpacked";
pub(super) const TOO_LONG: Fault = "it says that it is longer than any such object";

pub(super) fn inflate(
    data: &data::File,
    entry: &data::Entry,
    longest: u64,
    zlib: &mut Zlib,
    out: &mut Vec<u8>,
) -> Made<()> {
    let size = entry.decompressed_size;
    let there = (data.pack_end() as u64).saturating_sub(entry.data_offset);
    if size > longest {
        return Err(TOO_LONG);
    }
    if size > there.saturating_mul(ZLIB_RATIO) {
        return Err("it says that it is longer than its pack can make it");
    }
    let size = usize::try_from(size).map_err(|_| TORN)?;
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    out.clear();
    if size <= AT_ONCE {
        out.resize(size, 0);
        // A stream of another length than its entry says is wrong.
        let made = zlib.once.zlib_decompress(input, out).map_err(|_| TORN)?;
        return if made == size { Ok(()) } else { Err(TORN) };
    }
    inflate_pieces(input, size, zlib.stream.get_or_insert_default(), out)
}

/// Inflates exactly `size` bytes, into memory that grows as they come.
fn inflate_pieces(
    mut input: &[u8],
    size: usize,
    stream: &mut Decompress,
    out: &mut Vec<u8>,
) -> Made<()> {
    stream.reset();
    let mut filled = 0;
    loop {
        // One byte more than expected: only then is it seen that the stream ends where it should.
        let room = (filled * 2).clamp(AT_ONCE, size + 1);
        if out.len() < room {
            out.try_reserve_exact(room - out.len()).map_err(|_| "it needs too much memory")?;
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
) -> Made<&'b [u8]> {
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    let stream = zlib.stream.get_or_insert_default();
    stream.reset();
    stream.decompress(input, begin, FlushDecompress::None).map_err(|_| TORN)?;
    Ok(&begin[..stream.total_out() as usize])
}
