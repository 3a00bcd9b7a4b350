//! Lists folders, and decides whether a file exists. All of the library is listed through this
//! module, because a folder that cannot be read (no permission, a failing disk, a link to a drive
//! that is not mounted) must never be mistaken for an empty one: its chats would be reported as
//! deleted.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

#[derive(Debug)]
pub struct Listing {
    pub entries: Vec<DirEntry>,
    /// Why the folder, or a part of it, could not be listed.
    pub unreadable: Option<io::Error>,
}

impl Listing {
    /// Returns the entries, if all of them could be listed.
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

/// Lists a folder that must exist, and of which no entry may be missed.
pub fn list_existing(path: &Path) -> io::Result<Vec<DirEntry>> {
    fs::metadata(path)?;
    list_folder(path).complete()
}

/// Returns whether there is nothing at `path`. Fails if that is unknown: a folder above cannot be
/// entered, or a link has no target, most likely a drive that is not mounted.
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
    fn a_folder_that_does_not_exist_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        assert!(list_folder(&none).complete().unwrap().is_empty());
        assert!(is_absent(&none.join("deeper/file")).unwrap());
        assert!(!is_absent(folder.path()).unwrap());
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(list_folder(&file).complete().is_err());
        assert!(is_absent(&file.join("inside")).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_dead_link_and_a_link_to_itself_are_unreadable() {
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
