//! What can happen to a command, and where.

use crate::disk::Loss;
use crate::preload::Fault;

/// The errors that every call fails with, once each.
pub const ERRORS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EACCES", 13)];

/// What a read fails with, by the call's name. One that was only interrupted must be made again, and nobody notice.
pub const READ_ERRORS: [(&str, &str, i32); 6] = [
    ("open for reading", "EMFILE", 24),
    ("read", "EIO", 5),
    ("read", "EINTR", EINTR),
    ("mmap", "ENOMEM", 12),
    ("opendir", "EACCES", 13),
    ("readdir", "EIO", 5),
];
pub const EINTR: i32 = 4;

/// What is done to a case at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Kill,
    Error,
    Cut,
    Read,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Kill, Self::Error, Self::Cut, Self::Read];

    pub fn words(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Error => "error",
            Self::Cut => "cut",
            Self::Read => "read",
        }
    }
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A fault at a call.
    At(u64, Fault),
    /// A cut after so many calls of the recording.
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

    /// As `--point` takes it.
    pub fn words(self) -> String {
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
            Self::Cut(at, loss) => format!("{at}:{}", loss.words()),
        }
    }
}
