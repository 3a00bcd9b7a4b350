//! Taking work out of a lorebook's queue, where the user asks for it. Everything else in the book stays to the byte.

use super::queue::{message_references, queues};
use crate::st::json::{Edits, Raw, item_spans};

/// The book with nothing left to do, and how many operations were dropped.
pub fn clear_queue(book: &[u8]) -> (Vec<u8>, usize) {
    retain(book, |_| false)
}

/// The book without the operations about messages that a chat of so many messages does not have, and how many were dropped. Those about no message stay.
pub fn trim_queue(book: &[u8], messages: usize) -> (Vec<u8>, usize) {
    let exists = |index: &i64| usize::try_from(*index).is_ok_and(|index| index < messages);
    retain(book, |operation| message_references(operation).iter().all(exists))
}

fn retain(book: &[u8], keep: impl Fn(Raw<'_>) -> bool) -> (Vec<u8>, usize) {
    let mut edits = Edits::new(book);
    let mut dropped = 0;
    for queue in queues(book) {
        let Some(content) = queue.get("content") else { continue };
        let Some(text) = content.string() else { continue };
        if let Some((new, gone)) = retain_in(&text, &keep).filter(|(_, gone)| *gone > 0) {
            edits.replace(content, serde_json::to_string(&new).unwrap_or_default());
            dropped += gone;
        }
    }
    (edits.apply(), dropped)
}

/// The same for the text of a queue.
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
    // What is being done may be gone.
    let current = root.get("current_operation_id").filter(Raw::is_string);
    if let Some(current) = current {
        let id = |operation: &Raw<'_>| operation.get("id").and_then(|id| id.string());
        let stays = operations
            .iter()
            .zip(&kept)
            .any(|(operation, kept)| *kept && id(operation) == current.string());
        if !stays {
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
    fn req_68_a_queue_is_cleared_and_nothing_else_changes() {
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
    fn req_69_only_work_about_later_messages_is_dropped() {
        let (trimmed, dropped) = trim_queue(&book(), 10);
        assert_eq!(dropped, 1);
        let activity = queue_activity(&trimmed);
        assert_eq!((activity.pending, activity.in_progress, activity.retrying), (1, 0, 1));
        let (same, dropped) = trim_queue(&book(), 16);
        assert_eq!((same, dropped), (book(), 0));
        // The message that an operation is about must exist: 4 is the fifth.
        assert_eq!(trim_queue(&book(), 4).1, 2);
        assert_eq!(trim_queue(&book(), 5).1, 1);
    }
}
