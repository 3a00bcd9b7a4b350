//! Sets operations aside: moves lines of the operation log that cannot be carried out to the file
//! `stvc/operations-set-aside.jsonl`. Such a line was written by another program, or it is damaged
//! in a way that its checksum does not reveal. It must not block every later command, so it is
//! moved before any ref changes.
//!
//! The other file is synced before the log is replaced. A crash in between leaves the line in both
//! files, and the next command that takes the lock sets the operation aside again.

use std::collections::BTreeSet;
use std::io;

use super::files;
use super::operation_log::{LAST_NUMBER, LOG, Line, SET_ASIDE, Sync, append, decode};
use super::{Error, Kind, LoggedOperation, RefChange, RefName, Result, Store};
use crate::regular;

/// Maximum difference between the numbers of two successive operations. Numbers increase by one,
/// but unreadable lines leave gaps.
const WIDEST_GAP: u64 = 1_000_000;

/// Maximum length, in bytes, of a component of a ref. It must be a valid file name even with
/// `.lock` appended.
const LONGEST_PART: usize = 250;
const LONGEST_NAME: usize = 1000;

/// Check by the layer above. Returns the reason why an operation cannot be carried out; `None` if
/// it can.
pub type OperationCheck<'j> = dyn Fn(&LoggedOperation) -> Option<String> + 'j;

#[derive(Clone, Debug)]
pub struct SetAside {
    pub operation: LoggedOperation,
    pub why: String,
}

impl Store {
    /// Sets aside the unfinished operations that are impossible. If the log lists a number as
    /// unfinished but has no such operation, records the number as finished.
    pub(super) fn set_aside_impossible(&self, judge: &OperationCheck<'_>) -> Result<Vec<SetAside>> {
        let mut all = Vec::new();
        loop {
            let end = self.end_of_log()?;
            let last_number = end.last.as_ref().map_or(0, |last| last.number);
            if end.unfinished.is_empty() && last_number < LAST_NUMBER {
                return Ok(all);
            }
            let unfinished = self.unfinished()?;
            let mut found = None;
            for operation in &unfinished {
                let why = self.why_impossible(operation)?.or_else(|| judge(operation));
                found = found.or(why.map(|why| (operation.clone(), why)));
            }
            let too_great = || {
                let last = end.last.clone().filter(|last| last.number >= LAST_NUMBER)?;
                Some((last, "there is no number left for the next operation".to_owned()))
            };
            let Some((operation, why)) = found.or_else(too_great) else {
                let is_known = |number: &u64| unfinished.iter().any(|open| open.number == *number);
                for number in end.unfinished.iter().filter(|number| !is_known(number)) {
                    self.log_finished(*number, Sync::Whenever)?;
                }
                return Ok(all);
            };
            self.set_aside(&operation)?;
            all.push(SetAside { operation, why });
        }
    }

    fn set_aside(&self, operation: &LoggedOperation) -> Result<()> {
        let path = self.private(LOG);
        let text = regular::read(&path).map_err(Error::io(&path))?;
        let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        let is_it = |line: &&[u8]| matches!(decode(line), Some(Line::Operation(found)) if *found == *operation);
        let gone = || Error::Io { path: path.clone(), source: io::ErrorKind::NotFound.into() };
        let at = lines.iter().rposition(is_it).ok_or_else(gone)?;
        let aside = self.private(SET_ASIDE);
        append(&aside, &[lines[at], b"\n"].concat(), Sync::Now).map_err(Error::io(&aside))?;
        let rest = [&lines[..at], &lines[at + 1..]].concat().join(&b'\n');
        files::replace(&path, &rest)?;
        // Later operations list the removed one as unfinished.
        if self.end_of_log()?.unfinished.contains(&operation.number)
            && lines[at + 1..].iter().any(|line| !line.is_empty())
        {
            self.log_finished(operation.number, Sync::Now)?;
        }
        Ok(())
    }

    /// Returns the reason why an operation cannot belong to this log, or why its refs cannot be
    /// moved; `None` if it is possible.
    pub(super) fn why_impossible(&self, operation: &LoggedOperation) -> Result<Option<String>> {
        let operations = self.operations()?.0;
        let at = operations.iter().rposition(|found| found == operation).unwrap_or_default();
        let before = at.checked_sub(1).map_or(0, |before| operations[before].number);
        let is_next = match at {
            0 => operation.number <= LAST_NUMBER / 2,
            _ => operation
                .number
                .checked_sub(before)
                .is_some_and(|gap| (1..=WIDEST_GAP).contains(&gap)),
        };
        if !is_next {
            return Ok(Some(format!("its number does not follow {before}")));
        }
        let mut names = BTreeSet::new();
        for RefChange { name, after, .. } in &operation.effect.refs {
            let name = name.as_str();
            if !names.insert(name) {
                return Ok(Some(format!("it moves {name} twice")));
            }
            let is_long = name.split('/').any(|part| part.len() > LONGEST_PART);
            if is_long || name.len() > LONGEST_NAME {
                return Ok(Some("it moves a ref whose name is too long".into()));
            }
            let kind = after.map(|id| self.reader().kind(id)).transpose()?.flatten();
            let is_right = match kind {
                Some(Kind::Commit) => true,
                Some(Kind::Tag) => name.starts_with("refs/tags/"),
                // The ref is removed, or its new target is missing and the ref will not be moved.
                None => true,
                Some(_) => false,
            };
            if !is_right {
                return Ok(Some(format!("it points {name} at an object that is not a commit")));
            }
            let is_own = ["refs/heads/", "refs/tags/"].iter().any(|root| name.starts_with(root));
            let is_kept = after.is_some_and(|after| RefName::kept(after).as_str() == name);
            // Any ref may be removed, because `erase` removes all refs to erased commits.
            if after.is_some() && !is_own && !is_kept {
                return Ok(Some(format!("stvc does not use the ref {name}")));
            }
        }
        self.why_in_the_way(operation)
    }

    fn why_in_the_way(&self, operation: &LoggedOperation) -> Result<Option<String>> {
        if operation.effect.refs.is_empty() {
            return Ok(None);
        }
        let found = self.refs("refs/")?.refs.into_iter();
        let mut names: BTreeSet<String> = found.map(|(name, _)| name.to_string()).collect();
        for change in &operation.effect.refs {
            match change.after {
                Some(_) => names.insert(change.name.to_string()),
                None => names.remove(change.name.as_str()),
            };
        }
        for RefChange { name, after, .. } in &operation.effect.refs {
            let name = name.as_str();
            let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
            let folder = format!("{name}/");
            let below = names.range(folder.clone()..).next();
            let below = below.filter(|below| after.is_some() && below.starts_with(&folder));
            let other = above.find(|above| names.contains(*above));
            if let Some(other) = other.or(below.map(String::as_str)) {
                return Ok(Some(format!("{name} and {other} cannot both be refs")));
            }
        }
        Ok(None)
    }
}
