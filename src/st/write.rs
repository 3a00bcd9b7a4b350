//! The only place where a file of the library is written or removed.
//!
//! The bytes are durable before they take the name, and are read back after: what is reported as written is there.

use super::place::{Missing, Place, is_place, open_file};
use super::sanitize::is_name_on_windows;
use super::{Error, LibraryPath, Result};
use crate::durable::{self, Existing, TEMP_PREFIX, Temp};
use crate::regular;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

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
    pub fn of_file(root: &Path, path: &LibraryPath) -> Result<Option<Self>> {
        existing(open_file(root, path).and_then(fingerprint), &path.under(root))
    }

    fn of_place(place: &Place) -> Result<Option<Self>> {
        existing(place.folder.open_file(&place.name).and_then(fingerprint), &place.path())
    }
}

fn existing(found: io::Result<Fingerprint>, path: &Path) -> Result<Option<Fingerprint>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

fn fingerprint(mut file: File) -> io::Result<Fingerprint> {
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
    let place = Place::follow(root, path, Missing::Make);
    let place = place.map_err(Error::io(&full))?;
    let folder = &place.folder;
    durable::clear_left_behind(folder.path());
    let mut temp = Temp::in_folder(Arc::clone(folder), TEMP_PREFIX).map_err(Error::io(&full))?;
    temp.file().write_all(bytes).map_err(Error::io(&full))?;
    match folder.open_file(&place.name).and_then(|there| there.metadata()) {
        Ok(there) => temp.resemble(&there).map_err(Error::io(&full))?,
        Err(_) => {
            let above = folder.metadata().map_err(Error::io(&full))?;
            temp.belong_to(&above).map_err(Error::io(&full))?;
        }
    }
    temp.file().sync_all().map_err(Error::io(&full))?;
    let existing = match former {
        None => Existing::Keep,
        Some(former) => {
            // As late as can be: only the rename comes after.
            unchanged(&place, former)?;
            Existing::Replace
        }
    };
    temp.finish(Path::new(&place.name), existing).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyThere { path: full.clone() },
        _ => Error::Io { path: full.clone(), source },
    })?;
    folder.sync().map_err(Error::io(&full))?;
    let written = folder.open_file(&place.name).and_then(|file| holds(file, bytes));
    if written.map_err(Error::io(&full))? {
        Ok(())
    } else {
        Err(Error::WrittenDiffers { path: full })
    }
}

/// Whether a file holds just these bytes.
fn holds(mut file: File, mut bytes: &[u8]) -> io::Result<bool> {
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

fn unchanged(place: &Place, former: Fingerprint) -> Result<()> {
    if Fingerprint::of_place(place)? == Some(former) {
        Ok(())
    } else {
        Err(Error::SavedMeanwhile { path: place.path() })
    }
}

/// Remove a file of the library that holds `former`, durably. The caller has made sure that these bytes are in the store. A link in its place is removed, as SillyTavern does it, and not
/// what it leads to.
pub fn remove(root: &Path, path: &LibraryPath, former: Fingerprint) -> Result<()> {
    must_be_a_place(path)?;
    let full = path.under(root);
    if Fingerprint::of_file(root, path)? != Some(former) {
        return Err(Error::SavedMeanwhile { path: full });
    }
    let place = Place::find(root, path, Missing::Fail).map_err(Error::io(&full))?;
    place.folder.remove(&place.name).map_err(Error::io(&full))?;
    place.folder.sync().map_err(Error::io(&full))
}

/// Refuses a path that no file of a timeline has.
pub fn must_be_a_place(path: &LibraryPath) -> Result<()> {
    if is_place(path) {
        Ok(())
    } else {
        Err(Error::BadName {
            name: path.to_string(),
            why: "no chat, lorebook, card, group, picture or attachment is stored there",
        })
    }
}

/// Returns why a file can never be written or removed at a path, if it cannot. What cannot be looked at just now is left to the attempt.
pub fn why_not_writable(root: &Path, path: &LibraryPath) -> Option<String> {
    if path.as_str().split('/').any(|part| part.len() > LONGEST_NAME) {
        return Some(format!("{path} is too long"));
    }
    let place = match Place::follow(root, path, Missing::Fail) {
        Ok(place) => place,
        Err(error) => return never(&error).then(|| format!("{path}: {error}")),
    };
    let error = place.folder.open_file(&place.name).err()?;
    never(&error).then(|| format!("{path}: {error}"))
}

/// Whether a later attempt would fail in the same way: the path leads through a file, or a link, or names something else than a file.
fn never(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    let lasting = [InvalidFilename, InvalidInput, IsADirectory, NotADirectory];
    // A link of another user, and not a file without permissions: those come from the system, with its number.
    let is_refused =
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    lasting.contains(&error.kind()) || is_refused
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
