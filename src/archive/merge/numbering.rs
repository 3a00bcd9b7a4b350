//! Under which key each entry of the merged book stands.

use std::collections::HashSet;

use super::book::Book;
use super::matching::Group;
use crate::st::{Key, uid_text};

/// A key for each group that stays. What is in ours keeps its key, unless only theirs moved it; what comes from theirs keeps its own if that is free,
/// else it gets the lowest free number, as in SillyTavern.
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
    // A key is free if nothing that stays has it, as its key or inside.
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
