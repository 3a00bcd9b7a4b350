//! Whether two lorebook entries are one. A UID alone does not say: SillyTavern gives a deleted
//! one's to the next.
//!
//! Where one book came out of the other, likeness is enough: [`pairs`]. Where neither is known to
//! have come out of the other, something must agree word for word: [`Marks`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use super::diff::pairing::Bag;
use super::diff::value::same;
use crate::st::{Key, Raw};

/// Contents that have at least this share of their words in common are one content, edited.
const ALIKE: f32 = 0.3;
/// Titles that have more than this share of their words in common are one title, edited.
const MOST: f32 = 0.5;

pub(crate) type Entries<'a> = [(Key, Raw<'a>)];

/// Pairs the entries of two versions of a book, by their places. Exact matches come first: same key
/// and same title or content; then same title and content under another key; then similar ones
/// under the same key; last the same content under another key and title.
pub(crate) fn pairs(old: &Entries<'_>, new: &Entries<'_>) -> Vec<(usize, usize)> {
    let places: HashMap<&Key, usize> =
        new.iter().enumerate().map(|(to, (key, _))| (key, to)).collect();
    let mut found = Vec::new();
    let (mut gone, mut come) = (Open::new(), Open::new());
    let mut under_one_key = Vec::new();
    for (from, (key, before)) in old.iter().enumerate() {
        let place = places.get(key).copied();
        if let Some(to) = place.filter(|to| new[*to].1 == *before) {
            found.push((from, to));
            continue;
        }
        let face = Face::of(*before);
        if let Some(to) = place {
            let after = Face::of(new[to].1);
            if face.is_kept_in(&after) {
                found.push((from, to));
                continue;
            }
            come.insert(to, after);
            under_one_key.push((from, to));
        }
        gone.insert(from, face);
    }
    let known: HashSet<&Key> = old.iter().map(|(key, _)| key).collect();
    let unknown = (0..new.len()).filter(|to| !known.contains(&new[*to].0));
    come.extend(unknown.map(|to| (to, Face::of(new[to].1))));
    found.extend(moves(&mut gone, &mut come, |face| (face.title.clone(), face.content.clone())));
    for (from, to) in under_one_key {
        if let (Some(before), Some(after)) = (gone.get(&from), come.get(&to))
            && before.is_like(after)
        {
            gone.remove(&from);
            come.remove(&to);
            found.push((from, to));
        }
    }
    found.extend(moves(&mut gone, &mut come, |face| face.content.clone()));
    found
}

/// Entries without a partner, by their places.
type Open = BTreeMap<usize, Face>;

/// Pairs entries that are equal by `name`, under any keys, if they have content.
fn moves<N: Eq + Hash>(
    gone: &mut Open,
    come: &mut Open,
    name: impl Fn(&Face) -> N,
) -> Vec<(usize, usize)> {
    let name = |face: &Face| (!face.content.trim().is_empty()).then(|| name(face));
    let mut waiting: HashMap<_, Vec<usize>> = HashMap::new();
    for (from, face) in gone.iter().rev() {
        if let Some(name) = name(face) {
            waiting.entry(name).or_default().push(*from);
        }
    }
    let mut found = Vec::new();
    for (to, face) in come.iter() {
        if let Some(from) = name(face).and_then(|name| waiting.get_mut(&name)?.pop()) {
            found.push((from, *to));
        }
    }
    for (from, to) in &found {
        gone.remove(from);
        come.remove(to);
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    /// Under its key with its title or much of its content: the key may have been reused.
    Alike,
    Wholly,
}

impl Again {
    pub fn of(then: (&Key, Raw<'_>), now: (&Key, Raw<'_>)) -> Option<Self> {
        if Marks::of(then.1).agree_wholly(&Marks::of(now.1)) {
            return Some(Self::Wholly);
        }
        let is_alike = || {
            let (before, after) = (Face::of(then.1), Face::of(now.1));
            before.is_kept_in(&after) || before.has_words_of(&after)
        };
        (then.0 == now.0 && is_alike()).then_some(Self::Alike)
    }
}

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

    fn is_kept_in(&self, other: &Self) -> bool {
        !self.title.is_empty() && self.title == other.title
            || !self.content.trim().is_empty() && self.content == other.content
    }

    fn has_words_of(&self, other: &Self) -> bool {
        Bag::of(&self.content).likeness(&Bag::of(&other.content)) >= ALIKE
    }

    fn is_like(&self, other: &Self) -> bool {
        let is_blank = self.title.is_empty() && self.content.trim().is_empty();
        is_blank
            || self.content == other.content
            || self.has_words_of(other)
            || self.has_title_like(other)
    }

    /// Whether the titles have most words in common, and the keywords do not differ. Half is not
    /// enough: `Captain Tomas` is not `Captain Wren`. The kind that ST-Auto-Recap puts first, as in
    /// `character-Tomas`, is not part of the name.
    fn has_title_like(&self, other: &Self) -> bool {
        let (name, other_name) = match (after_kind(&self.title), after_kind(&other.title)) {
            (Some(name), Some(other_name)) => (name, other_name),
            _ => (self.title.as_str(), other.title.as_str()),
        };
        let has_other_keys =
            !self.keys.is_empty() && !other.keys.is_empty() && self.keys.is_disjoint(&other.keys);
        !has_other_keys && Bag::of(name).likeness(&Bag::of(other_name)) > MOST
    }
}

