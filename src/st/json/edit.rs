//! Changes single values of a JSON text without changing any other byte.

use std::ops::Range;

use super::{Raw, quote};

/// Changes to one JSON text, which are applied together. Each change refers to a value by its
/// position in the original text.
pub struct Edits<'a> {
    text: &'a [u8],
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl<'a> Edits<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Replaces a value of the text with `new`, which must be JSON.
    pub fn replace(&mut self, value: Raw<'_>, new: impl Into<Vec<u8>>) {
        self.edits.push((value.span_in(self.text), new.into()));
    }

    /// Sets the member `key` of an object: replaces the value if the member exists, else adds a
    /// last member.
    pub fn set(&mut self, object: Raw<'_>, key: &str, new: &str) {
        match object.get(key) {
            Some(value) => self.replace(value, new),
            None => self.insert_last(object, &format!("{}:{new}", quote(key.as_bytes()))),
        }
    }

    /// Adds `item` at the end of an array or object, with the whitespace that precedes the first
    /// item.
    pub fn insert_last(&mut self, container: Raw<'_>, item: &str) {
        let span = container.span_in(self.text);
        let inside = &self.text[span.start + 1..span.end - 1];
        let content = inside.trim_ascii_end();
        let space =
            if content.is_empty() { 0 } else { inside.len() - inside.trim_ascii_start().len() };
        let at = span.start + 1 + content.len();
        let follows = !content.is_empty() || self.edits.iter().any(|(span, _)| *span == (at..at));
        let comma: &[u8] = if follows { b"," } else { b"" };
        self.edits.push((at..at, [comma, &inside[..space], item.as_bytes()].concat()));
    }

    /// Removes the items of an array, or the members of an object, for which `keep` is false.
    /// `items` are the spans of all items, each from the beginning of the value (or key) to the end
    /// of the value.
    pub fn retain(&mut self, items: &[Range<usize>], keep: impl Fn(usize) -> bool) {
        let kept: Vec<_> = (0..items.len()).filter(|n| keep(*n)).collect();
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return };
        if kept.len() == items.len() {
            return;
        }
        // Each kept item except the first is copied together with the comma and space before the
        // item.
        let mut text = Vec::new();
        for (place, n) in kept.iter().enumerate() {
            let begin = if place == 0 { items[*n].start } else { items[n - 1].end };
            text.extend_from_slice(&self.text[begin..items[*n].end]);
        }
        self.edits.push((first.start..last.end, text));
    }

    pub fn apply(mut self) -> Vec<u8> {
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let mut out = Vec::with_capacity(self.text.len());
        let mut copied = 0;
        for (span, new) in &self.edits {
            // If two changes overlap, only the first is applied.
            if span.start < copied {
                continue;
            }
            out.extend_from_slice(&self.text[copied..span.start]);
            out.extend_from_slice(new);
            copied = span.end;
        }
        out.extend_from_slice(&self.text[copied..]);
        out
    }
}

pub fn item_spans(array: Raw<'_>, text: &[u8]) -> Vec<Range<usize>> {
    array.items().unwrap_or_default().iter().map(|item| item.span_in(text)).collect()
}

/// Returns the ranges of an object's members in `text`, including keys.
pub fn member_spans(object: Raw<'_>, text: &[u8]) -> Vec<Range<usize>> {
    let start = |raw_key: &[u8]| raw_key.as_ptr().addr() - text.as_ptr().addr();
    let members = object.members().unwrap_or_default();
    members.iter().map(|member| start(member.raw_key)..member.value.span_in(text).end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_change_values_and_no_other_byte() {
        let text = br#"{ "a" : 1 , "b": { "c": [1, 2 ,3], "d":{}}, "a":2}"#;
        let root = Raw::parse(text).unwrap();
        let mut edits = Edits::new(text);
        edits.set(root, "a", "9");
        let b = root.get("b").unwrap();
        edits.set(b.get("d").unwrap(), "x", "true");
        edits.set(b.get("d").unwrap(), "y", "0");
        let list = b.get("c").unwrap();
        edits.retain(&item_spans(list, text), |n| n != 0);
        assert_eq!(
            String::from_utf8(edits.apply()).unwrap(),
            r#"{ "a" : 1 , "b": { "c": [2 ,3], "d":{"x":true,"y":0}}, "a":9}"#
        );
    }

    #[test]
    fn members_are_removed_with_their_keys_and_commas() {
        let text = br#"{"a":1, "b":2, "c":3}"#;
        let root = Raw::parse(text).unwrap();
        let spans = member_spans(root, text);
        let without = |gone: &[usize]| {
            let mut edits = Edits::new(text);
            edits.retain(&spans, |n| !gone.contains(&n));
            String::from_utf8(edits.apply()).unwrap()
        };
        assert_eq!(without(&[0]), r#"{"b":2, "c":3}"#);
        assert_eq!(without(&[1]), r#"{"a":1, "c":3}"#);
        assert_eq!(without(&[2]), r#"{"a":1, "b":2}"#);
        assert_eq!(without(&[0, 1, 2]), "{}");
        assert_eq!(without(&[]), r#"{"a":1, "b":2, "c":3}"#);
    }
}
