//! The order in which snapshots were created.
//!
//! Times have a resolution of one second here, and clocks can be set back, so times alone do not
//! order snapshots. A [`Sequence`] does. It is a hybrid logical clock: the time of the operation,
//! and a counter. If the clock has not advanced since the previous operation, the new sequence is
//! that of the previous operation with its counter increased. All snapshots of one operation have
//! the same sequence.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    pub nth: u32,
}

impl Sequence {
    pub const FIRST: Self = Self { seconds: i64::MIN, nth: 0 };
    pub const LAST: Self = Self { seconds: i64::MAX, nth: u32::MAX };

    pub fn at(seconds: i64) -> Self {
        Self { seconds, nth: 0 }
    }

    pub fn after(previous: Option<Self>, seconds: i64) -> Self {
        match previous {
            Some(previous) if previous.seconds >= seconds => {
                Self { nth: previous.nth.saturating_add(1), ..previous }
            }
            _ => Self::at(seconds),
        }
    }

    /// Returns the sequence; `None` if it equals `Sequence::at(seconds)` and need not be stored.
    pub fn unless_at(self, seconds: i64) -> Option<Self> {
        (self != Self::at(seconds)).then_some(self)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seconds, self.nth)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a sequence: expected SECONDS.NTH")]
pub struct NotASequence;

impl FromStr for Sequence {
    type Err = NotASequence;

    /// Accepts only text that `Display` writes: no sign before a positive number, no leading zeros.
    fn from_str(text: &str) -> Result<Self, NotASequence> {
        let (seconds, nth) = text.split_once('.').ok_or(NotASequence)?;
        let seconds = seconds.parse().map_err(|_| NotASequence)?;
        let nth = nth.parse().map_err(|_| NotASequence)?;
        let sequence = Self { seconds, nth };
        if sequence.to_string() == text { Ok(sequence) } else { Err(NotASequence) }
    }
}

impl Serialize for Sequence {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sequence {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_advances_when_the_clock_does_not() {
        let first = Sequence::after(None, 100);
        let second = Sequence::after(Some(first), 100);
        let back = Sequence::after(Some(second), 40);
        let later = Sequence::after(Some(back), 101);
        assert_eq!(
            [first, second, back, later].map(|it| it.to_string()),
            ["100.0", "100.1", "100.2", "101.0"]
        );
        assert!(first < second && second < back && back < later);
        let last = Sequence { seconds: i64::MAX, nth: u32::MAX };
        assert_eq!(Sequence::after(Some(last), 0), last);
    }

    #[test]
    fn sequence_accepts_only_its_canonical_form() {
        for text in ["0.0", "1794700000.3", "-5.1", "9223372036854775807.4294967295"] {
            assert_eq!(text.parse::<Sequence>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "1",
            "1.",
            ".1",
            "+1.0",
            "01.0",
            "1.00",
            "1.-1",
            "1.4294967296",
            "1.0 ",
            "1.0.0",
            "-0.0",
        ] {
            assert!(text.parse::<Sequence>().is_err(), "{text}");
        }
    }
}
