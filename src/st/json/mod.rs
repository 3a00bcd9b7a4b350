//! JSON values as slices of the text, decoded only on demand.
//!
//! serde_json's `Value` and `String` refuse lone surrogate escapes (`"\ud83d"`), which SillyTavern
//! writes whenever it cuts a text in the middle of an emoji, and `Value` converts numbers to `f64`.
//! serde_json's `RawValue` checks the grammar without recursion and does not change the text.

mod edit;
mod key;
mod stringify;

pub use edit::{Edits, item_spans, member_spans};
pub use key::Key;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

pub(super) use stringify::stringify_members;
pub use stringify::{quote, stringify};

/// One JSON value, as a slice of the original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    pub key: Key,
    /// The key as written in the text, with quotes.
    pub raw_key: &'a [u8],
    pub value: Raw<'a>,
}

impl<'a> Raw<'a> {
    /// Parses a text that contains one JSON value and optional whitespace around the value.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        Self::parse_str(str::from_utf8(text).ok()?)
    }

    /// Parses text that is known to be UTF-8; otherwise like [`parse`](Self::parse).
    pub fn parse_str(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self(raw.get()))
    }

    /// Wraps `text` without checking it. The caller must check with [`for_members`] that the text
    /// is an object.
    pub(super) fn object(text: &'a str) -> Self {
        Self(text.trim_matches([' ', '\t', '\n', '\r']))
    }

    /// Returns the JSON text of the value.
    pub fn as_str(&self) -> &'a str {
        self.0
    }

    /// Returns the JSON text of the value as bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// Returns an object's members in the order of the text, including repeated keys; `None` if the
    /// value is not an object.
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

    /// Returns an array's items; `None` if the value is not an array.
    pub fn items(&self) -> Option<Vec<Raw<'a>>> {
        if !self.is_array() {
            return None;
        }
        let items: Vec<&RawValue> = serde_json::from_str(self.0).ok()?;
        Some(items.into_iter().map(|raw| Self(raw.get())).collect())
    }

    /// Returns the member `key` of an object. Of repeated keys, the last counts, as in JavaScript.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.pick([key])?[0]
    }

    /// Returns several members of an object in one pass, each as [`get`](Self::get) does; `None` if
    /// the value is not an object.
    pub fn pick<const N: usize>(&self, keys: [&str; N]) -> Option<[Option<Raw<'a>>; N]> {
        let mut found = [None; N];
        for_members(self.0, |raw_key, value| {
            if let Some(place) = keys.iter().position(|key| key::is(raw_key, key)) {
                found[place] = Some(value);
            }
        })?;
        Some(found)
    }

    /// Returns a nested value: looks up the first key in this object, and each further key in the
    /// value found before.
    pub fn path(&self, keys: &[&str]) -> Option<Raw<'a>> {
        keys.iter().try_fold(*self, |value, key| value.get(key))
    }

    /// Returns the decoded text of a string, in which U+FFFD replaces lone surrogates; `None` if
    /// the value is not a string.
    pub fn string(&self) -> Option<String> {
        Key::decode(self.as_bytes()).map(Key::into_string_lossy)
    }

    /// Returns the text of the member `key`; `None` if it is not a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.string()
    }

    /// Returns the items of the member `key`; empty if it is not an array.
    pub fn list(&self, key: &str) -> Vec<Raw<'a>> {
        self.get(key).and_then(|list| list.items()).unwrap_or_default()
    }

    /// Returns the value of a boolean; `None` if the value is not `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// Returns whether the value is the literal `null`.
    pub fn is_null(&self) -> bool {
        self.0 == "null"
    }

    /// Returns whether the value is written with braces.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Returns whether the value is written with brackets.
    pub fn is_array(&self) -> bool {
        self.0.starts_with('[')
    }

    /// Returns whether the value is written with quotes.
    pub fn is_string(&self) -> bool {
        self.0.starts_with('"')
    }

    /// Returns an integer that is written without fraction or exponent (not `1.0` or `1e3`); `None`
    /// if the number does not fit in an `i64`.
    pub fn integer(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// Returns whether JavaScript's `if` treats the value as true.
    pub fn truthy(&self) -> bool {
        match self.0.as_bytes().first() {
            Some(b'{' | b'[' | b't') => true,
            Some(b'"') => self.0 != "\"\"",
            // Rounds as JavaScript does: 1e-999 is 0.
            Some(b'-' | b'0'..=b'9') => self.0.parse::<f64>().is_ok_and(|number| number != 0.0),
            _ => false,
        }
    }

    /// Returns the range of this value in `text`; an empty range at 0 if the value was not parsed
    /// from `text`.
    pub fn span_in(&self, text: &[u8]) -> Range<usize> {
        let start = self.0.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
        match start.checked_add(self.0.len()) {
            Some(end) if end <= text.len() => start..end,
            _ => 0..0,
        }
    }
}

/// Returns `text` with the value at `path` replaced by `new_value`, which must be JSON. No other
/// byte changes. `None` if there is no value at `path`.
pub fn replace(text: &[u8], path: &[&str], new_value: &[u8]) -> Option<Vec<u8>> {
    let span = Raw::parse(text)?.path(path)?.span_in(text);
    Some([&text[..span.start], new_value, &text[span.end..]].concat())
}

/// Returns whether two members have the same key.
pub fn has_repeated_key(members: &[Member<'_>]) -> bool {
    let mut seen = HashSet::with_capacity(members.len());
    !members.iter().all(|member| seen.insert(member.key.as_bytes()))
}

/// Calls `each` with the raw key (with quotes) and the value of every member of the object `text`.
/// Returns `None` if `text` is not a single JSON object; in this case `each` may already have been
/// called for some members.
fn for_members<'a>(text: &'a str, each: impl FnMut(&'a str, Raw<'a>)) -> Option<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Members(each)).ok()?;
    json.end().ok()
}

struct Members<F>(F);

impl<'de, F: FnMut(&'de str, Raw<'de>)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            (self.0)(key.get(), Raw(value.get()));
        }
        Ok(())
    }
}
