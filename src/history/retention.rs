//! How long snapshots are kept: what `forget` is told, or the `[retention]` table of the store's configuration.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Datelike, FixedOffset, Timelike};
use serde::Deserialize;

use super::{Error, Result};
use crate::archive::{Snapshot, SnapshotId};

/// Which snapshots of a timeline stay. Each rule keeps some; what none keeps goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policy {
    /// The newest so many.
    pub keep_last: Option<u64>,
    /// The newest of each of the last so many hours that have any.
    pub keep_hourly: Option<u64>,
    /// The same for days.
    pub keep_daily: Option<u64>,
    /// The same for weeks.
    pub keep_weekly: Option<u64>,
    /// The same for months.
    pub keep_monthly: Option<u64>,
    /// Those younger than this: `30d`, `36h`.
    #[serde(default, deserialize_with = "span")]
    pub keep_within: Option<Duration>,
    /// Tagged ones. They always stay; on its own it means: nothing else.
    #[serde(default)]
    pub keep_tag: bool,
}

/// A stretch of the calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Hour,
    Day,
    Week,
    Month,
}

impl Policy {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A policy that keeps nothing but what always stays is most likely a mistake.
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

    /// Which of the snapshots of a timeline, newest first, stay. What is dated in the future stays: a clock was wrong.
    pub(crate) fn keeps(
        &self,
        own: &[&Snapshot],
        now: DateTime<FixedOffset>,
    ) -> HashSet<SnapshotId> {
        let mut kept: HashSet<SnapshotId> = HashSet::new();
        let last = usize::try_from(self.keep_last.unwrap_or(0)).unwrap_or(usize::MAX);
        kept.extend(own.iter().take(last).map(|snapshot| snapshot.id));
        let rules = [
            (self.keep_hourly, Unit::Hour),
            (self.keep_daily, Unit::Day),
            (self.keep_weekly, Unit::Week),
            (self.keep_monthly, Unit::Month),
        ];
        for (count, unit) in rules {
            let mut periods = HashSet::new();
            for snapshot in own {
                let Some(moment) = moment(snapshot) else { continue };
                let period = period(moment, unit);
                if !periods.contains(&period) && (periods.len() as u64) < count.unwrap_or(0) {
                    periods.insert(period);
                    kept.insert(snapshot.id);
                }
            }
        }
        let within = self.keep_within.and_then(|within| i64::try_from(within.as_secs()).ok());
        for snapshot in own {
            let age = now.timestamp() - snapshot.time.seconds;
            if age < 0 || within.is_some_and(|within| age <= within) || moment(snapshot).is_none() {
                kept.insert(snapshot.id);
            }
        }
        kept
    }
}

fn moment(snapshot: &Snapshot) -> Option<DateTime<FixedOffset>> {
    let offset = FixedOffset::east_opt(snapshot.time.offset)?;
    Some(DateTime::from_timestamp(snapshot.time.seconds, 0)?.with_timezone(&offset))
}

/// `14`, `14d`, `36h`, `30m`: days unless it says otherwise.
pub fn parse_span(text: &str) -> std::result::Result<Duration, String> {
    let bad = || "a time is expected, such as 14d, 36h or 30m".to_owned();
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

/// The hour, day, week or month of a moment, as a number that is the same for moments in the same one.
fn period(moment: DateTime<FixedOffset>, unit: crate::history::retention::Unit) -> i64 {
    use crate::history::retention::Unit;
    let day = i64::from(moment.num_days_from_ce());
    match unit {
        Unit::Hour => day * 24 + i64::from(moment.hour()),
        Unit::Day => day,
        Unit::Week => {
            i64::from(moment.iso_week().year()) * 54 + i64::from(moment.iso_week().week())
        }
        Unit::Month => i64::from(moment.year()) * 12 + i64::from(moment.month0()),
    }
}
