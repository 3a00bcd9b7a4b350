//! Chooses the operation to undo: the operation with the given number, or the latest operation that
//! a user requested. A command may log several operations, which are its *parts*. All parts of a
//! command are undone together.

use std::collections::{BTreeMap, HashSet};

use crate::engine;
use crate::engine::operation::log::LogEntry;
use crate::store::{Effect, FileChange, LoggedOperation, ObjectId, RefChange, RefName};
use crate::verbs::Result;

pub(super) enum UndoChoice {
    Undo(UndoTarget),
    /// There is no operation left that a user requested.
    Nothing,
    Already {
        operation: LoggedOperation,
        by: u64,
    },
}

pub(super) struct UndoTarget {
    /// The last part of the command, with the combined effects of all parts.
    pub operation: LoggedOperation,
    /// Numbers of the earlier parts of the command, oldest first.
    pub earlier: Vec<u64>,
    /// Refs that only earlier parts moved. The earlier parts are the snapshots that the command
    /// created at its start. If such a ref was moved again later, the undo does not reset the ref.
    pub optional: Vec<RefName>,
    /// Numbers of later operations that no user requested. These operations are not undone.
    pub passed_by: Vec<u64>,
}

/// Chooses an operation from the log, whose entries are sorted newest first.
pub(super) fn choose(entries: &[LogEntry], number: Option<u64>) -> Result<UndoChoice> {
    let mut passed_by = Vec::new();
    let entry = match number {
        None => {
            let standing: Vec<_> = entries.iter().filter(|entry| is_undoable(entry)).collect();
            let asked_for = standing.iter().position(|entry| !entry.operation.effect.automatic);
            let Some(at) = asked_for else { return Ok(UndoChoice::Nothing) };
            passed_by.extend(standing[..at].iter().map(|entry| entry.operation.number));
            standing[at]
        }
        Some(number) => last_part(entries, number)?,
    };
    if let Some(by) = entry.undone_by {
        return Ok(UndoChoice::Already { operation: entry.operation.clone(), by });
    }
    let mut parts = vec![&entry.operation];
    while let Some(before) = part_before(entries, parts[parts.len() - 1]) {
        parts.push(before);
    }
    parts.reverse();
    let operation = whole(&parts);
    let is_of_last =
        |name: &RefName| entry.operation.effect.refs.iter().any(|change| change.name == *name);
    let names = operation.effect.refs.iter().map(|change| change.name.clone());
    let optional = names.filter(|name| !is_of_last(name)).collect();
    let earlier = parts[..parts.len() - 1].iter().map(|part| part.number).collect();
    Ok(UndoChoice::Undo(UndoTarget { operation, earlier, optional, passed_by }))
}

/// Returns whether an operation can be chosen by default. Excludes operations that were undone,
/// undo operations, entries that only complete an interrupted operation, and parts of a command
/// that has a later part.
fn is_undoable(entry: &LogEntry) -> bool {
    let operation = &entry.operation;
    entry.undone_by.is_none()
        && entry.continued_by.is_none()
        && operation.effect.undoes.is_none()
        && operation.effect.finishes.is_none()
}

fn find(entries: &[LogEntry], number: u64) -> Option<&LogEntry> {
    entries.iter().find(|entry| entry.operation.number == number)
}

fn last_part(entries: &[LogEntry], number: u64) -> Result<&LogEntry> {
    let missing = engine::Error::NoSuchOperation { number };
    let mut entry = find(entries, number).ok_or(missing)?;
    while let Some(later) = entry.continued_by.filter(|later| *later > entry.operation.number)
        && let Some(next) = find(entries, later)
    {
        entry = next;
    }
    Ok(entry)
}

/// Returns the previous part of the same command, unless that part was undone separately.
fn part_before<'e>(entries: &'e [LogEntry], part: &LoggedOperation) -> Option<&'e LoggedOperation> {
    let before = part.effect.continues.filter(|before| *before < part.number)?;
    let entry = find(entries, before).filter(|entry| entry.undone_by.is_none())?;
    Some(&entry.operation)
}

