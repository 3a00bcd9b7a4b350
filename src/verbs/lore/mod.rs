//! What the story knew: lorebooks and their entries over time.
//!
//! An entry is named by its title, a key word, its UID (`5~1` for the one that had it before), or any part of a title that no other has. Its history is told across renames of entry and book, and across
//! forks; what other books that come from the same one say of it now stands beside it.

mod active;
mod asked;
mod blame;
mod book_list;
mod entry_story;
mod faces;
mod find_entry;
mod report;
mod scenes;
mod then;
mod uid_holders;

use crate::engine::Workspace;
use crate::progress::Monitor;
use crate::verbs::Result;
use asked::Asked;
use book_list::book;
use entry_story::entry;
use find_entry::{Found, find};

pub use report::{
    Active, ActiveEntry, Book, Elsewhere, EntryChange, EntryNow, EntryStory, EntryThen, KnownFrom,
    Options, Previous, Report, Sentence, Since, Then, UidHolder,
};
pub use scenes::SceneName;

/// Tell.
pub fn lore(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let moment = match options.active {
        Some(_) => None,
        None => then::named(workspace.names(&store, library.as_ref()), options)?,
    };
    let asked = Asked { workspace, store: &store, history: &history, options, moment };
    let found = find(&asked, library.as_ref(), monitor)?;
    if let Some(message) = options.active {
        let found = Some(found).filter(|_| !options.named().is_empty());
        let active = active::active(&asked, library.as_ref(), found, message)?;
        return Ok(Report::Active(Box::new(active)));
    }
    if let Some(at) = options.at.as_ref().or(options.snapshot.as_ref()) {
        return Ok(Report::Then(Box::new(then::then(&asked, library.as_ref(), found, at)?)));
    }
    match found {
        Found::Books(names) => {
            let mut list = Vec::new();
            for name in names {
                list.push(book(&store, &history, name)?);
            }
            Ok(Report::Books(list))
        }
        Found::Entry { book, life, told } => {
            Ok(Report::Entry(Box::new(entry(&asked, book, life, &told)?)))
        }
    }
}
