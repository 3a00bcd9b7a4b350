//! The two sides of an import or sync, and the state of a timeline's local files. `ours` and `here`
//! belong to the local store, `theirs` and `there` to the backup or remote.

use std::collections::{BTreeSet, HashSet};

use crate::archive::{Snapshot, SnapshotId, Tree};
use crate::auto_recap::queue_activity;
use crate::engine::{self, Include, Result, changed_timelines};
use crate::history::History;
use crate::st::{self, Groups, Library, TimelineFiles, TimelineName};
use crate::store::{Reader, Store};

pub(super) struct Sides<'s> {
    pub ours: &'s History,
    pub theirs: &'s History,
    pub store: &'s Store,
    pub here: Reader,
    pub there: Reader,
    pub library: Option<&'s Library>,
    pub groups: Groups,
    pub include: Include,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalState {
    Absent,
    /// The files equal the latest snapshot.
    Same,
    Changed,
    Unreadable,
    /// The files equal the latest snapshot, but ST-Auto-Recap is about to write to the lorebook.
    AtWork,
}

impl LocalState {
    pub(super) fn hinders(self) -> Option<&'static str> {
        match self {
            LocalState::Absent | LocalState::Same => None,
            LocalState::Changed => Some("it changed on this device since its latest snapshot"),
            LocalState::Unreadable => Some("it cannot be read on this device"),
            LocalState::AtWork => Some("ST-Auto-Recap is working in its lorebook"),
        }
    }
}

impl Sides<'_> {
    /// Returns the names of all timelines of both sides, in lower case.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let all = self.ours.heads().chain(self.theirs.heads());
        all.map(|(name, _)| name.as_str().to_lowercase()).collect()
    }

    pub(super) fn look(&self, timeline: &TimelineName) -> Result<LocalState> {
        // Files that this device does not store are never read.
        let library = self.library.filter(|_| self.include.has(timeline.category()));
        let Some(library) = library else { return Ok(LocalState::Absent) };
        match st::is_absent(&timeline.file().under(library.root())) {
            Ok(false) => {}
            Ok(true) => return Ok(LocalState::Absent),
            Err(_) => return Ok(LocalState::Unreadable),
        }
        let look = match changed_timelines::look(self.store, library, &self.groups, timeline) {
            Ok(look) => look,
            Err(engine::Error::St(_)) => return Ok(LocalState::Unreadable),
            Err(error) => return Err(error),
        };
        let files = look.captured.as_ref().map(|captured| &captured.files);
        let book = files.and_then(TimelineFiles::book_bytes);
        Ok(if files.is_some_and(|files| files.unread_book().is_some()) {
            LocalState::Unreadable
        } else if look.is_new() {
            LocalState::Changed
        } else if book.is_some_and(|book| queue_activity(book).total() > 0) {
            LocalState::AtWork
        } else {
            LocalState::Same
        })
    }
}

/// Reads the files of a snapshot. The main file gets the path that belongs to `snapshot.timeline`.
pub(super) fn read(reader: &Reader, snapshot: &Snapshot) -> Result<TimelineFiles> {
    let mut files = Tree::open(reader, snapshot.tree)?.materialise(reader)?.files;
    files.main.path = snapshot.timeline.file();
    files.timeline = snapshot.timeline.clone();
    Ok(files)
}

/// The side whose version of a timeline keeps the name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangedFirst {
    Local,
    Remote,
}

/// Returns the side that changed a timeline first: by the times, and then the ids, of the first
/// snapshots that the other side does not have. Both sides decide alike.
pub(super) fn changed_first(
    sides: &Sides<'_>,
    local: &Snapshot,
    remote: &Snapshot,
) -> ChangedFirst {
    let (here, there) = (sides.ours.past([local.id]), sides.theirs.past([remote.id]));
    let first = |history: &History, head: &Snapshot, other: &HashSet<SnapshotId>| {
        let new = history.walk_from([head.id]).filter(|snapshot| !other.contains(&snapshot.id));
        new.map(|snapshot| (snapshot.time.seconds, snapshot.id)).min()
    };
    let (here, there) = (first(sides.ours, local, &there), first(sides.theirs, remote, &here));
    if here < there { ChangedFirst::Local } else { ChangedFirst::Remote }
}
