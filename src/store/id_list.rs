//! Files of ids, one a line.

use std::collections::HashSet;
use std::path::Path;

use super::files;
use super::operation_log::{self, Sync};
use super::{Error, ObjectId, Result};

/// Returns the ids in a file; none if it is not there. A line that is not an id is passed over.
pub(super) fn read(path: &Path) -> Result<Option<HashSet<ObjectId>>> {
    let text = files::read(path)?;
    let id = |line: &[u8]| ObjectId::from_hex(line).ok();
    Ok(text.map(|text| text.split(|byte| *byte == b'\n').filter_map(id).collect()))
}

/// Adds those ids to a file that are not in it, durably.
pub(super) fn add<'i>(path: &Path, ids: impl IntoIterator<Item = &'i ObjectId>) -> Result<()> {
    let known = read(path)?.unwrap_or_default();
    let new = ids.into_iter().filter(|id| !known.contains(*id));
    let text: String = new.map(|id| format!("{id}\n")).collect();
    if text.is_empty() {
        return Ok(());
    }
    operation_log::append(path, text.as_bytes(), Sync::Now).map_err(Error::io(path))
}
