//! What an answer is.

use super::super::{Counts, Line, Summary, exit};

/// Takes lines.
pub type Tell<'t, 'a> = &'t mut dyn FnMut(Line<'a>);

/// A report, as an answer.
pub trait Answer {
    /// Tells every line but the last, in order.
    fn lines<'a>(&'a self, _tell: Tell<'_, 'a>) {}

    /// Returns the command's name, and what the last line counts.
    fn counts(&self) -> (&'static str, Counts);

    /// Returns the exit code.
    fn exit(&self) -> u8 {
        exit::DONE
    }

    /// Returns whether all was done that was asked for.
    fn is_ok(&self) -> bool {
        self.exit() == exit::DONE
    }

    fn summary(&self) -> Summary {
        let (command, counts) = self.counts();
        Summary { command, ok: self.is_ok(), counts }
    }
}
