//! What ST-Auto-Recap keeps on messages, in their `extra`: scenes, and the lorebook entries that
//! the model was given.

use super::queue::{QUEUE, is_queue};
use super::registry::REGISTRY_PREFIX;
use crate::st::json::{Key, Raw};
use crate::st::{Chat, Message};

/// The key of recaps and scene breaks.
pub const MEMORY: &str = "auto_recap_memory";

/// The key of the lorebook entries that the model was given.
const ACTIVE: &str = "activeLorebookEntries";

/// All that it keeps on a message. None of it is a part of the text, and it may change at any time.
pub const ON_MESSAGE: [&str; 3] = [MEMORY, ACTIVE, "inactiveLorebookEntries"];

/// Returns the lorebook entries that the model was given at a message, without the queue; `None` if
/// it carries no list of them.
pub fn active_entries(line: &[u8]) -> Option<Vec<Raw<'_>>> {
    memchr::memmem::find(line, ACTIVE.as_bytes())?;
    let list = Message::read(line)?.extra()?.get(ACTIVE)?.items()?;
    Some(list.into_iter().filter(|entry| !is_queue(*entry)).collect())
}

/// Returns whether the extension has left anything in a chat or its lorebook. Searches for words
/// and reads no values: it runs on every save.
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

/// The extension's values on a message.
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

/// Returns the extension's values on a message, under the present key or the one until November
/// 2025.
pub fn scene(line: &[u8]) -> Option<Scene<'_>> {
    // Few messages have it, and a search for the word is much cheaper than reading the line.
    memchr::memmem::find(line, b"_memory")?;
    let extra = Message::read(line)?.extra()?;
    let [now, before] = extra.pick([MEMORY, "auto_summarize_memory"])?;
    let raw = now.or(before)?;
    // A scene may carry a whole lorebook, so it is read once.
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
    /// Whether the message ends a scene.
    pub fn is_break(&self) -> bool {
        self.is_break.is_some_and(|value| value.truthy())
    }

    /// Returns the scene's name: the one it was given, or the one in its recap.
    pub fn name(&self) -> Option<String> {
        let filled = |name: Raw<'_>| name.string().filter(|name| !name.trim().is_empty());
        let in_recap = || filled(Raw::parse_str(&self.recap()?)?.get("scene_name")?);
        self.name.and_then(filled).or_else(in_recap)
    }

    /// Returns the scene's recap: a text that holds JSON, or plain words in old chats.
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

    /// Returns how many versions the recap has; none if the value is not a list.
    pub fn version_count(&self) -> Option<usize> {
        match self.versions.filter(|list| !list.is_null()) {
            Some(list) => list.items().map(|items| items.len()),
            None => Some(0),
        }
    }

    /// Returns the number of the version in use, from 0.
    pub fn current_index(&self) -> Option<i64> {
        match self.current_index.filter(|value| !value.is_null()) {
            None => Some(0),
            Some(value) => value.integer(),
        }
    }

    /// Returns the number of the version in use as it is written.
    pub fn chosen(&self) -> Option<String> {
        self.current_index.map(|value| value.string().unwrap_or_else(|| value.as_str().to_owned()))
    }

    /// Returns the hash that the extension keeps of the recap.
    pub fn hash(&self) -> Option<String> {
        self.hash?.string()
    }

    /// Returns the hash that the recap has, computed as the extension does.
    pub fn recap_hash(&self) -> Option<String> {
        self.recap_text().map(|text| hash(&text.units()))
    }

    /// Returns the note about the version in use.
    pub fn metadata(&self) -> Option<Raw<'a>> {
        self.metadata?.get(&self.current_index()?.to_string()).filter(Raw::is_object)
    }

    /// Returns how many lorebook entries were active in the scene.
    pub fn activated_entries(&self) -> i64 {
        let count = self.metadata().and_then(|metadata| metadata.get("totalActivatedEntries"));
        count.and_then(|count| count.integer()).unwrap_or(0)
    }

    /// Returns the lorebook as it was at the end of the scene, without its queue; empty if it was
    /// not noted.
    pub fn all_entries(&self) -> Vec<Raw<'a>> {
        let list = self.metadata().and_then(|metadata| metadata.get("allEntries"));
        list.and_then(|list| list.items()).unwrap_or_default()
    }

    /// Whether the lorebook was noted.
    pub fn has_note(&self) -> bool {
        !self.all_entries().is_empty()
    }

    /// Returns the name of the lorebook then.
    pub fn lorebook(&self) -> Option<String> {
        self.metadata()?.get("chatLorebookName")?.string().filter(|name| !name.is_empty())
    }

    /// Returns when the lorebook was noted, in milliseconds since 1970.
    pub fn timestamp(&self) -> Option<i64> {
        self.metadata()?.get("timestamp")?.integer()
    }
}

/// `h * 31 + unit` in 32 bits over the trimmed text; its absolute value in base 36.
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

/// Whether JavaScript's `trim` removes it.
fn is_space(unit: u16) -> bool {
    // U+0085 is whitespace in Rust only, U+FEFF in JavaScript only.
    unit == 0xFEFF || (unit != 0x85 && char::from_u32(unit.into()).is_some_and(char::is_whitespace))
}
