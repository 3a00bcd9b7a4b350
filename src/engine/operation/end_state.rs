//! Creates final snapshots. After a command that writes files, the latest snapshot of each changed
//! timeline equals the written files.
//!
//! Without a final snapshot, `status` would report a restored chat as changed, and a backup would
//! contain the replaced state as the latest one. A final snapshot belongs to the same operation as
//! the files, so that either both exist or neither.

use std::io;
use std::path::Path;

use super::apply::{FileStep, bytes_of};
use super::files::holds;
use super::journal::Journal;
use super::{Operation, PlanPosition, SnapshotParents};
use crate::archive::{
    Kind, Manifest, Role, Snapshot, SnapshotId, State, Tree, branch, read_manifest,
};
use crate::engine::other_timelines::copied_from;
use crate::engine::{Include, Result, changed_timelines};
use crate::history::name_lookup;
use crate::st::{
    self, Captured, Category, Chat, FileBytes, Files, Fingerprint, Groups, Library, LibraryPath,
    Stamp, TimelineName,
};
use crate::store::{FileChange, Reader, StoredAs, unless_lost};

/// The data of a final snapshot.
#[derive(Default)]
pub(crate) struct FinalSnapshot<'s> {
    /// A snapshot with similar content. It becomes the parent of a timeline that does not exist
    /// yet.
    pub from: Option<&'s Snapshot>,
    /// The snapshot from which the files are restored, if the command is a restore.
    pub source: Option<SnapshotId>,
    pub message: &'s str,
}

