//! Scenes: what ST-Auto-Recap notes on the message that ends one.

use super::super::chat::{Chat, Message};
use super::super::json::Raw;

/// What a message carries of the extension.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The whole object.
    pub raw: Raw<'a>,
}

/// What the extension keeps on a message, by its present name or the one until November 2025.
pub fn scene(line: &[u8]) -> Option<Scene<'_>> {
    // Few messages have it, and looking for a word is much cheaper than reading the line.
    memchr::memmem::find(line, b"_memory")?;
    let extra = Message::read(line)?.extra()?;
    let raw = extra.get("auto_recap_memory").or_else(|| extra.get("auto_summarize_memory"))?;
    raw.is_object().then_some(Scene { raw })
}

/// The messages of a chat that end a scene, in order.
pub fn scene_breaks<'a>(chat: &Chat<'a>) -> Vec<(usize, Scene<'a>)> {
    let lines = chat.messages.iter().enumerate();
    lines.filter_map(|(n, line)| Some((n, scene(line).filter(Scene::is_break)?))).collect()
}

impl<'a> Scene<'a> {
    /// Whether a scene ends here.
    pub fn is_break(&self) -> bool {
        self.raw.get("scene_break").is_some_and(|value| value.truthy())
    }

    /// The scene's name: the one it was given, or the one in its recap.
    pub fn name(&self) -> Option<String> {
        let given = self.raw.get("scene_break_name").and_then(|name| name.string());
        given.filter(|name| !name.trim().is_empty()).or_else(|| {
            let recap = self.recap()?;
            let name = Raw::parse_str(&recap)?.get("scene_name")?.string()?;
            Some(name).filter(|name| !name.trim().is_empty())
        })
    }

    /// The scene's recap, which is a text that holds JSON, or plain words in old chats.
    pub fn recap(&self) -> Option<String> {
        let text = |key: &str| self.raw.get(key)?.string();
        let found = text("scene_recap_memory").filter(|text| !text.trim().is_empty());
        found.or_else(|| text("scene_break_recap").filter(|text| !text.trim().is_empty()))
    }

    /// The recap's versions; none if that is no list.
    pub fn versions(&self) -> Option<Vec<Raw<'a>>> {
        self.raw.get("scene_recap_versions")?.items()
    }

    /// Which version is in use, from 0.
    pub fn current_index(&self) -> Option<i64> {
        match self.raw.get("scene_recap_current_index") {
            None => Some(0),
            Some(value) if value.is_null() => Some(0),
            Some(value) => value.integer(),
        }
    }

    /// The hash that the extension keeps of the recap.
    pub fn hash(&self) -> Option<String> {
        self.raw.get("scene_recap_hash")?.string()
    }

    /// What is noted about the version in use.
    pub fn metadata(&self) -> Option<Raw<'a>> {
        let versions = self.raw.get("scene_recap_metadata")?;
        versions.get(&self.current_index()?.to_string()).filter(Raw::is_object)
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

    /// The name of the lorebook then.
    pub fn lorebook(&self) -> Option<String> {
        self.metadata()?.get("chatLorebookName")?.string().filter(|name| !name.is_empty())
    }

    /// When that was noted, in milliseconds since 1970.
    pub fn timestamp(&self) -> Option<i64> {
        self.metadata()?.get("timestamp")?.integer()
    }
}
