//! The parts of a chat's metadata that belong to ST-Auto-Recap.

use crate::st::json::{Edits, Member, Raw, member_spans, quote};

/// The key of the running recap in a chat's metadata.
pub const RUNNING_RECAP: &str = "auto_recap_running_scene_recaps";
pub const RECAP_VERSIONS: [&str; 2] = [RUNNING_RECAP, "versions"];
/// The path of the number of the version in use.
pub const RECAP_IN_USE: [&str; 2] = [RUNNING_RECAP, "current_version"];

/// The running recap: the story so far, in versions.
#[derive(Clone, Debug)]
pub struct RunningRecap<'a> {
    pub raw: Raw<'a>,
    /// The chat that the recap belongs to.
    pub chat_id: Option<String>,
    /// The number of the version in use.
    pub current_version: Option<i64>,
    pub versions: Option<Vec<RecapVersion>>,
}

#[derive(Clone, Copy, Debug)]
pub struct RecapVersion {
    pub version: Option<i64>,
    pub scene_count: Option<i64>,
    pub new_scene_index: Option<i64>,
    /// Time of the version, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

impl RunningRecap<'_> {
    /// Returns whether there is any version. An empty list does not count as a recap.
    pub fn exists(&self) -> bool {
        self.versions.as_ref().is_some_and(|versions| !versions.is_empty())
    }

    pub fn current(&self) -> Option<&RecapVersion> {
        let current = self.current_version?;
        self.versions.as_ref()?.iter().find(|version| version.version == Some(current))
    }

    pub fn numbers(&self) -> Vec<i64> {
        self.versions.iter().flatten().filter_map(|version| version.version).collect()
    }
}

pub fn running_recap<'a>(metadata: Raw<'a>) -> Option<RunningRecap<'a>> {
    let raw = metadata.get(RUNNING_RECAP)?;
    let [chat_id, current_version, versions] =
        raw.pick(["chat_id", "current_version", "versions"])?;
    let integer = |value: Option<Raw<'_>>| value.and_then(|value| value.integer());
    let version = |raw: Raw<'a>| {
        let [version, scene_count, new_scene_index, timestamp] = raw
            .pick(["version", "scene_count", "new_scene_index", "timestamp"])
            .unwrap_or_default();
        RecapVersion {
            version: integer(version),
            scene_count: integer(scene_count),
            new_scene_index: integer(new_scene_index),
            timestamp: integer(timestamp),
        }
    };
    let versions = versions.and_then(|list| list.items());
    Some(RunningRecap {
        raw,
        chat_id: chat_id.and_then(|id| id.string()),
        current_version: integer(current_version),
        versions: versions.map(|items| items.into_iter().map(version).collect()),
    })
}

/// The combined recap. No released version of the extension writes it, but stvc checks it if it
/// exists.
pub struct CombinedRecap {
    pub content: String,
    pub message_count: Option<i64>,
    pub timestamp: Option<i64>,
}

pub fn combined_recap(metadata: Raw<'_>) -> Option<CombinedRecap> {
    let raw = metadata.path(&["auto_recap", "combined_recap"]).filter(Raw::is_object)?;
    Some(CombinedRecap {
        content: raw.text("content").unwrap_or_default(),
        message_count: raw.get("message_count").and_then(|count| count.integer()),
        timestamp: raw.get("timestamp").and_then(|time| time.integer()),
    })
}

const STATE: &str = "auto_recap_checkpoint_state";

/// Returns the record that the extension wrote when it created a checkpoint.
pub fn checkpoint_state(metadata: Raw<'_>) -> Option<Raw<'_>> {
    metadata.get(STATE).filter(Raw::is_object)
}

pub fn attached_lorebook(metadata: Raw<'_>) -> Option<String> {
    auto_lorebooks(metadata)?.get("lorebookName")?.string().filter(|name| !name.is_empty())
}

/// Returns the extension's data about lorebooks. Searches for the key first, because parsing long
/// metadata is much more expensive.
pub(super) fn auto_lorebooks(metadata: Raw<'_>) -> Option<Raw<'_>> {
    memchr::memmem::find(metadata.as_bytes(), b"auto_lorebooks")?;
    metadata.get("auto_lorebooks")
}

/// Returns the hash of the extension's settings that apply to a chat, as JSON.
pub fn settings_hash(metadata: Raw<'_>) -> Option<&str> {
    metadata.path(&["auto_recap", "settings_hash"]).filter(Raw::truthy).map(|hash| hash.as_str())
}

/// Returns the map from checkpoints to their lorebooks (chat name, lorebook name), which is
/// described in the extension's plans.
pub fn lorebook_map(metadata: Raw<'_>) -> Vec<(String, String)> {
    let members = lorebook_maps(metadata).filter_map(|map| map.members()).flatten();
    let pair = |member: Member<'_>| Some((member.key.to_string_lossy(), member.value.string()?));
    members.filter_map(pair).collect()
}

fn lorebook_maps(metadata: Raw<'_>) -> impl Iterator<Item = Raw<'_>> {
    let places: [&[&str]; 4] = [
        &["auto_recap", "checkpoint_lorebook_map"],
        &["auto_recap", "checkpoint_lorebook_mappings"],
        &["checkpoint_lorebook_map"],
        &["checkpoint_lorebook_mappings"],
    ];
    places.into_iter().filter_map(move |path| metadata.path(path))
}

/// Returns `text` without the entries of [`lorebook_map`] for which `is_removed` accepts the
/// lorebook.
pub fn without_mapped(
    text: &[u8],
    metadata: Raw<'_>,
    is_removed: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let mut edits = Edits::new(text);
    for map in lorebook_maps(metadata) {
        let members = map.members().unwrap_or_default();
        let is_kept = |n: usize| !members[n].value.string().is_some_and(|book| is_removed(&book));
        edits.retain(&member_spans(map, text), is_kept);
    }
    edits.apply()
}

/// Changes the values that the extension compares when a chat is opened. `chat` is the new name of
/// the chat, and `book` the old and the new name of its copied lorebook. `state` is the record of a
/// fork, as JSON; it is added only if the metadata has no record.
pub fn rename(
    edits: &mut Edits<'_>,
    metadata: Raw<'_>,
    chat: Option<&str>,
    book: Option<(&str, &str)>,
    state: Option<&str>,
) {
    let quoted = |name: &str| quote(name.as_bytes());
    let recap = running_recap(metadata).map(|recap| recap.raw);
    let noted = checkpoint_state(metadata);
    // The extension resets a running recap that names another chat.
    for owner in [recap, noted].into_iter().flatten() {
        if let (Some(name), Some(value)) = (chat, owner.get("chat_id")) {
            edits.replace(value, quoted(name));
        }
    }
    if let Some((old, new)) = book {
        // Replaced whatever the value is: the extension binds a fork only by `world_info`, so in a
        // fork `lorebookName` still names the parent's lorebook, and the extension would write to
        // that lorebook.
        let attached = auto_lorebooks(metadata).and_then(|own| own.get("lorebookName"));
        if let Some(attached) = attached.filter(|name| name.string().is_some()) {
            edits.replace(attached, quoted(new));
        }
        if let Some(noted) = noted {
            edits.set(noted, "cloned_lorebook_name", &quoted(new));
            edits.set(noted, "original_lorebook_name", &quoted(old));
        }
    }
    if let (None, Some(state)) = (noted, state) {
        edits.set(metadata, STATE, state);
    }
}
