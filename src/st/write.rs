//! Writes and removes files of the library. No other module does.
//!
//! The bytes are durable before the file gets its name, and are read back afterwards.

use super::place::{FilePlace, OnMissing, is_place, open_file};
use super::sanitize::{LONGEST_NAME, is_name_on_windows};
use super::{Error, LibraryPath, Result};
use crate::durable::{self, Existing, TEMP_PREFIX, Temp};
use crate::regular;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub bytes: u64,
    pub blake3: [u8; 32],
}

impl Fingerprint {
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: *blake3::hash(bytes).as_bytes() }
    }

    pub fn of_file(root: &Path, path: &LibraryPath) -> Result<Option<Self>> {
        Self::read(open_file(root, path), &path.under(root))
    }

    /// Reads the file in pieces, so that a long chat does not have to fit into memory.
    fn read(file: io::Result<File>, path: &Path) -> Result<Option<Self>> {
        let mut hasher = blake3::Hasher::new();
        match file.and_then(|file| hasher.update_reader(file).map(drop)) {
            Ok(()) => {
                let blake3 = *hasher.finalize().as_bytes();
                Ok(Some(Self { bytes: hasher.count(), blake3 }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { path: path.to_owned(), source }),
        }
    }
}

/// Writes a file of the library at `root`, which must exist; creates missing folders. `former` is
/// the fingerprint of the content to be replaced, or `None` if the file must not exist. Fails if
/// the file was saved after it was read. A replaced file keeps its mode and owner.
pub fn write(
    root: &Path,
    path: &LibraryPath,
    bytes: &[u8],
    former: Option<Fingerprint>,
) -> Result<()> {
    must_be_a_name_here(path)?;
    must_be_a_place(path)?;
    let full = path.under(root);
    let place = FilePlace::follow(root, path, OnMissing::Make);
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
        // Checked as late as possible: only the rename follows.
        Some(_) if Fingerprint::read(folder.open_file(&place.name), &place.path())? != former => {
            return Err(Error::SavedMeanwhile { path: place.path() });
        }
        Some(_) => Existing::Replace,
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

/// Durably removes a file of the library whose content is `former`. The caller must have made sure
/// that the store has this content. If the file is a link, the link is removed and not its target,
/// as SillyTavern does.
pub fn remove(root: &Path, path: &LibraryPath, former: Fingerprint) -> Result<()> {
    must_be_a_place(path)?;
    let full = path.under(root);
    if Fingerprint::of_file(root, path)? != Some(former) {
        return Err(Error::SavedMeanwhile { path: full });
    }
    let place = FilePlace::find(root, path, OnMissing::Fail).map_err(Error::io(&full))?;
    place.folder.remove(&place.name).map_err(Error::io(&full))?;
    place.folder.sync().map_err(Error::io(&full))
}

pub fn must_be_a_place(path: &LibraryPath) -> Result<()> {
    if is_place(path) {
        Ok(())
    } else {
        Err(Error::BadName {
            name: path.to_string(),
            why: "SillyTavern does not keep a chat, lorebook, card, group, picture or attachment there",
        })
    }
}

/// Returns the reason why a file can never be written or removed at `path`; `None` if there is no
/// such reason. Temporary errors are not reported here: the write itself reports them.
pub fn why_not_writable(root: &Path, path: &LibraryPath) -> Option<String> {
    if path.as_str().split('/').any(|part| part.len() > LONGEST_NAME) {
        return Some(format!("a part of {path} is too long"));
    }
    let error = open_file(root, path).err()?;
    // The path passes through a file or a refused link, or does not name a file.
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    let lasting = [InvalidFilename, InvalidInput, IsADirectory, NotADirectory];
    // stvc refused a link of another user. Missing permissions would have an error number of the
    // operating system.
    let is_refused =
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    (lasting.contains(&error.kind()) || is_refused).then(|| format!("{path}: {error}"))
}

/// Removes SillyTavern's thumbnail of a card or persona that was just written or removed, because
/// the thumbnail would show the former picture. Ignores failures.
pub fn forget_thumbnail(root: &Path, path: &LibraryPath) {
    let Some((folder, file)) = path.as_str().rsplit_once('/') else { return };
    let kind = match folder {
        "characters" => "avatar",
        "User Avatars" => "persona",
        _ => return,
    };
    durable::remove_own(&root.join("thumbnails").join(kind).join(file));
}

/// Refuses a path that is not a valid file name on this system. Windows would silently write
/// elsewhere: a colon opens a second stream of a file, dots and spaces at the end of a name are
/// dropped, `NUL` is a device.
pub fn must_be_a_name_here(path: &LibraryPath) -> Result<()> {
    if cfg!(windows) && !path.as_str().split('/').all(is_name_on_windows) {
        let why = "Windows does not allow this file name";
        return Err(Error::BadName { name: path.to_string(), why });
    }
    Ok(())
}
