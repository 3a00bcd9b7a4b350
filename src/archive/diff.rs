//! What changed between two states: which messages, lorebook entries and metadata values were added, removed or edited.
//!
//! Messages are aligned by content, so that one that was inserted does not make all that follow it look changed.
//! Nothing is left out: where bytes differ and no value does, that is a change too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Contents, Role};
use crate::st::{self, Captured, Chat, Raw, TimelineName};

/// After this long the alignment settles for what it has.
const PATIENCE: Duration = Duration::from_secs(2);

/// What part of a state a change is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A message of the chat.
    Message,
    /// An entry of the lorebook, or the book itself.
    Lorebook,
    /// A value of the chat's metadata, or of its header.
    Metadata,
}

/// What happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Not there before.
    Added,
    /// Not there any more.
    Removed,
    /// Another value.
    Edited,
    /// The same values in other bytes: order, spacing, a repeated key.
    Rewritten,
}

/// Where a change is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A message: its number after the change, or before it where it was removed.
    Message(usize),
    /// A lorebook entry, by its key.
    Entry(String),
    /// A value, by its name.
    Path(String),
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// In what part.
    pub part: Part,
    /// What happened.
    pub kind: ChangeKind,
    /// Where.
    pub place: Place,
    /// The raw value before.
    pub before: Option<Vec<u8>>,
    /// The raw value after.
    pub after: Option<Vec<u8>>,
}

/// One side of a comparison.
pub struct Side<'a> {
    chat: Chat<'a>,
    metadata: Option<Raw<'a>>,
    book: Option<&'a [u8]>,
}

impl<'a> Side<'a> {
    /// A snapshot's contents.
    pub fn stored(contents: &'a Contents) -> Self {
        let name = TimelineName::parse(&contents.manifest.timeline).ok();
        Self::new(
            contents.chat(),
            name.as_ref(),
            contents.bytes(Role::Lorebook),
            contents.bytes(Role::Group),
        )
    }

    /// The files as they are now.
    pub fn captured(captured: &'a Captured) -> Self {
        let book = captured
            .lorebook
            .as_ref()
            .and_then(|book| book.file.as_ref())
            .map(|file| file.bytes.as_slice());
        let group = captured.group.as_ref().map(|file| file.bytes.as_slice());
        let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
        Self::new(chat, Some(&captured.name), book, group)
    }

    fn new(
        chat: Chat<'a>,
        name: Option<&TimelineName>,
        book: Option<&'a [u8]>,
        group: Option<&'a [u8]>,
    ) -> Self {
        let metadata = name.and_then(|name| st::metadata(&chat, name, group));
        Self { chat, metadata, book }
    }
}

/// Everything that changed from `before` to `after`: messages, then the lorebook, then metadata.
pub fn diff(before: &Side<'_>, after: &Side<'_>) -> Vec<Change> {
    let mut changes = messages(&before.chat.messages, &after.chat.messages);
    changes.extend(lorebook(before.book, after.book));
    changes.extend(metadata(before, after));
    changes
}

fn messages(before: &[&[u8]], after: &[&[u8]]) -> Vec<Change> {
    let deadline = Some(Instant::now() + PATIENCE);
    let change = |kind, number, before: Option<&&[u8]>, after: Option<&&[u8]>| Change {
        part: Part::Message,
        kind,
        place: Place::Message(number),
        before: before.map(|line| line.to_vec()),
        after: after.map(|line| line.to_vec()),
    };
    let mut changes = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, before, after, deadline) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let both = old.len().min(new.len());
        for n in 0..both {
            let (old, new) = (old.start + n, new.start + n);
            changes.push(change(ChangeKind::Edited, new, before.get(old), after.get(new)));
        }
        changes.extend(old.skip(both).map(|n| change(ChangeKind::Removed, n, before.get(n), None)));
        changes.extend(new.skip(both).map(|n| change(ChangeKind::Added, n, None, after.get(n))));
    }
    changes
}

