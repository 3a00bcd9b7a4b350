//! The names that ST-Auto-Recap gives to lorebooks.

use unicode_normalization::UnicodeNormalization;

use crate::st::Raw;

/// Prefix of the names that the extension's default templates create, current and old.
const PREFIX: &str = "z-AutoLB-";
const TEMPLATE: &str = "z-AutoLB-{{char}}-{{chat}}";
const OLD_TEMPLATE: &str = "z-AutoLB-{{chat}}";

/// The user's setting for the names of lorebooks, with placeholders for the character and the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Character,
    Chat,
}

impl Default for BookTemplate {
    fn default() -> Self {
        Self::parse(TEMPLATE)
    }
}

impl BookTemplate {
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let place = after.split_once("}}").and_then(|(word, after)| match word.trim() {
                "char" => Some((Part::Character, after)),
                "chat" => Some((Part::Chat, after)),
                _ => None,
            });
            parts.push(Part::Text(before.to_owned()));
            let (part, after) = place.unwrap_or_else(|| (Part::Text("{{".to_owned()), after));
            parts.push(part);
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Self { text: text.to_owned(), parts }
    }

    /// Reads the template from SillyTavern's settings. Returns the extension's default template if
    /// the settings have none.
    pub fn of_settings(settings: &[u8]) -> Self {
        // Most settings have no template, and searching for the word is much cheaper than parsing.
        if memchr::memmem::find(settings, b"nameTemplate").is_none() {
            return Self::default();
        }
        let settings = String::from_utf8_lossy(settings);
        let path = ["extension_settings", "autoLorebooks", "nameTemplate"];
        let text = Raw::parse_str(&settings).and_then(|settings| settings.path(&path)?.string());
        text.filter(|text| !text.is_empty()).map_or_else(Self::default, |text| Self::parse(&text))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the extension would give this name to the lorebook of `chat`. Any character
    /// name is accepted, because the name of a character may differ from its folder.
    pub fn is_book_of(&self, book: &str, chat: &str) -> bool {
        let chat = book_segment(chat);
        self.fits(book, Some(&chat))
            || (self.text == TEMPLATE && Self::parse(OLD_TEMPLATE).fits(book, Some(&chat)))
    }

    /// Returns whether the name of a lorebook shows that the extension created the lorebook, for
    /// any chat. Returns false for a template that consists only of placeholders.
    pub fn is_made(&self, book: &str) -> bool {
        let words = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.chars().filter(|c| c.is_alphanumeric()).count()),
            _ => None,
        });
        book.starts_with(PREFIX) || (words.sum::<usize>() >= 3 && self.fits(book, None))
    }

    fn fits(&self, book: &str, chat: Option<&str>) -> bool {
        // The fixed texts between the placeholders.
        let mut pieces = vec![String::new()];
        for part in &self.parts {
            match (part, chat, pieces.last_mut()) {
                (Part::Text(text), _, Some(piece)) => piece.push_str(text),
                (Part::Chat, Some(chat), Some(piece)) => piece.push_str(chat),
                _ => pieces.push(String::new()),
            }
        }
        let pieces: Vec<_> = pieces.iter().map(|piece| packed(piece)).collect();
        [book, without_number(book)].iter().any(|book| has_in_turn(&packed(book), &pieces))
    }

    fn fill(&self, character: &str, chat: &str) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Character => character.to_owned(),
            Part::Chat => chat.to_owned(),
        };
        self.parts.iter().map(text).collect()
    }

    /// Returns the name for the lorebook of the new chat `chat`, if the name of the source lorebook
    /// `book` follows a template of the extension; else `None`. `known` are the chats whose names
    /// `book` may contain: the chat of the source lorebook, and its parent.
    pub fn fork_book_name(&self, book: &str, known: &[&str], chat: &str) -> Option<String> {
        let own = known.iter().find_map(|name| self.refilled(book, name, chat));
        own.or_else(|| made_by_default(book, known, chat))
    }

    fn refilled(&self, book: &str, old: &str, new: &str) -> Option<String> {
        self.parts.contains(&Part::Chat).then_some(())?;
        let (old, new) = (book_segment(old), book_segment(new));
        let places = self.parts.iter().filter(|part| **part == Part::Character).count();
        let before = self.parts.iter().take_while(|part| **part != Part::Character);
        let before = Self { text: String::new(), parts: before.cloned().collect() };
        let start = before.fill("", &old).len();
        [without_number(book), book].iter().find_map(|book| {
            // The rest of the name is the character's name, once per placeholder.
            let room = book.len().checked_sub(self.fill("", &old).len())?;
            let length = room.checked_div(places).unwrap_or(0);
            let character = book.get(start..start + length)?;
            (self.fill(character, &old) == *book).then(|| self.fill(character, &new))
        })
    }
}

/// Returns the name of a character or chat in the form that the extension uses in a lorebook's
/// name.
pub(super) fn book_segment(name: &str) -> String {
    let plain = name.replace(['\\', '/', ':', '*', '?', '"', '<', '>', '|'], " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ").nfc().collect()
}

/// Returns [`BookTemplate::fork_book_name`] for names that follow the extension's default
/// templates.
fn made_by_default(book: &str, known: &[&str], chat: &str) -> Option<String> {
    let rest = without_number(book.strip_prefix(PREFIX)?);
    let new = book_segment(chat);
    for name in known {
        if let Some(character) = rest.strip_suffix(&book_segment(name)) {
            // The text before the chat's name is empty or `<character>-`.
            if character.is_empty() || character.ends_with('-') {
                return Some(format!("{PREFIX}{character}{new}"));
            }
        }
    }
    // The lorebook belongs to another chat, so it is unknown where the character's name ends.
    Some(match rest.split_once('-') {
        Some((character, _)) => format!("{PREFIX}{character}-{new}"),
        None => format!("{PREFIX}{new}"),
    })
}

/// Removes all white space, so that names can be compared: a character that is not allowed in file
/// names may be a space in one name and missing in the other.
fn packed(name: &str) -> String {
    book_segment(name).split_whitespace().collect()
}

/// Returns whether a text begins with the first of the pieces, ends with the last, and has the
/// others between them, in order.
fn has_in_turn(text: &str, pieces: &[String]) -> bool {
    let [first, between @ .., last] = pieces else {
        return pieces.first().is_some_and(|only| only == text);
    };
    let Some(rest) = text.strip_prefix(first.as_str()) else { return false };
    let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
    for piece in between {
        let Some((_, after)) = rest.split_once(piece.as_str()) else { return false };
        rest = after;
    }
    true
}

/// Returns whether the name of a lorebook follows a default template of the extension, or the one
/// in its plans, for lorebooks of chats and forks. The user's template does not count, because
/// unused lorebooks with such names may be removed, and a user's template could match any lorebook.
pub fn is_fork_book(name: &str) -> bool {
    // The planned template is `<book>_checkpoint_<name>_<milliseconds>`. The word alone is not
    // sufficient.
    let clone = name.split_once("_checkpoint_").and_then(|(_, rest)| rest.rsplit_once('_'));
    let moment = |text: &str| text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(PREFIX) || clone.is_some_and(|(_, end)| moment(end))
}

/// Removes a suffix such as ` (2)`, which makes a name unique.
fn without_number(name: &str) -> &str {
    let cut = name.rsplit_once(" (").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|digits| digits.parse::<u16>().is_ok())
    });
    cut.map_or(name, |(name, _)| name)
}
