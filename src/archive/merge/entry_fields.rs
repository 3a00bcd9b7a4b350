//! Merges two JSON objects field by field.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::diff::value::same;
use super::object::{Part, compose};
use super::{FieldChange, Side};
use crate::st::{Edits, Key, Member, Raw, item_spans};

/// Fields that ST-Auto-Recap rewrites in every entry when it reorders a lorebook. Different values
/// of these fields are never a conflict. A change of these fields does not count as an edit, so the
/// other side can still remove the entry.
const CHURN: [&str; 2] = ["order", "displayIndex"];
/// Fields whose value is a list that is merged as a set of strings.
const SETS: [&str; 2] = ["key", "keysecondary"];

/// The value of one field in all three books. `base` is `None` if there is no base, and
/// `Some(None)` if the base does not have the field.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub base: Option<Option<Raw<'a>>>,
    pub ours: Option<Raw<'a>>,
    pub theirs: Option<Raw<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldChoice {
    Ours,
    Theirs,
    Conflict,
}

impl<'a> Sides<'a> {
    pub(super) fn choice(&self) -> FieldChoice {
        let Self { base, ours, theirs } = *self;
        match base {
            _ if alike(ours, theirs) => FieldChoice::Ours,
            Some(base) if alike(theirs, base) => FieldChoice::Ours,
            Some(base) if alike(ours, base) => FieldChoice::Theirs,
            // Without a base, it is unknown whether one side removed the value or the other side
            // added it. The value stays.
            None if ours.is_none() => FieldChoice::Theirs,
            None if theirs.is_none() => FieldChoice::Ours,
            _ => FieldChoice::Conflict,
        }
    }

    pub(super) fn field_change(&self, field: String, merged: Option<&[u8]>) -> FieldChange {
        let bytes = |value: Option<Raw<'_>>| value.map(|value| value.as_bytes().to_vec());
        FieldChange {
            field,
            base: bytes(self.base.flatten()),
            ours: bytes(self.ours),
            theirs: bytes(self.theirs),
            merged: merged.map(<[u8]>::to_vec),
        }
    }
}

fn alike(a: Option<Raw<'_>>, b: Option<Raw<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    }
}

#[derive(Default)]
pub(super) struct MergedFields {
    pub value: Vec<u8>,
    pub changed: Vec<FieldChange>,
    pub conflicts: Vec<FieldChange>,
}

/// Merges the members of two objects into the text of `ours`. Members for which `skip` returns true
/// stay as in `ours`.
pub(super) fn mix(
    base: Option<Raw<'_>>,
    ours: Raw<'_>,
    theirs: Raw<'_>,
    prefer: Side,
    skip: impl Fn(&Key) -> bool,
) -> MergedFields {
    let (own, other) = (ours.members().unwrap_or_default(), theirs.members().unwrap_or_default());
    let before = base.map(|base| base.members().unwrap_or_default());
    let (mut merged, mut parts) = (MergedFields::default(), Vec::new());
    // If a key is repeated, the last value counts. If the merge removes this member, it removes the
    // repeated ones too.
    let mut gone: HashSet<&Key> = HashSet::new();
    for (n, member) in own.iter().enumerate() {
        let counts = !own[n + 1..].iter().any(|later| later.key == member.key);
        if !counts || skip(&member.key) {
            parts.push(Part::Own(n, None));
            continue;
        }
        let sides = Sides {
            base: before.as_ref().map(|before| last(before, &member.key)),
            ours: Some(member.value),
            theirs: last(&other, &member.key),
        };
        match merged.settle(&member.key, sides, prefer) {
            MergedValue::Ours => parts.push(Part::Own(n, None)),
            MergedValue::Is(None) => {
                gone.insert(&member.key);
            }
            MergedValue::Is(Some(value)) => parts.push(Part::Own(n, Some(value))),
        }
    }
    parts.retain(|part| !matches!(part, Part::Own(n, _) if gone.contains(&own[*n].key)));
    for (n, member) in other.iter().enumerate() {
        let counts = !other[n + 1..].iter().any(|later| later.key == member.key);
        if !counts || skip(&member.key) || last(&own, &member.key).is_some() {
            continue;
        }
        let sides = Sides {
            base: before.as_ref().map(|before| last(before, &member.key)),
            ours: None,
            theirs: Some(member.value),
        };
        if let MergedValue::Is(Some(value)) = merged.settle(&member.key, sides, prefer) {
            parts.push(Part::New(member.raw_key.into(), value));
        }
    }
    MergedFields { value: compose(ours, &parts, theirs), ..merged }
}

