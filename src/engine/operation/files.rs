//! Planning the user's files: what is there is kept in the store first, and every file that changes
//! is in the operation log with both its states, so that it can be finished after an interruption,
//! and `undo` can take it back.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::apply::{FileStep, is_lost};
use super::{FileChanges, Operation, Point};
use crate::archive::{Attachment, Blake3, Manifest, SnapshotId};
use crate::auto_recap::{self, Wish};
use crate::engine::sillytavern_runs::SillyTavernRuns;
use crate::engine::{Error, Result};
use crate::st::{self, Fingerprint, LibraryPath, Running, TimelineName};
use crate::store::name_encoding::tree_segment;
use crate::store::{
    FileChange, Kept, Kind as ObjectKind, LoggedOperation, NewCommit, PackWriter, RefName, Store,
    TreeEntry, commit, tree,
};

/// An action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Write,
    /// It had the content already.
    Keep,
    Delete,
}

/// A file of the library and the action on it.
#[derive(Serialize)]
pub struct FileAction {
    pub path: LibraryPath,
    pub action: Action,
    pub bytes: u64,
    pub blake3: Blake3,
    pub replaces: bool,
    /// The hash of the former content, if known.
    pub there: Option<Blake3>,
    /// The new integrity value of a chat that pages may have in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// A planned change of a file.
pub struct FilePlan<'c> {
    pub path: LibraryPath,
    /// The present content; `None` if there is no file.
    pub now: Option<Vec<u8>>,
    pub(crate) new: NewFile<'c>,
    /// Nothing is lost with the present content, as when a chat is added to the list of its group.
    pub(crate) harmless: bool,
    /// The change in the log that is undone. It says where both states are stored.
    pub(crate) known: Option<FileChange>,
}

/// The planned content of a file.
pub(crate) enum NewFile<'c> {
    Deleted,
    Bytes {
        bytes: Cow<'c, [u8]>,
        hash: Option<Blake3>,
        /// The snapshot with these bytes under this path.
        stored_in: Option<SnapshotId>,
        /// The new integrity value. No snapshot has these bytes yet.
        mark: Option<String>,
    },
    /// Content of the store for a file that does not exist. It is read when it is written.
    Stored {
        kept: Kept,
        bytes: u64,
        blake3: Blake3,
    },
}

impl<'c> NewFile<'c> {
    pub(crate) fn of(bytes: Cow<'c, [u8]>) -> Self {
        Self::Bytes { bytes, hash: None, stored_in: None, mark: None }
    }
}

impl<'c> FilePlan<'c> {
    /// Plans to replace the content; `None` deletes the file.
    pub(crate) fn new(path: LibraryPath, now: Option<Vec<u8>>, new: Option<Cow<'c, [u8]>>) -> Self {
        let new = new.map_or(NewFile::Deleted, NewFile::of);
        Self { path, now, new, harmless: false, known: None }
    }

    /// Plans to write a missing attachment, whose blob was verified.
    pub(crate) fn attachment(attachment: &Attachment) -> Option<Self> {
        let Attachment { path, bytes, blake3, blob, .. } = attachment;
        Some(Self::from_store(path, Kept::Blob((*blob)?), *bytes, *blake3))
    }

    /// Plans to write a missing file as a snapshot has it.
    pub(crate) fn stored(path: &LibraryPath, id: SnapshotId, bytes: u64, blake3: Blake3) -> Self {
        Self::from_store(path, Kept::Commit(id.0), bytes, blake3)
    }

    fn from_store(path: &LibraryPath, kept: Kept, bytes: u64, blake3: Blake3) -> Self {
        let new = NewFile::Stored { kept, bytes, blake3 };
        Self { new, ..Self::new(path.clone(), None, None) }
    }

    pub(crate) fn stored_in(mut self, snapshot: Option<SnapshotId>) -> Self {
        if let NewFile::Bytes { stored_in, .. } = &mut self.new {
            *stored_in = snapshot;
        }
        self
    }

    pub(crate) fn hashed(mut self, blake3: Blake3) -> Self {
        if let NewFile::Bytes { hash, .. } = &mut self.new {
            *hash = Some(blake3);
        }
        self
    }

    pub(crate) fn new_bytes(&self) -> Option<&[u8]> {
        if let NewFile::Bytes { bytes, .. } = &self.new { Some(bytes) } else { None }
    }

