//! Operations: the changes of one command to refs and to the user's files. An operation is logged
//! **before** its first change, when all objects that it names are stored and synced. So the next
//! command can finish an interrupted operation.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, FixedOffset};

use super::files;
use super::operation_log::{End, SET_ASIDE, Sync};
use super::{
    Effect, Error, FileChange, Lock, LoggedOperation, ObjectId, RefChange, RefName, Result,
    Sequence, Store,
};

#[derive(Clone, Copy, Debug)]
pub enum ExpireBefore {
    Never,
    Moment(DateTime<FixedOffset>),
    Everything,
}

pub enum TransactionResult {
    Nothing,
    Done(u64),
    FilesToWrite(Box<LoggedOperation>),
}

pub struct Expiry {
    pub dropped: usize,
    pub refs: Vec<RefChange>,
    /// Operations of the new log, in which a summary replaces the dropped ones.
    pub operations: Vec<LoggedOperation>,
}

impl Store {
    /// Logs an operation and moves its refs: the commit point of every command. All objects must be
    /// written before, with [`PackWriter::finish`](super::PackWriter::finish). If the result is
    /// [`TransactionResult::FilesToWrite`], the caller writes the files and then calls
    /// [`Store::finished`].
    ///
    /// If a ref cannot be moved, the other refs are moved back, and the log records that the
    /// operation was undone.
    pub fn transact(
        &self,
        lock: &Lock,
        time: String,
        mut effect: Effect,
    ) -> Result<TransactionResult> {
        effect.refs.retain(|change| change.before != change.after);
        let says_more = effect.finishes.is_some() || effect.undoes.is_some();
        if effect.refs.is_empty() && effect.files.is_empty() && !says_more {
            return Ok(TransactionResult::Nothing);
        }
        // The refs are checked here so that a refused operation is not logged. `move_refs` checks
        // them again when they are locked.
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
            command: lock.command.clone(),
            effect,
            summary: false,
            unfinished: end.unfinished,
        };
        self.log_line(&operation, Sync::Now)?;
        if let Err(error) = self.move_refs(&operation.effect.refs) {
            return Err(match self.take_back_refs(&operation) {
                Ok(()) => error,
                Err(_) => Error::Interrupted { number: operation.number, source: Box::new(error) },
            });
        }
        self.show_a_branch(&operation.effect.refs);
        if operation.effect.files.is_empty() {
            self.log_finished(operation.number, Sync::Whenever)?;
            return Ok(TransactionResult::Done(operation.number));
        }
        Ok(TransactionResult::FilesToWrite(Box::new(operation)))
    }

    /// Returns the sequence that the next operation gets if it is logged at `seconds`. Valid while
    /// the lock is held.
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
        // Logs the actual targets: refs below `refs/stvc/kept/` are not moved back, and another
        // program may have changed other refs.
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
        self.log_line(&LoggedOperation { number, unfinished, ..outcome }, Sync::Now)?;
        self.log_finished(number, sync)
    }

    /// Points `HEAD` at one of the moved branches if `HEAD` names a missing branch, so that plain
    /// `git log` and `git clone` work. Failures are ignored: the next operation tries again.
    fn show_a_branch(&self, moved: &[RefChange]) {
        let is_branch = |change: &&RefChange| change.after.is_some() && change.name.is_branch();
        let Some(branch) = moved.iter().find(is_branch) else { return };
        if self.has_head().is_ok_and(|is_there| !is_there) {
            let _ = self.point_head_at(&branch.name);
        }
    }

    /// Returns the targets of a ref according to the log, newest first; `None` where the ref did
    /// not exist.
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

    /// Returns the refs that should exist according to the log but are missing, with their last
    /// targets. Ignores refs that an unfinished operation changes.
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

    /// Moves the refs of interrupted operations. Returns the operations that are complete
    /// afterwards, because they have no files to write. A ref that another program changed is not
    /// moved.
    pub(super) fn finish_refs(&self, by: &[String], now: &str) -> Result<Vec<LoggedOperation>> {
        let mut finished = Vec::new();
        for operation in self.unfinished()? {
            self.clear_ref_locks(&operation.effect.refs)?;
            let mut open = Vec::new();
            for change in &operation.effect.refs {
                let stored = change.after.map_or(Ok(true), |id| self.reader().has(id))?;
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

    /// Selects the operations to drop. If the log has unreadable lines, selects none, except for
    /// [`ExpireBefore::Everything`].
    pub fn plan_expiry(&self, before: ExpireBefore) -> Result<Expiry> {
        let (mut operations, unreadable) = self.operations()?;
        let unfinished = self.end_of_log()?.unfinished;
        let is_old = |operation: &&LoggedOperation| {
            let time = DateTime::parse_from_rfc3339(&operation.time);
            let past = match before {
                ExpireBefore::Never => false,
                ExpireBefore::Moment(before) => time.is_ok_and(|time| time <= before),
                ExpireBefore::Everything => true,
            };
            (operation.summary || past) && !unfinished.contains(&operation.number)
        };
        // An unreadable line may refer to any operation, so no operation is dropped.
        let is_known = unreadable == 0 || matches!(before, ExpireBefore::Everything);
        let old = operations.iter().take_while(|operation| is_known && is_old(operation)).count();
        let kept = operations.split_off(old);
        let old = operations;
        let dropped = old.iter().filter(|operation| !operation.summary).count();
        let Some(last) = old.last() else {
            return Ok(Expiry { dropped: 0, refs: Vec::new(), operations: kept });
        };
        // Refs that a remaining operation needs are not removed, even if a dropped operation
        // created them.
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
        // All refs below `refs/stvc/kept/` are checked, not only those in the log: an interrupted
        // `gc` may have left refs that the log no longer names.
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

    /// Removes the file with the operations that were set aside, because it names snapshots and
    /// files that may be erased.
    pub fn remove_set_aside(&self, _lock: &Lock) -> Result<()> {
        files::remove(&self.private(SET_ASIDE))
    }

    pub fn expire(&self, _lock: &Lock, expiry: &Expiry) -> Result<()> {
        // The log is replaced before the refs are removed. After a crash in between, the next call
        // removes these refs. In the other order, the log would name missing refs, which counts as
        // damage.
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
    fn transact_logs_only_effects_that_change_a_ref_or_record_an_undo() {
        let (_folder, store, lock) = locked();
        let id = ObjectId::from([7; 20]);
        let same = RefChange { name: RefName::branch(["a"]), before: Some(id), after: Some(id) };
        for effect in [Effect::default(), Effect::moves(vec![same])] {
            let done = store.transact(&lock, NOW.to_owned(), effect).unwrap();
            assert!(matches!(done, TransactionResult::Nothing));
            assert_eq!(logged(&store).len(), 0);
        }
        let effect = Effect { undoes: Some(3), ..Effect::default() };
        let done = store.transact(&lock, NOW.to_owned(), effect).unwrap();
        assert!(matches!(done, TransactionResult::Done(1)));
        assert_eq!(logged(&store)[0].effect.undoes, Some(3));
    }

    #[test]
    fn log_record_of_a_revert_is_not_part_of_the_interrupted_command() {
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
