//! The only place where a file of the library is written or removed.
//!
//! The bytes are durable before they take the name, and are read back after: what is reported as written is there.

use super::{Error, LibraryPath, Result};
use crate::durable::{self, Existing, Temp};
use std::fs;
use std::io;
use std::path::Path;

/// Write a file of the library at `root`, which must exist; folders below it are made. `former` is what the file holds, if it is there: a
/// file that somebody saved since it was looked at is not overwritten.
pub fn write(root: &Path, path: &LibraryPath, bytes: &[u8], former: Option<&[u8]>) -> Result<()> {
    if cfg!(windows) {
        check_for_windows(path)?;
    }
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    durable::create_dir_all(dir).map_err(Error::io(dir))?;
    durable::clear_left_behind(dir);
    let mut temp = Temp::beside(&full).map_err(Error::io(&full))?;
    io::Write::write_all(temp.file(), bytes).map_err(Error::io(&full))?;
    temp.file().sync_all().map_err(Error::io(&full))?;
    let existing = match former {
        None => Existing::Keep,
        Some(former) => {
            // As late as can be: only the rename comes after.
            unchanged(&full, former)?;
            Existing::Replace
        }
    };
    temp.finish(&full, existing).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyThere { path: full.clone() },
        _ => Error::Io { path: full.clone(), source },
    })?;
    durable::sync_dir(dir).map_err(Error::io(dir))?;
    if holds(&full, bytes).map_err(Error::io(&full))? {
        Ok(())
    } else {
        Err(Error::WrittenDiffers { path: full })
    }
}

fn unchanged(full: &Path, former: &[u8]) -> Result<()> {
    match holds(full, former) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::SavedMeanwhile { path: full.to_path_buf() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::SavedMeanwhile { path: full.to_path_buf() })
        }
        Err(source) => Err(Error::Io { path: full.to_path_buf(), source }),
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

/// Remove a file of the library that holds `former`, durably. The caller has made sure that these bytes are in the store.
pub fn remove(root: &Path, path: &LibraryPath, former: &[u8]) -> Result<()> {
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    unchanged(&full, former)?;
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
