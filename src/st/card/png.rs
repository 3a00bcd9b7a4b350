//! The structure of a PNG: a signature and chunks, each with length, kind, data and checksum. The
//! length in a damaged file may be wrong, so no memory is reserved from it.

use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};

pub(in crate::st) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Reason why a picture cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PngError {
    #[error("it is not a PNG picture")]
    NoPng,
    #[error("the picture is incomplete")]
    Torn,
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for PngError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Torn,
            _ => Self::Io(error),
        }
    }
}

/// Reader of the chunks of a picture, in order. It reads the data of a chunk only on request.
pub(super) struct Chunks<R> {
    file: R,
    length: u64,
    /// Offset of the next chunk in the file; `None` after the last chunk.
    next: Option<u64>,
}

#[derive(Clone, Copy)]
pub(super) struct ChunkPlace {
    pub kind: [u8; 4],
    /// Offset of the chunk's data in the file.
    start: u64,
    pub length: u64,
}

impl<R: Read + Seek> Chunks<R> {
    pub fn of(mut file: R) -> Result<Self, PngError> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut signature = [0; 8];
        file.read_exact(&mut signature)?;
        if signature != SIGNATURE {
            return Err(PngError::NoPng);
        }
        Ok(Self { file, length, next: Some(8) })
    }

    /// Returns the next chunk; `None` after `IEND`. Fails if the chunk is incomplete, except that
    /// `IEND` needs only its length and kind.
    pub fn next(&mut self) -> Result<Option<ChunkPlace>, PngError> {
        let Some(begin) = self.next else { return Ok(None) };
        let mut head = [0; 8];
        self.file.seek(SeekFrom::Start(begin))?;
        self.file.read_exact(&mut head)?;
        let [a, b, c, d, kind @ ..] = head;
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let end = begin + 12 + length;
        self.next = (&kind != b"IEND").then_some(end);
        // A seek beyond the end of the file does not fail.
        if self.next.is_some_and(|next| next > self.length) {
            return Err(PngError::Torn);
        }
        Ok(Some(ChunkPlace { kind, start: begin + 8, length }))
    }

    pub fn read(&mut self, place: ChunkPlace) -> Result<Vec<u8>, PngError> {
        let mut data = Vec::new();
        self.file.seek(SeekFrom::Start(place.start))?;
        let read = self.file.by_ref().take(place.length).read_to_end(&mut data)?;
        if read as u64 == place.length { Ok(data) } else { Err(PngError::Torn) }
    }
}

pub(in crate::st) struct Chunk<'a> {
    /// The complete chunk, including length, kind and checksum.
    pub bytes: &'a [u8],
    pub kind: [u8; 4],
    pub data: &'a [u8],
}

/// Returns all chunks, and the bytes after the last chunk; `None` if `png` is not a complete PNG.
pub(in crate::st) fn chunks(png: &[u8]) -> Option<(Vec<Chunk<'_>>, &[u8])> {
    let mut places = Chunks::of(Cursor::new(png)).ok()?;
    let (mut chunks, mut rest) = (Vec::new(), png.get(8..)?);
    while let Some(ChunkPlace { kind, length, .. }) = places.next().ok()? {
        let length = usize::try_from(length).ok()?;
        let (bytes, after) = rest.split_at_checked(length.checked_add(12)?)?;
        chunks.push(Chunk { bytes, kind, data: &bytes[8..8 + length] });
        rest = after;
    }
    Some((chunks, rest))
}

/// Returns the picture of a card without its texts; `None` if the card is not a complete PNG.
pub fn card_picture(card: &[u8]) -> Option<Vec<u8>> {
    let (chunks, _) = chunks(card)?;
    let shown = chunks.iter().filter(|chunk| !matches!(&chunk.kind, b"tEXt" | b"iTXt" | b"zTXt"));
    Some(SIGNATURE.iter().chain(shown.flat_map(|chunk| chunk.bytes)).copied().collect())
}

/// Returns the bytes of a complete chunk, including length and checksum.
pub(in crate::st) fn encode(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let body = [&kind[..], data].concat();
    let check = crc32fast::hash(&body);
    [&length.to_be_bytes()[..], &body, &check.to_be_bytes()].concat()
}

/// Returns the keyword of a `tEXt` chunk that contains a character, and the data after the keyword;
/// `None` for other chunks. The keyword ends at a NUL, and its case is ignored.
pub(super) fn keyword_of(kind: [u8; 4], data: &[u8]) -> Option<(&'static str, &[u8])> {
    let end = data.iter().position(|byte| *byte == 0)?;
    let keyword = ["chara", "ccv3"]
        .into_iter()
        .find(|word| data[..end].eq_ignore_ascii_case(word.as_bytes()))?;
    (kind == *b"tEXt").then_some((keyword, &data[end + 1..]))
}
