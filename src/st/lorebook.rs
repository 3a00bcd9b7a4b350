//! Lorebooks apart: the file with every entry's value cut out, and the values.
//!
//! Each value under the top-level `entries` is replaced by one NUL byte. JSON text cannot hold a NUL, so every NUL of a cut book
//! marks a cut, and the key that stands before it says which value goes there. What is not certain to come back that way is
//! kept whole: a file that is no JSON object, has no or several `entries`, or repeats a key among them.

use super::json::{Key, Raw};
use std::collections::{HashMap, HashSet};

/// A lorebook with its entries cut out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The file with one NUL for each value in `entries`; the whole file if `entries` is empty.
    pub book: Vec<u8>,
    /// Key and raw value of each entry, in the order of the file. No key stands twice.
    pub entries: Vec<(Key, &'a [u8])>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("the lorebook is cut at byte {at}, but no key stands there")]
    NoKey { at: usize },
    #[error("the lorebook's entry {key:?} is missing")]
    NoEntry { key: String },
}

pub fn cut(bytes: &[u8]) -> Cut<'_> {
    let Some(entries) = cuttable(bytes) else {
        return Cut { book: bytes.to_vec(), entries: Vec::new() };
    };
    let mut book = Vec::with_capacity(bytes.len() / 4);
    let mut copied = 0;
    for (_, value) in &entries {
        let span = value.span_in(bytes);
        book.extend_from_slice(&bytes[copied..span.start]);
        book.push(0);
        copied = span.end;
    }
    book.extend_from_slice(&bytes[copied..]);
    let entries = entries.into_iter().map(|(key, value)| (key, value.as_bytes())).collect();
    Cut { book, entries }
}

/// The entries, if the file can be cut.
fn cuttable(bytes: &[u8]) -> Option<Vec<(Key, Raw<'_>)>> {
    let mut found = Raw::parse(bytes)?.members()?.into_iter();
    let entries = found.find(|member| member.key.as_bytes() == b"entries")?;
    if found.any(|member| member.key.as_bytes() == b"entries") {
        return None;
    }
    let members = entries.value.members()?;
    let mut seen = HashSet::with_capacity(members.len());
    if !members.iter().all(|member| seen.insert(member.key.as_bytes())) {
        return None;
    }
    Some(members.into_iter().map(|member| (member.key, member.value)).collect())
}

/// Put a cut book together again. `lookup` gives the value for a key, which is passed decoded ([`Key::as_bytes`]).
///
/// Only for books that were cut: one that was kept whole may hold NULs of its own.
pub fn fill<B: AsRef<[u8]>>(
    book: &[u8],
    mut lookup: impl FnMut(&[u8]) -> Option<B>,
) -> Result<Vec<u8>, FillError> {
    let mut out = Vec::with_capacity(book.len());
    let mut at = 0;
    let mut parts = book.split(|byte| *byte == 0).peekable();
    while let Some(part) = parts.next() {
        out.extend_from_slice(part);
        at += part.len();
        if parts.peek().is_none() {
            break;
        }
        let key = last_key(part).ok_or(FillError::NoKey { at })?;
        let value = lookup(key.as_bytes())
            .ok_or_else(|| FillError::NoEntry { key: key.to_string_lossy() })?;
        out.extend_from_slice(value.as_ref());
        at += 1;
    }
    Ok(out)
}

/// The key at the end of `text`, before a colon and whitespace.
fn last_key(text: &[u8]) -> Option<Key> {
    let text = trim_end(text).strip_suffix(b":")?;
    let text = trim_end(text);
    let body = text.strip_suffix(b"\"")?;
    let mut end = body.len();
    while let Some(quote) = body[..end].iter().rposition(|byte| *byte == b'"') {
        // Inside the key a quote has a backslash of its own: an odd number of them before it.
        let slashes = body[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Key::decode(&text[quote..]);
        }
        end = quote;
    }
    None
}

/// Without the whitespace of JSON at its end.
fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    &text[..kept.map_or(0, |last| last + 1)]
}

/// The entries of a lorebook as JavaScript reads them, in the order of the file: of a repeated key the last counts. Empty if it is no lorebook.
pub fn entries(book: &[u8]) -> Vec<(Key, Raw<'_>)> {
    entries_and_repeats(book).map(|(entries, _)| entries).unwrap_or_default()
}

/// [`entries`], and whether any key stood twice. None if it is no lorebook.
pub fn entries_and_repeats(book: &[u8]) -> Option<(Vec<(Key, Raw<'_>)>, bool)> {
    let root = Raw::parse(book)?.members()?;
    let mut found = root.into_iter().filter(|member| member.key.as_bytes() == b"entries");
    let mut list = found.next()?;
    let mut repeated = false;
    for later in found {
        (list, repeated) = (later, true);
    }
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut entries: Vec<(Key, Raw<'_>)> = Vec::new();
    for member in list.value.members()? {
        match places.get(&member.key) {
            Some(place) => (entries[*place].1, repeated) = (member.value, true),
            None => {
                places.insert(member.key.clone(), entries.len());
                entries.push((member.key, member.value));
            }
        }
    }
    Some((entries, repeated))
}

/// What an entry says.
pub fn entry_content(entry: Raw) -> Option<String> {
    entry.get("content")?.string()
}

/// An entry's title or memo.
pub fn entry_comment(entry: Raw) -> Option<String> {
    entry.get("comment")?.string()
}

/// A UID as the text that it is when JavaScript uses it as a key: `7`, whether it is written `7`, `7.0` or `"7"`. None if it is neither
/// number nor string.
pub fn uid_text(uid: Raw<'_>) -> Option<String> {
    if let Some(text) = uid.string() {
        return Some(text);
    }
    if let Some(number) = uid.integer() {
        return Some(number.to_string());
    }
    let number: f64 = uid.as_str().parse().ok()?;
    // Above that JavaScript writes exponents, and so may the file.
    let whole = number.fract() == 0.0 && number.abs() < 1e21;
    Some(if whole { format!("{number:.0}") } else { uid.as_str().to_owned() })
}

pub fn entry_uid(entry: Raw) -> Option<i64> {
    entry.get("uid")?.integer()
}
