//! Creates file names as SillyTavern does: a port of the npm package `sanitize-filename` 1.6.4.
//!
//! The results must match those of the package byte for byte. Otherwise stvc would look up a chat's
//! lorebook under the wrong name.

use crate::file_names::is_windows_device;

/// The longest file name that most file systems accept, in bytes.
pub(super) const LONGEST_NAME: usize = 255;

/// Returns the file name that SillyTavern creates from `name`; may be empty.
pub fn sanitize(name: &str) -> String {
    let mut name: String = name.chars().filter(|c| !is_removed(*c)).collect();
    if name.bytes().all(|b| b == b'.') || is_reserved_on_windows(&name) {
        return String::new();
    }
    name.truncate(name.trim_end_matches(['.', ' ']).len());
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

fn is_removed(c: char) -> bool {
    // `is_control` matches C0, DEL and C1, but the package does not remove DEL.
    matches!(c, '/' | '?' | '<' | '>' | '\\' | ':' | '*' | '|' | '"')
        || (c.is_control() && c != '\x7f')
}

/// Returns whether Windows allows a file with this name.
pub fn is_name_on_windows(name: &str) -> bool {
    let is_forbidden = |c: char| matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*') || c < ' ';
    !name.contains(is_forbidden)
        && !name.ends_with(['.', ' '])
        && !is_windows_device(name.as_bytes())
}

/// Matches the package's regular expression `/^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$/i`.
fn is_reserved_on_windows(name: &str) -> bool {
    let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
    // JavaScript's `.` does not match line separators; `\n` and `\r` were removed before.
    if rest.contains(['\u{2028}', '\u{2029}']) {
        return false;
    }
    let stem = stem.to_ascii_lowercase();
    match stem.as_bytes() {
        b"con" | b"prn" | b"aux" | b"nul" => true,
        [b'c', b'o', b'm', digit] | [b'l', b'p', b't', digit] => digit.is_ascii_digit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_invalid_on_windows_are_recognised() {
        for name in ["Tide Office.jsonl", "雨 🦊.json", ".hidden", "console.json", "com10", "a.b"]
        {
            assert!(is_name_on_windows(name), "{name}");
        }
        for name in [
            "a:b",
            "what?.jsonl",
            "a<b",
            "a|b",
            "*",
            "\"",
            "a\tb",
            "end.",
            "end ",
            "con",
            "NUL.json",
            "Com1.x.y",
            "con .txt",
            "COM¹",
            "CONIN$.json",
        ] {
            assert!(!is_name_on_windows(name), "{name}");
        }
    }
}
