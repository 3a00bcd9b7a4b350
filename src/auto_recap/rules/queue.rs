//! The extension's queue, which is an entry of the lorebook.

use crate::auto_recap::written::{QUEUE, queue_activity, queue_operations};
use crate::rules::{Book, BookEntry, Code, Finding, Level, Subject, brief, few, listed};

/// An action on a lorebook in whose queue work may be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Create a snapshot of it.
    Take,
    TakeAfterWaiting,
    TakeLater,
    TakeAnyway,
    /// Give another chat a copy of it.
    Copy,
    /// Write another one in its place.
    Replace,
    /// Restore a stored one, with the work that was pending then.
    BringBack,
}

/// Returns the finding about pending work in a lorebook's queue. Its results are not in the chat and
/// the lorebook yet, so a snapshot created now would be incomplete, a copy would do the work of
/// another chat, and a book in its place would get results that were not meant for it.
pub fn queue_active(subject: &str, book: Option<&[u8]>, wish: Wish) -> Option<Finding> {
    let activity = queue_activity(book?);
    let total = activity.total();
    if total == 0 {
        return None;
    }
    let (level, outcome, remedy) = match wish {
        Wish::Take => (
            Level::Error,
            "Cannot create checkpoint",
            "`--wait` waits for it; `--allow-active-queue` takes the state as it is and says so in the snapshot",
        ),
        Wish::TakeAfterWaiting => (
            Level::Error,
            "Cannot create checkpoint",
            "it was not done in that time; `--allow-active-queue` takes the state as it is and says so in the snapshot",
        ),
        Wish::TakeLater => (
            Level::Warning,
            "Cannot create checkpoint yet",
            "`stvc snapshot --wait` takes it as soon as the queue is empty; a watch does so by itself",
        ),
        Wish::TakeAnyway => (
            Level::Warning,
            "Taken all the same",
            "its lorebook may lack what the queue was about to write",
        ),
        Wish::Copy => (
            Level::Error,
            "Cannot copy its lorebook",
            "give the command again when the queue is empty",
        ),
        Wish::Replace => (
            Level::Error,
            "Cannot replace its lorebook",
            "give the command again when the queue is empty; `--allow-active-queue` does it all the same",
        ),
        Wish::BringBack => (
            Level::Warning,
            "It was taken in the middle of the work, and goes on with it",
            "`--clear-queue` drops what waits, `--trim-queue` what is about later messages",
        ),
    };
    let operations = if total == 1 { "operation" } else { "operations" };
    let retrying = match activity.retrying {
        0 => String::new(),
        n => format!(", {n} retrying"),
    };
    let wait = if level == Level::Error { " Please wait for queue to finish." } else { "" };
    let message = format!(
        "{outcome}: {total} {operations} in queue.{wait} ST-Auto-Recap: Queue is not empty ({} pending, {} in progress{retrying})",
        activity.pending, activity.in_progress
    );
    Some(Finding::new(Code::QueueActive, subject, message).at(level).remedy(remedy))
}

pub(super) fn findings(parts: &Subject<'_>, book: &Book<'_>) -> Vec<Finding> {
    let queues: Vec<_> = book.entries.iter().filter(|entry| entry.title == QUEUE).collect();
    let mut findings = Vec::new();
    if queues.len() > 1 {
        let keys: Vec<_> = queues.iter().map(|queue| brief(&queue.key)).collect();
        let message = format!(
            "it has {} entries called {QUEUE} ({}); the extension uses the first and forgets the others",
            queues.len(),
            listed(&keys)
        );
        findings.push(
            Finding::new(Code::QueueSeveral, book.path, message)
                .remedy("delete all but the first of them in SillyTavern's lorebook editor"),
        );
    }
    for queue in queues {
        findings.extend(one_queue(parts, book, queue));
    }
    findings
}

fn one_queue(parts: &Subject<'_>, book: &Book<'_>, queue: &BookEntry<'_>) -> Vec<Finding> {
    let Some(operations) = queue_operations(queue.content) else {
        let message = format!(
            "the queue (entry {:?}) cannot be read; the extension takes it for empty",
            brief(&queue.key)
        );
        return vec![
            Finding::new(Code::QueueUnreadable, book.path, message)
                .remedy("what was queued is lost, unless an earlier snapshot has it; delete the entry, the extension makes a new one"),
        ];
    };
    let past_end = operations.iter().filter(|operation| operation.is_active()).filter_map(|it| {
        let last = it.messages.iter().max().filter(|last| parts.is_past_end(**last))?;
        let message = format!(
            "operation {:?} ({}, {}) is about message {last}, and the chat has {}",
            brief(&it.id),
            brief(&it.kind),
            it.status,
            parts.messages.len(),
        );
        Some(Finding::new(Code::QueuePastEnd, book.path, message).remedy(
            "clear the extension's queue once the chat is open; the operation belongs to a longer chat",
        ))
    });
    few(past_end.collect())
}
