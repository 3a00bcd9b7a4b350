//! When something was, in the reader's words.

use chrono::{DateTime, FixedOffset, Local};

use super::wording::count;
use stvc::engine::configuration::Dates;
use stvc::store::Time;

/// What time it is, and how the reader wants to be told.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub now: DateTime<FixedOffset>,
    /// Not given: what suits the place.
    pub style: Option<Dates>,
}

impl Clock {
    /// Where the age says most.
    pub fn age(&self, time: Time) -> String {
        self.told(time, Dates::Relative)
    }

    /// Where the day says most.
    pub fn date(&self, time: Time) -> String {
        self.told(time, Dates::Local)
    }

    /// The same where there is little room.
    pub fn day(&self, time: Time) -> String {
        match (self.style, local(time)) {
            (None | Some(Dates::Local), Some(moment)) => moment.format("%Y-%m-%d").to_string(),
            _ => self.date(time),
        }
    }

    /// `2026-11-01 18:30:05 +0100 (3 minutes ago)`.
    pub fn both(&self, time: Time) -> String {
        match (self.style, local(time)) {
            (None, Some(moment)) => {
                format!("{} ({})", moment.format("%Y-%m-%d %H:%M:%S %z"), self.age(time))
            }
            _ => self.date(time),
        }
    }

    fn told(&self, time: Time, usual: Dates) -> String {
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

fn local(time: Time) -> Option<DateTime<Local>> {
    Some(time.moment()?.with_timezone(&Local))
}

/// `3 minutes ago`.
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
