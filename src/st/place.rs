//! Where a file of the library is. One rule for reading and for writing (docs/reliability.md, "Links"): a link inside the library is followed, wherever it leads, if the user who runs stvc made it,
//! or root. Chats on another disk are stored from there and restored to there, as SillyTavern does it. A link of anybody else is not followed at all: a library that another user can write could
//! otherwise make stvc read and write whatever that user cannot.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LibraryPath;
use crate::folder::{Folder, Link};

/// More links in a row than a system follows.
const MOST_LINKS: usize = 40;

/// An open folder, and the name that a file has in it.
pub(super) struct Place {
    pub folder: Arc<Folder>,
    pub name: OsString,
}

/// Whether folders are made that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Fail,
    Make,
}

impl Place {
    /// Finds the place of a file in the library at `root`. The file need not be there.
    pub(super) fn find(root: &Path, path: &LibraryPath, missing: Missing) -> io::Result<Self> {
        let (above, name) = match path.as_str().rsplit_once('/') {
            Some((above, name)) => (above, name),
            None => ("", path.as_str()),
        };
        let folder = Arc::new(descend(root, above, missing)?);
        Ok(Self { folder, name: name.into() })
    }

    /// Follows links in the place of the file.
    pub(super) fn followed(mut self) -> io::Result<Self> {
        for _ in 0..MOST_LINKS {
            let Some(target) = target_of(&self.folder, &self.name)? else { return Ok(self) };
            let name = target.file_name().map(OsStr::to_owned).ok_or_else(leads_nowhere)?;
            let above = match target.parent() {
                Some(above) if !above.as_os_str().is_empty() => above,
                _ => Path::new("."),
            };
            let folder = self.folder.follow(above).map_err(nowhere)?;
            self = Self { folder: Arc::new(folder), name };
        }
        Err(leads_nowhere())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

/// Opens a file of the library at `root` for reading.
pub fn open_file(root: &Path, path: &LibraryPath) -> io::Result<File> {
    let place = Place::find(root, path, Missing::Fail)?.followed()?;
    place.folder.open_file(&place.name)
}

/// Reads a file of the library at `root`.
pub fn read(root: &Path, path: &LibraryPath) -> io::Result<Vec<u8>> {
    let mut file = open_file(root, path)?;
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |found| found.len());
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a folder of the library at `root`, such as `user/files`.
pub fn open_folder(root: &Path, folder: &str) -> io::Result<Folder> {
    descend(root, folder, Missing::Fail)
}

fn descend(root: &Path, path: &str, missing: Missing) -> io::Result<Folder> {
    let mut folder = Folder::open(root)?;
    for name in path.split('/').filter(|name| !name.is_empty()).map(OsStr::new) {
        folder = match folder.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Make => {
                make(&folder, name)?
            }
            Err(error) => match target_of(&folder, name)? {
                Some(target) => folder.follow(&target).map_err(nowhere)?,
                None => return Err(error),
            },
            opened => opened?,
        };
    }
    Ok(folder)
}

/// Makes a folder, durably. It belongs to the user whom the one above it belongs to.
fn make(above: &Folder, name: &OsStr) -> io::Result<Folder> {
    match above.make_folder(name) {
        // Another program was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return above.folder(name),
        made => made?,
    }
    let folder = above.folder(name)?;
    folder.belong_to(above)?;
    above.sync()?;
    Ok(folder)
}

/// Returns the target of the link that has this name; `None` if it is not a link.
fn target_of(folder: &Folder, name: &OsStr) -> io::Result<Option<PathBuf>> {
    match folder.link(name)? {
        None => Ok(None),
        Some(Link { target, is_own: true }) => Ok(Some(target)),
        Some(Link { is_own: false, .. }) => {
            let path = folder.path().join(name);
            let why = format!(
                "{} is a link that another user made; stvc follows only those of the user who runs it",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// A link without a target must not look like a file that is not there: who writes it would make a file where nobody expects one.
fn nowhere(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => leads_nowhere(),
        _ => error,
    }
}

fn leads_nowhere() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is a link that leads nowhere")
}
