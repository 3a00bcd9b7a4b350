//! What the rules about one timeline's files look at.

use std::ops::Range;

use crate::auto_recap::BookTemplate;
use crate::st::{Chat, Raw, TimelineName};

pub struct Subject<'a> {
    pub timeline: &'a TimelineName,
    pub chat: &'a Chat<'a>,
    /// Its messages as SillyTavern numbers them, without blank lines: place among the lines, and line.
    pub messages: Vec<(usize, &'a [u8])>,
    pub chat_path: &'a str,
    pub metadata: Option<Raw<'a>>,
    pub lorebook: Option<Bound<'a>>,
    pub looked_at: &'a [Range<usize>],
    pub book_template: &'a BookTemplate,
}

pub struct Bound<'a> {
    pub name: &'a str,
    /// Path and bytes; none if it is missing or cannot be read.
    pub file: Option<(&'a str, &'a [u8])>,
    /// Why its file, which is there, cannot be read.
    pub unread: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The message of that number: its place among the lines, and the line.
    pub fn message(&self, number: i64) -> Option<(usize, &'a [u8])> {
        self.messages.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether the chat is too short to have that message.
    pub fn is_past_end(&self, number: i64) -> bool {
        usize::try_from(number).is_ok_and(|number| number >= self.messages.len())
    }

    pub fn is_looked_at(&self, place: usize) -> bool {
        self.looked_at.iter().any(|range| range.contains(&place))
    }
}