impl Operation<'_> {
    /// Creates a snapshot of the files that a timeline will have after the planned writes. Returns
    /// `None` if no snapshot is needed, for example because the latest snapshot equals these files,
    /// or because the timeline's file will not exist.
    pub(crate) fn end_with(
        &mut self,
        library: &Library,
        timeline: &TimelineName,
        ending: &FinalSnapshot<'_>,
    ) -> Result<Option<(Snapshot, Manifest)>> {
        let reader = self.store.reader();
        let future = FutureFiles { reader, steps: &self.files.steps };
        if future.stamp(library.root(), &timeline.file()).is_err() {
            return Ok(None);
        }
        let groups = if timeline.is_group() { self.groups(library)? } else { Groups::default() };
        let head = self.newest(timeline)?;
        if let Some(head) = head.as_ref().filter(|head| head.kind != Kind::DELETED)
            && self.will_be(timeline, head, library)?
        {
            return Ok(None);
        }
        // An unreadable lorebook must not prevent the restore of a chat. `status` reports the
        // lorebook.
        let captured = match st::capture(library, &groups, timeline, &future) {
            Ok(captured) => captured,
            Err(_) => return Ok(None),
        };
        let state = State::of(&captured.files);
        if let Some(head) = &head
            && head.kind != Kind::DELETED
            && (head.content == state.manifest.content
                || self.is_stored(&captured, head, ending)?)
        {
            return Ok(None);
        }
        let follows = match (head, ending.from) {
            (Some(head), from) => SnapshotParents::previous(head).alike(from),
            (None, Some(from)) => SnapshotParents::copy(from, &state),
            // The next `stvc snapshot` determines whether the chat was renamed or forked. Until
            // then, only the operation stores the chat's file.
            (None, None) if timeline.is_chat() => return Ok(None),
            (None, None) => copied_from(self.store, &state)?,
        };
        let (kind, follows) = match ending.source {
            Some(source) => (Kind::RESTORED, follows.taken_from(source.to_string())),
            None => (Kind::SNAPSHOT, follows),
        };
        let former = self.message.replace(ending.message.to_owned());
        let taken = self.take(&state, kind, follows);
        self.message = former;
        let snapshot = taken?;
        // Let the log name the new snapshot for planned content that no earlier snapshot has.
        for step in self.files.steps.since_mut(0).filter(|step| step.change.after.is_none()) {
            let bytes = step.bytes.as_deref().filter(|_| step.after.is_some());
            if bytes.is_some_and(|bytes| holds(&state.manifest, &step.path, bytes)) {
                step.change.after = Some(StoredAs::Commit(snapshot.id.0));
            }
        }
        Ok(Some((snapshot, state.manifest)))
    }

    /// Returns whether the captured files are stored already. A changed lorebook counts as stored
    /// if it has its own timeline, unless chat and lorebook are restored together.
    fn is_stored(
        &self,
        captured: &Captured,
        head: &Snapshot,
        ending: &FinalSnapshot<'_>,
    ) -> Result<bool> {
        let changed = changed_timelines::changed_parts(captured, &self.store.reader(), head)?;
        let is_apart = changed.apart && ending.source.is_none();
        Ok(!changed.main && (!changed.lorebook || is_apart))
    }

    /// Returns whether the planned files of a timeline equal a snapshot. Compares hashes, so that a
    /// long chat need not be split into messages. A result of `false` does not prove that the files
    /// differ.
    fn will_be(
        &self,
        timeline: &TimelineName,
        snapshot: &Snapshot,
        library: &Library,
    ) -> Result<bool> {
        let root = library.root();
        let planned = |path: &LibraryPath| self.files.steps.of(path);
        let (Some(chat), false) = (planned(&timeline.file()), timeline.is_group()) else {
            return Ok(false);
        };
        let reader = self.store.reader();
        let Some(manifest) = unless_lost(read_manifest(&reader, snapshot.tree))? else {
            return Ok(false);
        };
        let stored;
        let header = match &chat.bytes {
            Some(bytes) => Chat::header_of(bytes, Category::Chat),
            // The planned content is not in memory. Use the header of the snapshot: if the planned
            // file differs from the snapshot, the comparison below detects it.
            None => {
                let header = match unless_lost(Tree::open(&reader, snapshot.tree))? {
                    Some(tree) => tree.header(),
                    None => None,
                };
                let Some(header) = header else { return Ok(false) };
                stored = reader.blob(header)?;
                Chat { header: Some(&stored), messages: Vec::new() }
            }
        };
        let bound = st::bound_lorebook(&header, timeline, None);
        let bound = bound.as_deref().and_then(st::lorebook_path);
        let has = manifest.file(Role::Lorebook).map(|record| record.path.as_str());
        if bound.as_ref().map(|path| path.as_str()) != has {
            return Ok(false);
        }
        for record in &manifest.files {
            let path = LibraryPath::parse(&record.path)?;
            let will_be = match planned(&path) {
                Some(step) => step.after,
                None => Fingerprint::of_file(root, &LibraryPath::parse(&record.path)?)?,
            };
            let has = Fingerprint { bytes: record.bytes, blake3: *record.blake3.as_bytes() };
            if will_be != Some(has) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls [`end_with`](Self::end_with) for all planned files that are not chats, such as
    /// lorebooks. Stores their present content first.
    pub(crate) fn end_others(
        &mut self,
        library: &Library,
        ending: &FinalSnapshot<'_>,
    ) -> Result<()> {
        self.end_others_since(&PlanPosition::default(), library, ending)
    }

    /// Calls [`end_with`](Self::end_with) for the files that are not chats and were planned after
    /// the position `since`.
    pub(crate) fn end_others_since(
        &mut self,
        since: &PlanPosition,
        library: &Library,
        ending: &FinalSnapshot<'_>,
    ) -> Result<()> {
        let from = since.steps;
        let planned =
            self.files.steps.since(from).filter_map(|step| TimelineName::of_file(&step.path));
        let others: Vec<_> = planned.filter(|name| !name.is_chat()).collect();
        for name in others {
            if !Include::of(Some(self.store)).has(name.category()) {
                continue;
            }
            // The present content was stored when the file was first planned.
            if !self.files.steps.has_before(from, &name.file()) {
                let former = self.message.replace("before it was replaced".to_owned());
                let safety = self.take_safety(library, &name);
                self.message = former;
                safety?;
            }
            self.end_with(library, &name, &FinalSnapshot { from: None, ..*ending })?;
        }
        Ok(())
    }

    /// Creates a snapshot of the present files of a timeline, or returns the latest snapshot if it
    /// equals these files. Returns `None` if there is no file.
    pub(crate) fn take_safety(
        &mut self,
        library: &Library,
        timeline: &TimelineName,
    ) -> Result<Option<(Snapshot, Manifest)>> {
        if !timeline.file().under(library.root()).exists() {
            return Ok(None);
        }
        let groups = if timeline.is_group() { library.scan()?.groups } else { Groups::default() };
        let look = changed_timelines::look(self.store, library, &groups, timeline)?;
        let is_unchanged = look.is_unchanged();
        let Some(captured) = look.captured else { return Ok(None) };
        match look.head {
            Some(head) if is_unchanged => {
                if look.astray {
                    self.move_ref(branch(timeline), head.id)?;
                }
                let manifest = read_manifest(&self.store.reader(), head.tree)?;
                Ok(Some((head, manifest)))
            }
            head => {
                let state = State::of(&captured.files);
                let follows = head.map(SnapshotParents::previous).unwrap_or_default();
                let taken = self.take(&state, Kind::SAFETY, follows)?;
                Ok(Some((taken, state.manifest)))
            }
        }
    }

    /// Returns the groups after the planned writes.
    pub(crate) fn groups(&self, library: &Library) -> Result<Groups> {
        let mut groups = library.scan()?.groups;
        for step in self.files.steps.since(0).filter(|step| step.path.is_group()) {
            if let Some(bytes) = self.read(library.root(), &step.path)? {
                groups.read_again(&step.path, &bytes);
            }
        }
        Ok(groups)
    }

    /// Returns the content that a file will have after the planned writes; `None` if the file will
    /// not exist.
    pub(crate) fn read(&self, root: &Path, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
        let future = FutureFiles { reader: self.store.reader(), steps: &self.files.steps };
        match future.read(root, path) {
            Ok(bytes) => Ok(Some(bytes.into_vec())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(st::Error::Io { path: path.under(root), source }.into()),
        }
    }

    pub(crate) fn planned_length(&self, path: &LibraryPath) -> Option<u64> {
        Some(self.files.steps.of(path)?.after?.bytes)
    }

    /// Returns the snapshot that a timeline's branch will point to after this operation.
    pub(crate) fn newest(&self, timeline: &TimelineName) -> Result<Option<Snapshot>> {
        let Some(change) = self.refs.of(&branch(timeline)) else {
            return Ok(changed_timelines::head(self.store, timeline)?.0);
        };
        let Some(id) = change.after.map(SnapshotId) else { return Ok(None) };
        match self.snapshots.made.iter().find(|made| made.snapshot.id == id) {
            Some(made) => Ok(Some(made.snapshot.clone())),
            None => Ok(Some(name_lookup::read(self.store, id)?)),
        }
    }
}

struct FutureFiles<'f, 'b> {
    reader: Reader,
    steps: &'f Journal<FileStep<'b>>,
}

impl Files for FutureFiles<'_, '_> {
    fn read(&self, root: &Path, path: &LibraryPath) -> io::Result<FileBytes> {
        match self.steps.of(path) {
            None => st::Disk.read(root, path),
            Some(FileStep { bytes: Some(bytes), .. }) => Ok(bytes.to_vec().into()),
            Some(FileStep { after: None, .. }) => Err(io::ErrorKind::NotFound.into()),
            // The planned content is in the store, not in memory.
            Some(FileStep { path, change: FileChange { after: Some(kept), .. }, .. }) => {
                bytes_of(&self.reader, kept, path).map(FileBytes::from).map_err(io::Error::other)
            }
            Some(_) => Err(io::Error::other("the planned content is not available")),
        }
    }

    fn stamp(&self, root: &Path, path: &LibraryPath) -> io::Result<Stamp> {
        match self.steps.of(path) {
            None => st::Disk.stamp(root, path),
            Some(FileStep { after: Some(after), .. }) => {
                Ok(Stamp { len: after.bytes, mtime_ns: 0, inode: 0 })
            }
            Some(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
