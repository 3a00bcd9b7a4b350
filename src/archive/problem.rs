//! What can be wrong with a snapshot, and how much it matters. The weight of each is decided here, once, for all who ask.

use std::fmt;

use crate::archive::Role;
use crate::st::{LibraryPath, TimelineName};
use crate::store::{self, Kind, ObjectId};

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Every byte comes back; it is told.
    Flaw,
    /// Every byte comes back, but another store must not take it in: it would believe something wrong, or git would be endangered.
    Unsafe,
    /// The bytes do not come back, or not to where they belong.
    Fatal,
}

/// One thing that is wrong with a snapshot. Paths are those in its tree, unless they are said to be the library's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An object that is needed to rebuild a file is missing or damaged.
    Unreadable { id: Option<ObjectId>, why: String },
    /// There is no manifest.
    NoManifest,
    /// The manifest is about another timeline than the commit.
    OtherTimeline { commit: TimelineName, manifest: String },
    /// The manifest has no chat, or has a file of one role twice.
    BadFiles { role: Role },
    /// A part that the manifest promises is not in the tree.
    NoPart { path: String },
    /// A folder where a file belongs, a file where a folder does, or neither.
    WrongKind { path: String },
    /// A message is not there, though later ones are.
    NoMessage { number: usize },
    /// The manifest is none or leads a file to where it does not belong, or a lorebook or card cannot be put together.
    Broken { why: String },
    /// The list of attachments names a path twice, or one where no attachment can be.
    BadAttachment { path: String },
    /// The manifest states another number or total length of attachments than the list.
    AttachmentTotals,
    /// A rebuilt file is not the one that was stored; its path in the library.
    Differs { path: String },
    /// The content id is not that of the files that the manifest lists.
    WrongContent,
    /// The commit names another content id than the manifest.
    OtherContent,
    /// A name that is not safe on every system.
    UnsafeName { path: String },
    /// A link, or an entry that is neither a file nor a folder.
    Link { path: String },
    /// A tree that git does not take for one.
    NotGits { path: String },
    /// Trees within trees, more than any snapshot has.
    TooDeep,
    /// A file or object that is longer than any of SillyTavern's.
    TooLong { what: String },
    /// An object is missing or damaged that no file needs.
    Lacks { why: String },
    /// Something that is no part of a snapshot.
    Extra { path: String },
    /// An entry that the lorebook does not name.
    UnusedEntry { path: String },
    /// A file with another mode than 100644.
    OddMode { path: String },
    /// A message or folder of messages whose name is not written as it should be, or that is in the wrong place.
    Misplaced { path: String, belongs: String },
    /// The lorebook's folder is not called after it.
    BookFolder { path: String },
    /// The manifest does not say what the lorebook is called.
    NamelessBook,
    /// The manifest names a file that is not a lorebook, or calls a lorebook by another name than its timeline.
    WrongName { path: String },
    /// The manifest lists its files in another order.
    FileOrder,
    /// The chat is not split into its lines, or the wrong line is its header.
    NotSplit,
    /// The manifest or the commit, as `by` says, has another number of messages than there are.
    Count { by: &'static str, says: u64, is: u64 },
    /// The commit names another lorebook than the manifest.
    OtherLorebook,
}

impl Problem {
    /// An object that is needed and cannot be had.
    pub(in crate::archive) fn unreadable(error: &store::Error) -> Self {
        let id = match error {
            store::Error::Missing { id } | store::Error::Damaged { id, .. } => Some(*id),
            _ => None,
        };
        Self::Unreadable { id, why: error.to_string() }
    }

