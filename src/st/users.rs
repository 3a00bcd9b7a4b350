//! Which lorebook a chat uses, and which chats use a lorebook, from the first line of each chat.

use super::references::first_line;
use super::{
    Chat, Groups, Library, LibraryPath, Result, TimelineName, bound_lorebook, lorebook_path,
    open_file, read,
};

/// The file of the lorebook that a chat is bound to; none if there is none or the chat cannot be read.
pub fn lorebook_of(library: &Library, groups: &Groups, name: &TimelineName) -> Option<LibraryPath> {
    let root = library.root();
    let line = first_line(open_file(root, &name.file()).ok()?).ok()?;
    let chat = Chat::header_of(&line, name.is_group());
    let group = name.is_group().then(|| groups.group_of(name.chat())).flatten();
    let group = group.and_then(|path| read(root, path).ok());
    lorebook_path(&bound_lorebook(&chat, name, group.as_deref())?)
}

/// The chats that are bound to the lorebook at `book`; what cannot be read is left out.
pub fn users_of_lorebook(library: &Library, book: &LibraryPath) -> Result<Vec<TimelineName>> {
    let scan = library.scan()?;
    let uses =
        |name: &TimelineName| lorebook_of(library, &scan.groups, name).as_ref() == Some(book);
    Ok(scan.chats.iter().filter(|name| uses(name)).cloned().collect())
}
