//! The operation log: one line of JSON for each command that moved refs, oldest first, in `stvc/operations.jsonl`.
//!
//! It is written **before** the refs move, so it is also the promise that whoever finds them half moved can keep:
//! every object it names is in the store and synced by then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use super::{Error, Lock, ObjectId, RefChange, RefName, Result, Store};
use crate::durable;

/// One command that moved refs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Counts up from 1.
    pub number: u64,
    /// When, as RFC 3339.
    pub time: String,
    /// The command line, program first.
    pub command: Vec<String>,
    /// What moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<RefChange>,
    /// The operation that this one took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Files of the user's that the command wrote, outside the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Stands for all older ones, which were dropped: it says where they left the refs, and cannot be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
}

impl Operation {
    /// The snapshots that hold files it wrote or replaced.
    pub fn snapshots(&self) -> impl Iterator<Item = ObjectId> {
        self.kept().filter_map(|kept| match kept {
            Kept::Snapshot(id) => ObjectId::from_hex(id.as_bytes()).ok(),
            Kept::Blob(_) => None,
        })
    }

    /// The blobs that are such files.
    pub fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        self.kept().filter_map(|kept| match kept {
            Kept::Blob(id) => ObjectId::from_hex(id.as_bytes()).ok(),
            Kept::Snapshot(_) => None,
        })
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.files.iter().flat_map(|file| file.before.iter().chain(&file.after))
    }
}

/// Operations that are old enough to go.
pub struct Expiry {
    /// How many.
    pub dropped: usize,
    /// The refs that only they need.
    pub refs: Vec<RefChange>,
    /// The log without them.
    pub operations: Vec<Operation>,
}

/// What a command does.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// The refs that move.
    pub refs: Vec<RefChange>,
    /// The user's files that are written.
    pub files: Vec<FileChange>,
    /// The operation that is taken back.
    pub undoes: Option<u64>,
}

impl Effect {
    /// Refs move, and nothing else happens.
    pub fn moves(refs: Vec<RefChange>) -> Self {
        Self { refs, ..Self::default() }
    }
}

/// One file that a command wrote: where, and which objects hold its bytes before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path, as the layer above names it.
    pub path: String,
    /// Where its former bytes are kept; `None` if there was no such file.
    pub before: Option<Kept>,
    /// Where its new bytes come from.
    pub after: Option<Kept>,
}

/// Where the bytes of a file are kept in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// As a blob of its own.
    Blob(String),
    /// As part of the snapshot with this commit id.
    Snapshot(String),
}

impl Store {
    /// Log an operation and move its refs. With all objects written ([`PackWriter::finish`](super::PackWriter::finish)),
    /// this is the commit point of every command.
    pub fn transact(&self, lock: &Lock<'_>, time: String, mut effect: Effect) -> Result<()> {
        effect.refs.retain(|change| change.before != change.after);
        if effect.refs.is_empty() && effect.files.is_empty() {
            return Ok(());
        }
        let number = self.last_operation()?.map_or(1, |last| last.number + 1);
        let Effect { refs, files, undoes } = effect;
        let command = lock.command().to_owned();
        let operation = Operation { number, time, command, refs, undoes, files, summary: false };
        self.append(&operation)?;
        if let Err(error) = self.move_refs(&operation.refs) {
            let _ = self.take_back(&operation);
            return Err(error);
        }
        // The first branch ever becomes the one that plain `git log` and `git clone` show.
        let head_is_there = match self.head()? {
            Some(head) => self.ref_target(&head)?.is_some(),
            None => false,
        };
        let is_branch = |change: &&RefChange| {
            change.after.is_some() && change.name.as_str().starts_with("refs/heads/")
        };
        if !head_is_there && let Some(branch) = operation.refs.iter().find(is_branch) {
            self.point_head_at(&branch.name)?;
        }
        Ok(())
    }

