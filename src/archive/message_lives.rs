//! Finds a message in another state of a chat: by object id, and by content only if that state does
//! not contain the object id.

use std::collections::HashMap;
use std::sync::Arc;

use super::diff::message_changes;
use super::diff::{Change, MessagePlace};
use super::layout::Layout;
use crate::store::{self, ObjectId, Reader, unless_lost};

/// Reads the object ids of all messages, state by state. Caches the message folders of the last
/// state, because the next state shares most of them.
pub struct MessageLists {
    reader: Reader,
    folders: HashMap<ObjectId, Arc<[ObjectId]>>,
}

impl MessageLists {
    pub fn new(reader: Reader) -> Self {
        Self { reader, folders: HashMap::new() }
    }

    pub fn of(&mut self, tree: ObjectId) -> store::Result<Vec<ObjectId>> {
        let mut layout = Layout::new(&self.reader);
        let Some(chat) = layout.root(tree)?.chat else { return Ok(Vec::new()) };
        let Some(messages) = layout.chat(chat)?.folder else { return Ok(Vec::new()) };
        let folders = layout.folders(messages)?;
        let mut list = Vec::new();
        let mut kept = HashMap::with_capacity(folders.len());
        for (number, id) in folders {
            let ids = match self.folders.get(&id) {
                Some(ids) => Arc::clone(ids),
                None => layout.messages(number, id)?.into_iter().map(|(_, id)| id).collect(),
            };
            list.extend_from_slice(&ids);
            kept.insert(id, ids);
        }
        self.folders = kept;
        Ok(list)
    }
}

/// Returns the position in `to` of the message at position `at` in `from`, or `None` if `to` does
/// not contain the message.
pub fn counterpart(
    reader: &Reader,
    from: &[ObjectId],
    to: &[ObjectId],
    at: usize,
) -> store::Result<Option<usize>> {
    let head = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    if at < head {
        return Ok(Some(at));
    }
    let (left, there) = (&from[head..], &to[head..]);
    let tail = left.iter().rev().zip(there.iter().rev()).take_while(|(a, b)| a == b).count();
    if from.len() - at <= tail {
        return Ok(Some(to.len() - (from.len() - at)));
    }
    let (left, there) = (&left[..left.len() - tail], &there[..there.len() - tail]);
    let at = at - head;
    let itself = |place: &usize| there[*place] == left[at];
    let places = (0..there.len()).filter(itself);
    if let Some(place) = places.min_by_key(|place| place.abs_diff(at)) {
        return Ok(Some(place + head));
    }
    if there.is_empty() {
        return Ok(None);
    }
    let (left, there) = (lines(reader, left)?, lines(reader, there)?);
    let changes = message_changes(&borrowed(&left), &borrowed(&there));
    let is_it = |change: &&Change<'_>| {
        change.after.is_some() && change.from == Some(MessagePlace::Message(at))
    };
    Ok(changes.iter().find(is_it).and_then(|change| match change.place {
        MessagePlace::Message(place) => Some(place + head),
        _ => None,
    }))
}

/// Reads messages. A missing or damaged message is read as empty.
fn lines(reader: &Reader, ids: &[ObjectId]) -> store::Result<Vec<Vec<u8>>> {
    ids.iter().map(|id| Ok(unless_lost(reader.blob(*id))?.unwrap_or_default())).collect()
}

fn borrowed(lines: &[Vec<u8>]) -> Vec<&[u8]> {
    lines.iter().map(Vec::as_slice).collect()
}
