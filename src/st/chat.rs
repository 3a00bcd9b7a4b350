//! A chat file: a header line and one line per message.
//!
//! The file is split only at `\n` (U+2028 and CR are part of a line), so joining the lines returns
//! the original bytes of any file, even with a byte order mark, CRLF, blank lines, a truncated last
//! line, or without any JSON.

use std::ops::Range;

use chrono::{DateTime, NaiveDateTime};

use super::Category;
use super::json::Raw;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat<'a> {
    /// `None` for a group chat of SillyTavern 1.12, whose file begins with the first message.
    pub header: Option<&'a [u8]>,
    /// The lines after the header, including blank lines.
    pub messages: Vec<&'a [u8]>,
}

impl<'a> Chat<'a> {
    /// Splits a chat file into lines. In a group chat, a first line that is an object without
    /// `chat_metadata` is a message and not a header.
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

    /// Returns the header of a chat file. The list of messages is empty.
    pub fn header_of(bytes: &'a [u8], category: Category) -> Self {
        let header = Some(first_line(bytes)).filter(|first| !is_headless(first, category));
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

    /// Returns the length of the file up to and including message `n`, in bytes.
    pub fn length_upto(&self, n: usize) -> usize {
        let lines = self.header.iter().chain(self.messages.iter().take(n.saturating_add(1)));
        // Between two lines is a line feed.
        lines.map(|line| line.len() + 1).sum::<usize>().saturating_sub(1)
    }

    pub fn message_count(&self) -> usize {
        self.messages.iter().filter(|line| !is_blank(line)).count()
    }
}

/// One message of a chat. SillyTavern and its extensions do not always write the expected types, so
/// the methods do not fail: they return `None` for a missing value or one of another type.
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
    /// Parses a line; `None` if the line is not a JSON object in UTF-8.
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

    /// Returns the JSON object of the message.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Returns the name of the speaker.
    pub fn name(&self) -> Option<String> {
        self.name?.string()
    }

    /// Returns whether the user wrote the message.
    pub fn is_user(&self) -> bool {
        self.is_user.is_some_and(|value| value.truthy())
    }

    /// Returns whether the message is hidden from the prompt.
    pub fn is_system(&self) -> bool {
        self.is_system.is_some_and(|value| value.truthy())
    }

    /// Returns the text that was said; `None` if the message has none.
    pub fn text(&self) -> Option<String> {
        self.mes?.string()
    }

    /// Returns the text that SillyTavern displays: a translation in `extra.display_text`, or else
    /// the text that was said.
    pub fn displayed_text(&self) -> Option<String> {
        let translation = self.extra().and_then(|extra| extra.text("display_text"));
        translation.filter(|text| !text.is_empty()).or_else(|| self.text())
    }

    /// Returns the date, which is a string in one of several formats, or a number.
    pub fn send_date(&self) -> Option<Raw<'a>> {
        self.send_date
    }

    /// Returns the object `extra`, in which SillyTavern and extensions store additional values.
    pub fn extra(&self) -> Option<Raw<'a>> {
        self.extra.filter(Raw::is_object)
    }

    /// Returns the index of the swipe that is shown.
    pub fn swipe_id(&self) -> Option<i64> {
        self.swipe_id?.integer()
    }

    /// Returns the swipes: the alternative texts of the message.
    pub fn swipes(&self) -> Option<Vec<Raw<'a>>> {
        self.swipes?.items()
    }

    /// Returns the metadata of each swipe.
    pub fn swipe_info(&self) -> Option<Vec<Raw<'a>>> {
        self.swipe_info?.items()
    }
}

/// The parts of a message that a person reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText {
    /// Name of the speaker; may be empty.
    pub name: String,
    pub text: String,
    pub is_user: bool,
    /// Whether the message is hidden from the prompt.
    pub is_system: bool,
}

/// Parses a message for display, even if the line is not valid UTF-8; `None` if the line is not a
/// JSON object.
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

/// Returns the indices of the messages that SillyTavern silently drops when it opens the chat:
/// lines that are not blank and not JSON, or a falsy value such as `null`. Invalid UTF-8 is
/// allowed, because SillyTavern reads it leniently.
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

pub(super) fn first_line(chat: &[u8]) -> &[u8] {
    &chat[..memchr::memchr(b'\n', chat).unwrap_or(chat.len())]
}

pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Returns whether the first line of a group chat is a message. Invalid UTF-8 is allowed, because
/// SillyTavern reads it leniently.
fn is_headless(line: &[u8], category: Category) -> bool {
    category == Category::GroupChat
        && Raw::parse_str(&String::from_utf8_lossy(line))
            .is_some_and(|value| value.is_object() && value.get("chat_metadata").is_none())
}

/// Returns the time at which a message was sent, in milliseconds since 1970. SillyTavern's versions
/// write the date as ISO 8601, as a number, or as `November 15, 2026 12:22am`, which is read as
/// UTC.
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
    fn send_dates_are_parsed_in_all_three_formats() {
        let time = |text: &str| send_millis(Raw::parse(text.as_bytes()).unwrap());
        assert_eq!(time(r#""2026-11-15T00:22:00.000Z""#), Some(1_794_702_120_000));
        assert_eq!(time(r#""November 15, 2026 12:22am""#), Some(1_794_702_120_000));
        assert_eq!(time("1794702120000"), Some(1_794_702_120_000));
        assert_eq!(time(r#""soon""#), None);
        assert_eq!(time("null"), None);
    }
}
