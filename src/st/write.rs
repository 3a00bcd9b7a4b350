//! The only place where a file of the library is written or removed.
//!
//! The bytes are durable before they take the name, and are read back after: what is reported as written is there.

use super::{Error, LibraryPath, Result};
use crate::durable::{self, Existing};
use std::fs;
use std::io;
use std::path::Path;

/// Write a file of the library at `root`, which must exist; folders below it are made.
pub fn write(root: &Path, path: &LibraryPath, bytes: &[u8], existing: Existing) -> Result<()> {
    if cfg!(windows) {
        check_for_windows(path)?;
    }
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    durable::create_dir_all(dir).map_err(Error::io(dir))?;
    durable::write(&full, bytes, existing).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyThere { path: full.clone() },
        _ => Error::Io { path: full.clone(), source },
    })?;
    if holds(&full, bytes).map_err(Error::io(&full))? {
        Ok(())
    } else {
        Err(Error::WrittenDiffers { path: full })
    }
}

/// Whether a file holds just these bytes; read in pieces, so that a long chat needs no second copy in memory.
fn holds(path: &Path, mut bytes: &[u8]) -> io::Result<bool> {
    let mut file = fs::File::open(path)?;
    let mut piece = vec![0; 1 << 17];
    loop {
        match io::Read::read(&mut file, &mut piece)? {
            0 => return Ok(bytes.is_empty()),
            read => match bytes.strip_prefix(&piece[..read]) {
                Some(rest) => bytes = rest,
                None => return Ok(false),
            },
        }
    }
}

/// Remove a file of the library, durably. The caller has made sure that its bytes are in the store.
pub fn remove(root: &Path, path: &LibraryPath) -> Result<()> {
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    fs::remove_file(&full).map_err(Error::io(&full))?;
    durable::sync_dir(dir).map_err(Error::io(dir))
}

/// Refuse if a symbolic link leads `dir` out of `root`. The file itself need not be looked at: a link there is replaced, not
/// followed.
fn stay_inside(root: &Path, dir: &Path, full: &Path) -> Result<()> {
    let inside = fs::canonicalize(root).map_err(Error::io(root))?;
    for above in dir.ancestors() {
        match fs::canonicalize(above) {
            Ok(real) if real.starts_with(&inside) => return Ok(()),
            Ok(_) => break,
            // Not made yet. (Nor can a folder be made through a link that leads nowhere.)
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(Error::Io { path: above.to_path_buf(), source });
            }
        }
    }
    Err(Error::LeadsOutside { path: full.to_path_buf() })
}

/// Windows would quietly write elsewhere: a colon opens a second stream of a file, dots and spaces at the end of a name fall off.
fn check_for_windows(path: &LibraryPath) -> Result<()> {
    let odd = path.as_str().split('/').any(|part| part.contains(':') || part.ends_with(['.', ' ']));
    if odd {
        let why = "Windows has no such file names";
        return Err(Error::BadName { name: path.to_string(), why });
    }
    Ok(())
}
