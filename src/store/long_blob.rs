//! Reads long blobs in pieces, so that an attachment of hundreds of megabytes takes little memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use gix::zlib::{Decompress, FlushDecompress, Status};

use super::inflate::TORN;
use super::object::ObjectHasher;
use super::pack_file::PackFile;
use super::{Error, Kind, ObjectId, Result};
use crate::regular::{self, read_some};

/// A blob in a pack that is longer than [`LONG_BLOB`](super::limits::LONG_BLOB) and not stored as a
/// delta. Its hash was verified. The file stays open, so that the blob can be read even if another
/// program removes the pack.
pub struct LongBlob {
    id: ObjectId,
    path: PathBuf,
    file: File,
    /// Offset of its compressed bytes.
    offset: u64,
    size: u64,
    compressed: u64,
}

impl PackFile {
    /// Returns the long blob at this offset after reading it completely; `None` if the object is
    /// short, a delta, or not a blob.
    pub(super) fn long_blob(&self, id: ObjectId, offset: u64) -> Result<Option<LongBlob>> {
        let Some(entry) = self.long_entry(offset)? else { return Ok(None) };
        let path = self.path().with_extension("pack");
        let file = regular::open(&path).map_err(Error::io(&path))?;
        let (offset, size) = (entry.data_offset, entry.decompressed_size);
        let mut blob = LongBlob { id, path, file, offset, size, compressed: 0 };
        let mut hasher = ObjectHasher::new(Kind::Blob, size);
        blob.compressed = blob.inflate(|bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        let found = hasher.finish()?;
        if found != id {
            return Err(blob.damaged(format!("its bytes hash to {found}")));
        }
        Ok(Some(blob))
    }
}

impl LongBlob {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether compressing the blob again would make it at most a tenth smaller, as for pictures.
    pub(super) fn is_incompressible(&self) -> bool {
        self.compressed >= self.size / 10 * 9
    }

    /// Passes the bytes of the blob to `take`, in pieces.
    pub fn for_each(&self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.inflate(take).map(drop)
    }

    /// Passes the compressed bytes of the blob to `take`, in pieces.
    pub(super) fn for_each_compressed(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut input = self.input()?.take(self.compressed);
        let mut buffer = vec![0; PIECE];
        let mut passed = 0;
        while passed < self.compressed {
            let read = read_some(&mut input, &mut buffer).map_err(Error::io(&self.path))?;
            if read == 0 {
                return Err(self.damaged(TORN.into()));
            }
            take(&buffer[..read])?;
            passed += read as u64;
        }
        Ok(())
    }

    fn input(&self) -> Result<&File> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.offset)).map_err(Error::io(&self.path))?;
        Ok(file)
    }

    /// Inflates the blob, which must have exactly the recorded length. Returns the length of the
    /// compressed bytes.
    fn inflate(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let mut input = self.input()?;
        let mut stream = Decompress::new();
        let (mut compressed, mut inflated) = (vec![0; PIECE], vec![0; PIECE]);
        let mut unread = 0..0;
        loop {
            if unread.is_empty() {
                let read = read_some(&mut input, &mut compressed).map_err(Error::io(&self.path))?;
                unread = 0..read;
            }
            let (taken, written) = (stream.total_in(), stream.total_out());
            let from = &compressed[unread.clone()];
            let status = stream.decompress(from, &mut inflated, FlushDecompress::None);
            let status = status.map_err(|_| self.damaged(TORN.into()))?;
            let (taken, written) = (stream.total_in() - taken, stream.total_out() - written);
            unread.start += taken as usize;
            take(&inflated[..written as usize])?;
            let is_stuck = taken == 0 && written == 0;
            match status {
                Status::StreamEnd if stream.total_out() == self.size => {
                    return Ok(stream.total_in());
                }
                Status::Ok | Status::BufError if !is_stuck && stream.total_out() <= self.size => {}
                _ => return Err(self.damaged(TORN.into())),
            }
        }
    }

    fn damaged(&self, why: String) -> Error {
        Error::Damaged { id: self.id, why }
    }
}

/// Length, in bytes, of the pieces in which a blob is read.
const PIECE: usize = 1 << 16;
