//! One result of a rule.

use serde::Serialize;

use super::catalogue::{self, Code};
use super::level::Level;
pub(crate) use crate::listed::{listed, more};

/// Something found in the user's data or in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Names the rule; stable.
    pub code: Code,
    pub level: Level,
    /// What it is about: a file, a timeline, a snapshot.
    pub subject: String,
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The moment to restore, by its ids, so that later snapshots do not change its meaning.
    pub snapshot: Option<String>,
}

impl Finding {
    /// A finding without a remedy, with the first level that its code has in [`catalogue`](super::CATALOGUE).
    pub fn new(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { code, level: code.level(), subject, message, remedy: None, snapshot: None }
    }

    /// Sets another level that its code may have.
    pub fn at(mut self, level: Level) -> Self {
        debug_assert!(
            catalogue::knows(self.code, level),
            "{} ({}) is missing in src/rules/catalogue.rs",
            self.code,
            level.as_str()
        );
        self.level = level;
        self
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Names the moment that a restore goes back to, by its ids.
    pub fn restorable_from(mut self, moment: impl Into<String>) -> Self {
        self.snapshot = Some(moment.into());
        self
    }
}

/// Counts the attachments, and lists of them, that were not restored or copied: lost, damaged or refused.
pub fn lost_attachments(findings: &[Finding]) -> usize {
    let is_lost = |finding: &&Finding| {
        use Code::{AttachmentListLost, AttachmentLost, AttachmentRefused};
        matches!(finding.code, AttachmentLost | AttachmentListLost | AttachmentRefused)
    };
    findings.iter().filter(is_lost).count()
}

/// Returns each finding once, in their order. A lorebook's own timeline tells of it what its chats tell.
pub fn without_repeats<F: PartialEq>(findings: Vec<F>) -> Vec<F> {
    let mut once = Vec::with_capacity(findings.len());
    for finding in findings {
        if !once.contains(&finding) {
            once.push(finding);
        }
    }
    once
}

/// How many characters of a user's text stand in a message.
const BRIEF: usize = 80;

/// The beginning of a text that may be very long.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How many findings of one kind are told one by one.
const FEW: usize = 20;

/// A list that would fill screens, cut short; its last finding says so.
pub(crate) fn few(mut findings: Vec<Finding>) -> Vec<Finding> {
    let rest = findings.len().saturating_sub(FEW);
    if rest > 0 {
        findings.truncate(FEW);
        if let Some(last) = findings.last_mut() {
            last.message.push_str(&format!("; and {rest} more such findings"));
        }
    }
    findings
}
