//! Names that are free: for timelines that are put beside others, and for copies of lorebooks.

use std::collections::{BTreeSet, HashSet};

use super::Result;
use crate::history::History;
use crate::st::{Library, TimelineName, lorebook_path};

/// Leaves room for a suffix: file systems allow 255 bytes.
const LONGEST: usize = 200;

/// Returns `<chat> (from backup 2026-11-15)`, with a number if there is such a timeline already.
pub(crate) fn free_timeline(
    timeline: &TimelineName,
    what: &str,
    day: &str,
    library: Option<&Library>,
    taken: &mut BTreeSet<String>,
) -> Result<TimelineName> {
    let mut chat = timeline.chat().to_owned();
    while chat.len() > LONGEST {
        chat.pop();
    }
    let mut number = 1;
    loop {
        let more = if number == 1 { String::new() } else { format!(" {number}") };
        let chat = format!("{} ({what} {day}{more})", chat.trim_end());
        let name = timeline.sibling(&chat)?;
        let file = library.map(|library| name.file().under(library.root()));
        let is_there = file.is_some_and(|file| file.exists());
        if !is_there && taken.insert(name.as_str().to_lowercase()) {
            return Ok(name);
        }
        number += 1;
    }
}

/// Returns `<chat> (restored)`, with a number if the library or the store has such a chat; none if
/// no such name can be had.
pub(crate) fn free_restored(
    timeline: &TimelineName,
    library: &Library,
    history: &History,
) -> Option<String> {
    let named = |n: usize| match n {
        1 => format!("{} (restored)", timeline.chat()),
        n => format!("{} (restored {n})", timeline.chat()),
    };
    let is_free = |name: &String| {
        let name = timeline.sibling(name).ok();
        name.is_some_and(|it| history.head(&it).is_none() && !library.has(&it.file()))
    };
    (1..100).map(named).find(is_free)
}

/// Returns `<chat> - Branch #1`, as SillyTavern calls them, with the first number that is free.
pub(crate) fn free_branch(from: &TimelineName, all: &BTreeSet<TimelineName>) -> String {
    let beside = all.iter().filter(|name| name.folder() == from.folder());
    let taken: BTreeSet<_> = beside.map(|name| name.chat().to_lowercase()).collect();
    let name = |n: u64| format!("{} - Branch #{n}", from.chat());
    let free = (1..).map(name).find(|name| !taken.contains(&name.to_lowercase()));
    free.unwrap_or_else(|| from.chat().to_owned())
}

/// Returns a free name for the copy of `book` that the chat `chat` gets: by the template of the
/// user's extension if the book itself is called by it (`known` are the chats whose name may stand
/// in it), else the book's name and the chat's.
///
/// `planned` are names that are as good as taken, in lower case.
pub(crate) fn free_lorebook(
    library: &Library,
    book: &str,
    known: &[&str],
    chat: &str,
    planned: &BTreeSet<String>,
) -> Result<String> {
    let named = library.book_template().fork_book_name(book, known, chat);
    let wanted = named.unwrap_or_else(|| format!("{book} - {chat}"));
    // On some systems names that differ only in case are one file.
    let taken: HashSet<_> =
        library.lorebooks()?.into_iter().map(|name| name.to_lowercase()).collect();
    let fits = |name: &str| {
        lorebook_path(name).is_some_and(|path| path.file_name() == format!("{name}.json"))
    };
    // A name that SillyTavern would shorten or change is not used: it would bind one book and write
    // another.
    let base = plain(&wanted);
    let mut number = 1;
    loop {
        let name = if number == 1 { base.clone() } else { format!("{base} ({number})") };
        let lower = name.to_lowercase();
        if fits(&name) && !taken.contains(&lower) && !planned.contains(&lower) {
            return Ok(name);
        }
        number += 1;
    }
}

/// Returns the name as SillyTavern would keep it, with room for a number.
fn plain(name: &str) -> String {
    const ROOM: usize = 200;
    let mut end = name.len().min(ROOM);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let plain = crate::st::sanitize(name[..end].trim());
    let plain = plain.trim();
    if plain.is_empty() { "lorebook".to_owned() } else { plain.to_owned() }
}
