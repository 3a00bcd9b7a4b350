//! The lorebook as ST-Auto-Recap noted it on the last message that ends a scene.

use super::stored::{EntryOrigin, rebuild_book};
use super::written::{scene, scene_breaks};
use crate::rules::{Code, Finding};
use crate::st::{self, BoundBook, Chat, TimelineName};

pub struct NotedBook {
    /// The message that ends the scene.
    pub message: usize,
    pub scene: Option<String>,
    /// When it was noted, in milliseconds since 1970.
    pub milliseconds: Option<i64>,
    /// None if its name is unknown.
    pub book: Option<BoundBook>,
    pub entries: Vec<EntryOrigin>,
    pub findings: Vec<Finding>,
}

/// Whether a message ends a scene and has a note of the lorebook.
pub fn has_note(line: &[u8]) -> bool {
    scene(line).is_some_and(|scene| scene.is_break() && scene.has_note())
}

/// Rebuilds the lorebook that `bound` names from the last note in a chat, completed from `books`,
/// nearest first; `None` if no message has a note.
pub fn noted_book(
    timeline: &TimelineName,
    chat: &Chat<'_>,
    bound: Option<&str>,
    books: &[&[u8]],
) -> Option<NotedBook> {
    let breaks = scene_breaks(chat);
    let (message, scene) = *breaks.iter().rfind(|(_, scene)| scene.has_note())?;
    let (milliseconds, lorebook) = (scene.timestamp(), scene.lorebook());
    let (mut findings, mut entries) = (Vec::new(), Vec::new());
    let mut report =
        |code, message: String| findings.push(Finding::new(code, timeline.as_str(), message));
    if let Some((later, _)) = breaks.last().filter(|(later, _)| *later > message) {
        report(
            Code::NoteMissing,
            format!(
                "the scene that ends at message {later} has no note of the lorebook; the note at message {message} was taken, so entries made between them are missing"
            ),
        );
    }
    let name = bound.map(str::to_owned).or(lorebook);
    let place = name.and_then(|name| Some((st::lorebook_path(&name)?, name)));
    let book = place.map(|(path, name)| {
        // The queue's key is a time in milliseconds; the scene's, or else a fixed one, so that the
        // same notes give the same bytes.
        let queue = milliseconds.filter(|ms| *ms > 0).unwrap_or(1_700_000_000_000);
        let rebuilt = rebuild_book(&scene.all_entries(), books, queue);
        if rebuilt.left_out > 0 {
            report(
                Code::NoteUnreadable,
                format!(
                    "{} of the noted lorebook entries cannot be read as entries and were left out",
                    rebuilt.left_out
                ),
            );
        }
        if let Some(message) = gaps(&rebuilt.entries) {
            report(Code::UidGaps, message);
        }
        entries = rebuilt.entries;
        BoundBook::new(name, path, rebuilt.bytes)
    });
    Some(NotedBook { message, scene: scene.name(), milliseconds, book, entries, findings })
}

/// Gaps are not damage: entries were deleted. They are reported because other tools would have
/// renumbered the others.
fn gaps(entries: &[EntryOrigin]) -> Option<String> {
    let uids: Vec<i64> = entries.iter().filter_map(|entry| entry.uid.parse().ok()).collect();
    let last = *uids.iter().max()?;
    let missing = last.saturating_add(1).saturating_sub(uids.len() as i64);
    (missing > 0).then(|| {
        format!("UIDs go up to {last} with {missing} not in use; they were kept as they are")
    })
}
