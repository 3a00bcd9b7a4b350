//! Writing the user's files: what is there is kept in the store first, and every file that changes is in the operation log with both
//! its states, so that `undo` can take it back.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;

use super::session::Session;
use super::{Error, Result, Workspace};
use crate::archive::{Blake3, Manifest, Snapshot, SnapshotId};
use crate::st::{self, LibraryPath};
use crate::store::names::tree_segment;
use crate::store::{
    FileChange, Kept, Kind as ObjectKind, NewCommit, RefName, TreeEntry, commit, tree,
};

/// What was done with one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Written.
    Write,
    /// It was there already, byte for byte.
    Keep,
    /// Removed.
    Delete,
}

/// One file that was planned, and what was done with it.
pub struct FileAction {
    /// Its path in the library, or in the folder it went to.
    pub path: LibraryPath,
    /// What was done.
    pub action: Action,
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub blake3: Blake3,
    /// Whether something else was there.
    pub replaces: bool,
}

/// One file: what is there now, and what shall be.
pub struct FilePlan<'c> {
    /// Which.
    pub path: LibraryPath,
    /// What is there; `None`: nothing.
    pub now: Option<Vec<u8>>,
    /// What shall be; `None`: nothing.
    pub new: Option<Cow<'c, [u8]>>,
    /// The snapshot that has `new` under this path, if one does.
    pub(super) stored_in: Option<SnapshotId>,
}

impl FilePlan<'_> {
    /// Whether it is as it shall be.
    pub fn is_there(&self) -> bool {
        self.now.as_deref() == self.new.as_deref()
    }

    /// Whether something else is there.
    pub fn replaces(&self) -> bool {
        self.now.is_some() && !self.is_there()
    }

    /// What is done with it.
    pub fn action(&self) -> FileAction {
        let bytes = self.new.as_deref().or(self.now.as_deref()).unwrap_or_default();
        FileAction {
            path: self.path.clone(),
            action: match &self.new {
                _ if self.is_there() => Action::Keep,
                Some(_) => Action::Write,
                None => Action::Delete,
            },
            bytes: bytes.len() as u64,
            blake3: Blake3::of(bytes),
            replaces: self.replaces() && self.new.is_some(),
        }
    }
}

/// What a file of the library holds; `None` if it is not there.
pub(super) fn read(root: &Path, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
    let path = path.under(root);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::St(st::Error::Io { path, source })),
    }
}

/// Say for every file that changes where its bytes before and after are. What neither `safety`, a snapshot of what is there, nor the
/// plan's own snapshots hold is kept as it is, by a ref; `why` is its subject. Call it before anything is written, and hand what it gives to
/// [`Session::finish`].
pub(super) fn keep(
    workspace: &Workspace,
    plan: &[FilePlan<'_>],
    safety: Option<&(Snapshot, Manifest)>,
    session: &mut Session<'_>,
    why: String,
) -> Result<Vec<FileChange>> {
    keep_all(
        workspace,
        plan,
        &safety.map(|(taken, manifest)| (taken.id, manifest)).into_iter().collect::<Vec<_>>(),
        session,
        why,
    )
}

/// The same where several snapshots have what is there.
pub(super) fn keep_all(
    workspace: &Workspace,
    plan: &[FilePlan<'_>],
    safety: &[(SnapshotId, &Manifest)],
    session: &mut Session<'_>,
    why: String,
) -> Result<Vec<FileChange>> {
    let mut kept = Vec::new();
    let mut changes = Vec::new();
    for file in plan.iter().filter(|file| !file.is_there()) {
        let mut keep = |name: String, bytes: &[u8]| -> Result<Kept> {
            let blob = session.pack.add(ObjectKind::Blob, bytes)?;
            kept.push(TreeEntry::blob(tree_segment(name.as_bytes()), blob));
            Ok(Kept::Blob(blob.to_string()))
        };
        let before = match &file.now {
            None => None,
            Some(now) => match safety.iter().find(|(_, manifest)| holds(manifest, &file.path, now))
            {
                Some((safety, _)) => Some(Kept::Snapshot(safety.to_string())),
                None => Some(keep(file.path.to_string(), now)?),
            },
        };
        let after = match (&file.new, file.stored_in) {
            (None, _) => None,
            (Some(_), Some(snapshot)) => Some(Kept::Snapshot(snapshot.to_string())),
            (Some(new), None) => Some(keep(format!("{} after", file.path), new)?),
        };
        changes.push(FileChange { path: file.path.to_string(), before, after });
    }
    if !kept.is_empty() {
        let tree = session.pack.add(ObjectKind::Tree, &tree::encode(&kept))?;
        let commit = NewCommit {
            tree,
            parents: Vec::new(),
            time: workspace.time(),
            subject: why,
            trailers: vec![("Stvc-Kind".into(), "kept".into())],
        };
        let commit = session.pack.add(ObjectKind::Commit, &commit::encode(&commit))?;
        session.move_ref(RefName::kept(commit), SnapshotId(commit))?;
    }
    Ok(changes)
}

/// Write and remove what is planned, each file read back and compared. A file that somebody saved since it was looked at stops it.
pub(super) fn write(root: &Path, plan: &[FilePlan<'_>]) -> Result<()> {
    for file in plan.iter().filter(|file| !file.is_there()) {
        let done = match (&file.now, &file.new) {
            (now, Some(new)) => st::write(root, &file.path, new, now.as_deref()),
            (Some(now), None) => st::remove(root, &file.path, now),
            (None, None) => Ok(()),
        };
        done.map_err(|source| match source {
            st::Error::SavedMeanwhile { .. } => Error::St(source),
            source => Error::Unfinished { source },
        })?;
    }
    Ok(())
}

/// Whether a snapshot has just these bytes under that path. (A group's file is in it as it was then, and may have changed since.)
pub(super) fn holds(manifest: &Manifest, path: &LibraryPath, bytes: &[u8]) -> bool {
    let file = manifest.files.iter().find(|file| file.path == path.as_str());
    file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.blake3 == Blake3::of(bytes))
}
