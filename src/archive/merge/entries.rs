//! Reads the entries of the three books of a merge, matches them, and assigns their keys in the
//! merged book.

use std::collections::{HashMap, HashSet};

use super::super::entry_identity::{Entries, IdentityFields, pairs};
use crate::st::{Key, Member, Raw, has_repeated_key, uid_text};

pub(super) struct Book<'a> {
    pub root: Raw<'a>,
    pub entries: Raw<'a>,
    /// Entries in file order, with unique keys.
    pub list: Vec<(Key, Raw<'a>)>,
    pub raw_keys: Vec<&'a [u8]>,
}

impl<'a> Book<'a> {
    /// Parses a book, or returns why the book cannot be merged.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let root = Raw::parse(bytes).ok_or("it is not valid JSON")?;
        let members = root.members().ok_or("it is not a JSON object")?;
        let entries = members.iter().find(|member| is_entries(member));
        let entries = entries.ok_or("it has no entries")?.value;
        let list = entries.members().ok_or("its entries are not a JSON object")?;
        if has_repeated_key(&members) || has_repeated_key(&list) {
            return Err("it repeats a key, so its content is ambiguous");
        }
        let raw_keys = list.iter().map(|member| member.raw_key).collect();
        let list = list.into_iter().map(|member| (member.key, member.value)).collect();
        Ok(Self { root, entries, list, raw_keys })
    }

    pub(super) fn entry(&self, place: Option<usize>) -> Option<Raw<'a>> {
        Some(self.list.get(place?)?.1)
    }
}

pub(super) fn is_entries(member: &Member<'_>) -> bool {
    member.key.as_bytes() == b"entries"
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub base: Option<usize>,
    pub ours: Option<usize>,
    pub theirs: Option<usize>,
}

/// Groups the entries of all three books that are the same entry. Entries of the base are matched
/// with both sides; all other entries of the two sides are matched with each other. The groups are
/// in the order of `ours`, then of `theirs`.
pub(super) fn groups(base: Option<&Book<'_>>, ours: &Book<'_>, theirs: &Book<'_>) -> Vec<Group> {
    let mut from_base: Vec<Group> = Vec::new();
    let (mut ours_known, mut theirs_known) = (HashSet::new(), HashSet::new());
    if let Some(base) = base {
        from_base =
            (0..base.list.len()).map(|n| Group { base: Some(n), ..Group::default() }).collect();
        for (from, to) in pairs(&base.list, &ours.list) {
            from_base[from].ours = Some(to);
            ours_known.insert(to);
        }
        for (from, to) in pairs(&base.list, &theirs.list) {
            from_base[from].theirs = Some(to);
            theirs_known.insert(to);
        }
    }
    let unknown = |book: &Book<'_>, known: &HashSet<usize>| -> Vec<usize> {
        (0..book.list.len()).filter(|n| !known.contains(n)).collect()
    };
    let (unknown_ours, unknown_theirs) =
        (unknown(ours, &ours_known), unknown(theirs, &theirs_known));
    let both: HashMap<usize, usize> =
        agreeing(&ours.list, &unknown_ours, &theirs.list, &unknown_theirs).into_iter().collect();
    let taken: HashSet<usize> = both.values().copied().collect();
    let mut all = from_base;
    all.extend(unknown_ours.iter().map(|n| Group {
        base: None,
        ours: Some(*n),
        theirs: both.get(n).copied(),
    }));
    let only_theirs = unknown_theirs.iter().filter(|n| !taken.contains(n));
    all.extend(only_theirs.map(|n| Group { theirs: Some(*n), ..Group::default() }));
    let last = usize::MAX;
    all.sort_by_key(|group| (group.ours.unwrap_or(last), group.theirs.unwrap_or(last), group.base));
    all
}

