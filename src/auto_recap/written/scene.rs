//! The data of ST-Auto-Recap in the `extra` of messages: scenes, and the lorebook entries that the
//! model received.

use super::queue::{QUEUE, is_queue};
use super::registry::REGISTRY_PREFIX;
use crate::st::json::{Key, Raw};
use crate::st::{Chat, Message};

/// The key of recaps and scene breaks in the `extra` of a message.
pub const MEMORY: &str = "auto_recap_memory";

/// The key of the list of lorebook entries that the model received.
const ACTIVE: &str = "activeLorebookEntries";

/// All keys of the extension in the `extra` of a message. Their values are not part of the
/// message's text, and may change at any time.
pub const ON_MESSAGE: [&str; 3] = [MEMORY, ACTIVE, "inactiveLorebookEntries"];

/// Returns the lorebook entries that the model received at a message, without the queue; `None` if
/// the message has no such list.
pub fn active_entries(line: &[u8]) -> Option<Vec<Raw<'_>>> {
    memchr::memmem::find(line, ACTIVE.as_bytes())?;
    let list = Message::read(line)?.extra()?.get(ACTIVE)?.items()?;
    Some(list.into_iter().filter(|entry| !is_queue(*entry)).collect())
}

/// Returns whether a chat or its lorebook has data of the extension. Searches for words and does
/// not parse values, because it runs on every save.
pub fn uses_auto_recap(chat: &Chat<'_>, metadata: Option<Raw<'_>>, book: Option<&[u8]>) -> bool {
    let has = |text: &[u8], word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    let in_metadata = metadata.is_some_and(|metadata| {
        ["\"auto_recap", "\"auto_lorebooks\"", "\"autoLorebooks\""]
            .iter()
            .any(|word| has(metadata.as_bytes(), word))
    });
    in_metadata
        || book.is_some_and(|book| has(book, QUEUE) || has(book, REGISTRY_PREFIX))
        || chat.messages.last().is_some_and(|line| scene(line).is_some())
}

/// The extension's values in a message, such as a scene break and its recap.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    is_break: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
    memory: Option<Raw<'a>>,
    old_recap: Option<Raw<'a>>,
    versions: Option<Raw<'a>>,
    current_index: Option<Raw<'a>>,
    hash: Option<Raw<'a>>,
    metadata: Option<Raw<'a>>,
}

/// Returns the extension's values in a message, under the current key or the key used until
/// November 2025.
pub fn scene(line: &[u8]) -> Option<Scene<'_>> {
    // Few messages have the key, and searching for the word is much cheaper than parsing the line.
    memchr::memmem::find(line, b"_memory")?;
    let extra = Message::read(line)?.extra()?;
    let [now, before] = extra.pick([MEMORY, "auto_summarize_memory"])?;
    let raw = now.or(before)?;
    // A scene record may contain a complete lorebook, so all values are read in one pass.
    let [is_break, name, memory, old_recap, versions, current_index, hash, metadata] =
        raw.pick([
            "scene_break",
            "scene_break_name",
            "scene_recap_memory",
            "scene_break_recap",
            "scene_recap_versions",
            "scene_recap_current_index",
            "scene_recap_hash",
            "scene_recap_metadata",
        ])?;
    Some(Scene { is_break, name, memory, old_recap, versions, current_index, hash, metadata })
}

/// Returns the messages of a chat that end a scene, in order.
pub fn scene_breaks<'a>(chat: &Chat<'a>) -> Vec<(usize, Scene<'a>)> {
    let lines = chat.messages.iter().enumerate();
    lines.filter_map(|(n, line)| Some((n, scene(line).filter(Scene::is_break)?))).collect()
}

impl<'a> Scene<'a> {
    /// Returns whether the message ends a scene.
    pub fn is_break(&self) -> bool {
        self.is_break.is_some_and(|value| value.truthy())
    }

