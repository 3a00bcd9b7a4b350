//! Finishes interrupted operations. Every command that takes the store's lock first finishes them,
//! so that no command mistakes a half-finished operation for a change by the user.

use std::io;
use std::path::Path;
use std::sync::PoisonError;

use super::apply::{self, FileStep, Finisher};
use crate::archive::{Snapshot, branch};
use crate::engine::{Error, Include, Result, Workspace};
use crate::rules::{Code, Finding};
use crate::st::{self, Category, LibraryPath, TimelineName};
use crate::store::{
    Effect, FileChange, Lock, LoggedOperation, RefChange, SET_ASIDE, SetAside, Store,
};
use crate::{durable, real_path};

/// The store's lock. Interrupted operations on this library were finished when the lock was taken.
pub(crate) struct HeldLock {
    pub(crate) lock: Lock,
}

impl Workspace {
    /// Takes the lock of a store and finishes interrupted operations. Returns the store reopened,
    /// because another process may have changed the store before it released the lock.
    pub(crate) fn hold(&self, store: &Store) -> Result<(Store, HeldLock)> {
        let judge = |operation: &LoggedOperation| why_impossible(self, store, operation);
        let lock = store.lock(self.command.words(), &self.timestamp(), self.patience, &judge)?;
        let store = store.refreshed();
        self.notice(lock.set_aside.iter().map(was_set_aside).collect());
        let mut finished = finish_files(self, &store, &lock)?;
        finished.extend_from_slice(&lock.finished);
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).append(&mut finished);
        Ok((store, HeldLock { lock }))
    }

    /// Opens the store, and takes its lock unless `run` only plans.
    pub(crate) fn open(&self, run: RunMode) -> Result<(Store, Option<HeldLock>)> {
        let store = self.open_store()?;
        match run {
            RunMode::Plan => Ok((store, None)),
            RunMode::Write => self.hold(&store).map(|(store, held)| (store, Some(held))),
        }
    }
}

/// Tells whether a command changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    Plan,
    Write,
}

impl RunMode {
    pub(crate) fn of_dry_run(dry_run: bool) -> Self {
        if dry_run { Self::Plan } else { Self::Write }
    }
}

impl HeldLock {
    /// Returns the operation of an earlier run of the same command line, if that run was
    /// interrupted and a recovery finished its operation. The command then has nothing left to do.
    pub(crate) fn done_before(
        &self,
        workspace: &Workspace,
        store: &Store,
    ) -> Result<Option<LoggedOperation>> {
        let same = |operation: &&LoggedOperation| operation.command == workspace.command.words();
        // This command may have taken the lock before and finished the operation then.
        let finished = workspace.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = finished.iter().find(same) {
            return Ok(Some(now.clone()));
        }
        drop(finished);
        let operations = store.operations()?.0;
        let Some(last) =
            operations.iter().rev().filter(|found| found.effect.finishes.is_none()).find(same)
        else {
            return Ok(None);
        };
        let number = Some(last.number);
        let by: Vec<_> = operations.iter().filter(|it| it.effect.finishes == number).collect();
        let is_told = by.iter().any(|by| by.command == last.command);
        let is_undone = operations.iter().any(|found| found.effect.undoes == number);
        if by.is_empty() || is_told || is_undone {
            return Ok(None);
        }
        let effect = Effect { finishes: Some(last.number), ..Effect::default() };
        store.transact(&self.lock, workspace.timestamp(), effect)?;
        Ok(Some(last.clone()))
    }
}

/// Finishes interrupted operations. Must be called before the library is listed for a plan, because
/// it may write and delete files.
pub fn finish_interrupted(workspace: &Workspace) -> Result<()> {
    match workspace.find_store()? {
        Some(store) if !store.unfinished()?.is_empty() => workspace.hold(&store).map(drop),
        _ => Ok(()),
    }
}

/// Returns whether an operation is in progress or was interrupted. Returns `false` if the store
/// cannot be read.
pub fn has_unfinished(workspace: &Workspace) -> bool {
    let store = workspace.open_store();
    let unfinished = store.and_then(|store| Ok(store.unfinished()?));
    unfinished.is_ok_and(|unfinished| !unfinished.is_empty())
}

/// Returns the reason why an operation in the log is invalid; `None` if it is valid. Ignores read
/// errors, which will occur again when the operation is finished.
fn why_impossible(
    workspace: &Workspace,
    store: &Store,
    operation: &LoggedOperation,
) -> Option<String> {
    let root = workspace.library().ok().map(|library| library.root().to_owned());
    let root = root.filter(|root| is_of(operation, store, root));
    let check_file = |change: &FileChange| -> std::result::Result<(), String> {
        let words = |error: st::Error| error.to_string();
        let path = LibraryPath::parse(&change.path).map_err(words)?;
        st::must_be_a_place(&path).map_err(words)?;
        if TimelineName::of_file(&path).is_some_and(|name| !has_timeline(store, &name)) {
            return Err(format!("this store does not contain {path}"));
        }
        let Some(root) = &root else { return Ok(()) };
        st::must_be_a_name_here(&path).map_err(words)?;
        st::why_not_writable(root, &path).map_or(Ok(()), Err)
    };
    let reader = store.reader();
    let check_ref = |change: &RefChange| {
        let commit = change.after.filter(|_| change.name.is_branch());
        let commit = commit.and_then(|id| reader.commit(id).ok())?;
        Snapshot::read(&commit).err().map(|error| error.to_string())
    };
    let Effect { files, refs, .. } = &operation.effect;
    let file = files.iter().find_map(|change| check_file(change).err());
    file.or_else(|| refs.iter().find_map(check_ref))
}

