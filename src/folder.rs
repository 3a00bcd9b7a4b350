//! An open folder. Files in it are created, renamed and removed by name.
//!
//! Other programs may write to the folder or to its parent folders. On Unix every call is relative
//! to the open folder, so replacing the folder's path with a link has no effect. No call follows a
//! link that has the name of a file, and no call waits for a pipe. On Windows the calls use the
//! folder's path. There, too, a link that has the name of a file is not followed.

// clippy disallows these calls elsewhere, because on Windows they must be retried. This module
// retries them.
#![allow(clippy::disallowed_methods)]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::regular;

pub struct Folder {
    path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

pub struct Link {
    pub target: PathBuf,
    /// Whether root or the user of this process created the link. Always true on Windows, where the
    /// owner is not checked.
    pub is_own: bool,
}

impl Folder {
    /// Opens the folder at `path`. Links in the path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        let handle = unix::open_folder(rustix::fs::CWD, path.as_os_str(), unix::Links::Follow)?;
        #[cfg(not(unix))]
        must_be_folder(path)?;
        Ok(Self {
            path: path.to_owned(),
            #[cfg(unix)]
            handle,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subfolder. Fails if the name is a link.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        #[cfg(unix)]
        let handle = unix::open_folder(&self.handle, name, unix::Links::Refuse)?;
        let path = self.path.join(name);
        #[cfg(not(unix))]
        if fs::symlink_metadata(&path)?.is_symlink() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        #[cfg(not(unix))]
        must_be_folder(&path)?;
        Ok(Self {
            path,
            #[cfg(unix)]
            handle,
        })
    }

    /// Opens the folder at a path relative to this folder. Links in the path are followed.
    pub fn follow(&self, target: &Path) -> io::Result<Self> {
        let path = self.path.join(target);
        #[cfg(unix)]
        {
            let handle = unix::open_folder(&self.handle, target.as_os_str(), unix::Links::Follow)?;
            Ok(Self { path, handle })
        }
        #[cfg(not(unix))]
        Self::open(&path)
    }

    /// Creates a subfolder. Fails if the name exists.
    pub fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        return Ok(rustix::fs::mkdirat(&self.handle, name, rustix::fs::Mode::from(0o777))?);
        #[cfg(not(unix))]
        fs::create_dir(self.path.join(name))
    }

    /// Creates a file and opens it for reading and writing. Fails if the name exists.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        #[cfg(unix)]
        return unix::create_new(&self.handle, name);
        #[cfg(not(unix))]
        OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        #[cfg(unix)]
        return unix::open_file(&self.handle, name);
        #[cfg(not(unix))]
        open_in_place(&self.path.join(name), OpenOptions::new().read(true))
    }

    /// Returns the link of this name, or `None` if the name does not exist or is not a link.
    pub fn link(&self, name: &OsStr) -> io::Result<Option<Link>> {
        #[cfg(unix)]
        return unix::link(&self.handle, name);
        #[cfg(not(unix))]
        {
            let path = self.path.join(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => {
                    Ok(Some(Link { target: fs::read_link(&path)?, is_own: true }))
                }
                Ok(_) => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }
    }

    /// Returns whether the name exists, even as a link whose target does not exist.
    pub fn has(&self, name: &OsStr) -> io::Result<bool> {
        #[cfg(unix)]
        let found = unix::stat(&self.handle, name).map(drop);
        #[cfg(not(unix))]
        let found = fs::symlink_metadata(self.path.join(name)).map(drop);
        match found {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        return Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?);
        #[cfg(not(unix))]
        rename(&self.path.join(from), &self.path.join(to))
    }

    /// Gives the file `from` a second name, `to`. Fails if `to` exists.
    pub fn hard_link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        {
            let flags = rustix::fs::AtFlags::empty();
            Ok(rustix::fs::linkat(&self.handle, from, &self.handle, to, flags)?)
        }
        #[cfg(not(unix))]
        fs::hard_link(self.path.join(from), self.path.join(to))
    }

    /// Removes a file or a link. The target of a link is not removed.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        return Ok(rustix::fs::unlinkat(&self.handle, name, rustix::fs::AtFlags::empty())?);
        #[cfg(not(unix))]
        remove(&self.path.join(name))
    }

    /// Syncs the folder, so that its list of names survives a power failure.
    pub fn sync(&self) -> io::Result<()> {
        #[cfg(unix)]
        return self.handle.sync_all();
        #[cfg(not(unix))]
        sync_dir(&self.path)
    }

    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        #[cfg(unix)]
        return self.handle.metadata();
        #[cfg(not(unix))]
        fs::metadata(&self.path)
    }

    /// Changes the owner of this folder to the owner of the folder `above`. Only root may change
    /// owners; for other users this does nothing.
    pub fn belong_to(&self, above: &Folder) -> io::Result<()> {
        #[cfg(unix)]
        return own_like(&self.handle, &self.handle.metadata()?, &above.handle.metadata()?);
        #[cfg(not(unix))]
        {
            let _ = above;
            Ok(())
        }
    }
}

pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patiently(|| though_protected(to, || fs::rename(from, to)))
}

pub fn remove(path: &Path) -> io::Result<()> {
    patiently(|| unlink(path))
}

