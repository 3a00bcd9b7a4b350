//! A backup: everything that some branches and tags lead to, in one stream. `docs/backup.md` has
//! the format byte for byte.
//!
//! Values in, values out: this module writes to what it is given and reads from it, one object at a
//! time. Whoever reads believes nothing before [`Decoder::next_object`] has said that the stream is
//! over, because only then its hash was compared; and then only of what [`judge`](fn@judge) has
//! found nothing wrong with.

mod decode;
mod encode;
mod error;
mod header;
mod judge;
mod seal;

pub use decode::{Decoder, Peek, peek};
pub use encode::encode;
pub use error::{BackupError, Result};
pub use header::Header;
pub use judge::{Found, Given, Judged, KnownSnapshots, Lengths, What, judge, objects_of};
pub use seal::{Passphrase, Sealable, unseal};

/// The first line of every backup, without the version and the line feed.
const MAGIC: &str = "stvc backup ";
/// The first bytes of a file that age encrypted.
const AGE_MAGIC: &[u8] = b"age-encryption.org/";
/// The version that this program writes.
const VERSION: u32 = 1;
/// The longest window that is accepted: a reader needs that much memory, 128 MB. Backups written
/// here need 8 MB.
const WINDOW_LOG: u32 = 27;
/// Longer objects are refused on both sides. SillyTavern cannot read a longer file: JavaScript has
/// no such strings.
const LONGEST_OBJECT: u64 = 512 << 20;
/// Longer headers are refused: each timeline has a line of some hundred bytes in it.
const LONGEST_HEADER: u64 = 64 << 20;
