//! Decides whether files of timelines are damaged. No other code decides this.
//!
//! After a power failure or on a full disk, a file may be empty or end in zero bytes. A chat with
//! some unreadable lines does not count as damaged, because SillyTavern opens it.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use super::card::is_torn;
use super::json::Raw;
use super::lorebook::entries_and_repeats;
use super::{Category, Chat, TimelineFiles, TimelineName, is_blank, open_file, read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    Empty,
    /// Zero bytes in a JSON file: a part of the file was never written.
    Zeros,
    /// JSON that SillyTavern cannot use, or an incomplete picture.
    Unreadable,
}

impl Damage {
    /// Returns a phrase that can follow the name of the file.
    pub fn words(self) -> &'static str {
        match self {
            Damage::Empty => "is empty",
            Damage::Zeros => "contains zero bytes where text should be",
            Damage::Unreadable => "cannot be read",
        }
    }
}

pub fn damage(name: &TimelineName, bytes: &[u8]) -> Option<Damage> {
    match name.category() {
        category @ (Category::Chat | Category::GroupChat) => {
            chat_damage(&Chat::split(bytes, category), std::slice::from_ref(&(0..usize::MAX)))
        }
        Category::Lorebook => book_damage(bytes),
        Category::Group | Category::Settings => json_damage(bytes, is_object),
        Category::Card | Category::Persona if bytes.is_empty() => Some(Damage::Empty),
        Category::Card => torn(Cursor::new(bytes)),
        Category::Persona => picture_damage(&bytes[..bytes.len().min(PICTURE_START)]),
    }
}

/// Returns the damage of a file of the library at `root`. Reads only the necessary parts of
/// pictures.
pub fn damage_on_disk(root: &Path, name: &TimelineName) -> io::Result<Option<Damage>> {
    let path = name.file();
    if !matches!(name.category(), Category::Card | Category::Persona) {
        return Ok(damage(name, &read(root, &path)?));
    }
    let file = open_file(root, &path)?;
    Ok(match (file.metadata()?.len(), name.category()) {
        (0, _) => Some(Damage::Empty),
        (_, Category::Card) => torn(file),
        _ => {
            let mut start = Vec::new();
            file.take(PICTURE_START as u64).read_to_end(&mut start)?;
            picture_damage(&start)
        }
    })
}

const PICTURE_START: usize = 64;

/// Returns the damage of a picture of any format, judged by its first bytes: no format begins with
/// only zero bytes.
fn picture_damage(start: &[u8]) -> Option<Damage> {
    start.iter().all(|byte| *byte == 0).then_some(Damage::Zeros)
}

fn torn(card: impl io::Read + io::Seek) -> Option<Damage> {
    is_torn(card).then_some(Damage::Unreadable)
}

fn json_damage(bytes: &[u8], is_readable: impl Fn(&[u8]) -> bool) -> Option<Damage> {
    match bytes {
        _ if is_blank(bytes) => Some(Damage::Empty),
        _ if memchr::memchr(0, bytes).is_some() => Some(Damage::Zeros),
        _ => (!is_readable(bytes)).then_some(Damage::Unreadable),
    }
}

pub fn damage_of_files(files: &TimelineFiles) -> Option<Damage> {
    let book = || files.book_bytes().filter(|_| files.timeline.is_chat()).and_then(book_damage);
    damage(&files.timeline, &files.main.bytes).or_else(book)
}

/// Returns the damage of a chat. Only the header and the messages in `among` are searched for zero
/// bytes.
pub fn chat_damage(chat: &Chat<'_>, among: &[Range<usize>]) -> Option<Damage> {
    let lines = || chat.header.iter().chain(&chat.messages).copied();
    if lines().all(is_blank) {
        return Some(Damage::Empty);
    }
    let is_among = |place: usize| among.iter().any(|range| range.contains(&place));
    let messages = chat.messages.iter().enumerate().filter(|(place, _)| is_among(*place));
    let mut searched = chat.header.into_iter().chain(messages.map(|(_, line)| *line));
    if searched.any(|line| memchr::memchr(0, line).is_some()) {
        return Some(Damage::Zeros);
    }
    (!lines().any(is_object)).then_some(Damage::Unreadable)
}

