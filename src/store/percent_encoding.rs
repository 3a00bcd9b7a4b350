//! Escapes bytes as `%` and two hexadecimal digits. All text encodings of the store use this
//! module, and all of them escape `%` itself.

pub(super) fn push_char(out: &mut String, c: char) {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer).bytes().for_each(|byte| push_byte(out, byte));
}

pub(super) fn push_byte(out: &mut String, byte: u8) {
    out.push_str(&format!("%{byte:02X}"));
}

/// Replaces each escape by its byte. A `%` without two hexadecimal digits stays unchanged.
pub(super) fn undo(text: &str) -> Vec<u8> {
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
