//! Exit codes of every front end. docs/cli.md lists them.

/// The command succeeded, even if there was nothing to do.
pub const DONE: u8 = 0;

/// The command failed.
pub const FAILED: u8 = 1;

/// A search found nothing. The value is the same as grep's.
pub const NOT_FOUND: u8 = 1;

/// The command line is invalid.
pub const USAGE: u8 = 2;

/// Part of the work succeeded, and part failed.
pub const PARTLY: u8 = 3;

/// A rule refused the command. Nothing was changed.
pub const REFUSED: u8 = 4;

/// There is no store.
pub const NO_STORE: u8 = 10;

/// Another process holds the lock of the store.
pub const LOCKED: u8 = 11;

/// The user interrupted the command.
pub const INTERRUPTED: u8 = 130;
