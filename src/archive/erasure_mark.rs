//! Marks of erased timelines. A mark identifies an erased timeline in any snapshot, also in one
//! from another device.
//!
//! A mark is a hash, so that the record of erasures does not reveal the erased content. A
//! [`CopyMark`] identifies a file in the library that still contains text of an erased timeline.

use super::message_identity::Identity;
use super::{Blake3, Result, Snapshot, first_message};
use crate::st::TimelineName;
use crate::store::Reader;

/// Returns the marks of a snapshot's timeline: one for its name, and one for its former name if the
/// snapshot records a rename. The mark of a chat is a hash of name and first message, so a chat
/// without messages has no mark. The mark of any other timeline is a hash of name and content.
pub fn erasure_marks(reader: &Reader, snapshot: &Snapshot) -> Result<Vec<String>> {
    let beginning = if snapshot.timeline.is_chat() {
        match first_message(reader, snapshot.tree)? {
            Some(message) => Identity::of(&reader.blob(message)?).to_hex(),
            None => return Ok(Vec::new()),
        }
    } else {
        snapshot.content.to_string()
    };
    let mark = |name: &TimelineName| hash(&format!("stvc erased timeline\n{name}\n{beginning}"));
    Ok([&snapshot.timeline].into_iter().chain(&snapshot.renamed_from).map(mark).collect())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CopyMark {
    path: String,
    content: String,
}

impl CopyMark {
    pub fn of(path: &str, bytes: &[u8]) -> Self {
        Self { path: Self::hash_of_path(path), content: Blake3::of(bytes).to_string() }
    }

    pub fn parse(line: &str) -> Option<Self> {
        let (path, content) = line.split_once(' ')?;
        Some(Self { path: path.to_owned(), content: content.to_owned() })
    }

    pub fn has_path(&self, path: &str) -> bool {
        self.path == Self::hash_of_path(path)
    }

    fn hash_of_path(path: &str) -> String {
        hash(&format!("stvc copy of erased timeline\n{path}"))
    }
}

fn hash(text: &str) -> String {
    Blake3::of(text.as_bytes()).to_string()
}

impl std::fmt::Display for CopyMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path, self.content)
    }
}
