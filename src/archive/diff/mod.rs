//! Changes between two states of a timeline, as a user understands them: messages added, edited,
//! moved or hidden; lorebook entries renamed or edited by field; metadata by path. Messages are
//! aligned by content. Every change has the complete value before and after. A difference in bytes
//! only, for example in spacing, is a change too.

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

/// Part of a timeline that contains a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A message of the chat.
    #[serde(rename(deserialize = "chat"))]
    Message,
    /// Entry of the lorebook, or another value in the lorebook.
    Lorebook,
    /// Value in the chat's metadata, in its header, or in the file of its group.
    Metadata,
    /// Value in a character card, the card's picture, or another file that is neither a chat nor a
    /// lorebook.
    Card,
}

impl Part {
    /// All parts, in the order in which a diff lists them.
    pub const ALL: [Part; 4] = [Part::Message, Part::Lorebook, Part::Metadata, Part::Card];
}

/// The kind of a difference. `--json` prints it as a lower-case word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Only the newer side has the value.
    Added,
    /// Only the older side has the value.
    Removed,
    /// A message has another position, or an entry has another UID.
    Moved,
    /// The UID now belongs to another entry.
    Reused,
    /// The value changed.
    Edited,
    /// Swipes were added or removed, or another swipe is shown.
    Swipe,
    /// A message is no longer in the prompt.
    Hidden,
    /// A message is in the prompt again.
    Shown,
    /// The recap data of a message changed.
    Recap,
    /// The links of a message to checkpoints and branches changed.
    Link,
    /// An entry of a lorebook got another title.
    Renamed,
    /// Of an entry, only `order` or `displayIndex` changed.
    Order,
    /// Only the bytes changed, not the values: for example, the order of keys, spacing, or a
    /// repeated key.
    Rewritten,
}

impl ChangeKind {
    /// Every kind, in the order in which `diff` counts them.
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

/// JSON object or file in which the path of a value begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// `chat_metadata` in the chat's first line.
    Metadata,
    /// The rest of the chat's first line.
    Header,
    /// JSON text of a group's file.
    Group,
    /// JSON text of a lorebook, outside its entries.
    Book,
    /// JSON text in a character card.
    Card,
    /// The image of a character card.
    Picture,
    /// A file that is compared only as a whole, such as an attachment.
    File,
}

/// Path of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The JSON text to which the path belongs.
    pub root: Root,
    /// Keys on the path from the root; empty if the value is the complete root.
    pub keys: Vec<Key>,
    /// Number of the version, if the value is a version of the running recap.
    pub version: Option<i64>,
}

/// Position of a change: a message, a lorebook entry or another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlace {
    /// Number of a message after the change, or before the change if the message was removed.
    Message(usize),
    /// An entry of a lorebook, by its key in the file.
    Entry(Key),
    /// Any other value, by its path.
    Value(Location),
}

/// One difference between two states.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The kind of content that changed.
    pub part: Part,
    /// Kinds of the change, most important first; never empty.
    pub kinds: Vec<ChangeKind>,
    /// Place after the change, or before the change if the message or entry was removed.
    pub place: MessagePlace,
    /// Place before the change; `None` if the message or entry is new, and for other values.
    pub from: Option<MessagePlace>,
    /// Raw bytes on the older side; `None` if the value was added.
    pub before: Option<&'a [u8]>,
    /// Raw bytes on the newer side; `None` if the value was removed.
    pub after: Option<&'a [u8]>,
    /// Fields that differ, if both values are objects; may be empty.
    pub fields: Vec<Field<'a>>,
}

impl Change<'_> {
    /// Returns the most important kind.
    pub fn kind(&self) -> ChangeKind {
        self.kinds.first().copied().unwrap_or(ChangeKind::Edited)
    }

    /// Returns whether `kind` is the only kind of this change.
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
    /// Returns an empty state, for comparison with the first snapshot.
    pub fn nothing() -> Self {
        let chat = Chat { header: None, messages: Vec::new() };
        let (metadata, book, group, card, picture, file) = Default::default();
        Self { chat, metadata, book, group, card, picture, file }
    }

    /// Parses the state of `files`. `card` is the parsed card, if `files` is a character card.
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

    /// Returns the number of first messages that both sides share.
    pub fn shared_with(&self, other: &Side<'_>) -> usize {
        let pairs = self.chat.messages.iter().zip(&other.chat.messages);
        pairs.take_while(|(a, b)| a == b || Identity::of(a) == Identity::of(b)).count()
    }
}

/// Returns the changes from `before` to `after`: all changes, or only those in the part `only`.
pub fn diff<'a>(before: &Side<'a>, after: &Side<'a>, only: Option<Part>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        changes.extend(match part {
            Part::Message => messages::messages(&before.chat.messages, &after.chat.messages),
            Part::Lorebook => lorebook::lorebook([before.book, after.book]),
            Part::Metadata => metadata::metadata(before, after),
            Part::Card => card::card(before, after),
        });
    }
    changes
}

/// Bytes of a value before and after the change.
type Values<'a> = [Option<&'a [u8]>; 2];

fn value_change<'a>(part: Part, location: Location, [before, after]: Values<'a>) -> Change<'a> {
    let (kinds, place) = (vec![ChangeKind::of(before, after)], MessagePlace::Value(location));
    Change { part, kinds, place, from: None, before, after, fields: Vec::new() }
}

fn whole_part_change(part: Part, root: Root, values: Values<'_>) -> Change<'_> {
    value_change(part, Location { root, keys: Vec::new(), version: None }, values)
}

fn rewritten(part: Part, root: Root, values: Values<'_>) -> Change<'_> {
    Change { kinds: vec![ChangeKind::Rewritten], ..whole_part_change(part, root, values) }
}

/// Parses values that may be JSON objects.
fn objects<'a>(values: Values<'a>) -> Option<[Raw<'a>; 2]> {
    let [before, after] = values.map(|value| value.and_then(Raw::parse).filter(Raw::is_object));
    Some([before?, after?])
}

fn bytes_of<'a>(values: [Option<Raw<'a>>; 2]) -> Values<'a> {
    values.map(|value| value.map(|value| value.as_bytes()))
}
