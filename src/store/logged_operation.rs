//! Operations as they are recorded in the operation log.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::{ObjectId, RefChange, Sequence, hex};

/// An operation: one line of the operation log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOperation {
    /// Number of the operation, counting from 1.
    pub number: u64,
    /// Time of the operation, as RFC 3339.
    pub time: String,
    /// Command line, beginning with the program.
    pub command: Vec<String>,
    /// Refs and files that the operation changed.
    #[serde(flatten)]
    pub effect: Effect,
    /// Whether this line replaces all older operations, which were dropped from the log. Its refs
    /// are those that the dropped operations left behind. It cannot be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    /// Numbers of earlier operations that were interrupted and not finished when this one was
    /// logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<u64>,
}

impl LoggedOperation {
    /// Returns the position of this operation in the order of operations; `None` if `time` is
    /// invalid.
    pub fn sequence(&self) -> Option<Sequence> {
        let of_time = || DateTime::parse_from_rfc3339(&self.time).ok();
        self.effect.sequence.or_else(|| Some(Sequence::at(of_time()?.timestamp())))
    }

    /// Returns the commits that contain old or new bytes of the files that this operation wrote.
    pub fn commits(&self) -> impl Iterator<Item = ObjectId> {
        self.stored().filter_map(|(_, stored)| match stored {
            StoredAs::Commit(id) => Some(*id),
            StoredAs::Blob(_) => None,
        })
    }

    /// Returns the blobs with old or new bytes of the files that this operation wrote, each with
    /// the path of the file.
    pub fn blobs(&self) -> impl Iterator<Item = (&str, ObjectId)> {
        self.stored().filter_map(|(path, stored)| match stored {
            StoredAs::Blob(id) => Some((path, *id)),
            StoredAs::Commit(_) => None,
        })
    }

    fn stored(&self) -> impl Iterator<Item = (&str, &StoredAs)> {
        self.effect.files.iter().flat_map(|file| {
            file.before.iter().chain(&file.after).map(|stored| (file.path.as_str(), stored))
        })
    }
}

/// Effects of a command on refs and files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Position in the order of operations; `None` if it follows from the time of the operation. In
    /// an effect that is passed to `Store::transact`: the position of its last snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Sequence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<RefChange>,
    /// Number of the operation that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Numbers of further operations that this one undoes. They belong to the same command as the
    /// operation in `undoes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_also: Vec<u64>,
    /// Number of the interrupted operation that this one finishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finishes: Option<u64>,
    /// Number of the previous operation of the same command. All operations of a command are undone
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u64>,
    /// Files of the user, outside the store, that the command writes, in the order of writing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Path of the library that contains `files`; `None` if the library is the folder that contains
    /// the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Whether a program ran the command automatically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

impl Effect {
    pub fn moves(refs: Vec<RefChange>) -> Self {
        Self { refs, ..Self::default() }
    }

    /// Returns a copy of the effect without references to other operations.
    pub(super) fn alone(&self) -> Self {
        let (undoes, finishes, continues) = (None, None, None);
        Self { undoes, undoes_also: Vec::new(), finishes, continues, ..self.clone() }
    }
}

/// A file that a command wrote, with the objects that contain its old and new bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path of the file, in the form that the layer above uses.
    pub path: String,
    /// Object with the old bytes of the file; `None` if the file did not exist.
    pub before: Option<StoredAs>,
    /// Object with the new bytes of the file; `None` if the file is removed.
    pub after: Option<StoredAs>,
}

impl FileChange {
    /// Returns the change that reverts this one.
    pub fn reversed(&self) -> Self {
        Self { path: self.path.clone(), before: self.after, after: self.before }
    }
}

/// The object that contains the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredAs {
    /// A blob with exactly the bytes of the file.
    Blob(#[serde(with = "hex")] ObjectId),
    /// A snapshot that contains the file. The layer above knows how to find the file in it.
    #[serde(rename = "snapshot")]
    Commit(#[serde(with = "hex")] ObjectId),
}
