//! Backups. A backup is a stream of all objects that are reachable from some branches and tags.
//! `docs/backup.md` specifies the format byte for byte.
//!
//! Streams are read and written one object at a time. A caller must not trust any data before
//! [`Decoder::next_object`] has returned `None`, because the checksum is at the end of the stream.
//! After that, the caller must use only snapshots that [`judge`](fn@judge) accepted.

mod decode;
mod encode;
mod error;
mod header;
mod judge;
mod seal;

pub use decode::{BackupKind, Decoder, peek};
pub use encode::encode;
pub use error::{BackupError, Result};
pub use header::Header;
pub use judge::{
    CommitKind, JudgedBackup, JudgedCommit, KnownSnapshots, Lengths, ObjectScope, judge, objects_of,
};
pub use seal::{BackupOutput, Passphrase, unseal};

/// First line of every backup, without the version and the line feed.
const MAGIC: &str = "stvc backup ";
/// First bytes of a file that was encrypted with age.
const AGE_MAGIC: &[u8] = b"age-encryption.org/";
/// Version of the backup format.
const VERSION: u32 = 1;
/// Maximum length of zstd's window in a backup, as a power of two. A window of this length needs
/// 128 MB of memory. Backups written by stvc need 8 MB.
const WINDOW_LOG: u32 = 27;
/// Maximum length of an object, for reading and writing. SillyTavern cannot read a longer file,
/// because JavaScript strings cannot be that long.
const LONGEST_OBJECT: u64 = 512 << 20;
/// Maximum length of the header, which contains some hundred bytes per timeline.
const LONGEST_HEADER: u64 = 64 << 20;
