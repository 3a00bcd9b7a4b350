//! Lorebooks, characters' cards and other files with a history of their own: which of them are kept, and where a new one comes from.

use std::collections::{BTreeSet, HashMap};

use super::Result;
use super::changed_timelines;
use super::operation::Follows;
use super::take_snapshots::{Taken, TakenTimeline, Taking};
use crate::archive::entry_lives::{BookStates, Version};
use crate::archive::{Snapshot, State};
use crate::history::{self, History};
use crate::st::{self, Category, Key, TimelineName};
use crate::store::{self, Store, unless_lost};

impl Taking<'_> {
    /// Something that is no chat and was never seen.
    pub(super) fn take_new_other(&mut self, name: &TimelineName) -> Result<Taken> {
        let captured = self.capture(name)?;
        if let Some(refused) = self.refused(&captured) {
            return Ok(refused);
        }
        let state = State::of(&captured.files);
        let follows = self.origin_of_other(&state)?;
        self.store_state(&captured, &state, follows)
    }

    /// Whoever names a chat means its lorebook, too: that its own history does not end before the chat's.
    pub(super) fn take_books_of(&mut self, names: &[TimelineName]) -> Result<()> {
        let mut books = BTreeSet::new();
        for name in names.iter().filter(|name| name.is_chat()) {
            let path = st::lorebook_of(self.library, &self.scan.groups, name);
            books.extend(path.and_then(|path| TimelineName::of_file(&path)));
        }
        for name in books.into_iter().filter(|name| self.scan.others.contains(name)) {
            if names.contains(&name) {
                continue;
            }
            let head = changed_timelines::head(self.store, &name)?;
            let result = match head.0.is_some() {
                true => self.take_known(&name, head).transpose(),
                false => Some(self.take_new_other(&name)),
            };
            if let Some(result) = result.filter(|it| !matches!(it, Ok(Taken::Unchanged(..)))) {
                self.record(&name, result)?;
            }
        }
        Ok(())
    }

    /// What is at work in a lorebook is told with the chat that waits for it, and not again of the lorebook.
    pub(super) fn tell_refusals_once(&mut self) {
        let waits = |outcome: &&TakenTimeline| {
            outcome.timeline.is_chat() && matches!(outcome.result, Taken::Refused(_))
        };
        let chats = self.outcomes.iter().filter(waits);
        let books = chats
            .filter_map(|chat| st::lorebook_of(self.library, &self.scan.groups, &chat.timeline));
        let books: BTreeSet<_> = books.collect();
        self.outcomes.retain(|outcome| {
            !matches!(outcome.result, Taken::Refused(_))
                || outcome.timeline.is_chat()
                || !books.contains(&outcome.timeline.file())
        });
    }

    /// Returns what a new file that is not a chat follows. One that is byte for byte like another of its kind was renamed, if the other's file is gone, or copied. A lorebook
    /// can be renamed and edited in one save: most of its entries are then those of one whose file is gone.
    fn origin_of_other(&mut self, state: &State<'_>) -> Result<Follows> {
        if self.other_heads.is_none() {
            self.other_heads = Some(heads_of_others(self.store)?);
        }
        let heads = self.other_heads.iter().flatten();
        let alike: Vec<_> = alike(state, heads.clone()).cloned().collect();
        let is_here = |head: &Snapshot| self.scan.may_have(&head.timeline);
        let gone = match alike.iter().find(|head| !is_here(head)) {
            None if alike.is_empty() => {
                mostly_alike(self.store, state, heads.filter(|head| !is_here(head)))?
            }
            gone => gone.cloned(),
        };
        if let Some(gone) = gone {
            // Only one can have become it.
            if let Some(heads) = &mut self.other_heads {
                heads.retain(|head| head.timeline != gone.timeline);
            }
            return Ok(Follows::renamed(gone));
        }
        Ok(alike.first().map(|head| Follows::copy(head, state)).unwrap_or_default())
    }
}

/// Returns what a file that is not a chat and is written for the first time is a copy of. The lorebook of a fork can be that of an earlier moment.
pub(super) fn copied_from(store: &Store, state: &State<'_>) -> Result<Follows> {
    let heads = heads_of_others(store)?;
    let mut copied = alike(state, heads.iter()).next().cloned();
    if copied.is_none() && state.timeline().category() == Category::Lorebook {
        let history = History::load(store)?;
        copied = alike(state, history.iter()).max_by_key(|it| (it.sequence, it.id)).cloned();
    }
    Ok(copied.map(|from| Follows::copy(&from, state)).unwrap_or_default())
}

fn heads_of_others(store: &Store) -> Result<Vec<Snapshot>> {
    let mut heads = history::heads(store)?;
    heads.retain(|head| !head.timeline.is_chat());
    Ok(heads)
}

/// Returns the lorebook with which a new one shares the most entries, if these are at least half of either. Entries agree if UID and content do.
fn mostly_alike<'h>(
    store: &Store,
    state: &State<'_>,
    heads: impl Iterator<Item = &'h Snapshot>,
) -> Result<Option<Snapshot>> {
    if state.timeline().category() != Category::Lorebook {
        return Ok(None);
    }
    let mut entries = HashMap::new();
    for (key, entry) in st::entries(&state.files.main.bytes) {
        entries.insert(key, store::hash(store::Kind::Blob, entry.as_bytes())?);
    }
    let mut states = BookStates::new(store.reader());
    let mut best: Option<(usize, &Snapshot)> = None;
    for head in heads.filter(|head| head.timeline.category() == Category::Lorebook) {
        let Some(before) = unless_lost(states.of(head.tree))?.flatten() else { continue };
        let before = before.entries();
        let agrees = |(key, version): &&(Key, Version)| matches!(version, Version::Object(id) if entries.get(key) == Some(id));
        let agreeing = before.iter().filter(agrees).count();
        let is_most = agreeing > 0 && agreeing * 2 >= before.len().max(entries.len());
        if is_most && best.is_none_or(|(most, _)| agreeing > most) {
            best = Some((agreeing, head));
        }
    }
    Ok(best.map(|(_, head)| head.clone()))
}

/// Those that hold the same and are of the same kind.
fn alike<'h>(
    state: &State<'_>,
    heads: impl Iterator<Item = &'h Snapshot>,
) -> impl Iterator<Item = &'h Snapshot> {
    let category = state.timeline().category();
    let can_be = matches!(category, Category::Lorebook | Category::Card | Category::Persona);
    heads.filter(move |head| {
        can_be
            && head.timeline.category() == category
            && state.manifest.content_at(&head.timeline.file()) == head.content
    })
}
