//! Plans changes of the user's files. The present content is stored first. The operation log names
//! the stored content of every changed file before and after the change, so that an interrupted
//! operation can be finished and `undo` can revert it.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::apply::{FileStep, is_lost};
use super::content_preview::ContentPreview;
use super::{FileChanges, Operation, PlanPosition};
use crate::archive::{Attachment, Blake3, Manifest, SnapshotId};
use crate::auto_recap::{self, QueueIntent};
use crate::engine::sillytavern_runs::SillyTavernRuns;
use crate::engine::{Error, Result};
use crate::st::{self, Fingerprint, LibraryPath, Running, TimelineName};
use crate::store::name_encoding::tree_segment;
use crate::store::{
    FileChange, Kind as ObjectKind, LoggedOperation, NewCommit, PackWriter, RefName, Store,
    StoredAs, TreeEntry, commit, tree,
};

/// An action on a file of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Create or replace the file.
    Write,
    /// Leave the file unchanged, because it already has the content.
    Keep,
    /// Remove the file.
    Delete,
}

/// A file of the library and the action on it.
#[derive(Serialize)]
pub struct FileAction {
    /// Path relative to the user's folder of SillyTavern.
    pub path: LibraryPath,
    /// The effect on the file.
    pub action: Action,
    /// Length of the new content; of the former content if the file is deleted.
    pub bytes: u64,
    /// Hash of the content to which `bytes` refers.
    pub blake3: Blake3,
    /// Whether a file with other content is replaced.
    pub replaces: bool,
    /// The hash of the former content; `None` if there was no file.
    pub blake3_before: Option<Blake3>,
    /// The new integrity value of a replaced chat that SillyTavern's page may have in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// Summary of the change of a chat or a lorebook. Only plans have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<ContentPreview>,
}

/// A planned change of a file.
pub struct FilePlan<'c> {
    pub path: LibraryPath,
    /// The present content; `None` if the file does not exist.
    pub now: Option<Vec<u8>>,
    pub(crate) new: NewFile<'c>,
    /// Whether replacing the file loses nothing, for example when a chat is added to its group's
    /// file.
    pub(crate) harmless: bool,
    /// The change for the log, if `undo` plans the file. It names the stored content before and
    /// after.
    pub(crate) known: Option<FileChange>,
}

/// The planned content of a file.
pub(crate) enum NewFile<'c> {
    Deleted,
    Bytes {
        bytes: Cow<'c, [u8]>,
        hash: Option<Blake3>,
        /// The snapshot that contains these bytes under the path of the file, if known.
        stored_in: Option<SnapshotId>,
        /// The new integrity value in `bytes`, if one was set. No snapshot contains `bytes` in that
        /// case.
        integrity: Option<String>,
    },
    /// Content in the store, for a file that does not exist in the library. The content is read
    /// when the file is written.
    Stored {
        kept: StoredAs,
        bytes: u64,
        blake3: Blake3,
    },
}

impl<'c> NewFile<'c> {
    pub(crate) fn of(bytes: Cow<'c, [u8]>) -> Self {
        Self::Bytes { bytes, hash: None, stored_in: None, integrity: None }
    }
}

impl<'c> FilePlan<'c> {
    /// Plans to replace the content `now` with `new`. If `new` is `None`, the file is deleted.
    pub(crate) fn new(path: LibraryPath, now: Option<Vec<u8>>, new: Option<Cow<'c, [u8]>>) -> Self {
        let new = new.map_or(NewFile::Deleted, NewFile::of);
        Self { path, now, new, harmless: false, known: None }
    }

    /// Plans to write a missing attachment, whose blob was verified.
    pub(crate) fn attachment(attachment: &Attachment) -> Option<Self> {
        let Attachment { path, bytes, blake3, blob, .. } = attachment;
        Some(Self::from_store(path, StoredAs::Blob((*blob)?), *bytes, *blake3))
    }

    /// Plans to write a missing file with the content that the snapshot `id` has for its path.
    pub(crate) fn stored(path: &LibraryPath, id: SnapshotId, bytes: u64, blake3: Blake3) -> Self {
        Self::from_store(path, StoredAs::Commit(id.0), bytes, blake3)
    }

