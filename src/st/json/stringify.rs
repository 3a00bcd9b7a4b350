//! Writes a value as a JavaScript engine does: `JSON.stringify(JSON.parse(text))`.
//!
//! SillyTavern hashes such texts, so the output must match the engine's in every detail: the order
//! of keys, the spelling of numbers, the escapes of lone surrogates. The functions use explicit
//! stacks instead of recursion because values may be nested to any depth.

use super::{Key, Raw};
use std::collections::HashMap;
use std::mem::replace;

/// Returns the result of `JSON.stringify(JSON.parse(text))` for the text of `value`.
pub fn stringify(value: Raw<'_>) -> String {
    let mut nodes = parse_nodes(value.as_str());
    let mut out = String::with_capacity(value.as_str().len());
    let mut steps = vec![PrintStep::Value(0)];
    while let Some(step) = steps.pop() {
        match step {
            PrintStep::Text(text) => out.push_str(text),
            PrintStep::Key(key) => {
                push_quoted(&mut out, key.as_bytes());
                out.push(':');
            }
            PrintStep::Value(at) => match nodes.get_mut(at).map(|it| replace(it, Node::Scalar("")))
            {
                Some(Node::Scalar(text)) => push_scalar(&mut out, text),
                Some(Node::Array(items)) => {
                    out.push('[');
                    steps.push(PrintStep::Text("]"));
                    for (place, item) in items.into_iter().enumerate().rev() {
                        steps.push(PrintStep::Value(item));
                        steps.push(PrintStep::Text(if place == 0 { "" } else { "," }));
                    }
                }
                Some(Node::Object(members)) => {
                    out.push('{');
                    steps.push(PrintStep::Text("}"));
                    for (place, (key, value)) in in_order(members).into_iter().enumerate().rev() {
                        steps.push(PrintStep::Value(value));
                        steps.push(PrintStep::Key(key));
                        steps.push(PrintStep::Text(if place == 0 { "" } else { "," }));
                    }
                }
                None => {}
            },
        }
    }
    out
}

/// Returns the result of `JSON.stringify` for an object to which `members` were added one after the
/// other. The values must be JSON written by [`stringify`](fn@stringify) or [`quote`].
pub(in crate::st) fn stringify_members(members: Vec<(Key, String)>) -> String {
    let mut out = String::from("{");
    for (place, (key, value)) in in_order(members).into_iter().enumerate() {
        out.push_str(if place == 0 { "" } else { "," });
        push_quoted(&mut out, key.as_bytes());
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
    out
}

/// Returns the result of `JSON.stringify` for a string in WTF-8 (see [`Key`]).
pub fn quote(wtf8: &[u8]) -> String {
    let mut out = String::with_capacity(wtf8.len() + 2);
    push_quoted(&mut out, wtf8);
    out
}

/// A parsed value. The `usize` numbers are indices into the list of all nodes.
enum Node<'a> {
    Scalar(&'a str),
    Array(Vec<usize>),
    Object(Vec<(Key, usize)>),
}

enum PrintStep {
    Text(&'static str),
    Key(Key),
    Value(usize),
}

/// Parses `text` into a list of nodes, in which the outermost value is first. The grammar was
/// checked when the [`Raw`] was created, so commas and colons can be skipped.
fn parse_nodes(text: &str) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    let mut open = Vec::new();
    let mut key = None;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
        let Some(first) = rest.bytes().next() else { return nodes };
        let length = match first {
            b'{' | b'}' | b'[' | b']' => 1,
            b'"' => string_length(rest),
            _ => rest.find([' ', '\t', '\n', '\r', ',', ']', '}']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if matches!(first, b'}' | b']') {
            open.pop();
            continue;
        }
        let at = nodes.len();
        match open.last().and_then(|container: &usize| nodes.get_mut(*container)) {
            Some(Node::Object(members)) => match key.take() {
                Some(key) => members.push((key, at)),
                None => {
                    key = Key::decode(token.as_bytes());
                    continue;
                }
            },
            Some(Node::Array(items)) => items.push(at),
            _ => {}
        }
        nodes.push(match first {
            b'{' => Node::Object(Vec::new()),
            b'[' => Node::Array(Vec::new()),
            _ => Node::Scalar(token),
        });
        if matches!(first, b'{' | b'[') {
            open.push(at);
        }
    }
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
/// with an even last digit. Only the last rule differs from Rust.
fn shortest(value: f64) -> (String, i32) {
    let (digits, point) = digits_of(&format!("{value:e}"));
    let even = even_neighbour(value, digits.len());
    match even.filter(|even| format!("0.{even}e{point}").parse() == Ok(value)) {
        Some(even) => (even, point),
        None => (digits, point),
    }
}

/// Returns the digits of the neighbour with an even last digit, if `value` is exactly halfway
/// between two numbers of `length` digits.
fn even_neighbour(value: f64, length: usize) -> Option<String> {
    let (longer, _) = digits_of(&format!("{value:.length$e}"));
    let below = longer.strip_suffix('5')?;
    // No double has more than 767 digits.
    let (exact, _) = digits_of(&format!("{value:.767e}"));
    if exact.trim_end_matches('0') != longer {
        return None;
    }
    let (head, last) = below.split_at_checked(length.checked_sub(1)?)?;
    let last: u32 = last.parse().ok()?;
    // If the last digit is 9, the even neighbour ends in 0. It would be shorter, so Rust would have
    // printed it.
    let even = char::from_digit(last + last % 2, 10)?;
    Some(format!("{head}{even}"))
}

/// Returns the digits of a number in Rust's scientific notation, and the exponent in
/// `0.<digits>e<exponent>`.
fn digits_of(scientific: &str) -> (String, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0) + 1)
}
