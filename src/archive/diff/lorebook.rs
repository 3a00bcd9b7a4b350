//! Changes of lorebook entries, matched by UID and content.
//!
//! A UID alone does not identify an entry: SillyTavern reuses the UIDs of deleted entries. Two
//! values under one key are the same entry only if their title or content is similar. An entry that
//! has another key than before was moved.

use std::collections::{HashMap, HashSet};

use super::value::{Rules, fields, members, same, side_by_side};
use super::{
    Change, ChangeKind, Location, MessagePlace, Part, Root, Values, bytes_of, objects, rewritten,
    value_change, whole_part_change,
};
use crate::archive::entry_identity::{Entries, pairs};
use crate::st::{Key, Raw};

/// Returns all changes: first those of entries, sorted by key, then those of the book's other
/// values.
pub(super) fn lorebook(books: Values<'_>) -> Vec<Change<'_>> {
    if books[0] == books[1] {
        return Vec::new();
    }
    let Some([old, new]) = objects(books) else {
        return vec![whole_part_change(Part::Lorebook, Root::Book, books)];
    };
    let entries = (members(old.get("entries")), members(new.get("entries")));
    let by_entry = entries.0.zip(entries.1).map(|(old, new)| by_entry(&old, &new));
    let cut = by_entry.is_some();
    let mut changes = by_entry.unwrap_or_default();
    let [old, new] = [old, new].map(|book| members(Some(book)).unwrap_or_default());
    for (key, old, new) in side_by_side(&old, &new) {
        let unchanged = matches!((old, new), (Some(old), Some(new)) if same(old, new));
        if unchanged || (cut && key.as_bytes() == b"entries") {
            continue;
        }
        let location = Location { root: Root::Book, keys: vec![key.clone()], version: None };
        changes.push(value_change(Part::Lorebook, location, bytes_of([old, new])));
    }
    if changes.is_empty() {
        changes.push(rewritten(Part::Lorebook, Root::Book, books));
    }
    changes
}

fn by_entry<'a>(old: &Entries<'a>, new: &Entries<'a>) -> Vec<Change<'a>> {
    let (mut changes, mut moves) = (Vec::new(), Vec::new());
    let (mut left, mut arrived) = (HashSet::new(), HashSet::new());
    for (n, to) in pairs(old, new) {
        let ((from, before), (key, after)) = (&old[n], &new[to]);
        left.insert(from);
        arrived.insert(key);
        if from != key {
            moves.extend(entry_change(Some((from, *before)), Some((key, *after))));
        } else if before != after {
            changes.push(edited(key, key, *before, *after));
        }
    }
    changes.append(&mut moves);
    let without = |book: &'_ Entries<'a>, taken: &HashSet<&Key>| -> Vec<(Key, Raw<'a>)> {
        book.iter().filter(|(key, _)| !taken.contains(key)).cloned().collect()
    };
    // Entries without a counterpart in the other book: removed entries and added entries.
    let (gone, come) = (without(old, &left), without(new, &arrived));
    let came: HashMap<&Key, Raw<'a>> = come.iter().map(|(key, entry)| (key, *entry)).collect();
    let went: HashSet<&Key> = gone.iter().map(|(key, _)| key).collect();
    for (key, entry) in &gone {
        changes.push(match came.get(key) {
            Some(other) => plain(ChangeKind::Reused, key, [Some(*entry), Some(*other)]),
            None => plain(ChangeKind::Removed, key, [Some(*entry), None]),
        });
    }
    let new = come.iter().filter(|(key, _)| !went.contains(key));
    changes.extend(new.map(|(key, entry)| plain(ChangeKind::Added, key, [None, Some(*entry)])));
    changes.sort_by_cached_key(|change| match &change.place {
        MessagePlace::Entry(key) => {
            let text = key.to_string_lossy();
            (text.parse::<u64>().unwrap_or(u64::MAX), text)
        }
        _ => (u64::MAX, String::new()),
    });
    changes
}

/// Returns the change of one entry, given its key and value before and after. Returns `None` if the
/// entry exists on neither side.
pub fn entry_change<'a>(
    before: Option<(&Key, Raw<'a>)>,
    after: Option<(&Key, Raw<'a>)>,
) -> Option<Change<'a>> {
    match (before, after) {
        (Some((from, before)), Some((to, after))) => {
            let mut change = edited(from, to, before, after);
            if from != to {
                change.kinds.retain(|kind| *kind != ChangeKind::Rewritten);
                change.kinds.insert(0, ChangeKind::Moved);
            }
            Some(change)
        }
        (None, Some((key, value))) => Some(plain(ChangeKind::Added, key, [None, Some(value)])),
        (Some((key, value)), None) => Some(plain(ChangeKind::Removed, key, [Some(value), None])),
        (None, None) => None,
    }
}

fn plain<'a>(kind: ChangeKind, key: &Key, values: [Option<Raw<'a>>; 2]) -> Change<'a> {
    let place = MessagePlace::Entry(key.clone());
    let from = values[0].map(|_| place.clone());
    let [before, after] = bytes_of(values);
    let (part, kinds) = (Part::Lorebook, vec![kind]);
    Change { part, kinds, place, from, before, after, fields: Vec::new() }
}