    /// Log that refs did not move after all, so that nobody finishes or undoes what was refused.
    fn take_back(&self, failed: &Operation) -> Result<()> {
        let mut refs = Vec::new();
        for change in &failed.refs {
            let now = self.ref_target(&change.name)?;
            if now != change.after {
                refs.push(RefChange {
                    name: change.name.clone(),
                    before: change.after,
                    after: now,
                });
            }
        }
        // One that was done in part stands: what moved is there, and `undo` will say what is not as it was.
        let undoes = (refs.len() == failed.refs.len()).then_some(failed.number);
        self.append(&Operation {
            number: failed.number + 1,
            undoes,
            refs,
            files: Vec::new(),
            ..failed.clone()
        })
    }

    /// Every operation that can be read, oldest first, and how many lines cannot.
    pub fn operations(&self) -> Result<(Vec<Operation>, usize)> {
        let path = self.operations_path();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(error) => {
                return Err(Error::Io { path, source: error });
            }
        };
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut unreadable = 0;
        let operations = lines
            .filter_map(|line| serde_json::from_slice(line).inspect_err(|_| unreadable += 1).ok())
            .collect();
        Ok((operations, unreadable))
    }

    /// Where the operation log last saw a ref, newest first; `None` is "not there". Empty if it never moved.
    pub fn last_known(&self, name: &RefName) -> &[Option<ObjectId>] {
        let logged = self.logged.get_or_init(|| {
            let mut logged: HashMap<RefName, Vec<_>> = HashMap::new();
            for operation in self
                .operations()
                .map(|(operations, _)| operations)
                .unwrap_or_default()
                .into_iter()
                .rev()
            {
                for change in operation.refs {
                    logged.entry(change.name).or_default().extend([change.after, change.before]);
                }
            }
            logged
        });
        logged.get(name).map_or(&[], Vec::as_slice)
    }

    /// The refs that should be there by the log, and are not: name and last target. What the last operation was about to move when it
    /// was interrupted, or is just moving, is not missing: see [`Store::is_at_work`].
    pub fn missing_refs(&self) -> Result<Vec<(RefName, ObjectId)>> {
        let at_work = self.is_at_work();
        let (mut operations, _) = self.operations()?;
        let unfinished = if at_work { operations.pop() } else { None };
        // A `gc` that was interrupted takes kept refs away before it shortens the log.
        let is_missed = |name: &RefName| !(at_work && name.is_kept());
        let moving: HashSet<_> =
            unfinished.into_iter().flat_map(|last| last.refs).map(|change| change.name).collect();
        let mut last: BTreeMap<RefName, Option<ObjectId>> = BTreeMap::new();
        for change in operations.into_iter().flat_map(|operation| operation.refs) {
            last.insert(change.name, change.after);
        }
        let mut missing = Vec::new();
        for (name, id) in
            last.into_iter().filter(|(name, _)| !moving.contains(name) && is_missed(name))
        {
            if let (Some(id), None) = (id, self.ref_target(&name)?) {
                missing.push((name, id));
            }
        }
        Ok(missing)
    }

    /// Finish what a killed process began: its last operation is logged, its objects are synced, its refs are perhaps not moved.
    pub(super) fn finish_last_operation(&self) -> Result<()> {
        let Some(last) = self.last_operation()?.filter(|last| !last.summary) else {
            return Ok(());
        };
        self.clear_ref_locks(&last.refs)?;
        let mut unfinished = Vec::new();
        for change in last.refs {
            let stored = change.after.is_none_or(|id| self.reader().exists(id));
            if stored && self.ref_target(&change.name)? == change.before {
                unfinished.push(change);
            }
        }
        self.move_refs(&unfinished)
    }

    /// Which operations are older than `before`, and what goes with them. Nothing is changed yet.
    pub fn plan_expiry(&self, before: Option<DateTime<FixedOffset>>) -> Result<Expiry> {
        let (mut operations, unreadable) = self.operations()?;
        let is_old = |operation: &&Operation| {
            let time = DateTime::parse_from_rfc3339(&operation.time);
            operation.summary || before.is_some_and(|before| time.is_ok_and(|time| time <= before))
        };
        // A line that cannot be read may speak of anything.
        let old = match unreadable {
            0 => operations.iter().take_while(is_old).count(),
            _ => 0,
        };
        let kept = operations.split_off(old);
        let old = operations;
        let dropped = old.iter().filter(|operation| !operation.summary).count();
        let Some(last) = old.last().filter(|_| dropped > 0) else {
            let all = old.into_iter().chain(kept).collect();
            return Ok(Expiry { dropped: 0, refs: Vec::new(), operations: all });
        };
        // What is kept for one that stays is needed, whoever kept it first.
        let mut needed: HashSet<RefName> = HashSet::new();
        for operation in &kept {
            needed.extend(operation.refs.iter().map(|change| change.name.clone()));
            needed.extend(operation.snapshots().map(RefName::kept));
        }
        let mut known: BTreeMap<RefName, Option<ObjectId>> = BTreeMap::new();
        for change in old.iter().flat_map(|operation| &operation.refs) {
            known.insert(change.name.clone(), change.after);
        }
        let mut refs = Vec::new();
        for name in known.keys().filter(|name| name.is_kept() && !needed.contains(name)) {
            let before = self.ref_target(name)?;
            refs.extend(before.map(|_| RefChange { name: name.clone(), before, after: None }));
        }
        known.retain(|name, after| after.is_some() && !name.is_kept());
        let left = known.into_iter().map(|(name, after)| RefChange { name, before: None, after });
        let summary = Operation {
            refs: left.collect(),
            files: Vec::new(),
            undoes: None,
            summary: true,
            ..last.clone()
        };
        let operations = [summary].into_iter().chain(kept).collect();
        Ok(Expiry { dropped, refs, operations })
    }

    /// Drop what was planned. One line of the log stays for all that go.
    pub fn expire(&self, _lock: &Lock<'_>, expiry: &Expiry) -> Result<()> {
        if expiry.dropped == 0 {
            return Ok(());
        }
        // The refs go first: were the log shorter already, nobody would know that they can.
        self.move_refs(&expiry.refs)?;
        let path = self.operations_path();
        let mut text = Vec::new();
        for operation in &expiry.operations {
            serde_json::to_writer(&mut text, operation)
                .map_err(|error| Error::Io { path: path.clone(), source: error.into() })?;
            text.push(b'\n');
        }
        durable::write(&path, &text, durable::Existing::Replace).map_err(Error::io(&path))
    }

    fn operations_path(&self) -> PathBuf {
        self.private_dir().join("operations.jsonl")
    }

    fn append(&self, operation: &Operation) -> Result<()> {
        let path = self.operations_path();
        let append = || {
            let new = !path.exists();
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
            let mut line = Vec::new();
            // A line that a power cut tore must not swallow this one.
            if file.seek(SeekFrom::End(0))? > 0 && last_byte(&mut file)? != b'\n' {
                line.push(b'\n');
            }
            serde_json::to_writer(&mut line, operation)?;
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_all()?;
            if new { durable::sync_dir(durable::parent(&path)) } else { Ok(()) }
        };
        append().map_err(Error::io(&path))
    }

    /// The newest line that can be read. Looks at the end of the file only, however long the log is.
    fn last_operation(&self) -> Result<Option<Operation>> {
        let path = self.operations_path();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Error::Io { path, source: error });
            }
        };
        let length = file.seek(SeekFrom::End(0)).map_err(Error::io(&path))?;
        let mut window = 1 << 16;
        loop {
            let begin = length.saturating_sub(window);
            let mut tail = Vec::new();
            file.seek(SeekFrom::Start(begin))
                .and_then(|_| file.read_to_end(&mut tail))
                .map_err(Error::io(&path))?;
            let mut lines: Vec<_> = tail.split(|byte| *byte == b'\n').collect();
            if begin > 0 {
                lines.remove(0);
            }
            if let Some(last) =
                lines.iter().rev().find_map(|line| serde_json::from_slice(line).ok())
            {
                return Ok(Some(last));
            }
            if begin == 0 {
                return Ok(None);
            }
            window *= 8;
        }
    }
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}
