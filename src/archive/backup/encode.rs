//! Writes a backup.

use std::io::{self, Write};

use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

use super::{BackupError, Header, LONGEST_OBJECT, MAGIC, Result, VERSION};
use crate::parallel::cores;
use crate::progress::Monitor;
use crate::store::{Kind, LongBlob, PackSlot, Reader};

/// Compression level: the highest level at which zstd does not search exhaustively. Level 19 takes
/// ten times as long and saves only a tenth.
const LEVEL: i32 = 15;
/// Length of zstd's window, as a power of two. Similar objects are neighbours, so a window twice as
/// long saves nothing for plain chats, and only 3 % for chats with data of ST-Auto-Recap.
const LOOK_BACK_LOG: u32 = 22;
/// Sizes of zstd's search tables. Larger tables take up to three times as long and save equally
/// little.
const TABLES: [CParameter; 2] = [CParameter::ChainLog(19), CParameter::HashLog(18)];
/// Number of bytes that a core compresses at a time. The encoder needs 18 MB of memory in total;
/// with jobs of 4 MiB it would need 40 MB.
const JOB: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub objects: u64,
    pub bytes: u64,
}

/// Writes a backup of `objects`, in this order. Verifies the hash of each object when it is read.
pub fn encode<W: Write>(
    out: W,
    header: &Header,
    objects: &[PackSlot],
    reader: &Reader,
    monitor: &mut dyn Monitor,
) -> Result<(W, Totals)> {
    let mut out = HashingWriter { out, hasher: blake3::Hasher::new() };
    let line = serde_json::to_string(header).map_err(|error| BackupError::Io(error.into()))?;
    write!(out, "{MAGIC}{VERSION}\n{line}\n").map_err(BackupError::Io)?;
    let mut stream = compressed(out).map_err(BackupError::Io)?;
    let mut totals = Totals::default();
    let mut buffer = Vec::new();
    monitor.begin("writing the backup", Some(objects.len() as u64));
    for object in objects {
        let blob = match object.kind {
            Kind::Blob => reader.long_blob(object.id)?,
            _ => None,
        };
        let bytes = match &blob {
            Some(_) => &[],
            None => reader.read(object.id, object.kind, &mut buffer)?,
        };
        let length = blob.as_ref().map_or(bytes.len() as u64, LongBlob::size);
        if length > LONGEST_OBJECT {
            return Err(BackupError::TooLong { id: object.id });
        }
        totals.objects += 1;
        totals.bytes += length;
        let mut head = vec![number_of(object.kind)];
        push_number(&mut head, length);
        let mut written = stream.write_all(&head).and_then(|()| stream.write_all(bytes));
        if let Some(blob) = blob {
            blob.for_each(|bytes| {
                if written.is_ok() {
                    written = stream.write_all(bytes);
                }
                Ok(())
            })?;
        }
        written.map_err(BackupError::Io)?;
        monitor.advance(1);
    }
    let mut end = vec![super::decode::END];
    push_number(&mut end, totals.objects);
    push_number(&mut end, totals.bytes);
    stream.write_all(&end).map_err(BackupError::Io)?;
    let mut out = stream.finish().map_err(BackupError::Io)?;
    let hash = out.hasher.finalize();
    out.out.write_all(hash.as_bytes()).map_err(BackupError::Io)?;
    Ok((out.out, totals))
}

fn compressed<W: Write>(out: W) -> io::Result<Encoder<'static, W>> {
    let mut stream = Encoder::new(out, LEVEL)?;
    stream.window_log(LOOK_BACK_LOG)?;
    for size in TABLES {
        stream.set_parameter(size)?;
    }
    stream.long_distance_matching(true)?;
    stream.multithread(u32::try_from(cores()).unwrap_or(1))?;
    stream.set_parameter(CParameter::JobSize(JOB))?;
    Ok(stream)
}

fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// Appends a number with seven bits per byte, lowest bits first. The eighth bit is set if more
/// bytes follow.
fn push_number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

struct HashingWriter<W> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
