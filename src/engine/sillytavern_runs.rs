//! The refusal to replace files while SillyTavern is running, and the hint for the user.

use std::fmt;

use crate::archive::{Role, SnapshotId};
use crate::hint::{Hint, unchanged};
use crate::words::listed;
use crate::words::short;

/// The refusal to replace files that a running SillyTavern may have in memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "SillyTavern is running on this library (process {process}); its page could overwrite {}",
    listed(paths)
)]
pub struct SillyTavernRuns {
    pub process: u32,
    pub paths: Vec<String>,
    /// The command that was refused, if it was a restore of a single timeline.
    pub restore: Option<RestoreCommand>,
}

/// The command line of a restore that replaces the files of a timeline.
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
                "{close}; run the command again with `--chat-closed`; then press F5 there"
            ));
        };
        let mut words =
            format!("{close}; run `{restore} --overwrite --chat-closed`; then press F5 there");
        if restore.only.is_none() {
            if self.paths.iter().all(|path| path.starts_with("worlds/")) {
                words += &format!(
                    ". To restore only the chat without these steps, run `{restore} --overwrite --only chat`"
                );
            }
            words += &format!(
                ". To restore it as a new chat without these steps, run `{restore} --as Restored`"
            );
        }
        unchanged(words)
    }
}
