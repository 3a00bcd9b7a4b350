use crate::auto_recap::written::attached_lorebook;
use crate::rules::{Code, Finding, Level, Subject, brief};
use crate::st::main_chat;

/// Returns the finding about a chat that is bound to a lorebook other than the one that
/// ST-Auto-Recap recorded, or to a lorebook whose name does not match the extension's template.
pub(super) fn finding(parts: &Subject<'_>) -> Option<Finding> {
    let metadata = parts.metadata?;
    let bound = parts.files.bound_name();
    let is_fork = || main_chat(metadata).is_some();
    let attached = attached_lorebook(metadata);
    if let Some(attached) = attached.as_deref().filter(|attached| Some(*attached) != bound) {
        let bound = match bound {
            Some(bound) => format!("{:?} is bound to it", brief(bound)),
            None => "no lorebook is bound to it".into(),
        };
        let message =
            format!("ST-Auto-Recap recorded {:?} as its lorebook, but {bound}", brief(attached));
        // In a fork with its own lorebook, only `world_info` names this lorebook, so the difference
        // is expected.
        let level = if is_fork() { Level::Info } else { Level::Warning };
        let finding = Finding::new(Code::LorebookAttachedDiffers, parts.chat_path(), message);
        return Some(finding.at(level).usual_remedy());
    }
    let (bound, template) = (bound?, parts.book_template);
    // The user may choose any name for a lorebook that the extension neither recorded nor created.
    if template.is_book_of(bound, parts.files.timeline.chat())
        || is_fork()
        || (attached.is_none() && !template.is_made(bound))
    {
        return None;
    }
    let message = format!(
        "the name of its lorebook, {:?}, does not match ST-Auto-Recap's template {:?}",
        brief(bound),
        brief(template.as_str())
    );
    Some(Finding::new(Code::LorebookNameUnexpected, parts.chat_path(), message).usual_remedy())
}
