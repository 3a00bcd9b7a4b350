//! Reports lorebooks and the history of their entries.
//!
//! An entry is named by its title, a keyword, its UID, or any unique part of a title. `5~1` is the
//! entry that had the UID 5 before the latest entry with this UID. The history of an entry
//! continues across renames of the entry and of the lorebook, and across forks.

mod active;
mod at_moment;
mod blame;
mod entries;
mod entry_story;
mod find_entry;
mod report;
mod scenes;

use crate::engine::Workspace;
use crate::progress::Monitor;
use crate::verbs::Result;
use find_entry::{LoreQuery, LoreTarget, find};

pub(crate) use report::raw;
pub use report::{
    ActiveEntries, ActiveEntry, Book, ChangeAfter, CopyInOtherBook, EntryChange, EntryChanges,
    EntryNow, EntryStory, EntryThen, KnownFrom, LoreAtMoment, Options, Report, Sentence,
    StateBefore, UidHolder,
};
pub use scenes::SceneName;

/// Reports lorebooks, the history of one entry, a lorebook at a moment, or the entries in the
/// prompt of a message.
pub fn lore(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let store = &workspace.open_store()?;
    let history = &*workspace.history(store)?;
    let library = &workspace.library().ok();
    let library = library.as_ref();
    let moment = match options.active {
        Some(_) => None,
        None => at_moment::named(workspace.names(store, library), options)?,
    };
    let asked = LoreQuery { workspace, store, library, history, options, moment };
    let found = find(&asked, monitor)?;
    if let Some(message) = options.active {
        let books = if options.named().is_empty() { &[] } else { found.books() };
        return Ok(Report::Active(Box::new(active::active(&asked, books, message)?)));
    }
    if let Some(at) = options.at.as_ref().or(options.snapshot.as_ref()) {
        return Ok(Report::Then(Box::new(at_moment::then(&asked, found, at)?)));
    }
    Ok(match found {
        LoreTarget::Books(names) => {
            let books = names.into_iter().map(|name| entries::book(store, history, name));
            Report::Books(books.collect::<Result<_>>()?)
        }
        LoreTarget::Entry { book, life, book_history } => {
            Report::Entry(Box::new(entry_story::entry(&asked, book, life, &book_history)?))
        }
    })
}
