//! When a save counts as finished, and it is time for a snapshot: once the files were left alone
//! for a moment, and in a storm of saves now and then.

use std::time::{Duration, Instant};

/// Continuous saving is interrupted after this many quiet times.
const STORM: u32 = 10;

pub(super) struct Due {
    settle: Duration,
    /// The first and last change without a snapshot.
    changes: Option<(Instant, Instant)>,
    /// Due since then, whatever happens.
    at_once: Option<Instant>,
}

impl Due {
    pub(super) fn at_once(settle: Duration) -> Self {
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

    /// Returns when it is due; `None` if nothing changed.
    pub(super) fn when(&self) -> Option<Instant> {
        let settled =
            self.changes.map(|(first, last)| (last + self.settle).min(first + self.settle * STORM));
        self.at_once.or(settled)
    }
}

/// Returns when a wait ends, but not before a failed write is tried again.
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
    fn a_wait_does_not_end_before_the_next_attempt() {
        let now = Instant::now();
        let later = now + Duration::from_secs(9);
        let patience = Duration::from_secs(2);
        assert_eq!(patience_ends(now, patience, None), now + patience);
        assert_eq!(patience_ends(now, patience, Some(later)), later);
        assert_eq!(patience_ends(later, patience, Some(now)), later + patience);
    }

    #[test]
    fn a_snapshot_waits_for_quiet_and_not_for_ever() {
        let settle = Duration::from_secs(1);
        let mut due = Due::at_once(settle);
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