fn edited<'a>(from: &Key, to: &Key, before: Raw<'a>, after: Raw<'a>) -> Change<'a> {
    let mut found = Vec::new();
    if before.is_object() && after.is_object() {
        found = fields(before, after, Rules::PLAIN);
    }
    for field in &mut found {
        field.kind = if field.is(&["comment"]) {
            ChangeKind::Renamed
        } else if field.is(&["order"]) || field.is(&["displayIndex"]) {
            ChangeKind::Order
        } else {
            ChangeKind::Edited
        };
    }
    let mut kinds: Vec<_> = found.iter().map(|field| field.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        let kind = if same(before, after) { ChangeKind::Rewritten } else { ChangeKind::Edited };
        kinds.push(kind);
    }
    let from = Some(MessagePlace::Entry(from.clone()));
    let change = plain(ChangeKind::Edited, to, [Some(before), Some(after)]);
    Change { kinds, from, fields: found, ..change }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_changes(before: &str, after: &str) -> Vec<String> {
        let book = |entries: &str| format!(r#"{{"entries":{{{entries}}}}}"#).into_bytes();
        let (before, after) = (book(before), book(after));
        let key = |place: &MessagePlace| match place {
            MessagePlace::Entry(key) => key.to_string_lossy(),
            other => format!("{other:?}"),
        };
        lorebook([Some(&before), Some(&after)])
            .iter()
            .map(|change| {
                let from = change.from.as_ref().map(key).filter(|from| *from != key(&change.place));
                let from = from.map(|from| format!("{from} → ")).unwrap_or_default();
                format!("{:?} {from}{}", change.kinds, key(&change.place))
            })
            .collect()
    }

    const TIDE: &str =
        r#"{"uid":3,"comment":"Tide","content":"The tide waits for nobody at all","order":1}"#;

    #[test]
    fn changed_entry_is_reported_as_one_change_not_as_removed_and_added() {
        let is = |entry: &str| format!(r#""3":{entry}"#);
        for (change, expected) in [
            (TIDE.replace("\"Tide\"", "\"Ebb\""), "[Renamed] 3"),
            (TIDE.replace("nobody", "somebody"), "[Edited] 3"),
            (TIDE.replace("\"order\":1", "\"order\":9"), "[Order] 3"),
            (
                TIDE.replace("\"order\":1", "\"order\":9").replace("\"Tide\"", "\"Ebb\""),
                "[Renamed, Order] 3",
            ),
            (TIDE.replace("\"order\":1", "\"order\": 1"), "[Rewritten] 3"),
        ] {
            assert_eq!(format_changes(&is(TIDE), &is(&change)), [expected], "{change}");
        }
    }

    #[test]
    fn reused_uid_is_not_treated_as_the_same_entry() {
        let gull =
            r#"{"uid":3,"comment":"Gull","content":"Grey birds scream above each harbour wall"}"#;
        assert_eq!(
            format_changes(&format!(r#""3":{TIDE}"#), &format!(r#""3":{gull}"#)),
            ["[Reused] 3"]
        );
        // The old entry was moved, and a new entry has its UID.
        let moved = format!(r#""3":{gull},"5":{}"#, TIDE.replace("\"uid\":3", "\"uid\":5"));
        assert_eq!(
            format_changes(&format!(r#""3":{TIDE}"#), &moved),
            ["[Added] 3", "[Moved, Edited] 3 → 5"]
        );
    }

    #[test]
    fn swapped_entries_count_as_moved_and_a_copied_entry_counts_as_added() {
        let sea = |uid: u8| TIDE.replace("Tide", "The sea").replace(":3,", &format!(":{uid},"));
        let gulls = |uid: u8| {
            format!(r#"{{"uid":{uid},"comment":"The gulls","content":"Grey birds scream"}}"#)
        };
        let book = |a: &str, b: &str| format!(r#""3":{a},"5":{b}"#);
        let changed_places = format_changes(&book(&sea(3), &gulls(5)), &book(&gulls(3), &sea(5)));
        assert_eq!(changed_places, ["[Moved, Edited] 5 → 3", "[Moved, Edited] 3 → 5"]);
        // A copy under another key is an added entry, even if the original was edited.
        let sound = sea(3).replace("nobody", "some");
        let copied = format_changes(&format!(r#""3":{}"#, sea(3)), &book(&sound, &sea(5)));
        assert_eq!(copied, ["[Edited] 3", "[Added] 5"]);
    }
}
