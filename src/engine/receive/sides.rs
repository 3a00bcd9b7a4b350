//! Both sides of a reconciliation, and what of a timeline is in the library.

use std::collections::BTreeSet;

use crate::archive::{Snapshot, Tree};
use crate::auto_recap::queue_activity;
use crate::engine::{self, Include, Result, changed_timelines};
use crate::history::History;
use crate::st::{self, Groups, Library, TimelineFiles, TimelineName};
use crate::store::{Reader, Store};

/// Both sides, as planning reads them.
pub(super) struct Sides<'s> {
    pub ours: &'s History,
    pub theirs: &'s History,
    pub store: &'s Store,
    /// Reads what is here.
    pub here: Reader,
    /// Reads what is there.
    pub there: Reader,
    pub library: Option<&'s Library>,
    pub groups: Groups,
    pub include: Include,
}

/// What of a timeline is in the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Absent,
    /// What its latest snapshot has.
    Same,
    Changed,
    /// Something that cannot be read just now.
    Unreadable,
    /// What its latest snapshot has, and ST-Auto-Recap is about to write more.
    AtWork,
}

impl Here {
    /// Returns why nothing may be put in its place.
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
        // A file that this device does not keep is none of its business.
        let library = self.library.filter(|_| self.include.has(timeline.category()));
        let Some(library) = library else { return Ok(Here::Absent) };
        match st::is_absent(&timeline.file().under(library.root())) {
            Ok(false) => {}
            Ok(true) => return Ok(Here::Absent),
            Err(_) => return Ok(Here::Unreadable),
        }
        let look = match changed_timelines::look(
            Some(self.store),
            library,
            &self.groups,
            timeline,
            &mut None,
        ) {
            Ok(look) => look,
            Err(engine::Error::St(_)) => return Ok(Here::Unreadable),
            Err(error) => return Err(error),
        };
        let files = look.captured.as_ref().map(|captured| &captured.files);
        if files.is_some_and(|files| files.unread_book().is_some()) {
            return Ok(Here::Unreadable);
        }
        if look.is_new() {
            return Ok(Here::Changed);
        }
        let book = files.and_then(TimelineFiles::book_bytes);
        let is_busy = book.is_some_and(|book| queue_activity(book).total() > 0);
        Ok(if is_busy { Here::AtWork } else { Here::Same })
    }
}

/// Reads the files of a snapshot, under the name that its timeline has.
pub(super) fn read(reader: &Reader, snapshot: &Snapshot) -> Result<TimelineFiles> {
    let contents = Tree::open(reader, snapshot.tree)?.materialise(reader)?;
    let mut files = contents.files;
    files.main.path = snapshot.timeline.file();
    files.timeline = snapshot.timeline.clone();
    Ok(files)
}
