//! Tags of snapshots.

use super::{Result, TagError};
use crate::archive::SnapshotId;
use crate::history::{self, name_lookup};
use crate::st::TimelineName;
use crate::store::{ObjectId, RefName, Store};

pub(crate) fn tags_of(store: &Store, snapshot: SnapshotId) -> Result<Vec<String>> {
    let tags = store.refs("refs/tags/")?.refs.into_iter();
    Ok(tags.filter(|(_, id)| *id == snapshot.0).filter_map(|(name, _)| name.tag_name()).collect())
}

pub(crate) fn tag_ref(name: &str) -> Result<RefName> {
    let bad = |why| TagError::BadName { name: name.to_owned(), why }.into();
    if name.trim().is_empty() {
        return Err(bad("it is empty"));
    }
    if name.starts_with("b3:") {
        return Err(bad("b3: is the prefix of content ids"));
    }
    RefName::tag(name).ok_or_else(|| bad("it is too long"))
}

/// Returns the ref of a new tag. Refuses a name that looks like an id, a moment or a chat.
pub(crate) fn wanted(store: &Store, name: &str) -> Result<RefName> {
    let bad = |why| TagError::BadName { name: name.to_owned(), why };
    if name_lookup::is_like_id(name) {
        return Err(bad("it looks like the beginning of a snapshot id").into());
    }
    let steps = name.rsplit_once('~').map(|(_, steps)| steps);
    if steps.is_some_and(|steps| steps.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(bad("a final ~N means N snapshots earlier").into());
    }
    let heads = history::heads(store)?;
    if heads.iter().any(|head| name_lookup::is_named(&head.timeline, name)) {
        return Err(bad("a chat has this name").into());
    }
    tag_ref(name)
}

pub(crate) fn free(store: &Store, name: &str) -> Result<RefName> {
    let tag = wanted(store, name)?;
    match store.ref_target(&tag)? {
        None => Ok(tag),
        Some(id) => Err(TagError::Taken { name: name.to_owned(), snapshot: id.to_string() }.into()),
    }
}

/// Returns the default tag of a checkpoint of a chat at a message.
pub(crate) fn at_message(chat: &TimelineName, message: usize) -> String {
    let chat: String = chat.chat().chars().take(60).collect();
    format!("{} @{message}", chat.trim())
}

/// Returns the ref of the tag `name` for `snapshot`, with a number if another snapshot has that
/// tag. `moving` returns the new target of a ref that the command itself moves.
pub(crate) fn free_like(
    store: &Store,
    moving: impl Fn(&RefName) -> Option<ObjectId>,
    name: &str,
    snapshot: SnapshotId,
) -> Result<RefName> {
    let mut number = 1;
    loop {
        let numbered = if number == 1 { name.to_owned() } else { format!("{name} ({number})") };
        let tag = tag_ref(&numbered)?;
        match moving(&tag).or(store.ref_target(&tag)?) {
            Some(id) if id != snapshot.0 => number += 1,
            _ => return Ok(tag),
        }
    }
}
