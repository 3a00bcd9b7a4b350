//! Faults, and the calls at which they happen.

use crate::disk::Loss;
use crate::preload::Fault;

/// Errors that every writing call returns once.
pub const ERRORS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EACCES", 13)];

/// Errors of reading calls, by the call's name. EINTR must be retried without a visible effect.
pub const READ_ERRORS: [(&str, &str, i32); 6] = [
    ("open for reading", "EMFILE", 24),
    ("read", "EIO", 5),
    ("read", "EINTR", EINTR),
    ("mmap", "ENOMEM", 12),
    ("opendir", "EACCES", 13),
    ("readdir", "EIO", 5),
];
pub const EINTR: i32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Kill,
    Error,
    Cut,
    Read,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Kill, Self::Error, Self::Cut, Self::Read];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Error => "error",
            Self::Cut => "cut",
            Self::Read => "read",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    At(u64, Fault),
    /// A power cut after this many recorded calls.
    Cut(usize, Loss),
}

impl Point {
    pub fn kind(self) -> Kind {
        match self {
            Self::At(_, Fault::Error(_)) => Kind::Error,
            Self::At(_, Fault::Read(_)) => Kind::Read,
            Self::At(..) => Kind::Kill,
            Self::Cut(..) => Kind::Cut,
        }
    }

    /// Formats the point for `--point`.
    pub fn argument(self) -> String {
        match self {
            Self::At(at, Fault::Kill) => at.to_string(),
            Self::At(at, Fault::Torn) => format!("{at}:torn"),
            Self::At(at, Fault::Error(error)) => {
                let name = ERRORS.iter().find(|(_, number)| *number == error);
                format!("{at}:{}", name.map_or("?", |(name, _)| name))
            }
            Self::At(at, Fault::Read(error)) => {
                let name = READ_ERRORS.iter().find(|(.., number)| *number == error);
                format!("{at}:{}", name.map_or("?", |(_, name, _)| name))
            }
            Self::Cut(at, loss) => format!("{at}:{}", loss.name()),
        }
    }
}
