//! Which entries of the three books are one.

use std::collections::{HashMap, HashSet};

use super::super::entry_identity::{Entries, Marks, pairs};
use super::book::Book;
use crate::st::Key;

/// One entry, by its place in each book that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub base: Option<usize>,
    pub ours: Option<usize>,
    pub theirs: Option<usize>,
}

/// All entries of all three: those of ours in their order, then what is only in theirs or only in the base. What the base has is followed to both
/// sides; of the rest, what agrees is one.
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

/// Entries that neither side has from the base and that are one nevertheless: the same under the same key, then under the same key with something in
/// common, then with title and content in common under any key.
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
            *entry == other || Marks::of(*entry).agree(&Marks::of(other))
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
        .map(|n| (*n, Marks::of(theirs[*n].1)))
        .collect();
    let mut gone = HashSet::new();
    for n in left {
        let marks = Marks::of(ours[n].1);
        let there =
            open.iter().find(|(there, other)| !gone.contains(there) && marks.agree_wholly(other));
        if let Some((there, _)) = there {
            gone.insert(*there);
            found.push((n, *there));
        }
    }
    found
}
