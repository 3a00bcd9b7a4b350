//! The history of one entry, and what other lorebooks that come from the same one say of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::asked::Asked;
use super::blame;
use super::faces::{Face, last_face, text_of};
use super::report::{Elsewhere, EntryChange, EntryStory, Previous, UidHolder};
use super::scenes::{Interval, Scenes};
use super::uid_holders::{holders_of, uid_name};
use crate::archive::entry_lives::{Life, LifeChange};
use crate::history::book_history::{BookHistory, names_of};
use crate::st::{Category, Key, TimelineName};
use crate::verbs::Result;

pub(super) fn entry(
    asked: &Asked<'_>,
    book: TimelineName,
    life: usize,
    told: &BookHistory<'_>,
) -> Result<EntryStory> {
    let reader = asked.store.reader();
    let place = life;
    let life = &told.lives[place];
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
        let Some(snapshot) = told.states.get(change.state) else { continue };
        let story = told.story_at(change.state);
        let story_before = told.story_before(asked.history, change.state);
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
        let previous = change.state.checked_sub(1).and_then(|state| told.states.get(state));
        changes.push(EntryChange {
            snapshot: (*snapshot).clone(),
            story: story.cloned(),
            previous: previous.map(|previous| Previous {
                snapshot: (*previous).clone(),
                story: story_before.cloned(),
            }),
            scene,
            is_again: was_gone,
            is_lost: was_lost || change.version.is_some() && after.is_none(),
            before: before.take(),
            after: after.clone(),
        });
        was_gone = change.version.is_none();
        was_lost = !was_gone && after.is_none();
        before = after;
    }
    let sentences = if asked.options.blame { blame::sentences(&changes) } else { Vec::new() };
    changes.reverse();
    let last = changes.iter().find_map(|change| change.after.as_ref().or(change.before.as_ref()));
    let (uid, title) = match last {
        Some((key, text)) => (key.to_string_lossy(), Face::of(text).title),
        None => Default::default(),
    };
    let elsewhere = elsewhere(asked, &book, life, told)?;
    let same_uid = same_uid(asked, told, place)?;
    let total = changes.len();
    changes.truncate(asked.options.limit.unwrap_or(usize::MAX));
    let (is_there, broken) = (life.now().is_some(), told.broken.clone());
    Ok(EntryStory {
        book,
        uid,
        title,
        is_there,
        changes,
        total,
        formatting,
        same_uid,
        sentences,
        elsewhere,
        broken,
    })
}

/// Returns the other entries that had the last UID of an entry.
fn same_uid(asked: &Asked<'_>, told: &BookHistory<'_>, life: usize) -> Result<Vec<UidHolder>> {
    let Some(last) = told.lives[life].changes.last() else { return Ok(Vec::new()) };
    let reader = asked.store.reader();
    let mut list = Vec::new();
    for (steps, holder) in holders_of(&told.lives, &last.key).into_iter().enumerate() {
        if holder != life {
            let title = last_face(&reader, &told.lives[holder])?.title;
            list.push(UidHolder { name: uid_name(&last.key, steps), title });
        }
    }
    Ok(list)
}

/// The same entry in other lorebooks that come from the same one: by its key where it is alike, else by title and content as they ever were.
fn elsewhere(
    asked: &Asked<'_>,
    book: &TimelineName,
    life: &Life,
    told: &BookHistory<'_>,
) -> Result<Vec<Elsewhere>> {
    let past: HashSet<_> = told.states.iter().map(|state| state.id).collect();
    let reader = asked.store.reader();
    let mut list = Vec::new();
    for (name, head) in asked.history.heads() {
        let is_book = name.category() == Category::Lorebook && name != book;
        if !is_book || !asked.history.ancestry(head).any(|snapshot| past.contains(&snapshot.id)) {
            continue;
        }
        let other = BookHistory::read(asked.store, asked.history, name)?;
        // They have the beginning in common: what the entry was there tells which one it is here.
        let shared = |other: &&Life| {
            other.changes.iter().any(|change| {
                let same = |own: &LifeChange| {
                    own.version.is_some() && own.version == change.version && own.key == change.key
                };
                life.changes.iter().any(same)
            })
        };
        let Some((key, version)) = other.lives.iter().find(shared).and_then(Life::now) else {
            continue;
        };
        let Some(text) = text_of(&reader, version)? else { continue };
        let is_same = life.now().is_some_and(|(_, own)| own == version);
        list.push(Elsewhere { book: name.clone(), uid: key.to_string_lossy(), text, is_same });
    }
    Ok(list)
}
