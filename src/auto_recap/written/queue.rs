//! The queue of pending work, which ST-Auto-Recap stores as an entry of the lorebook.
//!
//! Messages contain outdated copies of the queue (`extra.inactiveLorebookEntries`), which are never
//! read.

use crate::st::json::{Edits, Raw, item_spans};
use crate::st::{entries, entry_comment};

/// Title of the lorebook entry that contains the queue.
pub const QUEUE: &str = "__operation_queue";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub id: String,
    pub kind: String,
    /// One of `pending`, `in_progress`, `retrying`, `completed`, `failed` and `cancelled`.
    pub status: String,
    pub messages: Vec<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueActivity {
    pub pending: u64,
    pub in_progress: u64,
    /// Operations that failed and will be retried. The extension's own check ignores them.
    pub retrying: u64,
}

impl Operation {
    pub fn is_active(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "in_progress" | "retrying")
    }
}

impl QueueActivity {
    pub fn total(&self) -> u64 {
        self.pending + self.in_progress + self.retrying
    }
}

pub fn is_queue(entry: Raw<'_>) -> bool {
    entry_comment(entry).as_deref() == Some(QUEUE)
}

/// Returns the queues of a lorebook. There should be one at most.
pub(super) fn queues(book: &[u8]) -> Vec<Raw<'_>> {
    // Most lorebooks have no queue, and searching for the word is cheap.
    if memchr::memmem::find(book, QUEUE.as_bytes()).is_none() {
        return Vec::new();
    }
    entries(book).into_iter().map(|(_, entry)| entry).filter(|entry| is_queue(*entry)).collect()
}

pub fn queue_activity(book: &[u8]) -> QueueActivity {
    let mut activity = QueueActivity::default();
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

pub fn active_in(queue: Raw<'_>) -> usize {
    let operations = queue_operations(queue.get("content")).unwrap_or_default();
    operations.iter().filter(|operation| operation.is_active()).count()
}

/// Returns the operations in the content of the queue's entry, or `None` if the content cannot be
/// read. Missing content counts as an empty queue, as in the extension.
pub fn queue_operations(content: Option<Raw<'_>>) -> Option<Vec<Operation>> {
    let Some(content) = content.filter(Raw::truthy) else { return Some(Vec::new()) };
    let content = content.string()?;
    if content.trim().is_empty() {
        return Some(Vec::new());
    }
    let root = Raw::parse_str(&content).filter(Raw::is_object)?;
    let Some(queue) = root.get("queue").filter(Raw::truthy) else { return Some(Vec::new()) };
    let operation = |raw: Raw<'_>| {
        let text = |key: &str| raw.text(key).unwrap_or_default();
        let messages = message_references(raw);
        Operation { id: text("id"), kind: text("type"), status: text("status"), messages }
    };
    Some(queue.items()?.into_iter().map(operation).collect())
}

/// Returns the messages to which an operation refers, from all fields that the extension uses for
/// message numbers.
fn message_references(operation: Raw<'_>) -> Vec<i64> {
    const PLACES: [(&str, &[&str]); 2] = [
        ("params", &["index", "startIndex", "endIndex", "messageIndex"]),
        ("metadata", &["message_index", "scene_index", "start_index", "end_index"]),
    ];
    let mut found = Vec::new();
    for (place, keys) in PLACES {
        let Some(place) = operation.get(place) else { continue };
        found.extend(keys.iter().filter_map(|key| place.get(key)?.integer()));
    }
    let list = operation.get("params").map(|params| params.list("indexes")).unwrap_or_default();
    found.extend(list.iter().filter_map(Raw::integer));
    found
}

/// Returns the lorebook with an empty queue, and the number of removed operations. No other byte
/// changes.
pub fn clear_queue(book: &[u8]) -> (Vec<u8>, usize) {
    retain(book, |_| false)
}

