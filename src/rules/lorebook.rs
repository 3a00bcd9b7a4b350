//! The lorebook bound to a chat: whether it is there, whether it can be read, whose it is.

use std::collections::{HashMap, HashSet};

use super::damage::DAMAGED;
use super::finding::{brief, few};
use super::subject::Subject;
use super::{Code, Finding, Level};
use crate::st::auto_recap::{REGISTRY_PREFIX, attached_lorebook};
use crate::st::{Raw, TimelineName, book_damage, entries_and_repeats, main_chat, uid_text};

pub(super) struct Book<'a> {
    pub path: &'a str,
    /// Its entries that are objects, as JavaScript sees them, in the order of the file.
    pub entries: Vec<BookEntry<'a>>,
}

pub(super) struct BookEntry<'a> {
    pub key: String,
    pub uid: Option<String>,
    /// Its title; empty if it has none.
    pub title: String,
    pub content: Option<Raw<'a>>,
}

impl Book<'_> {
    /// All that a registry may list: the UIDs and keys of entries that are no registries themselves.
    pub fn listable(&self) -> HashSet<&str> {
        let entries = self.entries.iter().filter(|entry| !entry.title.starts_with(REGISTRY_PREFIX));
        entries
            .flat_map(|entry| [Some(entry.key.as_str()), entry.uid.as_deref()])
            .flatten()
            .collect()
    }
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

/// Whose lorebook it is, by its name.
pub(super) fn names(parts: &Subject<'_>) -> Option<Finding> {
    let metadata = parts.metadata?;
    let bound = parts.lorebook.as_ref().map(|book| book.name);
    let is_fork = || main_chat(metadata).is_some();
    if let Some(attached) = attached_lorebook(metadata)
        && Some(attached.as_str()) != bound
    {
        let bound = match bound {
            Some(bound) => format!("is {:?}", brief(bound)),
            None => "is none".into(),
        };
        let message = format!(
            "ST-Auto-Recap has noted {:?} as its lorebook, but the one bound to it {bound}",
            brief(&attached)
        );
        // Of a fork that was given a lorebook of its own only `world_info` is set.
        let level = if is_fork() { Level::Info } else { Level::Warning };
        return Some(
            Finding::new(Code::LorebookAttachedDiffers, parts.chat_path, message).at(level)
                .remedy("bind the lorebook that holds this chat's entries, and let the extension refresh its registry"),
        );
    }
    let bound = bound?;
    let template = parts.book_template;
    if template.is_book_of(bound, parts.timeline.chat()) || is_fork() {
        return None;
    }
    // A book that the extension neither noted nor made is a writer's own, who calls it as he likes.
    if attached_lorebook(metadata).is_none() && !template.is_made(bound) {
        return None;
    }
    let message = format!(
        "its lorebook {:?} is not called as ST-Auto-Recap calls that of this chat: {:?}",
        brief(bound),
        brief(template.as_str())
    );
    Some(
        Finding::new(Code::LorebookNameUnexpected, parts.chat_path, message).remedy(
            "nothing, if the chat was renamed or you chose the lorebook; else make sure that no other chat writes to it",
        ),
    )
}
