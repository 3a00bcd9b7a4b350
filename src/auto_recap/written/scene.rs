//! Scenes: what ST-Auto-Recap notes on the message that ends one.

use super::on_message::MEMORY;
use crate::st::json::{Key, Raw};
use crate::st::{Chat, Message};

/// What a message carries of the extension.
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

/// What the extension keeps on a message, by its present name or the one until November 2025.
pub fn scene(line: &[u8]) -> Option<Scene<'_>> {
    // Few messages have it, and looking for a word is much cheaper than reading the line.
    memchr::memmem::find(line, b"_memory")?;
    let extra = Message::read(line)?.extra()?;
    let [now, before] = extra.pick([MEMORY, "auto_summarize_memory"])?;
    let raw = now.or(before)?;
    // A scene may carry a whole lorebook, so it is gone through once.
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

/// The messages of a chat that end a scene, in order.
pub fn scene_breaks<'a>(chat: &Chat<'a>) -> Vec<(usize, Scene<'a>)> {
    let lines = chat.messages.iter().enumerate();
    lines.filter_map(|(n, line)| Some((n, scene(line).filter(Scene::is_break)?))).collect()
}

impl<'a> Scene<'a> {
    pub fn is_break(&self) -> bool {
        self.is_break.is_some_and(|value| value.truthy())
    }

    /// The scene's name: the one it was given, or the one in its recap.
    pub fn name(&self) -> Option<String> {
        let given = self.name.and_then(|name| name.string());
        given.filter(|name| !name.trim().is_empty()).or_else(|| {
            let recap = self.recap()?;
            let name = Raw::parse_str(&recap)?.get("scene_name")?.string()?;
            Some(name).filter(|name| !name.trim().is_empty())
        })
    }

    /// The scene's recap, which is a text that holds JSON, or plain words in old chats.
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

    /// How many versions the recap has; none if what stands there is no list.
    pub fn version_count(&self) -> Option<usize> {
        match self.versions.filter(|list| !list.is_null()) {
            Some(list) => list.items().map(|items| items.len()),
            None => Some(0),
        }
    }

    /// Which version is in use, from 0.
    pub fn current_index(&self) -> Option<i64> {
        match self.current_index {
            None => Some(0),
            Some(value) if value.is_null() => Some(0),
            Some(value) => value.integer(),
        }
    }

    /// The number of the version in use as it is written, if it is.
    pub fn chosen(&self) -> Option<String> {
        self.current_index.map(|value| value.string().unwrap_or_else(|| value.as_str().to_owned()))
    }

    /// The hash that the extension keeps of the recap.
    pub fn hash(&self) -> Option<String> {
        self.hash?.string()
    }

    /// The hash that the recap has: the extension's own, of the text as JavaScript sees it.
    pub fn recap_hash(&self) -> Option<String> {
        self.recap_text().map(|text| hash(&text.units()))
    }

    /// What is noted about the version in use.
    pub fn metadata(&self) -> Option<Raw<'a>> {
        self.metadata?.get(&self.current_index()?.to_string()).filter(Raw::is_object)
    }

    /// How many lorebook entries were active in the scene.
    pub fn activated_entries(&self) -> i64 {
        let count = self.metadata().and_then(|metadata| metadata.get("totalActivatedEntries"));
        count.and_then(|count| count.integer()).unwrap_or(0)
    }

    /// The whole lorebook as it was at the end of the scene, without its queue; empty if it was not noted.
    pub fn all_entries(&self) -> Vec<Raw<'a>> {
        let list = self.metadata().and_then(|metadata| metadata.get("allEntries"));
        list.and_then(|list| list.items()).unwrap_or_default()
    }

    /// Whether the lorebook was noted.
    pub fn has_note(&self) -> bool {
        !self.all_entries().is_empty()
    }

    /// The name of the lorebook then.
    pub fn lorebook(&self) -> Option<String> {
        self.metadata()?.get("chatLorebookName")?.string().filter(|name| !name.is_empty())
    }

    /// When that was noted, in milliseconds since 1970.
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

/// What JavaScript's `trim` takes away.
fn is_space(unit: u16) -> bool {
    matches!(
        unit,
        0x09..=0x0D | 0x20 | 0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000 | 0xFEFF
    )
}
