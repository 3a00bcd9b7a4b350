//! Problems of a snapshot, and their severity.

use std::fmt;

use super::file_role::Role;
use crate::st::{LibraryPath, TimelineName};
use crate::store::{Kind, ObjectId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Only the form of the snapshot is wrong. All files can be restored.
    Flaw,
    /// All files can be restored, but another store must not accept the snapshot, because some of
    /// its data is false or git could not handle it.
    Unsafe,
    /// Files cannot be restored, or not to the right path.
    Fatal,
}

/// Problem of a snapshot. A path is a path in the snapshot's tree, unless documented otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An object of a file is missing or damaged, the manifest cannot be read or contains an
    /// invalid path, or a lorebook or card cannot be rebuilt.
    #[error("{why}")]
    Broken { why: String },
    #[error("it has no snapshot.json")]
    NoManifest,
    #[error("its commit names the timeline {commit}, but its manifest names {manifest}")]
    OtherTimeline { commit: TimelineName, manifest: String },
    #[error("{}", bad_files(*role))]
    BadFiles { role: Role },
    #[error("it has no {path}")]
    NoPart { path: String },
    #[error("{path} has the wrong type")]
    WrongKind { path: String },
    #[error("message {number} is missing")]
    NoMessage { number: usize },
    /// `path` is a path in the library.
    #[error("the rebuilt {path} does not match the manifest (BLAKE3 or length differs)")]
    Differs { path: String },

    #[error("its content id does not match its files")]
    WrongContent,
    #[error("the content ids of its commit and its manifest differ")]
    OtherContent,
    #[error("the name {path:?} is not safe on all systems")]
    UnsafeName { path: String },
    #[error("{path} is neither a file nor a folder")]
    Link { path: String },
    #[error(
        "{path} is not a tree that git would write (wrong order, repeated name or invalid mode)"
    )]
    NotGits { path: String },
    #[error("its tree is too deep for a snapshot")]
    TooDeep,
    #[error("{what} is longer than SillyTavern can read")]
    TooLong { what: String },
    #[error("{why}, but no file of the snapshot needs that object")]
    Lacks { why: String },

    #[error(
        "its list of attachments contains {path} twice, or in a folder where attachments are not allowed"
    )]
    BadAttachment { path: String },
    #[error(
        "its manifest and its list of attachments differ in the number or size of the attachments"
    )]
    AttachmentTotals,
    #[error("{path} does not belong to a snapshot")]
    Extra { path: String },
    #[error("{path} is an entry that the lorebook does not list")]
    UnusedEntry { path: String },
    #[error("the mode of {path} is not 100644")]
    OddMode { path: String },
    #[error("{path} is in the wrong place: it should be {belongs}")]
    Misplaced { path: String, belongs: String },
    #[error("the folder {path} does not have the name of its lorebook")]
    BookFolder { path: String },
    #[error("its manifest does not name the lorebook")]
    NamelessBook,
    #[error("its manifest has a wrong name for {path}")]
    WrongName { path: String },
    #[error("its manifest lists the files in the wrong order")]
    FileOrder,
    #[error("its chat is not split into messages correctly")]
    NotSplit,
    #[error("its {by} states {says} messages, but it has {is}")]
    Count { by: &'static str, says: u64, is: u64 },
    #[error("its commit and its manifest name different lorebooks")]
    OtherLorebook,
}

fn bad_files(role: Role) -> String {
    match role {
        Role::Chat => "it must have exactly one chat".into(),
        role => format!("it has more than one {}", role.as_str()),
    }
}

impl Problem {
    pub fn weight(&self) -> Severity {
        use Problem::*;
        match self {
            BadAttachment { .. } | AttachmentTotals | Extra { .. } | UnusedEntry { .. } => {
                Severity::Flaw
            }
            OddMode { .. } | Misplaced { .. } | BookFolder { .. } | NamelessBook => Severity::Flaw,
            WrongName { .. } | FileOrder | NotSplit | Count { .. } | OtherLorebook => {
                Severity::Flaw
            }
            WrongContent | OtherContent | UnsafeName { .. } | Link { .. } => Severity::Unsafe,
            NotGits { .. } | TooDeep | TooLong { .. } | Lacks { .. } => Severity::Unsafe,
            _ => Severity::Fatal,
        }
    }
}

/// Attachment that cannot be restored, and the reason. The chat can still be restored without the
/// attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentLoss {
    /// `None` if the list of attachments is lost, so that the paths are unknown.
    pub path: Option<LibraryPath>,
    pub cause: LossCause,
    pub why: String,
    /// Missing or damaged object, and its expected kind; `None` if all objects can be read.
    pub object: Option<(ObjectId, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    Lost,
    Name,
    /// The attachment has an uncommon file type, which is not accepted from another store without
    /// confirmation.
    Kind,
}

/// Maximum number of problems listed per snapshot. Further problems are only counted.
const KEPT: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    more: usize,
    worst: Option<Severity>,
    attachments: Vec<AttachmentLoss>,
}

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        let weight = problem.weight();
        if self.list.contains(&problem) {
            return;
        }
        // A problem that is worse than all others goes first, so that it is never dropped from the
        // list.
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

    /// Adds an attachment that cannot be restored.
    pub fn lose_attachment(&mut self, loss: AttachmentLoss) {
        self.attachments.push(loss);
    }

    /// Returns all attachments that cannot be restored.
    pub fn lost_attachments(&self) -> &[AttachmentLoss] {
        &self.attachments
    }

    pub fn is_empty(&self) -> bool {
        self.worst.is_none() && self.attachments.is_empty()
    }

    /// Returns the severity of the worst problem, or `None` if there is no problem.
    pub fn worst(&self) -> Option<Severity> {
        self.worst
    }

    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    pub fn is_fatal(&self) -> bool {
        self.worst == Some(Severity::Fatal)
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
    fn worst_problems_are_listed_first_and_the_rest_are_counted() {
        let mut problems = Problems::default();
        for n in (0..5).chain(0..20) {
            problems.push(Problem::Extra { path: format!("extra {n}") });
        }
        problems.push(Problem::TooDeep);
        problems.push(Problem::NoManifest);
        assert_eq!(problems.worst(), Some(Severity::Fatal));
        assert_eq!(problems.list().len(), KEPT);
        let words = problems.to_string();
        assert!(words.starts_with("it has no snapshot.json; its tree is too deep"), "{words}");
        assert!(words.ends_with("and 14 more"), "{words}");
    }
}
