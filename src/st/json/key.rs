//! JSON strings as JavaScript sees them: sequences of UTF-16 units that may contain lone
//! surrogates.

/// A decoded string in WTF-8: UTF-8 in which a lone surrogate is encoded as three bytes. Two keys
/// are equal if and only if JavaScript considers the strings equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    /// Decodes a JSON string with its quotes; `None` if `raw` is not a JSON string.
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let mut rest = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let mut out = Vec::with_capacity(rest.len());
        while let Some(at) = rest.iter().position(|b| *b == b'\\') {
            out.extend_from_slice(&rest[..at]);
            let (unit, after) = escape(&rest[at..])?;
            let (c, after) = low_half(unit, after).unwrap_or((u32::from(unit), after));
            push(&mut out, c);
            rest = after;
        }
        out.extend_from_slice(rest);
        Some(Self(out))
    }

    /// Wraps bytes that [`as_bytes`](Self::as_bytes) returned.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text; lone surrogates become U+FFFD.
    pub fn to_string_lossy(&self) -> String {
        self.clone().into_string_lossy()
    }

    pub fn units(&self) -> Vec<u16> {
        let mut units = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_slice();
        while let Some((lead, _)) = rest.split_first() {
            let (length, first) = match lead {
                0x00..=0x7F => (1, u32::from(*lead)),
                0x80..=0xDF => (2, u32::from(lead & 0x1F)),
                0xE0..=0xEF => (3, u32::from(lead & 0x0F)),
                0xF0..=0xFF => (4, u32::from(lead & 0x07)),
            };
            let (this, after) = rest.split_at(length.min(rest.len()));
            let c = this[1..].iter().fold(first, |c, byte| c << 6 | u32::from(byte & 0x3F));
            match char::from_u32(c) {
                Some(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
                // A lone surrogate is one unit.
                None => units.push(c as u16),
            }
            rest = after;
        }
        units
    }

    pub fn into_string_lossy(self) -> String {
        String::from_utf8(self.0).unwrap_or_else(|error| {
            let mut bytes = error.into_bytes();
            for at in 0..bytes.len() {
                // In WTF-8, ED before A0..BF always begins a surrogate.
                if bytes[at] == 0xED
                    && let Some(surrogate) = bytes.get_mut(at..at + 3)
                    && surrogate[1] >= 0xA0
                {
                    surrogate.copy_from_slice("\u{FFFD}".as_bytes());
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
}

/// Returns whether the raw key (with quotes) is `name` when decoded.
pub(super) fn is(raw: &str, name: &str) -> bool {
    if raw.len() == name.len() + 2 {
        return &raw.as_bytes()[1..raw.len() - 1] == name.as_bytes() && !name.contains('\\');
    }
    // Every escape is longer than the character that the escape encodes.
    raw.len() > name.len() + 2
        && raw.contains('\\')
        && Key::decode(raw.as_bytes()).is_some_and(|key| key.as_bytes() == name.as_bytes())
}

/// Returns the UTF-16 unit of the escape at the start of `text`, and the text after the escape.
fn escape(text: &[u8]) -> Option<(u16, &[u8])> {
    let [b'\\', kind, after @ ..] = text else { return None };
    let unit = match kind {
        b'"' | b'\\' | b'/' => *kind,
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let (digits, after) = after.split_first_chunk::<4>()?;
            let unit = digits.iter().try_fold(0, |unit, digit| {
                Some(unit << 4 | char::from(*digit).to_digit(16)? as u16)
            })?;
            return Some((unit, after));
        }
        _ => return None,
    };
    Some((u16::from(unit), after))
}

/// Returns the character that is encoded by `high` and the escape at the start of `after` as a
/// surrogate pair, and the text after the escape. `None` if the two are not a surrogate pair.
fn low_half(high: u16, after: &[u8]) -> Option<(u32, &[u8])> {
    if !(0xD800..0xDC00).contains(&high) {
        return None;
    }
    let (low, after) = escape(after)?;
    if !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    let c = 0x1_0000 + ((u32::from(high) - 0xD800) << 10 | (u32::from(low) - 0xDC00));
    Some((c, after))
}

/// Appends `c` in the bit pattern of UTF-8. `c` may be a surrogate.
fn push(out: &mut Vec<u8>, c: u32) {
    match char::from_u32(c) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([
            0xE0 | (c >> 12) as u8,
            0x80 | (c >> 6 & 0x3F) as u8,
            0x80 | (c & 0x3F) as u8,
        ]),
    }
}
