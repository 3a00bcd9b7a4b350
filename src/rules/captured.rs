//! What is odd about a timeline's own files, as they were read or as they were stored. None of it keeps them from being stored: bytes are bytes.

use std::ops::Range;

use super::{Finding, chat, lorebook, queue, recap, registry, scenes};
use crate::archive::{Contents, Role};
use crate::st::{self, Captured, Chat, Raw, TimelineName};

/// All findings about `captured`, whose chat is `chat`. Of its messages only those in `fresh` are looked at: a save changes few, and what was found before was
/// said before.
pub fn captured(captured: &Captured, chat: &Chat<'_>, fresh: &[Range<usize>]) -> Vec<Finding> {
    let group = captured.group.as_ref().map(|group| group.bytes.as_slice());
    findings(&Parts {
        timeline: &captured.name,
        chat,
        messages: numbered(chat),
        chat_path: captured.chat.path.as_str(),
        metadata: st::metadata(chat, &captured.name, group),
        lorebook: captured.lorebook.as_ref().map(|book| Bound {
            name: &book.name,
            file: book.file.as_ref().map(|file| (file.path.as_str(), file.bytes.as_slice())),
        }),
        fresh,
    })
}

/// The same about a snapshot that was rebuilt.
pub fn stored(
    timeline: &TimelineName,
    contents: &Contents,
    fresh: &[Range<usize>],
) -> Vec<Finding> {
    let chat = contents.chat();
    let group = contents.bytes(Role::Group);
    let file = contents.files.iter().find(|file| file.role == Role::Lorebook);
    let name = contents.manifest.file(Role::Lorebook).and_then(|record| record.name.clone());
    let name = name.or_else(|| st::bound_lorebook(&chat, timeline, group));
    findings(&Parts {
        timeline,
        chat: &chat,
        messages: numbered(&chat),
        chat_path: timeline.file().as_str(),
        metadata: st::metadata(&chat, timeline, group),
        lorebook: name.as_deref().map(|name| Bound {
            name,
            file: file.map(|file| (file.path.as_str(), file.bytes.as_slice())),
        }),
        fresh,
    })
}

/// Every message.
pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));

/// What the rules look at.
pub(super) struct Parts<'a> {
    pub timeline: &'a TimelineName,
    pub chat: &'a Chat<'a>,
    /// Its messages as SillyTavern numbers them, without blank lines: place among the lines, and line.
    pub messages: Vec<(usize, &'a [u8])>,
    pub chat_path: &'a str,
    pub metadata: Option<Raw<'a>>,
    pub lorebook: Option<Bound<'a>>,
    /// The messages to look at.
    pub fresh: &'a [Range<usize>],
}

/// The lorebook that is bound to the chat.
pub(super) struct Bound<'a> {
    pub name: &'a str,
    /// Path and bytes; none if it is missing.
    pub file: Option<(&'a str, &'a [u8])>,
}

fn numbered<'a>(chat: &Chat<'a>) -> Vec<(usize, &'a [u8])> {
    let lines = chat.messages.iter().copied().enumerate();
    lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect()
}

impl<'a> Parts<'a> {
    /// The message of that number: its place among the lines, and the line.
    pub fn message(&self, number: i64) -> Option<(usize, &'a [u8])> {
        self.messages.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether the chat is too short to have that message.
    pub fn is_past_end(&self, number: i64) -> bool {
        usize::try_from(number).is_ok_and(|number| number >= self.messages.len())
    }

    /// Whether a line is to be looked at.
    pub fn is_fresh(&self, place: usize) -> bool {
        self.fresh.iter().any(|range| range.contains(&place))
    }
}

fn findings(parts: &Parts<'_>) -> Vec<Finding> {
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
