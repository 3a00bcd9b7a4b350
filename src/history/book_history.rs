//! The history of a lorebook: its states, oldest first, what became of each entry, and where the story was at the time.

use std::collections::HashSet;
use std::sync::Arc;

use super::{History, Result};
use crate::archive::Snapshot;
use crate::archive::entry_lives::{BookState, Life, Lives, Steps};
use crate::st::{self, Category, TimelineName};
use crate::store::{Loss, Store};

/// So many states are in memory at a time.
const AT_ONCE: usize = 1024;

/// A lorebook from its first known state to now.
pub struct BookHistory<'h> {
    /// The snapshots with another state than the one before, oldest first.
    pub states: Vec<&'h Snapshot>,
    /// Every entry that it ever had. Their changes name states by their place.
    pub lives: Vec<Life>,
    /// What could not be read, in words; the rest is told.
    pub broken: Vec<String>,
    /// The snapshots of chats that had it, oldest first.
    chats: Vec<&'h Snapshot>,
}

/// The lorebooks that have snapshots, by name: those with a history of their own, and those that only chats have.
pub fn books(history: &History) -> Vec<TimelineName> {
    let own = history.heads().map(|(name, _)| name.clone());
    let own = own.filter(|name| name.category() == Category::Lorebook);
    let of_chats = history.heads().filter_map(|(_, head)| book_of(head));
    let mut names: Vec<_> = own.chain(of_chats).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The lorebook that a chat's snapshot has.
pub fn book_of(snapshot: &Snapshot) -> Option<TimelineName> {
    let name = snapshot.lorebook.as_deref().filter(|_| snapshot.timeline.is_chat())?;
    st::lorebook_path(name).as_ref().and_then(TimelineName::of_file)
}

/// The newest snapshot that has a lorebook: its own, or a chat's.
pub fn newest<'h>(history: &'h History, book: &TimelineName) -> Option<&'h Snapshot> {
    history.head(book).or_else(|| newest_chat(history, book))
}

/// The newest snapshot of a chat that has it.
pub fn newest_chat<'h>(history: &'h History, book: &TimelineName) -> Option<&'h Snapshot> {
    let has_it = |head: &&Snapshot| book_of(head).as_ref() == Some(book);
    let heads = history.heads().map(|(_, head)| head).filter(has_it);
    heads.max_by_key(|head| (head.time.seconds, head.id))
}

/// The snapshots that hold states of a book, oldest first: its own, and from before it had any those of the chats that were bound to it.
fn snapshots_of<'h>(
    history: &'h History,
    book: &TimelineName,
) -> (Vec<&'h Snapshot>, Vec<&'h Snapshot>) {
    let mut own: Vec<_> =
        history.head(book).map(|head| history.ancestry(head).collect()).unwrap_or_default();
    own.reverse();
    // What it was called, and what it is a copy of.
    let mut names: HashSet<_> = own.iter().map(|snapshot| snapshot.timeline.clone()).collect();
    names.insert(book.clone());
    let has_it = |snapshot: &&Snapshot| book_of(snapshot).is_some_and(|name| names.contains(&name));
    let mut chats: Vec<_> = history.iter().filter(has_it).collect();
    // In one second, what follows comes after what it follows.
    let before_it = |snapshot: &Snapshot| {
        let second = snapshot.time.seconds;
        history.ancestry(snapshot).take_while(|it| it.time.seconds == second).count()
    };
    chats.sort_by_cached_key(|it| (it.time.seconds, before_it(it), it.id));
    let first = own.first().map_or(i64::MAX, |first| first.time.seconds);
    let name = own.first().map_or(book, |first| &first.timeline);
    let is_before = |snapshot: &&&Snapshot| {
        snapshot.time.seconds < first && book_of(snapshot).as_ref() == Some(name)
    };
    let mut all: Vec<_> = chats.iter().filter(is_before).copied().collect();
    all.extend(own);
    (all, chats)
}

impl<'h> BookHistory<'h> {
    /// Read it.
    pub fn read(store: &Store, history: &'h History, book: &TimelineName) -> Result<Self> {
        let (snapshots, chats) = snapshots_of(history, book);
        let mut steps = Steps::new(store);
        let mut lives = Lives::new(store.reader());
        let mut states = Vec::new();
        let mut broken = Vec::new();
        let mut now = Arc::new(BookState::default());
        for some in snapshots.chunks(AT_ONCE) {
            let trees: Vec<_> = some.iter().map(|snapshot| snapshot.tree).collect();
            for (snapshot, step) in some.iter().zip(steps.read(&trees)) {
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
                    let why = "its lorebook is no JSON that has entries";
                    broken.push(format!("{}: {why}", snapshot.id));
                    continue;
                }
                if states.is_empty() || (!Arc::ptr_eq(&now, &step.state) && *now != *step.state) {
                    lives.next(states.len(), &now, &step)?;
                    states.push(*snapshot);
                    now = step.state;
                }
            }
        }
        broken.extend(lives.broken.iter().map(ToString::to_string));
        Ok(Self { states, lives: lives.lives, broken, chats })
    }

    /// Where the story was in a state: the chat's own snapshot, or the last that a chat with this lorebook had until then.
    pub fn story_at(&self, state: usize) -> Option<&'h Snapshot> {
        let snapshot = *self.states.get(state)?;
        if snapshot.timeline.is_chat() {
            return Some(snapshot);
        }
        let until = |chat: &&Snapshot| chat.time.seconds <= snapshot.time.seconds;
        self.chats[..self.chats.partition_point(until)].last().copied()
    }

    /// The last state until a moment, in seconds since 1970.
    pub fn state_at(&self, moment: i64) -> Option<usize> {
        self.states.partition_point(|snapshot| snapshot.time.seconds <= moment).checked_sub(1)
    }
}
