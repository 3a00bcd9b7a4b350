//! A chat file: a header line and one line a message.
//!
//! The file is split at `\n` and nowhere else (U+2028 and CR stand inside lines), so joining the lines gives the bytes back
//! whatever the file holds: a BOM, CRLF, blank lines, a torn last line, no JSON at all.

use std::ops::Range;

use super::json::Raw;

/// A chat file in its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat<'a> {
    /// Line 1; none in a group chat of SillyTavern 1.12, which begins with its first message.
    pub header: Option<&'a [u8]>,
    /// The lines after the header, blank ones included: a message's index is its place here.
    pub messages: Vec<&'a [u8]>,
}

impl<'a> Chat<'a> {
    /// Split a file. In a group chat a first line that is an object without `chat_metadata` is a message.
    pub fn split(bytes: &'a [u8], is_group: bool) -> Self {
        let mut begin = 0;
        let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
        let mut lines = ends.map(|end| &bytes[std::mem::replace(&mut begin, end + 1)..end]);
        let first = lines.next();
        if is_group && first.is_some_and(is_headless) {
            Self { header: None, messages: first.into_iter().chain(lines).collect() }
        } else {
            Self { header: first, messages: lines.collect() }
        }
    }

    /// The header alone, for those who need no message: the same as from [`split`](Chat::split), with no messages.
    pub fn header_of(bytes: &'a [u8], is_group: bool) -> Self {
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let first = &bytes[..end];
        let headless = is_group && is_headless(first);
        Self { header: (!headless).then_some(first), messages: Vec::new() }
    }

    pub fn join(&self) -> Vec<u8> {
        let lines = self.header.iter().chain(&self.messages);
        let mut bytes = Vec::with_capacity(lines.clone().map(|line| line.len() + 1).sum());
        for (at, line) in lines.enumerate() {
            if at > 0 {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(line);
        }
        bytes
    }

    /// The chat up to and with message `n`.
    pub fn upto(&self, n: usize) -> Chat<'a> {
        let end = self.messages.len().min(n.saturating_add(1));
        Chat { header: self.header, messages: self.messages[..end].to_vec() }
    }

    /// How long the file is up to and with message `n`.
    pub fn length_upto(&self, n: usize) -> usize {
        let end = self.messages.len().min(n.saturating_add(1));
        let lines = self.header.iter().chain(&self.messages[..end]);
        // A line feed between each two.
        lines.map(|line| line.len() + 1).sum::<usize>().saturating_sub(1)
    }

    /// The number of messages: lines that are not blank.
    pub fn message_count(&self) -> usize {
        self.messages.iter().filter(|line| !is_blank(line)).count()
    }
}

/// One message of a chat. SillyTavern and its extensions are loose about types, so nothing here fails: what is not there,
/// or of another type, reads as none.
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
    /// Read a line; none if it is no UTF-8 or no JSON object.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        Self::read_str(str::from_utf8(line).ok()?)
    }

    fn read_str(line: &'a str) -> Option<Self> {
        // Not looked at unless the line proves to be an object.
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

    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// The speaker.
    pub fn name(&self) -> Option<String> {
        self.name?.string()
    }

    /// Whether the user said it.
    pub fn is_user(&self) -> bool {
        self.is_user.is_some_and(|value| value.truthy())
    }

    /// Whether it is hidden from the prompt.
    pub fn is_system(&self) -> bool {
        self.is_system.is_some_and(|value| value.truthy())
    }

    pub fn text(&self) -> Option<String> {
        self.mes?.string()
    }

    /// The date, which may be a string in one of several forms or a number.
    pub fn send_date(&self) -> Option<Raw<'a>> {
        self.send_date
    }

    /// What SillyTavern and extensions keep beside the text.
    pub fn extra(&self) -> Option<Raw<'a>> {
        self.extra.filter(Raw::is_object)
    }

    /// Which of the swipes is shown.
    pub fn swipe_id(&self) -> Option<i64> {
        self.swipe_id?.integer()
    }

    /// The texts to choose from.
    pub fn swipes(&self) -> Option<Vec<Raw<'a>>> {
        self.swipes?.items()
    }

    /// What belongs to each of the swipes.
    pub fn swipe_info(&self) -> Option<Vec<Raw<'a>>> {
        self.swipe_info?.items()
    }
}

/// What a person reads of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText {
    /// The speaker; empty if there is none.
    pub name: String,
    /// The text; empty if there is none.
    pub text: String,
    /// Whether the user said it.
    pub is_user: bool,
    /// Whether it is hidden from the prompt.
    pub is_system: bool,
}

/// Read a line for showing it, also one that is no valid UTF-8; none if it is no JSON object even then.
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

/// The indices of the messages that SillyTavern drops without a word when it opens the chat: lines that are not blank and
/// either no JSON or a value such as `null`. It decodes invalid UTF-8 leniently, and so must this.
pub fn broken_lines(chat: &Chat, among: Range<usize>) -> Vec<usize> {
    let end = among.end.min(chat.messages.len());
    let broken = |line: &[u8]| {
        // Nearly every line is UTF-8, and then it is read where it stands.
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

/// Whether a group chat's first line is a message. SillyTavern reads invalid UTF-8 leniently, and so must this.
fn is_headless(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    Raw::parse_str(&line)
        .is_some_and(|value| value.is_object() && value.get("chat_metadata").is_none())
}
