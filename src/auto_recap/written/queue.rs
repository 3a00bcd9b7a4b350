//! The queue of pending work, which ST-Auto-Recap keeps as an entry of the lorebook.
//!
//! Copies of it stand in messages (`extra.inactiveLorebookEntries`), stale ones; they are never read as the queue.

use crate::st::json::Raw;
use crate::st::{entries, entry_comment};

/// The title of the entry that holds the queue.
pub const QUEUE: &str = "__operation_queue";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub id: String,
    pub kind: String,
    /// `pending`, `in_progress`, `retrying`, `completed`, `failed`, `cancelled`.
    pub status: String,
    pub messages: Vec<i64>,
}

/// How many operations are not done yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub pending: u64,
    pub in_progress: u64,
    /// Failed, and to be tried again. (The extension's own gate forgets these.)
    pub retrying: u64,
}

impl Operation {
    /// Whether it is still to be done.
    pub fn is_active(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "in_progress" | "retrying")
    }
}

impl Activity {
    pub fn total(&self) -> u64 {
        self.pending + self.in_progress + self.retrying
    }
}

/// Whether an entry is a queue, and no lore.
pub fn is_queue(entry: Raw<'_>) -> bool {
    entry_comment(entry).as_deref() == Some(QUEUE)
}

/// The queues of a lorebook. There should be one at most.
pub(super) fn queues(book: &[u8]) -> Vec<Raw<'_>> {
    // Most lorebooks have none, and looking for a word is cheap.
    if memchr::memmem::find(book, QUEUE.as_bytes()).is_none() {
        return Vec::new();
    }
    entries(book).into_iter().map(|(_, entry)| entry).filter(|entry| is_queue(*entry)).collect()
}

/// What is going on in all queues of a lorebook.
pub fn queue_activity(book: &[u8]) -> Activity {
    let mut activity = Activity::default();
    let operations =
        queues(book).into_iter().filter_map(|queue| queue_operations(queue.get("content")));
    for operation in operations.flatten() {
        match operation.status.as_str() {
            "pending" => activity.pending += 1,
            "in_progress" => activity.in_progress += 1,
            "retrying" => activity.retrying += 1,
            _ => {}
        }
    }
    activity
}

/// How many operations of a queue are not done yet.
pub fn active_in(queue: Raw<'_>) -> usize {
    let operations = queue_operations(queue.get("content")).unwrap_or_default();
    operations.iter().filter(|operation| operation.is_active()).count()
}

/// The operations in the content of a queue's entry; none if it cannot be read. The extension takes what is not there for empty.
pub fn queue_operations(content: Option<Raw<'_>>) -> Option<Vec<Operation>> {
    let Some(content) = content.filter(Raw::truthy) else { return Some(Vec::new()) };
    let content = content.string()?;
    if content.trim().is_empty() {
        return Some(Vec::new());
    }
    let root = Raw::parse_str(&content).filter(Raw::is_object)?;
    let Some(queue) = root.get("queue").filter(Raw::truthy) else { return Some(Vec::new()) };
    Some(queue.items()?.into_iter().map(operation).collect())
}

fn operation(raw: Raw<'_>) -> Operation {
    let text = |key: &str| raw.get(key).and_then(|value| value.string()).unwrap_or_default();
    Operation {
        id: text("id"),
        kind: text("type"),
        status: text("status"),
        messages: message_references(raw),
    }
}

/// The messages that an operation is about, by all the names that the extension has for them.
pub(super) fn message_references(operation: Raw<'_>) -> Vec<i64> {
    const PLACES: [(&str, &[&str]); 2] = [
        ("params", &["index", "startIndex", "endIndex", "messageIndex"]),
        ("metadata", &["message_index", "scene_index", "start_index", "end_index"]),
    ];
    let mut found = Vec::new();
    for (place, keys) in PLACES {
        let Some(place) = operation.get(place) else { continue };
        found.extend(keys.iter().filter_map(|key| place.get(key)?.integer()));
    }
    let list = operation.path(&["params", "indexes"]).and_then(|list| list.items());
    found.extend(list.unwrap_or_default().iter().filter_map(Raw::integer));
    found
}
