//! States of a lorebook in many snapshots, read on all cores.
//!
//! For each state, only the tree of its entries (names and object ids) is read, and the content of
//! entries that differ from the previous state. So the cost of a long history depends on the number
//! of changes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::parallel::{cores, each};
use crate::st::{self, Key, Raw};
use crate::store::{
    self, EntryBytes, Kind, Mode, ObjectId, Reader, Store, name_encoding, no_tree, tree_entries,
};

/// Maximum length in bytes of an entry's text that is cached. Longer texts are read again when the
/// entry changes.
pub(super) const REMEMBERED: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    Object(ObjectId),
    Text(Arc<str>),
}

impl Version {
    /// Returns the JSON of the entry.
    pub fn read(&self, reader: &Reader) -> store::Result<Arc<str>> {
        match self {
            Self::Object(id) => Ok(String::from_utf8_lossy(&reader.blob(*id)?).into()),
            Self::Text(text) => Ok(Arc::clone(text)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookState {
    held: StateData,
    pub is_odd: bool,
}

/// Entries of a state. A tree is stored as raw bytes, so that two trees can be compared without
/// decoding the entries that are equal in both. Neighbouring states differ in few entries.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StateData {
    Tree(Vec<u8>),
    Entries(Vec<(Key, Version)>),
}

impl Default for BookState {
    fn default() -> Self {
        Self::of_entries(Vec::new())
    }
}

impl BookState {
    pub fn of_entries(mut entries: Vec<(Key, Version)>) -> Self {
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { held: StateData::Entries(entries), is_odd: false }
    }

    pub fn entries(&self) -> Vec<(Key, Version)> {
        match &self.held {
            StateData::Entries(entries) => entries.clone(),
            StateData::Tree(bytes) => {
                let mut entries: Vec<_> = tree_entries(bytes).flatten().map(entry).collect();
                entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                entries
            }
        }
    }

    fn changes(&self, next: &Self) -> [Vec<(Key, Version)>; 2] {
        if let (StateData::Tree(old), StateData::Tree(new)) = (&self.held, &next.held)
            && let Some(mut changes) = changed_entries(old, new)
        {
            for side in &mut changes {
                side.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            }
            return changes;
        }
        let (old, new) = (self.entries(), next.entries());
        [only_in(&old, &new), only_in(&new, &old)]
    }
}

/// Returns the entries that differ between two trees: old versions first, then new versions.
/// Returns `None` if a tree is not in git's order.
fn changed_entries(old: &[u8], new: &[u8]) -> Option<[Vec<(Key, Version)>; 2]> {
    let (mut old, mut new) = (tree_entries(old).flatten(), tree_entries(new).flatten());
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (old.next(), new.next());
    let is_in_order = |last: EntryBytes<'_>, next: &Option<EntryBytes<'_>>| {
        next.is_none_or(|next| last.name < next.name)
    };
    loop {
        let order = match (before, after) {
            (None, None) => return Some([gone, come]),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.name.cmp(after.name),
        };
        if before != after || order != Ordering::Equal {
            gone.extend(before.filter(|_| order.is_le()).map(entry));
            come.extend(after.filter(|_| order.is_ge()).map(entry));
        }
        for (entry, rest, is_read) in [
            (&mut before, &mut old as &mut dyn Iterator<Item = _>, order.is_le()),
            (&mut after, &mut new, order.is_ge()),
        ] {
            if let Some(last) = entry.filter(|_| is_read) {
                *entry = rest.next();
                if !is_in_order(last, entry) {
                    return None;
                }
            }
        }
    }
}

fn entry(entry: EntryBytes<'_>) -> (Key, Version) {
    let mut key = if entry.name.contains(&b'%') {
        name_encoding::decode_bytes(&String::from_utf8_lossy(entry.name))
    } else {
        entry.name.to_owned()
    };
    key.truncate(key.strip_suffix(b".json").map_or(key.len(), <[u8]>::len));
    (Key::of_bytes(key), Version::Object(entry.id))
}

pub struct BookStates {
    reader: Reader,
    last: Option<(ObjectId, Arc<BookState>)>,
    buffer: Vec<u8>,
}

impl BookStates {
    pub fn new(reader: Reader) -> Self {
        Self { reader, last: None, buffer: Vec::new() }
    }

    /// Returns the lorebook of the snapshot with this tree, or `None` if the snapshot has no
    /// lorebook.
    pub fn of(&mut self, tree: ObjectId) -> store::Result<Option<Arc<BookState>>> {
        let Some(books) = self.part(tree, |part| part.name == b"lorebooks")? else {
            return Ok(None);
        };
        if let Some((_, state)) = self.last.as_ref().filter(|(last, _)| *last == books) {
            return Ok(Some(Arc::clone(state)));
        }
        let Some(folder) = self.part(books, |part| part.mode() == Mode::Folder)? else {
            return Ok(None);
        };
        let state = match self.part(folder, |part| part.mode() == Mode::Folder)? {
            Some(entries) => {
                let bytes = self.reader.read(entries, Kind::Tree, &mut self.buffer)?;
                // Without this check, entries after the damaged one would look deleted.
                if tree_entries(bytes).any(|entry| entry.is_none()) {
                    return Err(no_tree(entries));
                }
                BookState { held: StateData::Tree(bytes.to_vec()), is_odd: false }
            }
            None => match self.part(folder, |_| true)? {
                Some(book) => parse_book(&self.reader.blob(book)?),
                None => return Ok(None),
            },
        };
        let state = Arc::new(state);
        self.last = Some((books, Arc::clone(&state)));
        Ok(Some(state))
    }

    fn part(
        &mut self,
        tree: ObjectId,
        is_meant: impl Fn(&EntryBytes<'_>) -> bool,
    ) -> store::Result<Option<ObjectId>> {
        let bytes = self.reader.read(tree, Kind::Tree, &mut self.buffer)?;
        for entry in tree_entries(bytes) {
            let entry = entry.ok_or_else(|| no_tree(tree))?;
            if is_meant(&entry) {
                return Ok(Some(entry.id));
            }
        }
        Ok(None)
    }
}

pub struct Step {
    pub state: Arc<BookState>,
    /// Previous state; `None` for the first state that a thread reads.
    before: Option<Arc<BookState>>,
    changes: [Vec<(Key, Version)>; 2],
    pub(super) texts: HashMap<ObjectId, Arc<str>>,
}

/// Reads many states on all cores, with one [`BookStates`] per core. Each `BookStates` is reused
/// between calls, because it caches the last state.
pub struct Steps(Vec<BookStates>);

/// Minimum number of states per thread.
const WORTH_A_THREAD: usize = 64;

impl Steps {
    pub fn new(store: &Store) -> Self {
        Self((0..cores()).map(|_| BookStates::new(store.reader())).collect())
    }

    /// Returns the lorebook of each of these snapshot trees, in order; `None` for a snapshot
    /// without a lorebook.
    pub fn read(&mut self, trees: &[ObjectId]) -> Vec<store::Result<Option<Step>>> {
        let read = |(states, part): (&mut BookStates, &[ObjectId])| {
            let mut before: Option<Arc<BookState>> = None;
            let mut step = |tree: &ObjectId| {
                let Some(state) = states.of(*tree)? else { return Ok(None) };
                let before = before.replace(Arc::clone(&state));
                Ok(Some(Step::new(state, before, &states.reader)))
            };
            part.iter().map(&mut step).collect::<Vec<_>>()
        };
        let stretch = trees.len().div_ceil(self.0.len()).max(WORTH_A_THREAD);
        let jobs = self.0.iter_mut().zip(trees.chunks(stretch));
        each(jobs, read).into_iter().flatten().collect()
    }
}

impl Step {
    fn new(state: Arc<BookState>, before: Option<Arc<BookState>>, reader: &Reader) -> Self {
        let mut step = Self { state, before, changes: Default::default(), texts: HashMap::new() };
        if let Some(before) = step.before.as_ref().filter(|old| !Arc::ptr_eq(old, &step.state)) {
            step.changes = before.changes(&step.state);
            for (_, version) in &step.changes[1] {
                // Read errors are ignored here: `Lives` reads the entry again and reports the
                // error.
                if let (Version::Object(id), Ok(text)) = (version, version.read(reader))
                    && text.len() <= REMEMBERED
                {
                    step.texts.insert(*id, text);
                }
            }
        }
        step
    }

    pub(super) fn changes_since(&self, now: &Arc<BookState>) -> Cow<'_, [Vec<(Key, Version)>; 2]> {
        if self.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, now)) {
            Cow::Borrowed(&self.changes)
        } else {
            Cow::Owned(now.changes(&self.state))
        }
    }
}

fn parse_book(book: &[u8]) -> BookState {
    let found = st::entries(book);
    let entry = |(key, value): &(Key, Raw<'_>)| (key.clone(), Version::Text(value.as_str().into()));
    let is_odd = found.is_empty() && Raw::parse(book).is_none();
    BookState { is_odd, ..BookState::of_entries(found.iter().map(entry).collect()) }
}

fn only_in(this: &[(Key, Version)], other: &[(Key, Version)]) -> Vec<(Key, Version)> {
    let mut others = other.iter().peekable();
    let mut only = Vec::new();
    for (key, version) in this {
        while others.next_if(|(other, _)| other < key).is_some() {}
        if others.peek().is_none_or(|(other, same)| other != key || same != version) {
            only.push((key.clone(), version.clone()));
        }
    }
    only
}
