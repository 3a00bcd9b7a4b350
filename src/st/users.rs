//! Which lorebook a chat uses, and which chats use a lorebook, from the first line of each chat.

use super::references::{User, first_line, folded};
use super::{
    Chat, Groups, Library, LibraryPath, Result, TimelineName, bound_lorebook, chat_name,
    lorebook_path, open_file, read,
};

/// The file of the lorebook that a chat is bound to; none if there is none or the chat cannot be read.
pub fn lorebook_of(library: &Library, groups: &Groups, name: &TimelineName) -> Option<LibraryPath> {
    let root = library.root();
    bound_with(library, groups, name, |path| read(root, path).ok())
}

/// Returns the lorebook that a chat is bound to if its group's file is what `group` returns.
fn bound_with(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    group: impl Fn(&LibraryPath) -> Option<Vec<u8>>,
) -> Option<LibraryPath> {
    let line = first_line(open_file(library.root(), &name.file()).ok()?).ok()?;
    let chat = Chat::header_of(&line, name.is_group());
    let of_group = name.is_group().then(|| groups.group_of(name.chat())).flatten();
    let group = of_group.and_then(group);
    lorebook_path(&bound_lorebook(&chat, name, group.as_deref())?)
}

/// The chats that are bound to the lorebook at `book`; what cannot be read is left out.
pub fn users_of_lorebook(library: &Library, book: &LibraryPath) -> Result<Vec<TimelineName>> {
    let scan = library.scan()?;
    let uses =
        |name: &TimelineName| lorebook_of(library, &scan.groups, name).as_ref() == Some(book);
    Ok(scan.chats.iter().filter(|name| uses(name)).cloned().collect())
}

/// All that use a lorebook, or may use it.
pub struct PossibleUsers {
    pub chats: Vec<TimelineName>,
    /// Characters, personas and settings that name it.
    pub others: Vec<String>,
    /// Chats and folders of chats that cannot be read.
    pub unread: Vec<String>,
}

/// Returns all that name the lorebook at `book`, and checkpoints that ST-Auto-Recap maps to it. Names are compared as on a system that ignores case, and what cannot be
/// read is named, because a lorebook is removed if this finds nothing. `group` returns the file of a group as it will be.
pub fn possible_users_of_lorebook(
    library: &Library,
    book: &LibraryPath,
    group: impl Fn(&LibraryPath) -> Option<Vec<u8>>,
) -> Result<PossibleUsers> {
    let scan = library.scan()?;
    let references = library.references(&scan);
    let is_book = |path: &LibraryPath| folded(path.as_str()) == folded(book.as_str());
    let is_bound = |name: &TimelineName| {
        bound_with(library, &scan.groups, name, &group).is_some_and(|it| is_book(&it))
    };
    let maps = references.maps.iter().filter(|entry| entry.is_there);
    let maps = maps.filter(|entry| lorebook_path(&entry.book).is_some_and(|it| is_book(&it)));
    let mapped: Vec<_> = maps
        .flat_map(|entry| {
            let ids = [Some(entry.checkpoint.as_str()), entry.checkpoint.strip_suffix(".jsonl")];
            let names = ids.into_iter().flatten().filter_map(chat_name);
            names.filter_map(|name| entry.owner.sibling(&name).ok()).collect::<Vec<_>>()
        })
        .collect();
    let uses = |name: &&TimelineName| mapped.contains(name) || is_bound(name);
    let chats = scan.chats.iter().filter(uses).cloned().collect();
    let unread = references.unread.iter().chain(&scan.unreadable).map(|(subject, _)| subject);
    let is_chat = |subject: &&String| {
        ["chats", "group chats"].contains(&subject.split('/').next().unwrap_or_default())
    };
    let named = references
        .list
        .iter()
        .filter(|reference| lorebook_path(&reference.book).is_some_and(|path| is_book(&path)));
    let others = named.filter_map(|reference| match &reference.user {
        User::Chat(_) | User::Group(_) => None,
        User::AllChats => Some("the settings, for all chats".to_owned()),
        User::Character(name) | User::Card(name) => Some(format!("the character {name:?}")),
        User::Persona(name) if name.is_empty() => Some("the persona in use".to_owned()),
        User::Persona(name) => Some(format!("the persona {name:?}")),
    });
    let others = others.collect();
    Ok(PossibleUsers { chats, others, unread: unread.filter(is_chat).cloned().collect() })
}
