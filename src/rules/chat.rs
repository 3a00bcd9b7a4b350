//! Findings about parts of a chat file that SillyTavern cannot read.

use super::damage::DAMAGED;
use super::subject::Subject;
use super::{Code, Finding, Level, numbered};
use crate::st::{Damage, Raw, broken_lines, chat_damage};

pub(super) fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    let (chat, path) = (parts.chat, parts.chat_path());
    let mut findings = Vec::new();
    if let Some(damage) = chat_damage(chat, parts.examined) {
        // SillyTavern 1.12 writes a group chat without messages as an empty file.
        let (code, level) = match damage {
            Damage::Empty if parts.files.timeline.is_group() => (Code::ChatEmpty, Level::Warning),
            Damage::Empty => (Code::ChatEmpty, Level::Error),
            Damage::Zeros | Damage::Unreadable => (Code::ChatDamaged, Level::Error),
        };
        let message = format!("the chat file {}", damage.words());
        findings.push(Finding::new(code, path, message).at(level).remedy(DAMAGED));
        if damage != Damage::Zeros {
            return findings;
        }
    }
    // SillyTavern replaces invalid UTF-8, so a line with invalid UTF-8 can still be read.
    let text = chat.header.map(String::from_utf8_lossy);
    let header = text.as_deref().map(Raw::parse_str);
    let first = chat.header.or_else(|| chat.messages.first().copied());
    if first.is_some_and(|first| first.starts_with(b"\xef\xbb\xbf")) {
        let message =
            "the file begins with a byte order mark, so SillyTavern loses the header and message 0";
        findings.push(Finding::new(Code::ChatBom, path, message).usual_remedy());
    } else if let Some(header) = header
        && header.is_none_or(|header| !header.is_object())
    {
        // If SillyTavern drops the header, it reads message 0 as the header.
        let dropped = header.is_none_or(|header| !header.truthy());
        let and = if dropped { " and message 0" } else { "" };
        let message = format!(
            "line 1, the header, cannot be read; SillyTavern loses the chat's metadata{and}"
        );
        findings.push(Finding::new(Code::ChatHeaderBroken, path, message).usual_remedy());
    } else if let Some(header) = header.flatten()
        && header.get("mes").is_some()
        && header.get("chat_metadata").is_none()
    {
        let message = "the header is missing: line 1 is a message; SillyTavern ignores this message, and its next save deletes it";
        findings.push(Finding::new(Code::ChatHeaderMissing, path, message).remedy(
            r#"insert this line before it: {"user_name":"unused","character_name":"unused","chat_metadata":{}}"#,
        ));
    }
    let first_line = if chat.header.is_some() { 2 } else { 1 };
    let is_text = |line: &[u8]| std::str::from_utf8(line).is_ok();
    let header = chat.header.filter(|header| !is_text(header)).map(|_| 1);
    let lines = chat.messages.iter().enumerate();
    let lines = lines.filter(|(at, line)| parts.is_looked_at(*at) && !is_text(line));
    let odd: Vec<_> = header.into_iter().chain(lines.map(|(at, _)| at + first_line)).collect();
    if !odd.is_empty() {
        let are = if odd.len() == 1 { "is" } else { "are" };
        findings.push(not_utf8(path, &format!("{} {are}", numbered("line", &odd))));
    }
    let broken = parts.examined.iter().flat_map(|range| broken_lines(chat, range.clone()));
    let broken: Vec<_> = broken.map(|index| index + first_line).collect();
    if !broken.is_empty() {
        let message = format!(
            "{} cannot be read; SillyTavern drops such lines silently",
            numbered("line", &broken)
        );
        findings.push(Finding::new(Code::ChatLineBroken, path, message).usual_remedy());
    }
    findings
}

pub(super) fn not_utf8(path: &str, which: &str) -> Finding {
    let message = format!(
        "{which} not UTF-8; SillyTavern reads the invalid bytes as \u{fffd} and writes \u{fffd} back with its next save"
    );
    Finding::new(Code::NotUtf8, path, message).usual_remedy()
}