/// Combines the effects of all parts. If another program moved a ref between two parts, the undo
/// resets the ref to the target that it had before the later part.
fn whole(parts: &[&LoggedOperation]) -> LoggedOperation {
    let mut refs: BTreeMap<RefName, RefChange> = BTreeMap::new();
    let mut files: Vec<FileChange> = Vec::new();
    for part in parts {
        for change in &part.effect.refs {
            let earlier = refs.get(&change.name).filter(|earlier| earlier.after == change.before);
            let before = earlier.map_or(change.before, |earlier| earlier.before);
            refs.insert(change.name.clone(), RefChange { before, ..change.clone() });
        }
        for change in &part.effect.files {
            let earlier = files.iter().position(|earlier| earlier.path == change.path);
            let earlier = earlier.map(|at| files.remove(at));
            let before = earlier.map_or(change.before, |earlier| earlier.before);
            files.push(FileChange { before, ..change.clone() });
        }
    }
    // `parts` is never empty: it contains the chosen operation.
    let last = parts[parts.len() - 1].clone();
    let effect = Effect { refs: refs.into_values().collect(), files, ..last.effect };
    LoggedOperation { effect, ..last }
}

impl UndoTarget {
    /// Looks for a later undo that must be undone before this operation: an undo of an earlier
    /// operation that changed the same ref or file. Returns the number of the latest such undo, and
    /// the number of the operation that it undid.
    ///
    /// Without this check, an undo out of order would be accepted if the ref or file happens to
    /// have the expected value.
    pub(super) fn undone_below(&self, entries: &[LogEntry]) -> Option<(u64, u64)> {
        let LoggedOperation { number, effect, .. } = &self.operation;
        let is_meant = |name: &&RefName| !name.is_kept() && !self.optional.contains(name);
        let refs = effect.refs.iter().map(|change| &change.name).filter(is_meant);
        let refs: HashSet<_> = refs.collect();
        let files: HashSet<_> = effect.files.iter().map(|change| &change.path).collect();
        let shares = |operation: &LoggedOperation| {
            operation.effect.refs.iter().any(|change| refs.contains(&change.name))
                || operation.effect.files.iter().any(|change| files.contains(&change.path))
        };
        let later = entries.iter().take_while(|entry| entry.operation.number > *number);
        later.filter(|entry| entry.undone_by.is_none()).find_map(
            |LogEntry { operation, .. }| {
                let undone = operation.effect.undoes.filter(|_| shares(operation))?;
                let mut targets = targets(entries, operation);
                let is_below = targets.any(|target| target.number < *number && shares(target));
                is_below.then_some((operation.number, undone))
            },
        )
    }
}

fn targets<'e>(
    entries: &'e [LogEntry],
    undoing: &'e LoggedOperation,
) -> impl Iterator<Item = &'e LoggedOperation> {
    let numbers = undoing.effect.undoes.iter().chain(&undoing.effect.undoes_also);
    numbers.filter_map(|number| Some(&find(entries, *number)?.operation))
}

pub(super) struct MovedSince {
    /// Whether a later operation moved the ref and is still in effect.
    pub by_standing: bool,
    /// Target of the ref after the latest operation that moved it. `None` if no later operation
    /// moved the ref. `Some(None)` if the ref was deleted.
    pub left_at: Option<Option<ObjectId>>,
}

/// Returns how operations after operation `number` moved a ref.
///
/// An operation that was undone is not in effect. The undo of an operation after `number` does not
/// count, either: both together leave the ref where it was, or at a snapshot of the files that the
/// undo wrote. The undo of an operation before `number` counts like any other operation.
pub(super) fn moved_since(entries: &[LogEntry], number: u64, name: &RefName) -> MovedSince {
    let mut since = MovedSince { by_standing: false, left_at: None };
    let moves = |operation: &LoggedOperation| {
        operation.effect.refs.iter().find(|change| change.name == *name).map(|change| change.after)
    };
    for entry in entries.iter().take_while(|entry| entry.operation.number > number) {
        let operation = &entry.operation;
        let Some(after) = moves(operation) else { continue };
        since.left_at.get_or_insert(after);
        let undoes_later = operation.effect.undoes.is_some_and(|undone| undone > number)
            && targets(entries, operation).all(|it| it.number > number || moves(it).is_none());
        // An entry that completes an interrupted operation belongs to that operation.
        let finishes = operation.effect.finishes.is_some();
        since.by_standing |= entry.undone_by.is_none() && !undoes_later && !finishes;
    }
    since
}
