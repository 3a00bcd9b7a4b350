//! Findings about what ST-Auto-Recap keeps: recaps, scenes, registries, the queue, and what must wait for it.

mod after_restore;
mod book_name;
mod queue;
mod readiness;
mod registry;
mod running_recap;
mod scenes;
#[cfg(test)]
mod tests;

use crate::rules::{Book, Finding, Subject};

pub use after_restore::restored;
pub use queue::{Wish, queue_active};
pub use readiness::{
    Point, READINESS, STRICT, lorebook_of_now, readiness, recap_from_future, refuse,
};

/// Returns what is odd about what the extension keeps in a chat.
pub(crate) fn of_chat(parts: &Subject<'_>) -> Vec<Finding> {
    let mut findings = scenes::findings(parts);
    findings.extend(running_recap::findings(parts));
    findings.extend(book_name::findings(parts));
    findings
}

/// Returns what is odd about what the extension keeps in the lorebook of a chat.
pub(crate) fn of_book(parts: &Subject<'_>, book: &Book<'_>) -> Vec<Finding> {
    let mut findings = registry::findings(parts, book);
    findings.extend(queue::findings(parts, book));
    findings
}
