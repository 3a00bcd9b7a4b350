//! The lorebook bound to a chat: whether it is there, whether it can be read, whose it is.

use std::collections::HashMap;

use super::damage::DAMAGED;
use super::finding::{brief, few};
use super::subject::Subject;
use super::{Code, Finding, Level};
use crate::st::{Raw, TimelineName, book_damage, entries_and_repeats, uid_text};

pub struct Book<'a> {
    pub path: &'a str,
    /// Its entries that are objects, as JavaScript sees them, in the order of the file.
    pub entries: Vec<BookEntry<'a>>,
}

pub struct BookEntry<'a> {
    pub key: String,
    pub uid: Option<String>,
    /// Its title; empty if it has none.
    pub title: String,
    pub content: Option<Raw<'a>>,
}

/// Read the lorebook, and say why if that cannot be done as it should.
pub(super) fn read<'a>(parts: &Subject<'a>) -> (Option<Book<'a>>, Option<Finding>) {
    let Some(bound) = &parts.lorebook else { return (None, None) };
    if let Some(why) = bound.unread {
        return (None, Some(unread(parts.timeline, bound.name, why)));
    }
    let Some((path, bytes)) = bound.file else {
        let message = format!(
            "its lorebook {:?} does not exist; SillyTavern shows it as empty",
            brief(bound.name)
        );
        let finding = Finding::new(Code::LorebookMissing, parts.timeline.as_str(), message);
        return (
            None,
            Some(finding.remedy(
                "restore it from a snapshot that has it, or choose another lorebook for the chat",
            )),
        );
    };
    let Some((entries, repeated)) = entries_and_repeats(bytes) else {
        return (None, Some(broken(path, bytes)));
    };
    let finding = (repeated && !entries.is_empty()).then(|| {
        let message = "a key stands twice in it, so it is stored as one piece; SillyTavern keeps the last of the two";
        Finding::new(Code::LorebookKeyRepeated, path, message)
    });
    let entries = entries.into_iter().filter_map(|(key, value)| {
        let [uid, comment, content] = value.pick(["uid", "comment", "content"])?;
        Some(BookEntry {
            key: key.into_string_lossy(),
            uid: uid.and_then(uid_text),
            title: comment.and_then(|title| title.string()).unwrap_or_default(),
            content,
        })
    });
    (Some(Book { path, entries: entries.collect() }), finding)
}

/// Returns the finding about a chat whose lorebook exists and cannot be read.
pub fn unread(timeline: &TimelineName, book: &str, why: &str) -> Finding {
    let message = format!(
        "its lorebook {:?} cannot be read, so a snapshot has the chat alone: {why}",
        brief(book)
    );
    Finding::new(Code::LorebookUnread, timeline.as_str(), message)
        .remedy("check the permissions of the lorebook's file, and the disk; the next snapshot after that has both")
}

fn broken(path: &str, bytes: &[u8]) -> Finding {
    let (level, message) = match book_damage(bytes) {
        Some(damage) => (Level::Error, format!("the lorebook {}", damage.words())),
        None => {
            let message = "it is not a readable lorebook; it is stored as one piece";
            (Level::Warning, message.to_owned())
        }
    };
    Finding::new(Code::LorebookBroken, path, message).at(level).remedy(DAMAGED)
}

/// UIDs that several entries have. Which of them a registry or an extension means is chance.
pub(super) fn findings(book: &Book<'_>) -> Vec<Finding> {
    let mut owners: HashMap<&str, Vec<&BookEntry<'_>>> = HashMap::new();
    for entry in &book.entries {
        if let Some(uid) = &entry.uid {
            owners.entry(uid).or_default().push(entry);
        }
    }
    let first = |entry: &BookEntry<'_>| entry.uid.as_deref().and_then(|uid| owners.get(uid));
    let mut findings = Vec::new();
    // In the order of the file.
    for entry in &book.entries {
        let Some(same) = first(entry).filter(|same| same.len() > 1) else { continue };
        if !std::ptr::eq(same[0], entry) {
            continue;
        }
        let named =
            |entry: &&BookEntry<'_>| format!("{:?} ({:?})", brief(&entry.key), brief(&entry.title));
        let names: Vec<_> = same.iter().take(5).map(named).collect();
        let message = format!(
            "UID {} stands in {} entries: {}{}",
            brief(entry.uid.as_deref().unwrap_or_default()),
            same.len(),
            names.join(", "),
            if same.len() > names.len() { ", …" } else { "" },
        );
        findings.push(
            Finding::new(Code::UidRepeated, book.path, message)
                .remedy("give all but one of them a UID of their own, or restore an earlier snapshot of the lorebook"),
        );
    }
    few(findings)
}