/// Returns the name in a title of ST-Auto-Recap: after one word and a hyphen.
fn after_kind(title: &str) -> Option<&str> {
    let (kind, name) = title.split_once('-')?;
    let is_word = !kind.is_empty() && !kind.contains(char::is_whitespace);
    (is_word && !name.trim().is_empty()).then_some(name)
}

/// The parts by which two states of one entry are recognised. UIDs are given out again and titles
/// change, so neither is enough: the UID and one of title, content and keys must agree, or title
/// and content under another UID.
pub(crate) struct Marks<'a> {
    title: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    keys: Option<Raw<'a>>,
}

impl<'a> Marks<'a> {
    pub(crate) fn of(entry: Raw<'a>) -> Self {
        let [title, content, keys] = entry.pick(["comment", "content", "key"]).unwrap_or_default();
        Self { title, content, keys }
    }

    pub(crate) fn agree(&self, other: &Marks<'_>) -> bool {
        agree(self.title, other.title)
            || agree(self.content, other.content)
            || agree(self.keys, other.keys)
    }

    pub(crate) fn agree_wholly(&self, other: &Marks<'_>) -> bool {
        agree(self.title, other.title) && agree(self.content, other.content)
    }
}

fn agree(a: Option<Raw<'_>>, b: Option<Raw<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => !is_blank(a) && same(a, b),
        _ => false,
    }
}

pub(crate) fn is_blank(value: Raw<'_>) -> bool {
    matches!(value.as_str(), "\"\"" | "[]" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether one entry under one key is taken to have become the other in one save.
    fn is_one(before: [&str; 3], after: [&str; 3]) -> bool {
        let entry = |[title, content, keys]: [&str; 3]| {
            let keys: Vec<_> = keys.split_whitespace().collect();
            serde_json::json!({ "uid": 7, "comment": title, "content": content, "key": keys })
                .to_string()
        };
        let (before, after) = (entry(before), entry(after));
        let book = |text| vec![(Key::of_bytes(b"7".to_vec()), Raw::parse_str(text).unwrap())];
        !pairs(&book(&before), &book(&after)).is_empty()
    }

    const SHIP: &str = "A ship with two masts that sails at night";
    const MAN: &str = "He mends nets by the quay and drinks";

    #[test]
    fn entries_of_one_kind_under_one_uid_are_different() {
        for (before, after) in [
            ("character-Kestrel", "character-Tomas"),
            ("character-Old Kestrel", "character-Old Tomas"),
            ("_registry_character", "_registry_location"),
            ("Captain Tomas", "Captain Wren"),
            ("Half-elf", "Half-orc"),
        ] {
            assert!(!is_one([before, SHIP, ""], [after, MAN, ""]), "{before} → {after}");
        }
        // Their keywords tell them apart, however much of the titles agrees.
        let (before, after) = ("The Captain of the guard", "The Captain of the watch");
        assert!(!is_one([before, SHIP, "kestrel"], [after, MAN, "tomas"]));
    }

    #[test]
    fn entry_renamed_and_rewritten_under_its_uid_is_one() {
        for (before, after) in [
            ("character-Tomas", "character-Tomas Vane"),
            ("character-Tomas", "creature-Tomas"),
            ("Kestrel", "The Kestrel"),
        ] {
            assert!(is_one([before, SHIP, ""], [after, MAN, ""]), "{before} → {after}");
            assert!(is_one([before, SHIP, "a b"], [after, MAN, "b c"]), "{before} → {after}");
        }
        assert!(is_one(["Kestrel", SHIP, "kestrel"], ["Tomas", SHIP, "tomas"]));
    }
}
