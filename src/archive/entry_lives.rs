//! The lives of lorebook entries: over many states of one book, when each came, what it said from then on, and when it went.
//!
//! Of each state only the names and ids of its entries are read, and of the entries only those that differ from the state before: a history of ten
//! thousand states costs what changed in them.
//!
//! Which entry of a state became which of the next, `entry_identity` says. One that went and came again is the same if it says the same, title and all; or
//! if it has its title or much of its content, under the same key.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::diff::value::same;
use super::entry_identity::{Again, pairs};
use crate::parallel::{cores, each};
use crate::st::{self, Key, Raw};
use crate::store::{
    self, EntryBytes, Kind, Loss, Mode, ObjectId, Reader, Store, name_encoding, no_tree,
    tree_entries,
};

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

/// The entries of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookState {
    held: Held,
    /// The book was stored whole, and nothing of it is an entry.
    pub is_odd: bool,
}

/// How a state is known. Ten thousand states differ in an entry or two each: what is alike is never taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// The bytes of the tree that has the entries.
    Tree(Vec<u8>),
    /// Sorted by key.
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
        Self { held: Held::Entries(entries), is_odd: false }
    }

    /// Key and version of each entry, sorted by key.
    pub fn entries(&self) -> Vec<(Key, Version)> {
        match &self.held {
            Held::Entries(entries) => entries.clone(),
            Held::Tree(bytes) => {
                let mut entries: Vec<_> = tree_entries(bytes).flatten().map(entry).collect();
                entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                entries
            }
        }
    }

    /// What only this one has just so, and what only the next one has, both sorted by key.
    fn changes(&self, next: &Self) -> [Vec<(Key, Version)>; 2] {
        if let (Held::Tree(old), Held::Tree(new)) = (&self.held, &next.held)
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

/// The entries that two trees do not have alike, by going along both; `None` if one is not in the order in which git has them.
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

/// Reads the book of one snapshot after the other. Most have the book of the one before.
pub struct BookStates {
    reader: Reader,
    last: Option<(ObjectId, Arc<BookState>)>,
    buffer: Vec<u8>,
}

impl BookStates {
    pub fn new(reader: Reader) -> Self {
        Self { reader, last: None, buffer: Vec::new() }
    }

    /// The book in the snapshot with this tree; `None` if it has none.
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
                // A part of a tree would be taken for all of it.
                if tree_entries(bytes).any(|entry| entry.is_none()) {
                    return Err(no_tree(entries));
                }
                BookState { held: Held::Tree(bytes.to_vec()), is_odd: false }
            }
            None => match self.part(folder, |_| true)? {
                Some(book) => whole(&self.reader.blob(book)?),
                None => return Ok(None),
            },
        };
        let state = Arc::new(state);
        self.last = Some((books, Arc::clone(&state)));
        Ok(Some(state))
    }

    /// The first part of a tree that is meant.
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

/// A state, held against the one before it.
pub struct Step {
    pub state: Arc<BookState>,
    /// The state before; none where that is not known yet.
    before: Option<Arc<BookState>>,
    changes: [Vec<(Key, Version)>; 2],
    /// What the new entries say, as far as that is not long.
    texts: HashMap<ObjectId, Arc<str>>,
}

/// Reads many states on all cores. Those who read stay the same: they know what states are made of.
pub struct Steps(Vec<BookStates>);

/// Fewer states than this are not worth a thread.
const WORTH_A_THREAD: usize = 64;

impl Steps {
    pub fn new(store: &Store) -> Self {
        Self((0..cores()).map(|_| BookStates::new(store.reader())).collect())
    }

    /// The books of these snapshots' trees, in order; `None` where there is none.
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
        let jobs = self.0.iter_mut().zip(trees.chunks(stretch)).collect();
        each(jobs, read).into_iter().flatten().collect()
    }
}

impl Step {
    fn new(state: Arc<BookState>, before: Option<Arc<BookState>>, reader: &Reader) -> Self {
        let mut step = Self { state, before, changes: Default::default(), texts: HashMap::new() };
        if let Some(before) = step.before.as_ref().filter(|old| !Arc::ptr_eq(old, &step.state)) {
            step.changes = before.changes(&step.state);
            for (_, version) in &step.changes[1] {
                // What cannot be read is told when it is wanted.
                if let (Version::Object(id), Ok(text)) = (version, version.read(reader))
                    && text.len() <= REMEMBERED
                {
                    step.texts.insert(*id, text);
                }
            }
        }
        step
    }

    /// What only `now` has just so, and what only this one has.
    fn changes_since(&self, now: &Arc<BookState>) -> Cow<'_, [Vec<(Key, Version)>; 2]> {
        if self.before.as_ref().is_some_and(|before| Arc::ptr_eq(before, now)) {
            Cow::Borrowed(&self.changes)
        } else {
            Cow::Owned(now.changes(&self.state))
        }
    }
}

