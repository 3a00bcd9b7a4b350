//! When a save counts as finished, and it is time for a snapshot: once the files were left alone for a moment, and in a storm of saves now and then.

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

/// When to look next: at `latest`, or when something is due. While the library is gone nothing is: what was due stays due, and would never let it rest.
pub(super) fn next_look(latest: Instant, sooner: [Option<Instant>; 2], is_here: bool) -> Instant {
    let sooner = sooner.into_iter().flatten().filter(|_| is_here);
    sooner.chain([latest]).min().unwrap_or(latest)
}

/// When one that waits since then has waited long enough, but not before a store that could not be written is tried again.
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
    fn what_cannot_be_done_now_is_not_tried_without_rest() {
        let now = Instant::now();
        let (past, later) = (now, now + Duration::from_secs(9));
        assert_eq!(next_look(later, [Some(past), None], true), past);
        assert_eq!(next_look(later, [None, Some(past)], true), past);
        assert_eq!(next_look(later, [None, None], true), later);
        assert_eq!(next_look(later, [Some(past), Some(past)], false), later);
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
