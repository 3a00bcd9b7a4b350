//! The place of a backup: a file, a folder, a git server or a remote, as the user typed it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::engine::copies::CopyError;
use crate::engine::{Result, Workspace, remotes};
use crate::storage;
use crate::store::Url;

/// Folder in every remote, which identifies it.
const REMOTE: &str = "stvc-remote";

/// The place of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPlace {
    /// Standard output.
    Output,
    /// One file.
    File(PathBuf),
    /// A folder with a bare git repository, or the path of a folder to create.
    Folder(PathBuf),
    /// A git server.
    Remote(Url),
    /// A remote on plain storage, at this address.
    Storage(String),
}

impl CopyPlace {
    /// Parses a place. An existing file or folder takes precedence over the form of the text.
    pub fn parse(text: &str) -> Result<Self> {
        let refused =
            |why| CopyError::UnknownDestination { destination: text.to_owned(), why }.into();
        let path = Path::new(text);
        if text == "-" {
            return Ok(CopyPlace::Output);
        }
        let folder = text.strip_prefix("file://").unwrap_or(text);
        if storage::names_server(text) || Path::new(folder).join(REMOTE).is_dir() {
            return Ok(CopyPlace::Storage(text.to_owned()));
        }
        if path.is_dir() {
            return Ok(CopyPlace::Folder(path.to_owned()));
        }
        if path.is_file() {
            return Ok(CopyPlace::File(path.to_owned()));
        }
        if text.is_empty() {
            return Err(refused("it is empty"));
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(CopyPlace::Folder(path.into()));
        }
        if let Some(url) = Url::parse(text).map_err(refused)? {
            return Ok(CopyPlace::Remote(url));
        }
        // Nothing exists at the path, so the extension decides whether a file or a folder is
        // created.
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("stvc") => Ok(CopyPlace::File(path.to_owned())),
            Some(ending) if ending != "git" && !text.ends_with(['/', '\\']) => Err(refused(
                "the name of a backup file ends in .stvc, and a folder whose name contains a dot needs a final /",
            )),
            _ => Ok(CopyPlace::Folder(path.to_owned())),
        }
    }
}

/// The place as it is recorded and shown, without a password.
impl fmt::Display for CopyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => f.write_str("-"),
            Self::File(path) | Self::Folder(path) => path.display().fmt(f),
            Self::Remote(url) => url.fmt(f),
            Self::Storage(address) => f.write_str(address),
        }
    }
}

impl Workspace {
    /// Returns the place that a text names: a remote of the store, or any other place.
    pub fn copy_place(&self, text: &str) -> Result<CopyPlace> {
        // A library that a backup shall restore may not exist yet, and has no remotes.
        let remote = match self.find_store() {
            Ok(Some(store)) => remotes::find(&store, text)?,
            Ok(None) | Err(_) => None,
        };
        match remote {
            Some(remote) => Ok(CopyPlace::Storage(remote.address)),
            None => CopyPlace::parse(text),
        }
    }
}
