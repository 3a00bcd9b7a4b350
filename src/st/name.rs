//! Names of timelines, and paths of files in the library.
//!
//! Names come from folders, from stored snapshots and from command lines. Once one of these types
//! holds a name, joining it to a folder cannot leave that folder on any system.

use super::sanitize::sanitize;
use super::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

const SOLO: &str = "chats/";
pub(super) const CHAT_ENDING: &str = ".jsonl";
pub(super) const SETTINGS: &str = "settings.json";

/// The kind of file that a timeline is the history of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Chat,
    GroupChat,
    Lorebook,
    /// A character's card: a picture with the character in it.
    Card,
    /// A persona's picture.
    Persona,
    /// A group's own file.
    Group,
    Settings,
}

impl Category {
    /// The categories whose files lie in one folder, with the folder and the ending.
    const FLAT: [(Self, &'static str, &'static str); 5] = [
        (Self::GroupChat, "group chats", CHAT_ENDING),
        (Self::Lorebook, "worlds", ".json"),
        (Self::Card, "characters", ".png"),
        (Self::Persona, "User Avatars", ""),
        (Self::Group, "groups", ".json"),
    ];

    /// Returns the folder in which its files lie, and their ending; none for chats, which lie
    /// deeper, and for the settings.
    pub(super) fn files(self) -> Option<(&'static str, &'static str)> {
        let found = Self::FLAT.into_iter().find(|(category, ..)| *category == self);
        found.map(|(_, folder, ending)| (folder, ending))
    }

    /// Returns its name in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat | Self::GroupChat => "chat",
            Self::Lorebook => "lorebook",
            Self::Card => "character",
            Self::Persona => "persona",
            Self::Group => "group",
            Self::Settings => "settings",
        }
    }

    /// Whether it is a chat, alone or in a group.
    pub fn is_chat(self) -> bool {
        matches!(self, Self::Chat | Self::GroupChat)
    }
}

/// The name of a timeline: its file's path in the library, without the ending of its kind.
/// `chats/<folder>/<name>`, `group chats/<name>`, `worlds/<name>`, `characters/<name>`,
/// `groups/<name>`, `User Avatars/<file>`, `settings.json`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimelineName(String);

impl TimelineName {
    /// Names the chat `name` of the character whose chats lie in `folder`.
    pub fn solo(folder: &str, name: &str) -> Result<Self> {
        plain(folder)?;
        plain(name)?;
        Ok(Self(format!("{SOLO}{folder}/{name}")))
    }

    /// Names a group chat.
    pub fn group(name: &str) -> Result<Self> {
        Self::of(Category::GroupChat, name)
    }

    /// Names the lorebook whose file has this name, without its ending.
    pub fn lorebook(name: &str) -> Result<Self> {
        Self::of(Category::Lorebook, name)
    }

    /// Names a timeline of a category whose files lie in one folder; or the settings, whatever
    /// `name` is.
    pub(super) fn of(category: Category, name: &str) -> Result<Self> {
        let Some((folder, _)) = category.files() else { return Ok(Self(SETTINGS.into())) };
        plain(name)?;
        Ok(Self(format!("{folder}/{name}")))
    }

    /// Reads a name as [`as_str`](Self::as_str) returns it.
    pub fn parse(text: &str) -> Result<Self> {
        if text == SETTINGS {
            return Ok(Self(SETTINGS.into()));
        }
        let (root, rest) = text.split_once('/').unwrap_or((text, ""));
        if let Some(category) = Self::flat(root) {
            return Self::of(category, rest);
        }
        match text.strip_prefix(SOLO).and_then(|rest| rest.split_once('/')) {
            Some((folder, name)) => Self::solo(folder, name),
            None => Err(bad(text, "a timeline is chats/<folder>/<name> or group chats/<name>")),
        }
    }

    fn flat(root: &str) -> Option<Category> {
        let found = Category::FLAT.iter().find(|(_, folder, _)| *folder == root);
        found.map(|(category, ..)| *category)
    }

    /// Returns the kind of file that it is the history of.
    pub fn category(&self) -> Category {
        let root = self.0.split('/').next().unwrap_or_default();
        let deeper = if self.0 == SETTINGS { Category::Settings } else { Category::Chat };
        Self::flat(root).unwrap_or(deeper)
    }

    /// Names another timeline of its kind, in the same folder.
    pub fn sibling(&self, name: &str) -> Result<Self> {
        match self.folder() {
            Some(folder) => Self::solo(folder, name),
            None => Self::of(self.category(), name),
        }
    }

    /// Whether it is a chat, alone or in a group.
    pub fn is_chat(&self) -> bool {
        self.category().is_chat()
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the chat's own name, without its folder.
    pub fn chat(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the folder under `chats/`; none for a group chat.
    pub fn folder(&self) -> Option<&str> {
        let rest = self.0.strip_prefix(SOLO)?;
        rest.split_once('/').map(|(folder, _)| folder)
    }

    /// Whether it is a chat of a group.
    pub fn is_group(&self) -> bool {
        self.category() == Category::GroupChat
    }

    /// Returns the timeline whose own file that is.
    pub fn of_file(path: &LibraryPath) -> Option<Self> {
        let text = path.as_str();
        let endings = Category::FLAT.iter().map(|(.., ending)| *ending);
        let names = endings.filter_map(|ending| Self::parse(text.strip_suffix(ending)?).ok());
        let mut names = names.chain(Self::parse(text).ok());
        names.find(|name| name.file() == *path)
    }

    /// Returns the path of its own file.
    pub fn file(&self) -> LibraryPath {
        let ending = match self.category() {
            Category::Chat => CHAT_ENDING,
            category => category.files().map_or("", |(_, ending)| ending),
        };
        LibraryPath(format!("{}{ending}", self.0))
    }
}

/// A file's path in the library, relative, with `/` between its parts on every system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LibraryPath(String);

impl LibraryPath {
    /// Reads a path; it must not lead out of the library.
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

    /// Returns the whole path.
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

    /// Returns the last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the file in the library, or any other folder, at `root`.
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

/// Returns the file of the lorebook `name`; none if SillyTavern would find no file name in it.
pub fn lorebook_path(name: &str) -> Option<LibraryPath> {
    let file = sanitize(&format!("{name}.json"));
    LibraryPath::parse(&format!("worlds/{file}")).ok()
}

/// Returns the name of the file of the chat that SillyTavern calls `id`: group files, `main_chat`
/// and `bookmark_link` hold names as they were typed.
pub fn chat_name(id: &str) -> Option<String> {
    let file = sanitize(&format!("{id}{CHAT_ENDING}"));
    let name = file.strip_suffix(CHAT_ENDING)?;
    plain(name).ok().map(|()| name.to_owned())
}

/// Checks that `part` is one plain file name under every system's path rules.
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
