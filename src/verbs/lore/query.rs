//! A query about lorebooks, and the data that is needed to answer it.

use super::report::Options;
use crate::engine::Workspace;
use crate::history::History;
use crate::history::moment::Moment;
use crate::history::owner_of_snapshot::Owners;
use crate::history::pairs::Books;
use crate::st::{Category, Library, TimelineName};
use crate::store::Store;

pub(super) struct LoreQuery<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub library: Option<&'a Library>,
    pub history: &'a History,
    pub options: &'a Options,
    /// The moment that the options name. It may belong to a chat or to a lorebook.
    pub moment: Option<Moment>,
}

impl LoreQuery<'_> {
    /// Returns the current name of the lorebook of a moment.
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
