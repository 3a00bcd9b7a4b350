//! What to do in SillyTavern after files were written beside it: its page writes back what it has
//! in memory, and does not look for new files by itself.

use std::path::Path;

use crate::rules::{Code, Finding, Level};
use crate::st;

#[derive(Clone, Copy)]
pub(crate) struct Written {
    pub new_chat: bool,
    /// Something was replaced that SillyTavern's page may have in memory.
    pub replaced: bool,
    /// SillyTavern asks before it writes that back.
    pub asked: bool,
}

impl Written {
    pub const REPLACED: Self = Self { new_chat: false, replaced: true, asked: false };
}

/// Returns the finding that tells the user to reload. It is a warning if SillyTavern is running and
/// could undo the change.
pub(crate) fn reload(root: &Path, subject: &str, written: Written) -> Finding {
    let running = st::process_on(root);
    let (level, message) = match running {
        Some(process) if written.asked => (
            Level::Info,
            format!(
                "SillyTavern is running (process {process}): a page that has this chat open asks before it saves over it"
            ),
        ),
        Some(process) if written.replaced => (
            Level::Warning,
            format!(
                "SillyTavern is running (process {process}) and writes back what it has in memory: the next thing that you do there may undo this"
            ),
        ),
        _ if written.new_chat => (
            Level::Info,
            "SillyTavern does not know of the new chat and its lorebook yet".to_owned(),
        ),
        Some(process) => (
            Level::Info,
            format!("SillyTavern is running (process {process}) and does not know of this yet"),
        ),
        None => (Level::Info, "SillyTavern writes back what it has in memory".to_owned()),
    };
    let mut remedy = match running {
        Some(_) if written.asked => {
            "press F5 there; if it asks first, click OK without typing OVERWRITE".to_owned()
        }
        Some(_) => "go to its page in the browser and press F5 before anything else".to_owned(),
        None => "if it is running, reload its page before you go on".to_owned(),
    };
    if written.new_chat {
        remedy.push_str("; the chat is under \"Manage chat files\" (menu ☰, bottom left)");
    }
    Finding::new(Code::ReloadSillytavern, subject, message).at(level).remedy(remedy)
}