    pub fn weight(&self) -> Weight {
        use Problem::*;
        match self {
            Unreadable { .. }
            | NoManifest
            | OtherTimeline { .. }
            | BadFiles { .. }
            | NoPart { .. }
            | WrongKind { .. }
            | NoMessage { .. }
            | Broken { .. }
            | Differs { .. } => Weight::Fatal,
            WrongContent
            | OtherContent
            | UnsafeName { .. }
            | Link { .. }
            | NotGits { .. }
            | TooDeep
            | TooLong { .. }
            | Lacks { .. } => Weight::Unsafe,
            BadAttachment { .. }
            | AttachmentTotals
            | Extra { .. }
            | UnusedEntry { .. }
            | OddMode { .. }
            | Misplaced { .. }
            | BookFolder { .. }
            | NamelessBook
            | WrongName { .. }
            | FileOrder
            | NotSplit
            | Count { .. }
            | OtherLorebook => Weight::Flaw,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Problem::*;
        match self {
            Unreadable { why, .. } | Broken { why } => f.write_str(why),
            NoManifest => f.write_str("it has no snapshot.json"),
            OtherTimeline { commit, manifest } => {
                write!(f, "its commit is of {commit}, its manifest of {manifest}")
            }
            BadAttachment { path } => {
                write!(f, "its list of attachments has {path} twice or where none can be")
            }
            AttachmentTotals => f.write_str(
                "its manifest states another number or length of attachments than its list",
            ),
            BadFiles { role: Role::Chat } => f.write_str("it does not have exactly one chat"),
            BadFiles { role } => write!(f, "it has more than one {}", role.as_str()),
            NoPart { path } => write!(f, "it has no {path}"),
            WrongKind { path } => write!(f, "{path} is not what belongs there"),
            NoMessage { number } => write!(f, "message {number} is not there"),
            Differs { path } => {
                write!(
                    f,
                    "{path}, rebuilt, is not what the manifest says (BLAKE3 or length differ)"
                )
            }
            WrongContent => f.write_str("its content id is not that of its files"),
            OtherContent => f.write_str("its commit has another content id than its manifest"),
            UnsafeName { path } => write!(f, "{path:?} is a name that is not safe everywhere"),
            Link { path } => write!(f, "{path} is neither a file nor a folder"),
            NotGits { path } => {
                write!(f, "{path} is not as git writes trees (order, a name twice, a mode)")
            }
            TooDeep => f.write_str("its tree is deeper than that of any snapshot"),
            TooLong { what } => write!(f, "{what} is longer than SillyTavern can read"),
            Lacks { why } => write!(f, "{why}; no file needs it"),
            Extra { path } => write!(f, "{path} is no part of a snapshot"),
            UnusedEntry { path } => write!(f, "{path} is an entry that the lorebook does not name"),
            OddMode { path } => write!(f, "{path} has another mode than 100644"),
            Misplaced { path, belongs } => write!(f, "{path} should be {belongs}"),
            BookFolder { path } => write!(f, "{path} is not called after the lorebook"),
            NamelessBook => f.write_str("its manifest does not name the lorebook"),
            WrongName { path } => write!(f, "its manifest has a wrong name for {path}"),
            FileOrder => f.write_str("its manifest lists the files in another order"),
            NotSplit => f.write_str("its chat is not split as it should be"),
            Count { by, says, is } => write!(f, "its {by} says {says} messages, it has {is}"),
            OtherLorebook => f.write_str("its commit names another lorebook than its manifest"),
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
    /// The object that is missing or damaged, and the kind that it should have. `None` if all objects can be read.
    pub object: Option<(ObjectId, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// It is missing from the store, or damaged there, or this system has no such file names.
    Lost,
    /// Its name belongs to stvc.
    Name,
    /// Its kind is none that comes from elsewhere without asking.
    Kind,
}

/// How many problems of one snapshot are kept: a tree may be full of them.
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

    /// Notes an attachment that cannot be restored. It has no weight: everything else can be restored and copied.
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

    /// How bad the worst is; none: there is no problem.
    pub fn worst(&self) -> Option<Weight> {
        self.worst
    }

    /// The first of them, the worst first.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// Whether the bytes do not come back.
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
