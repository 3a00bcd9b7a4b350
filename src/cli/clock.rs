//! Formats dates and ages in the style that the user chose.

use chrono::{DateTime, FixedOffset, Local};

use super::error::Error;
use super::wording::count;
use stvc::configuration::Dates;
use stvc::snapshots::Time;
use stvc::system_clock;

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub now: DateTime<FixedOffset>,
    /// The style from the options or the configuration. If `None`, each command uses its own
    /// default.
    pub style: Option<Dates>,
}

impl Clock {
    pub fn age(&self, time: Time) -> String {
        self.format(time, Dates::Relative)
    }

    pub fn date(&self, time: Time) -> String {
        self.format(time, Dates::Local)
    }

    pub fn day(&self, time: Time) -> String {
        match (self.style, local(time)) {
            (None | Some(Dates::Local), Some(moment)) => moment.format("%Y-%m-%d").to_string(),
            _ => self.date(time),
        }
    }

    /// Returns the date and the age: `2026-11-01 18:30:05 +0100 (3 minutes ago)`.
    pub fn both(&self, time: Time) -> String {
        match (self.style, local(time)) {
            (None, Some(moment)) => {
                format!("{} ({})", moment.format("%Y-%m-%d %H:%M:%S %z"), self.age(time))
            }
            _ => self.date(time),
        }
    }

    fn format(&self, time: Time, usual: Dates) -> String {
        let Some(moment) = local(time) else {
            return format!("{} s after 1970", time.seconds);
        };
        match self.style.unwrap_or(usual) {
            Dates::Relative if time.seconds <= self.now.timestamp() => {
                age(self.now.timestamp() - time.seconds)
            }
            Dates::Relative | Dates::Local => moment.format("%Y-%m-%d %H:%M").to_string(),
            Dates::Iso => moment.to_rfc3339(),
        }
    }
}

/// Parses a time in RFC 3339 format.
pub fn parse(text: &str) -> Option<Time> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Time { seconds: time.timestamp(), offset: 0 })
}

fn local(time: Time) -> Option<DateTime<Local>> {
    Some(time.moment()?.with_timezone(&Local))
}

/// Returns an age such as `3 minutes ago`.
fn age(seconds: i64) -> String {
    let (n, unit) = match seconds {
        ..60 => return "just now".into(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        86_400..604_800 => (seconds / 86_400, "day"),
        604_800..2_592_000 => (seconds / 604_800, "week"),
        2_592_000..31_536_000 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    format!("{} ago", count(n.unsigned_abs(), unit))
}

/// Returns the time in `SOURCE_DATE_EPOCH` if it is set, so that two runs write the same commits;
/// otherwise the current time.
pub fn now() -> DateTime<FixedOffset> {
    let fixed = fixed_now().and_then(|text| read_source_date(&text));
    fixed.unwrap_or_else(system_clock::now_or_1970)
}

/// Returns an error if `SOURCE_DATE_EPOCH` or the clock is invalid, because a snapshot could not
/// record its time.
pub fn problem() -> Option<Error> {
    match fixed_now() {
        Some(text) if read_source_date(&text).is_none() => Some(Error::BadSourceDate { text }),
        None if system_clock::now().is_none() => Some(Error::BadClock),
        _ => None,
    }
}

/// Returns the value of `SOURCE_DATE_EPOCH`. An empty value counts as unset.
fn fixed_now() -> Option<String> {
    let text = std::env::var_os("SOURCE_DATE_EPOCH")?.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

fn read_source_date(text: &str) -> Option<DateTime<FixedOffset>> {
    text.parse().ok().and_then(system_clock::at)
}
