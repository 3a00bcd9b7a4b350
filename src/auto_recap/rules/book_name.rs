//! Whose lorebook a chat is bound to, by its name and by what ST-Auto-Recap noted.

use crate::auto_recap::written::attached_lorebook;
use crate::rules::{Code, Finding, Level, Subject, brief};
use crate::st::main_chat;

pub(super) fn findings(parts: &Subject<'_>) -> Option<Finding> {
    let metadata = parts.metadata?;
    let bound = parts.lorebook.as_ref().map(|book| book.name);
    let is_fork = || main_chat(metadata).is_some();
    if let Some(attached) = attached_lorebook(metadata)
        && Some(attached.as_str()) != bound
    {
        let bound = match bound {
            Some(bound) => format!("is {:?}", brief(bound)),
            None => "is none".into(),
        };
        let message = format!(
            "ST-Auto-Recap has noted {:?} as its lorebook, but the one bound to it {bound}",
            brief(&attached)
        );
        // Of a fork that was given a lorebook of its own only `world_info` is set.
        let level = if is_fork() { Level::Info } else { Level::Warning };
        return Some(
            Finding::new(Code::LorebookAttachedDiffers, parts.chat_path, message).at(level)
                .remedy("bind the lorebook that holds this chat's entries, and let the extension refresh its registry"),
        );
    }
    let bound = bound?;
    let template = parts.book_template;
    if template.is_book_of(bound, parts.timeline.chat()) || is_fork() {
        return None;
    }
    // A book that the extension neither noted nor made is a writer's own, who calls it as he likes.
    if attached_lorebook(metadata).is_none() && !template.is_made(bound) {
        return None;
    }
    let message = format!(
        "its lorebook {:?} is not called as ST-Auto-Recap calls that of this chat: {:?}",
        brief(bound),
        brief(template.as_str())
    );
    Some(
        Finding::new(Code::LorebookNameUnexpected, parts.chat_path, message).remedy(
            "nothing, if the chat was renamed or you chose the lorebook; else make sure that no other chat writes to it",
        ),
    )
}
