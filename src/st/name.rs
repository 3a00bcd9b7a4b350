//! Names of timelines, and paths of files in the library.
//!
//! Names come from folders, from stored snapshots and from command lines. A [`TimelineName`] or
//! [`LibraryPath`] that is joined to a folder always stays inside the folder, on every system.

use super::sanitize::sanitize;
use super::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

const SOLO: &str = "chats/";
pub(super) const CHAT_ENDING: &str = ".jsonl";
pub(super) const SETTINGS: &str = "settings.json";

/// The kind of file whose history a timeline records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A chat with one character.
    Chat,
    /// A chat with several characters.
    GroupChat,
    /// A file in `worlds`.
    Lorebook,
    /// A character's card: a picture that contains the character's data.
    Card,
    /// A persona's picture.
    Persona,
    /// A group's file, not its chats.
    Group,
    /// SillyTavern's `settings.json`.
    Settings,
}

impl Category {
    /// Categories whose files are all in one folder, with the folder and the file ending.
    const FLAT: [(Self, &'static str, &'static str); 5] = [
        (Self::GroupChat, "group chats", CHAT_ENDING),
        (Self::Lorebook, "worlds", ".json"),
        (Self::Card, "characters", ".png"),
        (Self::Persona, "User Avatars", ""),
        (Self::Group, "groups", ".json"),
    ];

    /// Returns the folder and the file ending of a category; `None` for chats, which are in
    /// subfolders, and for the settings.
    pub(super) fn files(self) -> Option<(&'static str, &'static str)> {
        let found = Self::FLAT.into_iter().find(|(category, ..)| *category == self);
        found.map(|(_, folder, ending)| (folder, ending))
    }

    /// Returns the word for the category in messages to the user.
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

    /// Returns whether the category is a chat with one character or a group chat.
    pub fn is_chat(self) -> bool {
        matches!(self, Self::Chat | Self::GroupChat)
    }
}

/// The name of a timeline: the path of its main file in the library, without the file ending.
/// `chats/<folder>/<name>`, `group chats/<name>`, `worlds/<name>`, `characters/<name>`,
/// `groups/<name>`, `User Avatars/<file>`, `settings.json`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimelineName(String);

impl TimelineName {
    /// Names the chat `name` of the character whose chats are in `folder`.
    pub fn solo(folder: &str, name: &str) -> Result<Self> {
        plain(folder)?;
        plain(name)?;
        Ok(Self(format!("{SOLO}{folder}/{name}")))
    }

    /// Names a group chat.
    pub fn group(name: &str) -> Result<Self> {
        Self::of(Category::GroupChat, name)
    }

    /// Names the lorebook whose file name without ending is `name`.
    pub fn lorebook(name: &str) -> Result<Self> {
        Self::of(Category::Lorebook, name)
    }

    /// Names a timeline of a category whose files are in one folder. For other categories, names
    /// the settings and ignores `name`.
    pub(super) fn of(category: Category, name: &str) -> Result<Self> {
        let Some((folder, _)) = category.files() else { return Ok(Self(SETTINGS.into())) };
        plain(name)?;
        Ok(Self(format!("{folder}/{name}")))
    }

