//! After a command that wrote files, the newest snapshot of each timeline is what is on the disk.
//!
//! Otherwise what was there before would be the newest, or what nobody wants any more: `status`
//! would call a restored chat changed, and a backup would bring the bad state back. The snapshot
//! belongs to the same operation as the files, so that both come to be or neither.

use std::io;
use std::path::Path;

use super::apply::{FileStep, bytes_of};
use super::files::holds;
use super::journal::Journal;
use super::{Follows, Operation, Point};
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
use crate::store::{FileChange, Kept, Reader, unless_lost};

/// The origin of the state that a timeline ends with.
#[derive(Default)]
pub(crate) struct FinalSnapshot<'s> {
    pub from: Option<&'s Snapshot>,
    /// The snapshot that it was restored from.
    pub source: Option<SnapshotId>,
    pub message: &'s str,
}

impl Operation<'_> {
    /// Creates a snapshot of a timeline as it will be after the planned writes. Returns `None` if
    /// the latest one equals it, or the file will not exist.
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
        // A lorebook that cannot be read must not keep a chat from coming back; `status` tells of
        // it.
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
            (Some(head), from) => Follows::previous(head).alike(from),
            (None, Some(from)) => Follows::copy(from, &state),
            // The next snapshot finds out whether it was renamed or forked. Its file is kept with
            // the operation.
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
        // What no snapshot had is in this one.
        for step in self.files.steps.since_mut(0).filter(|step| step.change.after.is_none()) {
            let bytes = step.bytes.as_deref().filter(|_| step.after.is_some());
            if bytes.is_some_and(|bytes| holds(&state.manifest, &step.path, bytes)) {
                step.change.after = Some(Kept::Commit(snapshot.id.0));
            }
        }
        Ok(Some((snapshot, state.manifest)))
    }

    /// Returns whether the latest snapshot has the content on disk. A lorebook with a timeline of
    /// its own is stored there, unless the pair is restored.
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

    /// Returns whether the planned files equal a snapshot, without splitting a long chat.
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
            // It is compared below: its first line is that of the snapshot, or it is another file.
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

    /// Does what [`end_with`](Self::end_with) does for all planned files that are not chats, above
    /// all lorebooks. Stores their present content first.
    pub(crate) fn end_others(
        &mut self,
        library: &Library,
        ending: &FinalSnapshot<'_>,
    ) -> Result<()> {
        self.end_others_since(&Point::default(), library, ending)
    }

    /// Does that for files planned after a point.
    pub(crate) fn end_others_since(
        &mut self,
        since: &Point,
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
            // What is there was stored when the file was planned first.
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

    /// Creates a snapshot of the present files of a timeline, or returns its latest one if that equals
    /// them; `None` if there is no file.
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
                let follows = head.map(Follows::previous).unwrap_or_default();
                let taken = self.take(&state, Kind::SAFETY, follows)?;
                Ok(Some((taken, state.manifest)))
            }
        }
    }

    /// Returns the groups as they will be.
    pub(crate) fn groups(&self, library: &Library) -> Result<Groups> {
        let mut groups = library.scan()?.groups;
        for step in self.files.steps.since(0).filter(|step| step.path.is_group()) {
            if let Some(bytes) = self.read(library.root(), &step.path)? {
                groups.read_again(&step.path, &bytes);
            }
        }
        Ok(groups)
    }

    /// Returns the content of a file after the planned writes; `None` if it will not exist.
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

    /// Returns the snapshot that a timeline's branch will lead to.
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
            // It is as long in memory as somebody looks at it.
            Some(FileStep { path, change: FileChange { after: Some(kept), .. }, .. }) => {
                bytes_of(&self.reader, kept, path).map(FileBytes::from).map_err(io::Error::other)
            }
            Some(_) => Err(io::Error::other("it is not in memory")),
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
