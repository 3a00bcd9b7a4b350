//! The history of lorebooks and their entries.
//!
//! An entry is named by its title, a keyword, its UID (`5~1` for the one that had it before), or
//! any unique part of a title. Its history continues across renames of entry and book, and across
//! forks.

mod active;
mod asked;
mod blame;
mod entries;
mod entry_story;
mod find_entry;
mod report;
mod scenes;
mod then;

use crate::engine::Workspace;
use crate::progress::Monitor;
use crate::verbs::Result;
use asked::Asked;
use find_entry::{Found, find};

pub(crate) use report::raw;
pub use report::{
    Active, ActiveEntry, Book, Elsewhere, EntryChange, EntryChanges, EntryNow, EntryStory,
    EntryThen, KnownFrom, Options, Previous, Report, Sentence, Since, Then, UidHolder,
};
pub use scenes::SceneName;

/// Looks into lorebooks.
pub fn lore(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let store = &workspace.open_store()?;
    let history = &*workspace.history(store)?;
    let library = &workspace.library().ok();
    let library = library.as_ref();
    let moment = match options.active {
        Some(_) => None,
        None => then::named(workspace.names(store, library), options)?,
    };
    let asked = Asked { workspace, store, library, history, options, moment };
    let found = find(&asked, monitor)?;
    if let Some(message) = options.active {
        let books = if options.named().is_empty() { &[] } else { found.books() };
        return Ok(Report::Active(Box::new(active::active(&asked, books, message)?)));
    }
    if let Some(at) = options.at.as_ref().or(options.snapshot.as_ref()) {
        return Ok(Report::Then(Box::new(then::then(&asked, found, at)?)));
    }
    Ok(match found {
        Found::Books(names) => {
            let books = names.into_iter().map(|name| entries::book(store, history, name));
            Report::Books(books.collect::<Result<_>>()?)
        }
        Found::Entry { book, life, told } => {
            Report::Entry(Box::new(entry_story::entry(&asked, book, life, &told)?))
        }
    })
}
