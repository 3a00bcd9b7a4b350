//! A local file that redirects the browser to the viewer. Every user of a machine can read the
//! arguments of a process, and the viewer's address contains a code. Therefore the browser is
//! started with the path of this file, which only the current user can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A file that redirects the browser. The file is deleted when this value is dropped.
pub struct Redirect {
    _folder: TempDir,
    path: PathBuf,
}

impl Redirect {
    /// Writes a file that redirects to `address` into a new private folder.
    pub fn to(address: &str) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("stvc-view-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        let path = folder.path().join("open.html");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let address = address.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>stvc</title><a href=\"{address}\">stvc</a>\n"
        );
        options.open(&path)?.write_all(page.as_bytes())?;
        Ok(Self { _folder: folder, path })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
