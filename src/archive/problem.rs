//! Problems of a snapshot, and how much each matters.

use std::fmt;

use super::file_role::Role;
use crate::st::{LibraryPath, TimelineName};
use crate::store::{Kind, ObjectId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Every byte can be restored.
    Flaw,
    /// Every byte can be restored, but another store must not accept it: it would believe something
    /// wrong, or git would be endangered.
    Unsafe,
    /// The bytes cannot be restored, or not to where they belong.
    Fatal,
}

/// A problem of a snapshot. Paths are those in its tree, unless they are said to be the library's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An object that a file needs is missing or damaged, a manifest cannot be read or leads a file
    /// to where it does not belong, or a lorebook or card cannot be put together.
    #[error("{why}")]
    Broken { why: String },
    #[error("it has no snapshot.json")]
    NoManifest,
    #[error("its commit is of {commit}, its manifest of {manifest}")]
    OtherTimeline { commit: TimelineName, manifest: String },
    #[error("{}", bad_files(*role))]
    BadFiles { role: Role },
    #[error("it has no {path}")]
    NoPart { path: String },
    #[error("{path} is not what belongs there")]
    WrongKind { path: String },
    #[error("message {number} is not there")]
    NoMessage { number: usize },
    /// The path is the library's.
    #[error("{path}, rebuilt, is not what the manifest says (BLAKE3 or length differ)")]
    Differs { path: String },

    #[error("its content id is not that of its files")]
    WrongContent,
    #[error("its commit has another content id than its manifest")]
    OtherContent,
    #[error("{path:?} is a name that is not safe everywhere")]
    UnsafeName { path: String },
    #[error("{path} is neither a file nor a folder")]
    Link { path: String },
    #[error("{path} is not as git writes trees (order, a name twice, a mode)")]
    NotGits { path: String },
    #[error("its tree is deeper than that of any snapshot")]
    TooDeep,
    #[error("{what} is longer than SillyTavern can read")]
    TooLong { what: String },
    #[error("{why}; no file needs it")]
    Lacks { why: String },

    #[error("its list of attachments has {path} twice or where none can be")]
    BadAttachment { path: String },
    #[error("its manifest states another number or length of attachments than its list")]
    AttachmentTotals,
    #[error("{path} is no part of a snapshot")]
    Extra { path: String },
    #[error("{path} is an entry that the lorebook does not name")]
    UnusedEntry { path: String },
    #[error("{path} has another mode than 100644")]
    OddMode { path: String },
    #[error("{path} should be {belongs}")]
    Misplaced { path: String, belongs: String },
    #[error("{path} is not called after the lorebook")]
    BookFolder { path: String },
    #[error("its manifest does not name the lorebook")]
    NamelessBook,
    #[error("its manifest has a wrong name for {path}")]
    WrongName { path: String },
    #[error("its manifest lists the files in another order")]
    FileOrder,
    #[error("its chat is not split as it should be")]
    NotSplit,
    #[error("its {by} says {says} messages, it has {is}")]
    Count { by: &'static str, says: u64, is: u64 },
    #[error("its commit names another lorebook than its manifest")]
    OtherLorebook,
}

fn bad_files(role: Role) -> String {
    match role {
        Role::Chat => "it does not have exactly one chat".into(),
        role => format!("it has more than one {}", role.as_str()),
    }
}

impl Problem {
    pub fn weight(&self) -> Weight {
        use Problem::*;
        match self {
            BadAttachment { .. } | AttachmentTotals | Extra { .. } | UnusedEntry { .. } => {
                Weight::Flaw
            }
            OddMode { .. } | Misplaced { .. } | BookFolder { .. } | NamelessBook => Weight::Flaw,
            WrongName { .. } | FileOrder | NotSplit | Count { .. } | OtherLorebook => Weight::Flaw,
            WrongContent | OtherContent | UnsafeName { .. } | Link { .. } => Weight::Unsafe,
            NotGits { .. } | TooDeep | TooLong { .. } | Lacks { .. } => Weight::Unsafe,
            _ => Weight::Fatal,
        }
    }
}

/// An attachment that cannot be restored. It never prevents the chat from being restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentLoss {
    /// `None` if the list is lost, so that the snapshot's attachments are unknown.
    pub path: Option<LibraryPath>,
    pub cause: LossCause,
    pub why: String,
    /// The lost object and its expected kind; `None` if all objects can be read.
    pub object: Option<(ObjectId, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    Lost,
    Name,
    /// Its kind is none that comes from elsewhere without asking.
    Kind,
}

/// The most problems kept of one snapshot: a tree may be full of them.
const KEPT: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    more: usize,
    worst: Option<Weight>,
    attachments: Vec<AttachmentLoss>,
}

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        let weight = problem.weight();
        if self.list.contains(&problem) {
            return;
        }
        // The one that decides is always among those that are told.
        if self.worst.is_some_and(|worst| worst < weight) {
            self.list.insert(0, problem);
        } else {
            self.list.push(problem);
        }
        self.worst = self.worst.max(Some(weight));
        if self.list.len() > KEPT {
            self.list.pop();
            self.more += 1;
        }
    }

    pub fn extend(&mut self, part: &Problems) {
        part.list.iter().cloned().for_each(|problem| self.push(problem));
        self.more += part.more;
        part.attachments.iter().cloned().for_each(|loss| self.lose_attachment(loss));
    }

    /// Notes an attachment that cannot be restored. Everything else can be.
    pub fn lose_attachment(&mut self, loss: AttachmentLoss) {
        self.attachments.push(loss);
    }

    /// Returns the attachments that cannot be restored, all of them.
    pub fn lost_attachments(&self) -> &[AttachmentLoss] {
        &self.attachments
    }

    pub fn is_empty(&self) -> bool {
        self.worst.is_none() && self.attachments.is_empty()
    }

    /// Returns how bad the worst is; none: there is no problem.
    pub fn worst(&self) -> Option<Weight> {
        self.worst
    }

    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    pub fn is_fatal(&self) -> bool {
        self.worst == Some(Weight::Fatal)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.list.iter().enumerate() {
            let between = if n > 0 { "; " } else { "" };
            write!(f, "{between}{problem}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_problems_the_worst_is_told_first() {
        let mut problems = Problems::default();
        for n in (0..5).chain(0..20) {
            problems.push(Problem::Extra { path: format!("extra {n}") });
        }
        problems.push(Problem::TooDeep);
        problems.push(Problem::NoManifest);
        assert_eq!(problems.worst(), Some(Weight::Fatal));
        assert_eq!(problems.list().len(), KEPT);
        let words = problems.to_string();
        assert!(words.starts_with("it has no snapshot.json; its tree is deeper"), "{words}");
        assert!(words.ends_with("and 14 more"), "{words}");
    }
}