pub fn book_damage(bytes: &[u8]) -> Option<Damage> {
    // SillyTavern reads invalid UTF-8 leniently.
    let is_book = |bytes: &[u8]| entries_and_repeats(bytes).is_some();
    json_damage(bytes, |bytes| is_book(String::from_utf8_lossy(bytes).as_bytes()))
}

fn is_object(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    Raw::parse_str(line.trim_start_matches('\u{feff}')).is_some_and(|value| value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_is_damaged_if_it_has_zero_bytes_or_no_json_object() {
        let name = TimelineName::solo("A", "a").unwrap();
        for (text, expected) in [
            (&b""[..], Some(Damage::Empty)),
            (b" \n\r\n", Some(Damage::Empty)),
            (b"\0\0\0\0", Some(Damage::Zeros)),
            (b"{\"chat_metadata\":{}}\n{\"mes\":\"a\"}\n\0\0\0", Some(Damage::Zeros)),
            (b"{\"chat_metadata\":{}}\n{\"mes\":\"a\0\0", Some(Damage::Zeros)),
            (b"\x89PNG\r\n", Some(Damage::Unreadable)),
            (b"{\"chat_metadata\":{", Some(Damage::Unreadable)),
            (b"[]\n12\n\"text\"", Some(Damage::Unreadable)),
            (b"{\"chat_metadata\":{}}", None),
            (b"\xef\xbb\xbf{\"chat_metadata\":{}}", None),
            (b"{\"chat_metadata\":{\n{\"mes\":\"a\"}", None),
            (b"{\"chat_metadata\":{}}\n{\"mes\":\"\xff\"}\n{\"torn", None),
        ] {
            assert_eq!(damage(&name, text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn groups_and_settings_must_be_objects() {
        for name in [
            TimelineName::of(Category::Group, "1").unwrap(),
            TimelineName::of(Category::Settings, "").unwrap(),
        ] {
            for (text, expected) in [
                (&b""[..], Some(Damage::Empty)),
                (b"\0\0", Some(Damage::Zeros)),
                (b"{\"id\":\"1\"\0", Some(Damage::Zeros)),
                (b"{\"id\":", Some(Damage::Unreadable)),
                (b"[]", Some(Damage::Unreadable)),
                (b"{}", None),
                (b"{\"name\":\"\xff\"}", None),
            ] {
                assert_eq!(damage(&name, text), expected, "{:?}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn cards_without_their_last_chunk_are_damaged() {
        let name = TimelineName::of(Category::Card, "Mira").unwrap();
        let end = b"\0\0\0\0IEND\xae\x42\x60\x82";
        for (bytes, expected) in [
            (Vec::new(), Some(Damage::Empty)),
            (b"\0\0\0\0".to_vec(), Some(Damage::Unreadable)),
            (super::super::card::png::SIGNATURE.to_vec(), Some(Damage::Unreadable)),
            (
                [&super::super::card::png::SIGNATURE[..], &[0; 99]].concat(),
                Some(Damage::Unreadable),
            ),
            ([&super::super::card::png::SIGNATURE[..], end].concat(), None),
            (b"RIFF, a picture of another kind".to_vec(), None),
        ] {
            assert_eq!(damage(&name, &bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lorebooks_must_be_objects_with_entries() {
        for (text, expected) in [
            (&b""[..], Some(Damage::Empty)),
            (b"\0\0", Some(Damage::Zeros)),
            (b"{\"entries\":{\"0\":{\"content\":\"a\0\0\0", Some(Damage::Zeros)),
            (b"{\"entries\":{", Some(Damage::Unreadable)),
            (b"{}", Some(Damage::Unreadable)),
            (b"{\"entries\":{}}", None),
            (b"{\"entries\":{\"0\":{\"content\":\"\xff\"}}}", None),
            (b"{\"entries\":{\"0\":{},\"0\":{}}}", None),
        ] {
            assert_eq!(book_damage(text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
