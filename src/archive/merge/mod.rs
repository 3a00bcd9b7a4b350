//! Two states of a lorebook made one, three-way: entry by entry, field by field.
//!
//! The merged book is ours with changes in the raw text: what theirs did not change keeps every
//! byte, and what comes from theirs comes byte for byte. Entries are one by what they say and not
//! by their UID alone (`same_entry`). An entry goes only if one side removed it and the other did
//! not edit it; where both sides changed one value differently, both are listed and one of them
//! stays.

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
use entry_fields::{Choice, Mixed, Sides, mix, untouched};
use object::{Part, compose};

pub use chat::merge_chats;
pub use outcome::{
    Conflict, ConflictKind, Edited, FieldChange, Merged, Named, Renumbered, Side, Unmergeable,
};

/// Merges `theirs` into `ours`. Where both changed one value, the preferred side's is taken. An entry that one side removed and the other
/// edited stays in any case. A base that cannot be read is as good as none.
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

/// An entry of the merged book: its key, and its value if that is not as in ours.
struct Placed<'a> {
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

    /// Whether an entry is in the merged book. The queue is not merged: it is work on a chat, and stays with ours.
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

    /// An entry that is not in the merged book.
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
    ) -> Placed<'a> {
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
                        let value = sides.told(String::new(), Some(theirs.as_bytes()));
                        let kind = ConflictKind::RemovedHere;
                        out.conflicts.push(Conflict { entry: Some(entry), kind, value });
                    }
                }
                (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs, theirs)
            }
            (ours, _) => {
                if let (Some(base), Some(ours)) = (base, ours.filter(|entry| !is_queue(*entry))) {
                    let sides = Sides { base: Some(Some(base)), ours: Some(ours), theirs: None };
                    let value = sides.told(String::new(), Some(ours.as_bytes()));
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
            told_lines(&key, base, ours, theirs, &lines, out);
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
        out.renumbered.extend(before.map(|before| Renumbered {
            old: before.to_string_lossy(),
            new: key.to_string_lossy(),
            title: named(&key, title).title,
            moved: group.ours.is_some(),
        }));
        Placed { group, key, value }
    }

    /// An entry that both have: its value if it is not as in ours, and whose it is at bottom.
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
            let take = choice == Choice::Theirs
                || (choice == Choice::Conflict && self.prefer == Side::Theirs);
            let merged = if take { theirs } else { ours };
            let value = sides.told(String::new(), Some(merged.as_bytes()));
            match choice {
                Choice::Ours => return (None, Side::Ours),
                Choice::Theirs => out.edited.push(Edited { entry, fields: vec![value] }),
                Choice::Conflict => out.conflict(Some(&entry), vec![value]),
            }
            return if take {
                (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs)
            } else {
                (None, Side::Ours)
            };
        }
        let Mixed { value, changed, conflicts } = mix(base, ours, theirs, self.prefer, skip);
        out.conflict(Some(&entry), conflicts);
        let anything = !changed.is_empty();
        if anything {
            out.edited.push(Edited { entry, fields: changed });
        }
        // An entry that only theirs changed is theirs, byte for byte.
        if base == Some(ours) {
            return (Some(Cow::Borrowed(theirs.as_bytes())), Side::Theirs);
        }
        let value = Some(value).filter(|value| value != ours.as_bytes());
        (value.map(Cow::Owned), Side::Ours)
    }

    /// Registries in JSON name entries by UIDs that may be others now.
    fn look_at_registries(&self, placed: &[Placed<'_>], out: &mut Merged) {
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

    /// The value of `entries`: those of ours in their places, what comes where SillyTavern would write it.
    fn entries(&self, placed: &[Placed<'a>]) -> Vec<u8> {
        let stays_put =
            |placed: &Placed<'_>| placed.group.ours.filter(|n| self.ours.list[*n].0 == placed.key);
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

    /// The whole file: the entries, and the book's other values.
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

/// The text of a registry that is not as in ours.
fn told_lines(
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
        None => out.edited.push(Edited { entry, fields: vec![field] }),
    }
}

fn named(key: &Key, entry: Raw<'_>) -> Named {
    let title = entry_comment(entry).unwrap_or_default();
    Named { uid: key.to_string_lossy(), title }
}

/// An entry with another value of one field; none if it has it already, or is no entry.
fn with_field(entry: &[u8], field: &str, value: &str) -> Option<Vec<u8>> {
    let raw = Raw::parse(entry).filter(Raw::is_object)?;
    if raw.get(field).is_some_and(|now| now.as_str() == value) {
        return None;
    }
    let mut edits = Edits::new(entry);
    edits.set(raw, field, value);
    Some(edits.apply())
}

/// A key as the value of `uid`.
fn uid_json(key: &Key) -> String {
    let text = key.to_string_lossy();
    match text.parse::<u64>() {
        Ok(number) if number.to_string() == text => text,
        _ => serde_json::to_string(&text).unwrap_or_default(),
    }
}

/// The number that a key is.
fn index(key: &Key) -> Option<u32> {
    let text = key.to_string_lossy();
    text.parse::<u32>().ok().filter(|number| *number < u32::MAX && number.to_string() == text)
}