    fn from_store(path: &LibraryPath, kept: StoredAs, bytes: u64, blake3: Blake3) -> Self {
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
            NewFile::Bytes { stored_in, integrity, .. } => {
                stored_in.is_some() || self.known.is_some() && integrity.is_none()
            }
            NewFile::Stored { .. } => true,
        }
    }

    /// Returns the change for the log, if the content before and after is known to be stored.
    fn change(&self) -> Option<FileChange> {
        match &self.new {
            NewFile::Bytes { integrity: Some(_), .. } => None,
            NewFile::Stored { kept, .. } => {
                let path = self.path.to_string();
                Some(FileChange { path, before: None, after: Some(*kept) })
            }
            NewFile::Deleted | NewFile::Bytes { .. } => self.known.clone(),
        }
    }

    pub fn is_up_to_date(&self) -> bool {
        !matches!(self.new, NewFile::Stored { .. }) && self.now.as_deref() == self.new_bytes()
    }

    pub fn replaces(&self) -> bool {
        self.now.is_some() && !self.is_up_to_date()
    }

    pub fn action(&self) -> FileAction {
        let blake3_before = self.now.as_deref().map(Blake3::of);
        let length = |bytes: &[u8]| bytes.len() as u64;
        let (action, bytes, blake3) = match &self.new {
            NewFile::Deleted => {
                let now = self.now.as_deref().unwrap_or_default();
                let action = if self.is_up_to_date() { Action::Keep } else { Action::Delete };
                (action, length(now), blake3_before.unwrap_or_else(|| Blake3::of(now)))
            }
            NewFile::Bytes { bytes, hash, .. } => {
                let action = if self.is_up_to_date() { Action::Keep } else { Action::Write };
                (action, length(bytes), hash.unwrap_or_else(|| Blake3::of(bytes)))
            }
            NewFile::Stored { bytes, blake3, .. } => (Action::Write, *bytes, *blake3),
        };
        let integrity = match &self.new {
            NewFile::Bytes { integrity, .. } => integrity.clone(),
            NewFile::Deleted | NewFile::Stored { .. } => None,
        };
        let replaces = self.replaces() && action != Action::Delete;
        FileAction {
            path: self.path.clone(),
            action,
            bytes,
            blake3,
            replaces,
            blake3_before,
            integrity,
            preview: None,
        }
    }

    /// Returns the action with a preview of the change.
    pub fn planned_action(&self) -> FileAction {
        let (now, new) = (self.now.as_deref(), self.new_bytes());
        let preview =
            (!self.is_up_to_date()).then(|| ContentPreview::of(&self.path, now, new)).flatten();
        FileAction { preview, ..self.action() }
    }
}

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
            blake3_before: step.before.map(|before| Blake3::from_bytes(before.blake3)),
            integrity: None,
            preview: None,
        }))
    };
    operation.effect.files.iter().filter_map(|change| action(change).transpose()).collect()
}

/// Reads a file of the library. Returns `None` if the file does not exist.
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

