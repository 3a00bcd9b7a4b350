//! Where copies go if nobody says so.

use super::error::{Error, Result};
use stvc::engine::Workspace;
use stvc::engine::configuration::Configuration;
use stvc::engine::copies::last_backups;

/// Where `command` goes: what is set, or else where it last went; and whether that was encrypted.
pub fn remembered(command: &'static str, workspace: &Workspace) -> Result<(Option<String>, bool)> {
    let shared = command == "sync";
    let Some(store) = workspace.find_store()? else { return Err(Error::NoPlace { command }) };
    let settings = Configuration::of(&store)?;
    let set = if shared { settings.sync } else { settings.backup };
    // A store that is named may be somebody else's.
    let set = set.filter(|_| workspace.store.is_none());
    let (place, encrypted) = match set {
        Some(set) => {
            let encrypted = last_backups::was_encrypted(&store, &set)?;
            (set, encrypted)
        }
        None => last_backups::last_place(&store, shared)?.ok_or(Error::NoPlace { command })?,
    };
    // Passwords are not kept.
    if place.contains(":***@") {
        Err(Error::NoPlace { command })
    } else {
        Ok((Some(place), encrypted))
    }
}
