//! Both sides of a reconciliation, and the state of a timeline in the library.

use std::collections::BTreeSet;

use crate::archive::{Snapshot, Tree};
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
pub(super) enum Here {
    Absent,
    /// Equal to its latest snapshot.
    Same,
    Changed,
    Unreadable,
    /// Equal, but ST-Auto-Recap is about to write more.
    AtWork,
}

impl Here {
    pub(super) fn hinders(self) -> Option<&'static str> {
        match self {
            Here::Absent | Here::Same => None,
            Here::Changed => Some("it changed here since its newest snapshot"),
            Here::Unreadable => Some("it cannot be read here just now"),
            Here::AtWork => Some("ST-Auto-Recap is at work in its lorebook"),
        }
    }
}

impl Sides<'_> {
    /// Returns the names of all timelines, in lower case.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let all = self.ours.heads().chain(self.theirs.heads());
        all.map(|(name, _)| name.as_str().to_lowercase()).collect()
    }

    pub(super) fn look(&self, timeline: &TimelineName) -> Result<Here> {
        // Files that this device does not store are never looked at.
        let library = self.library.filter(|_| self.include.has(timeline.category()));
        let Some(library) = library else { return Ok(Here::Absent) };
        match st::is_absent(&timeline.file().under(library.root())) {
            Ok(false) => {}
            Ok(true) => return Ok(Here::Absent),
            Err(_) => return Ok(Here::Unreadable),
        }
        let look = match changed_timelines::look(self.store, library, &self.groups, timeline) {
            Ok(look) => look,
            Err(engine::Error::St(_)) => return Ok(Here::Unreadable),
            Err(error) => return Err(error),
        };
        let files = look.captured.as_ref().map(|captured| &captured.files);
        let book = files.and_then(TimelineFiles::book_bytes);
        Ok(if files.is_some_and(|files| files.unread_book().is_some()) {
            Here::Unreadable
        } else if look.is_new() {
            Here::Changed
        } else if book.is_some_and(|book| queue_activity(book).total() > 0) {
            Here::AtWork
        } else {
            Here::Same
        })
    }
}

/// Reads the files of a snapshot, under the name that its timeline has.
pub(super) fn read(reader: &Reader, snapshot: &Snapshot) -> Result<TimelineFiles> {
    let mut files = Tree::open(reader, snapshot.tree)?.materialise(reader)?.files;
    files.main.path = snapshot.timeline.file();
    files.timeline = snapshot.timeline.clone();
    Ok(files)
}
