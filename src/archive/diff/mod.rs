//! Changes between two states, as a writer sees them: messages added, edited, moved, hidden;
//! lorebook entries renamed or edited by field; metadata by path. Messages are aligned by content.
//! Nothing is left out: every change has its whole value before and after, and where bytes differ
//! and no value does, that is a change too.

mod card;
mod lorebook;
mod message;
mod messages;
mod metadata;
pub(super) mod pairing;
pub(crate) mod value;
mod words;

use serde::{Deserialize, Serialize};

use super::message_identity::Identity;
use crate::st::{Category, Chat, Key, OpenCard, Raw, TimelineFiles};

pub use lorebook::entry_change;
pub use messages::message_change;
pub(super) use messages::messages as message_changes;
pub use value::{Field, joined, set_change};
pub use words::{Piece, words};

/// The part of a timeline that a change is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    #[serde(rename(deserialize = "chat"))]
    Message,
    /// An entry of the lorebook, or the book itself.
    Lorebook,
    /// A value of the chat's metadata, of its header, or of its group.
    Metadata,
    /// A value of a character's card, its picture, or another file that is no chat.
    Card,
}

impl Part {
    /// Every part, in the order of a diff.
    pub const ALL: [Part; 4] = [Part::Message, Part::Lorebook, Part::Metadata, Part::Card];
}

/// How a value changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    Added,
    Removed,
    /// In another place: a message among the others, an entry under another UID.
    Moved,
    /// The UID now names another entry.
    Reused,
    /// Another value.
    Edited,
    /// Swipes were added, taken away, or another one is shown.
    Swipe,
    /// A message is kept from the prompt now.
    Hidden,
    /// A message is in the prompt again.
    Shown,
    /// A message's recap: versions, the chosen one, scene breaks.
    Recap,
    /// A message's links to checkpoints and branches.
    Link,
    Renamed,
    /// An entry's place among the others, and nothing else.
    Order,
    /// Equal values in other bytes: order, spacing, a repeated key.
    Rewritten,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 13] = [
        ChangeKind::Added,
        ChangeKind::Removed,
        ChangeKind::Moved,
        ChangeKind::Reused,
        ChangeKind::Edited,
        ChangeKind::Swipe,
        ChangeKind::Hidden,
        ChangeKind::Shown,
        ChangeKind::Recap,
        ChangeKind::Link,
        ChangeKind::Renamed,
        ChangeKind::Order,
        ChangeKind::Rewritten,
    ];

    fn of<T>(before: Option<T>, after: Option<T>) -> Self {
        match (before, after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Edited,
        }
    }
}

/// The root of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    Metadata,
    Header,
    Group,
    Book,
    /// The text of a card.
    Card,
    Picture,
    File,
}

/// A value's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub root: Root,
    /// One key after the other; none: the whole.
    pub keys: Vec<Key>,
    /// In a list of versions: the one of this number.
    pub version: Option<i64>,
}

/// The message, lorebook entry or value that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlace {
    /// A message: its number after the change, or before it where it was removed.
    Message(usize),
    Entry(Key),
    Value(Location),
}

/// One difference between two states.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    pub part: Part,
    /// The most important first. Never empty.
    pub kinds: Vec<ChangeKind>,
    /// Its place after the change.
    pub place: MessagePlace,
    /// Its place before, if it was there.
    pub from: Option<MessagePlace>,
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
    /// Its parts that differ, where both values are objects.
    pub fields: Vec<Field<'a>>,
}

impl Change<'_> {
    /// Returns the most important kind.
    pub fn kind(&self) -> ChangeKind {
        self.kinds.first().copied().unwrap_or(ChangeKind::Edited)
    }

    /// Whether this and nothing else happened.
    pub fn is_only(&self, kind: ChangeKind) -> bool {
        self.kinds == [kind]
    }
}

pub struct Side<'a> {
    chat: Chat<'a>,
    metadata: Option<Raw<'a>>,
    book: Option<&'a [u8]>,
    group: Option<&'a [u8]>,
    card: Option<&'a [u8]>,
    picture: Option<&'a [u8]>,
    file: Option<&'a [u8]>,
}

impl<'a> Side<'a> {
    /// Returns the state before a first snapshot.
    pub fn nothing() -> Self {
        let chat = Chat { header: None, messages: Vec::new() };
        let (metadata, book, group, card, picture, file) = Default::default();
        Self { chat, metadata, book, group, card, picture, file }
    }

    /// `card` is the card among them, opened.
    pub fn of(files: &'a TimelineFiles, card: Option<&'a OpenCard>) -> Self {
        let chat = files.split();
        let metadata = files.metadata(&chat);
        let main = Some(files.main.bytes.as_slice());
        let (group, file) = match files.timeline.category() {
            Category::Group => (main, None),
            Category::Persona | Category::Settings => (None, main),
            _ => (files.group_bytes(), None),
        };
        Self {
            chat,
            metadata,
            book: files.book_bytes(),
            group,
            card: card.and_then(|card| card.text.as_deref()),
            picture: card.map(|card| card.picture.as_slice()),
            file,
        }
    }

    /// Returns how many first messages both have.
    pub fn shared_with(&self, other: &Side<'_>) -> usize {
        let pairs = self.chat.messages.iter().zip(&other.chat.messages);
        pairs.take_while(|(a, b)| a == b || Identity::of(a) == Identity::of(b)).count()
    }
}

/// Everything that changed from `before` to `after`, or only what changed in one part.
pub fn diff<'a>(before: &Side<'a>, after: &Side<'a>, only: Option<Part>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        changes.extend(match part {
            Part::Message => messages::messages(&before.chat.messages, &after.chat.messages),
            Part::Lorebook => lorebook::lorebook(before.book, after.book),
            Part::Metadata => metadata::metadata(before, after),
            Part::Card => card::card(before, after),
        });
    }
    changes
}

fn value_change<'a>(
    part: Part,
    location: Location,
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
) -> Change<'a> {
    let (kinds, place) = (vec![ChangeKind::of(before, after)], MessagePlace::Value(location));
    Change { part, kinds, place, from: None, before, after, fields: Vec::new() }
}

fn whole<'a>(
    part: Part,
    root: Root,
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
) -> Change<'a> {
    value_change(part, Location { root, keys: Vec::new(), version: None }, before, after)
}

fn rewritten<'a>(
    part: Part,
    root: Root,
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
) -> Change<'a> {
    Change { kinds: vec![ChangeKind::Rewritten], ..whole(part, root, before, after) }
}
