//! Exit codes, the same for every front end. docs/cli.md lists them.

/// Everything was done, also when there was nothing to do.
pub const DONE: u8 = 0;

/// The command failed.
pub const FAILED: u8 = 1;

/// Nothing was found, as with grep.
pub const NOT_FOUND: u8 = 1;

/// The command line cannot be understood.
pub const USAGE: u8 = 2;

/// Some was done and some was not.
pub const PARTLY: u8 = 3;

/// A rule refused it; nothing was changed.
pub const REFUSED: u8 = 4;

/// There is no store.
pub const NO_STORE: u8 = 10;

/// Another process is at work.
pub const LOCKED: u8 = 11;
