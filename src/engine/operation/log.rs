//! Reads the operation log, with the present status of each operation.

use std::collections::HashMap;

use crate::engine::{Error, Result};
use crate::store::{LoggedOperation, Store};

/// An operation and its present status.
pub struct LogEntry {
    pub operation: LoggedOperation,
    /// The number of the operation that undid this operation; `None` if there is no such operation
    /// or if it was itself undone.
    pub undone_by: Option<u64>,
    /// The number of the next operation of the same command.
    pub continued_by: Option<u64>,
}

pub(crate) fn find(store: &Store, number: u64) -> Result<LoggedOperation> {
    let found = store.operations()?.0.into_iter().find(|operation| operation.number == number);
    found.ok_or(Error::NoSuchOperation { number })
}

/// Returns all operations, latest first, and the number of unreadable lines.
pub(crate) fn load(store: &Store) -> Result<(Vec<LogEntry>, usize)> {
    let (operations, unreadable) = store.operations()?;
    let (mut undone, mut continued) = (HashMap::new(), HashMap::new());
    let mut entries = Vec::with_capacity(operations.len());
    // Go from the newest to the oldest, so that it is known whether an undo was itself undone
    // before the operation that it undoes is reached.
    for operation in operations.into_iter().rev().filter(|operation| !operation.summary) {
        let number = operation.number;
        let undone_by: Option<u64> = undone.get(&number).copied();
        if undone_by.is_none() {
            let targets = operation.effect.undoes.iter().chain(&operation.effect.undoes_also);
            undone.extend(targets.map(|target| (*target, number)));
            continued.extend(operation.effect.continues.map(|former| (former, number)));
        }
        let continued_by = continued.get(&number).copied();
        entries.push(LogEntry { operation, undone_by, continued_by });
    }
    Ok((entries, unreadable))
}
