//! The extension's queue, which is an entry of the lorebook.

use super::finding::{brief, few, listed};
use super::lorebook::{Book, BookEntry};
use super::subject::Subject;
use super::{Code, Finding, Level};
use crate::st::auto_recap::{Operation, QUEUE, queue_operations};

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
            Finding::new(Code::QueueSeveral, Level::Warning, book.path, message)
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
            Finding::new(Code::QueueUnreadable, Level::Warning, book.path, message)
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
            Finding::new(Code::QueuePastEnd, Level::Warning, book.path, message)
                .remedy("clear the extension's queue once the chat is open; the operation belongs to a longer chat"),
        );
    }
    few(findings)
}
