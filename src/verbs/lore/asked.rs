//! The question, and everything that answers read.

use super::report::Options;
use crate::engine::Workspace;
use crate::history::History;
use crate::history::moment::Moment;
use crate::history::owner_of_snapshot::Owners;
use crate::history::pairs::Books;
use crate::st::{Category, Library, TimelineName};
use crate::store::Store;

pub(super) struct Asked<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub library: Option<&'a Library>,
    pub history: &'a History,
    pub options: &'a Options,
    /// The named moment, of a chat or of a lorebook.
    pub moment: Option<Moment>,
}

impl Asked<'_> {
    /// Returns the name that the lorebook of a moment has today.
    pub fn book_today(&self, moment: &Moment) -> Option<TimelineName> {
        let snapshot = moment.book_snapshot().unwrap_or(&moment.snapshot);
        match snapshot.timeline.category() {
            Category::Lorebook => {
                Some(Owners::of(self.history).target(self.history, snapshot).clone())
            }
            _ => Books::of(self.history).of_chat_today(snapshot),
        }
    }
}
