//! Converts the report of each verb to an answer: lines in order, and an exit code. Every front end
//! uses these answers. Text for people is formatted by the front ends themselves.

mod change;
mod copies;
mod keep;
mod look;

use super::{Counts, Line, SnapshotLine, Summary};
use crate::archive::Snapshot;
use crate::engine::files::FileAction;
use crate::exit;
use crate::history::at_message::{BookSource, Origin};
use crate::rules::Finding;

pub use change::Snapshots;
pub use copies::{BackedUp, Backup, InBackground, Recovered, sides};
pub use keep::{Decision, Doctored, Erasure, Repaired};
pub use look::{DiffCounts, Diffed, Lore, Timelines};

/// Receives the lines of an answer.
pub type Emit<'t, 'a> = &'t mut dyn FnMut(Line<'a>);

/// A report that can be printed as JSON lines.
pub trait Answer {
    /// Passes every line except the summary to `tell`, in order.
    fn lines<'a>(&'a self, _tell: Emit<'_, 'a>) {}

    /// Returns the command's name, and the counts for the summary.
    fn counts(&self) -> (&'static str, Counts);

    /// Returns the exit code that the command line would return.
    fn exit(&self) -> u8 {
        if self.is_partial() { exit::PARTLY } else { exit::DONE }
    }

    /// Returns whether a part of the work could not be done, or a part of the answer is missing.
    fn is_partial(&self) -> bool {
        false
    }

    /// Returns whether the command succeeded completely.
    fn is_ok(&self) -> bool {
        self.exit() == exit::DONE
    }

    /// Returns the summary, which is the last line of the answer.
    fn summary(&self) -> Summary {
        let (command, counts) = self.counts();
        Summary { command, ok: self.is_ok(), counts }
    }
}

fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>, tell: Emit<'_, 'a>) {
    findings.into_iter().map(Line::Finding).for_each(tell);
}

fn files<'a>(files: &'a [FileAction], tell: Emit<'_, 'a>) {
    files.iter().map(Line::File).for_each(tell);
}

fn snapshots<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>, tell: Emit<'_, 'a>) {
    snapshots.into_iter().map(|it| Line::Snapshot(SnapshotLine::new(it))).for_each(tell);
}

/// Passes a line for each lorebook entry of an assembled moment to `tell`, with the source of the
/// entry.
fn made_of<'a>(origin: &'a Origin, tell: Emit<'_, 'a>) {
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
