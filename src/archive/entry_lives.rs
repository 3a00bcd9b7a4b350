//! Lives of lorebook entries over many states of one book. A life records when an entry was added,
//! each change of its value, and when the entry was removed.
//!
//! `entry_identity` matches the entries of one state with those of the next. An entry that was
//! removed and added again continues its life if title and content are equal, or if the key is
//! equal and the title is equal or the content similar.

use std::collections::HashMap;
use std::sync::Arc;

use super::book_states::REMEMBERED;
pub use super::book_states::{BookState, BookStates, Step, Steps, Version};
use super::diff::value::same;
use super::entry_identity::{Reappearance, pairs};
use crate::st::{Key, Raw};
use crate::store::{self, Loss, Reader};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryLife {
    pub changes: Vec<LifeChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeChange {
    pub state: usize,
    pub key: Key,
    /// Value of the entry from this state on; `None` if the entry was removed.
    pub version: Option<Version>,
    pub is_rewritten: bool,
}

impl EntryLife {
    /// Returns the entry's key and value in a state, or `None` if the entry did not exist in that
    /// state.
    pub fn at(&self, state: usize) -> Option<(&Key, &Version)> {
        let last = self.changes.iter().rfind(|change| change.state <= state)?;
        Some((&last.key, last.version.as_ref()?))
    }

    pub fn last_change(&self) -> Option<&LifeChange> {
        self.changes.iter().rfind(|change| !change.is_rewritten)
    }

    /// Returns the last state in which the entry had this key: `usize::MAX` if the entry still has
    /// the key, `None` if the entry never had the key.
    pub fn last_state_under(&self, key: &Key) -> Option<usize> {
        let place = self
            .changes
            .iter()
            .rposition(|change| change.key == *key && change.version.is_some())?;
        Some(self.changes.get(place + 1).map_or(usize::MAX, |next| next.state.saturating_sub(1)))
    }

    /// Returns the entry's key and value in the last state, or `None` if the entry was removed.
    pub fn now(&self) -> Option<(&Key, &Version)> {
        self.at(usize::MAX)
    }
}

pub struct Lives {
    reader: Reader,
    pub lives: Vec<EntryLife>,
    alive: HashMap<Key, (usize, Option<Arc<str>>)>,
    gone: Vec<DeletedEntry>,
    /// Errors of entries that could not be read. An unreadable value counts as a new version of the
    /// entry with the same key.
    pub broken: Vec<store::Error>,
}

struct DeletedEntry {
    life: usize,
    key: Key,
    text: Arc<str>,
}

type ChangedEntry<'s> = (&'s Key, &'s Version, Option<Arc<str>>);

impl Lives {
    pub fn new(reader: Reader) -> Self {
        let (lives, alive, gone, broken) = Default::default();
        Self { reader, lives, alive, gone, broken }
    }

    pub fn next(&mut self, state: usize, old: &Arc<BookState>, new: &Step) -> store::Result<()> {
        let changes = new.changes_since(old);
        let [before, after] = changes.as_ref();
        let (before, after) = (self.read(before, new)?, self.read(after, new)?);
        let mut became: Vec<_> = paired(&before, &after);
        became.sort_unstable();
        // Remove all changed entries before adding any, because entries may have exchanged their
        // keys.
        let mut lives: Vec<Option<usize>> = Vec::new();
        let leave = |(key, ..): &ChangedEntry<'_>| self.alive.remove(*key).map(|(life, _)| life);
        lives.extend(before.iter().map(leave));
        let mut arrived = vec![false; after.len()];
        for (from, to) in became {
            arrived[to] = true;
            if let Some(life) = lives[from].take() {
                self.arrive(life, state, Some(&before[from]), &after[to]);
            }
        }
        for ((key, _, text), life) in before.iter().zip(lives) {
            let Some(life) = life else { continue };
            let (key, version) = ((*key).clone(), None);
            let gone =
                |text: &Arc<str>| DeletedEntry { life, key: key.clone(), text: text.clone() };
            self.gone.extend(text.as_ref().map(gone));
            let change = LifeChange { state, key, version, is_rewritten: false };
            self.lives[life].changes.push(change);
        }
        for come in after.iter().zip(arrived).filter(|(_, arrived)| !arrived).map(|(it, _)| it) {
            let life = self.find_earlier_life(come).unwrap_or_else(|| {
                self.lives.push(EntryLife::default());
                self.lives.len() - 1
            });
            self.arrive(life, state, None, come);
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        life: usize,
        state: usize,
        before: Option<&ChangedEntry<'_>>,
        after: &ChangedEntry<'_>,
    ) {
        let is_rewritten = before.is_some_and(|before| is_rewritten(before, after));
        let (key, version, text) = after;
        let key = (*key).clone();
        let text = text.clone().filter(|text| text.len() <= REMEMBERED);
        self.alive.insert(key.clone(), (life, text));
        let version = Some((*version).clone());
        self.lives[life].changes.push(LifeChange { state, key, version, is_rewritten });
    }

    /// Returns the life of the removed entry that this added entry continues: the best match, and
    /// among equal matches the entry that was removed last.
    fn find_earlier_life(&mut self, (key, _, text): &ChangedEntry<'_>) -> Option<usize> {
        let now = Raw::parse_str(text.as_ref()?)?;
        let again = |(at, gone): (usize, &DeletedEntry)| {
            Some((Reappearance::of((&gone.key, Raw::parse_str(&gone.text)?), (key, now))?, at))
        };
        let (_, at) = self.gone.iter().enumerate().filter_map(again).max()?;
        Some(self.gone.remove(at).life)
    }

    fn read<'s>(
        &mut self,
        list: &'s [(Key, Version)],
        step: &Step,
    ) -> store::Result<Vec<ChangedEntry<'s>>> {
        let mut read = Vec::with_capacity(list.len());
        for (key, version) in list {
            let known = self.alive.get(key).filter(|(life, _)| {
                let last = self.lives[*life].changes.last();
                last.is_some_and(|last| last.version.as_ref() == Some(version))
            });
            let known = known.and_then(|(_, text)| text.as_ref());
            let known = known.or_else(|| match version {
                Version::Object(id) => step.texts.get(id),
                Version::Text(_) => None,
            });
            if let Some(text) = known {
                read.push((key, version, Some(Arc::clone(text))));
                continue;
            }
            let text = match version.read(&self.reader) {
                Ok(text) => Some(text),
                Err(error) if error.is_loss() => {
                    self.broken.push(error);
                    None
                }
                Err(error) => return Err(error),
            };
            read.push((key, version, text));
        }
        Ok(read)
    }
}

