//! The syntax of moments: a name, followed by steps into the past.
//!
//! ```text
//! moment  = name step* [ ":" N ]        the state at message N
//!         | id "+" id [ ":" N ]         two full ids: snapshot of the chat and of the lorebook
//! step    = "~" [ N ]                   N moments back, one by default
//!         | "@" DATE | "@{" DATE "}"    the state at that time
//! ```
//!
//! A name may contain any of these signs: the longest beginning of the text that is a name counts.
//! A date without braces extends as far as the text can be parsed as a date. The signs and the
//! digits may also be full-width characters, which Chinese and Japanese keyboards type.

use chrono::{DateTime, FixedOffset};

use super::dates;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Back(usize),
    Then(DateTime<FixedOffset>),
    Message(usize),
}

/// The position at which parsing stopped, in bytes, and the text that was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub at: usize,
    pub expected: &'static str,
}

const NUMBER: &str = "a number";
const DATE: &str = "a date such as 2026-11-01, {2026-11-01 18:30}, yesterday or 2 weeks ago";
const BRACE: &str = "} after the date";
const SIGN: &str = "~N, @DATE or :N";
const END: &str = "the end: nothing may follow the number of a message";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PinnedPair<'t> {
    pub snapshot: &'t str,
    pub book: &'t str,
    pub message: Option<usize>,
}

/// Parses a pair of ids that [`Moment::id`](super::Moment::id) wrote.
pub(crate) fn pinned(text: &str) -> Option<PinnedPair<'_>> {
    let (snapshot, rest) = text.split_once('+')?;
    let (book, message) = match rest.split_once(':') {
        Some((book, message)) => (book, Some(message.parse().ok()?)),
        None => (rest, None),
    };
    let is_id = |text: &str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id(snapshot) && is_id(book)).then_some(PinnedPair { snapshot, book, message })
}

/// Maximum number of signs at which a text is split. Each split costs a lookup, and the text may
/// come from another program.
const MOST_SIGNS: usize = 32;
/// Maximum length of a date, in bytes.
const LONGEST_DATE: usize = 100;

/// The signs that begin a step, each followed by its full-width form.
const SIGNS: [char; 6] = ['~', '～', '@', '＠', ':', '：'];

/// Returns every split of the text into a name and the rest, the longest name first.
pub(crate) fn splits(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let signs = text.rmatch_indices(SIGNS).map(|(at, _)| at);
    let ends = std::iter::once(text.len()).chain(signs.take(MOST_SIGNS));
    ends.filter(|end| *end > 0).map(|end| text.split_at(end))
}

pub(crate) fn steps(text: &str, now: DateTime<FixedOffset>) -> Result<Vec<Step>, ParseError> {
    let mut steps = Vec::new();
    let mut at = 0;
    while let Some(sign) = text[at..].chars().next() {
        if matches!(steps.last(), Some(Step::Message(_))) {
            return Err(ParseError { at, expected: END });
        }
        let rest = &text[at + sign.len_utf8()..];
        let (step, read) = match sign {
            '~' | '～' => back(rest),
            '@' | '＠' => then(rest, now),
            ':' | '：' => message(rest),
            _ => Err(ParseError { at: 0, expected: SIGN }),
        }
        .map_err(|stop| {
            let sign = if stop.expected == SIGN { 0 } else { sign.len_utf8() };
            ParseError { at: at + sign + stop.at, ..stop }
        })?;
        steps.push(step);
        at += sign.len_utf8() + read;
    }
    Ok(steps)
}

fn number(text: &str) -> Result<(Option<usize>, usize), ParseError> {
    let digits: String = text.chars().map_while(dates::digit).collect();
    let len = text.chars().take(digits.len()).map(char::len_utf8).sum();
    let number = match len {
        0 => None,
        _ => Some(digits.parse().map_err(|_| ParseError { at: 0, expected: NUMBER })?),
    };
    Ok((number, len))
}

fn back(text: &str) -> Result<(Step, usize), ParseError> {
    let (steps, len) = number(text)?;
    Ok((Step::Back(steps.unwrap_or(1)), len))
}

