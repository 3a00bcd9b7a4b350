//! The refusal to replace files while SillyTavern is running, and its hint.

use std::fmt;

use crate::archive::{Role, SnapshotId};
use crate::hint::{Hint, unchanged};
use crate::words::listed;
use crate::words::short;

/// The refusal to replace files that a running SillyTavern may have in memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "SillyTavern is running on this library (process {process}); what its page has in memory would be written back over {}",
    listed(paths)
)]
pub struct SillyTavernRuns {
    pub process: u32,
    pub paths: Vec<String>,
    /// The restore that was refused, if it was one of a single timeline.
    pub restore: Option<RestoreCommand>,
}

/// The command line of a restore in place.
#[derive(Clone, Copy, Debug)]
pub struct RestoreCommand {
    pub snapshot: SnapshotId,
    pub only: Option<Role>,
    pub at: Option<usize>,
}

impl fmt::Display for RestoreCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stvc restore {}", short(self.snapshot))?;
        self.at.map_or(Ok(()), |at| write!(f, " --at {at}"))?;
        self.only.map_or(Ok(()), |only| write!(f, " --only {}", only.as_str()))
    }
}

impl SillyTavernRuns {
    pub fn hint(&self) -> Hint {
        let close = "in SillyTavern, click the menu ☰ (bottom left), then \"Close chat\"";
        let Some(restore) = &self.restore else {
            return unchanged(format!(
                "{close}; give the command again with `--chat-closed`; then press F5 there"
            ));
        };
        let mut words =
            format!("{close}; run `{restore} --overwrite --chat-closed`; then press F5 there");
        if restore.only.is_none() {
            if self.paths.iter().all(|path| path.starts_with("worlds/")) {
                words += &format!(
                    ". `{restore} --overwrite --only chat` brings back the chat alone without that"
                );
            }
            words += &format!(
                ". Or `{restore} --as Restored`: a chat of its own can be made at any time"
            );
        }
        unchanged(words)
    }
}
