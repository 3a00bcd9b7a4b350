//! Rebuilds the lorebook from the last scene record in a chat.

use super::stored::{EntryOrigin, rebuild_book};
use super::written::{scene, scene_breaks};
use crate::rules::{Code, Finding};
use crate::st::{self, BoundBook, Chat, TimelineName};

pub struct NotedBook {
    /// Number of the message that ends the scene.
    pub message: usize,
    pub scene: Option<String>,
    /// Time of the scene record, in milliseconds since 1970.
    pub milliseconds: Option<i64>,
    /// `None` if the name of the lorebook is unknown.
    pub book: Option<BoundBook>,
    pub entries: Vec<EntryOrigin>,
    pub findings: Vec<Finding>,
}

/// Returns whether a message ends a scene and has a scene record.
pub fn has_note(line: &[u8]) -> bool {
    scene(line).is_some_and(|scene| scene.is_break() && scene.has_note())
}

/// Rebuilds the lorebook from the last scene record in a chat. `bound` is the lorebook's name;
/// without it, the name in the record is used. Missing fields are filled from `books`, nearest
/// first. Returns `None` if no message has a scene record.
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
                "the scene that ends at message {later} does not record the lorebook; the record at message {message} was used, so entries created between them are missing"
            ),
        );
    }
    let name = bound.map(str::to_owned).or(lorebook);
    let place = name.and_then(|name| Some((st::lorebook_path(&name)?, name)));
    let book = place.map(|(path, name)| {
        // The key of the queue is a time in milliseconds: the time of the scene record or, if that
        // is missing, a constant, so that equal records result in equal bytes.
        let queue = milliseconds.filter(|ms| *ms > 0).unwrap_or(1_700_000_000_000);
        let rebuilt = rebuild_book(&scene.all_entries(), books, queue);
        if rebuilt.left_out > 0 {
            report(
                Code::NoteUnreadable,
                format!(
                    "{} of the recorded lorebook entries cannot be read and were left out",
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

/// Describes gaps between UIDs. Gaps are not damage, because deleted entries leave gaps. They are
/// reported because other tools would have renumbered the entries.
fn gaps(entries: &[EntryOrigin]) -> Option<String> {
    let uids: Vec<i64> = entries.iter().filter_map(|entry| entry.uid.parse().ok()).collect();
    let last = *uids.iter().max()?;
    let missing = last.saturating_add(1).saturating_sub(uids.len() as i64);
    (missing > 0).then(|| {
        format!("UIDs go up to {last}, and {missing} of them are not used; no UID was changed")
    })
}
