//! The history of a lorebook: its states, the changes of each entry, and the chat at each state.

use std::collections::HashSet;
use std::sync::Arc;

use super::{History, Result};
use crate::archive::Snapshot;
use crate::archive::entry_lives::{BookState, EntryLife, Lives, Steps};
use crate::st::{self, TimelineName};
use crate::store::{Loss, Sequence, Store};

const STATES_PER_BATCH: usize = 1024;

/// The history of a lorebook from its first known state until now.
pub struct BookHistory<'h> {
    /// The snapshots whose lorebook differs from that of the snapshot before, oldest first.
    pub states: Vec<&'h Snapshot>,
    /// Every entry that the lorebook ever had. The changes of an entry refer to `states` by index.
    pub lives: Vec<EntryLife>,
    /// Unreadable snapshots, each with the reason.
    pub broken: Vec<String>,
    /// Snapshots of chats that contain a lorebook with one of its names, or with a name of the
    /// lorebook from which it was copied; oldest first.
    chats: Vec<&'h Snapshot>,
    eras: Vec<NamedPeriod>,
    /// For each state, the index of its period in `eras`.
    era_of_state: Vec<usize>,
}

/// A period in which the lorebook had one name. A chat that was bound to this name during the
/// period was bound to this lorebook.
struct NamedPeriod {
    name: TimelineName,
    from: Sequence,
    until: Sequence,
    /// Whether the period began with a copy. The lorebook of the period before continues
    /// separately.
    is_copy: bool,
}

impl NamedPeriod {
    fn has(&self, chat: &Snapshot) -> bool {
        (self.from..=self.until).contains(&chat.sequence)
            && book_of(chat).as_ref() == Some(&self.name)
    }
}

/// Returns the name of the lorebook that a chat's snapshot contains.
pub fn book_of(snapshot: &Snapshot) -> Option<TimelineName> {
    let name = snapshot.lorebook.as_deref().filter(|_| snapshot.timeline.is_chat())?;
    st::lorebook_path(name).as_ref().and_then(TimelineName::of_file)
}

/// Returns the name of the lorebook to which a chat's snapshot was bound, even if the snapshot does
/// not contain the lorebook.
pub fn bound_to(snapshot: &Snapshot) -> Option<TimelineName> {
    let bound = snapshot.bound.as_deref().filter(|_| snapshot.timeline.is_chat());
    let bound = || st::lorebook_path(bound?).as_ref().and_then(TimelineName::of_file);
    book_of(snapshot).or_else(bound)
}

/// Returns the latest snapshot that contains a lorebook: of the lorebook itself, or else of a chat.
pub fn newest<'h>(history: &'h History, book: &TimelineName) -> Option<&'h Snapshot> {
    history.head(book).or_else(|| newest_chat(history, book))
}

pub fn newest_chat<'h>(history: &'h History, book: &TimelineName) -> Option<&'h Snapshot> {
    let has_it = |head: &&Snapshot| book_of(head).as_ref() == Some(book);
    let heads = history.heads().map(|(_, head)| head).filter(has_it);
    heads.max_by_key(|head| (head.sequence, head.id))
}

