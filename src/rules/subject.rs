use std::ops::Range;

use crate::auto_recap::BookTemplate;
use crate::st::{Chat, Raw, TimelineFiles};

/// Parsed files of one timeline, as the input of rules.
pub struct Subject<'a> {
    pub files: &'a TimelineFiles,
    pub chat: &'a Chat<'a>,
    /// Messages by SillyTavern's numbers, which do not count blank lines. Each has its index in
    /// `chat.messages` and its line.
    pub messages: Vec<(usize, &'a [u8])>,
    pub metadata: Option<Raw<'a>>,
    /// Indices in `chat.messages` of the messages to examine.
    pub examined: &'a [Range<usize>],
    pub book_template: &'a BookTemplate,
}

impl<'a> Subject<'a> {
    pub fn chat_path(&self) -> &'a str {
        self.files.main.path.as_str()
    }

    /// Returns the message with this number: its index in `chat.messages`, and its line.
    pub fn message(&self, number: i64) -> Option<(usize, &'a [u8])> {
        self.messages.get(usize::try_from(number).ok()?).copied()
    }

    pub fn is_past_end(&self, number: i64) -> bool {
        usize::try_from(number).is_ok_and(|number| number >= self.messages.len())
    }

    pub fn is_looked_at(&self, place: usize) -> bool {
        self.examined.iter().any(|range| range.contains(&place))
    }
}
