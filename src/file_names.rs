//! Percent encoding, which escapes bytes as `%` and two hexadecimal digits, and names that file
//! systems treat specially.

pub fn push_char(out: &mut String, c: char) {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer).bytes().for_each(|byte| push_byte(out, byte));
}

pub fn push_byte(out: &mut String, byte: u8) {
    out.push_str(&format!("%{byte:02X}"));
}

/// Replaces each escape by its byte. A `%` without two hexadecimal digits stays unchanged.
pub fn undo(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| (bytes.get(at + 1), bytes.get(at + 2)));
        let digits = escaped.and_then(|(high, low)| digit(high).zip(digit(low)));
        match digits.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// Whether Windows treats the name as a device. Windows ignores everything after the first dot, and
/// white space before that dot.
pub fn is_windows_device(name: &[u8]) -> bool {
    let stem = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    // Checked first, because most names do not begin like a device.
    let first = stem.first().map(u8::to_ascii_lowercase);
    if !matches!(first, Some(b'a' | b'c' | b'l' | b'n' | b'p')) {
        return false;
    }
    let Ok(stem) = str::from_utf8(stem) else { return false };
    let stem = stem.trim_end().to_ascii_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let mut port = port.unwrap_or_default().chars();
    let port = (port.next(), port.next());
    let is_port = matches!(port, (Some('0'..='9' | '¹' | '²' | '³'), None));
    is_port || ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem.as_str())
}

/// Whether HFS+ ignores the character in names.
pub fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