/// Returns the current name of a lorebook, followed by its names before renames. The names of the
/// lorebook from which it was copied are not included.
pub fn names_of(history: &History, book: &TimelineName) -> Vec<TimelineName> {
    let own = history.head(book).map(|head| history.own(head).0).unwrap_or_default();
    let mut names = vec![book.clone()];
    for name in own.iter().map(|snapshot| &snapshot.timeline) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the periods of a lorebook's names, oldest first, and the index of the period for each
/// snapshot in `own`.
fn eras_of(book: &TimelineName, own: &[&Snapshot]) -> (Vec<NamedPeriod>, Vec<usize>) {
    let mut eras: Vec<NamedPeriod> = Vec::new();
    let mut places = Vec::with_capacity(own.len());
    let mut before: Option<&Snapshot> = None;
    for snapshot in own {
        let (is_copy, sequence) = (snapshot.fork_at.is_some(), snapshot.sequence);
        let name = &snapshot.timeline;
        if is_copy || eras.last().is_none_or(|last| last.name != *name) {
            if let Some(last) = eras.last_mut() {
                last.until = sequence;
            }
            // A chat may have been stored with the lorebook's new name before the lorebook was
            // stored.
            let from = before.map_or(Sequence::FIRST, |before| before.sequence);
            eras.push(NamedPeriod { name: name.clone(), from, until: Sequence::LAST, is_copy });
        }
        places.push(eras.len() - 1);
        before = Some(snapshot);
    }
    if eras.is_empty() {
        let (name, from, until) = (book.clone(), Sequence::FIRST, Sequence::LAST);
        eras.push(NamedPeriod { name, from, until, is_copy: false });
    }
    (eras, places)
}

impl<'h> BookHistory<'h> {
    pub fn read(store: &Store, history: &'h History, book: &TimelineName) -> Result<Self> {
        let mut own: Vec<_> =
            history.head(book).map(|head| history.ancestry(head).collect()).unwrap_or_default();
        own.reverse();
        let (eras, places) = eras_of(book, &own);
        let names: HashSet<_> = eras.iter().map(|era| &era.name).collect();
        let has_it = |it: &&Snapshot| book_of(it).is_some_and(|name| names.contains(&name));
        let mut chats: Vec<_> = history.iter().filter(has_it).collect();
        chats.sort_by_key(|it| (it.sequence, it.id));
        // Until a lorebook has its own snapshots, its states are in the snapshots of the chats
        // bound to it.
        let first = own.first().map_or(Sequence::LAST, |first| first.sequence);
        let is_before =
            |it: &&&Snapshot| it.sequence < first && book_of(it).as_ref() == Some(&eras[0].name);
        let of_chats = chats.iter().filter(is_before).map(|chat| (*chat, 0));
        let sources: Vec<_> = of_chats.chain(own.into_iter().zip(places)).collect();
        let mut steps = Steps::new(store);
        let mut lives = Lives::new(store.reader());
        let (mut states, mut era_of_state) = (Vec::new(), Vec::new());
        let mut broken = Vec::new();
        let mut now = Arc::new(BookState::default());
        for some in sources.chunks(STATES_PER_BATCH) {
            let trees: Vec<_> = some.iter().map(|(snapshot, _)| snapshot.tree).collect();
            for ((snapshot, era), step) in some.iter().zip(steps.read(&trees)) {
                let step = match step {
                    Ok(Some(step)) => step,
                    Ok(None) => continue,
                    Err(error) if error.is_loss() => {
                        broken.push(format!("{}: {error}", snapshot.id));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if step.state.is_odd {
                    let why = "its lorebook is not valid JSON with entries";
                    broken.push(format!("{}: {why}", snapshot.id));
                    continue;
                }
                if states.is_empty() || (!Arc::ptr_eq(&now, &step.state) && *now != *step.state) {
                    lives.next(states.len(), &now, &step)?;
                    states.push(*snapshot);
                    era_of_state.push(*era);
                    now = step.state;
                }
            }
        }
        broken.extend(lives.broken.iter().map(ToString::to_string));
        Ok(Self { states, lives: lives.lives, broken, chats, eras, era_of_state })
    }

    /// Returns the snapshot of the chat at a state of the lorebook: the snapshot of the state if it
    /// is a chat's, else the latest earlier snapshot of a chat bound to this lorebook.
    pub fn story_at(&self, state: usize) -> Option<&'h Snapshot> {
        let snapshot = *self.states.get(state)?;
        if snapshot.timeline.is_chat() {
            return Some(snapshot);
        }
        // Chats bound to a former name count. Chats from before the lorebook was copied do not,
        // because they were bound to the original.
        let eras = &self.eras[..=*self.era_of_state.get(state)?];
        let first = eras.iter().rposition(|era| era.is_copy).unwrap_or(0);
        let until = |chat: &&Snapshot| chat.sequence <= snapshot.sequence;
        let chats = &self.chats[..self.chats.partition_point(until)];
        let has_it = |chat: &&&Snapshot| eras[first..].iter().any(|era| era.has(chat));
        chats.iter().rev().find(has_it).copied()
    }

    /// Returns the snapshot of the chat of [`Self::story_at`] at the previous state of the
    /// lorebook. `None` if there is no previous state, or the chat was not stored at that time.
    pub fn story_before(&self, history: &'h History, state: usize) -> Option<&'h Snapshot> {
        let before = *self.states.get(state.checked_sub(1)?)?;
        let story = self.story_at(state)?;
        let itself = history.ancestry(story).find(|snapshot| snapshot.id == before.id);
        let is_not_after = |snapshot: &&Snapshot| snapshot.sequence <= before.sequence;
        itself.or_else(|| history.ancestry(story).find(is_not_after))
    }

    /// Returns the index of the last state that is not later than `moment`, in seconds since 1970.
    pub fn state_at(&self, moment: i64) -> Option<usize> {
        self.states.iter().rposition(|snapshot| snapshot.time.seconds <= moment)
    }
}
