//! A chat under another name, or with another lorebook: what ST-Auto-Recap compares when the chat is opened.

use super::metadata::{STATE, auto_lorebooks, checkpoint_state, running_recap};
use crate::st::json::{Edits, Raw};

/// Changes what the extension keeps in `metadata` for a chat that is now called `chat` and has a copy of its lorebook, from the old name to the new. `state` is what a
/// fork records of itself, as JSON, if it records nothing yet.
pub fn rename(
    edits: &mut Edits<'_>,
    metadata: Raw<'_>,
    chat: Option<&str>,
    book: Option<(&str, &str)>,
    state: Option<&str>,
) {
    let quoted = |name: &str| serde_json::to_string(name).unwrap_or_default();
    let recap = running_recap(metadata).map(|recap| recap.raw);
    let noted = checkpoint_state(metadata);
    // The extension wipes a running recap that says it belongs to another chat.
    for owner in [recap, noted].into_iter().flatten() {
        if let (Some(name), Some(value)) = (chat, owner.get("chat_id")) {
            edits.replace(value, quoted(name));
        }
    }
    if let Some((old, new)) = book {
        // Whatever it names: the extension binds a fork by `world_info` alone, so in a fork this is still the book of the chat that it was forked from, into which the extension
        // would write.
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
