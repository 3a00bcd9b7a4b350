//! The retention policy: which snapshots `forget` keeps. It is set by options, or by the
//! `[retention]` table of the store's configuration.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Datelike, FixedOffset, Timelike};
use serde::Deserialize;

use super::{Error, Result};
use crate::archive::{Snapshot, SnapshotId};
use crate::settings::settings;

type Local = DateTime<FixedOffset>;

settings! {
    /// Rules that decide which snapshots of a timeline are kept. A snapshot is removed if no rule
    /// keeps it.
    Policy {
        keep_last: Option<u64> = None,
            "how many of the latest snapshots `stvc forget` and the watch keep";
        keep_hourly: Option<u64> = None, "for how many hours the latest snapshot of each is kept";
        keep_daily: Option<u64> = None, "for how many days the latest snapshot of each is kept";
        keep_weekly: Option<u64> = None, "for how many weeks the latest snapshot of each is kept";
        keep_monthly: Option<u64> = None, "for how many months the latest snapshot of each is kept";
        #[serde(deserialize_with = "span")]
        keep_within: Option<Duration> = None,
            "the age up to which every snapshot is kept, such as 30d";
        // Tagged snapshots are always kept. This key makes a policy without any other rule valid.
        keep_tag: bool = false, "true to keep only tagged snapshots and those that other keys keep";
    }
}

impl Policy {
    /// Returns whether no rule is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fails if the policy keeps only the snapshots that are always kept, because this is most
    /// likely a mistake.
    pub(crate) fn check(&self) -> Result<()> {
        let counts = [
            self.keep_last,
            self.keep_hourly,
            self.keep_daily,
            self.keep_weekly,
            self.keep_monthly,
        ];
        let keeps = counts.iter().any(|count| count.is_some_and(|count| count > 0))
            || self.keep_within.is_some_and(|within| !within.is_zero())
            || self.keep_tag;
        if keeps { Ok(()) } else { Err(Error::KeepsNothing) }
    }

    /// Returns the snapshots to keep. `own` are the snapshots of a timeline, latest first.
    /// Snapshots with a time in the future, which a wrong clock created, are always kept.
    pub(crate) fn keeps(&self, own: &[&Snapshot], now: Local) -> HashSet<SnapshotId> {
        let mut kept: HashSet<SnapshotId> = HashSet::new();
        let last = usize::try_from(self.keep_last.unwrap_or(0)).unwrap_or(usize::MAX);
        kept.extend(own.iter().take(last).map(|snapshot| snapshot.id));
        // Each closure returns a number that identifies the hour, day, week or month of a time.
        let day = |time: Local| i64::from(time.num_days_from_ce());
        let hour = |time: Local| day(time) * 24 + i64::from(time.hour());
        let week = |time: Local| {
            i64::from(time.iso_week().year()) * 54 + i64::from(time.iso_week().week())
        };
        let month = |time: Local| i64::from(time.year()) * 12 + i64::from(time.month0());
        let rules = [
            (self.keep_hourly, &hour as &dyn Fn(Local) -> i64),
            (self.keep_daily, &day),
            (self.keep_weekly, &week),
            (self.keep_monthly, &month),
        ];
        for (count, period) in rules {
            let mut periods = HashSet::new();
            for snapshot in own {
                let Some(period) = snapshot.time.moment().map(period) else { continue };
                if !periods.contains(&period) && (periods.len() as u64) < count.unwrap_or(0) {
                    periods.insert(period);
                    kept.insert(snapshot.id);
                }
            }
        }
        let within = self.keep_within.and_then(|within| i64::try_from(within.as_secs()).ok());
        for snapshot in own {
            let age = now.timestamp() - snapshot.time.seconds;
            if age < 0
                || within.is_some_and(|within| age <= within)
                || snapshot.time.moment().is_none()
            {
                kept.insert(snapshot.id);
            }
        }
        kept
    }
}

/// Parses a duration such as `14d`, `36h` or `30m`. A number without a unit is in days.
pub fn parse_span(text: &str) -> std::result::Result<Duration, String> {
    let bad = || "expected a duration, such as 14d, 36h or 30m".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().map_err(|_| bad())?;
    let unit = match text[digits.len()..].trim() {
        "" | "d" => 86_400,
        "w" => 604_800,
        "h" => 3600,
        "m" => 60,
        "s" => 1,
        "ms" => return Ok(Duration::from_millis(number)),
        _ => return Err(bad()),
    };
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(bad)
}

