//! The time that the machine's clock shows.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, FixedOffset, Local};

/// Returns the present time; `None` if the clock shows a time before 1970, which git cannot store.
pub fn now() -> Option<DateTime<FixedOffset>> {
    // `Local::now` panics then.
    let now = SystemTime::now();
    (now >= UNIX_EPOCH).then(|| DateTime::<Local>::from(now).fixed_offset())
}

/// Returns the present time, or the beginning of 1970 where the clock shows an earlier one: for programs that run on while somebody sets it.
pub fn now_or_1970() -> DateTime<FixedOffset> {
    now().unwrap_or_else(|| DateTime::UNIX_EPOCH.fixed_offset())
}