/// A book that was stored whole.
fn whole(book: &[u8]) -> BookState {
    let found = st::entries(book);
    let entry = |(key, value): &(Key, Raw<'_>)| (key.clone(), Version::Text(value.as_str().into()));
    let is_odd = found.is_empty() && Raw::parse(book).is_none();
    BookState { is_odd, ..BookState::of_entries(found.iter().map(entry).collect()) }
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
    /// Only its formatting changed.
    pub is_rewritten: bool,
}

impl Life {
    /// Its key and what it says in a state; `None` if it was not there.
    pub fn at(&self, state: usize) -> Option<(&Key, &Version)> {
        let last = self.changes.iter().rfind(|change| change.state <= state)?;
        Some((&last.key, last.version.as_ref()?))
    }

    /// Returns the last change of more than its formatting.
    pub fn last_change(&self) -> Option<&LifeChange> {
        self.changes.iter().rfind(|change| !change.is_rewritten)
    }

    /// Returns the last state in which it had this key; `None` if it never had.
    pub fn last_state_under(&self, key: &Key) -> Option<usize> {
        let place = self
            .changes
            .iter()
            .rposition(|change| change.key == *key && change.version.is_some())?;
        Some(self.changes.get(place + 1).map_or(usize::MAX, |next| next.state.saturating_sub(1)))
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
    /// By its key, with what it says if that is not long.
    alive: HashMap<Key, (usize, Option<Arc<str>>)>,
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

/// Longer texts are read again when they change.
const REMEMBERED: usize = 16 << 10;

impl Lives {
    pub fn new(reader: Reader) -> Self {
        let (lives, alive, gone, broken) = Default::default();
        Self { reader, lives, alive, gone, broken }
    }

    /// The next state, with its number.
    pub fn next(&mut self, state: usize, old: &Arc<BookState>, new: &Step) -> store::Result<()> {
        let changes = new.changes_since(old);
        let [before, after] = changes.as_ref();
        let (before, after) = (self.read(before, new)?, self.read(after, new)?);
        let mut became: Vec<_> = paired(&before, &after);
        became.sort_unstable();
        // First all leave, then all arrive: they may have changed places.
        let mut lives: Vec<Option<usize>> = Vec::new();
        let leave = |(key, ..): &Changed<'_>| self.alive.remove(*key).map(|(life, _)| life);
        lives.extend(before.iter().map(leave));
        let mut arrived = vec![false; after.len()];
        for (from, to) in became {
            arrived[to] = true;
            if let Some(life) = lives[from].take() {
                let is_rewritten = is_rewritten(&before[from], &after[to]);
                self.arrive(life, state, &after[to], is_rewritten);
            }
        }
        for ((key, _, text), life) in before.iter().zip(lives) {
            let Some(life) = life else { continue };
            let (key, version) = ((*key).clone(), None);
            let gone = |text: &Arc<str>| Gone { life, key: key.clone(), text: text.clone() };
            self.gone.extend(text.as_ref().map(gone));
            let change = LifeChange { state, key, version, is_rewritten: false };
            self.lives[life].changes.push(change);
        }
        for come in after.iter().zip(arrived).filter(|(_, arrived)| !arrived).map(|(it, _)| it) {
            let life = self.come_again(come).unwrap_or_else(|| {
                self.lives.push(Life::default());
                self.lives.len() - 1
            });
            self.arrive(life, state, come, false);
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        life: usize,
        state: usize,
        (key, version, text): &Changed<'_>,
        is_rewritten: bool,
    ) {
        let key = (*key).clone();
        let text = text.clone().filter(|text| text.len() <= REMEMBERED);
        self.alive.insert(key.clone(), (life, text));
        let version = Some((*version).clone());
        self.lives[life].changes.push(LifeChange { state, key, version, is_rewritten });
    }

    /// The life of an entry that went and is there again: of those that are it as surely, the last one that went.
    fn come_again(&mut self, (key, _, text): &Changed<'_>) -> Option<usize> {
        let now = Raw::parse_str(text.as_ref()?)?;
        let again = |(at, gone): (usize, &Gone)| {
            Some((Again::of((&gone.key, Raw::parse_str(&gone.text)?), (key, now))?, at))
        };
        let (_, at) = self.gone.iter().enumerate().filter_map(again).max()?;
        Some(self.gone.remove(at).life)
    }

    fn read<'s>(
        &mut self,
        list: &'s [(Key, Version)],
        step: &Step,
    ) -> store::Result<Vec<Changed<'s>>> {
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

/// Returns whether an entry that was not followed from one state to the other is one: each under its key, as JSON.
pub fn is_one_entry(then: (&Key, &str), now: (&Key, &str)) -> bool {
    let (Some(old), Some(new)) = (Raw::parse_str(then.1), Raw::parse_str(now.1)) else {
        return false;
    };
    Again::of((then.0, old), (now.0, new)).is_some()
}

/// Returns whether an entry stayed where it was and says the same in another formatting.
fn is_rewritten(before: &Changed<'_>, after: &Changed<'_>) -> bool {
    let text = |side: &Changed<'_>| side.2.clone();
    let (Some(old), Some(new)) = (text(before), text(after)) else { return false };
    let values = Raw::parse_str(&old).zip(Raw::parse_str(&new));
    before.0 == after.0 && values.is_some_and(|(old, new)| same(old, new))
}

/// The entries of `this` that `other` does not have just so. Both are sorted.
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
