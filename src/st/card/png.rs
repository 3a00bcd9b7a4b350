//! The frame of a PNG: a signature and chunks, each with its length, kind, data and checksum. Lengths may lie: nothing is reserved on their word.

use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};

pub(in crate::st) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Why a picture cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PngError {
    #[error("it is not a PNG picture")]
    NoPng,
    #[error("the picture is torn")]
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

/// Reads the chunks of a picture one after the other, and of their data only what is asked for.
pub(super) struct Chunks<R> {
    file: BufReader<R>,
    length: u64,
    /// Where the file is read next.
    at: u64,
    /// Where the next chunk begins; none after the last.
    next: Option<u64>,
}

/// Where a chunk stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub kind: [u8; 4],
    /// Where its data begins.
    pub start: u64,
    pub length: u64,
}

impl<R: Read + Seek> Chunks<R> {
    pub fn of(mut file: R) -> Result<Self, PngError> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut file = BufReader::new(file);
        let mut signature = [0; 8];
        file.read_exact(&mut signature)?;
        if signature != SIGNATURE {
            return Err(PngError::NoPng);
        }
        Ok(Self { file, length, at: 8, next: Some(8) })
    }

    /// Returns the next chunk, which is there with its whole data; `None` after `IEND`, of which only the head must be there.
    pub fn next(&mut self) -> Result<Option<Place>, PngError> {
        let Some(begin) = self.next else { return Ok(None) };
        let mut head = [0; 8];
        self.seek(begin)?;
        self.file.read_exact(&mut head)?;
        self.at = begin + 8;
        let [a, b, c, d, kind @ ..] = head;
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let end = begin + 12 + length;
        self.next = (&kind != b"IEND").then_some(end);
        // A seek goes beyond the end without a word.
        if self.next.is_some_and(|next| next > self.length) {
            return Err(PngError::Torn);
        }
        Ok(Some(Place { kind, start: begin + 8, length }))
    }

    /// Reads the data of a chunk.
    pub fn read(&mut self, place: Place) -> Result<Vec<u8>, PngError> {
        let mut data = Vec::new();
        self.seek(place.start)?;
        let read = self.file.by_ref().take(place.length).read_to_end(&mut data)? as u64;
        self.at = place.start + read;
        if read == place.length { Ok(data) } else { Err(PngError::Torn) }
    }

    fn seek(&mut self, to: u64) -> io::Result<()> {
        self.file.seek_relative(to as i64 - self.at as i64)
    }
}

pub(in crate::st) struct Chunk<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    pub kind: [u8; 4],
    pub data: &'a [u8],
}

impl Chunk<'_> {
    /// Whether its checksum is right.
    pub(in crate::st) fn is_sound(&self) -> bool {
        encode(self.kind, self.data) == self.bytes
    }
}

/// The chunks up to the last, and what follows it; none if it is no whole PNG.
pub(in crate::st) fn chunks(png: &[u8]) -> Option<(Vec<Chunk<'_>>, &[u8])> {
    let mut places = Chunks::of(Cursor::new(png)).ok()?;
    let (mut chunks, mut rest) = (Vec::new(), png.get(8..)?);
    while let Some(Place { kind, length, .. }) = places.next().ok()? {
        let length = usize::try_from(length).ok()?;
        let (bytes, after) = rest.split_at_checked(length.checked_add(12)?)?;
        chunks.push(Chunk { bytes, kind, data: &bytes[8..8 + length] });
        rest = after;
    }
    Some((chunks, rest))
}

/// A chunk with its length and checksum.
pub(in crate::st) fn encode(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let body = [&kind[..], data].concat();
    let check = crc32fast::hash(&body);
    [&length.to_be_bytes()[..], &body, &check.to_be_bytes()].concat()
}

/// The keyword of a text chunk's data and what follows it, if it is one with a character. The keyword ends at a NUL, and its case does not matter.
pub(super) fn keyword_of(kind: [u8; 4], data: &[u8]) -> Option<(&'static str, &[u8])> {
    let end = data.iter().position(|byte| *byte == 0)?;
    let keyword = ["chara", "ccv3"]
        .into_iter()
        .find(|word| data[..end].eq_ignore_ascii_case(word.as_bytes()))?;
    (kind == *b"tEXt").then_some((keyword, &data[end + 1..]))
}
