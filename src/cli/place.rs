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
    let last = last_backups::last_place(&store, shared)?;
    let (place, encrypted) = match (set, last) {
        (Some(set), last) => {
            let encrypted = last.is_some_and(|(place, encrypted)| encrypted && place == set);
            (set, encrypted)
        }
        (None, Some(last)) => last,
        (None, None) => return Err(Error::NoPlace { command }),
    };
    // Passwords are not kept.
    match place.contains(":***@") {
        true => Err(Error::NoPlace { command }),
        false => Ok((Some(place), encrypted)),
    }
}
