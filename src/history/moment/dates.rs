//! Parses times as people write them: `2026-11-01`, `2026-11-01 18:30`, `yesterday`, `2 weeks ago`,
//! `30d`, `昨天`, `两周前`.

use chrono::{DateTime, Days, FixedOffset, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};

/// Parses a time. A day without a time means the beginning of the day. The time zone comes from
/// `now`, unless the text has one.
pub fn parse(text: &str, now: DateTime<FixedOffset>) -> Result<DateTime<FixedOffset>, String> {
    let text = text.trim();
    let no = || {
        format!(
            "{text:?} is not a date: write 2026-11-01, \"2026-11-01 18:30\", yesterday, \"2 weeks ago\" or 30d"
        )
    };
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Ok(moment);
    }
    let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN);
    let local = |moment: NaiveDateTime| now.timezone().from_local_datetime(&moment).single();
    let forms = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let exact = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(midnight);
    if let Some(moment) = exact.or(day) {
        return local(moment).ok_or_else(no);
    }
    let today = now.date_naive();
    match text.to_lowercase().as_str() {
        "now" | "现在" => return Ok(now),
        word => {
            if let Some(days) = days_before_today(word) {
                let day = today.checked_sub_days(Days::new(days)).ok_or_else(no)?;
                return local(midnight(day)).ok_or_else(no);
            }
        }
    }
    ago(text, now).ok_or_else(no)
}

/// Returns how many days before today a word such as `yesterday` means.
fn days_before_today(word: &str) -> Option<u64> {
    match word {
        "today" | "今天" => Some(0),
        "yesterday" | "昨天" => Some(1),
        "前天" => Some(2),
        _ => None,
    }
}

/// Returns the ASCII digit for a digit, which may be a full-width character.
pub(super) fn digit(c: char) -> Option<char> {
    match c {
        '0'..='9' => Some(c),
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10),
        _ => None,
    }
}

/// Parses the end of a period. A day without a time means the last second of the day.
pub fn parse_end(text: &str, now: DateTime<FixedOffset>) -> Result<DateTime<FixedOffset>, String> {
    let moment = parse(text, now)?;
    let word = text.trim().to_lowercase();
    let is_day =
        days_before_today(&word).is_some() || NaiveDate::parse_from_str(&word, "%Y-%m-%d").is_ok();
    let end = moment.checked_add_days(Days::new(1)).filter(|_| is_day);
    let end = end.and_then(|end| end.checked_sub_signed(chrono::Duration::seconds(1)));
    Ok(end.unwrap_or(moment))
}

/// Parses `2 weeks ago`, `2 weeks`, `2w`, `2周前`, `两周前`.
fn ago(text: &str, now: DateTime<FixedOffset>) -> Option<DateTime<FixedOffset>> {
    const CHINESE_NUMBERS: &str = "零一二三四五六七八九十";
    let text = text.to_lowercase();
    let text = text.strip_suffix("ago").or_else(|| text.strip_suffix('前')).unwrap_or(&text).trim();
    let digits: String = text.chars().map_while(digit).collect();
    let (n, unit): (u32, _) = match text.chars().next()? {
        '两' => (2, &text['两'.len_utf8()..]),
        c if digits.is_empty() => {
            let n = CHINESE_NUMBERS.chars().position(|number| number == c)?;
            (u32::try_from(n).ok()?, &text[c.len_utf8()..])
        }
        _ => {
            let end = text.find(|c| digit(c).is_none()).unwrap_or(text.len());
            (digits.parse().ok()?, &text[end..])
        }
    };
    let unit = unit.trim();
    let unit = unit.strip_suffix('s').filter(|unit| unit.len() > 1).unwrap_or(unit);
    let unit = unit.strip_prefix('个').unwrap_or(unit);
    let seconds =
        |each: i64| now.checked_sub_signed(chrono::Duration::seconds(each * i64::from(n)));
    match unit {
        "s" | "second" | "秒" | "秒钟" => seconds(1),
        "min" | "minute" | "分" | "分钟" => seconds(60),
        "h" | "hour" | "小时" => seconds(3600),
        "d" | "day" | "天" | "日" => now.checked_sub_days(Days::new(n.into())),
        "w" | "week" | "周" | "星期" => now.checked_sub_days(Days::new(u64::from(n) * 7)),
        "m" | "month" | "月" => now.checked_sub_months(Months::new(n)),
        "y" | "year" | "年" => now.checked_sub_months(Months::new(n.checked_mul(12)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_and_relative_dates_are_parsed() {
        let now = DateTime::parse_from_rfc3339("2026-11-15T18:30:00+01:00").unwrap();
        for (text, expected) in [
            ("2026-11-01", "2026-11-01T00:00:00+01:00"),
            ("2026-11-01 18:30", "2026-11-01T18:30:00+01:00"),
            ("2026-11-01T18:30:05", "2026-11-01T18:30:05+01:00"),
            ("2026-11-01T18:30:05Z", "2026-11-01T18:30:05+00:00"),
            (" Yesterday ", "2026-11-14T00:00:00+01:00"),
            ("today", "2026-11-15T00:00:00+01:00"),
            ("2 weeks ago", "2026-11-01T18:30:00+01:00"),
            ("1 month ago", "2026-10-15T18:30:00+01:00"),
            ("30d", "2026-10-16T18:30:00+01:00"),
            ("30 seconds ago", "2026-11-15T18:29:30+01:00"),
            ("10s", "2026-11-15T18:29:50+01:00"),
            ("5 min", "2026-11-15T18:25:00+01:00"),
            ("2 hours", "2026-11-15T16:30:00+01:00"),
            ("2y", "2024-11-15T18:30:00+01:00"),
            ("昨天", "2026-11-14T00:00:00+01:00"),
            ("前天", "2026-11-13T00:00:00+01:00"),
            ("两周前", "2026-11-01T18:30:00+01:00"),
            ("３天前", "2026-11-12T18:30:00+01:00"),
            ("10 分钟前", "2026-11-15T18:20:00+01:00"),
            ("一个月前", "2026-10-15T18:30:00+01:00"),
        ] {
            assert_eq!(parse(text, now).unwrap().to_rfc3339(), expected, "{text}");
        }
        let end = |text: &str| parse_end(text, now).unwrap().to_rfc3339();
        assert_eq!(end("2026-11-01"), "2026-11-01T23:59:59+01:00");
        assert_eq!(end("yesterday"), "2026-11-14T23:59:59+01:00");
        assert_eq!(end("昨天"), "2026-11-14T23:59:59+01:00");
        assert_eq!(end("2026-11-01 18:30"), "2026-11-01T18:30:00+01:00");
        assert_eq!(end("2 weeks ago"), "2026-11-01T18:30:00+01:00");
        for bad in
            ["", "soon", "2026-13-01", "2026-02-30", "ago", "3 moons ago", "99999999999d", "-3d"]
        {
            assert!(parse(bad, now).is_err(), "{bad}");
        }
    }
}
