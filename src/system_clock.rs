//! The current time of the machine's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, FixedOffset, Local};

/// The last second of the year 9999. RFC 3339 cannot represent later times.
const LAST: u64 = 253_402_300_799;

/// Returns the current time, or `None` if a snapshot cannot store it (see [`at`]).
pub fn now() -> Option<DateTime<FixedOffset>> {
    let now = SystemTime::now();
    // `Local::now` panics before 1970, and the conversion panics in the far future.
    let seconds = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    (seconds <= LAST).then(|| DateTime::<Local>::from(now).fixed_offset())
}

/// Returns the time that is this many seconds after the start of 1970. Returns `None` for times
/// before 1970, which git cannot store, and for times after 9999.
pub fn at(seconds: i64) -> Option<DateTime<FixedOffset>> {
    let is_storable = u64::try_from(seconds).is_ok_and(|seconds| seconds <= LAST);
    let moment = DateTime::from_timestamp(seconds, 0).filter(|_| is_storable)?;
    Some(moment.fixed_offset())
}

/// Returns the current time, or the start of 1970 if the clock is wrong.
pub fn now_or_1970() -> DateTime<FixedOffset> {
    now().unwrap_or_else(|| DateTime::UNIX_EPOCH.fixed_offset())
}