pub fn unlink(path: &Path) -> io::Result<()> {
    though_protected(path, || fs::remove_file(path))
}

/// Runs `action`. If it fails on Windows because the file is read-only, as git's objects are, makes
/// the file writable and runs `action` again.
fn though_protected(path: &Path, action: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let done = action();
    #[cfg(windows)]
    if done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        && let Ok(found) = fs::symlink_metadata(path)
        && found.permissions().readonly()
    {
        let mut permissions = found.permissions();
        permissions.set_readonly(false);
        fs::set_permissions(path, permissions)?;
        return action();
    }
    #[cfg(not(windows))]
    let _ = path;
    done
}

/// Runs `action`, and retries for about a second while another program has the file open. Windows
/// does not replace or remove an open file, and virus scanners and file synchronisers open every
/// new file for a short time.
pub fn patiently(action: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for wait in [1, 2, 5, 10, 20, 50, 100, 200, 400] {
        match action() {
            Err(error) if is_held_elsewhere(&error) => {
                std::thread::sleep(Duration::from_millis(wait));
            }
            done => return done,
        }
    }
    action()
}

/// Returns whether the error means that another program has the file open. The Windows error codes
/// are access denied, sharing violation, lock violation and mapped section.
pub fn is_held_elsewhere(error: &io::Error) -> bool {
    cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33 | 1224))
}

/// Changes the owner of `file` to that of `other`. Only root may change owners; for other users
/// this does nothing.
#[cfg(unix)]
pub fn own_like(file: &File, own: &fs::Metadata, other: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    match fchown(file, Some(other.uid()), Some(other.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// Does nothing: on Windows a new file inherits the owner and the permissions of its folder.
#[cfg(not(unix))]
pub fn own_like(_file: &File, _own: &fs::Metadata, _other: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Syncs a folder, so that its list of names survives a power failure.
#[cfg(unix)]
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Syncs a folder and ignores failures. NTFS writes its journal. Other file systems only keep the
/// order of renames and later syncs. docs/format.md relies only on this order.
#[cfg(not(unix))]
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(windows)]
    {
        /// Windows opens a folder only with this flag.
        const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
        std::os::windows::fs::OpenOptionsExt::custom_flags(
            &mut options,
            FILE_FLAG_BACKUP_SEMANTICS,
        );
    }
    let _ = options.open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// Opens a regular file. Fails if the path is a link, and does not wait for a pipe.
pub fn open_in_place(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    #[cfg(windows)]
    {
        /// Opens the link itself. The check below refuses it, because a link is not a regular file.
        const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
        std::os::windows::fs::OpenOptionsExt::custom_flags(options, FILE_FLAG_OPEN_REPARSE_POINT);
    }
    let file = options.open(path).map_err(refused_link)?;
    regular::must_be_file(file.metadata()?.file_type())?;
    Ok(file)
}

fn refused_link(error: io::Error) -> io::Error {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return io::Error::new(io::ErrorKind::InvalidInput, "it is a link, not a file");
    }
    error
}

#[cfg(not(unix))]
fn must_be_folder(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

#[cfg(unix)]
mod unix {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
    use rustix::io::retry_on_intr;
    use rustix::process::geteuid;

    use super::{Link, refused_link};
    use crate::regular;

    #[derive(PartialEq, Eq)]
    pub enum Links {
        Follow,
        Refuse,
    }

    pub fn open_folder(at: impl AsFd, name: &OsStr, links: Links) -> io::Result<File> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if links == Links::Refuse {
            flags |= OFlags::NOFOLLOW;
        }
        Ok(retry_on_intr(|| rustix::fs::openat(&at, name, flags, Mode::empty()))?.into())
    }

    pub fn create_new(at: impl AsFd, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(retry_on_intr(|| rustix::fs::openat(&at, name, flags, Mode::from(0o666)))?.into())
    }

    pub fn open_file(at: impl AsFd, name: &OsStr) -> io::Result<File> {
        // The kind is checked before opening, because some devices react to being opened.
        if FileType::from_raw_mode(stat(&at, name)?.st_mode) == FileType::Symlink {
            return Err(refused_link(rustix::io::Errno::LOOP.into()));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::openat(&at, name, flags, Mode::empty()));
        let file: File = file.map_err(|error| refused_link(error.into()))?.into();
        regular::must_be_file(file.metadata()?.file_type())?;
        Ok(file)
    }

    pub fn stat(at: impl AsFd, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub fn link(at: impl AsFd, name: &OsStr) -> io::Result<Option<Link>> {
        let found = match stat(&at, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            return Ok(None);
        }
        let target = rustix::fs::readlinkat(&at, name, Vec::new())?.into_bytes();
        // The target of a link cannot be changed. If the inode is still the same, `target` belongs
        // to the link whose owner was checked.
        let again = stat(&at, name)?;
        if (again.st_dev, again.st_ino) != (found.st_dev, found.st_ino) {
            return Err(io::Error::other("the link was replaced by another program just now"));
        }
        let is_own = found.st_uid == 0 || found.st_uid == geteuid().as_raw();
        Ok(Some(Link { target: PathBuf::from(OsString::from_vec(target)), is_own }))
    }
}
