//! Findings about the data of ST-Auto-Recap (recaps, scenes, registries and the queue), and about
//! commands that must wait until the queue is empty.

mod after_restore;
mod book_name;
mod queue;
mod readiness;
mod recaps;
mod registry;

use crate::rules::{Book, Finding, Subject};

pub use after_restore::restored;
pub use queue::{QueueIntent, queue_active};
pub use readiness::{
    CheckpointSource, READINESS, STRICT, lorebook_of_now, readiness, recap_from_future, refuse,
};

pub(crate) fn of_chat(parts: &Subject<'_>) -> Vec<Finding> {
    let mut findings = recaps::of_scenes(parts);
    findings.extend(recaps::of_running_recap(parts));
    findings.extend(book_name::finding(parts));
    findings
}

pub(crate) fn of_book(parts: &Subject<'_>, book: &Book<'_>) -> Vec<Finding> {
    let mut findings = registry::findings(parts, book);
    findings.extend(queue::findings(parts, book));
    findings
}
