//! Planning the user's files: what is there is kept in the store first, and every file that changes is in the operation log with both
//! its states, so that it can be finished after an interruption, and `undo` can take it back.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use super::apply::{FileStep, is_lost};
use super::{Operation, Point};
use crate::archive::{Attachment, Blake3, Manifest, SnapshotId};
use crate::engine::{Error, Result};
use crate::rules::{self, Wish};
use crate::st::{self, Fingerprint, LibraryPath, Running, TimelineName};
use crate::store::name_encoding::tree_segment;
use crate::store::{
    FileChange, Kept, Kind as ObjectKind, LoggedOperation, NewCommit, PackWriter, RefName, Store,
    TreeEntry, commit, tree,
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
    /// The hash of what was there, if anything was and that is known.
    pub there: Option<Blake3>,
    /// The mark that it got, if it is a chat that pages may have in memory.
    pub mark: Option<String>,
}

/// One file: what is there now, and what shall be.
pub struct FilePlan<'c> {
    /// The path of the file or part.
    pub path: LibraryPath,
    /// What is there; `None`: nothing.
    pub now: Option<Vec<u8>>,
    /// What shall be; `None`: nothing.
    pub new: Option<Cow<'c, [u8]>>,
    /// The snapshot that has `new` under this path, if one does.
    pub(crate) stored_in: Option<SnapshotId>,
    /// What is there loses nothing: a chat is listed in its group's file.
    pub(crate) harmless: bool,
    /// Whether `new` stays in memory until it is written; else it is read from the store then.
    pub(crate) in_memory: bool,
    /// Where both are in the store, if that is known.
    pub(crate) known: Option<FileChange>,
    /// What shall be and is not in memory: its length and hash.
    pub(crate) described: Option<(u64, Blake3)>,
    /// The hash of `new`, if it is known.
    pub(crate) hash: Option<Blake3>,
    /// The mark that `new` got. Then it is in no snapshot yet, whatever `known` says.
    pub(crate) mark: Option<String>,
}

impl<'c> FilePlan<'c> {
    /// What is there, and what shall be.
    pub(crate) fn new(path: LibraryPath, now: Option<Vec<u8>>, new: Option<Cow<'c, [u8]>>) -> Self {
        Self {
            path,
            now,
            new,
            stored_in: None,
            harmless: false,
            in_memory: true,
            known: None,
            described: None,
            hash: None,
            mark: None,
        }
    }

    /// An attachment that is not there, from the store. Its blob was verified.
    pub(crate) fn attachment(attachment: &Attachment) -> Option<Self> {
        let Attachment { path, bytes, blake3, blob, .. } = attachment;
        Some(Self::from_store(path, Kept::Blob((*blob)?), (*bytes, *blake3)))
    }

    /// A file that is not there, as this snapshot has it.
    pub(crate) fn stored(path: &LibraryPath, id: SnapshotId, bytes: u64, blake3: Blake3) -> Self {
        Self::from_store(path, Kept::Commit(id.0), (bytes, blake3))
    }

    fn from_store(path: &LibraryPath, kept: Kept, described: (u64, Blake3)) -> Self {
        let change = FileChange { path: path.to_string(), before: None, after: Some(kept) };
        let (known, described) = (Some(change), Some(described));
        Self { known, described, ..Self::new(path.clone(), None, None) }
    }

    /// Whether it is as it shall be.
    pub fn is_there(&self) -> bool {
        self.described.is_none() && self.now.as_deref() == self.new.as_deref()
    }

    /// Whether something else is there.
    pub fn replaces(&self) -> bool {
        self.now.is_some() && !self.is_there()
    }

    /// What is done with it.
    pub fn action(&self) -> FileAction {
        if let Some((bytes, blake3)) = self.described {
            let (path, action) = (self.path.clone(), Action::Write);
            return FileAction {
                path,
                action,
                bytes,
                blake3,
                replaces: false,
                there: None,
                mark: None,
            };
        }
        let bytes = self.new.as_deref().or(self.now.as_deref()).unwrap_or_default();
        FileAction {
            path: self.path.clone(),
            action: match &self.new {
                _ if self.is_there() => Action::Keep,
                Some(_) => Action::Write,
                None => Action::Delete,
            },
            bytes: bytes.len() as u64,
            blake3: self.hash.unwrap_or_else(|| Blake3::of(bytes)),
            replaces: self.replaces() && self.new.is_some(),
            there: self.now.as_deref().map(Blake3::of),
            mark: self.mark.clone(),
        }
    }
}

