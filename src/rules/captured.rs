//! What is odd about a timeline's files as they were read. None of it keeps them from being stored: bytes are bytes.

use std::ops::Range;

use super::{Finding, Level};
use crate::st::{Captured, Chat, Raw, broken_lines, cut};

/// All findings about `captured`, whose chat is `chat`. Of its messages only those in `fresh` are looked at: a save changes few, and what was found before was
/// said before.
pub fn captured(captured: &Captured, chat: &Chat<'_>, fresh: &[Range<usize>]) -> Vec<Finding> {
    let mut findings = chat_findings(captured, chat, fresh);
    findings.extend(lorebook_findings(captured));
    findings
}

/// Every message.
pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));

fn chat_findings(captured: &Captured, chat: &Chat<'_>, fresh: &[Range<usize>]) -> Vec<Finding> {
    let path = captured.chat.path.as_str();
    let mut findings = Vec::new();
    let warn = |code, message: String| Finding::new(code, Level::Warning, path, message);
    if captured.chat.bytes.is_empty() {
        findings.push(
            warn("chat-empty", "the chat file is empty".into())
                .remedy(format!("an earlier state may be in the store: stvc log {path:?}")),
        );
        return findings;
    }
    if captured.chat.bytes.starts_with(b"\xef\xbb\xbf") {
        findings.push(
            warn("chat-bom", "the file begins with a byte order mark; SillyTavern loses the header and message 0 to it".into())
                .remedy("save the file as UTF-8 without a byte order mark"),
        );
    } else if let Some(header) = chat.header
        && Raw::parse(header).is_none_or(|header| !header.is_object())
    {
        findings.push(
            warn(
                "chat-header-broken",
                "line 1, the header, cannot be read; SillyTavern loses the chat's metadata".into(),
            )
            .remedy("mend line 1, or restore an earlier snapshot"),
        );
    }
    let first_line = if chat.header.is_some() { 2 } else { 1 };
    let broken: Vec<_> = fresh.iter().flat_map(|range| broken_lines(chat, range.clone())).collect();
    if !broken.is_empty() {
        let lines: Vec<_> =
            broken.iter().take(5).map(|index| (index + first_line).to_string()).collect();
        let more = broken.len().saturating_sub(lines.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        findings.push(
            warn(
                "chat-line-broken",
                format!(
                    "line {}{more} cannot be read; SillyTavern drops such lines silently",
                    lines.join(", ")
                ),
            )
            .remedy("mend the line in a text editor, or restore an earlier snapshot"),
        );
    }
    findings
}

fn lorebook_findings(captured: &Captured) -> Option<Finding> {
    let book = captured.lorebook.as_ref()?;
    let subject = captured.name.as_str();
    let Some(file) = &book.file else {
        let message =
            format!("its lorebook {:?} does not exist; SillyTavern shows it as empty", book.name);
        return Some(Finding::new("lorebook-missing", Level::Warning, subject, message).remedy(
            "restore it from a snapshot that has it, or choose another lorebook for the chat",
        ));
    };
    let root = Raw::parse(&file.bytes);
    let entries = root.and_then(|root| root.get("entries")).filter(Raw::is_object);
    let whole = cut(&file.bytes).entries.is_empty();
    match entries {
        Some(entries) if whole && entries.members().is_some_and(|members| !members.is_empty()) => {
            let message = "a key stands twice in it, so it is stored as one piece; SillyTavern keeps the last of the two";
            Some(Finding::new("lorebook-key-repeated", Level::Warning, file.path.as_str(), message))
        }
        Some(_) => None,
        None => Some(
            Finding::new(
                "lorebook-broken",
                Level::Warning,
                file.path.as_str(),
                "it is not a readable lorebook; it is stored as one piece",
            )
            .remedy("mend the file, or restore an earlier snapshot"),
        ),
    }
}
