//! How two states of a lorebook become one.

use crate::archive::merge::{Conflict, Side, merge_books};

/// How a lorebook of the other side and the one here become one.
pub(super) enum JoinedBook {
    Theirs,
    Ours,
    Both(Vec<u8>),
    Conflicts(Vec<Conflict>),
}

impl JoinedBook {
    /// `now` is what is here, `before` what both come from.
    pub(super) fn of(now: Option<&[u8]>, before: Option<&[u8]>, theirs: &[u8]) -> Self {
        let Some(now) = now else { return Self::Theirs };
        if now == theirs || before == Some(now) {
            return Self::Theirs;
        }
        if before == Some(theirs) {
            return Self::Ours;
        }
        match merge_books(before, now, theirs, Side::Ours) {
            Ok(merged)
                if merged.conflicts.is_empty()
                    && merged.not_renumbered.is_empty()
                    && merged.queue_left == 0 =>
            {
                Self::Both(merged.bytes)
            }
            Ok(merged) => Self::Conflicts(merged.conflicts),
            // What is no lorebook that can be read is not mixed.
            Err(_) => Self::Conflicts(Vec::new()),
        }
    }
}
