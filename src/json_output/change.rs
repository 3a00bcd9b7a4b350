//! The lines of `diff`. A program that applies them to the values before gets the values after
//! (docs/json.md).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::SnapshotId;
use crate::archive::diff::{
    Change, ChangeKind, Field, Location, MessagePlace, Part, Root, joined, set_change,
};
use crate::st::Raw;
use crate::verbs::diff::Comparison;

/// The line of a comparison of two moments. The lines of its changes follow.
#[derive(Serialize)]
pub struct ComparisonLine<'a> {
    before: Option<SnapshotId>,
    after: Option<SnapshotId>,
    before_moment: Option<&'a str>,
    after_moment: Option<&'a str>,
    before_at: Option<usize>,
    after_at: Option<usize>,
    timeline: Option<&'a str>,
    shared: Option<usize>,
    changes: usize,
    counts: BTreeMap<Part, BTreeMap<&'static str, usize>>,
}

impl<'a> ComparisonLine<'a> {
    pub(super) fn new(comparison: &'a Comparison, changes: &[Change<'_>]) -> Self {
        let (before, after) = (comparison.before.as_ref(), comparison.after.as_ref());
        let mut counts: BTreeMap<_, BTreeMap<_, usize>> = BTreeMap::new();
        for change in changes {
            let part = counts.entry(change.part).or_default();
            *part.entry(kind_word(change.kind())).or_default() += 1;
        }
        Self {
            before: before.map(|it| it.snapshot.id),
            after: after.map(|it| it.snapshot.id),
            before_moment: before.map(|it| it.moment.as_str()),
            after_moment: after.map(|it| it.moment.as_str()),
            before_at: before.and_then(|it| it.at),
            after_at: after.and_then(|it| it.at),
            timeline: after.or(before).map(|it| it.snapshot.timeline.as_str()),
            shared: comparison.shared,
            changes: changes.len(),
            counts,
        }
    }
}

/// The line of a change between two moments. It has exactly one of `index`, `uid` and `path`.
#[derive(Serialize)]
pub struct ChangeLine {
    part: Part,
    kind: &'static str,
    also: Vec<&'static str>,
    #[serde(flatten)]
    place: PlaceFields,
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
    fields: Vec<FieldObject>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PlaceFields {
    Message {
        index: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<usize>,
    },
    Entry {
        uid: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    Value {
        path: String,
        of: Root,
        keys: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<i64>,
    },
}

/// A changed field. If a value is absent, `before` or `after` is left out, because null is a value
/// too.
#[derive(Serialize)]
struct FieldObject {
    field: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<Box<RawValue>>>,
}

impl From<&Change<'_>> for ChangeLine {
    fn from(change: &Change<'_>) -> Self {
        Self {
            part: change.part,
            kind: kind_word(change.kind()),
            also: change.kinds.iter().skip(1).map(|kind| kind_word(*kind)).collect(),
            place: PlaceFields::from(change),
            before: change.before.map(raw),
            after: change.after.map(raw),
            fields: change.fields.iter().map(FieldObject::from).collect(),
        }
    }
}

impl From<&Change<'_>> for PlaceFields {
    fn from(change: &Change<'_>) -> Self {
        match (&change.place, &change.from) {
            (MessagePlace::Message(index), from) => {
                let from = match from {
                    Some(MessagePlace::Message(from)) => Some(*from),
                    _ => None,
                };
                Self::Message { index: *index, from }
            }
            (MessagePlace::Entry(key), from) => {
                let from = match from {
                    Some(MessagePlace::Entry(from)) => Some(from.to_string_lossy()),
                    _ => None,
                };
                Self::Entry { uid: key.to_string_lossy(), from }
            }
            (MessagePlace::Value(location), _) => Self::Value {
                path: path(location),
                of: location.root,
                keys: location.keys.iter().map(|key| key.to_string_lossy()).collect(),
                version: location.version,
            },
        }
    }
}

impl From<&Field<'_>> for FieldObject {
    fn from(field: &Field<'_>) -> Self {
        let value = |value: Raw<'_>| raw(value.as_bytes());
        let sets = field.before.zip(field.after).and_then(|(old, new)| set_change(old, new));
        let list = |items: Vec<Raw<'_>>| items.into_iter().map(value).collect();
        let (added, removed) = sets.unzip();
        Self {
            field: joined(&field.path),
            kind: kind_word(field.kind),
            before: field.before.map(value),
            after: field.after.map(value),
            added: added.map(list),
            removed: removed.map(list),
        }
    }
}

/// Returns the word that JSON uses for a kind of change.
pub fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Moved => "moved",
        ChangeKind::Reused => "reused",
        ChangeKind::Edited => "edited",
        ChangeKind::Swipe => "swipe",
        ChangeKind::Hidden => "hidden",
        ChangeKind::Shown => "shown",
        ChangeKind::Recap => "recap",
        ChangeKind::Link => "link",
        ChangeKind::Renamed => "renamed",
        ChangeKind::Order => "order",
        ChangeKind::Rewritten => "rewritten",
    }
}

/// Returns a location as text: `variables.tide`, `header.user_name`, `recaps.versions[3]`.
pub fn path(location: &Location) -> String {
    let root = match location.root {
        Root::Header => Some("header"),
        Root::Group => Some("group"),
        Root::Book if location.keys.is_empty() => Some("book"),
        Root::Card if location.keys.is_empty() => Some("card"),
        Root::File if location.keys.is_empty() => Some("file"),
        Root::Picture => Some("picture"),
        Root::Book | Root::Metadata | Root::Card | Root::File => None,
    };
    let keys = location.keys.iter().map(|key| key.to_string_lossy());
    let text = root.map(str::to_owned).into_iter().chain(keys).collect::<Vec<_>>().join(".");
    match location.version {
        Some(version) => format!("{text}[{version}]"),
        None => text,
    }
}

/// Returns a value exactly as it is in the file but on one line, or as a string if the value is not
/// JSON. Line breaks can be removed, because JSON strings cannot contain them.
fn raw(bytes: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(bytes);
    let json = text.trim();
    let is_json = serde_json::from_str::<&RawValue>(json).is_ok();
    let is_long = json.contains(['\n', '\r']);
    let one_line: String =
        if is_long { json.lines().map(str::trim_start).collect() } else { json.to_owned() };
    let verbatim = RawValue::from_string(one_line).ok().filter(|_| is_json);
    verbatim
        .or_else(|| serde_json::value::to_raw_value(text.as_ref()).ok())
        .unwrap_or_else(|| RawValue::NULL.to_owned())
}
