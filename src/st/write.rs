//! The only place where a file of the library is written or removed.
//!
//! The bytes are durable before they take the name, and are read back after: what is reported as written is there.

use super::sanitize::is_name_on_windows;
use super::{Error, LibraryPath, Result, TimelineName, is_attachment};
use crate::durable::{self, Existing, Temp};
use crate::{real_path, regular};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// What a file holds, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub bytes: u64,
    pub blake3: [u8; 32],
}

impl Fingerprint {
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: *blake3::hash(bytes).as_bytes() }
    }

    /// What is in the file; `None` if there is no such file. Read in pieces, so that a long chat needs no memory.
    pub fn of_file(path: &Path) -> Result<Option<Self>> {
        match fingerprint(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { path: path.to_owned(), source }),
        }
    }
}

fn fingerprint(path: &Path) -> io::Result<Fingerprint> {
    let mut file = regular::open(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut file)?;
    Ok(Fingerprint { bytes: hasher.count(), blake3: *hasher.finalize().as_bytes() })
}

/// Write a file of the library at `root`, which must exist; folders below it are made. `former` is what the file holds, if it is there: a
/// file that somebody saved since it was looked at is not overwritten. Mode and owner of what is replaced stay.
pub fn write(
    root: &Path,
    path: &LibraryPath,
    bytes: &[u8],
    former: Option<Fingerprint>,
) -> Result<()> {
    must_be_a_name_here(path)?;
    must_be_a_place(path)?;
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    make_folder(dir)?;
    durable::clear_left_behind(dir);
    let mut temp = Temp::beside(&full).map_err(Error::io(&full))?;
    temp.file().write_all(bytes).map_err(Error::io(&full))?;
    match fs::metadata(&full) {
        Ok(there) => temp.resemble(&there).map_err(Error::io(&full))?,
        Err(_) => {
            let folder = fs::metadata(dir).map_err(Error::io(dir))?;
            temp.belong_to(&folder).map_err(Error::io(&full))?;
        }
    }
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
    match holds(&full, bytes).map_err(Error::io(&full))? {
        true => Ok(()),
        false => Err(Error::WrittenDiffers { path: full }),
    }
}

/// Whether a file holds just these bytes.
fn holds(path: &Path, mut bytes: &[u8]) -> io::Result<bool> {
    let mut file = regular::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = regular::read_some(&mut file, &mut buffer)?;
        match bytes.split_at_checked(read) {
            Some((begin, rest)) if *begin == buffer[..read] => bytes = rest,
            _ => return Ok(false),
        }
        if read == 0 {
            return Ok(bytes.is_empty());
        }
    }
}

fn unchanged(full: &Path, former: Fingerprint) -> Result<()> {
    match Fingerprint::of_file(full)? == Some(former) {
        true => Ok(()),
        false => Err(Error::SavedMeanwhile { path: full.to_path_buf() }),
    }
}

/// Remove a file of the library that holds `former`, durably. The caller has made sure that these bytes are in the store.
pub fn remove(root: &Path, path: &LibraryPath, former: Fingerprint) -> Result<()> {
    must_be_a_place(path)?;
    let full = path.under(root);
    let dir = durable::parent(&full);
    stay_inside(root, dir, &full)?;
    unchanged(&full, former)?;
    durable::remove(&full).map_err(Error::io(&full))?;
    durable::sync_dir(dir).map_err(Error::io(dir))
}

/// Make a folder and those above it; each belongs to whom the one above it belongs.
fn make_folder(dir: &Path) -> Result<()> {
    let mut missing: Vec<_> = dir.ancestors().take_while(|dir| !dir.is_dir()).collect();
    while let Some(folder) = missing.pop() {
        durable::create_dir_all(folder).map_err(Error::io(folder))?;
        belong_to_parent(folder).map_err(Error::io(folder))?;
    }
    Ok(())
}

#[cfg(unix)]
fn belong_to_parent(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let (own, above) = (fs::metadata(folder)?, fs::metadata(durable::parent(folder))?);
    if (own.uid(), own.gid()) == (above.uid(), above.gid()) {
        return Ok(());
    }
    match chown(folder, Some(above.uid()), Some(above.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn belong_to_parent(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Refuse if a symbolic link leads `dir` out of `root`. The file itself need not be looked at: a link there is replaced, not
/// followed.
fn stay_inside(root: &Path, dir: &Path, full: &Path) -> Result<()> {
    // Folders are made below it, and never itself.
    fs::metadata(root).map_err(Error::io(root))?;
    let outside = || Error::LeadsOutside { path: full.to_path_buf() };
    let mut at = root.to_path_buf();
    for part in dir.strip_prefix(root).map_err(|_| outside())? {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                let inside = real_path::of_existing(root).map_err(Error::io(root))?;
                // A folder cannot be made through a link that leads nowhere.
                let real = real_path::of_existing(&at);
                if !real.is_ok_and(|real| real.starts_with(inside)) {
                    return Err(outside());
                }
            }
            Ok(_) => {}
            // Not made yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(source) => return Err(Error::Io { path: at, source }),
        }
    }
    Ok(())
}

/// Whether a command may write a file here: only where a timeline's own file, a lorebook or an attachment can be. `secrets.json`, `config.yaml` and all else of
/// SillyTavern's are never stvc's to write.
fn is_place(path: &LibraryPath) -> bool {
    // SillyTavern cuts the ending off a very long name of a lorebook.
    let book = path.as_str().strip_prefix("worlds/");
    let is_book = book.is_some_and(|name| !name.contains('/'));
    is_book || TimelineName::of_file(path).is_some() || is_attachment(path)
}

/// Refuses a path that no file of a timeline has.
pub fn must_be_a_place(path: &LibraryPath) -> Result<()> {
    match is_place(path) {
        true => Ok(()),
        false => Err(Error::BadName {
            name: path.to_string(),
            why: "no chat, lorebook, card, group, picture or attachment is stored there",
        }),
    }
}

/// Returns why a file cannot be written or removed at a path without following a link, if it cannot. What cannot be looked at just now is left to the attempt.
pub fn why_not_writable(root: &Path, path: &LibraryPath) -> Option<String> {
    let mut at = root.to_path_buf();
    let mut parts = path.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let is_last = parts.peek().is_none();
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                return Some(format!("{path} leads through a link"));
            }
            Ok(found) if is_last && !found.is_file() => {
                return Some(format!("{path} is not a file"));
            }
            Ok(found) if !is_last && !found.is_dir() => {
                return Some(format!("{path} is inside a file"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                return Some(format!("{path} is too long"));
            }
            // Further names may be too long, too.
            Err(_) => {
                if part.len() > LONGEST_NAME {
                    return Some(format!("{path} is too long"));
                }
            }
        }
    }
    None
}

/// File systems stop here, in bytes or in other units that are no shorter.
const LONGEST_NAME: usize = 255;

/// Refuse a path that this system has no file names for. Windows would quietly write elsewhere: a colon opens a second stream of a file, dots and spaces at the end of
/// a name fall off, `NUL` is a device.
pub fn must_be_a_name_here(path: &LibraryPath) -> Result<()> {
    if cfg!(windows) && !path.as_str().split('/').all(is_name_on_windows) {
        let why = "Windows has no such file names";
        return Err(Error::BadName { name: path.to_string(), why });
    }
    Ok(())
}