/// Matches the entries of two sides that are not in the base. Entries with the same key match if
/// they are equal or have an equal title, content or list of keywords. After that, entries with
/// equal title and content match under any key.
fn agreeing(
    ours: &Entries<'_>,
    of_ours: &[usize],
    theirs: &Entries<'_>,
    of_theirs: &[usize],
) -> Vec<(usize, usize)> {
    let by_key: HashMap<&Key, usize> = of_theirs.iter().map(|n| (&theirs[*n].0, *n)).collect();
    let mut found = Vec::new();
    let mut taken = HashSet::new();
    let mut left = Vec::new();
    for n in of_ours {
        let (key, entry) = &ours[*n];
        let there = by_key.get(key).filter(|there| {
            let other = theirs[**there].1;
            *entry == other || IdentityFields::of(*entry).agree(&IdentityFields::of(other))
        });
        match there {
            Some(there) => {
                taken.insert(*there);
                found.push((*n, *there));
            }
            None => left.push(*n),
        }
    }
    let open: Vec<_> = of_theirs
        .iter()
        .filter(|n| !taken.contains(n))
        .map(|n| (*n, IdentityFields::of(theirs[*n].1)))
        .collect();
    let mut gone = HashSet::new();
    for n in left {
        let marks = IdentityFields::of(ours[n].1);
        let there =
            open.iter().find(|(there, other)| !gone.contains(there) && marks.agree_wholly(other));
        if let Some((there, _)) = there {
            gone.insert(*there);
            found.push((n, *there));
        }
    }
    found
}

/// Returns the key in the merged book for each group whose value in `stays` is true; `None` for the
/// other groups. An entry of `ours` keeps its key, unless only `theirs` changed the key. An entry
/// that only `theirs` has keeps its key if no other entry has the key. Otherwise, the entry gets
/// the lowest free number, as in SillyTavern.
pub(super) fn keys(
    base: Option<&Book<'_>>,
    ours: &Book<'_>,
    theirs: &Book<'_>,
    groups: &[Group],
    stays: &[bool],
) -> Vec<Option<Key>> {
    let key = |book: &Book<'_>, place: Option<usize>| -> Option<Key> {
        Some(book.list.get(place?)?.0.clone())
    };
    let staying: Vec<_> = (0..groups.len()).filter(|n| stays[*n]).collect();
    let mut keys: Vec<Option<Key>> = vec![None; groups.len()];
    let mut taken: HashSet<Key> = HashSet::new();
    let (mut moved, mut new) = (Vec::new(), Vec::new());
    for n in &staying {
        let group = groups[*n];
        let (here, there) = (key(ours, group.ours), key(theirs, group.theirs));
        let before = base.and_then(|base| key(base, group.base));
        match (here, there) {
            (Some(here), Some(there)) if here != there && before.as_ref() == Some(&here) => {
                moved.push((*n, here, there));
            }
            (Some(here), _) => {
                taken.insert(here.clone());
                keys[*n] = Some(here);
            }
            (None, Some(there)) => new.push((*n, there)),
            (None, None) => {}
        }
    }
    let mut without = Vec::new();
    for (n, here, there) in moved {
        match [there, here].into_iter().find(|key| !taken.contains(key)) {
            Some(key) => {
                taken.insert(key.clone());
                keys[n] = Some(key);
            }
            None => without.push(n),
        }
    }
    for (n, there) in new {
        if taken.insert(there.clone()) {
            keys[n] = Some(there);
        } else {
            without.push(n);
        }
    }
    // A number is free if no entry of the merged book has it as its key or as its `uid`.
    let inside = staying.iter().flat_map(|n| {
        let group = groups[*n];
        [ours.entry(group.ours), theirs.entry(group.theirs)]
    });
    let mut texts: HashSet<String> =
        inside.flatten().filter_map(|entry| uid_text(entry.get("uid")?)).collect();
    texts.extend(taken.iter().map(Key::to_string_lossy));
    let mut next = 0_u64;
    for n in without {
        while !texts.insert(next.to_string()) {
            next += 1;
        }
        keys[n] = Key::decode(format!("\"{next}\"").as_bytes());
    }
    keys
}
