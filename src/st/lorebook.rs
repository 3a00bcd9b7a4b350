//! Splits a lorebook into its entries and the rest of the file.
//!
//! A *cut* lorebook is a lorebook file in which one NUL byte replaces each value under the
//! top-level `entries`. Valid JSON text has no NUL bytes, so every NUL of a cut lorebook is the
//! place of an entry, and the key before the NUL identifies the entry. A file that could not be
//! rebuilt this way is not cut: a file that is not a JSON object, that has no `entries` or several,
//! or that repeats a key in `entries`.

use super::json::{Edits, Key, Raw, has_repeated_key};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutLorebook<'a> {
    /// The cut lorebook; the unchanged file if it could not be cut.
    pub book: Vec<u8>,
    /// Key and raw value of each entry, in the order of the file. All keys are different.
    pub entries: Vec<(Key, &'a [u8])>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("the lorebook is cut at byte {at}, but there is no key before the cut")]
    NoKey { at: usize },
    #[error("the lorebook's entry {key:?} is missing")]
    NoEntry { key: String },
}

pub fn cut(bytes: &[u8]) -> CutLorebook<'_> {
    let Some(entries) = cuttable(bytes) else {
        return CutLorebook { book: bytes.to_vec(), entries: Vec::new() };
    };
    let mut edits = Edits::new(bytes);
    entries.iter().for_each(|(_, value)| edits.replace(*value, [0]));
    let entries = entries.into_iter().map(|(key, value)| (key, value.as_bytes())).collect();
    CutLorebook { book: edits.apply(), entries }
}

fn cuttable(bytes: &[u8]) -> Option<Vec<(Key, Raw<'_>)>> {
    let mut found = Raw::parse(bytes)?.members()?.into_iter();
    let entries = found.find(|member| member.key.as_bytes() == b"entries")?;
    if found.any(|member| member.key.as_bytes() == b"entries") {
        return None;
    }
    let members = entries.value.members().filter(|members| !has_repeated_key(members))?;
    Some(members.into_iter().map(|member| (member.key, member.value)).collect())
}

/// Rebuilds a lorebook from a cut lorebook. `lookup` returns the value for a decoded key
/// ([`Key::as_bytes`]). Must not be used for lorebooks that were not cut, because they may contain
/// NULs.
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

/// Returns the key at the end of `text`, which a colon and whitespace may follow.
fn last_key(text: &[u8]) -> Option<Key> {
    let text = trim_end(text).strip_suffix(b":")?;
    let text = trim_end(text);
    let body = text.strip_suffix(b"\"")?;
    let mut end = body.len();
    while let Some(quote) = body[..end].iter().rposition(|byte| *byte == b'"') {
        // A quote inside the key is escaped: an odd number of backslashes precedes the quote.
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

/// Returns the entries of a lorebook as JavaScript reads them, in the order of the file. A repeated
/// key has its last value. Empty if `book` is not a lorebook.
pub fn entries(book: &[u8]) -> Vec<(Key, Raw<'_>)> {
    entries_and_repeats(book).map(|(entries, _)| entries).unwrap_or_default()
}

/// Returns [`entries`], and whether a key is repeated; `None` if `book` is not a lorebook.
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

/// Returns the text of an entry.
pub fn entry_content(entry: Raw) -> Option<String> {
    entry.text("content")
}

/// Returns the title of an entry.
pub fn entry_comment(entry: Raw) -> Option<String> {
    entry.text("comment")
}

/// Returns the text to which JavaScript converts a UID as a key: `7` for `7`, `7.0` and `"7"`.
/// `None` if the UID is neither a number nor a string.
pub fn uid_text(uid: Raw<'_>) -> Option<String> {
    let text = uid.string().or_else(|| Some(uid.integer()?.to_string()));
    if text.is_some() {
        return text;
    }
    let number: f64 = uid.as_str().parse().ok()?;
    // JavaScript writes larger numbers with an exponent, as the file probably does.
    let whole = number.fract() == 0.0 && number.abs() < 1e21;
    Some(if whole { format!("{number:.0}") } else { uid.as_str().to_owned() })
}

pub fn entry_uid(entry: Raw) -> Option<i64> {
    entry.get("uid")?.integer()
}
