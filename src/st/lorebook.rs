//! Cuts a lorebook into the file with every entry's value cut out, and the values.
//!
//! Each value under the top-level `entries` is replaced by one NUL byte. JSON text cannot hold a
//! NUL, so every NUL of a cut book marks a cut, and the key before it says which value goes there. A
//! file that may not come back that way is not cut: it is not a JSON object, has no or several
//! `entries`, or repeats a key among them.

use super::json::{Edits, Key, Raw};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The whole file if it was not cut.
    pub book: Vec<u8>,
    /// Key and raw value of each entry, in the order of the file. No key is repeated.
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
    let mut edits = Edits::new(bytes);
    entries.iter().for_each(|(_, value)| edits.replace(*value, [0]));
    let entries = entries.into_iter().map(|(key, value)| (key, value.as_bytes())).collect();
    Cut { book: edits.apply(), entries }
}

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

/// Joins a cut book again. `lookup` returns the value for a key, which is passed decoded
/// ([`Key::as_bytes`]). Only for books that were cut: others may hold NULs of their own.
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

/// Returns the key at the end of `text`, before a colon and whitespace.
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

fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    &text[..kept.map_or(0, |last| last + 1)]
}

/// Returns the entries of a lorebook as JavaScript reads them, in the order of the file: of a
/// repeated key the last value. Empty if it is not a lorebook.
pub fn entries(book: &[u8]) -> Vec<(Key, Raw<'_>)> {
    entries_and_repeats(book).map(|(entries, _)| entries).unwrap_or_default()
}

/// Returns [`entries`], and whether any key is repeated; none if it is not a lorebook.
pub fn entries_and_repeats(book: &[u8]) -> Option<(Vec<(Key, Raw<'_>)>, bool)> {
    let mut found = Raw::parse(book)?.members()?;
    found.retain(|member| member.key.as_bytes() == b"entries");
    let list = found.pop()?;
    let mut repeated = !found.is_empty();
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

/// Returns an entry's text.
pub fn entry_content(entry: Raw) -> Option<String> {
    entry.get("content")?.string()
}

/// Returns an entry's title or memo.
pub fn entry_comment(entry: Raw) -> Option<String> {
    entry.get("comment")?.string()
}

/// Returns a UID as the text that it is when JavaScript uses it as a key: `7`, whether it is written
/// `7`, `7.0` or `"7"`. None if it is neither number nor string.
pub fn uid_text(uid: Raw<'_>) -> Option<String> {
    let text = uid.string().or_else(|| Some(uid.integer()?.to_string()));
    if text.is_some() {
        return text;
    }
    let number: f64 = uid.as_str().parse().ok()?;
    // Above that JavaScript writes exponents, and so may the file.
    let whole = number.fract() == 0.0 && number.abs() < 1e21;
    Some(if whole { format!("{number:.0}") } else { uid.as_str().to_owned() })
}

pub fn entry_uid(entry: Raw) -> Option<i64> {
    entry.get("uid")?.integer()
}
