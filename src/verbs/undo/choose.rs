//! Chooses the operation to undo: the named one, or the last that a user asked for; with all parts
//! of its command.

use std::collections::{BTreeMap, HashSet};

use crate::engine;
use crate::engine::operation::log::Logged;
use crate::store::{Effect, FileChange, LoggedOperation, ObjectId, RefChange, RefName};
use crate::verbs::Result;

pub(super) enum Choice {
    Undo(Chosen),
    /// No operation that a user asked for is left.
    Nothing,
    Already {
        operation: LoggedOperation,
        by: u64,
    },
}

pub(super) struct Chosen {
    /// The last operation, with the effects of all parts of its command.
    pub operation: LoggedOperation,
    /// The parts before the last one, oldest first.
    pub earlier: Vec<u64>,
    /// Refs that only earlier parts moved: snapshots that the command began with. One that moved
    /// since stays.
    pub optional: Vec<RefName>,
    /// Later operations that no user asked for.
    pub passed_by: Vec<u64>,
}

/// Chooses from the log, which is newest first.
pub(super) fn choose(entries: &[Logged], number: Option<u64>) -> Result<Choice> {
    let mut passed_by = Vec::new();
    let entry = match number {
        None => {
            let standing: Vec<_> = entries.iter().filter(|entry| stands(entry)).collect();
            let asked_for = standing.iter().position(|entry| !entry.operation.effect.automatic);
            let Some(at) = asked_for else { return Ok(Choice::Nothing) };
            passed_by.extend(standing[..at].iter().map(|entry| entry.operation.number));
            standing[at]
        }
        Some(number) => last_part(entries, number)?,
    };
    if let Some(by) = entry.undone_by {
        return Ok(Choice::Already { operation: entry.operation.clone(), by });
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
    Ok(Choice::Undo(Chosen { operation, earlier, optional, passed_by }))
}

/// An undo, a repair of the log, or an operation with a later part of its command is not chosen by
/// itself.
fn stands(entry: &Logged) -> bool {
    let operation = &entry.operation;
    entry.undone_by.is_none()
        && entry.continued_by.is_none()
        && operation.effect.undoes.is_none()
        && operation.effect.finishes.is_none()
}

fn find(entries: &[Logged], number: u64) -> Option<&Logged> {
    entries.iter().find(|entry| entry.operation.number == number)
}

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

/// Returns the previous part of a command, if it was not undone by itself.
fn part_before<'e>(entries: &'e [Logged], part: &LoggedOperation) -> Option<&'e LoggedOperation> {
    let before = part.effect.continues.filter(|before| *before < part.number)?;
    let entry = find(entries, before).filter(|entry| entry.undone_by.is_none())?;
    Some(&entry.operation)
}

/// Joins the effects of all parts. A ref that somebody else moved between two parts goes back to
/// where the later one found it.
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
    // There is a part: the chosen one.
    let last = parts[parts.len() - 1].clone();
    let effect = Effect { refs: refs.into_values().collect(), files, ..last.effect };
    LoggedOperation { effect, ..last }
}

impl Chosen {
    /// Returns the newest undo that has to be undone before this operation, and the operation that
    /// it undid: an earlier one, where both changed one ref or file. This finds a redo out of
    /// order, even if the ref or file happens to have a state that the redo would accept.
    pub(super) fn undone_below(&self, entries: &[Logged]) -> Option<(u64, u64)> {
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
        later.filter(|entry| entry.undone_by.is_none()).find_map(|Logged { operation, .. }| {
            let undone = operation.effect.undoes.filter(|_| shares(operation))?;
            let mut targets = targets(entries, operation);
            let is_below = targets.any(|target| target.number < *number && shares(target));
            is_below.then_some((operation.number, undone))
        })
    }
}

fn targets<'e>(
    entries: &'e [Logged],
    undoing: &'e LoggedOperation,
) -> impl Iterator<Item = &'e LoggedOperation> {
    let numbers = undoing.effect.undoes.iter().chain(&undoing.effect.undoes_also);
    numbers.filter_map(|number| Some(&find(entries, *number)?.operation))
}

pub(super) struct MovedSince {
    pub by_standing: bool,
    /// `None` if none moved it.
    pub left_at: Option<Option<ObjectId>>,
}

/// Returns how later operations moved a ref. An undone operation, and the undo of a later one,
/// leave it where it was, except for the snapshot of what an undo wrote. The undo of an earlier
/// operation counts like any other.
pub(super) fn moved_since(entries: &[Logged], number: u64, name: &RefName) -> MovedSince {
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
        // A note about the end of an interrupted operation belongs to that operation.
        let finishes = operation.effect.finishes.is_some();
        since.by_standing |= entry.undone_by.is_none() && !undoes_later && !finishes;
    }
    since
}
