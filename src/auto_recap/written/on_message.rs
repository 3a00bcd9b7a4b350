//! What ST-Auto-Recap keeps on messages, in their `extra`.

use super::queue::is_queue;
use crate::st::{Message, Raw};

/// Where its recaps and scene breaks stand.
pub const MEMORY: &str = "auto_recap_memory";

/// The lorebook entries that the model was told.
const ACTIVE: &str = "activeLorebookEntries";

/// All that it keeps on a message. None of it is a part of what was said, and it may change at any time.
pub const ON_MESSAGE: [&str; 3] = [MEMORY, ACTIVE, "inactiveLorebookEntries"];

/// Returns the lorebook entries that the model was told at a message; `None` if it carries no list of them. The queue of the extension's work is no lore.
pub fn active_entries(line: &[u8]) -> Option<Vec<Raw<'_>>> {
    memchr::memmem::find(line, ACTIVE.as_bytes())?;
    let list = Message::read(line)?.extra()?.get(ACTIVE)?.items()?;
    Some(list.into_iter().filter(|entry| !is_queue(*entry)).collect())
}
