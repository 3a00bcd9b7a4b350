//! Opens files and folders of the library. Reading and writing treat links by the same rule
//! (docs/reliability.md, "Links"):
//!
//! A link inside the library is followed if root or the user who runs stvc created the link. The
//! target must not be in another part of the library (`secrets.json` must not be read as a
//! lorebook) or a folder that contains the library. Links of other users are never followed.
//! Otherwise, another user with write access to the library could make stvc read and write files
//! that the other user cannot access.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LibraryPath, TimelineName, is_attachment};
use crate::folder::{Folder, Link};
use crate::{real_path, regular};

/// Maximum number of links that are followed in a row, as in most operating systems.
const MOST_LINKS: usize = 40;

/// An open folder, and the name of a file in the folder. The file need not exist.
pub(super) struct FilePlace {
    pub folder: Arc<Folder>,
    pub name: OsString,
    is_linked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnMissing {
    Fail,
    Make,
}

impl FilePlace {
    pub(super) fn find(root: &Path, path: &LibraryPath, missing: OnMissing) -> io::Result<Self> {
        let (above, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let (folder, is_linked) = descend(root, above, missing)?;
        let place = Self { folder: Arc::new(folder), name: name.into(), is_linked };
        if is_linked {
            place.must_suit(root, path)?;
        }
        Ok(place)
    }

    /// Finds the place of a file. If the file is a link, finds the place of the link's target.
    pub(super) fn follow(root: &Path, path: &LibraryPath, missing: OnMissing) -> io::Result<Self> {
        let mut place = Self::find(root, path, missing)?;
        for followed in 0..MOST_LINKS {
            let Some(target) = target_of(&place.folder, &place.name)? else {
                if followed > 0 && !place.folder.has(&place.name)? {
                    return Err(is_dangling());
                }
                if place.is_linked {
                    place.must_suit(root, path)?;
                }
                return Ok(place);
            };
            let name = target.file_name().map(OsStr::to_owned).ok_or_else(is_dangling)?;
            let above = match target.parent() {
                Some(above) if !above.as_os_str().is_empty() => above,
                _ => Path::new("."),
            };
            let folder = Arc::new(place.folder.follow(above).map_err(nowhere)?);
            place = Self { folder, name, is_linked: true };
        }
        Err(is_dangling())
    }

    /// Refuses the target of a link if the target is in another part of the library.
    fn must_suit(&self, root: &Path, path: &LibraryPath) -> io::Result<()> {
        let root = real_path::of_existing(root)?;
        let here = real_path::of_existing(self.folder.path())?.join(&self.name);
        let Ok(inside) = here.strip_prefix(root) else { return Ok(()) };
        let parts: Option<Vec<_>> = inside.iter().map(OsStr::to_str).collect();
        let inside = parts.and_then(|parts| LibraryPath::parse(&parts.join("/")).ok());
        let top = |path: &LibraryPath| path.as_str().split('/').next().map(str::to_owned);
        if inside.is_some_and(|inside| is_place(&inside) && top(&inside) == top(path)) {
            Ok(())
        } else {
            Err(other_part())
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

pub fn open_file(root: &Path, path: &LibraryPath) -> io::Result<File> {
    let place = FilePlace::follow(root, path, OnMissing::Fail)?;
    place.folder.open_file(&place.name)
}

pub fn read(root: &Path, path: &LibraryPath) -> io::Result<Vec<u8>> {
    regular::read_all(open_file(root, path)?)
}

pub fn open_folder(root: &Path, folder: &str) -> io::Result<Folder> {
    descend(root, folder, OnMissing::Fail).map(|(folder, _)| folder)
}

/// Opens a folder, and returns whether a part of its path is a link.
fn descend(root: &Path, path: &str, missing: OnMissing) -> io::Result<(Folder, bool)> {
    let (mut folder, mut is_linked) = (Folder::open(root)?, false);
    for name in path.split('/').filter(|name| !name.is_empty()).map(OsStr::new) {
        folder = match folder.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && missing == OnMissing::Make => {
                make(&folder, name)?
            }
            Err(error) => match target_of(&folder, name)? {
                Some(target) => {
                    is_linked = true;
                    folder.follow(&target).map_err(nowhere)?
                }
                None => return Err(error),
            },
            opened => opened?,
        };
    }
    if is_linked
        && real_path::of_existing(root)?.starts_with(real_path::of_existing(folder.path())?)
    {
        return Err(other_part());
    }
    Ok((folder, is_linked))
}

/// Returns whether stvc may write a file at `path`: only main files of timelines, lorebooks and
/// attachments. stvc never writes `secrets.json`, `config.yaml` or other files of SillyTavern.
pub(super) fn is_place(path: &LibraryPath) -> bool {
    // The ending is not checked: SillyTavern truncates a very long name of a lorebook and its
    // ending.
    let book = path.as_str().strip_prefix("worlds/");
    let is_book = book.is_some_and(|name| !name.contains('/'));
    is_book || TimelineName::of_file(path).is_some() || is_attachment(path)
}

/// Creates a folder durably. The folder gets the owner of its parent folder.
fn make(above: &Folder, name: &OsStr) -> io::Result<Folder> {
    match above.make_folder(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return above.folder(name),
        made => made?,
    }
    let folder = above.folder(name)?;
    folder.belong_to(above)?;
    above.sync()?;
    Ok(folder)
}

fn target_of(folder: &Folder, name: &OsStr) -> io::Result<Option<PathBuf>> {
    match folder.link(name)? {
        None => Ok(None),
        Some(Link { target, is_own: true }) => Ok(Some(target)),
        Some(Link { is_own: false, .. }) => {
            let path = folder.path().join(name);
            let why = format!(
                "{} is a link created by another user; stvc follows only links of the user who runs it",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// Converts `NotFound` for the target of a link: a link without a target must not be mistaken for a
/// missing file, because a write would create a file in an unexpected place.
fn nowhere(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => is_dangling(),
        _ => error,
    }
}

fn other_part() -> io::Error {
    let why = "it is a link to another part of the library, or to a folder that contains it";
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn is_dangling() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is a link whose target does not exist")
}
