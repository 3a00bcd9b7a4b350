//! When it is time for a snapshot: once the files were left alone for a moment, and in a storm of saves now and then.

use std::time::{Duration, Instant};

/// A storm is interrupted after so many times the quiet time.
const STORM: u32 = 10;

/// When the next snapshot is due.
pub(super) struct Due {
    settle: Duration,
    /// The first and the last change that no snapshot has.
    changes: Option<(Instant, Instant)>,
    /// Since when it is due whatever happens.
    at_once: Option<Instant>,
}

impl Due {
    /// Due now.
    pub(super) fn at_once(settle: Duration) -> Self {
        Self { settle, changes: None, at_once: Some(Instant::now()) }
    }

    /// Something changed.
    pub(super) fn note(&mut self, now: Instant) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    /// A snapshot is taken.
    pub(super) fn clear(&mut self) {
        self.changes = None;
        self.at_once = None;
    }

    /// When it is time; never, if nothing changed.
    pub(super) fn when(&self) -> Option<Instant> {
        let settled =
            self.changes.map(|(first, last)| (last + self.settle).min(first + self.settle * STORM));
        self.at_once.or(settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
