//! Resolves the links in paths, so that paths can be compared. On Windows the result has the usual
//! form (`C:\…`, `\\server\…`) if it is short enough, else the verbatim form (`\\?\C:\…`).

use std::io;
use std::path::{Path, PathBuf};

pub fn of_existing(path: &Path) -> io::Result<PathBuf> {
    let real = dunce::canonicalize(path)?;
    match real.to_str().and_then(|text| text.strip_prefix(r"\\?\UNC\")) {
        // Windows accepts longer paths only in the verbatim form.
        Some(share) if cfg!(windows) && share.len() < 250 => Ok(format!(r"\\{share}").into()),
        _ => Ok(real),
    }
}

/// Resolves the links in the part of `path` that exists, and appends the rest of `path` unchanged.
pub fn of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (of_existing(above), path.strip_prefix(above)) {
            return real.iter().chain(rest).collect();
        }
    }
    path
}

/// The disk of a path. Paths with equal values are on one file system; on Windows, on one drive or
/// network share.
#[cfg(unix)]
pub type Disk = u64;
#[cfg(not(unix))]
pub type Disk = std::ffi::OsString;

/// Returns the disk on which `path` is, or would be created. `None` if that is unknown.
pub fn disk(path: &Path) -> Option<Disk> {
    let path = of(path);
    let there = path.ancestors().find(|above| above.exists())?;
    disk_of_existing(there)
}

#[cfg(unix)]
fn disk_of_existing(path: &Path) -> Option<Disk> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| metadata.dev())
}

#[cfg(not(unix))]
fn disk_of_existing(path: &Path) -> Option<Disk> {
    path.components().next().map(|first| first.as_os_str().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn missing_path_is_resolved_through_its_existing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let real = of_existing(folder.path()).unwrap();
        assert!(!real.to_string_lossy().starts_with(r"\\?\"));
        assert_eq!(of(folder.path()), real);
        assert_eq!(of(&folder.path().join("a").join("b")), real.join("a").join("b"));
        assert!(disk(&real).is_some());
        assert_eq!(disk(&folder.path().join("a").join("b")), disk(&real));
        #[cfg(unix)]
        {
            fs::create_dir(folder.path().join("there")).unwrap();
            std::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
            assert_eq!(of(&folder.path().join("link/new")), real.join("there/new"));
        }
        #[cfg(windows)]
        {
            fs::create_dir(folder.path().join("there")).unwrap();
            let verbatim = fs::canonicalize(folder.path().join("there")).unwrap();
            assert_eq!(of(&verbatim.join("new")), real.join("there").join("new"));
        }
    }
}
