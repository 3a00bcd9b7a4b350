//! Opens files that other programs created. Only regular files are opened: reading a pipe could
//! block, and a device may never end. For anything else, the error names the kind of the file.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

pub fn open(path: &Path) -> io::Result<File> {
    open_with_length(path).map(|(file, _)| file)
}

fn open_with_length(path: &Path) -> io::Result<(File, u64)> {
    // The kind is checked before opening, because some devices react to being opened.
    must_be_file(fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    // If a pipe has replaced the file since the check, opening it must not block.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let found = file.metadata()?;
    must_be_file(found.file_type())?;
    Ok((file, found.len()))
}

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (file, length) = open_with_length(path)?;
    read_of_length(file, length)
}

/// Reads a file to its end. Fails if its length exceeds the available memory.
pub fn read_all(file: File) -> io::Result<Vec<u8>> {
    let length = file.metadata().map_or(0, |found| found.len());
    read_of_length(file, length)
}

/// Reads a file whose length is known to its end, even if the length has changed.
pub fn read_of_length(file: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(0))?;
    // `take`, because `File` would ask the system for the length and the position again.
    file.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Fails unless `kind` is a regular file. The error names the kind.
pub fn must_be_file(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let error =
        if kind.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    Err(io::Error::new(error, format!("it is {}, not a file", what(kind))))
}

#[cfg(unix)]
fn what(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn what(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a link",
        _ => "something else",
    }
}

/// Reads some bytes, and retries if a signal interrupts the call. Returns 0 at the end of the
/// input.
pub fn read_some(input: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_accepts_only_regular_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"bytes").unwrap();
        assert_eq!(read(&path).unwrap(), b"bytes");
        let error = read(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a file");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[cfg(unix)]
    fn read_refuses_pipes_and_devices_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(read(&pipe).unwrap_err().to_string(), "it is a pipe, not a file");
        let device = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(device.to_string(), "it is a device, not a file");
    }

    /// A reader whose first calls fail with `Interrupted`, as many as the number says.
    struct Interrupted(u8);

    impl Read for Interrupted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 > 0 {
                self.0 -= 1;
                return Err(io::ErrorKind::Interrupted.into());
            }
            buffer[0] = 7;
            Ok(1)
        }
    }

    #[test]
    fn interrupted_read_is_retried() {
        let mut buffer = [0; 3];
        assert_eq!(read_some(&mut Interrupted(2), &mut buffer).unwrap(), 1);
        assert_eq!(buffer, [7, 0, 0]);
    }
}
