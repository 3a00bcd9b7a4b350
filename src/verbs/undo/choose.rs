//! Which operation is undone: the one that was named, or the last that somebody asked for; with all parts of its command.

use std::collections::BTreeMap;

use crate::engine;
use crate::engine::operation::log::Logged;
use crate::store::{FileChange, LoggedOperation, ObjectId, RefChange, RefName};
use crate::verbs::{Result, UndoError};

/// What is undone.
pub(super) struct Chosen {
    /// Its last operation, with what all parts of its command did.
    pub operation: LoggedOperation,
    /// The parts before the last one, oldest first.
    pub earlier: Vec<u64>,
    /// The refs that only earlier parts moved: snapshots that the command began with. One that went on since stays.
    pub optional: Vec<RefName>,
    /// Later operations that nobody asked for.
    pub passed_by: Vec<u64>,
}

/// Chooses from the log, which is newest first.
pub(super) fn choose(entries: &[Logged], number: Option<u64>) -> Result<Chosen> {
    let mut passed_by = Vec::new();
    let entry = match number {
        None => {
            let standing: Vec<_> = entries.iter().filter(|entry| stands(entry)).collect();
            let asked_for = standing.iter().position(|entry| !is_automatic(&entry.operation));
            let at = asked_for.ok_or(UndoError::Nothing)?;
            passed_by.extend(standing[..at].iter().map(|entry| entry.operation.number));
            standing[at]
        }
        Some(number) => last_part(entries, number)?,
    };
    if let Some(by) = entry.undone_by {
        return Err(UndoError::Already { number: entry.operation.number, by }.into());
    }
    let mut parts = vec![&entry.operation];
    while let Some(before) = part_before(entries, parts[parts.len() - 1]) {
        parts.push(before);
    }
    parts.reverse();
    let operation = whole(&parts);
    let is_of_last =
        |name: &RefName| entry.operation.refs.iter().any(|change| change.name == *name);
    let names = operation.refs.iter().map(|change| change.name.clone());
    let optional = names.filter(|name| !is_of_last(name)).collect();
    let earlier = parts[..parts.len() - 1].iter().map(|part| part.number).collect();
    Ok(Chosen { operation, earlier, optional, passed_by })
}

/// Whether nothing took it back, it is not an undoing or a repair of the log, and no later part of its command stands for it.
fn stands(entry: &Logged) -> bool {
    let operation = &entry.operation;
    entry.undone_by.is_none()
        && entry.continued_by.is_none()
        && operation.undoes.is_none()
        && operation.finishes.is_none()
}

/// Whether nobody asked for it. The first version did not note that, but who was at work.
fn is_automatic(operation: &LoggedOperation) -> bool {
    operation.automatic || operation.command.get(1).is_some_and(|word| word == "watch")
}

fn find(entries: &[Logged], number: u64) -> Option<&Logged> {
    entries.iter().find(|entry| entry.operation.number == number)
}

/// Returns the last part of the command that an operation is part of.
fn last_part(entries: &[Logged], number: u64) -> Result<&Logged> {
    let missing = engine::Error::NoSuchOperation { number };
    let mut entry = find(entries, number).ok_or(missing)?;
    while let Some(later) = entry.continued_by.filter(|later| *later > entry.operation.number)
        && let Some(next) = find(entries, later)
    {
        entry = next;
    }
    Ok(entry)
}

/// Returns the part of a command before this one, if it is in the log and was not undone by itself.
fn part_before<'e>(entries: &'e [Logged], part: &LoggedOperation) -> Option<&'e LoggedOperation> {
    let before = part.continues.filter(|before| *before < part.number)?;
    let entry = find(entries, before).filter(|entry| entry.undone_by.is_none())?;
    Some(&entry.operation)
}

/// Returns what all parts did, as one operation. A ref that somebody else moved between two parts goes back to where the later one found it.
fn whole(parts: &[&LoggedOperation]) -> LoggedOperation {
    let mut refs: BTreeMap<RefName, RefChange> = BTreeMap::new();
    let mut files: Vec<FileChange> = Vec::new();
    for part in parts {
        for change in &part.refs {
            let earlier = refs.get(&change.name).filter(|earlier| earlier.after == change.before);
            let before = earlier.map_or(change.before, |earlier| earlier.before);
            refs.insert(change.name.clone(), RefChange { before, ..change.clone() });
        }
        for change in &part.files {
            let earlier = files.iter().position(|earlier| earlier.path == change.path);
            let earlier = earlier.map(|at| files.remove(at));
            let before = earlier.map_or(change.before, |earlier| earlier.before);
            files.push(FileChange { before, ..change.clone() });
        }
    }
    // There is a part: the one that was chosen.
    let last = parts[parts.len() - 1].clone();
    LoggedOperation { refs: refs.into_values().collect(), files, ..last }
}

/// Whether all that moved a ref after an operation was undone, or undid it: then the ref is where that operation left it, but for the snapshot
/// of what an undoing wrote.
pub(super) fn only_undone_since(
    entries: &[Logged],
    number: u64,
    name: &RefName,
    now: Option<ObjectId>,
) -> bool {
    let mut last = None;
    for entry in entries.iter().take_while(|entry| entry.operation.number > number) {
        for change in entry.operation.refs.iter().filter(|change| change.name == *name) {
            if entry.undone_by.is_none() && entry.operation.undoes.is_none() {
                return false;
            }
            last.get_or_insert(change.after);
        }
    }
    last == Some(now)
}
