//! Decides whether two lorebook entries are the same entry. A UID alone is not enough: SillyTavern
//! reuses the UIDs of deleted entries.
//!
//! In two versions of one book, similar entries match: see [`pairs`]. Otherwise, some fields must
//! be equal: see [`IdentityFields`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use super::diff::pairing::Bag;
use super::diff::value::same;
use crate::st::{Key, Raw};

/// Minimum share of common words for two contents to be versions of one content.
const SIMILAR_CONTENTS: f32 = 0.3;
/// Two titles are versions of one title if their share of common words is greater than this.
const SIMILAR_TITLES: f32 = 0.5;

pub(crate) type Entries<'a> = [(Key, Raw<'a>)];

/// Pairs the entries of two versions of a book, and returns the positions of each pair. Each step
/// considers only entries that are not paired yet:
///
/// 1. same key, and same title or same content;
/// 2. same title and content under another key;
/// 3. same key, and similar title or content;
/// 4. same content under another key and title.
pub(crate) fn pairs(old: &Entries<'_>, new: &Entries<'_>) -> Vec<(usize, usize)> {
    let places: HashMap<&Key, usize> =
        new.iter().enumerate().map(|(to, (key, _))| (key, to)).collect();
    let mut found = Vec::new();
    let (mut gone, mut come) = (Unmatched::new(), Unmatched::new());
    let mut under_one_key = Vec::new();
    for (from, (key, before)) in old.iter().enumerate() {
        let place = places.get(key).copied();
        if let Some(to) = place.filter(|to| new[*to].1 == *before) {
            found.push((from, to));
            continue;
        }
        let face = EntryFeatures::of(*before);
        if let Some(to) = place {
            let after = EntryFeatures::of(new[to].1);
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
    come.extend(unknown.map(|to| (to, EntryFeatures::of(new[to].1))));
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

/// Unmatched entries, by their positions.
type Unmatched = BTreeMap<usize, EntryFeatures>;

/// Pairs entries for which `name` returns equal values, whatever their keys, and removes them from
/// both maps. Entries without content are not paired.
fn moves<N: Eq + Hash>(
    gone: &mut Unmatched,
    come: &mut Unmatched,
    name: impl Fn(&EntryFeatures) -> N,
) -> Vec<(usize, usize)> {
    let name = |face: &EntryFeatures| (!face.content.trim().is_empty()).then(|| name(face));
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
pub(crate) enum Reappearance {
    /// Same key, and the same title or similar content. Weaker than `Wholly`, because the key may
    /// have been reused for another entry.
    Alike,
    Wholly,
}

impl Reappearance {
    pub fn of(then: (&Key, Raw<'_>), now: (&Key, Raw<'_>)) -> Option<Self> {
        if IdentityFields::of(then.1).agree_wholly(&IdentityFields::of(now.1)) {
            return Some(Self::Wholly);
        }
        let is_alike = || {
            let (before, after) = (EntryFeatures::of(then.1), EntryFeatures::of(now.1));
            before.is_kept_in(&after) || before.has_words_of(&after)
        };
        (then.0 == now.0 && is_alike()).then_some(Self::Alike)
    }
}

struct EntryFeatures {
    title: String,
    content: String,
    keys: HashSet<String>,
}

impl EntryFeatures {
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
        Bag::of(&self.content).likeness(&Bag::of(&other.content)) >= SIMILAR_CONTENTS
    }

    fn is_like(&self, other: &Self) -> bool {
        let is_blank = self.title.is_empty() && self.content.trim().is_empty();
        is_blank
            || self.content == other.content
            || self.has_words_of(other)
            || self.has_title_like(other)
    }

    /// Returns whether the titles have more than half of their words in common. Half is not enough:
    /// `Captain Tomas` is not `Captain Wren`. If both titles have a prefix of ST-Auto-Recap, as in
    /// `character-Tomas`, the prefixes are ignored. Returns false if both entries have keywords but
    /// none in common.
    fn has_title_like(&self, other: &Self) -> bool {
        let (name, other_name) = match (after_kind(&self.title), after_kind(&other.title)) {
            (Some(name), Some(other_name)) => (name, other_name),
            _ => (self.title.as_str(), other.title.as_str()),
        };
        let has_other_keys =
            !self.keys.is_empty() && !other.keys.is_empty() && self.keys.is_disjoint(&other.keys);
        !has_other_keys && Bag::of(name).likeness(&Bag::of(other_name)) > SIMILAR_TITLES
    }
}

/// Returns the name in a title of ST-Auto-Recap, as in `character-Tomas`: the part after one word
/// and a hyphen.
fn after_kind(title: &str) -> Option<&str> {
    let (kind, name) = title.split_once('-')?;
    let is_word = !kind.is_empty() && !kind.contains(char::is_whitespace);
    (is_word && !name.trim().is_empty()).then_some(name)
}

/// Fields that identify an entry. UIDs are reused and titles change, so neither is enough alone.
/// Two entries are the same if they have the same UID and an equal title, content or list of
/// keywords, or if they have different UIDs and both title and content are equal.
pub(crate) struct IdentityFields<'a> {
    title: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    keys: Option<Raw<'a>>,
}

impl<'a> IdentityFields<'a> {
    pub(crate) fn of(entry: Raw<'a>) -> Self {
        let [title, content, keys] = entry.pick(["comment", "content", "key"]).unwrap_or_default();
        Self { title, content, keys }
    }

    pub(crate) fn agree(&self, other: &IdentityFields<'_>) -> bool {
        agree(self.title, other.title)
            || agree(self.content, other.content)
            || agree(self.keys, other.keys)
    }

    pub(crate) fn agree_wholly(&self, other: &IdentityFields<'_>) -> bool {
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

    /// Returns whether `pairs` matches two entries that have the same key in two versions of a
    /// book.
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
    fn entries_that_share_only_uid_and_title_prefix_are_different() {
        for (before, after) in [
            ("character-Kestrel", "character-Tomas"),
            ("character-Old Kestrel", "character-Old Tomas"),
            ("_registry_character", "_registry_location"),
            ("Captain Tomas", "Captain Wren"),
            ("Half-elf", "Half-orc"),
        ] {
            assert!(!is_one([before, SHIP, ""], [after, MAN, ""]), "{before} → {after}");
        }
        // Entries with different keywords are different, however similar their titles are.
        let (before, after) = ("The Captain of the guard", "The Captain of the watch");
        assert!(!is_one([before, SHIP, "kestrel"], [after, MAN, "tomas"]));
    }

    #[test]
    fn entry_renamed_and_rewritten_under_its_uid_is_the_same_entry() {
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
