//! Finishing what was interrupted. Whoever takes the store's lock comes through here before
//! anything else, so no command ever takes a file that another one was about to write for something
//! new.

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

/// The store's lock. Interrupted operations are finished.
pub(crate) struct Held {
    pub(crate) lock: Lock,
}

impl Workspace {
    /// Takes the lock of a store. Forgets what was read of it before: it may have changed while
    /// this waited.
    pub(crate) fn hold(&self, store: &Store) -> Result<(Store, Held)> {
        let judge = |operation: &LoggedOperation| why_impossible(self, store, operation);
        let lock = store.lock(self.command.words(), &self.timestamp(), self.patience, &judge)?;
        let store = store.refreshed();
        self.notice(lock.set_aside().iter().map(was_set_aside).collect());
        let mut finished = finish_files(self, &store, &lock)?;
        finished.extend_from_slice(lock.finished());
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).append(&mut finished);
        Ok((store, Held { lock }))
    }

    pub(crate) fn open(&self, dry_run: bool) -> Result<(Store, Option<Held>)> {
        let store = self.open_store()?;
        if dry_run {
            return Ok((store, None));
        }
        let (store, held) = self.hold(&store)?;
        Ok((store, Some(held)))
    }
}

impl Held {
    /// Returns the interrupted operation of this very command, if it is finished by now: then the
    /// request is done.
    pub(crate) fn done_before(
        &self,
        workspace: &Workspace,
        store: &Store,
    ) -> Result<Option<LoggedOperation>> {
        let same = |operation: &&LoggedOperation| operation.command == workspace.command.words();
        // Perhaps when the lock was taken an earlier time.
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

/// Finishes interrupted operations before the library is listed for a plan.
pub fn finish_interrupted(workspace: &Workspace) -> Result<()> {
    match workspace.find_store()? {
        Some(store) if !store.unfinished()?.is_empty() => workspace.hold(&store).map(drop),
        _ => Ok(()),
    }
}

/// Returns why the files and branches of an operation cannot be what it says, if they cannot. An
/// error in finding out is no such reason: it will be met again.
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
            return Err(format!("{path} is not among the files that this store has"));
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

/// Returns whether a store may have such a timeline. Settings are stored only if the user wants
/// that.
fn has_timeline(store: &Store, name: &TimelineName) -> bool {
    name.category() != Category::Settings
        || Include::of(Some(store)).has(Category::Settings)
        || store.ref_target(&branch(name)).is_ok_and(|target| target.is_some())
}

fn finish_files(workspace: &Workspace, store: &Store, lock: &Lock) -> Result<Vec<LoggedOperation>> {
    let mut finished = Vec::new();
    for operation in store.unfinished()? {
        // Another library's files are for those who work on that one. Where there is none, there is
        // nothing to write; where it cannot be opened just now, what is on the disk must not be
        // looked at before it was.
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

/// Returns the name of the library in the log, for [`is_of`].
pub(crate) fn name_of_library(store: &Store, root: &Path) -> Option<String> {
    let real = real_path::of(root);
    (real_path::of(durable::parent(store.path())) != real).then(|| real.display().to_string())
}

fn was_set_aside(SetAside { operation, why }: &SetAside) -> Finding {
    let number = operation.number;
    let what = format!(
        "operation {number} of the log cannot be carried out ({why}), so it was removed from the log"
    );
    Finding::new(Code::OperationSetAside, subject(operation), what).remedy(format!(
        "run `stvc check` to look for other damage; the line is in stvc/{SET_ASIDE} inside the store"
    ))
}

fn was_finished(operation: &LoggedOperation) -> Finding {
    let number = operation.number;
    let what = format!("operation {number} was interrupted, and is finished now");
    Finding::new(Code::OperationFinished, subject(operation), what)
        .remedy(format!("`stvc undo {number}` takes it back"))
}

fn was_left(operation: &LoggedOperation, path: &LibraryPath) -> Finding {
    let number = operation.number;
    let what = format!(
        "it was saved by another program before operation {number} could write it, and is left as it is"
    );
    Finding::new(Code::SavedMeanwhile, path.as_str(), what)
        .remedy(format!("what was to be written: `stvc operations`, number {number}"))
}

fn was_lost(operation: &LoggedOperation, path: &LibraryPath) -> Finding {
    let number = operation.number;
    let (code, what, remedy) = if st::is_attachment(path) {
        (
            Code::AttachmentLost,
            format!("operation {number} had to write this attachment, and the store has lost it"),
            "everything else of the operation is done; copy the file from a backup",
        )
    } else {
        (
            Code::KeptDamaged,
            format!(
                "operation {number} was interrupted, and the store has lost the bytes of this file; it is left as it is"
            ),
            "`stvc check` finds what else is lost; `stvc import` may bring it back from a backup",
        )
    };
    Finding::new(code, path.as_str(), what).remedy(remedy)
}

fn was_taken_back(operation: &LoggedOperation, why: &str) -> Finding {
    let number = operation.number;
    let what = format!(
        "operation {number} was interrupted and cannot be finished ({why}), so it was taken back"
    );
    Finding::new(Code::OperationTakenBack, subject(operation), what)
        .remedy("mend the cause, then give the command again")
}

fn subject(operation: &LoggedOperation) -> String {
    let arguments = operation.command.iter().skip(1).map(String::as_str);
    std::iter::once("stvc").chain(arguments).collect::<Vec<_>>().join(" ")
}
