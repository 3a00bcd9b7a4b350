//! A chat file: a header line and one line per message.
//!
//! The file is split at `\n` and nowhere else (U+2028 and CR stand inside lines), so joining the
//! lines gives the bytes back whatever the file holds: a BOM, CRLF, blank lines, a torn last line, no
//! JSON at all.

use std::ops::Range;

use chrono::{DateTime, NaiveDateTime};

use super::Category;
use super::json::Raw;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat<'a> {
    /// None in a group chat of SillyTavern 1.12, which begins with its first message.
    pub header: Option<&'a [u8]>,
    /// The lines after the header, blank ones included.
    pub messages: Vec<&'a [u8]>,
}

impl<'a> Chat<'a> {
    /// Splits a file. In a group chat a first line that is an object without `chat_metadata` is a
    /// message.
    pub fn split(bytes: &'a [u8], category: Category) -> Self {
        let mut begin = 0;
        let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
        let mut lines = ends.map(|end| &bytes[std::mem::replace(&mut begin, end + 1)..end]);
        let first = lines.next();
        if first.is_some_and(|first| is_headless(first, category)) {
            Self { header: None, messages: first.into_iter().chain(lines).collect() }
        } else {
            Self { header: first, messages: lines.collect() }
        }
    }

    /// Returns the chat without its messages.
    pub fn header_of(bytes: &'a [u8], category: Category) -> Self {
        let first = &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())];
        let header = Some(first).filter(|first| !is_headless(first, category));
        Self { header, messages: Vec::new() }
    }

    pub fn join(&self) -> Vec<u8> {
        let lines: Vec<_> = self.header.iter().chain(&self.messages).copied().collect();
        lines.join(&b'\n')
    }

    pub fn upto(&self, n: usize) -> Chat<'a> {
        let end = self.messages.len().min(n.saturating_add(1));
        Chat { header: self.header, messages: self.messages[..end].to_vec() }
    }

    /// Returns the length of the file up to and with message `n`, in bytes.
    pub fn length_upto(&self, n: usize) -> usize {
        let lines = self.header.iter().chain(self.messages.iter().take(n.saturating_add(1)));
        // A line feed between each two.
        lines.map(|line| line.len() + 1).sum::<usize>().saturating_sub(1)
    }

    pub fn message_count(&self) -> usize {
        self.messages.iter().filter(|line| !is_blank(line)).count()
    }
}

/// One message of a chat. SillyTavern and its extensions are loose about types, so nothing here
/// fails: a value that is missing or of another type reads as none.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    raw: Raw<'a>,
    name: Option<Raw<'a>>,
    is_user: Option<Raw<'a>>,
    is_system: Option<Raw<'a>>,
    mes: Option<Raw<'a>>,
    send_date: Option<Raw<'a>>,
    extra: Option<Raw<'a>>,
    swipe_id: Option<Raw<'a>>,
    swipes: Option<Raw<'a>>,
    swipe_info: Option<Raw<'a>>,
}

