//! One command as the log has it.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::{ObjectId, RefChange, Sequence};

/// A line of the operation log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOperation {
    /// Counts up from 1.
    pub number: u64,
    /// When, as RFC 3339.
    pub time: String,
    /// The command line, program first.
    pub command: Vec<String>,
    #[serde(flatten)]
    pub effect: Effect,
    /// Replaces all older ones, which were dropped: it has the refs they left, and cannot be
    /// undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    /// Operations before this one that were interrupted and could not be finished yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<u64>,
}

impl LoggedOperation {
    /// Returns its position in the order of operations; `None` if its time cannot be read.
    pub fn sequence(&self) -> Option<Sequence> {
        let of_time = || DateTime::parse_from_rfc3339(&self.time).ok();
        self.effect.sequence.or_else(|| Some(Sequence::at(of_time()?.timestamp())))
    }

    /// Returns the commits that hold files it wrote or replaced.
    pub fn commits(&self) -> impl Iterator<Item = ObjectId> {
        self.kept().filter_map(|kept| match kept {
            Kept::Commit(id) => Some(*id),
            Kept::Blob(_) => None,
        })
    }

    /// Returns the blobs that are such files, each with the path of the file.
    pub fn blobs(&self) -> impl Iterator<Item = (&str, ObjectId)> {
        self.effect.files.iter().flat_map(|file| {
            file.before.iter().chain(&file.after).filter_map(|kept| match kept {
                Kept::Blob(id) => Some((file.path.as_str(), *id)),
                Kept::Commit(_) => None,
            })
        })
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.effect.files.iter().flat_map(|file| file.before.iter().chain(&file.after))
    }
}

/// The effects of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Its position in the order of operations, if the time alone does not give it. Before it is
    /// logged: that of its last snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Sequence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<RefChange>,
    /// The operation that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// The other parts of that command, which it takes back with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_also: Vec<u64>,
    /// The operation that was interrupted, and that it brings to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finishes: Option<u64>,
    /// The operation before it of the same command; both are undone together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u64>,
    /// Files of the user's that the command writes, outside the store, in the order of writing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// The folder of these files, if it is not the one that holds the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// A program did it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

impl Effect {
    pub fn moves(refs: Vec<RefChange>) -> Self {
        Self { refs, ..Self::default() }
    }

    /// Returns it without what it says about other operations.
    pub(super) fn alone(&self) -> Self {
        let (undoes, finishes, continues) = (None, None, None);
        Self { undoes, undoes_also: Vec::new(), finishes, continues, ..self.clone() }
    }
}

/// One file that a command wrote: where, and which objects hold its bytes before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path, as the layer above names it.
    pub path: String,
    /// The object with its old bytes; `None` if there was no such file.
    pub before: Option<Kept>,
    /// The object with its new bytes; `None` if it is removed.
    pub after: Option<Kept>,
}

impl FileChange {
    /// Returns the way back.
    pub fn reversed(&self) -> Self {
        Self { path: self.path.clone(), before: self.after, after: self.before }
    }
}

/// The object that holds the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// A blob of the file alone.
    Blob(#[serde(with = "hex")] ObjectId),
    /// A snapshot that has the file; the layer above knows where.
    #[serde(rename = "snapshot")]
    Commit(#[serde(with = "hex")] ObjectId),
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::ObjectId;

    pub fn serialize<S: Serializer>(id: &ObjectId, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<ObjectId, D::Error> {
        let text = String::deserialize(input)?;
        ObjectId::from_hex(text.as_bytes()).map_err(|_| serde::de::Error::custom("no object id"))
    }
}
