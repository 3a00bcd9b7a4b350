//! Debounces saves: a snapshot is due when the files have not changed for the settle time, and at
//! intervals during continuous saving.

use std::time::{Duration, Instant};

/// During continuous saving, a snapshot is due after this multiple of the settle time.
const STORM: u32 = 10;

pub(super) struct SaveTimer {
    settle: Duration,
    /// The times of the first and the last change after the last snapshot; `None` if nothing
    /// changed.
    changes: Option<(Instant, Instant)>,
    /// If set, a snapshot is due at this time even if nothing changed.
    at_once: Option<Instant>,
}

impl SaveTimer {
    pub(super) fn due_now(settle: Duration) -> Self {
        Self { settle, changes: None, at_once: Some(Instant::now()) }
    }

    pub(super) fn note(&mut self, now: Instant) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    pub(super) fn clear(&mut self) {
        self.changes = None;
        self.at_once = None;
    }

    /// Returns the time at which a snapshot is due. Returns `None` if nothing changed.
    pub(super) fn when(&self) -> Option<Instant> {
        let settled =
            self.changes.map(|(first, last)| (last + self.settle).min(first + self.settle * STORM));
        self.at_once.or(settled)
    }
}

/// Returns the time at which the wait for ST-Auto-Recap's queue ends: `patience` after `since`, but
/// not before `not_before`, the time of the next attempt after a failed write.
pub(super) fn patience_ends(
    since: Instant,
    patience: Duration,
    not_before: Option<Instant>,
) -> Instant {
    let end = since + patience;
    not_before.map_or(end, |not_before| end.max(not_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_no_earlier_than_the_next_attempt() {
        let now = Instant::now();
        let later = now + Duration::from_secs(9);
        let patience = Duration::from_secs(2);
        assert_eq!(patience_ends(now, patience, None), now + patience);
        assert_eq!(patience_ends(now, patience, Some(later)), later);
        assert_eq!(patience_ends(later, patience, Some(now)), later + patience);
    }

    #[test]
    fn snapshot_is_debounced_with_a_maximum_delay() {
        let settle = Duration::from_secs(1);
        let mut due = SaveTimer::due_now(settle);
        let now = Instant::now();
        assert!(due.when().is_some_and(|when| when <= now));
        due.clear();
        assert_eq!(due.when(), None);
        let begin = Instant::now();
        due.note(begin);
        assert_eq!(due.when(), Some(begin + settle));
        for tenth in 1..200 {
            due.note(begin + settle * tenth / 10);
        }
        assert_eq!(due.when(), Some(begin + settle * STORM));
        due.clear();
        due.note(begin + settle * 30);
        assert_eq!(due.when(), Some(begin + settle * 31));
    }
}