    /// Returns the name of the scene: the name set by the user, or else the name in the recap.
    pub fn name(&self) -> Option<String> {
        let filled = |name: Raw<'_>| name.string().filter(|name| !name.trim().is_empty());
        let in_recap = || filled(Raw::parse_str(&self.recap()?)?.get("scene_name")?);
        self.name.and_then(filled).or_else(in_recap)
    }

    /// Returns the recap of the scene: JSON text, or plain text in old chats.
    pub fn recap(&self) -> Option<String> {
        self.recap_text().map(Key::into_string_lossy)
    }

    fn recap_text(&self) -> Option<Key> {
        let text = |value: Option<Raw<'_>>| {
            let text = Key::decode(value?.as_bytes())?;
            (!text.as_bytes().trim_ascii().is_empty()).then_some(text)
        };
        text(self.memory).or_else(|| text(self.old_recap))
    }

    /// Returns the number of versions of the recap, or `None` if the value is not a list.
    pub fn version_count(&self) -> Option<usize> {
        match self.versions.filter(|list| !list.is_null()) {
            Some(list) => list.items().map(|items| items.len()),
            None => Some(0),
        }
    }

    /// Returns the number of the recap version in use, counted from 0.
    pub fn current_index(&self) -> Option<i64> {
        match self.current_index.filter(|value| !value.is_null()) {
            None => Some(0),
            Some(value) => value.integer(),
        }
    }

    /// Returns the number of the recap version in use, as written in the file.
    pub fn chosen(&self) -> Option<String> {
        self.current_index.map(|value| value.string().unwrap_or_else(|| value.as_str().to_owned()))
    }

    /// Returns the hash that the extension recorded for the recap.
    pub fn hash(&self) -> Option<String> {
        self.hash?.string()
    }

    /// Computes the hash of the recap as the extension does.
    pub fn recap_hash(&self) -> Option<String> {
        self.recap_text().map(|text| hash(&text.units()))
    }

    /// Returns the metadata of the recap version in use.
    pub fn metadata(&self) -> Option<Raw<'a>> {
        self.metadata?.get(&self.current_index()?.to_string()).filter(Raw::is_object)
    }

    /// Returns the number of lorebook entries that were active in the scene.
    pub fn activated_entries(&self) -> i64 {
        let count = self.metadata().and_then(|metadata| metadata.get("totalActivatedEntries"));
        count.and_then(|count| count.integer()).unwrap_or(0)
    }

    /// Returns the lorebook entries in the scene record; empty if the message has no scene record.
    pub fn all_entries(&self) -> Vec<Raw<'a>> {
        self.metadata().map(|metadata| metadata.list("allEntries")).unwrap_or_default()
    }

    /// Returns whether the message has a scene record.
    pub fn has_note(&self) -> bool {
        !self.all_entries().is_empty()
    }

    /// Returns the name of the lorebook in the scene record.
    pub fn lorebook(&self) -> Option<String> {
        self.metadata()?.get("chatLorebookName")?.string().filter(|name| !name.is_empty())
    }

    /// Returns the time of the scene record, in milliseconds since 1970.
    pub fn timestamp(&self) -> Option<i64> {
        self.metadata()?.get("timestamp")?.integer()
    }
}

/// Computes the extension's hash of a recap: `h * 31 + unit` in 32 bits over the trimmed text; the
/// absolute value in base 36.
fn hash(units: &[u16]) -> String {
    let begin = units.iter().position(|unit| !is_space(*unit)).unwrap_or(units.len());
    let end = units.iter().rposition(|unit| !is_space(*unit)).map_or(begin, |last| last + 1);
    let step = |hash: i32, unit: &u16| hash.wrapping_mul(31).wrapping_add(i32::from(*unit));
    let mut rest = units[begin..end].iter().fold(0, step).unsigned_abs();
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(rest % 36, 36));
        rest /= 36;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Returns whether JavaScript's `trim` removes the character.
fn is_space(unit: u16) -> bool {
    // U+0085 is whitespace in Rust only, U+FEFF in JavaScript only.
    unit == 0xFEFF || (unit != 0x85 && char::from_u32(unit.into()).is_some_and(char::is_whitespace))
}
