//! Which operation is undone: the one that was named, or the last that somebody asked for; with all parts of its command.

use std::collections::{BTreeMap, HashSet};

use crate::engine;
use crate::engine::operation::log::Logged;
use crate::store::{Effect, FileChange, LoggedOperation, ObjectId, RefChange, RefName};
use crate::verbs::Result;

/// Which operation is undone, if any.
pub(super) enum Choice {
    Undo(Chosen),
    /// Nothing is left that somebody asked for and that was not undone.
    Nothing,
    /// The operation was undone before, by operation number `by`.
    Already {
        operation: LoggedOperation,
        by: u64,
    },
}

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

/// Whether nothing took it back, it is not an undoing or a repair of the log, and no later part of its command stands for it.
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
    let before = part.effect.continues.filter(|before| *before < part.number)?;
    let entry = find(entries, before).filter(|entry| entry.undone_by.is_none())?;
    Some(&entry.operation)
}

/// Returns what all parts did, as one operation. A ref that somebody else moved between two parts goes back to where the later one found it.
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
    // There is a part: the one that was chosen.
    let last = parts[parts.len() - 1].clone();
    let effect = Effect { refs: refs.into_values().collect(), files, ..last.effect };
    LoggedOperation { effect, ..last }
}

/// Returns the newest undoing that has to be undone before the chosen operation: it undid an operation before the chosen one, and both changed one ref or file. This is how a redo out of
/// order is found, also where the ref or file has a state by chance that the redo would accept.
pub(super) fn undone_below(entries: &[Logged], chosen: &Chosen) -> Option<(u64, u64)> {
    let number = chosen.operation.number;
    let refs = chosen.operation.effect.refs.iter().map(|change| &change.name);
    let refs = refs.filter(|name| !name.is_kept() && !chosen.optional.contains(name));
    let refs: HashSet<_> = refs.collect();
    let files: HashSet<_> =
        chosen.operation.effect.files.iter().map(|change| &change.path).collect();
    let shares = |operation: &LoggedOperation| {
        operation.effect.refs.iter().any(|change| refs.contains(&change.name))
            || operation.effect.files.iter().any(|change| files.contains(&change.path))
    };
    let later = entries.iter().take_while(|entry| entry.operation.number > number);
    let mut standing = later.filter(|entry| entry.undone_by.is_none());
    standing.find_map(|entry| {
        let undone = entry.operation.effect.undoes.filter(|_| shares(&entry.operation))?;
        let is_below = targets(entries, &entry.operation)
            .any(|target| target.number < number && shares(target));
        is_below.then_some((entry.operation.number, undone))
    })
}

/// Returns the operations that an undoing undid, as far as the log has them.
fn targets<'e>(
    entries: &'e [Logged],
    undoing: &'e LoggedOperation,
) -> impl Iterator<Item = &'e LoggedOperation> {
    let numbers = undoing.effect.undoes.iter().chain(&undoing.effect.undoes_also);
    numbers.filter_map(|number| Some(&find(entries, *number)?.operation))
}

/// What later operations did to a ref that an operation moved.
pub(super) struct MovedSince {
    /// Whether one that stands moved it.
    pub by_standing: bool,
    /// Where the last of them left it; `None` if none moved it.
    pub left_at: Option<Option<ObjectId>>,
}

/// Returns what later operations did to a ref. One that was undone, and the undoing of a later one, leave it where it was, but for the snapshot of what an undoing wrote. The undoing of
/// an earlier operation stands like any other.
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
        // A note of how an interrupted operation ended is a part of that operation.
        let finishes = operation.effect.finishes.is_some();
        since.by_standing |= entry.undone_by.is_none() && !undoes_later && !finishes;
    }
    since
}
