//! Writes a value as a JavaScript engine does: `JSON.stringify(JSON.parse(text))`.
//!
//! SillyTavern hashes such texts, so the output must match the engine's in every detail: the order
//! of keys, the spelling of numbers, the escapes of lone surrogates. Nothing here is recursive,
//! because values may be nested to any depth.

use super::{Key, Raw};
use std::collections::HashMap;
use std::mem::replace;
use std::ops::Range;

/// Returns the result of `JSON.stringify(JSON.parse(text))` for the text of `value`.
pub fn stringify(value: Raw<'_>) -> String {
    let mut out = String::with_capacity(value.as_str().len());
    let mut open: Vec<Open> = Vec::new();
    let mut rest = value.as_str();
    loop {
        // The grammar was checked when the `Raw` was created, so commas and colons can be skipped.
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
        let Some(first) = rest.bytes().next() else { return out };
        let length = match first {
            b'{' | b'}' | b'[' | b']' => 1,
            b'"' => string_length(rest),
            _ => rest.find([' ', '\t', '\n', '\r', ',', ']', '}']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if matches!(first, b'}' | b']') {
            if let Some(Open::Object { start, members, .. }) = open.pop() {
                arrange(&mut out, start, members);
            }
            out.push_str(token);
            continue;
        }
        match open.last_mut() {
            Some(Open::Object { members, key, .. }) => {
                let Some(name) = key.take() else {
                    *key = Key::decode(token.as_bytes());
                    continue;
                };
                if let Some((_, last)) = members.last_mut() {
                    last.end = out.len();
                    out.push(',');
                }
                push_quoted(&mut out, name.as_bytes());
                out.push(':');
                members.push((name, out.len()..out.len()));
            }
            Some(Open::Array { is_empty }) => {
                out.push_str(if replace(is_empty, false) { "" } else { "," });
            }
            None => {}
        }
        push_scalar(&mut out, token);
        match first {
            b'{' => open.push(Open::Object { start: out.len(), members: Vec::new(), key: None }),
            b'[' => open.push(Open::Array { is_empty: true }),
            _ => {}
        }
    }
}

/// An array or object whose end was not read yet.
enum Open {
    Array {
        is_empty: bool,
    },
    Object {
        /// Place of the first member in the output.
        start: usize,
        /// Members with the places of their values in the output.
        members: Vec<(Key, Range<usize>)>,
        /// Key of the next value.
        key: Option<Key>,
    },
}

/// Rewrites the members of an object, which are the end of `out`, if they are not in JavaScript's
/// order.
fn arrange(out: &mut String, start: usize, mut members: Vec<(Key, Range<usize>)>) {
    if let Some((_, last)) = members.last_mut() {
        last.end = out.len();
    }
    let written: Vec<_> = members.iter().map(|(_, value)| value.start).collect();
    let members = in_order(members);
    if !members.iter().map(|(_, value)| value.start).eq(written) {
        let text = out.split_off(start);
        let value = |at: Range<usize>| &text[at.start - start..at.end - start];
        push_members(out, members.into_iter().map(|(key, at)| (key, value(at))));
    }
}

/// Returns the result of `JSON.stringify` for an object to which `members` were added one after the
/// other. The values must be JSON written by [`stringify`](fn@stringify) or [`quote`].
pub(in crate::st) fn stringify_members(members: Vec<(Key, String)>) -> String {
    let mut out = String::from("{");
    push_members(&mut out, in_order(members).into_iter());
    out.push('}');
    out
}

fn push_members(out: &mut String, members: impl Iterator<Item = (Key, impl AsRef<str>)>) {
    for (place, (key, value)) in members.enumerate() {
        out.push_str(if place == 0 { "" } else { "," });
        push_quoted(out, key.as_bytes());
        out.push(':');
        out.push_str(value.as_ref());
    }
}

/// Returns the result of `JSON.stringify` for a string in WTF-8 (see [`Key`]).
pub fn quote(wtf8: &[u8]) -> String {
    let mut out = String::with_capacity(wtf8.len() + 2);
    push_quoted(&mut out, wtf8);
    out
}

/// Returns the length of the string at the start of `text`, including quotes.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns an object's members in JavaScript's order: first the keys that are array indices, in
/// ascending order, and after them all other keys in the order of insertion. A repeated key has its
/// last value at the position of its first occurrence. `__proto__` is an ordinary key.
fn in_order<T>(members: Vec<(Key, T)>) -> Vec<(Key, T)> {
    let mut placed = HashMap::with_capacity(members.len());
    for (place, (key, value)) in members.into_iter().enumerate() {
        let place = placed.get(&key).map_or(place, |(place, _)| *place);
        placed.insert(key, (place, value));
    }
    let mut members: Vec<_> = placed.into_iter().collect();
    members.sort_unstable_by_key(|(key, (place, _))| {
        (array_index(key.as_bytes()).unwrap_or(u32::MAX), *place)
    });
    members.into_iter().map(|(key, (_, value))| (key, value)).collect()
}

/// Returns the array index that JavaScript reads from the key: an integer below 2^32 - 1 without
/// leading zeros. `None` for other keys.
fn array_index(key: &[u8]) -> Option<u32> {
    if !key.iter().all(u8::is_ascii_digit) || (key.len() > 1 && key[0] == b'0') {
        return None;
    }
    str::from_utf8(key).ok()?.parse().ok().filter(|index| *index != u32::MAX)
}

fn push_scalar(out: &mut String, text: &str) {
    match text.as_bytes().first() {
        Some(b'"') => match Key::decode(text.as_bytes()) {
            Some(key) => push_quoted(out, key.as_bytes()),
            None => out.push_str(text),
        },
        Some(b'-' | b'0'..=b'9') => push_number(out, text),
        _ => out.push_str(text),
    }
}

fn push_quoted(out: &mut String, wtf8: &[u8]) {
    out.push('"');
    let mut rest = wtf8;
    while let Some(at) = (0..rest.len()).find(|at| needs_escape(&rest[*at..])) {
        out.push_str(&String::from_utf8_lossy(&rest[..at]));
        rest = &rest[at..];
        let length = match rest {
            [0xED, high, low, ..] => {
                let unit = 0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F);
                out.push_str(&format!("\\u{unit:04x}"));
                3
            }
            [byte, ..] => {
                match byte {
                    0x08 => out.push_str("\\b"),
                    b'\t' => out.push_str("\\t"),
                    b'\n' => out.push_str("\\n"),
                    0x0C => out.push_str("\\f"),
                    b'\r' => out.push_str("\\r"),
                    b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
                    _ => out.push_str(&format!("\\u{byte:04x}")),
                }
                1
            }
            [] => 0,
        };
        rest = &rest[length..];
    }
    out.push_str(&String::from_utf8_lossy(rest));
    out.push('"');
}

/// Returns whether `JSON.stringify` escapes the first character of `wtf8`.
fn needs_escape(wtf8: &[u8]) -> bool {
    match wtf8 {
        // In WTF-8, ED before A0..BF always begins a surrogate.
        [0xED, second, _, ..] => *second >= 0xA0,
        [byte, ..] => *byte < 0x20 || matches!(byte, b'"' | b'\\'),
        [] => false,
    }
}

/// Appends a number as JavaScript's `Number::toString` writes it.
fn push_number(out: &mut String, text: &str) {
    let value = text.parse().unwrap_or(f64::NAN);
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    if value == 0.0 {
        out.push('0');
        return;
    }
    if value < 0.0 {
        out.push('-');
    }
    let (digits, point) = shortest(value.abs());
    let before = usize::try_from(point).unwrap_or(0);
    match point {
        1..=21 if before >= digits.len() => {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', before - digits.len()));
        }
        1..=21 => {
            out.push_str(&digits[..before]);
            out.push('.');
            out.push_str(&digits[before..]);
        }
        -5..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
            out.push_str(&digits);
        }
        _ => {
            let (first, more) = digits.split_at(1);
            let dot = if more.is_empty() { "" } else { "." };
            out.push_str(&format!("{first}{dot}{more}e{:+}", point - 1));
        }
    }
}

/// Returns the digits and the exponent in `0.<digits>e<point>` that JavaScript writes for a
/// positive number. JavaScript writes the fewest digits that read back as the same number. If
/// several numbers have this length, it writes the nearest; if two are equally near, the number
/// with an even last digit. serde_json does the same.
fn shortest(value: f64) -> (String, i32) {
    let text = serde_json::to_string(&value).unwrap_or_default();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let point = whole.len() as i32 - zeros as i32 + exponent.parse().unwrap_or(0);
    (significant.trim_end_matches('0').to_owned(), point)
}
