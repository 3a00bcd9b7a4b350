//! Reports the history of one entry, and copies of the entry in related lorebooks.

use std::collections::HashSet;
use std::sync::Arc;

use super::blame;
use super::entries::{EntrySummary, holders_of, text_of, uid_name};
use super::find_entry::LoreQuery;
use super::report::{
    CopyInOtherBook, EntryChange, EntryChanges, EntryStory, StateBefore, UidHolder,
};
use super::scenes::{Interval, Scenes};
use crate::archive::entry_lives::{EntryLife, LifeChange};
use crate::history::book_history::{BookHistory, names_of};
use crate::st::{Category, Key, TimelineName};
use crate::verbs::Result;

pub(super) fn entry(
    asked: &LoreQuery<'_>,
    book: TimelineName,
    index: usize,
    book_history: &BookHistory<'_>,
) -> Result<EntryStory> {
    let reader = asked.store.reader();
    let life = &book_history.lives[index];
    let mut changes = Vec::new();
    let mut before: Option<(Key, Arc<str>)> = None;
    let mut scenes = Scenes::new(asked.store);
    let names = names_of(asked.history, &book);
    let (mut was_gone, mut was_lost, mut formatting) = (false, false, 0);
    for change in &life.changes {
        let after = match &change.version {
            Some(version) => text_of(&reader, version)?.map(|text| (change.key.clone(), text)),
            None => None,
        };
        if change.is_rewritten && !asked.options.all {
            formatting += 1;
            before = after;
            continue;
        }
        let Some(snapshot) = book_history.states.get(change.state) else { continue };
        let story = book_history.story_at(change.state);
        let story_before = book_history.story_before(asked.history, change.state);
        let scene = match (story_before, story, &after) {
            (Some(story_before), Some(story), Some((key, text))) if !was_lost => {
                let old = before.as_ref().map(|(_, text)| text.as_ref());
                let interval =
                    Interval { before: story_before, after: story, old, new: (key, text) };
                let bound =
                    [story_before, story].into_iter().filter_map(|it| it.lorebook.as_deref());
                let books: Vec<_> = names.iter().map(TimelineName::chat).chain(bound).collect();
                scenes.of_change(&interval, &books)?
            }
            _ => None,
        };
        let previous = change.state.checked_sub(1).and_then(|state| book_history.states.get(state));
        let (is_gone, is_lost) =
            (change.version.is_none(), change.version.is_some() && after.is_none());
        changes.push(EntryChange {
            snapshot: (*snapshot).clone(),
            story: story.cloned(),
            previous: previous.map(|previous| StateBefore {
                snapshot: (*previous).clone(),
                story: story_before.cloned(),
            }),
            scene,
            is_again: was_gone,
            is_lost: was_lost || is_lost,
            before: before.take(),
            after: after.clone(),
        });
        (was_gone, was_lost, before) = (is_gone, is_lost, after);
    }
    let sentences = if asked.options.blame { blame::sentences(&changes) } else { Vec::new() };
    changes.reverse();
    let last = changes.iter().find_map(|change| change.after.as_ref().or(change.before.as_ref()));
    let (uid, title) = match last {
        Some((key, text)) => (key.to_string_lossy(), EntrySummary::of(text).title),
        None => Default::default(),
    };
    let total = changes.len();
    changes.truncate(asked.options.limit.unwrap_or(usize::MAX));
    Ok(EntryStory {
        uid,
        title,
        is_there: life.now().is_some(),
        changes: EntryChanges { list: changes, total, formatting },
        same_uid: same_uid(asked, book_history, index)?,
        sentences,
        elsewhere: elsewhere(asked, &book, life, book_history)?,
        broken: book_history.broken.clone(),
        book,
    })
}

/// Returns the other entries that had the same UID as the last UID of this entry.
fn same_uid(
    asked: &LoreQuery<'_>,
    book_history: &BookHistory<'_>,
    index: usize,
) -> Result<Vec<UidHolder>> {
    let Some(last) = book_history.lives[index].changes.last() else { return Ok(Vec::new()) };
    let reader = asked.store.reader();
    let holders = holders_of(&book_history.lives, &last.key).into_iter().enumerate();
    let others = holders.filter(|(_, holder)| *holder != index).map(|(steps, holder)| {
        let title = EntrySummary::last(&reader, &book_history.lives[holder])?.title;
        Ok(UidHolder { name: uid_name(&last.key, steps), title })
    });
    others.collect()
}

/// Finds copies of the entry in lorebooks whose history shares snapshots with this lorebook. A copy
/// is recognised by a version that both entries had.
fn elsewhere(
    asked: &LoreQuery<'_>,
    book: &TimelineName,
    life: &EntryLife,
    book_history: &BookHistory<'_>,
) -> Result<Vec<CopyInOtherBook>> {
    let past: HashSet<_> = book_history.states.iter().map(|state| state.id).collect();
    let reader = asked.store.reader();
    let mut list = Vec::new();
    for (name, head) in asked.history.heads() {
        let is_book = name.category() == Category::Lorebook && name != book;
        if !is_book || !asked.history.ancestry(head).any(|snapshot| past.contains(&snapshot.id)) {
            continue;
        }
        let other = BookHistory::read(asked.store, asked.history, name)?;
        let had = |change: &LifeChange| {
            let same = |own: &LifeChange| own.version == change.version && own.key == change.key;
            change.version.is_some() && life.changes.iter().any(same)
        };
        let shared = other.lives.iter().find(|other| other.changes.iter().any(had));
        if let Some((key, version)) = shared.and_then(EntryLife::now)
            && let Some(text) = text_of(&reader, version)?
        {
            let is_same = life.now().is_some_and(|(_, own)| own == version);
            list.push(CopyInOtherBook {
                book: name.clone(),
                uid: key.to_string_lossy(),
                text,
                is_same,
            });
        }
    }
    Ok(list)
}
