//! A snapshot's record of the state of ST-Auto-Recap. Restored files are compared with this record.
//!
//! The field names come from the extension's plans. Two planned fields are left out: the time,
//! because it is the commit's date and the manifest contains only content; and the version of the
//! extension, because no file contains it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::archive::Blake3;
use crate::auto_recap::written::{
    checkpoint_state, combined_recap, queue_activity, running_recap, scene,
};
use crate::st::{Chat, Raw, TimelineName, lorebook_name};

const VERSION: u64 = 2;

/// The state of ST-Auto-Recap at a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointState {
    /// Version of this record.
    pub version: u64,
    /// Number of the last message; `None` if the chat is empty.
    pub message_id: Option<u64>,
    /// Name of the chat file, without its extension.
    pub chat_id: String,
    /// Whether no operation was pending, in progress or being retried.
    pub queue_was_empty: bool,
    /// Number of operations that were pending, in progress or being retried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_operations: u64,
    /// Whether the last message ends a scene.
    pub has_scene_break: bool,
    /// Whether the last message has the recap of its scene.
    pub has_scene_recap: bool,
    /// Whether the chat has a recap of the scenes so far.
    pub has_running_recap: bool,
    /// The lorebook bound to the chat. For a fork with its own lorebook, the lorebook from which
    /// that was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_lorebook_name: Option<String>,
    /// The fork's own lorebook; `None` if the chat is not a fork with its own lorebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_lorebook_name: Option<String>,
    /// Version number of the running recap that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_recap_version: Option<i64>,
    /// Number of scenes that this version of the running recap covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_recap_scene_count: Option<i64>,
    /// Version numbers of all running recaps in the chat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running_recap_versions: Vec<i64>,
    /// Number of messages that the combined recap covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combined_recap_message_count: Option<i64>,
    /// Time of the combined recap, as ST-Auto-Recap recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combined_recap_timestamp: Option<i64>,
    /// Hash of the combined recap's text. The text itself is in the chat's header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combined_recap_content: Option<Blake3>,
    /// Name of the scene that the last message ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene_break_name: Option<String>,
    /// Hash of the scene recap's text. The text itself is in the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene_recap: Option<Blake3>,
    /// Codes of the findings at the time of the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Deserialises the state in a manifest. Returns `None` for a version that is newer than this
/// program supports.
pub(crate) fn known_state<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<CheckpointState>, D::Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    let Some(raw) = Option::<Box<RawValue>>::deserialize(input)? else { return Ok(None) };
    let Version { version } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    if version > VERSION {
        return Ok(None);
    }
    serde_json::from_str(raw.get()).map(Some).map_err(D::Error::custom)
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl CheckpointState {
    /// Returns the name of the lorebook that must be bound to the chat.
    pub fn bound_lorebook_name(&self) -> Option<&String> {
        self.cloned_lorebook_name.as_ref().or(self.original_lorebook_name.as_ref())
    }

    /// Returns the record that is written to a fork's chat, as JSON with the field names that the
    /// extension compares. `source` describes the origin of the lorebook, if it was not copied from
    /// a file.
    pub fn of_fork(
        &self,
        chat: &str,
        book: Option<(&str, &str)>,
        milliseconds: i64,
        source: Option<String>,
    ) -> String {
        let mut state = serde_json::json!({
            "version": VERSION,
            "timestamp": milliseconds,
            "message_id": self.message_id,
            "chat_id": chat,
            "queue_was_empty": self.queue_was_empty,
            "has_scene_break": self.has_scene_break,
            "has_scene_recap": self.has_scene_recap,
            "has_running_recap": self.has_running_recap,
            "original_lorebook_name": book.map(|(old, _)| old),
            "cloned_lorebook_name": book.map(|(_, new)| new),
            "running_recap_version": self.running_recap_version,
            "running_recap_scene_count": self.running_recap_scene_count,
            "combined_recap_message_count": self.combined_recap_message_count,
            "combined_recap_timestamp": self.combined_recap_timestamp,
            "scene_break_name": self.scene_break_name,
        });
        if let Some(source) = source {
            state["lorebook_source"] = source.into();
        }
        state.to_string()
    }

    /// Reads the state from a chat and its lorebook.
    pub fn of(
        timeline: &TimelineName,
        chat: &Chat<'_>,
        metadata: Option<Raw<'_>>,
        book: Option<&[u8]>,
    ) -> Self {
        let last = chat.messages.iter().rposition(|line| !line.trim_ascii().is_empty());
        let scene = last.and_then(|last| scene(chat.messages[last]));
        let scene_break = scene.filter(|scene| scene.is_break());
        let recap = metadata.and_then(running_recap).filter(|recap| recap.exists());
        let combined = metadata.and_then(combined_recap);
        let active = book.map(queue_activity).unwrap_or_default().total();
        let hash = |text: String| Blake3::of(text.as_bytes());
        let bound = metadata.and_then(lorebook_name);
        let noted = |key| metadata.and_then(checkpoint_state)?.text(key);
        let (original, cloned) = match noted("original_lorebook_name") {
            Some(original) if bound.is_some() && noted("cloned_lorebook_name") == bound => {
                (Some(original), bound)
            }
            _ => (bound, None),
        };
        Self {
            version: VERSION,
            message_id: last.map(|last| last as u64),
            chat_id: timeline.chat().to_owned(),
            queue_was_empty: active == 0,
            active_operations: active,
            has_scene_break: scene_break.is_some(),
            has_scene_recap: scene.is_some_and(|scene| scene.recap().is_some()),
            has_running_recap: recap.is_some(),
            original_lorebook_name: original,
            cloned_lorebook_name: cloned,
            running_recap_version: recap.as_ref().and_then(|recap| recap.current_version),
            running_recap_scene_count: recap.as_ref().and_then(|it| it.current()?.scene_count),
            running_recap_versions: recap.map(|recap| recap.numbers()).unwrap_or_default(),
            combined_recap_message_count: combined.as_ref().and_then(|it| it.message_count),
            combined_recap_timestamp: combined.as_ref().and_then(|it| it.timestamp),
            combined_recap_content: combined.map(|combined| hash(combined.content)),
            scene_break_name: scene_break.and_then(|scene| scene.name()),
            scene_recap: scene.and_then(|scene| scene.recap()).map(hash),
            warnings: Vec::new(),
        }
    }
}
