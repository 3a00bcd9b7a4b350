//! JSON read where it stands: slices of the text, nothing decoded until asked for.
//!
//! serde_json's `Value` and `String` refuse lone surrogate escapes (`"\ud83d"`), which SillyTavern writes whenever it
//! cuts a text in the middle of an emoji, and numbers would pass through `f64`. Its `RawValue` checks the grammar, without
//! recursion, and leaves the text alone.

mod edit;
mod key;
mod scan;
mod stringify;

pub use edit::{Edits, item_spans, member_spans};
pub use key::Key;
pub(super) use scan::for_members;
use serde_json::value::RawValue;
use std::ops::Range;
pub use stringify::stringify;
pub(super) use stringify::{quote, stringify_members};

/// One JSON value as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key, decoded.
    pub key: Key,
    /// The key as it stands in the text, quotes included.
    pub raw_key: &'a [u8],
    pub value: Raw<'a>,
}

impl<'a> Raw<'a> {
    /// The one value of which `text` consists, whitespace around it aside.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        Self::parse_str(str::from_utf8(text).ok()?)
    }

    /// [`parse`](Self::parse) for what is known to be UTF-8.
    pub fn parse_str(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self(raw.get()))
    }

    /// For a text that [`for_members`] takes for an object.
    pub(super) fn object(text: &'a str) -> Self {
        Self(text.trim_matches([' ', '\t', '\n', '\r']))
    }

    pub fn as_str(&self) -> &'a str {
        self.0
    }

    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// An object's members in the order of the text, repeated keys included; none if it is no object.
    pub fn members(&self) -> Option<Vec<Member<'a>>> {
        let mut members = Vec::new();
        for_members(self.0, |raw_key, value| {
            let raw_key = raw_key.as_bytes();
            if let Some(key) = Key::decode(raw_key) {
                members.push(Member { key, raw_key, value });
            }
        })?;
        Some(members)
    }

    /// An array's items; none if it is no array.
    pub fn items(&self) -> Option<Vec<Raw<'a>>> {
        if !self.is_array() {
            return None;
        }
        let items: Vec<&RawValue> = serde_json::from_str(self.0).ok()?;
        Some(items.into_iter().map(|raw| Self(raw.get())).collect())
    }

    /// The member `key` of an object; of repeated keys the last, as in JavaScript.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        let mut found = None;
        for_members(self.0, |raw_key, value| {
            if key::is(raw_key, key) {
                found = Some(value);
            }
        })?;
        found
    }

    /// Several members of an object in one go, each as from [`get`](Self::get); none if it is no object.
    pub fn pick<const N: usize>(&self, keys: [&str; N]) -> Option<[Option<Raw<'a>>; N]> {
        let mut found = [None; N];
        for_members(self.0, |raw_key, value| {
            if let Some(place) = keys.iter().position(|key| key::is(raw_key, key)) {
                found[place] = Some(value);
            }
        })?;
        Some(found)
    }

    /// [`get`](Self::get), one key after the other.
    pub fn path(&self, keys: &[&str]) -> Option<Raw<'a>> {
        keys.iter().try_fold(*self, |value, key| value.get(key))
    }

    /// A string's text; lone surrogates become U+FFFD. None if it is no string.
    pub fn string(&self) -> Option<String> {
        Key::decode(self.as_bytes()).map(Key::into_string_lossy)
    }

    pub fn bool(&self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.0 == "null"
    }

    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    pub fn is_array(&self) -> bool {
        self.0.starts_with('[')
    }

    pub fn is_string(&self) -> bool {
        self.0.starts_with('"')
    }

    /// A whole number that is written as one; `1.0` and `1e3` are not, nor is what does not fit.
    pub fn integer(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// Whether JavaScript's `if` would take it for true.
    pub fn truthy(&self) -> bool {
        match self.0.as_bytes().first() {
            Some(b'{' | b'[' | b't') => true,
            Some(b'"') => self.0 != "\"\"",
            // The one question for which JavaScript's own rounding (1e-999 is 0) is the right answer.
            Some(b'-' | b'0'..=b'9') => self.0.parse::<f64>().is_ok_and(|number| number != 0.0),
            _ => false,
        }
    }

    /// Where in `text` the value stands, for a value that was parsed from `text`; otherwise an empty range at 0.
    pub fn span_in(&self, text: &[u8]) -> Range<usize> {
        let start = self.0.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
        match start.checked_add(self.0.len()) {
            Some(end) if end <= text.len() => start..end,
            _ => 0..0,
        }
    }
}

/// `text` with the value at `path` replaced and every other byte kept; none if there is no such value.
/// `new_value` must be JSON.
pub fn replace(text: &[u8], path: &[&str], new_value: &[u8]) -> Option<Vec<u8>> {
    let span = Raw::parse(text)?.path(path)?.span_in(text);
    Some([&text[..span.start], new_value, &text[span.end..]].concat())
}
