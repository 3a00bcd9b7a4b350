//! Reads large files. Page faults would take most of the time, so large pages are requested from
//! the kernel, and all cores read in parallel, because each first access to a page waits.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use memmap2::MmapMut;

use crate::parallel::{cores, each};
use crate::regular;

/// Minimum size of files that are read into large pages, in bytes. Smaller files are read into
/// ordinary memory.
const LONG: u64 = 1 << 20;

/// Maximum size of files that are read, in bytes. SillyTavern reads a file as one string, and no
/// JavaScript engine supports longer strings.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Minimum size of files that all cores read in parallel, in bytes.
const VERY_LONG: usize = 8 << 20;

const LARGE_PAGE: usize = 2 << 20;

pub struct FileBytes(Memory);

enum Memory {
    Heap(Vec<u8>),
    /// Anonymous memory, not a mapping of the file, because another program may truncate the file
    /// at any time.
    Pages(MmapMut, Range<usize>),
}

impl FileBytes {
    pub fn as_slice(&self) -> &[u8] {
        self
    }

    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Pages(pages, range) => pages[range].to_vec(),
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Pages(pages, range) => &pages[range.clone()],
        }
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Memory::Heap(bytes))
    }
}

impl Clone for FileBytes {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for FileBytes {}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// Reads a file. All parts are read through one handle, so that a concurrent save by rename cannot
/// mix two versions.
pub(super) fn read_file(file: File) -> io::Result<FileBytes> {
    let length = file.metadata()?.len();
    if length > MAX_FILE_BYTES {
        let why = "it is larger than 512 MiB, which SillyTavern cannot read either";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    if length < LONG {
        return Ok(regular::read_of_length(file, length)?.into());
    }
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let (mut pages, range) = large_pages(length)?;
    read_parts(&file, &mut pages[range.clone()])?;
    Ok(FileBytes(Memory::Pages(pages, range)))
}

/// Returns new memory, in large pages if the system supports them, and a range of `length` bytes in
/// it.
fn large_pages(length: usize) -> io::Result<(MmapMut, Range<usize>)> {
    // One additional page: a large page begins at a multiple of its size.
    let pages = MmapMut::map_anon(length.next_multiple_of(LARGE_PAGE) + LARGE_PAGE)?;
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    let begin = pages.as_ptr().align_offset(LARGE_PAGE).min(LARGE_PAGE);
    Ok((pages, begin..begin + length))
}

fn read_parts(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    let readers = if bytes.len() < VERY_LONG { 1 } else { cores() };
    let part = bytes.len().div_ceil(readers);
    let parts = bytes.chunks_mut(part).enumerate();
    let read = |(n, buffer): (usize, &mut [u8])| read_exact_at(file, buffer, (n * part) as u64);
    each(parts, read).into_iter().collect()
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_every_length_are_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let (long, page) = (LONG as usize, LARGE_PAGE);
        let lengths = [0, 1, long - 1, long, long + 1, page - 1, page, page + 1, 2 * page];
        for length in lengths.into_iter().chain([VERY_LONG - 1, VERY_LONG, 3 * VERY_LONG + 7]) {
            let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            assert!(*read_file(File::open(&path).unwrap()).unwrap() == bytes, "{length}");
        }
    }
}
