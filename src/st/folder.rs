//! Lists folders, and decides whether a file exists.
//!
//! Every folder of the library is listed with this module. A folder that cannot be read (no
//! permission, a failing disk, a link to a drive that is not mounted) must never be mistaken for an
//! empty folder: its chats would be reported as deleted.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

#[derive(Debug)]
pub struct Listing {
    pub entries: Vec<DirEntry>,
    /// Error that prevented a complete listing.
    pub unreadable: Option<io::Error>,
}

impl Listing {
    /// Returns the entries; fails if some could not be listed.
    pub fn complete(self) -> io::Result<Vec<DirEntry>> {
        self.unreadable.map_or(Ok(self.entries), Err)
    }
}

/// Lists a folder. A folder that does not exist has no entries.
pub fn list_folder(path: &Path) -> Listing {
    let found = match fs::read_dir(path) {
        Ok(found) => found,
        Err(error) => {
            let unreadable = match (error.kind(), is_absent(path)) {
                (io::ErrorKind::NotFound, Ok(true)) => None,
                (_, Err(why)) => Some(why),
                _ => Some(error),
            };
            return Listing { entries: Vec::new(), unreadable };
        }
    };
    let mut unreadable = None;
    let entries = found.map_while(|entry| entry.map_err(|error| unreadable = Some(error)).ok());
    Listing { entries: entries.collect(), unreadable }
}

/// Lists a folder. Fails if the folder does not exist or an entry cannot be listed.
pub fn list_existing(path: &Path) -> io::Result<Vec<DirEntry>> {
    fs::metadata(path)?;
    list_folder(path).complete()
}

/// Returns whether nothing exists at `path`. Fails if the answer is unknown because a parent folder
/// cannot be entered, or because a link has no target (probably a drive is not mounted).
pub fn is_absent(path: &Path) -> io::Result<bool> {
    for place in path.ancestors() {
        match fs::symlink_metadata(place) {
            Ok(found) if place == path && !found.is_symlink() => return Ok(false),
            Ok(_) => {
                return match fs::metadata(place) {
                    Ok(_) if place == path => Ok(false),
                    Ok(found) if found.is_dir() => Ok(true),
                    Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Err(dead_link(place)),
                    Err(error) => Err(error),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn dead_link(path: &Path) -> io::Error {
    let target = fs::read_link(path).map(|target| target.display().to_string());
    io::Error::other(format!(
        "it is a link to {}, which does not exist",
        target.unwrap_or_else(|_| "somewhere".to_owned())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_folder_is_listed_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        assert!(list_folder(&none).complete().unwrap().is_empty());
        assert!(is_absent(&none.join("deeper/file")).unwrap());
        assert!(!is_absent(folder.path()).unwrap());
    }

    #[test]
    fn file_in_the_place_of_a_folder_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(list_folder(&file).complete().is_err());
        assert!(is_absent(&file.join("inside")).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn dangling_and_circular_links_are_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        for target in ["drive", "link"] {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join(target), &link).unwrap();
            assert!(list_folder(&link).complete().is_err(), "{target}");
            assert!(is_absent(&link).is_err(), "{target}");
            assert!(is_absent(&link.join("inside")).is_err(), "{target}");
            fs::remove_file(&link).unwrap();
        }
    }
}
