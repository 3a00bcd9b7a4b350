//! The texts in an object that are searched: a message has several swipes, a lorebook several
//! entries.

use std::collections::HashSet;

use serde::Serialize;

use crate::archive::TextPlace;
use crate::st::{self, Message, Raw};

/// The place of a match in its snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "part")]
pub enum MatchPlace {
    /// In the text of a message, or in one of its swipes.
    #[serde(rename = "message")]
    Message {
        /// Number of the message in the snapshot.
        index: usize,
        /// Name of the character or persona who said it.
        name: String,
        /// Whether the user said it.
        #[serde(rename = "user")]
        is_user: bool,
        /// Whether the message is hidden from the prompt.
        #[serde(skip)]
        hidden: bool,
        /// Index of the matching swipe, and the number of swipes. `None` if the match is in the
        /// shown text.
        #[serde(skip)]
        swipe: Option<(usize, usize)>,
    },
    /// In an entry of a lorebook.
    #[serde(rename = "lorebook")]
    Entry {
        /// UID as written in the file. `None` if the lorebook is invalid, so that its entries
        /// cannot be distinguished.
        uid: Option<String>,
        /// Comment of the entry, which SillyTavern shows as its title.
        #[serde(rename = "name")]
        title: String,
    },
    /// In a text of a character card.
    #[serde(rename = "card")]
    Field {
        /// Path of the field, for example `data.description`.
        #[serde(rename = "name")]
        field: String,
    },
}

/// Passes the texts in an object to `found`, with their places and dates.
pub(super) fn each_text(
    place: &TextPlace,
    bytes: &[u8],
    found: &mut dyn FnMut(MatchPlace, &str, Option<i64>),
) {
    let text = String::from_utf8_lossy(bytes);
    let raw = || Raw::parse_str(&text);
    match place {
        TextPlace::Message(index) => each_swipe(*index, &text, found),
        TextPlace::Entry(key) => entry_text(Some(key), raw(), &text, found),
        TextPlace::Book => match raw().and_then(|book| book.get("entries")?.members()) {
            Some(entries) => entries.iter().for_each(|entry| {
                let (key, value) = (entry.key.to_string_lossy(), entry.value);
                entry_text(Some(&key), Some(value), value.as_str(), found);
            }),
            None => entry_text(None, None, &text, found),
        },
        TextPlace::Field(field) => {
            let said = raw().and_then(|text| text.string());
            let place = MatchPlace::Field { field: field.clone() };
            found(place, said.as_deref().unwrap_or(&text), None);
        }
        TextPlace::Card => {
            // In a stored card, NUL replaces a string that is stored separately. `0` makes the
            // text valid JSON again.
            let text = text.replace('\0', "0");
            st::each_string(&text, &mut |field, said| {
                found(MatchPlace::Field { field }, &said, None);
            });
        }
    }
}

/// Passes the shown text and the other swipes. Equal swipes are passed once. A line that is not a
/// valid message is passed as raw text.
fn each_swipe(index: usize, line: &str, found: &mut dyn FnMut(MatchPlace, &str, Option<i64>)) {
    let Some(message) = Message::read(line.as_bytes()) else {
        let (name, is_user, hidden, swipe) = (String::new(), false, false, None);
        let place = MatchPlace::Message { index, name, is_user, hidden, swipe };
        return found(place, line, None);
    };
    let said = message.send_date().and_then(st::send_millis).map(|ms| ms.div_euclid(1000));
    let swipes = message.swipes().unwrap_or_default();
    let others = swipes.iter().enumerate();
    let others = others.map(|(n, swipe)| (swipe.string(), Some((n, swipes.len()))));
    let mut seen = HashSet::new();
    for (text, swipe) in [(message.text(), None)].into_iter().chain(others) {
        let Some(text) = text.filter(|text| !seen.contains(text)) else { continue };
        let name = message.name().unwrap_or_default();
        let (is_user, hidden) = (message.is_user(), message.is_system());
        found(MatchPlace::Message { index, name, is_user, hidden, swipe }, &text, said);
        seen.insert(text);
    }
}

/// Passes the title, the keys and the content of an entry as one text.
fn entry_text(
    key: Option<&str>,
    entry: Option<Raw<'_>>,
    raw: &str,
    found: &mut dyn FnMut(MatchPlace, &str, Option<i64>),
) {
    let uid = key.map(str::to_owned);
    let fields = ["comment", "key", "keysecondary", "content"];
    let Some([title, keys, more_keys, content]) = entry.and_then(|entry| entry.pick(fields)) else {
        return found(MatchPlace::Entry { uid, title: String::new() }, raw, None);
    };
    let text = |value: Option<Raw<'_>>| value.and_then(|value| value.string()).unwrap_or_default();
    let keys = [keys, more_keys].into_iter().flatten().filter_map(|keys| keys.items());
    let keys: Vec<_> = keys.flatten().filter_map(|key| key.string()).collect();
    let title = text(title);
    let parts = [title.clone(), keys.join(", "), text(content)];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    found(MatchPlace::Entry { uid, title }, &parts.join(" · "), None);
}