fn lorebook(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    let whole = |kind| Change {
        part: Part::Lorebook,
        kind,
        place: Place::Path("book".into()),
        before: before.map(<[u8]>::to_vec),
        after: after.map(<[u8]>::to_vec),
    };
    let (Some(old), Some(new)) = (before, after) else {
        let kind = if before.is_some() { ChangeKind::Removed } else { ChangeKind::Added };
        return vec![whole(kind)];
    };
    let (Some(old), Some(new)) = (Raw::parse(old), Raw::parse(new)) else {
        return vec![whole(ChangeKind::Edited)];
    };
    let mut changes = objects(Part::Lorebook, old.get("entries"), new.get("entries"), Place::Entry);
    let others = objects(Part::Lorebook, Some(old), Some(new), Place::Path);
    changes
        .extend(others.into_iter().filter(|change| change.place != Place::Path("entries".into())));
    if changes.is_empty() {
        changes.push(whole(ChangeKind::Rewritten));
    }
    changes
}

fn metadata(before: &Side<'_>, after: &Side<'_>) -> Vec<Change> {
    let mut changes = objects(Part::Metadata, before.metadata, after.metadata, Place::Path);
    if before.chat.header == after.chat.header {
        return changes;
    }
    let old = before.chat.header.and_then(Raw::parse);
    let new = after.chat.header.and_then(Raw::parse);
    let others = objects(Part::Metadata, old, new, |key| Place::Path(format!("header.{key}")));
    changes.extend(
        others
            .into_iter()
            .filter(|change| change.place != Place::Path("header.chat_metadata".into())),
    );
    if changes.is_empty() {
        let kind = match (old, new) {
            (Some(_), Some(_)) => ChangeKind::Rewritten,
            _ => ChangeKind::Edited,
        };
        changes.push(Change {
            part: Part::Metadata,
            kind,
            place: Place::Path("header".into()),
            before: before.chat.header.map(<[u8]>::to_vec),
            after: after.chat.header.map(<[u8]>::to_vec),
        });
    }
    changes
}

/// Members of two objects by key; where a key repeats, the last one counts, as it does in JavaScript.
fn objects(
    part: Part,
    before: Option<Raw<'_>>,
    after: Option<Raw<'_>>,
    place: impl Fn(String) -> Place,
) -> Vec<Change> {
    let list = |value: Option<Raw<'_>>| -> Vec<(st::Key, Vec<u8>)> {
        let members = value.and_then(|value| value.members()).unwrap_or_default();
        members.into_iter().map(|member| (member.key, raw_bytes(member.value))).collect()
    };
    let (old_list, new_list) = (list(before), list(after));
    let old: HashMap<_, _> = old_list.iter().map(|(key, value)| (key.as_bytes(), value)).collect();
    let new: HashMap<_, _> = new_list.iter().map(|(key, value)| (key.as_bytes(), value)).collect();
    let change = |kind, key: &st::Key, before: Option<&Vec<u8>>, after: Option<&Vec<u8>>| Change {
        part,
        kind,
        place: place(key.to_string_lossy()),
        before: before.cloned(),
        after: after.cloned(),
    };
    let mut changes = Vec::new();
    let mut done = std::collections::HashSet::new();
    for (key, value) in &old_list {
        if done.insert(key.as_bytes()) {
            match (old.get(key.as_bytes()), new.get(key.as_bytes())) {
                (Some(before), Some(after)) if before == after => {}
                (Some(before), Some(after)) => {
                    changes.push(change(ChangeKind::Edited, key, Some(before), Some(after)))
                }
                _ => changes.push(change(ChangeKind::Removed, key, Some(value), None)),
            }
        }
    }
    for (key, _) in &new_list {
        if done.insert(key.as_bytes()) {
            changes.push(change(ChangeKind::Added, key, None, new.get(key.as_bytes()).copied()));
        }
    }
    changes
}

fn raw_bytes(value: Raw<'_>) -> Vec<u8> {
    value.as_bytes().to_vec()
}
