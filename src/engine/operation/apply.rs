//! Writes the files of a logged operation, or reverts them.
//!
//! The command itself and a recovery apply the same rule. A file that has its former content is
//! written. A file that has the planned content is complete. Any other file was saved by another
//! program during the operation and stays unchanged. The branch of its timeline then moves back to
//! the snapshot that the file is based on. Otherwise the file would look like a later version of
//! the planned content.

use std::borrow::Cow;
use std::path::Path;

use crate::archive::{FileRecord, Manifest, Role, Snapshot, Tree, read_manifest};
use crate::engine::{Error, Result, Workspace};
use crate::st::{self, Fingerprint, LibraryPath};
use crate::store::{
    Effect, FileChange, Lock, LoggedOperation, Loss, ObjectId, Reader, RefChange, RefName, Store,
    StoredAs, unless_lost,
};

pub(crate) struct FileStep<'b> {
    pub path: LibraryPath,
    pub before: Option<Fingerprint>,
    pub after: Option<Fingerprint>,
    /// The new content, if it is in memory. Otherwise the content is read from the store.
    pub bytes: Option<Cow<'b, [u8]>>,
    pub change: FileChange,
}

impl FileStep<'_> {
    /// Creates the step for a change in the log.
    pub(crate) fn of(store: &Store, change: &FileChange) -> Result<FileStep<'static>> {
        let path = LibraryPath::parse(&change.path)?;
        st::must_be_a_place(&path)?;
        let reader = store.reader();
        let print = |kept: &Option<StoredAs>| match kept {
            None => Ok(None),
            Some(kept) => fingerprint_of(&reader, kept, &path).map(Some),
        };
        Ok(FileStep {
            before: print(&change.before)?,
            after: print(&change.after)?,
            bytes: None,
            change: change.clone(),
            path,
        })
    }

    fn reversed(&self) -> FileStep<'static> {
        FileStep {
            path: self.path.clone(),
            before: self.after,
            after: self.before,
            bytes: None,
            change: self.change.reversed(),
        }
    }

    /// Writes or removes the file. Returns `false` if another program saved the file, which then
    /// stays unchanged.
    fn take(&self, store: &Store, root: &Path) -> Result<bool> {
        let now = Fingerprint::of_file(root, &self.path)?;
        if now == self.after {
            return Ok(true);
        }
        if now != self.before {
            return Ok(false);
        }
        let done = match (&self.change.after, now) {
            (Some(kept), _) => {
                let bytes = match &self.bytes {
                    Some(bytes) => Cow::Borrowed(bytes.as_ref()),
                    None => Cow::Owned(bytes_of(&store.reader(), kept, &self.path)?),
                };
                st::write(root, &self.path, &bytes, now)
            }
            (None, Some(now)) => st::remove(root, &self.path, now),
            (None, None) => Ok(()),
        };
        match done {
            Ok(()) => {
                st::forget_thumbnail(root, &self.path);
                Ok(true)
            }
            Err(st::Error::SavedMeanwhile { .. } | st::Error::AlreadyThere { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Applies the steps in order. Returns the files that another program saved. They stay unchanged.
pub(crate) fn apply(
    store: &Store,
    root: &Path,
    steps: &[FileStep<'_>],
) -> Result<Vec<LibraryPath>> {
    let mut left = Vec::new();
    for step in steps {
        if !step.take(store, root)? {
            left.push(step.path.clone());
        }
    }
    Ok(left)
}

/// The command that finishes an operation by writing its files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finisher {
    Command,
    /// A later command. The log records that the operation was interrupted.
    Recovery,
}

/// Moves back the branches of timelines whose files were not written (`left`), and records the
/// operation as finished.
pub(crate) fn settle(
    workspace: &Workspace,
    store: &Store,
    lock: &Lock,
    operation: &LoggedOperation,
    left: &[LibraryPath],
    by: Finisher,
) -> Result<()> {
    let refs = reverted_branches(store, operation, left)?;
    if by == Finisher::Recovery || !refs.is_empty() {
        let effect = Effect { refs, finishes: Some(operation.number), ..Effect::default() };
        store.transact(lock, workspace.timestamp(), effect)?;
    }
    Ok(store.finished(lock, operation.number)?)
}

/// Reverts an operation: first its files, then its refs.
pub(crate) fn take_back(
    store: &Store,
    root: &Path,
    operation: &LoggedOperation,
    steps: &[FileStep<'_>],
) -> Result<()> {
    for step in steps.iter().rev() {
        step.reversed().take(store, root)?;
    }
    Ok(store.take_back_refs(operation)?)
}

/// Returns the ref changes that move back the branches of timelines whose files were not written
/// (`left`). The snapshots of the operation stay reachable under `refs/stvc/kept/`.
fn reverted_branches(
    store: &Store,
    operation: &LoggedOperation,
    left: &[LibraryPath],
) -> Result<Vec<RefChange>> {
    let mut refs = Vec::new();
    if left.is_empty() {
        return Ok(refs);
    }
    let reader = store.reader();
    let tree_of = |id| Ok::<_, Error>(Tree::open(&reader, snapshot_of(&reader, id)?.tree)?);
    let planned = |path: &str| operation.effect.files.iter().find(|change| change.path == path);
    for change in operation.effect.refs.iter().filter(|change| change.name.is_branch()) {
        if store.ref_target(&change.name)? != change.after {
            continue;
        }
        let Some(id) = change.after.or(change.before) else { continue };
        // If the snapshot cannot be read, its branch stays: the next snapshot then follows the
        // latest readable one.
        let Some(tree) = unless_lost(tree_of(id))? else { continue };
        let mut depends = false;
        for path in left {
            let record = tree.manifest.files.iter().find(|record| record.path == path.as_str());
            let (Some(record), Some(planned)) = (record, planned(path.as_str())) else { continue };
            depends |= match (&planned.after, change.after) {
                // The operation deleted the branch because it deletes the timeline's own file.
                (None, None) => record.role == tree.manifest.main_role(),
                // A group's file matters only for a chat without a header, whose metadata is in
                // that file.
                (Some(_), Some(_)) if record.role == Role::Group && tree.header().is_some() => {
                    false
                }
                (Some(kept), Some(_)) => match fingerprint_of(&reader, kept, path) {
                    Ok(print) => {
                        (print.bytes, &print.blake3) == (record.bytes, record.blake3.as_bytes())
                    }
                    Err(error) if is_lost(&error) => true,
                    Err(error) => return Err(error),
                },
                _ => false,
            };
        }
        if depends {
            if let Some(after) = change.after {
                let name = RefName::kept(after);
                let before = store.ref_target(&name)?;
                refs.push(RefChange { name, before, after: Some(after) });
            }
            refs.push(change.reversed());
        }
    }
    Ok(refs)
}

fn snapshot_of(reader: &Reader, commit: ObjectId) -> Result<Snapshot> {
    Ok(Snapshot::read(&reader.commit(commit)?)?)
}

fn record_of<'m>(
    manifest: &'m Manifest,
    id: ObjectId,
    path: &LibraryPath,
) -> Result<&'m FileRecord> {
    let record = manifest.files.iter().find(|record| record.path == path.as_str());
    let missing = || Error::NoSuchPart { snapshot: id.to_string(), part: "file of that name" };
    record.ok_or_else(missing)
}

fn fingerprint_of(reader: &Reader, kept: &StoredAs, path: &LibraryPath) -> Result<Fingerprint> {
    Ok(match kept {
        StoredAs::Blob(id) => Fingerprint::of(&reader.blob(*id)?),
        StoredAs::Commit(id) => {
            let manifest = read_manifest(reader, snapshot_of(reader, *id)?.tree)?;
            let record = record_of(&manifest, *id, path)?;
            Fingerprint { bytes: record.bytes, blake3: *record.blake3.as_bytes() }
        }
    })
}

pub(crate) fn bytes_of(reader: &Reader, kept: &StoredAs, path: &LibraryPath) -> Result<Vec<u8>> {
    Ok(match kept {
        StoredAs::Blob(id) => reader.blob(*id)?,
        StoredAs::Commit(id) => {
            let tree = Tree::open(reader, snapshot_of(reader, *id)?.tree)?;
            tree.rebuild(reader, record_of(&tree.manifest, *id, path)?)?
        }
    })
}

/// Returns whether the error means that the store has lost the content, so that a retry is useless.
pub(crate) fn is_lost(error: &Error) -> bool {
    error.is_loss() || matches!(error, Error::NoSuchPart { .. } | Error::History(_))
}
