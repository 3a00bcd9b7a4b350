//! The lives of lorebook entries: over many states of one book, when each came, what it said from then on, and when it went.
//!
//! Of each state only the names and ids of its entries are read, and of the entries only those that differ from the state before: a history of ten
//! thousand states costs what changed in them.
//!
//! Which entry of a state became which of the next, `entry_identity` says. One that went and came again is the same if it is alike under the same key, or if it says
//! the same, title and all, under another.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry_identity::{is_same_again, pairs};
use crate::st::{self, Key, Raw};
use crate::store::{self, Loss, Mode, ObjectId, Reader, name_encoding};

/// What an entry says in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// The object that has it.
    Object(ObjectId),
    /// Itself, where the book was stored whole.
    Text(Arc<str>),
}

impl Version {
    /// Its JSON.
    pub fn read(&self, reader: &Reader) -> store::Result<Arc<str>> {
        match self {
            Self::Object(id) => Ok(String::from_utf8_lossy(&reader.blob(*id)?).into()),
            Self::Text(text) => Ok(Arc::clone(text)),
        }
    }
}

/// The entries of a state: key and version of each, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookState {
    pub entries: Vec<(Key, Version)>,
    /// The book was stored whole, and nothing of it is an entry.
    pub is_odd: bool,
}

/// Reads the book of one snapshot after the other. Most have the book of the one before.
pub struct BookStates {
    reader: Reader,
    last: Option<(ObjectId, Arc<BookState>)>,
}

impl BookStates {
    pub fn new(reader: Reader) -> Self {
        Self { reader, last: None }
    }

    /// The book in the snapshot with this tree; `None` if it has none.
    pub fn of(&mut self, tree: ObjectId) -> store::Result<Option<Arc<BookState>>> {
        let Some(books) = self.part(tree, b"lorebooks")? else { return Ok(None) };
        if let Some((_, state)) = self.last.as_ref().filter(|(last, _)| *last == books) {
            return Ok(Some(Arc::clone(state)));
        }
        let folders = self.reader.raw_tree(books)?.entries;
        let Some(folder) = folders.iter().find(|entry| entry.mode == Mode::Folder) else {
            return Ok(None);
        };
        let parts = self.reader.raw_tree(folder.id)?.entries;
        let entries = parts.iter().find(|part| part.mode == Mode::Folder);
        let state = match (entries, parts.first()) {
            (Some(entries), _) => self.entries(entries.id)?,
            (None, Some(book)) => whole(&self.reader.blob(book.id)?),
            (None, None) => return Ok(None),
        };
        let state = Arc::new(state);
        self.last = Some((books, Arc::clone(&state)));
        Ok(Some(state))
    }

    fn part(&self, tree: ObjectId, name: &[u8]) -> store::Result<Option<ObjectId>> {
        let entries = self.reader.raw_tree(tree)?.entries;
        Ok(entries.iter().find(|entry| entry.name == name).map(|entry| entry.id))
    }

    fn entries(&self, tree: ObjectId) -> store::Result<BookState> {
        let key = |name: &[u8]| {
            let mut key = match name.contains(&b'%') {
                true => name_encoding::decode_bytes(&String::from_utf8_lossy(name)),
                false => name.to_owned(),
            };
            key.truncate(key.strip_suffix(b".json").map_or(key.len(), <[u8]>::len));
            Key::of_bytes(key)
        };
        let tree = self.reader.raw_tree(tree)?.entries;
        let mut entries: Vec<_> =
            tree.iter().map(|entry| (key(&entry.name), Version::Object(entry.id))).collect();
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(BookState { entries, is_odd: false })
    }
}

