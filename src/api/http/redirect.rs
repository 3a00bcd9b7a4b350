//! A file that leads the browser to the page. Every user of a machine can read the arguments of a
//! process, so the address, which holds a code, is not among them: the browser gets the path of a
//! file that only its own user can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The file, which is removed with this value.
pub struct Redirect {
    _folder: TempDir,
    path: PathBuf,
}

impl Redirect {
    /// Writes a file that leads to an address, in a folder of its own.
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

    /// Returns the private file that the browser opens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
