//! The lines of a merge of two lorebooks.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::merge::{ConflictKind, EntryName, FieldChange, Merged};

/// The line of a change that a merge makes, or of a conflict.
#[derive(Serialize, Default)]
pub struct MergeLine<'a> {
    /// The UID of the entry, or null if the change is not in an entry but in another part of the
    /// lorebook.
    uid: Option<&'a str>,
    title: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<&'static str>,
    field: Option<&'a str>,
    base: Option<Box<RawValue>>,
    ours: Option<Box<RawValue>>,
    theirs: Option<Box<RawValue>>,
    merged: Option<Box<RawValue>>,
}

impl<'a> MergeLine<'a> {
    /// Returns the lines of all changes and conflicts.
    pub fn all(merged: &'a Merged) -> Vec<Self> {
        let added = merged.added.iter().map(|entry| Self::of("added", Some(entry)));
        let removed = merged.removed.iter().map(|entry| Self::of("removed", Some(entry)));
        let edited = merged.edited.iter().flat_map(|edited| {
            edited.fields.iter().map(|field| Self::of("edited", Some(&edited.entry)).value(field))
        });
        let book = merged.book.iter().map(|field| Self::of("edited", None).value(field));
        let renumbered = merged.renumbered.iter().map(|entry| Self {
            uid: Some(&entry.new),
            title: &entry.title,
            kind: "renumbered",
            from: Some(&entry.old),
            ..Self::default()
        });
        let conflicts = merged.conflicts.iter().map(|conflict| Self {
            removed: match conflict.kind {
                ConflictKind::Values => None,
                ConflictKind::RemovedHere => Some("ours"),
                ConflictKind::RemovedThere => Some("theirs"),
            },
            ..Self::of("conflict", conflict.entry.as_ref()).value(&conflict.value)
        });
        added.chain(removed).chain(edited).chain(book).chain(renumbered).chain(conflicts).collect()
    }

    fn of(kind: &'static str, entry: Option<&'a EntryName>) -> Self {
        let uid = entry.map(|entry| entry.uid.as_str());
        let title = entry.map_or("", |entry| entry.title.as_str());
        Self { uid, title, kind, ..Self::default() }
    }

    fn value(self, value: &'a FieldChange) -> Self {
        let raw = |bytes: &Option<Vec<u8>>| {
            let text = String::from_utf8(bytes.clone()?).ok()?;
            RawValue::from_string(text).ok()
        };
        Self {
            field: Some(value.field.as_str()).filter(|field| !field.is_empty()),
            base: raw(&value.base),
            ours: raw(&value.ours),
            theirs: raw(&value.theirs),
            merged: raw(&value.merged),
            ..self
        }
    }
}
