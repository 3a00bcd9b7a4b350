//! Findings about chats that are missing in the list of their group. SillyTavern does not show such
//! chats.

use crate::rules::{Code, Finding};
use crate::st::{LibraryPath, TimelineName};

pub(crate) fn not_listed(name: &TimelineName) -> Finding {
    let what =
        "the group of this chat is unknown, so no group lists it; SillyTavern will not show it";
    Finding::new(Code::GroupNotEdited, name.as_str(), what)
        .remedy("add its name to `chats` in the file of the group under groups/")
}

pub(crate) fn not_edited(path: &LibraryPath) -> Finding {
    let what = "the file of the group cannot be read, so the chat could not be added to its list; SillyTavern will not show it";
    let group = path.as_str().strip_suffix(".json").unwrap_or(path.as_str());
    Finding::new(Code::GroupNotEdited, path.as_str(), what)
        .remedy(format!("repair the file, or run `stvc restore {group:?} --overwrite` if a valid version is stored; then restore the chat again"))
}
