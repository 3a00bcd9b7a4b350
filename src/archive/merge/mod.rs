//! Three-way merge of two states of a lorebook, entry by entry and field by field. `theirs` is
//! merged into `ours`, and `base` is the state from which both are derived.
//!
//! The merged book is the raw text of `ours` with changes: values that `theirs` did not change keep
//! every byte, and changed values are copied from `theirs` byte for byte. Entries are matched by
//! content, not by UID alone. An entry is removed only if one side removed the entry and the other
//! side did not edit it. If both sides changed one value differently, the merge lists both values
//! as a conflict and uses one of them.

mod chat;
mod entries;
mod entry_fields;
mod object;
pub(crate) mod outcome;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use crate::auto_recap::stored::merge_registry::{self, Registries, Uids};
use crate::auto_recap::{active_in, is_queue};
use crate::st::{Edits, Key, Raw, entry_comment};
use entries::{Book, Group, groups, is_entries, keys};
use entry_fields::{FieldChoice, MergedFields, Sides, mix, untouched};
use object::{Part, compose};

pub use chat::merge_chats;
pub use outcome::{
    Conflict, ConflictKind, EditedEntry, EntryName, FieldChange, Merged, RenumberedEntry, Side,
    Unmergeable,
};

/// Merges `theirs` into `ours`. In a conflict, the value of the side `prefer` is used. An entry
/// that one side removed and the other side edited always stays. If the base cannot be read, the
/// books are merged without a base.
pub fn merge_books(
    base: Option<&[u8]>,
    ours: &[u8],
    theirs: &[u8],
    prefer: Side,
) -> Result<Merged, Unmergeable> {
    if ours == theirs || base == Some(theirs) {
        return Ok(Merged { bytes: ours.to_vec(), with_base: base.is_some(), ..Merged::default() });
    }
    let read = |bytes, side| Book::read(bytes).map_err(|why| Unmergeable { side, why });
    let merge = Merge {
        base: base.and_then(|base| Book::read(base).ok()),
        ours: read(ours, Side::Ours)?,
        theirs: read(theirs, Side::Theirs)?,
        prefer,
    };
    Ok(merge.run(ours))
}

struct Merge<'a> {
    base: Option<Book<'a>>,
    ours: Book<'a>,
    theirs: Book<'a>,
    prefer: Side,
}

/// Entry of the merged book. `value` is `None` if the value is that of `ours`.
struct MergedEntry<'a> {
    group: Group,
    key: Key,
    value: Option<Cow<'a, [u8]>>,
}

