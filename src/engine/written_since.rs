//! What was written after an operation, and the states before it that can be had nevertheless: why
//! an undo is refused.

use std::fmt;

use serde::Serialize;

use crate::st::TimelineName;

/// A change after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSince {
    /// The timeline's name, the file's path or the tag.
    pub subject: String,
    pub what: WrittenSince,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenSince {
    /// Messages of a chat.
    Messages {
        added: usize,
        edited: usize,
        removed: usize,
    },
    /// The file, in another way.
    Saved,
    Deleted,
    /// The number of later operations that moved the timeline.
    Snapshots(usize),
    /// The tag was moved or deleted.
    Tag,
}

impl fmt::Display for ChangeSince {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        let count = |n: usize, what: &str| match n {
            1 => format!("1 {what} was"),
            n => format!("{n} {what}s were"),
        };
        match self.what {
            WrittenSince::Messages { added, edited, removed } => {
                let parts = [(added, "added to"), (edited, "edited in"), (removed, "removed from")];
                let parts = parts.into_iter().filter(|(n, _)| *n > 0);
                let parts: Vec<_> = parts
                    .map(|(n, done)| format!("{} {done} {subject}", count(n, "message")))
                    .collect();
                f.write_str(&parts.join(", "))
            }
            WrittenSince::Saved => write!(f, "{subject} was changed"),
            WrittenSince::Deleted => write!(f, "{subject} was deleted"),
            WrittenSince::Snapshots(n) => {
                write!(f, "{} created of {subject}", count(n, "snapshot"))
            }
            WrittenSince::Tag => write!(f, "the tag {subject:?} was moved or deleted"),
        }
    }
}

/// The state before an operation, which can be restored beside what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub timeline: TimelineName,
    /// The name that always means that state.
    pub moment: String,
    pub name: String,
}
