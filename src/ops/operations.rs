//! What was done: the operation log.

use std::collections::HashMap;

use super::{Error, Result, Workspace};
use crate::store::{LoggedOperation, Store};

/// One operation, and whether it still stands.
pub struct Entry {
    /// The operation.
    pub operation: LoggedOperation,
    /// The operation that took it back, if one did and stands itself.
    pub undone_by: Option<u64>,
}

/// The log.
pub struct Report {
    /// Newest first.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read.
    pub unreadable: usize,
}

/// Read the log.
pub fn operations(workspace: &Workspace, limit: Option<usize>) -> Result<Report> {
    let store = workspace.open_store()?;
    let (mut entries, unreadable) = load(&store)?;
    entries.truncate(limit.unwrap_or(usize::MAX));
    Ok(Report { entries, unreadable })
}

/// The operation of that number.
pub(super) fn find(store: &Store, number: u64) -> Result<LoggedOperation> {
    let found = store.operations()?.0.into_iter().find(|operation| operation.number == number);
    found.ok_or(Error::NoSuchOperation { number })
}

/// All operations, newest first, with what was taken back.
pub(super) fn load(store: &Store) -> Result<(Vec<Entry>, usize)> {
    let (operations, unreadable) = store.operations()?;
    let mut undone: HashMap<u64, u64> = HashMap::new();
    let mut entries = Vec::with_capacity(operations.len());
    // From the newest on, an undoing is known to stand or not before what it undid comes up.
    for operation in operations.into_iter().rev().filter(|operation| !operation.summary) {
        let undone_by = undone.get(&operation.number).copied();
        if let (Some(target), None) = (operation.undoes, undone_by) {
            undone.insert(target, operation.number);
        }
        entries.push(Entry { operation, undone_by });
    }
    Ok((entries, unreadable))
}
