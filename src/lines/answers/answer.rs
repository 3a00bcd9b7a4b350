//! What an answer is.

use super::super::{Line, Summary};

/// Takes lines.
pub type Tell<'t, 'a> = &'t mut dyn FnMut(Line<'a>);

/// A report, as an answer.
pub trait Answer {
    /// Every line but the last, in order.
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>);
    /// The last one.
    fn summary(&self) -> Summary;
    /// How it ended.
    fn exit(&self) -> u8;
}