enum MergedValue<'a> {
    Ours,
    Is(Option<Cow<'a, [u8]>>),
}

impl MergedFields {
    fn settle<'a>(&mut self, key: &Key, sides: Sides<'a>, prefer: Side) -> MergedValue<'a> {
        let is = |names: &[&str]| names.iter().any(|name| key.as_bytes() == name.as_bytes());
        let theirs = || sides.theirs.map(|value| Cow::Borrowed(value.as_bytes()));
        let change = |merged: Option<&[u8]>| sides.field_change(key.to_string_lossy(), merged);
        let value = match sides.choice() {
            FieldChoice::Ours => return MergedValue::Ours,
            FieldChoice::Theirs => theirs(),
            FieldChoice::Conflict if is(&CHURN) => return MergedValue::Ours,
            FieldChoice::Conflict => match united(sides).filter(|_| is(&SETS)) {
                Some(list) => Some(Cow::Owned(list)),
                None if prefer == Side::Ours => {
                    self.conflicts.push(change(sides.ours.map(|value| value.as_bytes())));
                    return MergedValue::Ours;
                }
                None => {
                    self.conflicts.push(change(theirs().as_deref()));
                    return MergedValue::Is(theirs());
                }
            },
        };
        self.changed.push(change(value.as_deref()));
        MergedValue::Is(value)
    }
}

/// Returns the value of a key. If the key is repeated, the last value counts, as in JavaScript.
fn last<'a>(members: &[Member<'a>], key: &Key) -> Option<Raw<'a>> {
    members.iter().rev().find(|member| member.key == *key).map(|member| member.value)
}

/// Merges two lists of strings as sets. The result is the list of `ours`, without the strings that
/// `theirs` removed and with the strings that `theirs` added. Returns `None` if a value is not a
/// list of strings, or there is no base.
fn united(sides: Sides<'_>) -> Option<Vec<u8>> {
    let texts = |list: Raw<'_>| -> Option<Vec<Key>> {
        list.items()?.iter().map(|item| Key::decode(item.as_bytes())).collect()
    };
    let (ours, theirs) = (sides.ours?, sides.theirs?);
    let (before, here, there) = (texts(sides.base??)?, texts(ours)?, texts(theirs)?);
    let (before, now): (HashSet<_>, HashSet<_>) = (before.iter().collect(), there.iter().collect());
    let mut edits = Edits::new(ours.as_bytes());
    edits.retain(&item_spans(ours, ours.as_bytes()), |n| {
        !before.contains(&here[n]) || now.contains(&here[n])
    });
    let mut list = edits.apply();
    let mut known: HashSet<&Key> = here.iter().collect();
    for (item, text) in theirs.items()?.iter().zip(&there) {
        if !before.contains(text) && known.insert(text) {
            let mut edits = Edits::new(&list);
            edits.insert_last(Raw::parse(&list)?, item.as_str());
            list = edits.apply();
        }
    }
    Some(list)
}

/// Returns whether the entry was not edited. Changes of its UID and of its position do not count as
/// edits.
pub(super) fn untouched(before: Raw<'_>, after: Raw<'_>) -> bool {
    let (Some(mut old), Some(mut new)) = (before.members(), after.members()) else {
        return same(before, after);
    };
    for list in [&mut old, &mut new] {
        let is_aside = |name: &[u8]| name == b"uid" || CHURN.iter().any(|n| n.as_bytes() == name);
        list.retain(|member| !is_aside(member.key.as_bytes()));
    }
    let is_in = |list: &[Member<'_>], other: &[Member<'_>]| {
        list.iter().all(|member| alike(last(list, &member.key), last(other, &member.key)))
    };
    is_in(&old, &new) && is_in(&new, &old)
}
