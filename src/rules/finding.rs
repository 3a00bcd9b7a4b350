//! One result of a rule.

use serde::Serialize;

use super::catalogue::{Code, Level};
pub(crate) use crate::words::{listed, more};

/// Something found in the user's data or in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Names the rule; stable.
    pub code: Code,
    /// One of the levels of the rule.
    pub level: Level,
    /// A file, a timeline or a snapshot.
    pub subject: String,
    /// A sentence about what was found.
    pub message: String,
    /// A sentence about what to do.
    pub remedy: Option<String>,
    /// The moment to restore, by its ids, so that later snapshots do not change its meaning.
    pub snapshot: Option<String>,
}

impl Finding {
    /// Makes a finding without a remedy, with the first level that its code has.
    pub fn new(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { code, level: code.rule().levels[0], subject, message, remedy: None, snapshot: None }
    }

    /// Sets another level that its code may have.
    pub fn at(mut self, level: Level) -> Self {
        debug_assert!(
            self.code.rule().levels.contains(&level),
            "{} ({}) is missing in src/rules/catalogue.rs",
            self.code,
            level.as_str()
        );
        self.level = level;
        self
    }

    /// Sets the remedy.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Sets the remedy that the catalogue has for its code.
    pub fn usual_remedy(self) -> Self {
        let remedy = self.code.rule().remedy;
        self.remedy(remedy)
    }

    /// Names the moment that a restore goes back to, by its ids.
    pub fn restorable_from(mut self, moment: impl Into<String>) -> Self {
        self.snapshot = Some(moment.into());
        self
    }
}

/// Counts the attachments, and lists of them, that were not restored or copied: lost, damaged or
/// refused.
pub fn lost_attachments(findings: &[Finding]) -> usize {
    use Code::{AttachmentListLost, AttachmentLost, AttachmentRefused};
    let codes = findings.iter().map(|finding| finding.code);
    codes
        .filter(|code| matches!(code, AttachmentLost | AttachmentListLost | AttachmentRefused))
        .count()
}

/// Returns each finding once, in their order. A lorebook's own timeline repeats what its chats
/// report.
pub fn without_repeats<F: PartialEq>(findings: Vec<F>) -> Vec<F> {
    let mut once = Vec::with_capacity(findings.len());
    for finding in findings {
        if !once.contains(&finding) {
            once.push(finding);
        }
    }
    once
}

/// Cuts a user's text, which may be very long, to what a message shows of it.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Cuts a list that would fill screens; its last finding says so.
pub(crate) fn few(mut findings: Vec<Finding>) -> Vec<Finding> {
    const SHOWN: usize = 20;
    let rest = findings.len().saturating_sub(SHOWN);
    findings.truncate(SHOWN);
    if let Some(last) = findings.last_mut().filter(|_| rest > 0) {
        last.message.push_str(&format!("; and {rest} more such findings"));
    }
    findings
}
