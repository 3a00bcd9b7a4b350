//! Whether two lorebook entries are one. A UID alone does not say: SillyTavern gives a deleted one's to the next.
//!
//! Where one book came out of the other, likeness is enough: [`pairs`]. Where neither is known to have come out of the other, something must agree
//! word for word: [`Marks`].

use std::collections::{HashMap, HashSet};

use super::diff::pairing::Bag;
use super::diff::value::same;
use crate::st::{Key, Raw};

/// Contents that have at least this share of their words in common are one content, edited.
const ALIKE: f32 = 0.3;

/// A book's entries, each key once.
pub(super) type Entries<'a> = [(Key, Raw<'a>)];

/// Which entry of the old book became which of the new, by their places: what stands under the same key is the same entry if title or content are
/// alike; and what is gone from one key and found under another has moved.
pub(super) fn pairs(old: &Entries<'_>, new: &Entries<'_>) -> Vec<(usize, usize)> {
    let by_key: HashMap<&Key, usize> =
        new.iter().enumerate().map(|(n, (key, _))| (key, n)).collect();
    let mut found = Vec::new();
    // Those under whose key something else stands, or nothing.
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for (from, (key, before)) in old.iter().enumerate() {
        match by_key.get(key).map(|to| (*to, new[*to].1)) {
            Some((to, after)) if before == &after => found.push((from, to)),
            Some((to, after)) if Face::of(*before).is_like(&Face::of(after)) => {
                found.push((from, to));
            }
            other => {
                gone.push(from);
                come.extend(other.map(|(to, _)| to));
            }
        }
    }
    let known: HashSet<&Key> = old.iter().map(|(key, _)| key).collect();
    come.extend((0..new.len()).filter(|to| !known.contains(&new[*to].0)));
    let faces = |book: &Entries<'_>, list: &[usize]| -> Vec<Face> {
        list.iter().map(|n| Face::of(book[*n].1)).collect()
    };
    if !gone.is_empty() && !come.is_empty() {
        let moved = moves(&faces(old, &gone), &faces(new, &come));
        found.extend(moved.into_iter().map(|(from, to)| (gone[from], come[to])));
    }
    found
}

/// Whether an entry that went is there again: alike under its key, or the same in title and content under another.
pub(super) fn is_same_again(then: (&Key, Raw<'_>), now: (&Key, Raw<'_>)) -> bool {
    match then.0 == now.0 {
        true => Face::of(then.1).is_like(&Face::of(now.1)),
        false => Marks::of(then.1).agree_wholly(&Marks::of(now.1)),
    }
}

/// What a person knows an entry by.
struct Face {
    title: String,
    content: String,
    keys: HashSet<String>,
}

impl Face {
    fn of(entry: Raw<'_>) -> Self {
        let [title, content, keys] = entry.pick(["comment", "content", "key"]).unwrap_or_default();
        let text =
            |value: Option<Raw<'_>>| value.and_then(|value| value.string()).unwrap_or_default();
        let keys = keys.and_then(|keys| keys.items()).unwrap_or_default();
        let keys = keys.iter().filter_map(|key| key.string()).map(|key| key.to_lowercase());
        Self { title: text(title).trim().to_owned(), content: text(content), keys: keys.collect() }
    }

    fn is_blank(&self) -> bool {
        self.title.is_empty() && self.content.trim().is_empty()
    }

    /// Whether this became `other` by editing.
    fn is_like(&self, other: &Face) -> bool {
        let alike = |a: &str, b: &str, least| Bag::of(a).likeness(&Bag::of(b)) >= least;
        self.is_blank()
            || (!self.title.is_empty() && self.title == other.title)
            || self.content == other.content
            || alike(&self.title, &other.title, 0.5)
            || alike(&self.content, &other.content, ALIKE)
            || (self.title == other.title && !self.keys.is_disjoint(&other.keys))
    }
}

/// The same content under another key: first with the same title, then with any.
fn moves(old: &[Face], new: &[Face]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut taken_old = HashSet::new();
    let mut taken_new = HashSet::new();
    for with_title in [true, false] {
        let name = |face: &'_ Face| -> Option<(String, String)> {
            let title = if with_title { face.title.clone() } else { String::new() };
            (!face.content.trim().is_empty()).then(|| (title, face.content.clone()))
        };
        let mut waiting: HashMap<(String, String), Vec<usize>> = HashMap::new();
        for (at, face) in old.iter().enumerate().rev().filter(|(at, _)| !taken_old.contains(at)) {
            if let Some(name) = name(face) {
                waiting.entry(name).or_default().push(at);
            }
        }
        for (to, face) in new.iter().enumerate() {
            if taken_new.contains(&to) {
                continue;
            }
            if let Some(from) = name(face).and_then(|name| waiting.get_mut(&name)?.pop()) {
                taken_old.insert(from);
                taken_new.insert(to);
                found.push((from, to));
            }
        }
    }
    found
}

/// What two states of one entry can have in common word for word. UIDs are given out again and titles change, so neither is enough: the UID and
/// one of title, content and keys must agree, or title and content under another UID.
pub(super) struct Marks<'a> {
    title: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    keys: Option<Raw<'a>>,
}

impl<'a> Marks<'a> {
    pub(super) fn of(entry: Raw<'a>) -> Self {
        let [title, content, keys] = entry.pick(["comment", "content", "key"]).unwrap_or_default();
        Self { title, content, keys }
    }

    /// Whether that is enough for entries of one UID.
    pub(super) fn agree(&self, other: &Marks<'_>) -> bool {
        agree(self.title, other.title)
            || agree(self.content, other.content)
            || agree(self.keys, other.keys)
    }

    /// Whether it is enough for entries of different UIDs.
    pub(super) fn agree_wholly(&self, other: &Marks<'_>) -> bool {
        agree(self.title, other.title) && agree(self.content, other.content)
    }
}

fn agree(a: Option<Raw<'_>>, b: Option<Raw<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => !is_blank(a) && same(a, b),
        _ => false,
    }
}

/// Whether a value says nothing.
pub(super) fn is_blank(value: Raw<'_>) -> bool {
    matches!(value.as_str(), "\"\"" | "[]" | "null")
}
