//! When a message was sent. SillyTavern has written that in three ways over the years.

use chrono::{DateTime, NaiveDateTime};

use super::json::Raw;

/// Milliseconds since 1970, from ISO 8601, from a number, or from `November 15, 2026 12:22am` (taken as UTC).
pub fn send_millis(send_date: Raw<'_>) -> Option<i64> {
    if let Some(number) = send_date.integer() {
        return Some(number);
    }
    let text = send_date.string()?;
    if let Ok(moment) = DateTime::parse_from_rfc3339(&text) {
        return Some(moment.timestamp_millis());
    }
    let moment = NaiveDateTime::parse_from_str(&text, "%B %d, %Y %I:%M%P").ok()?;
    Some(moment.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_ways_are_read() {
        let time = |text: &str| send_millis(Raw::parse(text.as_bytes()).unwrap());
        assert_eq!(time(r#""2026-11-15T00:22:00.000Z""#), Some(1_794_702_120_000));
        assert_eq!(time(r#""November 15, 2026 12:22am""#), Some(1_794_702_120_000));
        assert_eq!(time("1794702120000"), Some(1_794_702_120_000));
        assert_eq!(time(r#""soon""#), None);
        assert_eq!(time("null"), None);
    }
}
