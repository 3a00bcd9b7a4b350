//! Operations: what one command did to refs and to the user's files. Logged **before** anything
//! moves, so the log is also the promise that whoever finds an operation half done can keep: every
//! object it names is in the store and synced by then.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, FixedOffset};

use super::files;
use super::operation_log::{End, Sync};
use super::{
    Effect, Error, FileChange, Lock, LoggedOperation, ObjectId, RefChange, RefName, Result,
    Sequence, Store,
};

#[derive(Clone, Copy, Debug)]
pub enum Before {
    Never,
    Moment(DateTime<FixedOffset>),
    Everything,
}

pub enum Transacted {
    Nothing,
    Done(u64),
    FilesToWrite(Box<LoggedOperation>),
}

pub struct Expiry {
    pub dropped: usize,
    pub refs: Vec<RefChange>,
    /// The log without them.
    pub operations: Vec<LoggedOperation>,
}

impl Store {
    /// Logs an operation and move its refs. With all objects written
    /// ([`PackWriter::finish`](super::PackWriter::finish)), this is the commit point of every
    /// command. If it has files to be written, call [`Store::finished`] when they are.
    ///
    /// If a ref cannot be moved, those that were are moved back, and the log says that it was taken
    /// back.
    pub fn transact(&self, lock: &Lock, time: String, mut effect: Effect) -> Result<Transacted> {
        effect.refs.retain(|change| change.before != change.after);
        let says_more = effect.finishes.is_some() || effect.undoes.is_some();
        if effect.refs.is_empty() && effect.files.is_empty() && !says_more {
            return Ok(Transacted::Nothing);
        }
        // Checked before anything is logged: a refused operation did not begin. And again once
        // locked.
        for change in &effect.refs {
            if self.ref_target(&change.name)? != change.before {
                return Err(Error::RefMoved { name: change.name.to_string() });
            }
        }
        let end = self.end_of_log()?;
        let previous = end.last.as_ref().and_then(LoggedOperation::sequence);
        let seconds = DateTime::parse_from_rfc3339(&time).ok().map(|time| time.timestamp());
        effect.sequence = seconds.and_then(|now| {
            let next = Sequence::after(previous, now);
            effect.sequence.map_or(next, |made| made.max(next)).unless_at(now)
        });
        let operation = LoggedOperation {
            number: end.last.map_or(1, |last| last.number + 1),
            time,
            command: lock.command().to_owned(),
            effect,
            summary: false,
            unfinished: end.unfinished,
        };
        self.log_operation(&operation)?;
        if let Err(error) = self.move_refs(&operation.effect.refs) {
            return Err(match self.take_back_refs(&operation) {
                Ok(()) => error,
                Err(_) => Error::Interrupted { number: operation.number, source: Box::new(error) },
            });
        }
        self.show_a_branch(&operation.effect.refs);
        if operation.effect.files.is_empty() {
            self.log_finished(operation.number, Sync::Whenever)?;
            return Ok(Transacted::Done(operation.number));
        }
        Ok(Transacted::FilesToWrite(Box::new(operation)))
    }

    /// Returns the sequence of an operation at `seconds`, valid while the lock is held.
    pub fn next_sequence(&self, seconds: i64) -> Result<Sequence> {
        let previous = self.end_of_log()?.last.and_then(|last| last.sequence());
        Ok(Sequence::after(previous, seconds))
    }

    pub fn finished(&self, _lock: &Lock, number: u64) -> Result<()> {
        self.log_finished(number, Sync::Now)
    }

    pub fn take_back_refs(&self, operation: &LoggedOperation) -> Result<()> {
        let mut back = Vec::new();
        for change in operation.effect.refs.iter().filter(|change| !change.name.is_kept()) {
            if self.ref_target(&change.name)? == change.after {
                back.push(change.reversed());
            }
        }
        self.move_refs(&back)?;
        // The refs as they are now: kept ones stay, and others may have been moved by somebody
        // else.
        let mut refs = Vec::new();
        for change in &operation.effect.refs {
            let after = self.ref_target(&change.name)?;
            refs.push(RefChange { before: change.after, after, ..change.clone() });
        }
        refs.retain(|change| change.before != change.after);
        let files = operation.effect.files.iter().map(FileChange::reversed).collect();
        let undoes = Some(operation.number);
        let effect = Effect { undoes, refs, files, ..operation.effect.alone() };
        let outcome = LoggedOperation { effect, ..operation.clone() };
        self.log_outcome(operation.number, outcome, Sync::Now)
    }

