//! Formatting of names, ids and lists in messages for users.

use std::fmt::Display;

/// Returns `1 message` or `2 messages`.
pub fn count(n: impl Display, one: &str) -> String {
    match (n.to_string().as_str(), one.strip_suffix("ry")) {
        ("1", _) => format!("1 {one}"),
        (n, Some(stem)) => format!("{n} {stem}ries"),
        (n, None) => format!("{n} {one}s"),
    }
}

/// Escapes control characters and characters that change the text direction, because a terminal
/// would interpret them. Line breaks and tabs become spaces.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Returns the first ten digits of an id, as messages show it.
pub fn short(id: impl Display) -> String {
    id.to_string().chars().take(10).collect()
}

/// Quotes a word if a shell needs it. Uses double quotes, which POSIX shells, PowerShell and cmd
/// all accept, unless the word has characters that are special inside them; then single quotes, as
/// the shells of this system need them.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:+,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let text = clean(text);
    if !text.contains(['"', '$', '`', '\\', '!', '%', '“', '”', '„']) {
        return format!("\"{text}\"");
    }
    let apostrophe = if cfg!(windows) { "''" } else { r"'\''" };
    format!("'{}'", text.replace('\'', apostrophe))
}

/// The maximum number of names that a message lists.
pub const SHOWN: usize = 5;

/// Returns the first [`SHOWN`] items, and the number of the remaining items.
pub fn listed<T: Display>(items: &[T]) -> String {
    let shown: Vec<_> = items.iter().take(SHOWN).map(T::to_string).collect();
    format!("{}{}", shown.join(", "), more(items.len(), shown.len()))
}

/// Returns ` and 3 more`, or an empty string if all items are shown.
pub fn more(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    }
}

/// Returns a number of bytes in kB, MB or GB.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_is_truncated_and_the_rest_counted() {
        let names: Vec<_> = (0..500).collect();
        assert_eq!(listed(&names), "0, 1, 2, 3, 4 and 495 more");
        assert_eq!(listed(&names[..5]), "0, 1, 2, 3, 4");
        assert_eq!(listed::<u8>(&[]), "");
    }
}