/// Tells whether a chat may be open in SillyTavern while its file is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ChatOpenFields")]
pub enum ChatOpenState {
    /// Unknown. Files are not replaced while SillyTavern is running, except chats that SillyTavern
    /// asks the user about before it overwrites them.
    #[default]
    Unknown,
    /// The page of SillyTavern that requests the change will read the files again. Another page may
    /// be open.
    PageReloads,
    /// The user confirmed that the chat is closed.
    Closed,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatOpenFields {
    chat_closed: bool,
    rereads: bool,
}

impl From<ChatOpenFields> for ChatOpenState {
    fn from(said: ChatOpenFields) -> Self {
        match said {
            ChatOpenFields { rereads: true, .. } => Self::PageReloads,
            ChatOpenFields { chat_closed: true, .. } => Self::Closed,
            _ => Self::Unknown,
        }
    }
}

/// Permissions for replacing files.
#[derive(Clone, Copy, Debug, Default)]
pub struct WritePermissions {
    /// Whether SillyTavern may overwrite the files that are written.
    pub closed: ChatOpenState,
    /// Whether a lorebook may be replaced while work is pending in its queue.
    pub active_queue: bool,
}

/// A function that returns the bytes of a planned file that stay in memory. The flag is true if the
/// store has these bytes.
type RetainBytes<'p, 'a> = fn(Cow<'p, [u8]>, bool) -> Option<Cow<'a, [u8]>>;

#[derive(Default)]
pub(crate) struct Planned {
    pub actions: Vec<FileAction>,
    /// Whether former content that no snapshot has is stored under `refs/stvc/kept/`.
    pub kept: bool,
}

impl<'a> Operation<'a> {
    /// Plans to change files of the library at `root`. The log will name the stored content of
    /// every changed file before and after the change. `had` are snapshots of the present files.
    /// Content that is neither in `had` nor in a snapshot of this operation is stored in a commit
    /// under `refs/stvc/kept/`, with the subject `why`.
    ///
    /// Refuses the plan if a running SillyTavern would overwrite the files, or if ST-Auto-Recap is
    /// working in a lorebook. Nothing else checks this.
    pub(crate) fn write_files(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'a>>,
        had: &[(SnapshotId, &Manifest)],
        permissions: WritePermissions,
        why: &str,
    ) -> Result<Planned> {
        self.plan_files(root, plan, had, permissions, why, |bytes, _| Some(bytes))
    }

    /// Plans files like [`write_files`](Self::write_files), for many calls in one operation.
    /// Content that the store has is not kept in memory, but read from the store when its file is
    /// written. Other content stays in memory until [`release`](Self::release).
    pub(crate) fn write_stored_files(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'_>>,
        had: &[(SnapshotId, &Manifest)],
        permissions: WritePermissions,
        why: &str,
    ) -> Result<Planned> {
        self.plan_files(root, plan, had, permissions, why, |bytes, is_stored| {
            (!is_stored).then(|| Cow::Owned(bytes.into_owned()))
        })
    }

    /// Stores the content of chats that were planned after the position `since`, and drops it from
    /// memory. Later parts of the operation do not need the content of chats.
    pub(crate) fn release(&mut self, since: &PlanPosition) -> Result<()> {
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
        permissions: WritePermissions,
        why: &str,
        hold: RetainBytes<'p, 'a>,
    ) -> Result<Planned> {
        for file in plan.iter().filter(|file| !matches!(file.new, NewFile::Deleted)) {
            st::must_be_a_name_here(&file.path)?;
        }
        self.ask_pages(&plan, permissions, root)?;
        ask_queues(&plan, permissions)?;
        let mut planned = Planned::default();
        self.files.why = why.to_owned();
        for file in plan {
            let action = file.action();
            let (there, blake3) = (action.blake3_before, action.blake3);
            planned.actions.push(action);
            let (known, is_there) = (file.change(), file.is_up_to_date());
            let (is_stored, after) = (file.is_stored(), file.new_bytes().map(|new| (new, blake3)));
            let after = after.map(print);
            let (bytes, stored_in) = match file.new {
                NewFile::Bytes { bytes, stored_in, .. } => (hold(bytes, is_stored), stored_in),
                NewFile::Deleted | NewFile::Stored { .. } => (None, None),
            };
            if let Some(change) = known {
                // Add unchanged files, too: the log lists everything that was undone.
                self.files.steps.push(FileStep { bytes, ..FileStep::of(self.store, &change)? });
                continue;
            }
            if is_there {
                continue;
            }
            let path = file.path.to_string();
            let had =
                |now: &[u8]| had.iter().find(|(_, manifest)| holds(manifest, &file.path, now));
            // If this operation planned the file earlier, that content is never written. The
            // content before the operation counts.
            let earlier = self.files.steps.of(&file.path);
            let earlier = earlier.map(|step| (step.before, step.change.before));
            let kept = match (earlier, &file.now, &file.known) {
                (Some((_, before)), ..) => before,
                (None, None, _) => None,
                (None, Some(_), Some(change)) => change.before,
                (None, Some(now), None) => match had(now) {
                    Some((snapshot, _)) => Some(StoredAs::Commit(snapshot.0)),
                    None => {
                        planned.kept = true;
                        Some(keep(&mut self.pack, &mut self.files.kept, &path, now)?)
                    }
                },
            };
            let now = file.now.as_deref().zip(there).map(print);
            // If no snapshot has the new content yet, the final snapshot of the timeline may have
            // it.
            let kept_after = stored_in.map(|snapshot| StoredAs::Commit(snapshot.0));
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

    /// Returns whether SillyTavern runs on the library at `root`. Looks for SillyTavern only once
    /// per operation.
    pub(crate) fn running_on(&mut self, root: &Path) -> Running {
        *self.files.running.get_or_insert_with(|| st::running_on(root))
    }

    /// Refuses to replace files that a running SillyTavern would overwrite without asking the user.
    fn ask_pages(
        &mut self,
        plan: &[FilePlan<'_>],
        permissions: WritePermissions,
        root: &Path,
    ) -> Result<()> {
        let lost =
            |file: &&FilePlan<'_>| file.now.is_some() && !file.is_up_to_date() && !file.harmless;
        if permissions.closed != ChatOpenState::Unknown || !plan.iter().any(|file| lost(&file)) {
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

    /// Stores planned content that no snapshot has, and creates the ref that keeps this content
    /// reachable.
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
) -> Result<StoredAs> {
    let blob = pack.add(ObjectKind::Blob, bytes)?;
    kept.push(TreeEntry::blob(tree_segment(name.as_bytes()), blob));
    Ok(StoredAs::Blob(blob))
}

/// Refuses to replace a lorebook in which ST-Auto-Recap is working, unless `permissions` allow
/// this.
pub(crate) fn ask_queues(plan: &[FilePlan<'_>], permissions: WritePermissions) -> Result<()> {
    for file in plan.iter().filter(|file| file.path.is_lorebook() && !file.is_up_to_date()) {
        let active =
            auto_recap::queue_active(file.path.as_str(), file.now.as_deref(), QueueIntent::Replace);
        if let Some(finding) = active.filter(|_| !permissions.active_queue) {
            return Err(Error::refused(finding));
        }
    }
    Ok(())
}

fn print((bytes, blake3): (&[u8], Blake3)) -> Fingerprint {
    Fingerprint { bytes: bytes.len() as u64, blake3: *blake3.as_bytes() }
}

/// Returns whether the snapshot with this manifest contains `bytes` under `path`.
pub(crate) fn holds(manifest: &Manifest, path: &LibraryPath, bytes: &[u8]) -> bool {
    let file = manifest.files.iter().find(|file| file.path == path.as_str());
    file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.blake3 == Blake3::of(bytes))
}