    fn log_outcome(&self, of: u64, outcome: LoggedOperation, sync: Sync) -> Result<()> {
        let End { last, mut unfinished } = self.end_of_log()?;
        let number = last.map_or(of, |last| last.number) + 1;
        unfinished.retain(|pending| *pending != of);
        self.log_operation(&LoggedOperation { number, unfinished, ..outcome })?;
        self.log_finished(number, sync)
    }

    /// Points `HEAD` at a first branch, for plain `git log` and `git clone`. Failures are ignored:
    /// the next operation tries again.
    fn show_a_branch(&self, moved: &[RefChange]) {
        let is_branch = |change: &&RefChange| change.after.is_some() && change.name.is_branch();
        let Some(branch) = moved.iter().find(is_branch) else { return };
        if self.has_head().is_ok_and(|is_there| !is_there) {
            let _ = self.point_head_at(&branch.name);
        }
    }

    /// Returns the targets of a ref by the log, newest first; `None` means removed.
    pub fn last_known(&self, name: &RefName) -> Result<&[Option<ObjectId>]> {
        if self.logged.get().is_none() {
            let mut logged: HashMap<RefName, Vec<_>> = HashMap::new();
            for operation in self.operations()?.0.into_iter().rev() {
                for change in operation.effect.refs {
                    logged.entry(change.name).or_default().extend([change.after, change.before]);
                }
            }
            let _ = self.logged.set(logged);
        }
        Ok(self.logged.get().and_then(|logged| logged.get(name)).map_or(&[], Vec::as_slice))
    }

    /// Returns refs that the log has and that are missing, with their last target, without those
    /// that an unfinished operation moves.
    pub fn missing_refs(&self) -> Result<Vec<(RefName, ObjectId)>> {
        let unfinished: HashSet<_> = self.end_of_log()?.unfinished.into_iter().collect();
        let mut last: BTreeMap<RefName, Option<ObjectId>> = BTreeMap::new();
        for operation in self.operations()?.0 {
            for change in operation.effect.refs {
                if unfinished.contains(&operation.number) {
                    last.remove(&change.name)
                } else {
                    last.insert(change.name, change.after)
                };
            }
        }
        let mut missing = Vec::new();
        for (name, id) in last {
            if let (Some(id), None) = (id, self.ref_target(&name)?) {
                missing.push((name, id));
            }
        }
        Ok(missing)
    }

    /// Finishes the refs of interrupted operations, whose objects are synced, and so those without
    /// files. A ref that somebody else moved stays.
    pub(super) fn finish_refs(&self, by: &[String], now: &str) -> Result<Vec<LoggedOperation>> {
        let mut finished = Vec::new();
        for operation in self.unfinished()? {
            self.clear_ref_locks(&operation.effect.refs)?;
            let mut open = Vec::new();
            for change in &operation.effect.refs {
                let stored = match change.after {
                    Some(id) => self.reader().has(id)?,
                    None => true,
                };
                let moves = change.before != change.after;
                if moves && stored && self.ref_target(&change.name)? == change.before {
                    open.push(change.clone());
                }
            }
            self.move_refs(&open)?;
            self.show_a_branch(&operation.effect.refs);
            if operation.effect.files.is_empty() {
                self.log_finishing(&operation, by, now)?;
                finished.push(operation);
            }
        }
        Ok(finished)
    }

    fn log_finishing(&self, operation: &LoggedOperation, by: &[String], now: &str) -> Result<()> {
        let effect = Effect {
            refs: Vec::new(),
            finishes: Some(operation.number),
            library: None,
            ..operation.effect.alone()
        };
        let (time, command) = (now.to_owned(), by.to_owned());
        let outcome = LoggedOperation { time, command, effect, ..operation.clone() };
        self.log_outcome(operation.number, outcome, Sync::Whenever)
    }

