use crate::auto_recap::written::attached_lorebook;
use crate::rules::{Code, Finding, Level, Subject, brief};
use crate::st::main_chat;

/// Returns the finding about a chat that is bound to another lorebook than ST-Auto-Recap noted, or
/// to one that is not called as the extension calls that of this chat.
pub(super) fn finding(parts: &Subject<'_>) -> Option<Finding> {
    let metadata = parts.metadata?;
    let bound = parts.files.bound_name();
    let is_fork = || main_chat(metadata).is_some();
    let attached = attached_lorebook(metadata);
    if let Some(attached) = attached.as_deref().filter(|attached| Some(*attached) != bound) {
        let bound = match bound {
            Some(bound) => format!("is {:?}", brief(bound)),
            None => "is none".into(),
        };
        let message = format!(
            "ST-Auto-Recap has noted {:?} as its lorebook, but the one bound to it {bound}",
            brief(attached)
        );
        // Of a fork that was given a lorebook of its own only `world_info` is set.
        let level = if is_fork() { Level::Info } else { Level::Warning };
        let finding = Finding::new(Code::LorebookAttachedDiffers, parts.chat_path(), message);
        return Some(finding.at(level).usual_remedy());
    }
    let (bound, template) = (bound?, parts.book_template);
    // A book that the extension neither noted nor made is a writer's own, who may call it anything.
    if template.is_book_of(bound, parts.files.timeline.chat())
        || is_fork()
        || (attached.is_none() && !template.is_made(bound))
    {
        return None;
    }
    let message = format!(
        "its lorebook {:?} is not called as ST-Auto-Recap calls that of this chat: {:?}",
        brief(bound),
        brief(template.as_str())
    );
    Some(Finding::new(Code::LorebookNameUnexpected, parts.chat_path(), message).usual_remedy())
}
