//! Explains why an operation cannot be undone, and offers to restore the earlier snapshots as new
//! chats.

use std::collections::BTreeSet;

use super::Undo;
use super::put_back::PutBack;
use crate::archive::message_identity::Identity;
use crate::archive::{Role, SnapshotId, branch, read_manifest};
use crate::engine::files;
use crate::engine::free_names::free_timeline;
use crate::engine::operation::bytes_of;
use crate::engine::operation::log::LogEntry;
use crate::engine::written_since::{ChangeSince, EarlierState, WrittenSince};
use crate::history::pairs::pair_id;
use crate::history::{self, name_lookup};
use crate::st::{Category, Chat, LibraryPath, TimelineName};
use crate::store::{FileChange, RefChange, StoredAs, unless_lost};
use crate::verbs::{Result, UndoError};

/// Maximum number of offers. A restore of all timelines may have replaced hundreds of chats.
const MOST_OFFERS: usize = 3;

impl Undo<'_> {
    pub(super) fn refuse(&self, PutBack { moved, saved, .. }: &PutBack) -> Result<UndoError> {
        let operation = &self.chosen.operation;
        let mut changes = Vec::new();
        let mut timelines = BTreeSet::new();
        for change in saved.iter().rev() {
            let path = LibraryPath::parse(&change.path)?;
            let timeline = TimelineName::of_file(&path);
            let subject = timeline.as_ref().map_or(path.to_string(), TimelineName::to_string);
            changes.push(ChangeSince { subject, what: self.written(change, &path)? });
            timelines.extend(timeline);
        }
        let number = operation.number;
        for change in moved {
            let snapshot = change.after.or(change.before).map(SnapshotId);
            let timeline = match snapshot.filter(|_| change.name.is_branch()) {
                Some(id) => name_lookup::find(self.store, id)?.map(|found| found.timeline),
                None => None,
            };
            let what = match &timeline {
                // A change of this timeline's file was already reported.
                Some(timeline) if timelines.contains(timeline) => continue,
                Some(_) => WrittenSince::Snapshots(self.later(number, change)),
                None => WrittenSince::Tag,
            };
            let tag = || change.name.as_str().trim_start_matches("refs/tags/").to_owned();
            let subject = timeline.as_ref().map_or_else(tag, TimelineName::to_string);
            changes.push(ChangeSince { subject, what });
            timelines.extend(timeline);
        }
        let offers = self.offers(&timelines)?;
        // Group files are ignored: a new chat is added to the list in its group's file, which
        // existed before.
        let files = operation.effect.files.iter();
        let files = files.filter(|change| !change.path.starts_with("groups/"));
        let mut files = files.peekable();
        let is_new = files.peek().is_some() && files.all(|change| change.before.is_none());
        Ok(UndoError::ChangedSince { number, changes, offers, is_new })
    }

    fn later(&self, number: u64, change: &RefChange) -> usize {
        let later = self.entries.iter().take_while(|entry| entry.operation.number > number);
        let moves = |entry: &&LogEntry| {
            entry.operation.effect.refs.iter().any(|other| other.name == change.name)
                && entry.undone_by.is_none()
        };
        later.filter(moves).count().max(1)
    }

    fn written(&self, change: &FileChange, path: &LibraryPath) -> Result<WrittenSince> {
        let Some(now) = files::read(&self.root, path)? else { return Ok(WrittenSince::Deleted) };
        let chat = TimelineName::of_file(path).filter(TimelineName::is_chat);
        let (Some(chat), Some(after)) = (chat, &change.after) else {
            return Ok(WrittenSince::Saved);
        };
        let Some(then) = unless_lost(bytes_of(&self.store.reader(), after, path))? else {
            return Ok(WrittenSince::Saved);
        };
        Ok(compare(&Chat::split(&then, chat.category()), &Chat::split(&now, chat.category())))
    }

    /// Returns the snapshots before the operation, of those chats of the operation that changed
    /// later. If none of these chats changed, but for example a lorebook, returns the snapshots of
    /// all chats of the operation.
    fn offers(&self, changed: &BTreeSet<TimelineName>) -> Result<Vec<EarlierState>> {
        let operation = &self.chosen.operation;
        let mut before = Vec::new();
        for change in &operation.effect.files {
            let timeline = TimelineName::of_file(&LibraryPath::parse(&change.path)?);
            // Groups and settings cannot be restored as a copy.
            let can_be_copied = |name: &TimelineName| {
                !matches!(name.category(), Category::Group | Category::Settings)
            };
            if let (Some(timeline), Some(StoredAs::Commit(id))) =
                (timeline.filter(can_be_copied), change.before)
            {
                before.push((timeline, SnapshotId(id)));
            }
        }
        let is_any_chat = before.iter().any(|(timeline, _)| timeline.is_chat());
        before.retain(|(timeline, _)| timeline.is_chat() == is_any_chat);
        if before.iter().any(|(timeline, _)| changed.contains(timeline)) {
            before.retain(|(timeline, _)| changed.contains(timeline));
        }
        let library = self.workspace.library().ok();
        let mut taken: BTreeSet<_> = history::heads(self.store)?
            .into_iter()
            .map(|head| head.timeline.as_str().to_lowercase())
            .collect();
        if let Some(library) = &library {
            taken.extend(library.scan()?.chats.iter().map(|chat| chat.as_str().to_lowercase()));
        }
        let names = self.workspace.names(self.store, library.as_ref());
        let day = operation.time.get(..10).unwrap_or_default();
        let mut offers = Vec::new();
        for (timeline, id) in before.into_iter().take(MOST_OFFERS) {
            let Some(book) = self.book_before(id)? else { continue };
            let moment = match book.filter(|book| *book != id) {
                Some(book) => pair_id(id, Some(book)),
                None => id.to_string(),
            };
            // Use the timeline's current name: the new chat is restored into the folder of that
            // name.
            let timeline = names.moment(&moment).map_or(timeline, |moment| moment.timeline);
            let name = free_timeline(&timeline, "before", day, library.as_ref(), &mut taken)?;
            offers.push(EarlierState { timeline, moment, name: name.chat().to_owned() });
        }
        Ok(offers)
    }

    /// Returns the snapshot with the lorebook that the chat in snapshot `id` had before the
    /// operation. The inner `None` means that snapshot `id` contains that lorebook itself, or that
    /// the chat has no lorebook. The outer `None` means that snapshot `id` cannot be read.
    fn book_before(&self, id: SnapshotId) -> Result<Option<Option<SnapshotId>>> {
        let operation = &self.chosen.operation;
        let Some(snapshot) = name_lookup::find(self.store, id)? else { return Ok(None) };
        let reader = self.store.reader();
        let Some(manifest) = unless_lost(read_manifest(&reader, snapshot.tree))? else {
            return Ok(None);
        };
        let book = manifest.file(Role::Lorebook).filter(|_| snapshot.timeline.is_chat());
        let Some(path) = book.and_then(|book| LibraryPath::parse(&book.path).ok()) else {
            return Ok(Some(None));
        };
        let replaced = operation.effect.files.iter().find(|change| change.path == path.as_str());
        if let Some(StoredAs::Commit(book)) = replaced.and_then(|change| change.before) {
            return Ok(Some(Some(SnapshotId(book))));
        }
        let Some(name) = TimelineName::of_file(&path).map(|name| branch(&name)) else {
            return Ok(Some(None));
        };
        // Find the head of the lorebook's timeline before the operation.
        let until =
            self.entries.iter().skip_while(|entry| entry.operation.number > operation.number);
        let moved = until.filter(|entry| entry.undone_by.is_none()).find_map(|entry| {
            let change = entry.operation.effect.refs.iter().find(|change| change.name == name)?;
            let is_own = entry.operation.number == operation.number;
            Some(if is_own { change.before } else { change.after })
        });
        let Some(book) = moved.flatten() else { return Ok(Some(None)) };
        let book = name_lookup::find(self.store, SnapshotId(book))?;
        Ok(Some(book.filter(|book| book.sequence > snapshot.sequence).map(|book| book.id)))
    }
}