    fn is_stored(&self) -> bool {
        match &self.new {
            NewFile::Deleted => false,
            NewFile::Bytes { stored_in, mark, .. } => {
                stored_in.is_some() || self.known.is_some() && mark.is_none()
            }
            NewFile::Stored { .. } => true,
        }
    }

    /// Returns the change for the log, if it is known where both states are stored.
    fn change(&self) -> Option<FileChange> {
        match &self.new {
            NewFile::Bytes { mark: Some(_), .. } => None,
            NewFile::Stored { kept, .. } => {
                let path = self.path.to_string();
                Some(FileChange { path, before: None, after: Some(*kept) })
            }
            NewFile::Deleted | NewFile::Bytes { .. } => self.known.clone(),
        }
    }

    pub fn is_there(&self) -> bool {
        !matches!(self.new, NewFile::Stored { .. }) && self.now.as_deref() == self.new_bytes()
    }

    pub fn replaces(&self) -> bool {
        self.now.is_some() && !self.is_there()
    }

    pub fn action(&self) -> FileAction {
        let there = self.now.as_deref().map(Blake3::of);
        let length = |bytes: &[u8]| bytes.len() as u64;
        let (action, bytes, blake3) = match &self.new {
            NewFile::Deleted => {
                let now = self.now.as_deref().unwrap_or_default();
                let action = if self.is_there() { Action::Keep } else { Action::Delete };
                (action, length(now), there.unwrap_or_else(|| Blake3::of(now)))
            }
            NewFile::Bytes { bytes, hash, .. } => {
                let action = if self.is_there() { Action::Keep } else { Action::Write };
                (action, length(bytes), hash.unwrap_or_else(|| Blake3::of(bytes)))
            }
            NewFile::Stored { bytes, blake3, .. } => (Action::Write, *bytes, *blake3),
        };
        let mark = match &self.new {
            NewFile::Bytes { mark, .. } => mark.clone(),
            NewFile::Deleted | NewFile::Stored { .. } => None,
        };
        let replaces = self.replaces() && action != Action::Delete;
        FileAction { path: self.path.clone(), action, bytes, blake3, replaces, there, mark }
    }
}

