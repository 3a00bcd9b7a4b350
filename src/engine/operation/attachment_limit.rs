//! The limit for the total size of stored attachments. The user sets the limit in the
//! configuration, with the key `attachments`.

use std::collections::{BTreeMap, HashSet};

use crate::archive::Tree;
use crate::engine::Result;
use crate::engine::configuration::Configuration;
use crate::history;
use crate::rules::{Code, Finding};
use crate::st::LibraryPath;
use crate::store::{Store, unless_lost};

/// Returns how many bytes of attachments may still be stored.
pub(super) fn room(store: &Store) -> Result<u64> {
    let limit = Configuration::or_defaults(store).attachments;
    Ok(limit.saturating_sub(stored_bytes(store)?))
}

pub(super) fn exceeded(left_out: &BTreeMap<LibraryPath, u64>) -> Option<Finding> {
    let (first, _) = left_out.first_key_value()?;
    let (many, bytes) = (left_out.len(), left_out.values().sum::<u64>());
    let message = format!(
        "attachments beyond the limit are not stored: {many} in total, {:.1} MB",
        bytes as f64 / 1e6
    );
    let finding = Finding::new(Code::AttachmentsLeftOut, first.as_str(), message);
    Some(finding.remedy("run `stvc config attachments 2000000000` to set the limit in bytes; the next snapshot of the chat then stores them"))
}

/// Returns the total length in bytes of all attachments in the latest snapshots. An attachment in
/// several snapshots is counted once.
pub(crate) fn stored_bytes(store: &Store) -> Result<u64> {
    let reader = store.reader();
    let mut known = HashSet::new();
    let mut bytes = 0;
    for head in history::heads(store)?.iter().filter(|head| head.timeline.is_chat()) {
        let attached = unless_lost(Tree::attachments_of(&reader, head.tree))?.unwrap_or_default();
        let new = attached.iter().filter(|attachment| known.insert(attachment.blob));
        bytes = new.map(|attachment| attachment.bytes).fold(bytes, u64::saturating_add);
    }
    Ok(bytes)
}
