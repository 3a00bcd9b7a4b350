//! Recognises a timeline that was removed for good, also in snapshots that another device took of it.
//!
//! A mark is a hash, so that the record of removals does not tell what was removed.

use super::message_identity::Identity;
use super::{Result, Snapshot, first_message};
use crate::st::TimelineName;
use crate::store::Reader;

/// Returns the marks of the timeline that a snapshot belongs to, one for each name that the snapshot has for it. A chat is recognised by its name and first message, everything else by its name and content.
pub fn erasure_marks(reader: &Reader, snapshot: &Snapshot) -> Result<Vec<String>> {
    let beginning = match snapshot.timeline.is_chat() {
        true => match first_message(reader, snapshot.tree)? {
            Some(message) => Identity::of(&reader.blob(message)?).to_hex(),
            None => return Ok(Vec::new()),
        },
        false => snapshot.content.to_string(),
    };
    let mark = |name: &TimelineName| {
        let text = format!("stvc erased timeline\n{name}\n{beginning}");
        blake3::hash(text.as_bytes()).to_hex().to_string()
    };
    Ok([&snapshot.timeline].into_iter().chain(&snapshot.renamed_from).map(mark).collect())
}
