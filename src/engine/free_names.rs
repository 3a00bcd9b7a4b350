//! Finds unused names for timelines and lorebooks.

use std::collections::{BTreeSet, HashSet};

use super::Result;
use crate::history::History;
use crate::st::{Library, TimelineName, lorebook_path};

/// The length in bytes to which a chat's name is shortened before a suffix is added. File systems
/// allow 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// Returns an unused timeline name `<chat> (<what> <day>)`, for example `Trip (from backup
/// 2026-11-15)`, with a number if that name is in use. `taken` contains the used names in lower
/// case; the new name is added.
pub(crate) fn free_timeline(
    timeline: &TimelineName,
    what: &str,
    day: &str,
    library: Option<&Library>,
    taken: &mut BTreeSet<String>,
) -> Result<TimelineName> {
    let mut chat = timeline.chat().to_owned();
    while chat.len() > MAX_NAME_BYTES {
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

/// Returns the chat name `<chat> (restored)`, with a number if the library or the store has a chat
/// of that name. Returns `None` if no unused name is valid.
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

/// Returns the name `<chat> - Branch #<number>` with the first unused number. SillyTavern names
/// branches in the same way.
pub(crate) fn free_branch(from: &TimelineName, all: &BTreeSet<TimelineName>) -> String {
    let beside = all.iter().filter(|name| name.folder() == from.folder());
    let taken: BTreeSet<_> = beside.map(|name| name.chat().to_lowercase()).collect();
    let name = |n: u64| format!("{} - Branch #{n}", from.chat());
    let free = (1..).map(name).find(|name| !taken.contains(&name.to_lowercase()));
    free.unwrap_or_else(|| from.chat().to_owned())
}

/// Returns an unused name for the copy of the lorebook `book` that belongs to the chat `chat`. If
/// the name of `book` was made with the name template of ST-Auto-Recap for one of the chats in
/// `known`, the new name is made with the template, too. Otherwise it is `<book> - <chat>`.
///
/// `planned` contains names that planned lorebooks will use, in lower case.
pub(crate) fn free_lorebook(
    library: &Library,
    book: &str,
    known: &[&str],
    chat: &str,
    planned: &BTreeSet<String>,
) -> Result<String> {
    let named = library.book_template().fork_book_name(book, known, chat);
    let wanted = named.unwrap_or_else(|| format!("{book} - {chat}"));
    // On some systems, names that differ only in case denote one file.
    let taken: HashSet<_> =
        library.lorebooks()?.into_iter().map(|name| name.to_lowercase()).collect();
    let fits = |name: &str| {
        lorebook_path(name).is_some_and(|path| path.file_name() == format!("{name}.json"))
    };
    // Do not use a name that SillyTavern would sanitize: the file would have another name than the
    // lorebook to which the chat is bound.
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

/// Returns the name as SillyTavern would sanitize it, shortened to leave room for a number.
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
