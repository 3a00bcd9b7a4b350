//! Where a backup is: what a person typed tells a file, a folder and a git server apart.

use std::path::{Path, PathBuf};

use crate::engine::Result;
use crate::engine::copies::CopyError;
use crate::store::Url;

/// The place of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPlace {
    /// Standard output.
    Output,
    /// One file.
    File(PathBuf),
    /// A folder, which is a repository; also one that git made.
    Folder(PathBuf),
    /// A git server.
    Remote(Url),
}

impl CopyPlace {
    /// Parses a place. An existing file or folder counts before the form of the text.
    pub fn parse(text: &str) -> Result<Self> {
        let refused =
            |why| CopyError::UnknownDestination { destination: text.to_owned(), why }.into();
        let path = Path::new(text);
        if text == "-" {
            return Ok(CopyPlace::Output);
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
        // What is not there yet is what it is called.
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("stvc") => Ok(CopyPlace::File(path.to_owned())),
            Some(ending) if ending != "git" && !text.ends_with(['/', '\\']) => Err(refused(
                "a backup file ends in .stvc; write / behind the name of a folder with a dot in it",
            )),
            _ => Ok(CopyPlace::Folder(path.to_owned())),
        }
    }
}
