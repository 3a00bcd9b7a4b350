//! Typed names: a timeline's place and a file's path in the library.
//!
//! Names come from folders, from stored snapshots and from command lines. Once one of these types holds a
//! name, joining it to a folder cannot leave that folder on any system.

use super::sanitize::sanitize;
use super::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

const SOLO: &str = "chats/";
const GROUP: &str = "group chats/";
/// The ending of every chat file.
pub(super) const CHAT_ENDING: &str = ".jsonl";

/// The place of a timeline: `chats/<folder>/<name>` or `group chats/<name>`, without the file's ending.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimelineName(String);

impl TimelineName {
    /// The chat `name` of the character whose chats lie in `folder`.
    pub fn solo(folder: &str, name: &str) -> Result<Self> {
        plain(folder)?;
        plain(name)?;
        Ok(Self(format!("{SOLO}{folder}/{name}")))
    }

    pub fn group(name: &str) -> Result<Self> {
        plain(name)?;
        Ok(Self(format!("{GROUP}{name}")))
    }

    /// Read a name as [`as_str`](Self::as_str) gives it.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(name) = text.strip_prefix(GROUP) {
            Self::group(name)
        } else if let Some((folder, name)) =
            text.strip_prefix(SOLO).and_then(|rest| rest.split_once('/'))
        {
            Self::solo(folder, name)
        } else {
            Err(bad(text, "a timeline is chats/<folder>/<name> or group chats/<name>"))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The chat's own name, without its folder.
    pub fn chat(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folder under `chats/`; none for a group chat.
    pub fn folder(&self) -> Option<&str> {
        let rest = self.0.strip_prefix(SOLO)?;
        rest.split_once('/').map(|(folder, _)| folder)
    }

    pub fn is_group(&self) -> bool {
        self.0.starts_with(GROUP)
    }

    /// The timeline whose chat file that is, if it is one.
    pub fn of_file(path: &LibraryPath) -> Option<Self> {
        Self::parse(path.as_str().strip_suffix(CHAT_ENDING)?).ok()
    }

    pub fn file(&self) -> LibraryPath {
        LibraryPath(format!("{}{CHAT_ENDING}", self.0))
    }
}

/// A file's path in the library, relative, with `/` between its parts on every system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LibraryPath(String);

impl LibraryPath {
    pub fn parse(text: &str) -> Result<Self> {
        for part in text.split('/') {
            plain(part).map_err(|error| match error {
                Error::BadName { why, .. } => bad(text, why),
                other => other,
            })?;
        }
        // Joined to a folder on Windows, `C:x` would take the folder's place.
        if let [letter, b':', ..] = text.as_bytes()
            && letter.is_ascii_alphabetic()
        {
            return Err(bad(text, "it begins with a drive"));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a lorebook.
    pub fn is_lorebook(&self) -> bool {
        self.0.starts_with("worlds/")
    }

    /// Whether it is a group's file.
    pub fn is_group(&self) -> bool {
        self.0.starts_with("groups/")
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The file in the library (or any other folder) at `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        // Part by part, so that Windows shows one kind of separator.
        // A later part such as `C:x` must not be pushed on its own there: it would be read as a drive.
        if cfg!(windows) && self.0.contains(':') {
            return root.join(&self.0);
        }
        let mut path = root.to_path_buf();
        path.extend(self.0.split('/'));
        path
    }
}

/// The file of the lorebook `name`; none if SillyTavern would find no file name in it.
pub fn lorebook_path(name: &str) -> Option<LibraryPath> {
    let file = sanitize(&format!("{name}.json"));
    LibraryPath::parse(&format!("worlds/{file}")).ok()
}

/// The name under which SillyTavern files the chat that it calls `id`: group files, `main_chat` and
/// `bookmark_link` hold names as they were typed.
pub fn chat_name(id: &str) -> Option<String> {
    let file = sanitize(&format!("{id}{CHAT_ENDING}"));
    let name = file.strip_suffix(CHAT_ENDING)?;
    plain(name).ok().map(|()| name.to_owned())
}

/// Check that `part` is one plain file name under every system's path rules.
fn plain(part: &str) -> Result<()> {
    let why = match part {
        "" => "a part of it is empty",
        "." | ".." => "a part of it is . or ..",
        _ if part.contains(['/', '\\']) => "a part of it holds a path separator",
        _ if part.contains('\0') => "it holds a NUL",
        _ => return Ok(()),
    };
    Err(bad(part, why))
}

fn bad(name: &str, why: &'static str) -> Error {
    Error::BadName { name: name.to_owned(), why }
}

/// What both names share: text in, text out.
macro_rules! as_text {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                Self::parse(&text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }
    };
}

as_text!(TimelineName);
as_text!(LibraryPath);
