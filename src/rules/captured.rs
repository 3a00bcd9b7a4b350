//! What is odd about a timeline's own files, as they were read or as they were stored. None of it keeps them from being stored: bytes are bytes.

use super::subject::{Bound, Subject};
use std::ops::Range;

use super::{Finding, chat, lorebook, queue, recap, registry, scenes};
use crate::archive::{Contents, Role};
use crate::st::{self, Captured, Chat, TimelineName};

/// All findings about `captured`, whose chat is `chat`. Of its messages only those in `looked_at` are looked at: a save changes few, and what was found before was
/// said before.
pub fn captured(captured: &Captured, chat: &Chat<'_>, looked_at: &[Range<usize>]) -> Vec<Finding> {
    let group = captured.group.as_ref().map(|group| group.bytes.as_slice());
    findings(&Subject {
        timeline: &captured.name,
        chat,
        messages: numbered(chat),
        chat_path: captured.chat.path.as_str(),
        metadata: st::metadata(chat, &captured.name, group),
        lorebook: captured.lorebook.as_ref().map(|book| Bound {
            name: &book.name,
            file: book.file.as_ref().map(|file| (file.path.as_str(), file.bytes.as_slice())),
        }),
        looked_at,
    })
}

/// The same about a snapshot that was rebuilt.
pub fn stored(
    timeline: &TimelineName,
    contents: &Contents,
    looked_at: &[Range<usize>],
) -> Vec<Finding> {
    let chat = contents.chat();
    let group = contents.bytes(Role::Group);
    let file = contents.files.iter().find(|file| file.role == Role::Lorebook);
    let name = contents.manifest.file(Role::Lorebook).and_then(|record| record.name.clone());
    let name = name.or_else(|| st::bound_lorebook(&chat, timeline, group));
    findings(&Subject {
        timeline,
        chat: &chat,
        messages: numbered(&chat),
        chat_path: timeline.file().as_str(),
        metadata: st::metadata(&chat, timeline, group),
        lorebook: name.as_deref().map(|name| Bound {
            name,
            file: file.map(|file| (file.path.as_str(), file.bytes.as_slice())),
        }),
        looked_at,
    })
}

/// Every message.
pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));

fn numbered<'a>(chat: &Chat<'a>) -> Vec<(usize, &'a [u8])> {
    let lines = chat.messages.iter().copied().enumerate();
    lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect()
}

fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    let mut findings = chat::findings(parts);
    findings.extend(scenes::findings(parts));
    findings.extend(recap::findings(parts));
    findings.extend(lorebook::names(parts));
    let (book, found) = lorebook::read(parts);
    findings.extend(found);
    if let Some(book) = &book {
        findings.extend(lorebook::findings(book));
        findings.extend(registry::findings(parts, book));
        findings.extend(queue::findings(parts, book));
    }
    findings
}
