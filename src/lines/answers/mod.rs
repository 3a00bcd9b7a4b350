//! The answer of each verb: which lines in which order, and the exit code. Every front end prints
//! these; text for people is its own.

mod change;
mod copies;
mod keep;
mod look;

use super::{Counts, Line, SnapshotLine, Summary};
use crate::archive::Snapshot;
use crate::engine::files::FileAction;
use crate::exit;
use crate::history::at_message::{BookSource, Origin};
use crate::rules::{Finding, lost_attachments};

pub use change::Snapshots;
pub use copies::{BackedUp, Backup, sides};
pub use keep::{Decision, Doctored, Erasure};
pub use look::{DiffCounts, Diffed, Lore, Timelines};

/// Takes lines.
pub type Tell<'t, 'a> = &'t mut dyn FnMut(Line<'a>);

/// A report, as an answer.
pub trait Answer {
    /// Passes every line but the last to `tell`, in order.
    fn lines<'a>(&'a self, _tell: Tell<'_, 'a>) {}

    /// Returns the command's name, and the counts of the last line.
    fn counts(&self) -> (&'static str, Counts);

    /// Returns the exit code.
    fn exit(&self) -> u8 {
        exit::DONE
    }

    /// Returns whether everything was done.
    fn is_ok(&self) -> bool {
        self.exit() == exit::DONE
    }

    /// Returns the last line.
    fn summary(&self) -> Summary {
        let (command, counts) = self.counts();
        Summary { command, ok: self.is_ok(), counts }
    }
}

fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>, tell: Tell<'_, 'a>) {
    findings.into_iter().map(Line::Finding).for_each(tell);
}

fn files<'a>(files: &'a [FileAction], tell: Tell<'_, 'a>) {
    files.iter().map(Line::File).for_each(tell);
}

fn snapshots<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>, tell: Tell<'_, 'a>) {
    snapshots.into_iter().map(|it| Line::Snapshot(SnapshotLine::new(it))).for_each(tell);
}

/// Tells where the entries of a state that was put together come from.
fn made_of<'a>(origin: &'a Origin, tell: Tell<'_, 'a>) {
    for entry in &origin.entries {
        let source = entry.filled_from.and_then(|n| origin.books.get(n));
        let filled_from = source.map(|source| match source {
            BookSource::Snapshot(id) => id.to_string(),
            BookSource::Here => "here".into(),
        });
        let noted_at = origin.scene.as_ref().map(|(message, _)| *message);
        tell(Line::Entry { entry, noted_at, filled_from });
    }
}

fn partly_if(is_partly: bool) -> u8 {
    if is_partly { exit::PARTLY } else { exit::DONE }
}

/// Attachments that the store has lost are the only part that was not done.
fn partly_if_lost(found: &[Finding]) -> u8 {
    partly_if(lost_attachments(found) > 0)
}
