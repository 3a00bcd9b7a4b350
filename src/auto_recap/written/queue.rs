//! The queue of pending work, which ST-Auto-Recap keeps as an entry of the lorebook.
//!
//! Copies of it stand in messages (`extra.inactiveLorebookEntries`), stale ones; they are never read as the queue.

use crate::st::json::Raw;
use crate::st::{entries, entry_comment};

/// The title of the entry that holds the queue.
pub const QUEUE: &str = "__operation_queue";

#[derive(Clone, Debug)]
pub struct QueueEntry<'a> {
    pub key: String,
    pub entry: Raw<'a>,
    /// What is to be done; none if it cannot be read.
    pub operations: Option<Vec<Operation>>,
}

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
pub fn queues(book: &[u8]) -> Vec<QueueEntry<'_>> {
    // Most lorebooks have none, and looking for a word is cheap.
    if memchr::memmem::find(book, QUEUE.as_bytes()).is_none() {
        return Vec::new();
    }
    entries(book)
        .into_iter()
        .filter(|(_, entry)| is_queue(*entry))
        .map(|(key, entry)| QueueEntry {
            key: key.to_string_lossy(),
            entry,
            operations: queue_operations(entry.get("content")),
        })
        .collect()
}

/// What is going on in all queues of a lorebook.
pub fn queue_activity(book: &[u8]) -> Activity {
    let mut activity = Activity::default();
    for operation in queues(book).iter().filter_map(|queue| queue.operations.as_ref()).flatten() {
        match operation.status.as_str() {
            "pending" => activity.pending += 1,
            "in_progress" => activity.in_progress += 1,
            "retrying" => activity.retrying += 1,
            _ => {}
        }
    }
    activity
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
