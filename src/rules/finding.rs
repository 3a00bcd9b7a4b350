//! Findings, and helper functions for their texts.

use std::fmt::Display;

use serde::Serialize;

use super::catalogue::{Code, Level};
pub(crate) use crate::words::{listed, more};

/// Problem in the user's data or in the store, or other information about them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that was violated, in `--json` as its kebab-case name.
    pub code: Code,
    /// Severity of the finding. The catalogue lists the levels that each code can have.
    pub level: Level,
    /// File, timeline or snapshot that the finding is about.
    pub subject: String,
    /// Description of the problem, in lower case and without a final full stop.
    pub message: String,
    /// Advice in the imperative, in lower case and without a final full stop.
    pub remedy: Option<String>,
    /// Moment to restore. The moment is named by snapshot ids, so that later snapshots do not
    /// change its meaning.
    pub snapshot: Option<String>,
}

impl Finding {
    /// Creates a finding without a remedy, with the default level of its code.
    pub fn new(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { code, level: code.rule().levels[0], subject, message, remedy: None, snapshot: None }
    }

    /// Sets another level, which the catalogue must allow for the code.
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

    /// Adds advice for the user.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Sets the remedy from the catalogue.
    pub fn usual_remedy(self) -> Self {
        let remedy = self.code.rule().remedy;
        self.remedy(remedy)
    }

    /// Sets the moment to restore, which must be named by snapshot ids.
    pub fn restorable_from(mut self, moment: impl Into<String>) -> Self {
        self.snapshot = Some(moment.into());
        self
    }
}

/// Counts the attachments and lists of attachments that were not restored or copied, because they
/// are lost, damaged or refused.
pub fn lost_attachments(findings: &[Finding]) -> usize {
    use Code::{AttachmentListLost, AttachmentLost, AttachmentRefused};
    let codes = findings.iter().map(|finding| finding.code);
    codes
        .filter(|code| matches!(code, AttachmentLost | AttachmentListLost | AttachmentRefused))
        .count()
}

/// Removes duplicates without changing the order. Findings about a lorebook occur for each chat
/// that uses it and for the lorebook's own timeline.
pub fn without_repeats<F: PartialEq>(findings: Vec<F>) -> Vec<F> {
    let mut once = Vec::with_capacity(findings.len());
    for finding in findings {
        if !once.contains(&finding) {
            once.push(finding);
        }
    }
    once
}

/// Shortens a user's text, which may be very long, to 80 characters.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Limits a list to its first 20 findings. Adds the number of removed findings to the message of
/// the last one.
pub(crate) fn few(mut findings: Vec<Finding>) -> Vec<Finding> {
    const SHOWN: usize = 20;
    let rest = findings.len().saturating_sub(SHOWN);
    findings.truncate(SHOWN);
    if let Some(last) = findings.last_mut().filter(|_| rest > 0) {
        last.message.push_str(&format!("; and {rest} more of this kind"));
    }
    findings
}

/// Returns `line 3` or `lines 3, 5`.
pub(crate) fn numbered<T: Display>(noun: &str, numbers: &[T]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", listed(numbers))
}