fn message(text: &str) -> Result<(Step, usize), ParseError> {
    let hash = text.len() - text.trim_start_matches('#').len();
    let (message, len) = number(&text[hash..])?;
    let message = message.ok_or(ParseError { at: hash, expected: NUMBER })?;
    Ok((Step::Message(message), hash + len))
}

/// Parses a date. A day without a time means the end of the day.
fn then(text: &str, now: DateTime<FixedOffset>) -> Result<(Step, usize), ParseError> {
    if let Some(braced) = text.strip_prefix('{') {
        let end = braced.find('}').ok_or(ParseError { at: text.len(), expected: BRACE })?;
        let date = dates::parse_end(&braced[..end], now);
        let date = date.map_err(|_| ParseError { at: 1, expected: DATE })?;
        return Ok((Step::Then(date), end + 2));
    }
    let signs = text.match_indices(SIGNS).map(|(at, _)| at);
    let ends = signs.chain([text.len()]).take_while(|end| *end <= LONGEST_DATE);
    let ends: Vec<_> = ends.collect();
    for end in ends.into_iter().rev() {
        if let Ok(date) = dates::parse_end(&text[..end], now) {
            return Ok((Step::Then(date), end));
        }
    }
    Err(ParseError { at: 0, expected: DATE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339("2026-11-15T18:30:00+01:00").unwrap()
    }

    fn read(text: &str) -> Result<Vec<Step>, ParseError> {
        steps(text, now())
    }

    fn date(text: &str) -> Step {
        Step::Then(dates::parse_end(text, now()).unwrap())
    }

    #[test]
    fn steps_of_a_moment_are_parsed() {
        for (text, expected) in [
            ("", vec![]),
            ("~", vec![Step::Back(1)]),
            ("~3~", vec![Step::Back(3), Step::Back(1)]),
            (":12", vec![Step::Message(12)]),
            (":#12", vec![Step::Message(12)]),
            ("@yesterday", vec![date("yesterday")]),
            ("@2 weeks ago~2", vec![date("2 weeks ago"), Step::Back(2)]),
            ("@2026-11-01 18:30", vec![date("2026-11-01 18:30")]),
            ("@2026-11-01T18:30:05+02:00", vec![date("2026-11-01T18:30:05+02:00")]),
            ("@yesterday:12", vec![date("yesterday"), Step::Message(12)]),
            ("@{2026-11-01 18:30}:12", vec![date("2026-11-01 18:30"), Step::Message(12)]),
            ("～２", vec![Step::Back(2)]),
            ("＠昨天：12", vec![date("yesterday"), Step::Message(12)]),
            ("@两周前~", vec![date("2 weeks ago"), Step::Back(1)]),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parse_error_has_position_and_expected_token() {
        for (text, at, expected) in [
            ("~2x", 2, SIGN),
            (":", 1, NUMBER),
            (":twelve", 1, NUMBER),
            (":12~1", 3, END),
            ("@soon", 1, DATE),
            ("~1@{2026-02-30}", 4, DATE),
            ("@{yesterday", 11, BRACE),
            ("~99999999999999999999999", 1, NUMBER),
            ("~日", 1, SIGN),
        ] {
            assert_eq!(read(text), Err(ParseError { at, expected }), "{text}");
        }
    }

    #[test]
    fn number_of_splits_is_limited_for_text_with_many_separators() {
        for sign in ["~", "@", ":", "@1 "] {
            let text = format!("x{}", sign.repeat(20_000));
            assert_eq!(splits(&text).count(), MOST_SIGNS + 1);
        }
    }

    #[test]
    fn first_split_of_a_moment_has_the_longest_name() {
        let all: Vec<_> = splits("Ana@18h30m~2").collect();
        assert_eq!(all, [("Ana@18h30m~2", ""), ("Ana@18h30m", "~2"), ("Ana", "@18h30m~2")]);
        assert_eq!(splits("~2").collect::<Vec<_>>(), [("~2", "")]);
        assert!(splits("").next().is_none());
    }
}