/// What an operation of the log did with files.
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
    operation.files.iter().filter_map(|change| action(change).transpose()).collect()
}

/// What a file of the library holds; `None` if it is not there.
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

/// Whether SillyTavern may be running while its files are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closed {
    /// It must not, as far as can be seen, but for chats about which it asks before it writes back what it has in memory.
    #[default]
    Unknown,
    /// The page that asks for it reads the files again; another one may be open.
    Rereads,
    /// The chat is closed there, says the user: it has nothing to write back.
    Said,
}

/// What the user lets a command do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    /// Whether SillyTavern may be running.
    pub closed: Closed,
    /// Whether a lorebook may be replaced in whose queue work waits.
    pub active_queue: bool,
}

/// What was planned for the files.
#[derive(Default)]
pub(crate) struct Planned {
    /// What becomes of each.
    pub actions: Vec<FileAction>,
    /// Whether former bytes are kept outside any snapshot.
    pub kept: bool,
}

impl<'a> Operation<'a> {
    /// Plan files of the library at `root`. For every file that changes the log will say where its bytes before and after are; what neither
    /// `had`, snapshots of what is there, nor the plan's own snapshots hold is kept as it is, by a ref whose subject is `why`.
    ///
    /// The one place where it is asked whether SillyTavern runs and would write back what it has in memory, and whether ST-Auto-Recap is at work in a lorebook.
    pub(crate) fn write_files(
        &mut self,
        root: &Path,
        plan: Vec<FilePlan<'a>>,
        had: &[(SnapshotId, &Manifest)],
        leave: Leave,
        why: &str,
    ) -> Result<Planned> {
        self.plan_files(root, plan, had, leave, why, |bytes| bytes)
    }

    /// Plans files as [`write_files`](Self::write_files) does, one of many times in one operation. What the store has is read from there when it
    /// is written; the rest stays in memory until [`release`](Self::release).
    pub(crate) fn write_stored_files(
        &mut self,
        root: &Path,
        mut plan: Vec<FilePlan<'_>>,
        had: &[(SnapshotId, &Manifest)],
        leave: Leave,
        why: &str,
    ) -> Result<Planned> {
        for file in &mut plan {
            let is_stored = file.stored_in.is_some() || file.known.is_some() && file.mark.is_none();
            file.in_memory = !is_stored;
        }
        self.plan_files(root, plan, had, leave, why, |bytes| Cow::Owned(bytes.into_owned()))
    }