/// Returns whether two values, each with its key, belong to the same entry, if the changes between
/// the two values are unknown.
pub fn is_one_entry(then: (&Key, &str), now: (&Key, &str)) -> bool {
    let (Some(old), Some(new)) = (Raw::parse_str(then.1), Raw::parse_str(now.1)) else {
        return false;
    };
    Reappearance::of((then.0, old), (now.0, new)).is_some()
}

fn is_rewritten(before: &ChangedEntry<'_>, after: &ChangedEntry<'_>) -> bool {
    let text = |side: &ChangedEntry<'_>| side.2.clone();
    let (Some(old), Some(new)) = (text(before), text(after)) else { return false };
    let values = Raw::parse_str(&old).zip(Raw::parse_str(&new));
    before.0 == after.0 && values.is_some_and(|(old, new)| same(old, new))
}

/// Returns key and JSON value of the entries at these positions; `null` for an unreadable entry.
fn entries_at<'t>(list: &'t [ChangedEntry<'_>], places: &[usize]) -> Vec<(Key, Raw<'t>)> {
    let entry = |place: &usize| {
        let (key, _, text) = &list[*place];
        let value = text.as_deref().and_then(Raw::parse_str).or_else(|| Raw::parse_str("null"));
        Some(((*key).clone(), value?))
    };
    places.iter().filter_map(entry).collect()
}

/// Pairs the changed entries of two states, and returns the positions of each pair. An unreadable
/// entry is paired by its key.
fn paired(before: &[ChangedEntry<'_>], after: &[ChangedEntry<'_>]) -> Vec<(usize, usize)> {
    let places: HashMap<&Key, usize> =
        after.iter().enumerate().map(|(n, (key, ..))| (*key, n)).collect();
    let is_lost = |changed: &ChangedEntry<'_>| changed.2.is_none();
    let mut found = Vec::new();
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut taken = vec![false; after.len()];
    for (from, changed) in before.iter().enumerate() {
        match places.get(changed.0) {
            Some(&to) if is_lost(changed) || is_lost(&after[to]) => {
                found.push((from, to));
                taken[to] = true;
            }
            _ => old.push(from),
        }
    }
    new.extend((0..after.len()).filter(|to| !taken[*to]));
    let moved = pairs(&entries_at(before, &old), &entries_at(after, &new));
    found.extend(moved.into_iter().map(|(from, to)| (old[from], new[to])));
    found
}