/// A book that was stored whole.
fn whole(book: &[u8]) -> BookState {
    let found = st::entries(book);
    let entry = |(key, value): &(Key, Raw<'_>)| (key.clone(), Version::Text(value.as_str().into()));
    let mut entries: Vec<_> = found.iter().map(entry).collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let is_odd = entries.is_empty() && Raw::parse(book).is_none();
    BookState { entries, is_odd }
}

/// One entry from its beginning to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Oldest first.
    pub changes: Vec<LifeChange>,
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeChange {
    /// In which state, by the number it was told with.
    pub state: usize,
    /// Its key from then on, or until then.
    pub key: Key,
    /// What it says from then on; `None`: it went.
    pub version: Option<Version>,
}

impl Life {
    /// Its key and what it says in a state; `None` if it was not there.
    pub fn at(&self, state: usize) -> Option<(&Key, &Version)> {
        let last = self.changes.iter().rfind(|change| change.state <= state)?;
        Some((&last.key, last.version.as_ref()?))
    }

    /// Its key and what it says now; `None` if it is gone.
    pub fn now(&self) -> Option<(&Key, &Version)> {
        self.at(usize::MAX)
    }
}

/// All entries that a book ever had.
pub struct Lives {
    reader: Reader,
    pub lives: Vec<Life>,
    /// By its key.
    alive: HashMap<Key, usize>,
    gone: Vec<Gone>,
    /// What could not be read, each once; it counts as changed, and as the same entry.
    pub broken: Vec<store::Error>,
}

/// An entry that went, and what it said last.
struct Gone {
    life: usize,
    key: Key,
    text: Arc<str>,
}

/// An entry that differs from the state before, and its text if that can be read.
type Changed<'s> = (&'s Key, &'s Version, Option<Arc<str>>);

impl Lives {
    pub fn new(reader: Reader) -> Self {
        let (lives, alive, gone, broken) = Default::default();
        Self { reader, lives, alive, gone, broken }
    }

    /// The next state, with its number.
    pub fn next(&mut self, state: usize, old: &BookState, new: &BookState) -> store::Result<()> {
        let (before, after) = (only_in(old, new), only_in(new, old));
        let (before, after) = (self.read(before)?, self.read(after)?);
        let mut became: Vec<_> = paired(&before, &after);
        became.sort_unstable();
        // First all leave, then all arrive: they may have changed places.
        let mut lives: Vec<Option<usize>> = Vec::new();
        lives.extend(before.iter().map(|(key, ..)| self.alive.remove(*key)));
        let mut arrived = vec![false; after.len()];
        for (from, to) in became {
            arrived[to] = true;
            if let Some(life) = lives[from].take() {
                self.arrive(life, state, &after[to]);
            }
        }
        for ((key, _, text), life) in before.iter().zip(lives) {
            let Some(life) = life else { continue };
            let change = LifeChange { state, key: (*key).clone(), version: None };
            self.lives[life].changes.push(change);
            let gone = |text: &Arc<str>| Gone { life, key: (*key).clone(), text: text.clone() };
            self.gone.extend(text.as_ref().map(gone));
        }
        for come in after.iter().zip(arrived).filter(|(_, arrived)| !arrived).map(|(it, _)| it) {
            let life = self.come_again(come).unwrap_or_else(|| {
                self.lives.push(Life::default());
                self.lives.len() - 1
            });
            self.arrive(life, state, come);
        }
        Ok(())
    }

    fn arrive(&mut self, life: usize, state: usize, (key, version, _): &Changed<'_>) {
        let key = (*key).clone();
        self.alive.insert(key.clone(), life);
        let version = Some((*version).clone());
        self.lives[life].changes.push(LifeChange { state, key, version });
    }

    /// The life of an entry that went and is there again. The last one that went comes first.
    fn come_again(&mut self, (key, _, text): &Changed<'_>) -> Option<usize> {
        let now = Raw::parse_str(text.as_ref()?)?;
        let is_it = |gone: &Gone| {
            let then = Raw::parse_str(&gone.text);
            then.is_some_and(|then| is_same_again((&gone.key, then), (key, now)))
        };
        let at = self.gone.iter().rposition(is_it)?;
        Some(self.gone.remove(at).life)
    }

    fn read<'s>(&mut self, list: Vec<(&'s Key, &'s Version)>) -> store::Result<Vec<Changed<'s>>> {
        let mut read = Vec::with_capacity(list.len());
        for (key, version) in list {
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

/// The entries of `this` that `other` does not have just so. Both are sorted.
fn only_in<'s>(this: &'s BookState, other: &BookState) -> Vec<(&'s Key, &'s Version)> {
    let mut others = other.entries.iter().peekable();
    let mut only = Vec::new();
    for (key, version) in &this.entries {
        while others.next_if(|(other, _)| other < key).is_some() {}
        if others.peek().is_none_or(|(other, same)| other != key || same != version) {
            only.push((key, version));
        }
    }
    only
}

/// Key and JSON of those at these places.
fn entries_at<'t>(list: &'t [Changed<'_>], places: &[usize]) -> Vec<(Key, Raw<'t>)> {
    let entry = |place: &usize| {
        let (key, _, text) = &list[*place];
        let value = text.as_deref().and_then(Raw::parse_str).or_else(|| Raw::parse_str("null"));
        Some(((*key).clone(), value?))
    };
    places.iter().filter_map(entry).collect()
}

/// Which became which, by their places. What cannot be read is taken for what stands under its key.
fn paired(before: &[Changed<'_>], after: &[Changed<'_>]) -> Vec<(usize, usize)> {
    let places: HashMap<&Key, usize> =
        after.iter().enumerate().map(|(n, (key, ..))| (*key, n)).collect();
    let is_lost = |changed: &Changed<'_>| changed.2.is_none();
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
