//! A group lists its chats; one that is not listed is not shown by SillyTavern.

use crate::rules::{Code, Finding};
use crate::st::{LibraryPath, TimelineName};

pub(crate) fn not_listed(name: &TimelineName) -> Finding {
    let what = "it is not known which group this chat belongs to, so no group lists it; SillyTavern will not show it";
    Finding::new(Code::GroupNotEdited, name.as_str(), what)
        .remedy("add its name to `chats` in the group's file under groups/")
}

pub(crate) fn not_edited(path: &LibraryPath) -> Finding {
    let what = "the group's file cannot be read, so the chat could not be listed in it; SillyTavern will not show it";
    let group = path.as_str().strip_suffix(".json").unwrap_or(path.as_str());
    Finding::new(Code::GroupNotEdited, path.as_str(), what)
        .remedy(format!("mend the group's file, or `stvc restore {group:?} --overwrite` if a valid version is stored; then restore again"))
}