    /// Plans which operations to drop; [`Before::Everything`] includes unreadable lines.
    pub fn plan_expiry(&self, before: Before) -> Result<Expiry> {
        let (mut operations, unreadable) = self.operations()?;
        let unfinished = self.end_of_log()?.unfinished;
        let is_old = |operation: &&LoggedOperation| {
            let time = DateTime::parse_from_rfc3339(&operation.time);
            let past = match before {
                Before::Never => false,
                Before::Moment(before) => time.is_ok_and(|time| time <= before),
                Before::Everything => true,
            };
            (operation.summary || past) && !unfinished.contains(&operation.number)
        };
        // A line that cannot be read may speak of anything.
        let is_known = unreadable == 0 || matches!(before, Before::Everything);
        let old = operations.iter().take_while(|operation| is_known && is_old(operation)).count();
        let kept = operations.split_off(old);
        let old = operations;
        let dropped = old.iter().filter(|operation| !operation.summary).count();
        let Some(last) = old.last() else {
            return Ok(Expiry { dropped: 0, refs: Vec::new(), operations: kept });
        };
        // A commit that a remaining operation needs stays, whoever kept it first.
        let mut needed: HashSet<RefName> = HashSet::new();
        for operation in &kept {
            for change in &operation.effect.refs {
                needed.insert(change.name.clone());
                needed.extend(change.before.into_iter().chain(change.after).map(RefName::kept));
            }
            needed.extend(operation.commits().map(RefName::kept));
        }
        let mut known: BTreeMap<RefName, Option<ObjectId>> = BTreeMap::new();
        for change in old.iter().flat_map(|operation| &operation.effect.refs) {
            known.insert(change.name.clone(), change.after);
        }
        // Also those that an interrupted `gc` left: nothing in the log names them any more.
        let mut refs = Vec::new();
        for (name, id) in self.refs(RefName::KEPT)?.refs {
            if !needed.contains(&name) {
                refs.push(RefChange { name, before: Some(id), after: None });
            }
        }
        known.retain(|name, after| after.is_some() && !name.is_kept());
        let left = known.into_iter().map(|(name, after)| RefChange { name, before: None, after });
        let effect = Effect { refs: left.collect(), files: Vec::new(), ..last.effect.alone() };
        let summary =
            LoggedOperation { effect, unfinished: Vec::new(), summary: true, ..last.clone() };
        let operations = [summary].into_iter().chain(kept).collect();
        Ok(Expiry { dropped, refs, operations })
    }

    /// Removes the lines that were set aside: they name snapshots and files.
    pub fn remove_set_aside(&self, _lock: &Lock) -> Result<()> {
        let path = self.set_aside_path();
        files::remove(&path)
    }

    pub fn expire(&self, _lock: &Lock, expiry: &Expiry) -> Result<()> {
        // The log first: a missing ref that it names would be damage; one that it does not name is
        // dropped next time.
        if expiry.dropped > 0 {
            self.replace_log(&expiry.operations, &self.end_of_log()?.unfinished)?;
        }
        self.move_refs(&expiry.refs)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: &str = "2026-11-15T01:46:40Z";

    fn locked() -> (tempfile::TempDir, Store, Lock) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let lock = store.lock(&["stvc".into()], NOW, Duration::from_secs(10), &|_| None).unwrap();
        (folder, store, lock)
    }

    fn logged(store: &Store) -> Vec<LoggedOperation> {
        store.operations().unwrap().0
    }

    #[test]
    fn transact_logs_only_effects_that_change_or_say_something() {
        let (_folder, store, lock) = locked();
        let id = ObjectId::from([7; 20]);
        let same = RefChange { name: RefName::branch(["a"]), before: Some(id), after: Some(id) };
        for effect in [Effect::default(), Effect::moves(vec![same])] {
            let done = store.transact(&lock, NOW.to_owned(), effect).unwrap();
            assert!(matches!(done, Transacted::Nothing));
            assert_eq!(logged(&store).len(), 0);
        }
        let effect = Effect { undoes: Some(3), ..Effect::default() };
        let done = store.transact(&lock, NOW.to_owned(), effect).unwrap();
        assert!(matches!(done, Transacted::Done(1)));
        assert_eq!(logged(&store)[0].effect.undoes, Some(3));
    }

    #[test]
    fn operation_that_was_taken_back_is_not_part_of_a_command() {
        let (_folder, store, lock) = locked();
        let mut pack = store.pack_writer();
        let id = pack.add(crate::store::Kind::Blob, b"a").unwrap();
        pack.finish().unwrap();
        let name = RefName::branch(["a"]);
        let change = RefChange { name: name.clone(), before: None, after: Some(id) };
        let effect = Effect { continues: Some(1), ..Effect::moves(vec![change]) };
        store.transact(&lock, NOW.to_owned(), effect).unwrap();
        assert_eq!(store.ref_target(&name).unwrap(), Some(id));
        store.take_back_refs(&logged(&store)[0]).unwrap();
        assert_eq!(store.ref_target(&name).unwrap(), None);
        let outcome = logged(&store).pop().unwrap();
        assert_eq!((outcome.effect.undoes, outcome.effect.continues), (Some(1), None));
    }
}
