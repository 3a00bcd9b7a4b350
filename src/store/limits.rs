//! The maximum lengths of objects.

use super::Kind;

/// Length, in bytes, above which a blob is read in pieces. Such a blob is not stored as a delta.
pub(super) const LONG_BLOB: u64 = 16 << 20;

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
