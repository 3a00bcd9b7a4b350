//! Rebuilds the files of a moment.

use super::Result;
use super::at_message::{Origin, make, read_book};
use super::moment::{Book, MessageLimit, Moment};
use crate::archive::{self, Contents, Problems, Rebuilt, Snapshot};
use crate::rules::{Code, Finding, Level};
use crate::st::{self, BoundBook, TimelineFiles, TimelineName};
use crate::store::{Reader, Store};
use crate::words::short;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeedBook {
    /// Fails if the lorebook is unknown.
    Yes,
    /// Rebuilds without the lorebook if it is unknown, and reports a finding.
    IfKnown,
    No,
}

pub(crate) struct StateThen {
    pub snapshot: Snapshot,
    /// Files of the moment. The manifest is always that of `snapshot`.
    pub contents: Contents,
    pub problems: Problems,
    /// Snapshot that contains the lorebook; `None` if this is `snapshot`.
    pub book_of: Option<Box<Snapshot>>,
    /// Sources of the files, if they were combined from several snapshots or records.
    pub origin: Option<Origin>,
    pub findings: Vec<Finding>,
}

impl StateThen {
    pub(crate) fn rebuild(store: &Store, moment: &Moment, need: NeedBook) -> Result<Self> {
        let reader = store.reader();
        let rebuilt = archive::rebuild(&reader, &moment.snapshot)?;
        Self::of(moment.snapshot.clone(), rebuilt).with_book(&reader, moment, need)
    }

    /// Rebuilds two moments for a comparison. Unless a chat has to be truncated, messages that both
    /// chats have at the start and at the end are not read: see [`archive::rebuild_pair`].
    pub(crate) fn rebuild_pair(
        store: &Store,
        moments: [&Moment; 2],
        need: NeedBook,
    ) -> Result<[Self; 2]> {
        let [before, after] = moments;
        if moments.iter().any(|moment| matches!(moment.upto, MessageLimit::Cut(_))) {
            return Ok([Self::rebuild(store, before, need)?, Self::rebuild(store, after, need)?]);
        }
        let reader = store.reader();
        let [old, new] = archive::rebuild_pair(&reader, &before.snapshot, &after.snapshot)?;
        let state = |contents, moment: &Moment| {
            let rebuilt = Rebuilt { contents, problems: Problems::default() };
            Self::of(moment.snapshot.clone(), rebuilt).with_book(&reader, moment, need)
        };
        Ok([state(old, before)?, state(new, after)?])
    }

    fn with_book(mut self, reader: &Reader, moment: &Moment, need: NeedBook) -> Result<Self> {
        match (moment.upto, &moment.book) {
            (MessageLimit::Cut(at), book) => {
                let mut source = Some(book).filter(|_| need != NeedBook::No);
                if let (Book::Unknown(finding), NeedBook::IfKnown) = (book, need) {
                    self.findings.push(Finding { level: Level::Warning, ..(**finding).clone() });
                    source = None;
                }
                let made = make(reader, &self.contents.files, at, source)?;
                self.contents.files = made.files;
                self.origin = Some(made.origin);
                self.findings.extend(made.findings);
            }
            (_, Book::Snapshot(from)) if need != NeedBook::No => match read_book(reader, from)? {
                Some(bytes) => {
                    put_book(&mut self.contents.files, bytes);
                    self.book_of = Some(from.clone());
                }
                None => self.findings.push(older_book(&self.snapshot, from)),
            },
            _ => {}
        }
        Ok(self)
    }

    /// Renames the files to the current name of their timeline, before they are written to the
    /// library.
    pub(crate) fn rename(&mut self, today: &TimelineName) {
        if self.contents.files.timeline != *today {
            self.contents.files = self.contents.files.clone().renamed(today.clone());
        }
    }

    fn of(snapshot: Snapshot, rebuilt: Rebuilt) -> Self {
        let Rebuilt { mut contents, problems } = rebuilt;
        contents.files.timeline = snapshot.timeline.clone();
        Self { snapshot, contents, problems, book_of: None, origin: None, findings: Vec::new() }
    }
}

fn put_book(files: &mut TimelineFiles, bytes: Vec<u8>) {
    if files.book().is_some() {
        files.set_book(bytes);
        return;
    }
    let name = files.metadata(&files.split()).and_then(st::lorebook_name);
    let bound = name.and_then(|name| st::lorebook_path(&name).map(|path| (name, path)));
    if let Some((name, path)) = bound {
        files.lorebook = Some(BoundBook::new(name, path, bytes));
    }
}

/// Reports that an older lorebook is used because the snapshot with the right lorebook is damaged.
/// One damaged snapshot must not prevent a restore of the other files.
fn older_book(chat: &Snapshot, damaged: &Snapshot) -> Finding {
    let message = format!(
        "the lorebook of that moment cannot be read: snapshot {} is damaged; the older lorebook of snapshot {} is used instead",
        short(damaged.id),
        short(chat.id)
    );
    Finding::new(Code::LorebookFromElsewhere, chat.timeline.as_str(), message)
        .at(Level::Error)
        .remedy("run `stvc check` to list all damage; import a backup that has the snapshot")
}
