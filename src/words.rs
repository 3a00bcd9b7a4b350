//! Names and ids in what is said to people, whoever reads it.

use std::fmt::Display;

/// Escapes control characters and those that change the direction of text, which a terminal would
/// obey. Line breaks and tabs become spaces.
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

/// Returns the ten first digits of an id.
pub fn short(id: impl Display) -> String {
    id.to_string().chars().take(10).collect()
}

/// Between two commands on one line; Windows PowerShell has no `&&`.
pub const AND: &str = if cfg!(windows) { "; " } else { " && " };

/// Quotes a word if a shell needs it: in the quotes that POSIX shells, PowerShell and cmd share, or
/// else in those of the system.
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

/// The most names in a message.
pub const SHOWN: usize = 5;

/// Returns the first few of a list, and how many more there are.
pub fn listed<T: Display>(items: &[T]) -> String {
    let shown: Vec<_> = items.iter().take(SHOWN).map(T::to_string).collect();
    format!("{}{}", shown.join(", "), more(items.len(), shown.len()))
}

/// Returns ` and 3 more`, if there are more than are shown.
pub fn more(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let names: Vec<_> = (0..500).collect();
        assert_eq!(listed(&names), "0, 1, 2, 3, 4 and 495 more");
        assert_eq!(listed(&names[..5]), "0, 1, 2, 3, 4");
        assert_eq!(listed::<u8>(&[]), "");
    }
}
