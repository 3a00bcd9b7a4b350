//! Changes that were made after an operation and prevent its undo, and the earlier states that can
//! be restored instead.

use std::fmt;

use serde::Serialize;

use crate::st::TimelineName;

/// A change that was made after an operation and prevents its undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSince {
    /// The timeline's name, the file's path or the tag.
    pub subject: String,
    pub what: WrittenSince,
}

/// The kind of a change after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenSince {
    /// The numbers of messages that were added, edited and removed in a chat.
    Messages {
        added: usize,
        edited: usize,
        removed: usize,
    },
    /// The file was changed, and the change is not a change of messages.
    Saved,
    Deleted,
    /// The number of later operations that moved the timeline's branch.
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

/// The state of a timeline before an operation, which can be restored as a new chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EarlierState {
    pub timeline: TimelineName,
    /// The permanent name of the earlier state, for `stvc restore`.
    pub moment: String,
    /// An unused name for the new chat.
    pub name: String,
}
