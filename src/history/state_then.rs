//! A state that was named, rebuilt: a snapshot's files, or what they were when an earlier message was the last.

use super::at_message::{Origin, Past, Then};
use super::moment::Moment;
use super::{Error, History, Result};
use crate::archive::{self, Contents, Problems, Rebuilt, Snapshot, SnapshotId};
use crate::rules::{Code, Finding, Level};
use crate::store::Store;

/// Whether the lorebook is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Book {
    /// Without it the state is not what was asked for.
    Needed,
    /// Where it is not known, the rest is told, and that.
    IfKnown,
    Not,
}

/// A state.
pub(crate) struct StateThen {
    /// The snapshot that has it, or that it was made of.
    pub snapshot: Snapshot,
    /// Its files; the manifest is the snapshot's.
    pub contents: Contents,
    /// What is wrong with what was rebuilt.
    pub problems: Problems,
    /// The snapshot of the lorebook's own history that it was taken from instead.
    pub book_of: Option<SnapshotId>,
    /// Where its parts come from, if it was put together.
    pub origin: Option<Origin>,
    /// What was noticed while it was put together.
    pub findings: Vec<Finding>,
}

impl StateThen {
    /// Rebuild what was named. `history` is only asked for the state at a message.
    pub(crate) fn rebuild(
        store: &Store,
        history: &History,
        moment: &Moment,
        book: Book,
    ) -> Result<Self> {
        let rebuilt = archive::rebuild(&store.reader(), &moment.snapshot)?;
        let mut state = Self::of(moment.snapshot.clone(), rebuilt);
        let Some(at) = moment.message else { return Ok(state) };
        let past = Past::of(store, history, &state.snapshot.timeline, Some(&state.snapshot));
        let then = past.at(&state.contents.files, at, book != Book::Not);
        let then = match then {
            Err(Error::Unknowable { finding })
                if book == Book::IfKnown && finding.code == Code::LorebookThenUnknown =>
            {
                state.findings.push(Finding { level: Level::Warning, ..*finding });
                past.at(&state.contents.files, at, false)
            }
            then => then,
        };
        match then? {
            Then::Snapshot(found, later_book) => {
                let rebuilt = archive::rebuild(&store.reader(), &found)?;
                state = Self { findings: state.findings, ..Self::of(*found, rebuilt) };
                if let Some(later) = later_book {
                    state.take_book(store, &later);
                }
            }
            Then::Made(made) => {
                state.contents.files = made.files;
                state.origin = Some(made.origin);
                state.findings.extend(made.findings);
            }
        }
        Ok(state)
    }

    fn of(snapshot: Snapshot, rebuilt: Rebuilt) -> Self {
        let Rebuilt { mut contents, problems } = rebuilt;
        contents.files.timeline = snapshot.timeline.clone();
        Self { snapshot, contents, problems, book_of: None, origin: None, findings: Vec::new() }
    }

    /// Take the lorebook from a snapshot of its own history. One that is damaged is no reason not to have the other.
    pub(crate) fn take_book(&mut self, store: &Store, from: &Snapshot) {
        let Ok(book) = archive::rebuild(&store.reader(), from) else { return };
        let files = &mut self.contents.files;
        if files.book_bytes() != Some(&book.contents.files.main.bytes) {
            files.set_book(book.contents.files.main.bytes);
            self.book_of = Some(from.id);
        }
    }
}
