//! Reading a long file with all cores. Most of the time goes into the kernel's handing out of fresh memory, page by page, and that is done
//! by whoever touches it first.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread::scope;

use crate::parallel::cores;

/// Files shorter than this are read in one go.
const LONG: u64 = 4 << 20;

/// The bytes of a file. All parts are read through one handle: whoever saves it meanwhile by a rename does not mix two files.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let cores = cores();
    if length < LONG || cores == 1 {
        drop(file);
        return fs::read(path);
    }
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; length];
    let part = length.div_ceil(cores);
    let file = &file;
    scope(|scope| {
        let mut parts = bytes.chunks_mut(part).enumerate();
        let here = parts.next();
        let read = |(n, buffer): (usize, &mut [u8])| read_exact_at(file, buffer, (n * part) as u64);
        let readers: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, io::Result<()>>| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        here.map_or(Ok(()), read)?;
        readers.into_iter().try_for_each(join)
    })?;
    Ok(bytes)
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_come_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        for length in
            [0, 1, LONG as usize - 1, LONG as usize, LONG as usize + 1, 3 * LONG as usize + 7]
        {
            let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            assert!(read_file(&path).unwrap() == bytes, "{length}");
        }
    }
}