    /// Parses a name that [`as_str`](Self::as_str) returned.
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
            None => Err(bad(
                text,
                "the name of a timeline is chats/<folder>/<name> or group chats/<name>",
            )),
        }
    }

    fn flat(root: &str) -> Option<Category> {
        let found = Category::FLAT.iter().find(|(_, folder, _)| *folder == root);
        found.map(|(category, ..)| *category)
    }

    /// Returns the kind of file whose history the timeline records.
    pub fn category(&self) -> Category {
        let root = self.0.split('/').next().unwrap_or_default();
        let deeper = if self.0 == SETTINGS { Category::Settings } else { Category::Chat };
        Self::flat(root).unwrap_or(deeper)
    }

    /// Names another timeline of the same category, in the same folder.
    pub fn sibling(&self, name: &str) -> Result<Self> {
        match self.folder() {
            Some(folder) => Self::solo(folder, name),
            None => Self::of(self.category(), name),
        }
    }

    /// Returns whether the timeline is a chat with one character or a group chat.
    pub fn is_chat(&self) -> bool {
        self.category().is_chat()
    }

    /// Returns the complete name, including the folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without the folder.
    pub fn chat(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the folder under `chats/`; `None` for group chats and other categories.
    pub fn folder(&self) -> Option<&str> {
        let rest = self.0.strip_prefix(SOLO)?;
        rest.split_once('/').map(|(folder, _)| folder)
    }

    /// Returns whether the timeline is a group chat.
    pub fn is_group(&self) -> bool {
        self.category() == Category::GroupChat
    }

    /// Returns the timeline whose main file is `path`.
    pub fn of_file(path: &LibraryPath) -> Option<Self> {
        let text = path.as_str();
        let endings = Category::FLAT.iter().map(|(.., ending)| *ending);
        let names = endings.filter_map(|ending| Self::parse(text.strip_suffix(ending)?).ok());
        let mut names = names.chain(Self::parse(text).ok());
        names.find(|name| name.file() == *path)
    }

    /// Returns the path of the timeline's main file.
    pub fn file(&self) -> LibraryPath {
        let ending = match self.category() {
            Category::Chat => CHAT_ENDING,
            category => category.files().map_or("", |(_, ending)| ending),
        };
        LibraryPath(format!("{}{ending}", self.0))
    }
}

/// A file's relative path in the library, with `/` as the separator on every system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LibraryPath(String);

impl LibraryPath {
    /// Parses a path; fails if the path would leave the library.
    pub fn parse(text: &str) -> Result<Self> {
        for part in text.split('/') {
            plain(part).map_err(|error| match error {
                Error::BadName { why, .. } => bad(text, why),
                other => other,
            })?;
        }
        // On Windows, joining `C:x` to a folder would replace the folder.
        if let [letter, b':', ..] = text.as_bytes()
            && letter.is_ascii_alphabetic()
        {
            return Err(bad(text, "it begins with a drive letter"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the complete path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the file is in `worlds`.
    pub fn is_lorebook(&self) -> bool {
        self.0.starts_with("worlds/")
    }

    /// Returns whether the path is that of a group's file.
    pub fn is_group(&self) -> bool {
        self.0.starts_with("groups/")
    }

    /// Returns the last part of the path.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the file below `root`, which is the library or another folder.
    pub fn under(&self, root: &Path) -> PathBuf {
        // Parts are appended one by one, so that Windows shows only one kind of separator. A part
        // such as `C:x` must not be appended alone, because Windows would read it as a drive.
        if cfg!(windows) && self.0.contains(':') {
            return root.join(&self.0);
        }
        let mut path = root.to_path_buf();
        path.extend(self.0.split('/'));
        path
    }
}

/// Returns the path of the lorebook `name`; `None` if SillyTavern cannot create a file name from
/// `name`.
pub fn lorebook_path(name: &str) -> Option<LibraryPath> {
    let file = sanitize(&format!("{name}.json"));
    LibraryPath::parse(&format!("worlds/{file}")).ok()
}

/// Returns the file name, without ending, of the chat that SillyTavern calls `id`. Group files,
/// `main_chat` and `bookmark_link` contain names as the user typed them.
pub fn chat_name(id: &str) -> Option<String> {
    let file = sanitize(&format!("{id}{CHAT_ENDING}"));
    let name = file.strip_suffix(CHAT_ENDING)?;
    plain(name).ok().map(|()| name.to_owned())
}

/// Fails unless `part` is a single file name under the path rules of every system.
fn plain(part: &str) -> Result<()> {
    let why = match part {
        "" => "a part of it is empty",
        "." | ".." => "a part of it is . or ..",
        _ if part.contains(['/', '\\']) => "a part of it contains a path separator",
        _ if part.contains('\0') => "it contains a NUL byte",
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
