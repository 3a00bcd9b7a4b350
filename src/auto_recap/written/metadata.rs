//! The parts of a chat's metadata that belong to ST-Auto-Recap.

use crate::st::json::{Edits, Member, Raw, member_spans};

/// Where the running recap stands in the metadata.
pub const RUNNING_RECAP: &str = "auto_recap_running_scene_recaps";
/// Where its versions stand.
pub const RECAP_VERSIONS: [&str; 2] = [RUNNING_RECAP, "versions"];
/// Where the number of the version in use stands.
pub const RECAP_IN_USE: [&str; 2] = [RUNNING_RECAP, "current_version"];

/// The running recap: the story so far, in versions.
#[derive(Clone, Debug)]
pub struct RunningRecap<'a> {
    pub raw: Raw<'a>,
    /// The chat that it says it belongs to.
    pub chat_id: Option<String>,
    /// The version in use; none if it is not there or no whole number.
    pub current_version: Option<i64>,
    /// The versions; none if that is no list.
    pub versions: Option<Vec<RecapVersion>>,
}

#[derive(Clone, Copy, Debug)]
pub struct RecapVersion {
    /// Its number, from 0; gaps are legal.
    pub version: Option<i64>,
    pub scene_count: Option<i64>,
    /// The message that ends the last scene in it.
    pub new_scene_index: Option<i64>,
    /// When it was written, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

impl<'a> RunningRecap<'a> {
    /// Whether there is any version. (`current_version` 0 with one version is a recap; an empty list is none.)
    pub fn exists(&self) -> bool {
        self.versions.as_ref().is_some_and(|versions| !versions.is_empty())
    }

    pub fn version(&self, number: i64) -> Option<&RecapVersion> {
        self.versions.as_ref()?.iter().find(|version| version.version == Some(number))
    }

    pub fn current(&self) -> Option<&RecapVersion> {
        self.version(self.current_version?)
    }

    /// The numbers of all versions that have one.
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

/// The combined recap. No released extension writes it; it is checked where it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CombinedRecap {
    pub content: String,
    pub message_count: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

pub fn combined_recap(metadata: Raw<'_>) -> Option<CombinedRecap> {
    let raw = metadata.path(&["auto_recap", "combined_recap"]).filter(Raw::is_object)?;
    Some(CombinedRecap {
        content: raw.get("content").and_then(|text| text.string()).unwrap_or_default(),
        message_count: raw.get("message_count").and_then(|count| count.integer()),
        timestamp: raw.get("timestamp").and_then(|time| time.integer()),
    })
}

/// Where a checkpoint's own record stands.
pub(super) const STATE: &str = "auto_recap_checkpoint_state";

/// What the extension itself noted of a checkpoint when it made it, if it did.
pub fn checkpoint_state(metadata: Raw<'_>) -> Option<Raw<'_>> {
    metadata.get(STATE).filter(Raw::is_object)
}

/// The lorebook that the extension believes to be the chat's.
pub fn attached_lorebook(metadata: Raw<'_>) -> Option<String> {
    auto_lorebooks(metadata)?.get("lorebookName")?.string().filter(|name| !name.is_empty())
}

/// Metadata may be long, and looking for a word is much cheaper than reading it.
pub(super) fn auto_lorebooks(metadata: Raw<'_>) -> Option<Raw<'_>> {
    memchr::memmem::find(metadata.as_bytes(), b"auto_lorebooks")?;
    metadata.get("auto_lorebooks")
}

/// The hash of the settings under which the recaps of a chat are made, as JSON.
pub fn settings_hash(metadata: Raw<'_>) -> Option<&str> {
    metadata.path(&["auto_recap", "settings_hash"]).filter(Raw::truthy).map(|hash| hash.as_str())
}

/// One entry of the registry that the extension keeps in the chat's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedItem {
    /// The entry's UID, as text.
    pub uid: String,
    /// What kind of thing it is.
    pub kind: String,
    pub name: String,
}

/// The registry that is cached in the chat's metadata, in its order.
pub fn registry_cache(metadata: Raw<'_>) -> Vec<CachedItem> {
    let index = auto_lorebooks(metadata).and_then(|own| own.path(&["registry", "index"]));
    let members = index.and_then(|index| index.members()).unwrap_or_default();
    let text = |item: Raw<'_>, key: &str| item.get(key).and_then(|value| value.string());
    members
        .into_iter()
        .map(|member| CachedItem {
            uid: member.key.to_string_lossy(),
            kind: text(member.value, "type").unwrap_or_default(),
            name: text(member.value, "name")
                .or_else(|| text(member.value, "comment"))
                .unwrap_or_default(),
        })
        .collect()
}

/// The map from checkpoints to their lorebooks that one of the extension's plans speaks of: chat name, lorebook name.
pub fn lorebook_map(metadata: Raw<'_>) -> Vec<(String, String)> {
    let maps = lorebook_maps(metadata).filter_map(|map| map.members());
    let pair = |member: Member<'_>| Some((member.key.to_string_lossy(), member.value.string()?));
    maps.flatten().filter_map(pair).collect()
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

/// Returns `text` without the entries of [`lorebook_map`] for lorebooks that are removed.
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