/// Returns whether the store may contain the timeline `name`. `settings.json` is stored only if the
/// user enabled this.
fn has_timeline(store: &Store, name: &TimelineName) -> bool {
    name.category() != Category::Settings
        || Include::of(Some(store)).has(Category::Settings)
        || store.ref_target(&branch(name)).is_ok_and(|target| target.is_some())
}

fn finish_files(workspace: &Workspace, store: &Store, lock: &Lock) -> Result<Vec<LoggedOperation>> {
    let mut finished = Vec::new();
    for operation in store.unfinished()? {
        // An operation on another library is finished by a command for that library. If there is no
        // library, there is nothing to write. If the library cannot be opened now, the command must
        // fail, because the files must not be read before the operation is finished.
        use io::ErrorKind::{NotADirectory, NotFound};
        let root = match workspace.library() {
            Ok(library) => library.root().to_owned(),
            Err(Error::St(st::Error::Io { source, .. }))
                if matches!(source.kind(), NotFound | NotADirectory) =>
            {
                break;
            }
            Err(error @ Error::St(st::Error::Io { .. })) => return Err(error),
            Err(_) => break,
        };
        if !is_of(&operation, store, &root) {
            continue;
        }
        let findings = finish(workspace, store, lock, &root, &operation)?;
        workspace.notice(findings);
        finished.push(operation);
    }
    Ok(finished)
}

fn finish(
    workspace: &Workspace,
    store: &Store,
    lock: &Lock,
    root: &Path,
    operation: &LoggedOperation,
) -> Result<Vec<Finding>> {
    let (mut steps, mut lost) = (Vec::new(), Vec::new());
    for change in &operation.effect.files {
        match FileStep::of(store, change) {
            Ok(step) => {
                durable::clear_left_behind(durable::parent(&step.path.under(root)));
                steps.push(step);
            }
            Err(error) if apply::is_lost(&error) => lost.push(LibraryPath::parse(&change.path)?),
            Err(error) => return Err(error),
        }
    }
    match apply::apply(store, root, &steps) {
        Ok(mut left) => {
            let mut findings = vec![was_finished(operation)];
            findings.extend(lost.iter().map(|path| was_lost(operation, path)));
            findings.extend(left.iter().map(|path| was_left(operation, path)));
            left.append(&mut lost);
            apply::settle(workspace, store, lock, operation, &left, Finisher::Recovery)?;
            Ok(findings)
        }
        Err(error) => {
            apply::take_back(store, root, operation, &steps)?;
            Ok(vec![was_taken_back(operation, &error.to_string())])
        }
    }
}

fn is_of(operation: &LoggedOperation, store: &Store, root: &Path) -> bool {
    let library = operation.effect.library.as_ref().map(Path::new);
    real_path::of(library.unwrap_or(durable::parent(store.path()))) == real_path::of(root)
}

/// Returns the path of the library for the log; `None` if the store is directly inside the library.
/// [`is_of`] compares this path.
pub(crate) fn name_of_library(store: &Store, root: &Path) -> Option<String> {
    let real = real_path::of(root);
    (real_path::of(durable::parent(store.path())) != real).then(|| real.display().to_string())
}

fn was_set_aside(SetAside { operation, why }: &SetAside) -> Finding {
    let number = operation.number;
    let what = format!("operation {number} is invalid ({why}) and was removed from the log");
    Finding::new(Code::OperationSetAside, subject(operation), what).remedy(format!(
        "run `stvc check` to look for other damage; the removed line is in stvc/{SET_ASIDE} in the store"
    ))
}

fn was_finished(operation: &LoggedOperation) -> Finding {
    let number = operation.number;
    let what = format!("operation {number} was interrupted and is now finished");
    Finding::new(Code::OperationFinished, subject(operation), what)
        .remedy(format!("run `stvc undo {number}` to undo it"))
}

fn was_left(operation: &LoggedOperation, path: &LibraryPath) -> Finding {
    let number = operation.number;
    let what = format!(
        "another program saved it before operation {number} could write it, so it was not replaced"
    );
    Finding::new(Code::SavedMeanwhile, path.as_str(), what)
        .remedy(format!("run `stvc operations` to see operation {number}"))
}

fn was_lost(operation: &LoggedOperation, path: &LibraryPath) -> Finding {
    let number = operation.number;
    let (code, what, remedy) = if st::is_attachment(path) {
        (
            Code::AttachmentLost,
            format!(
                "operation {number} could not write this attachment: it is missing or damaged in the store"
            ),
            "copy the file from a backup; the rest of the operation is done",
        )
    } else {
        (
            Code::KeptDamaged,
            format!(
                "operation {number} was interrupted and could not write this file: its new content is missing or damaged in the store"
            ),
            "run `stvc check` to see the damage; run `stvc import` to restore lost snapshots from a backup",
        )
    };
    Finding::new(code, path.as_str(), what).remedy(remedy)
}

fn was_taken_back(operation: &LoggedOperation, why: &str) -> Finding {
    let number = operation.number;
    let what = format!(
        "operation {number} was interrupted and cannot be finished ({why}), so it was reverted"
    );
    Finding::new(Code::OperationTakenBack, subject(operation), what)
        .remedy("fix the cause, then run the command again")
}

fn subject(operation: &LoggedOperation) -> String {
    let arguments = operation.command.iter().skip(1).map(String::as_str);
    std::iter::once("stvc").chain(arguments).collect::<Vec<_>>().join(" ")
}
