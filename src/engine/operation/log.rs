//! What was done, and what of it still stands.

use std::collections::HashMap;

use crate::engine::{Error, Result};
use crate::store::{LoggedOperation, Store};

/// One operation, and whether it still stands.
pub struct Logged {
    /// The operation.
    pub operation: LoggedOperation,
    /// The operation that took it back, if one did and stands itself.
    pub undone_by: Option<u64>,
}

/// The operation of that number.
pub(crate) fn find(store: &Store, number: u64) -> Result<LoggedOperation> {
    let found = store.operations()?.0.into_iter().find(|operation| operation.number == number);
    found.ok_or(Error::NoSuchOperation { number })
}

/// All operations, newest first, with what was taken back.
pub(crate) fn load(store: &Store) -> Result<(Vec<Logged>, usize)> {
    let (operations, unreadable) = store.operations()?;
    let mut undone: HashMap<u64, u64> = HashMap::new();
    let mut entries = Vec::with_capacity(operations.len());
    // From the newest on, an undoing is known to stand or not before what it undid comes up.
    for operation in operations.into_iter().rev().filter(|operation| !operation.summary) {
        let undone_by = undone.get(&operation.number).copied();
        if let (Some(target), None) = (operation.undoes, undone_by) {
            undone.insert(target, operation.number);
        }
        entries.push(Logged { operation, undone_by });
    }
    Ok((entries, unreadable))
}
