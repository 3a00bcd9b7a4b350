//! The maximum lengths of objects.

use super::Kind;

/// Returns the maximum length, in bytes, of an object of this kind. Longer objects are neither
/// stored nor read. SillyTavern cannot write a file that exceeds the limit for blobs, because
/// JavaScript has no strings of that length. Trees and commits have lower limits, because they are
/// parsed in memory.
pub fn longest(kind: Kind) -> u64 {
    match kind {
        Kind::Blob => 512 << 20,
        Kind::Tree => 128 << 20,
        Kind::Commit | Kind::Tag => 16 << 20,
    }
}
