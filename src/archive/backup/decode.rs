//! Reads a backup. Whatever the stream contains, memory is limited to zstd's window and one object.

use std::io::{self, BufRead, Read};

use zstd::stream::read::Decoder as Zstd;

use super::error::reading;
use super::{AGE_MAGIC, BackupError, Header, LONGEST_HEADER, MAGIC, Result, VERSION, WINDOW_LOG};
use crate::regular::read_some;
use crate::store::{Kind, ObjectHasher, ObjectId, longest};

/// Length, in bytes, of the pieces in which an object is hashed.
const PIECE: usize = 1 << 16;
/// Kind of the last record, which ends the stream.
pub(super) const END: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupKind {
    Plain,
    Encrypted,
    Other,
}

pub fn peek(begin: &[u8]) -> BackupKind {
    if begin.starts_with(MAGIC.as_bytes()) {
        BackupKind::Plain
    } else if begin.starts_with(AGE_MAGIC) {
        BackupKind::Encrypted
    } else {
        BackupKind::Other
    }
}

pub struct Decoder<R: Read> {
    header: Header,
    stream: Option<Zstd<'static, HashingReader<R>>>,
    object: Vec<u8>,
    commits: u64,
    objects: u64,
    bytes: u64,
}

impl<R: Read> Decoder<R> {
    /// Reads the header. The header must not be trusted before the end of the stream, where its
    /// checksum is compared.
    pub fn new(input: R) -> Result<Self> {
        let mut input = HashingReader::new(input);
        let mut line = Vec::new();
        read_line(&mut input, &mut line, MAGIC.len() as u64 + 12)?;
        let version = std::str::from_utf8(&line).ok().and_then(|line| line.strip_prefix(MAGIC));
        let version = version.ok_or(BackupError::Foreign)?;
        match version.parse::<u32>() {
            Ok(VERSION) if version == VERSION.to_string() => {}
            Ok(_) => return Err(BackupError::Newer { found: version.to_owned() }),
            Err(_) => return Err(BackupError::Foreign),
        }
        line.clear();
        read_line(&mut input, &mut line, LONGEST_HEADER)?;
        let header = Header::parse(&line)?;
        let mut stream = Zstd::with_buffer(input).map_err(reading)?.single_frame();
        stream.window_log_max(WINDOW_LOG).map_err(reading)?;
        let (stream, object) = (Some(stream), Vec::new());
        Ok(Self { header, stream, object, commits: 0, objects: 0, bytes: 0 })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the next object. Returns `None` if all objects were read and the checksum of the
    /// stream is correct.
    pub fn next_object(&mut self) -> Result<Option<(Kind, &[u8])>> {
        let Some((kind, length)) = self.next_record()? else { return Ok(None) };
        self.object.clear();
        let Some(stream) = &mut self.stream else { return Ok(None) };
        // The buffer grows with the bytes that are read, not with the stated length, which may be
        // forged.
        let read = stream.by_ref().take(length).read_to_end(&mut self.object).map_err(reading)?;
        if read as u64 != length {
            return Err(BackupError::damaged("it is truncated"));
        }
        Ok(Some((kind, &self.object)))
    }

    /// Returns the id of the next object, or `None` at the end like
    /// [`next_object`](Self::next_object). The object is read in pieces and not kept.
    pub fn next_id(&mut self) -> Result<Option<ObjectId>> {
        let Some((kind, mut left)) = self.next_record()? else { return Ok(None) };
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut hasher = ObjectHasher::new(kind, left);
        while left > 0 {
            let most = left.min(PIECE as u64) as usize;
            self.object.resize(most, 0);
            let read = read_some(stream, &mut self.object).map_err(reading)?;
            if read == 0 {
                return Err(BackupError::damaged("it is truncated"));
            }
            hasher.update(&self.object[..read]);
            left -= read as u64;
        }
        Ok(Some(hasher.finish()?))
    }

    /// Reads the kind and length of the next object.
    fn next_record(&mut self) -> Result<Option<(Kind, u64)>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut kind = [0];
        stream.read_exact(&mut kind).map_err(reading)?;
        let length = read_number(stream)?;
        let kind = match kind[0] {
            END => return self.finish(length).map(|()| None),
            1 => Kind::Commit,
            2 => Kind::Tree,
            3 => Kind::Blob,
            other => {
                return Err(BackupError::damaged(format!("a record has the unknown kind {other}")));
            }
        };
        if self.objects == self.header.objects {
            return Err(BackupError::damaged("it has more objects than its header states"));
        }
        if length > longest(kind) {
            let most = longest(kind) >> 20;
            return Err(BackupError::damaged(format!("a {kind} in it is longer than {most} MiB")));
        }
        self.objects += 1;
        self.commits += u64::from(kind == Kind::Commit);
        self.bytes += length;
        Ok(Some((kind, length)))
    }

    /// Checks the end of the stream: its counts and its checksum must be correct, and no data may
    /// follow.
    fn finish(&mut self, objects: u64) -> Result<()> {
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        let bytes = read_number(&mut stream)?;
        if read_some(&mut stream, &mut [0]).map_err(reading)? > 0 {
            return Err(BackupError::damaged("there is data after its last record"));
        }
        let promised = (self.header.objects, self.header.snapshots);
        if (objects, bytes) != (self.objects, self.bytes)
            || (self.objects, self.commits) != promised
        {
            return Err(BackupError::damaged("its counts are wrong"));
        }
        let mut input = stream.finish();
        let hash = input.hasher.finalize();
        let mut written = [0; 32];
        input.read_exact(&mut written).map_err(reading)?;
        if hash != blake3::Hash::from_bytes(written) {
            return Err(BackupError::damaged("its bytes do not match its BLAKE3 checksum"));
        }
        if read_some(&mut input, &mut [0]).map_err(reading)? > 0 {
            return Err(BackupError::damaged("there is data after its end"));
        }
        Ok(())
    }
}

fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, longest: u64) -> Result<()> {
    input.take(longest).read_until(b'\n', line).map_err(reading)?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        // Without a line feed, the first line is not that of a backup, but the second line may be a
        // truncated header.
        _ if longest == LONGEST_HEADER => Err(BackupError::damaged("its header does not end")),
        _ => Err(BackupError::Foreign),
    }
}

fn read_number(input: &mut impl Read) -> Result<u64> {
    let mut n = 0_u64;
    for shift in (0..63).step_by(7) {
        let mut byte = [0];
        input.read_exact(&mut byte).map_err(reading)?;
        n |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(BackupError::damaged("a number in it is too large"))
}

/// Buffered reader that hashes the bytes that are consumed from its buffer. zstd consumes only its
/// frame, so the checksum that follows the frame is not hashed.
struct HashingReader<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    hasher: blake3::Hasher,
}

impl<R: Read> HashingReader<R> {
    fn new(input: R) -> Self {
        Self { input, buffer: vec![0; 1 << 17], at: 0, end: 0, hasher: blake3::Hasher::new() }
    }
}

impl<R: Read> BufRead for HashingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            self.at = 0;
            self.end = read_some(&mut self.input, &mut self.buffer)?;
        }
        Ok(&self.buffer[self.at..self.end])
    }

    fn consume(&mut self, taken: usize) {
        let end = (self.at + taken).min(self.end);
        self.hasher.update(&self.buffer[self.at..end]);
        self.at = end;
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let here = self.fill_buf()?;
        let taken = here.len().min(bytes.len());
        bytes[..taken].copy_from_slice(&here[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}