fn compare(then: &Chat<'_>, now: &Chat<'_>) -> WrittenSince {
    let identities = |chat: &Chat<'_>| {
        let lines = history::origin::without_blank_end(&chat.messages);
        lines.iter().map(|line| Identity::of(line)).collect::<Vec<_>>()
    };
    let (then, now) = (identities(then), identities(now));
    let first = then.iter().zip(&now).take_while(|(then, now)| then == now).count();
    let (then, now) = (&then[first..], &now[first..]);
    let last =
        then.iter().rev().zip(now.iter().rev()).take_while(|(then, now)| then == now).count();
    let (then, now) = (then.len() - last, now.len() - last);
    match then.min(now) {
        0 if then == now => WrittenSince::Saved,
        edited => WrittenSince::Messages { added: now - edited, edited, removed: then - edited },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_edited_and_removed_messages_are_counted() {
        let chat = |words: &[&str]| {
            let lines = words.iter().map(|word| format!("\n{{\"mes\":\"{word}\"}}"));
            format!("{{}}{}", lines.collect::<String>())
        };
        let change_words = |then: &[&str], now: &[&str]| {
            let (then, now) = (chat(then), chat(now));
            let what = compare(
                &Chat::split(then.as_bytes(), Category::Chat),
                &Chat::split(now.as_bytes(), Category::Chat),
            );
            ChangeSince { subject: "X".into(), what }.to_string()
        };
        assert_eq!(change_words(&["a"], &["a", "b"]), "1 message was added to X");
        assert_eq!(change_words(&["a"], &["a", "b", "c"]), "2 messages were added to X");
        assert_eq!(change_words(&["a", "b", "c"], &["a", "c"]), "1 message was removed from X");
        assert_eq!(
            change_words(&["a", "b", "c"], &["a", "d", "c", "e"]),
            "1 message was added to X, 2 messages were edited in X"
        );
        assert_eq!(change_words(&["a"], &["a"]), "X was changed");
    }
}
