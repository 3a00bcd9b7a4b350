//! Findings about the lorebook of a chat: whether it exists, can be read, and has unique UIDs.

use std::collections::HashMap;

use super::chat::not_utf8;
use super::damage::DAMAGED;
use super::subject::Subject;
use super::{Code, Finding, Level, brief, few};
use crate::st::{Raw, TimelineName, book_damage, entries_and_repeats, uid_text};

pub struct Book<'a> {
    pub path: &'a str,
    /// Entries that are JavaScript objects, in file order. Other values are left out.
    pub entries: Vec<BookEntry<'a>>,
}

pub struct BookEntry<'a> {
    pub key: String,
    pub uid: Option<String>,
    /// Title of the entry; empty if the entry has no title.
    pub title: String,
    pub content: Option<Raw<'a>>,
}

/// Returns the lorebook and the findings about it. The lorebook is `None` if it is missing or
/// cannot be read.
pub(super) fn findings<'a>(parts: &Subject<'a>) -> (Option<Book<'a>>, Vec<Finding>) {
    let files = parts.files;
    let Some(name) = files.bound_name() else { return (None, Vec::new()) };
    let timeline = &files.timeline;
    if let Some(why) = files.unread_book() {
        return (None, vec![unread(timeline, name, why)]);
    }
    let Some(file) = files.book() else {
        let message =
            format!("its lorebook {:?} does not exist; SillyTavern shows it as empty", brief(name));
        let finding = Finding::new(Code::LorebookMissing, timeline.as_str(), message);
        return (
            None,
            vec![finding.remedy(
                "restore it from a snapshot that has it, or choose another lorebook for the chat",
            )],
        );
    };
    let (path, bytes) = (file.path.as_str(), file.bytes);
    let odd = std::str::from_utf8(bytes).is_err().then(|| not_utf8(path, "it is"));
    let Some((entries, repeated)) = entries_and_repeats(bytes) else {
        return (None, [broken(path, bytes)].into_iter().chain(odd).collect());
    };
    let repeated = (repeated && !entries.is_empty()).then(|| {
        let message = "a key occurs twice in it, so it is stored as one piece; SillyTavern uses the last of the two";
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
    let book = Book { path, entries: entries.collect() };
    let findings = repeated.into_iter().chain(odd).chain(repeated_uids(&book)).collect();
    (Some(book), findings)
}

/// Returns the finding about a chat whose lorebook exists but cannot be read.
pub fn unread(timeline: &TimelineName, book: &str, why: &str) -> Finding {
    let message = format!(
        "its lorebook {:?} cannot be read, so a snapshot contains only the chat: {why}",
        brief(book)
    );
    Finding::new(Code::LorebookUnread, timeline.as_str(), message).usual_remedy()
}

fn broken(path: &str, bytes: &[u8]) -> Finding {
    let (level, message) = match book_damage(bytes) {
        Some(damage) => (Level::Error, format!("the lorebook {}", damage.words())),
        None => {
            let message = "it cannot be read as a lorebook, so it is stored as one piece";
            (Level::Warning, message.to_owned())
        }
    };
    Finding::new(Code::LorebookBroken, path, message).at(level).remedy(DAMAGED)
}

/// Returns the findings about UIDs that several entries have, in file order. A registry or an
/// extension that refers to such a UID may use the wrong entry.
fn repeated_uids(book: &Book<'_>) -> Vec<Finding> {
    let mut owners: HashMap<&str, Vec<&BookEntry<'_>>> = HashMap::new();
    let mut uids = Vec::new();
    for entry in &book.entries {
        let Some(uid) = &entry.uid else { continue };
        let same = owners.entry(uid).or_default();
        if same.is_empty() {
            uids.push(uid.as_str());
        }
        same.push(entry);
    }
    let mut findings = Vec::new();
    for (uid, same) in uids.iter().map(|uid| (*uid, &owners[uid])).filter(|(_, it)| it.len() > 1) {
        let named =
            |entry: &&BookEntry<'_>| format!("{:?} ({:?})", brief(&entry.key), brief(&entry.title));
        let names: Vec<_> = same.iter().take(5).map(named).collect();
        let message = format!(
            "UID {} is used by {} entries: {}{}",
            brief(uid),
            same.len(),
            names.join(", "),
            if same.len() > names.len() { ", …" } else { "" },
        );
        findings.push(Finding::new(Code::UidRepeated, book.path, message).usual_remedy());
    }
    few(findings)
}