impl<'a> Merge<'a> {
    fn run(&self, whole: &[u8]) -> Merged {
        let mut out = Merged { with_base: self.base.is_some(), ..Merged::default() };
        let groups = groups(self.base.as_ref(), &self.ours, &self.theirs);
        let stays: Vec<_> = groups.iter().map(|group| self.stays(*group)).collect();
        let keys = keys(self.base.as_ref(), &self.ours, &self.theirs, &groups, &stays);
        let uids = |book: Option<&Book<'_>>, place: fn(&Group) -> Option<usize>| -> Uids {
            let named = groups.iter().enumerate().filter_map(|(n, group)| {
                Some((book?.list.get(place(group)?)?.0.to_string_lossy(), n))
            });
            named.collect()
        };
        let registries = Registries {
            base: uids(self.base.as_ref(), |group| group.base),
            ours: uids(Some(&self.ours), |group| group.ours),
            theirs: uids(Some(&self.theirs), |group| group.theirs),
            now: keys.iter().map(|key| key.as_ref().map(Key::to_string_lossy)).collect(),
        };
        let mut placed = Vec::new();
        for (group, key) in groups.iter().zip(keys) {
            match key {
                Some(key) => placed.push(self.place(*group, key, &registries, &mut out)),
                None => self.gone(*group, &mut out),
            }
        }
        self.look_at_registries(&placed, &mut out);
        let entries = self.entries(&placed);
        out.bytes = self.book(whole, entries, &mut out);
        out
    }

    /// Returns whether an entry is in the merged book. The operation queue of ST-Auto-Recap is not
    /// merged, because it belongs to one chat: the queue stays as in `ours`.
    fn stays(&self, group: Group) -> bool {
        let base = self.base.as_ref().and_then(|base| base.entry(group.base));
        match (self.ours.entry(group.ours), self.theirs.entry(group.theirs)) {
            (Some(_), Some(_)) => true,
            (Some(ours), None) => is_queue(ours) || base.is_none_or(|base| !untouched(base, ours)),
            (None, Some(theirs)) => {
                !is_queue(theirs) && base.is_none_or(|base| !untouched(base, theirs))
            }
            (None, None) => false,
        }
    }

    /// Records an entry that is not in the merged book.
    fn gone(&self, group: Group, out: &mut Merged) {
        if let Some(place) = group.ours {
            let (key, entry) = &self.ours.list[place];
            out.removed.push(named(key, *entry));
        }
        if let Some(theirs) = self.theirs.entry(group.theirs).filter(|entry| is_queue(*entry)) {
            out.queue_left += active_in(theirs);
        }
    }

    fn place(
        &self,
        group: Group,
        key: Key,
        registries: &Registries,
        out: &mut Merged,
    ) -> MergedEntry<'a> {
        let base = self.base.as_ref().and_then(|base| base.entry(group.base));
        let (ours, theirs) = (self.ours.entry(group.ours), self.theirs.entry(group.theirs));
        let key_of = |book: &Book<'_>, place: Option<usize>| Some(book.list.get(place?)?.0.clone());
        let (here, there) = (key_of(&self.ours, group.ours), key_of(&self.theirs, group.theirs));
        let lines = registries.merge(base, ours, theirs, self.prefer);
        let (mut value, from, title) = match (ours, theirs) {
            (Some(ours), Some(theirs)) => {
                let (value, from) = self.both(base, ours, theirs, &key, lines.as_ref(), out);
                (value, from, theirs)
            }
            (None, Some(theirs)) => {
                let entry = named(&key, theirs);
                match base {
                    None => out.added.push(entry),
                    Some(base) => {
                        let sides =
                            Sides { base: Some(Some(base)), ours: None, theirs: Some(theirs) };
                        let value = sides.field_change(String::new(), Some(theirs.as_bytes()));
                        let kind = ConflictKind::RemovedHere;
                        out.conflicts.push(Conflict { entry: Some(entry), kind, value });
                    }
                }
                (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs, theirs)
            }
            (ours, _) => {
                if let (Some(base), Some(ours)) = (base, ours.filter(|entry| !is_queue(*entry))) {
                    let sides = Sides { base: Some(Some(base)), ours: Some(ours), theirs: None };
                    let value = sides.field_change(String::new(), Some(ours.as_bytes()));
                    let (entry, kind) = (Some(named(&key, ours)), ConflictKind::RemovedThere);
                    out.conflicts.push(Conflict { entry, kind, value });
                }
                (None, Side::Ours, ours.unwrap_or(self.ours.entries))
            }
        };
        if let Some(lines) = lines {
            let now = value.as_deref().or(ours.map(|entry| entry.as_bytes())).unwrap_or_default();
            if let Some(changed) = with_field(now, "content", &lines.content) {
                value = Some(Cow::Owned(changed));
            }
            format_lines(&key, base, ours, theirs, &lines, out);
            let entry = named(&key, title);
            out.conflict(Some(&entry), lines.conflicts);
        }
        let old = match from {
            Side::Ours => here.clone(),
            Side::Theirs => there.clone(),
        };
        if old.as_ref().is_some_and(|old| *old != key) {
            let now = value.as_deref().or(ours.map(|entry| entry.as_bytes())).unwrap_or_default();
            if let Some(changed) = with_field(now, "uid", &uid_json(&key)) {
                value = Some(Cow::Owned(changed));
            }
        }
        let before = here.or(there).filter(|before| *before != key);
        out.renumbered.extend(before.map(|before| RenumberedEntry {
            old: before.to_string_lossy(),
            new: key.to_string_lossy(),
            title: named(&key, title).title,
            moved: group.ours.is_some(),
        }));
        MergedEntry { group, key, value }
    }

    /// Merges an entry that both sides have. Returns the merged value, which is `None` if it equals
    /// that of `ours`, and the side whose text the value is based on.
    fn both(
        &self,
        base: Option<Raw<'a>>,
        ours: Raw<'a>,
        theirs: Raw<'a>,
        key: &Key,
        lines: Option<&merge_registry::Merged>,
        out: &mut Merged,
    ) -> (Option<Cow<'a, [u8]>>, Side) {
        if is_queue(ours) || is_queue(theirs) {
            if ours != theirs && is_queue(theirs) {
                out.queue_left += active_in(theirs);
            }
            return (None, Side::Ours);
        }
        if ours == theirs || base == Some(theirs) {
            return (None, Side::Ours);
        }
        let entry = named(key, theirs);
        let skip = |field: &Key| {
            field.as_bytes() == b"uid" || (lines.is_some() && field.as_bytes() == b"content")
        };
        if !(ours.is_object() && theirs.is_object()) {
            let sides = Sides { base: base.map(Some), ours: Some(ours), theirs: Some(theirs) };
            let choice = sides.choice();
            let take = choice == FieldChoice::Theirs
                || (choice == FieldChoice::Conflict && self.prefer == Side::Theirs);
            let merged = if take { theirs } else { ours };
            let value = sides.field_change(String::new(), Some(merged.as_bytes()));
            match choice {
                FieldChoice::Ours => return (None, Side::Ours),
                FieldChoice::Theirs => out.edited.push(EditedEntry { entry, fields: vec![value] }),
                FieldChoice::Conflict => out.conflict(Some(&entry), vec![value]),
            }
            return if take {
                (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs)
            } else {
                (None, Side::Ours)
            };
        }
        let MergedFields { value, changed, conflicts } = mix(base, ours, theirs, self.prefer, skip);
        out.conflict(Some(&entry), conflicts);
        let anything = !changed.is_empty();
        if anything {
            out.edited.push(EditedEntry { entry, fields: changed });
        }
        // An entry that only `theirs` changed is copied byte for byte.
        if base == Some(ours) {
            return (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs);
        }
        let value = Some(value).filter(|value| value != ours.as_bytes());
        (value.map(Cow::Owned), Side::Ours)
    }

    /// Records the registries that list entries by UIDs that the merge changed, in a format in
    /// which the UIDs cannot be replaced.
    fn look_at_registries(&self, placed: &[MergedEntry<'_>], out: &mut Merged) {
        let old: HashSet<_> = out.renumbered.iter().map(|entry| entry.old.as_str()).collect();
        if old.is_empty() {
            return;
        }
        for placed in placed {
            let theirs = self.theirs.entry(placed.group.theirs);
            if theirs.is_some_and(|entry| merge_registry::keeps_old_uids(entry, &old)) {
                out.not_renumbered.extend(theirs.map(|entry| named(&placed.key, entry)));
            }
        }
    }

    /// Returns the merged value of `entries`. Entries of `ours` stay at their positions; new
    /// entries are inserted where SillyTavern would write them.
    fn entries(&self, placed: &[MergedEntry<'a>]) -> Vec<u8> {
        let stays_put = |placed: &MergedEntry<'_>| {
            placed.group.ours.filter(|n| self.ours.list[*n].0 == placed.key)
        };
        let mut parts: Vec<(Key, Part<'a>)> = Vec::new();
        for placed in placed {
            if let Some(n) = stays_put(placed) {
                parts.push((placed.key.clone(), Part::Own(n, placed.value.clone())));
            }
        }
        for placed in placed.iter().filter(|placed| stays_put(placed).is_none()) {
            let there = placed.group.theirs.filter(|n| self.theirs.list[*n].0 == placed.key);
            let raw_key = match there {
                Some(n) => Cow::Borrowed(self.theirs.raw_keys[n]),
                None => Cow::Owned(format!("\"{}\"", placed.key.to_string_lossy()).into_bytes()),
            };
            let ours = || self.ours.entry(placed.group.ours).map(|entry| entry.as_bytes());
            let value = placed.value.clone().or_else(|| ours().map(Cow::Borrowed));
            let value = value.unwrap_or(Cow::Borrowed(b"null"));
            let at = match index(&placed.key) {
                Some(number) => {
                    let before =
                        |(key, _): &(Key, Part<'_>)| index(key).is_some_and(|n| n < number);
                    parts.iter().rposition(before).map_or(0, |last| last + 1)
                }
                None => parts.len(),
            };
            parts.insert(at, (placed.key.clone(), Part::New(raw_key, value)));
        }
        let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
        compose(self.ours.entries, &parts, self.theirs.entries)
    }

    /// Returns the merged file, with these entries and the merged other values of the book.
    fn book(&self, whole: &[u8], entries: Vec<u8>, out: &mut Merged) -> Vec<u8> {
        let is_entries_key = |key: &Key| key.as_bytes() == b"entries";
        let base = self.base.as_ref().map(|base| base.root);
        let mixed = mix(base, self.ours.root, self.theirs.root, self.prefer, is_entries_key);
        out.book = mixed.changed;
        out.conflict(None, mixed.conflicts);
        let root = Raw::parse(&mixed.value);
        let place = root.and_then(|root| {
            let member = root.members()?.into_iter().find(is_entries)?;
            Some(member.value.span_in(&mixed.value))
        });
        let place = place.unwrap_or(0..0);
        let span = self.ours.root.span_in(whole);
        [
            &whole[..span.start],
            &mixed.value[..place.start],
            &entries,
            &mixed.value[place.end..],
            &whole[span.end..],
        ]
        .concat()
    }
}

/// Records the merged text of a registry as an edit, if the text differs from that of `ours`.
fn format_lines(
    key: &Key,
    base: Option<Raw<'_>>,
    ours: Option<Raw<'_>>,
    theirs: Option<Raw<'_>>,
    lines: &merge_registry::Merged,
    out: &mut Merged,
) {
    let of = |entry: Option<Raw<'_>>| {
        entry.and_then(|entry| entry.get("content")).map(|text| text.as_bytes().to_vec())
    };
    let Some(entry) = theirs.or(ours).map(|entry| named(key, entry)) else { return };
    let field = FieldChange {
        field: "content".into(),
        base: of(base),
        ours: of(ours),
        theirs: of(theirs),
        merged: Some(lines.content.clone().into_bytes()),
    };
    if ours.is_none() || field.ours == field.merged {
        return;
    }
    match out.edited.iter_mut().find(|edited| edited.entry.uid == entry.uid) {
        Some(edited) => edited.fields.push(field),
        None => out.edited.push(EditedEntry { entry, fields: vec![field] }),
    }
}

fn named(key: &Key, entry: Raw<'_>) -> EntryName {
    let title = entry_comment(entry).unwrap_or_default();
    EntryName { uid: key.to_string_lossy(), title }
}

/// Returns an entry with one field changed, or `None` if the field already has this value or the
/// entry is not an object.
fn with_field(entry: &[u8], field: &str, value: &str) -> Option<Vec<u8>> {
    let raw = Raw::parse(entry).filter(Raw::is_object)?;
    if raw.get(field).is_some_and(|now| now.as_str() == value) {
        return None;
    }
    let mut edits = Edits::new(entry);
    edits.set(raw, field, value);
    Some(edits.apply())
}

/// Converts a key to a JSON value for the field `uid`.
fn uid_json(key: &Key) -> String {
    let text = key.to_string_lossy();
    match text.parse::<u64>() {
        Ok(number) if number.to_string() == text => text,
        _ => serde_json::to_string(&text).unwrap_or_default(),
    }
}

/// Returns the key as a number, or `None` if the key is not an array index in JavaScript. Array
/// indices come first in JavaScript objects, in ascending order.
fn index(key: &Key) -> Option<u32> {
    let text = key.to_string_lossy();
    text.parse::<u32>().ok().filter(|number| *number < u32::MAX && number.to_string() == text)
}
