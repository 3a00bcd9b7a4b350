//! Names and ids in what is said to people, whoever reads it.

/// Text from a file or a name, with nothing in it that a terminal would obey: control characters and the ones that turn the
/// direction of writing are shown as their code. Line breaks and tabs become spaces.
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

/// The ten first digits of an id.
pub fn short(id: impl std::fmt::Display) -> String {
    id.to_string().chars().take(10).collect()
}

/// Between two commands on one line, the second only if the first did it; the PowerShell that comes with Windows has no word for the latter.
pub const AND: &str = if cfg!(windows) { "; " } else { " && " };

/// A word as it can be typed: as it is where no shell minds, in the quotes that POSIX shells, PowerShell and cmd share where they do, and for the rest
/// in those of the system.
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
