//! The extension's queue, which is an entry of the lorebook: what is odd about it, and what must wait for it.

use crate::auto_recap::written::{Operation, QUEUE, queue_activity, queue_operations};
use crate::rules::Subject;
use crate::rules::{Book, BookEntry};
use crate::rules::{Code, Finding, Level};
use crate::rules::{brief, few, listed};

/// What somebody wants to do with a lorebook in whose queue work may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Take a snapshot of it.
    Take,
    /// The same, after waiting for it in vain.
    TakeAfterWaiting,
    /// The same, not now but soon.
    TakeLater,
    /// The same, ready or not.
    TakeAnyway,
    /// Give another chat a copy of it.
    Copy,
    /// Write another one in its place.
    Replace,
    /// Bring back a stored one, with the work that waited then.
    BringBack,
}

/// Work that waits in the lorebook's queue. It stands for what is not in the chat and the lorebook yet, so a state taken now would be half of one, a copy would do the work of
/// another chat, and a book in its place would get what it was not meant for. An error, unless it is wanted all the same.
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
    let wait = match level {
        Level::Error => " Please wait for queue to finish.",
        _ => "",
    };
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
    let past_end = |operation: &Operation| {
        let last = operation.messages.iter().max().copied()?;
        (operation.is_active() && parts.is_past_end(last)).then_some(last)
    };
    let mut findings = Vec::new();
    for operation in &operations {
        let Some(index) = past_end(operation) else { continue };
        let message = format!(
            "operation {:?} ({}, {}) is about message {index}, and the chat has {}",
            brief(&operation.id),
            brief(&operation.kind),
            operation.status,
            parts.messages.len(),
        );
        findings.push(
            Finding::new(Code::QueuePastEnd, book.path, message)
                .remedy("clear the extension's queue once the chat is open; the operation belongs to a longer chat"),
        );
    }
    few(findings)
}
