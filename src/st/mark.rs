//! The mark of a chat, `chat_metadata.integrity`: what a page saves must have the mark that the file has, or SillyTavern asks before it overwrites anything.

use super::json::{Edits, Raw};

/// The mark as it stands in a chat's file. None: it has none, and nothing is asked.
pub fn mark(chat: &[u8]) -> Option<&[u8]> {
    let mark = metadata(header(chat))?.get("integrity")?;
    // What JavaScript takes for no value is none.
    let is_none =
        [r#""""#, "null", "false", "0"].iter().any(|none| mark.as_bytes() == none.as_bytes());
    (!is_none).then(|| mark.as_bytes())
}

/// The chat with this mark, which must be JSON, and no other byte changed. None: it has no header in which SillyTavern would look for it.
pub fn with_mark(chat: &[u8], mark: &[u8]) -> Option<Vec<u8>> {
    let header = header(chat);
    let mut edits = Edits::new(header);
    edits.set(metadata(header)?, "integrity", str::from_utf8(mark).ok()?);
    Some([&edits.apply(), &chat[header.len()..]].concat())
}

/// A mark of the form that SillyTavern gives, from a hash in hexadecimal of whatever makes it one of its own.
pub fn new_mark(hash: &str) -> String {
    let variant = ["8", "9", "a", "b"][usize::from(hash.as_bytes()[16]) % 4];
    let [a, b, c, d, e] = [&hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32]];
    format!("{a}-{b}-4{c}-{variant}{d}-{e}")
}

fn header(chat: &[u8]) -> &[u8] {
    &chat[..memchr::memchr(b'\n', chat).unwrap_or(chat.len())]
}

fn metadata(header: &[u8]) -> Option<Raw<'_>> {
    Raw::parse(header)?.get("chat_metadata").filter(Raw::is_object)
}