impl<'a> Message<'a> {
    /// Reads a line; none if it is not a JSON object in UTF-8.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        Self::read_str(str::from_utf8(line).ok()?)
    }

    fn read_str(line: &'a str) -> Option<Self> {
        let raw = Raw::object(line);
        let [name, is_user, is_system, mes, send_date, extra, swipe_id, swipes, swipe_info] =
            raw.pick([
                "name",
                "is_user",
                "is_system",
                "mes",
                "send_date",
                "extra",
                "swipe_id",
                "swipes",
                "swipe_info",
            ])?;
        Some(Self {
            raw,
            name,
            is_user,
            is_system,
            mes,
            send_date,
            extra,
            swipe_id,
            swipes,
            swipe_info,
        })
    }

    /// Returns the whole line.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Returns the speaker.
    pub fn name(&self) -> Option<String> {
        self.name?.string()
    }

    /// Whether the user wrote it.
    pub fn is_user(&self) -> bool {
        self.is_user.is_some_and(|value| value.truthy())
    }

    /// Whether it is hidden from the prompt.
    pub fn is_system(&self) -> bool {
        self.is_system.is_some_and(|value| value.truthy())
    }

    /// Returns the text.
    pub fn text(&self) -> Option<String> {
        self.mes?.string()
    }

    /// Returns the date, a string in one of several forms or a number.
    pub fn send_date(&self) -> Option<Raw<'a>> {
        self.send_date
    }

    /// Returns the values of SillyTavern and extensions beside the text.
    pub fn extra(&self) -> Option<Raw<'a>> {
        self.extra.filter(Raw::is_object)
    }

    /// Returns the number of the swipe that is shown.
    pub fn swipe_id(&self) -> Option<i64> {
        self.swipe_id?.integer()
    }

    /// Returns the texts to choose from.
    pub fn swipes(&self) -> Option<Vec<Raw<'a>>> {
        self.swipes?.items()
    }

    /// Returns the values that belong to each of the swipes.
    pub fn swipe_info(&self) -> Option<Vec<Raw<'a>>> {
        self.swipe_info?.items()
    }
}

/// The parts of a message that a person reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText {
    /// The speaker; may be empty.
    pub name: String,
    pub text: String,
    pub is_user: bool,
    /// Whether it is hidden from the prompt.
    pub is_system: bool,
}

/// Reads a line for showing it, also one that is not valid UTF-8; none if it is not a JSON object.
pub fn text_of(line: &[u8]) -> Option<MessageText> {
    let line = String::from_utf8_lossy(line);
    let message = Message::read_str(&line)?;
    Some(MessageText {
        name: message.name().unwrap_or_default(),
        text: message.text().unwrap_or_default(),
        is_user: message.is_user(),
        is_system: message.is_system(),
    })
}

/// Returns the indices of the messages that SillyTavern silently drops when it opens the chat: lines
/// that are not blank and either not JSON or a value such as `null`. It decodes invalid UTF-8
/// leniently.
pub fn broken_lines(chat: &Chat, among: Range<usize>) -> Vec<usize> {
    let end = among.end.min(chat.messages.len());
    let broken = |line: &[u8]| {
        let read = |value: Option<Raw>| value.is_some_and(|value| value.truthy());
        !read(Raw::parse(line)) && !read(Raw::parse_str(&String::from_utf8_lossy(line)))
    };
    (among.start.min(end)..end)
        .filter(|index| !is_blank(chat.messages[*index]) && broken(chat.messages[*index]))
        .collect()
}

pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Whether the first line of a group chat is a message. SillyTavern reads invalid UTF-8 leniently.
fn is_headless(line: &[u8], category: Category) -> bool {
    category == Category::GroupChat
        && Raw::parse_str(&String::from_utf8_lossy(line))
            .is_some_and(|value| value.is_object() && value.get("chat_metadata").is_none())
}

/// Returns when a message was sent, in milliseconds since 1970. SillyTavern has written that as
/// ISO 8601, as a number, and as `November 15, 2026 12:22am`, which is read as UTC.
pub fn send_millis(send_date: Raw<'_>) -> Option<i64> {
    if let Some(number) = send_date.integer() {
        return Some(number);
    }
    let text = send_date.string()?;
    if let Ok(moment) = DateTime::parse_from_rfc3339(&text) {
        return Some(moment.timestamp_millis());
    }
    let moment = NaiveDateTime::parse_from_str(&text, "%B %d, %Y %I:%M%P").ok()?;
    Some(moment.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_dates_are_read_in_all_three_forms() {
        let time = |text: &str| send_millis(Raw::parse(text.as_bytes()).unwrap());
        assert_eq!(time(r#""2026-11-15T00:22:00.000Z""#), Some(1_794_702_120_000));
        assert_eq!(time(r#""November 15, 2026 12:22am""#), Some(1_794_702_120_000));
        assert_eq!(time("1794702120000"), Some(1_794_702_120_000));
        assert_eq!(time(r#""soon""#), None);
        assert_eq!(time("null"), None);
    }
}