fn span<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse_span(&text).map_err(serde::de::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Blake3, ContentId, Kind};
    use crate::st::TimelineName;
    use crate::store::{ObjectId, Time};

    const DAY: i64 = 86_400;
    const HOUR: i64 = 3600;

    /// Time of the first snapshot, on a Sunday.
    const FIRST: &str = "2026-11-15T00:26:40+00:00";

    fn first() -> i64 {
        DateTime::parse_from_rfc3339(FIRST).unwrap().timestamp()
    }

    fn taken(n: usize, seconds: i64) -> Snapshot {
        let id = ObjectId::from_hex(format!("{n:040x}").as_bytes()).unwrap();
        Snapshot {
            entries: None,
            id: SnapshotId(id),
            content: ContentId(Blake3::of(&n.to_be_bytes())),
            tree: id,
            parents: Vec::new(),
            timeline: TimelineName::solo("Mira", "a").unwrap(),
            kind: Kind::SNAPSHOT,
            messages: n as u64,
            fork_at: None,
            time: Time { seconds, offset: 0 },
            sequence: crate::store::Sequence::at(seconds),
            parent_until: None,
            subject: String::new(),
            lorebook: None,
            bound: None,
            unread: None,
            last_words: None,
            main_chat: None,
            renamed_from: None,
            source: None,
        }
    }

    /// Returns `count` snapshots at intervals of `apart` seconds, newest first, and the time one
    /// interval after the newest.
    fn saves(count: usize, apart: i64) -> (Vec<Snapshot>, DateTime<FixedOffset>) {
        let at = |n: usize| first() + apart * i64::try_from(n).unwrap();
        let now = DateTime::from_timestamp(at(count), 0).unwrap().fixed_offset();
        ((0..count).rev().map(|n| taken(n, at(n))).collect(), now)
    }

    /// Returns the numbers of the kept snapshots, newest first.
    fn kept(policy: &Policy, (own, now): &(Vec<Snapshot>, DateTime<FixedOffset>)) -> Vec<u64> {
        let own: Vec<_> = own.iter().collect();
        let kept = policy.keeps(&own, *now);
        let stay = own.iter().filter(|snapshot| kept.contains(&snapshot.id));
        stay.map(|snapshot| snapshot.messages).collect()
    }

    #[test]
    fn policy_keeps_the_latest_of_each_hour_day_week_and_month() {
        // Four snapshots a day, six hours apart, for forty days.
        let saves = saves(160, DAY / 4);
        let nothing = Policy::default;
        let kept = |policy: Policy| kept(&policy, &saves);
        let some = |n| Some(n);
        // The newest snapshot of each day is that of 18:26.
        let daily = kept(Policy { keep_daily: some(7), ..nothing() });
        assert_eq!(daily, [159, 155, 151, 147, 143, 139, 135]);
        let hourly = kept(Policy { keep_hourly: some(5), ..nothing() });
        assert_eq!(hourly, [159, 158, 157, 156, 155]);
        // Weeks end on Sundays, so the first week has only one day.
        let weekly = kept(Policy { keep_weekly: some(100), ..nothing() });
        assert_eq!(weekly, [159, 143, 115, 87, 59, 31, 3]);
        let monthly = kept(Policy { keep_monthly: some(12), ..nothing() });
        assert_eq!(monthly, [159, 63]);
        let within = Some(Duration::from_secs(2 * 86_400));
        let within = kept(Policy { keep_within: within, ..nothing() });
        assert_eq!(within, [159, 158, 157, 156, 155, 154, 153, 152]);
        // A snapshot is kept if at least one rule keeps it.
        let both = kept(Policy { keep_daily: some(7), keep_last: some(8), ..nothing() });
        let last = [159, 158, 157, 156, 155, 154, 153, 152];
        assert_eq!(both, [&last[..], &[151, 147, 143, 139, 135]].concat());
        assert_eq!(kept(Policy { keep_last: some(1000), ..nothing() }).len(), 160);
        assert_eq!(kept(Policy { keep_last: some(3), ..nothing() }), [159, 158, 157]);
        assert_eq!(kept(Policy { keep_tag: true, ..nothing() }), [0; 0]);
    }

    /// The boundaries of a day are those in the time zone of the snapshot.
    #[test]
    fn day_boundaries_follow_the_time_zone_of_the_snapshot() {
        let mut saves = saves(8, 3 * HOUR);
        let daily = Policy { keep_daily: Some(9), ..Policy::default() };
        assert_eq!(kept(&daily, &saves), [7]);
        saves.0.iter_mut().for_each(|snapshot| snapshot.time.offset = 9 * 3600);
        assert_eq!(kept(&daily, &saves), [7, 4]);
    }

    #[test]
    fn snapshots_with_future_or_invalid_dates_are_kept() {
        let (mut own, now) = saves(4, DAY);
        let policy = Policy { keep_within: Some(Duration::from_secs(1)), ..Policy::default() };
        assert_eq!(kept(&policy, &(own.clone(), now)), [0; 0]);
        assert_eq!(kept(&policy, &(own.clone(), now - chrono::Duration::days(3))), [3, 2, 1]);
        own[3].time.seconds = i64::MAX;
        own[2].time.offset = 90_000;
        assert_eq!(kept(&policy, &(own, now)), [1, 0]);
    }

    #[test]
    fn policy_that_keeps_nothing_is_refused() {
        let nothing = Policy::default;
        let zero = Some(Duration::ZERO);
        for policy in [
            nothing(),
            Policy { keep_last: Some(0), ..nothing() },
            Policy { keep_last: Some(0), keep_within: zero, ..nothing() },
            Policy { keep_hourly: Some(0), keep_monthly: Some(0), ..nothing() },
        ] {
            assert!(matches!(policy.check(), Err(Error::KeepsNothing)), "{policy:?}");
        }
        for policy in [
            Policy { keep_last: Some(1), ..nothing() },
            Policy { keep_last: Some(0), keep_weekly: Some(1), ..nothing() },
            Policy { keep_within: Some(Duration::from_secs(1)), ..nothing() },
            Policy { keep_tag: true, ..nothing() },
        ] {
            assert!(policy.check().is_ok(), "{policy:?}");
        }
    }

    #[test]
    fn durations_are_parsed_with_units() {
        for (text, seconds) in [
            ("14", 14 * 86_400),
            ("14d", 14 * 86_400),
            ("2w", 14 * 86_400),
            ("36h", 36 * 3600),
            ("30m", 1800),
            ("0s", 0),
            ("200000000d", 200_000_000 * 86_400),
            ("213503982334601d", 213_503_982_334_601 * 86_400),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_span("150ms"), Ok(Duration::from_millis(150)));
        for bad in
            ["", "d", "-1d", "1y", "1.5h", "soon", "999999999999999999999d", "213503982334602d"]
        {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