/// Returns the actions of a logged operation.
pub(crate) fn actions_of(store: &Store, operation: &LoggedOperation) -> Result<Vec<FileAction>> {
    let action = |change: &FileChange| -> Result<Option<FileAction>> {
        let step = match FileStep::of(store, change) {
            Ok(step) => step,
            Err(error) if is_lost(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(there) = step.after.or(step.before) else { return Ok(None) };
        Ok(Some(FileAction {
            path: step.path,
            action: if step.after.is_some() { Action::Write } else { Action::Delete },
            bytes: there.bytes,
            blake3: Blake3::from_bytes(there.blake3),
            replaces: step.before.is_some() && step.after.is_some(),
            there: step.before.map(|before| Blake3::from_bytes(before.blake3)),
            mark: None,
        }))
    };
    operation.effect.files.iter().filter_map(|change| action(change).transpose()).collect()
}

/// Reads a file of the library; `None` if it does not exist.
pub(crate) fn read(root: &Path, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
    match st::read(root, path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = path.under(root);
            match st::is_absent(&path) {
                Ok(_) => Ok(None),
                Err(source) => Err(Error::St(st::Error::Io { path, source })),
            }
        }
        Err(source) => Err(Error::St(st::Error::Io { path: path.under(root), source })),
    }
}

/// Whether a chat may be open in SillyTavern while its file is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SaidClosed")]
pub enum Closed {
    /// Not known: refused while SillyTavern runs, except for chats about which it asks before
    /// saving.
    #[default]
    Unknown,
    /// The requesting page reads the files again; another page may be open.
    Rereads,
    /// The user says that the chat is closed.
    Said,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SaidClosed {
    chat_closed: bool,
    rereads: bool,
}

impl From<SaidClosed> for Closed {
    fn from(said: SaidClosed) -> Self {
        match said {
            SaidClosed { rereads: true, .. } => Self::Rereads,
            SaidClosed { chat_closed: true, .. } => Self::Said,
            _ => Self::Unknown,
        }
    }
}

/// Permissions for replacing files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    pub closed: Closed,
    /// Replace a lorebook in whose queue work is pending.
    pub active_queue: bool,
}

/// Returns the bytes to keep in memory; the flag says whether the store has them.
type Hold<'p, 'a> = fn(Cow<'p, [u8]>, bool) -> Option<Cow<'a, [u8]>>;

/// The result of planning files.
#[derive(Default)]
pub(crate) struct Planned {
    pub actions: Vec<FileAction>,
    /// Former bytes are kept outside of snapshots.
    pub kept: bool,
}

impl<'a> Operation<'a> {
    /// Plan files of the library at `root`. For every file that changes the log will say where its
    /// bytes before and after are; what neither `had`, snapshots of what is there, nor the plan's
    /// own snapshots hold is kept as it is, by a ref whose subject is `why`.
    ///
    /// The one place where it is asked whether SillyTavern runs and would write back what it has in
    /// memory, and whether ST-Auto-Recap is at work in a lorebook.
    pub(crate) fn write_files(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'a>>,
        had: &[(SnapshotId, &Manifest)],
        leave: Leave,
        why: &str,
    ) -> Result<Planned> {
        self.plan_files(root, plan, had, leave, why, |bytes, _| Some(bytes))
    }

    /// Plans files as [`write_files`](Self::write_files) does, one of many times in one operation.
    /// What the store has is read from there when it is written; the rest stays in memory until
    /// [`release`](Self::release).
    pub(crate) fn write_stored_files(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'_>>,
        had: &[(SnapshotId, &Manifest)],
        leave: Leave,
        why: &str,
    ) -> Result<Planned> {
        self.plan_files(root, plan, had, leave, why, |bytes, is_stored| {
            (!is_stored).then(|| Cow::Owned(bytes.into_owned()))
        })
    }

    /// Drops the bytes of chats that were planned since a point: no later part of the operation
    /// looks at them.
    pub(crate) fn release(&mut self, since: &Point) -> Result<()> {
        let is_chat = |step: &&mut FileStep<'_>| {
            TimelineName::of_file(&step.path).is_some_and(|name| name.is_chat())
        };
        let FileChanges { kept, steps, .. } = &mut self.files;
        for step in steps.since_mut(since.steps).filter(is_chat) {
            store_planned(step, &mut self.pack, kept)?;
            step.bytes = None;
        }
        Ok(())
    }

    fn plan_files<'p>(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'p>>,
        had: &[(SnapshotId, &Manifest)],
        leave: Leave,
        why: &str,
        hold: Hold<'p, 'a>,
    ) -> Result<Planned> {
        for file in plan.iter().filter(|file| !matches!(file.new, NewFile::Deleted)) {
            st::must_be_a_name_here(&file.path)?;
        }
        self.ask_pages(&plan, leave, root)?;
        ask_queues(&plan, leave)?;
        let mut planned = Planned::default();
        self.files.why = why.to_owned();
        for file in plan {
            let action = file.action();
            let (there, blake3) = (action.there, action.blake3);
            planned.actions.push(action);
            let (known, is_there) = (file.change(), file.is_there());
            let (is_stored, after) = (file.is_stored(), file.new_bytes().map(|new| (new, blake3)));
            let after = after.map(print);
            let (bytes, stored_in) = match file.new {
                NewFile::Bytes { bytes, stored_in, .. } => (hold(bytes, is_stored), stored_in),
                NewFile::Deleted | NewFile::Stored { .. } => (None, None),
            };
            if let Some(change) = known {
                // Also one that is there: the log says all that was taken back.
                self.files.steps.push(FileStep { bytes, ..FileStep::of(self.store, &change)? });
                continue;
            }
            if is_there {
                continue;
            }
            let path = file.path.to_string();
            let had =
                |now: &[u8]| had.iter().find(|(_, manifest)| holds(manifest, &file.path, now));
            // What this operation planned to write there before never comes to be.
            let earlier = self.files.steps.of(&file.path);
            let earlier = earlier.map(|step| (step.before, step.change.before));
            let kept = match (earlier, &file.now, &file.known) {
                (Some((_, before)), ..) => before,
                (None, None, _) => None,
                (None, Some(_), Some(change)) => change.before,
                (None, Some(now), None) => match had(now) {
                    Some((snapshot, _)) => Some(Kept::Commit(snapshot.0)),
                    None => {
                        planned.kept = true;
                        Some(keep(&mut self.pack, &mut self.files.kept, &path, now)?)
                    }
                },
            };
            let now = file.now.as_deref().zip(there).map(print);
            // If no snapshot has it now, the one that the timeline ends with may.
            let kept_after = stored_in.map(|snapshot| Kept::Commit(snapshot.0));
            self.files.steps.push(FileStep {
                before: earlier.map_or(now, |(before, _)| before),
                after,
                bytes,
                change: FileChange { path, before: kept, after: kept_after },
                path: file.path,
            });
        }
        if !self.files.steps.is_empty() {
            self.files.root = Some(root.to_owned());
        }
        Ok(planned)
    }

    /// Returns whether SillyTavern runs on the library at `root`; looked for once.
    pub(crate) fn running_on(&mut self, root: &Path) -> Running {
        *self.files.running.get_or_insert_with(|| st::running_on(root))
    }

    /// Refuses to replace what a running SillyTavern would save over without asking.
    fn ask_pages(&mut self, plan: &[FilePlan<'_>], leave: Leave, root: &Path) -> Result<()> {
        let lost = |file: &&FilePlan<'_>| file.now.is_some() && !file.is_there() && !file.harmless;
        if leave.closed != Closed::Unknown || !plan.iter().any(|file| lost(&file)) {
            return Ok(());
        }
        let Running::Seen { process, asks } = self.running_on(root) else { return Ok(()) };
        let silent = plan.iter().filter(lost).filter(|file| !(asks && file.is_asked_about()));
        let paths: Vec<_> = silent.map(|file| file.path.to_string()).collect();
        if paths.is_empty() {
            Ok(())
        } else {
            Err(SillyTavernRuns { process, paths, restore: None }.into())
        }
    }

    /// Stores planned content that no snapshot has, and creates the ref that keeps it.
    pub(super) fn keep_the_rest(&mut self) -> Result<()> {
        let FileChanges { kept, steps, .. } = &mut self.files;
        steps.sort_by_key(|_| ());
        for step in steps.since_mut(0) {
            store_planned(step, &mut self.pack, kept)?;
        }
        if !self.files.kept.is_empty() {
            let tree = self.pack.add(ObjectKind::Tree, &tree::encode(&self.files.kept))?;
            let commit = NewCommit {
                tree,
                parents: Vec::new(),
                time: self.workspace.time(),
                subject: self.files.why.clone(),
                trailers: vec![("Stvc-Kind".into(), "kept".into())],
            };
            let commit = self.pack.add(ObjectKind::Commit, &commit::encode(&commit))?;
            self.move_ref(RefName::kept(commit), SnapshotId(commit))?;
        }
        Ok(())
    }

    pub(crate) fn order_files<K: Ord>(&mut self, order: impl Fn(&LibraryPath) -> K) {
        self.files.steps.sort_by_key(order);
    }
}

fn store_planned(
    step: &mut FileStep<'_>,
    pack: &mut PackWriter,
    kept: &mut Vec<TreeEntry>,
) -> Result<()> {
    if step.after.is_some() && step.change.after.is_none() {
        let bytes = step.bytes.as_deref().unwrap_or_default();
        step.change.after = Some(keep(pack, kept, &format!("{} after", step.path), bytes)?);
    }
    Ok(())
}

fn keep(
    pack: &mut PackWriter,
    kept: &mut Vec<TreeEntry>,
    name: &str,
    bytes: &[u8],
) -> Result<Kept> {
    let blob = pack.add(ObjectKind::Blob, bytes)?;
    kept.push(TreeEntry::blob(tree_segment(name.as_bytes()), blob));
    Ok(Kept::Blob(blob))
}

/// Refuses to replace a lorebook in which ST-Auto-Recap is working, unless that is allowed.
pub(crate) fn ask_queues(plan: &[FilePlan<'_>], leave: Leave) -> Result<()> {
    for file in plan.iter().filter(|file| file.path.is_lorebook() && !file.is_there()) {
        let active =
            auto_recap::queue_active(file.path.as_str(), file.now.as_deref(), Wish::Replace);
        if let Some(finding) = active.filter(|_| !leave.active_queue) {
            return Err(Error::refused(finding));
        }
    }
    Ok(())
}

fn print((bytes, blake3): (&[u8], Blake3)) -> Fingerprint {
    Fingerprint { bytes: bytes.len() as u64, blake3: *blake3.as_bytes() }
}

/// Returns whether a snapshot has these bytes under that path. (A group's file may have changed
/// since.)
pub(crate) fn holds(manifest: &Manifest, path: &LibraryPath, bytes: &[u8]) -> bool {
    let file = manifest.files.iter().find(|file| file.path == path.as_str());
    file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.blake3 == Blake3::of(bytes))
}
