//! Findings about the extension's queue, which is an entry of the lorebook.

use crate::auto_recap::written::{QUEUE, queue_activity, queue_operations};
use crate::rules::{Book, BookEntry, Code, Finding, Level, Subject, brief, few, listed};
use crate::words::count;

/// An action on a lorebook whose queue may have pending work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueIntent {
    /// Creates a snapshot of the lorebook.
    Snapshot,
    SnapshotAfterWaiting,
    SnapshotLater,
    SnapshotAnyway,
    /// Copies the lorebook for another chat.
    Copy,
    /// Replaces the lorebook with another lorebook.
    Replace,
    /// Restores a stored lorebook, including its pending work.
    Restore,
}

/// Returns the finding about pending work in a lorebook's queue. The results of pending work are
/// not in the lorebook yet, so a snapshot would be incomplete, a copy would perform work for the
/// wrong chat, and a replaced lorebook would receive results that belong to the former lorebook.
pub fn queue_active(subject: &str, book: Option<&[u8]>, intent: QueueIntent) -> Option<Finding> {
    let activity = queue_activity(book?);
    let total = activity.total();
    if total == 0 {
        return None;
    }
    let (level, outcome, remedy) = match intent {
        QueueIntent::Snapshot => (
            Level::Error,
            "Cannot create checkpoint",
            "use `--wait` to wait for it; use `--allow-active-queue` to create the snapshot anyway and record the active queue in it",
        ),
        QueueIntent::SnapshotAfterWaiting => (
            Level::Error,
            "Cannot create checkpoint",
            "the waiting time is over; use `--allow-active-queue` to create the snapshot anyway and record the active queue in it",
        ),
        QueueIntent::SnapshotLater => (
            Level::Warning,
            "Cannot create checkpoint yet",
            "run `stvc snapshot --wait` to create it when the queue is empty; `stvc watch` does this automatically",
        ),
        QueueIntent::SnapshotAnyway => (
            Level::Warning,
            "Snapshot created anyway",
            "check the lorebook: it may lack the results of the queue",
        ),
        QueueIntent::Copy => {
            (Level::Error, "Cannot copy its lorebook", "repeat the command when the queue is empty")
        }
        QueueIntent::Replace => (
            Level::Error,
            "Cannot replace its lorebook",
            "repeat the command when the queue is empty; use `--allow-active-queue` to continue anyway",
        ),
        QueueIntent::Restore => (
            Level::Warning,
            "The snapshot has an active queue, and its work will continue",
            "use `--clear-queue` to remove all pending operations; use `--trim-queue` to remove those about later messages",
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
            "it has {} entries with the title {QUEUE} ({}); the extension uses the first and ignores the others",
            queues.len(),
            listed(&keys)
        );
        findings.push(
            Finding::new(Code::QueueSeveral, book.path, message)
                .remedy("delete all but the first in SillyTavern's lorebook editor"),
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
            "the queue (entry {:?}) cannot be read; the extension treats it as empty",
            brief(&queue.key)
        );
        return vec![
            Finding::new(Code::QueueUnreadable, book.path, message)
                .remedy("restore an earlier snapshot to get the queued work back; or delete the entry: the extension creates a new one"),
        ];
    };
    let past_end = operations.iter().filter(|operation| operation.is_active()).filter_map(|it| {
        let last = it.messages.iter().max().filter(|last| parts.is_past_end(**last))?;
        let message = format!(
            "operation {:?} ({}, {}) refers to message {last}, but the chat has only {}",
            brief(&it.id),
            brief(&it.kind),
            it.status,
            count(parts.messages.len(), "message"),
        );
        Some(Finding::new(Code::QueuePastEnd, book.path, message).remedy(
            "open the chat and clear the extension's queue: the operation belongs to a longer chat",
        ))
    });
    few(past_end.collect())
}