/// Returns the lorebook without the operations that refer to messages beyond the first `messages`
/// messages, and the number of removed operations.
pub fn trim_queue(book: &[u8], messages: usize) -> (Vec<u8>, usize) {
    let exists = |index: &i64| usize::try_from(*index).is_ok_and(|index| index < messages);
    retain(book, |operation| message_references(operation).iter().all(exists))
}

fn retain(book: &[u8], keep: impl Fn(Raw<'_>) -> bool) -> (Vec<u8>, usize) {
    let mut edits = Edits::new(book);
    let mut dropped = 0;
    for queue in queues(book) {
        if let Some(content) = queue.get("content")
            && let Some(text) = content.string()
            && let Some((new, gone)) = retain_in(&text, &keep)
            && gone > 0
        {
            edits.replace(content, serde_json::to_string(&new).unwrap_or_default());
            dropped += gone;
        }
    }
    (edits.apply(), dropped)
}

fn retain_in(text: &str, keep: impl Fn(Raw<'_>) -> bool) -> Option<(String, usize)> {
    let root = Raw::parse_str(text)?;
    let list = root.get("queue")?;
    let operations = list.items()?;
    let kept: Vec<_> = operations.iter().map(|operation| keep(*operation)).collect();
    let mut edits = Edits::new(text.as_bytes());
    if kept.contains(&true) {
        edits.retain(&item_spans(list, text.as_bytes()), |n| kept[n]);
    } else {
        edits.replace(list, "[]");
    }
    if let Some(current) = root.get("current_operation_id").filter(Raw::is_string) {
        let mut left = operations.iter().zip(&kept).filter(|(_, kept)| **kept);
        if !left.any(|(operation, _)| operation.text("id") == current.string()) {
            edits.replace(current, "null");
        }
    }
    let gone = kept.iter().filter(|kept| !**kept).count();
    Some((String::from_utf8(edits.apply()).ok()?, gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto_recap::queue_activity;

    fn book() -> Vec<u8> {
        let content = r#"{\n  \"queue\": [\n    {\"id\": \"a\", \"status\": \"pending\", \"params\": {\"index\": 4}},\n    {\"id\": \"b\", \"status\": \"in_progress\", \"metadata\": {\"scene_index\": 15}},\n    {\"id\": \"c\", \"status\": \"retrying\"}\n  ],\n  \"current_operation_id\": \"b\",\n  \"paused\": true\n}"#;
        format!("{{\"entries\": {{\"0\":{{\"uid\":0,\"comment\":\"x\"}},\n \"99\": {{\"comment\":\"__operation_queue\",\"content\":\"{content}\",\"uid\":99}}, \"n\":null}}}}").into_bytes()
    }

    #[test]
    fn req_68_clearing_the_queue_changes_nothing_else() {
        let (cleared, dropped) = clear_queue(&book());
        assert_eq!((dropped, queue_activity(&cleared).total()), (3, 0));
        let text = String::from_utf8(cleared).unwrap();
        assert!(
            text.contains(
                r#"{\n  \"queue\": [],\n  \"current_operation_id\": null,\n  \"paused\": true\n}"#
            ),
            "{text}"
        );
        assert!(text.starts_with("{\"entries\": {\"0\":{\"uid\":0,\"comment\":\"x\"},\n \"99\""));
        assert!(text.ends_with("\"uid\":99}, \"n\":null}}"));
    }

    #[test]
    fn req_69_only_queue_operations_on_later_messages_are_removed() {
        let (trimmed, dropped) = trim_queue(&book(), 10);
        assert_eq!(dropped, 1);
        let activity = queue_activity(&trimmed);
        assert_eq!((activity.pending, activity.in_progress, activity.retrying), (1, 0, 1));
        let (same, dropped) = trim_queue(&book(), 16);
        assert_eq!((same, dropped), (book(), 0));
        // Message numbers begin at 0, so an operation on message 4 needs five messages.
        assert_eq!(trim_queue(&book(), 4).1, 2);
        assert_eq!(trim_queue(&book(), 5).1, 1);
    }
}
