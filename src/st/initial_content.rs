//! Recognises files that SillyTavern created at its first start, and that nobody changed.

use std::path::{Path, PathBuf};

use super::chat::{Chat, Message, is_blank as is_blank_line};
use super::json::Raw;
use super::{Category, Library, LibraryPath, Result, TimelineName, read};
use crate::regular;

/// Tags that SillyTavern creates itself, in any of its versions.
const TAGS: [&str; 7] =
    ["ST Default", "Plain Text", "OpenAI", "W++", "Boostyle", "PList", "AliChat"];

/// The picture of the persona that SillyTavern creates.
const PERSONA: &str = "user-default.png";

/// Values of the settings that are empty until a person writes them.
const WRITTEN_BY_PEOPLE: [&[&str]; 7] = [
    &["power_user", "persona_description"],
    &["power_user", "persona_description_lorebook"],
    &["power_user", "persona_descriptions"],
    &["world_info_settings", "world_info", "globalSelect"],
    &["world_info_settings", "world_info", "charLore"],
    &["extension_settings", "connectionManager", "profiles"],
    &["extension_settings", "regex"],
];

const MAX_DEPTH: usize = 4;

impl Library {
    /// Returns whether the bytes of a file are those that SillyTavern creates: the bytes of a file
    /// in its `default/content`, or settings without personas, tags and lorebooks of a user who has
    /// not written a message yet.
    pub fn is_initial_content(&self, path: &LibraryPath, bytes: &[u8]) -> Result<bool> {
        let category = TimelineName::of_file(path).map(|name| name.category());
        match category {
            Some(Category::Lorebook | Category::Card | Category::Persona) => {
                Ok(self.is_default(path, bytes))
            }
            Some(Category::Settings) if self.is_default(path, bytes) => Ok(true),
            Some(Category::Settings) => Ok(is_without_work(bytes) && !self.has_user_message()?),
            _ => Ok(false),
        }
    }

    fn is_default(&self, path: &LibraryPath, bytes: &[u8]) -> bool {
        let content = default_content(self.root()).map(|dir| dir.join(path.file_name()));
        let is_as_long =
            |file: &PathBuf| file.metadata().is_ok_and(|found| found.len() == bytes.len() as u64);
        let content = content.filter(is_as_long).and_then(|file| regular::read(&file).ok());
        content.is_some_and(|content| content == bytes)
    }

    /// Returns whether a chat has a message of a user, or cannot be read.
    fn has_user_message(&self) -> Result<bool> {
        let scan = self.scan()?;
        let has_one = |chat: &TimelineName| {
            let Ok(bytes) = read(self.root(), &chat.file()) else { return true };
            let messages = Chat::split(&bytes, chat.category()).messages;
            let is_of_user = |line| Message::read(line).is_none_or(|message| message.is_user());
            messages.into_iter().any(|line| !is_blank_line(line) && is_of_user(line))
        };
        Ok(!scan.unreadable.is_empty() || scan.chats.iter().any(has_one))
    }
}

/// Returns the folder of the files that SillyTavern copies to new users, if the user's folder is in
/// an install.
fn default_content(root: &Path) -> Option<PathBuf> {
    let install = root.parent()?.parent()?;
    install.join("server.js").is_file().then(|| install.join("default").join("content"))
}

fn is_without_work(settings: &[u8]) -> bool {
    let Some(settings) = Raw::parse(settings).filter(Raw::is_object) else { return false };
    let is_blank_at =
        |path: &&[&str]| settings.path(path).is_none_or(|value| is_blank(value, MAX_DEPTH));
    let is_own_tag = |tag: Raw<'_>| tag.text("name").is_none_or(|name| !TAGS.contains(&&*name));
    let tags = settings.get("tags");
    let tagged = settings.get("tag_map");
    let personas = settings.path(&["power_user", "personas"]);
    WRITTEN_BY_PEOPLE.iter().all(is_blank_at)
        && tags.is_none_or(|it| it.items().is_some_and(|it| !it.into_iter().any(is_own_tag)))
        && all_keys(tagged, |key| key.starts_with("default_"))
        && all_keys(personas, |key| key == PERSONA)
}

/// Returns whether all keys of an object satisfy `is_known`. A missing object has no keys.
fn all_keys(object: Option<Raw<'_>>, is_known: impl Fn(&str) -> bool) -> bool {
    let Some(object) = object else { return true };
    let members = object.members();
    members.is_some_and(|them| them.iter().all(|it| is_known(&it.key.to_string_lossy())))
}

/// Returns whether a value has no text. Numbers and booleans are options next to a text.
fn is_blank(value: Raw<'_>, depth: usize) -> bool {
    match value.as_bytes().first() {
        Some(b'"') => !value.truthy(),
        Some(b'[') => value.items().is_some_and(|items| items.is_empty()),
        Some(b'{') if depth > 0 => {
            let members = value.members();
            members.is_some_and(|them| them.iter().all(|it| is_blank(it.value, depth - 1)))
        }
        Some(b'{') => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings after the page of SillyTavern 1.19 was opened once.
    const OPENED: &str = r#"{"firstRun":false,"power_user":{"personas":{"user-default.png":"User"},
        "persona_descriptions":{"user-default.png":{"description":"","position":0}},
        "persona_description":"","persona_description_lorebook":""},
        "tags":[{"id":"1345561466591","name":"ST Default"}],
        "tag_map":{"default_Seraphina.png":["1345561466591"]},
        "world_info_settings":{"world_info":{"globalSelect":[]},"world_info_depth":2}}"#;

    #[test]
    fn settings_of_a_first_start_are_without_work() {
        assert!(is_without_work(OPENED.as_bytes()));
        assert!(is_without_work(b"{}"));
        for (before, after) in [
            (r#""description":"""#, r#""description":"tall""#),
            (r#""persona_description":"""#, r#""persona_description":"tall""#),
            (r#""position":0"#, r#""position":0,"connections":[{"type":"character"}]"#),
            (r#""user-default.png":"User""#, r#""me.png":"Me","user-default.png":"User""#),
            (r#""globalSelect":[]"#, r#""globalSelect":["Tides"]"#),
            (r#""globalSelect":[]"#, r#""charLore":[{"name":"Mira","extraBooks":["Tides"]}]"#),
            (r#""name":"ST Default"}"#, r#""name":"ST Default"},{"name":"sea"}"#),
            (r#"{"default_Seraphina.png":"#, r#"{"Mira.png":[],"default_Seraphina.png":"#),
            (r#"{"firstRun":"#, r#"{"extension_settings":{"regex":[{}]},"firstRun":"#),
            (r#""tags":["#, r#""tags":7,"other":["#),
            (r#"{"firstRun""#, r#"{"firstRun"#),
        ] {
            let changed = OPENED.replacen(before, after, 1);
            assert_ne!(changed, OPENED, "{before}");
            assert!(!is_without_work(changed.as_bytes()), "{after}");
        }
        for other in ["", "null", "[]", "\0"] {
            assert!(!is_without_work(other.as_bytes()), "{other:?}");
        }
    }
}