    /// Drops the bytes of chats that were planned since a point: no later part of the operation looks at them.
    pub(crate) fn release(&mut self, since: &Point) -> Result<()> {
        let is_chat = |step: &&mut FileStep<'_>| {
            TimelineName::of_file(&step.path).is_some_and(|name| name.is_chat())
        };
        let Self { pack, kept, steps, .. } = self;
        for step in steps.since_mut(since.steps).filter(is_chat) {
            store_planned(step, pack, kept)?;
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
        hold: fn(Cow<'p, [u8]>) -> Cow<'a, [u8]>,
    ) -> Result<Planned> {
        for file in plan.iter().filter(|file| file.new.is_some() || file.described.is_some()) {
            st::must_be_a_name_here(&file.path)?;
        }
        self.ask_pages(&plan, leave, root)?;
        ask_queues(&plan, leave)?;
        let mut planned = Planned::default();
        self.why = why.to_owned();
        for file in plan {
            let action = file.action();
            let (there, blake3) = (action.there, action.blake3);
            planned.actions.push(action);
            if let (Some(change), None) = (&file.known, &file.mark) {
                // Also one that is there: the log says all that was taken back.
                let bytes = file.new.filter(|_| file.in_memory).map(hold);
                self.steps.push(FileStep { bytes, ..FileStep::of(self.store, change)? });
                continue;
            }
            if file.is_there() {
                continue;
            }
            let path = file.path.to_string();
            let had =
                |now: &[u8]| had.iter().find(|(_, manifest)| holds(manifest, &file.path, now));
            // What this operation planned to write there before never comes to be.
            let earlier = self.steps.of(&file.path).map(|step| (step.before, step.change.before));
            let before = match (earlier, &file.now, file.known) {
                (Some((_, before)), ..) => before,
                (None, None, _) => None,
                (None, Some(_), Some(change)) => change.before,
                (None, Some(now), None) => match had(now) {
                    Some((snapshot, _)) => Some(Kept::Commit(snapshot.0)),
                    None => {
                        planned.kept = true;
                        Some(self.keep(&path, now)?)
                    }
                },
            };
            let after = match (&file.new, file.stored_in) {
                (None, _) => None,
                (Some(_), Some(snapshot)) => Some(Kept::Commit(snapshot.0)),
                // The snapshot that the timeline ends with may have it.
                (Some(_), None) if file.in_memory => None,
                (Some(new), None) => Some(self.keep(&format!("{path} after"), new)?),
            };
            let now = file.now.as_deref().zip(there).map(print);
            self.steps.push(FileStep {
                before: earlier.map_or(now, |(before, _)| before),
                after: file.new.as_deref().map(|new| print((new, blake3))),
                bytes: file.new.filter(|_| file.in_memory).map(hold),
                change: FileChange { path, before, after },
                path: file.path,
            });
        }
        if !self.steps.is_empty() {
            self.root = Some(root.to_owned());
        }
        Ok(planned)
    }

    fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<Kept> {
        keep(&mut self.pack, &mut self.kept, name, bytes)
    }

    /// Returns whether SillyTavern runs on the library at `root`; looked for once.
    pub(crate) fn running_on(&mut self, root: &Path) -> Running {
        *self.running.get_or_insert_with(|| st::running_on(root))
    }

    /// Refuse to replace what a SillyTavern that runs would write back without a word.
    fn ask_pages(&mut self, plan: &[FilePlan<'_>], leave: Leave, root: &Path) -> Result<()> {
        let lost = |file: &&FilePlan<'_>| file.now.is_some() && !file.is_there() && !file.harmless;
        if leave.closed != Closed::Unknown || !plan.iter().any(|file| lost(&file)) {
            return Ok(());
        }
        let Running::Seen { process, asks } = self.running_on(root) else { return Ok(()) };
        let silent = plan.iter().filter(lost).filter(|file| !(asks && file.is_asked_about()));
        let paths: Vec<_> = silent.map(|file| file.path.to_string()).collect();
        if paths.is_empty() { Ok(()) } else { Err(Error::SillyTavernRuns { process, paths }) }
    }

    /// What will be there and what no snapshot has by now is kept as it is, and all that is kept has a ref.
    pub(super) fn keep_the_rest(&mut self) -> Result<()> {
        let Self { pack, kept, steps, .. } = self;
        steps.drop_replaced();
        for step in steps.since_mut(0) {
            store_planned(step, pack, kept)?;
        }
        if !self.kept.is_empty() {
            let tree = self.pack.add(ObjectKind::Tree, &tree::encode(&self.kept))?;
            let commit = NewCommit {
                tree,
                parents: Vec::new(),
                time: self.workspace.time(),
                subject: self.why.clone(),
                trailers: vec![("Stvc-Kind".into(), "kept".into())],
            };
            let commit = self.pack.add(ObjectKind::Commit, &commit::encode(&commit))?;
            self.move_ref(RefName::kept(commit), SnapshotId(commit))?;
        }
        Ok(())
    }

    /// Write files in this order: what is first in `order` of their path comes first.
    pub(crate) fn order_files<K: Ord>(&mut self, order: impl Fn(&LibraryPath) -> K) {
        self.steps.sort_by_key(order);
    }
}

/// Stores what will be in a file, unless a snapshot has it.
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

/// Refuse to replace a lorebook in which ST-Auto-Recap is at work, unless that may be.
pub(crate) fn ask_queues(plan: &[FilePlan<'_>], leave: Leave) -> Result<()> {
    for file in plan.iter().filter(|file| file.path.is_lorebook() && !file.is_there()) {
        let active = rules::queue_active(file.path.as_str(), file.now.as_deref(), Wish::Replace);
        if let Some(finding) = active.filter(|_| !leave.active_queue) {
            return Err(Error::refused(finding));
        }
    }
    Ok(())
}

/// The fingerprint of bytes whose hash is known.
fn print((bytes, blake3): (&[u8], Blake3)) -> Fingerprint {
    Fingerprint { bytes: bytes.len() as u64, blake3: *blake3.as_bytes() }
}

/// Whether a snapshot has just these bytes under that path. (A group's file is in it as it was then, and may have changed since.)
pub(crate) fn holds(manifest: &Manifest, path: &LibraryPath, bytes: &[u8]) -> bool {
    let file = manifest.files.iter().find(|file| file.path == path.as_str());
    file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.blake3 == Blake3::of(bytes))
}
