//! Tells the user to reload SillyTavern's page after files were written. The page does not detect
//! new files, and may overwrite changed files with the content in its memory.

use std::path::Path;

use crate::rules::{Code, Finding, Level};
use crate::st::{self, TimelineName};

#[derive(Clone, Copy)]
pub(crate) struct WriteEffects {
    pub new_chat: bool,
    /// Whether a file was replaced whose former content SillyTavern's page may have in memory.
    pub replaced: bool,
    /// Whether SillyTavern asks the user before it overwrites the replaced file.
    pub asked: bool,
}

impl WriteEffects {
    pub const REPLACED: Self = Self { new_chat: false, replaced: true, asked: false };
}

/// Returns the finding that tells the user to reload SillyTavern's page. Its level is a warning if
/// SillyTavern is running and could overwrite the change. It is about one timeline, or about the
/// library.
pub(crate) fn reload(
    root: &Path,
    timeline: Option<&TimelineName>,
    written: WriteEffects,
) -> Finding {
    let subject = timeline.map_or_else(|| root.display().to_string(), TimelineName::to_string);
    let running = st::process_on(root);
    let (level, message) = match running {
        Some(process) if written.asked => (
            Level::Info,
            format!(
                "SillyTavern is running (process {process}): if its page has this chat open, it asks before it overwrites the chat"
            ),
        ),
        Some(process) if written.replaced => (
            Level::Warning,
            format!(
                "SillyTavern is running (process {process}): its page may overwrite this change with its next save"
            ),
        ),
        _ if written.new_chat => {
            (Level::Info, "SillyTavern does not show the new chat and its lorebook yet".to_owned())
        }
        Some(process) => (
            Level::Info,
            format!(
                "SillyTavern is running (process {process}): its page does not show this change yet"
            ),
        ),
        None => (
            Level::Info,
            "an open page of SillyTavern may overwrite this change with its next save".to_owned(),
        ),
    };
    let mut remedy = match running {
        Some(_) if written.asked => {
            "press F5 in SillyTavern's page; if it asks, click OK without typing OVERWRITE"
                .to_owned()
        }
        Some(_) => "press F5 in SillyTavern's page before you do anything else there".to_owned(),
        None => "reload SillyTavern's page before you use it again".to_owned(),
    };
    if written.new_chat {
        remedy.push_str("; the chat is under \"Manage chat files\" (menu ☰, bottom left)");
    }
    Finding::new(Code::ReloadSillytavern, subject, message).at(level).remedy(remedy)
}
