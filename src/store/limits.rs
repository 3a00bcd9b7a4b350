//! How long an object may be.

use super::Kind;

/// Returns the length up to which an object is stored and read. SillyTavern cannot have written a
/// longer file: JavaScript has no such strings. Commits and trees are short by nature, and are read
/// whole before anybody knows what they say.
pub fn longest(kind: Kind) -> u64 {
    match kind {
        Kind::Blob => 512 << 20,
        Kind::Tree => 128 << 20,
        Kind::Commit | Kind::Tag => 16 << 20,
    }
}
