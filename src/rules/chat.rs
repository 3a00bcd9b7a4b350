//! What SillyTavern will not read of a chat file.

use super::finding::listed;
use super::subject::Subject;
use super::{Code, Finding, Level};
use crate::st::{Raw, broken_lines};

pub(super) fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    let (chat, path) = (parts.chat, parts.chat_path);
    let mut findings = Vec::new();
    let warn = |code, message: String| Finding::new(code, Level::Warning, path, message);
    if chat.header.is_none_or(<[u8]>::is_empty) && chat.messages.is_empty() {
        findings.push(
            warn(Code::ChatEmpty, "the chat file is empty".into())
                .remedy(format!("an earlier state may be in the store: stvc log {path:?}")),
        );
        return findings;
    }
    let first = chat.header.or_else(|| chat.messages.first().copied());
    if first.is_some_and(|first| first.starts_with(b"\xef\xbb\xbf")) {
        findings.push(
            warn(Code::ChatBom, "the file begins with a byte order mark; SillyTavern loses the header and message 0 to it".into())
                .remedy("save the file as UTF-8 without a byte order mark"),
        );
    } else if let Some(header) = chat.header
        && Raw::parse(header).is_none_or(|header| !header.is_object())
    {
        findings.push(
            warn(
                Code::ChatHeaderBroken,
                "line 1, the header, cannot be read; SillyTavern loses the chat's metadata".into(),
            )
            .remedy("mend line 1, or restore an earlier snapshot"),
        );
    }
    let first_line = if chat.header.is_some() { 2 } else { 1 };
    let broken = parts.looked_at.iter().flat_map(|range| broken_lines(chat, range.clone()));
    let broken: Vec<_> = broken.map(|index| index + first_line).collect();
    if !broken.is_empty() {
        let message = format!(
            "line {} cannot be read; SillyTavern drops such lines silently",
            listed(&broken)
        );
        findings.push(
            warn(Code::ChatLineBroken, message)
                .remedy("mend the line in a text editor, or restore an earlier snapshot"),
        );
    }
    findings
}
