//! Encodes and decodes commits. The subject of a commit is for people, its trailers are for stvc.

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::{Serialize, Serializer};

use super::{Error, ObjectId, Result, trailer};

/// A time as git stores it: seconds since 1970 and the offset from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Time {
    /// Returns the date and time of day; `None` if the year or the offset is out of range.
    pub fn moment(self) -> Option<DateTime<FixedOffset>> {
        let zone = FixedOffset::east_opt(self.offset)?;
        Some(DateTime::from_timestamp(self.seconds, 0)?.with_timezone(&zone))
    }
}

/// Serialises the time as RFC 3339; a time out of range as an empty string.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        let text = self.moment().map(|moment| moment.to_rfc3339_opts(SecondsFormat::Secs, true));
        out.serialize_str(&text.unwrap_or_default())
    }
}

/// Serialises seconds since 1970 as RFC 3339 in UTC; a time out of range as `null`.
pub(crate) fn in_utc<S: Serializer>(
    it: &Option<i64>,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    let time = it.map(|seconds| Time { seconds, offset: 0 });
    time.filter(|time| time.moment().is_some()).serialize(out)
}

#[derive(Clone, Debug)]
pub struct NewCommit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// Author's and committer's date.
    pub time: Time,
    /// First line of the message. [`encode`] trims it and replaces control characters by spaces.
    pub subject: String,
    /// Keys and values of the trailers. [`encode`] replaces line feeds and NULs in values by
    /// spaces; use [`trailer::encode`] for arbitrary text.
    pub trailers: Vec<(Cow<'static, str>, String)>,
}

#[derive(Clone, Debug)]
pub struct Commit {
    pub id: ObjectId,
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub time: Time,
    pub subject: String,
    /// Lines `Key: value` of the last paragraph, in order. Values may be encoded: see
    /// [`trailer::decode`].
    pub trailers: Vec<(String, String)>,
    /// Whether the message is UTF-8. If not, `subject` and `trailers` contain U+FFFD in place of
    /// the invalid bytes.
    pub is_text: bool,
}

impl Commit {
    /// Returns the value of the first trailer with this key.
    pub fn trailer(&self, key: &str) -> Option<&str> {
        self.trailers.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl From<Commit> for NewCommit {
    fn from(commit: Commit) -> Self {
        Self {
            tree: commit.tree,
            parents: commit.parents,
            time: commit.time,
            subject: commit.subject,
            trailers: commit.trailers.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        }
    }
}

/// Author and committer of every commit. Git requires a name and a mail address.
const WHO: &str = "stvc <stvc@localhost>";

pub fn encode(commit: &NewCommit) -> Vec<u8> {
    let mut out = format!("tree {}\n", commit.tree);
    for parent in &commit.parents {
        out.push_str(&format!("parent {parent}\n"));
    }
    let Time { seconds, offset } = commit.time;
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs() / 60;
    // Git does not support times before 1970: they are replaced by 1970.
    let when = format!("{} {sign}{:02}{:02}", seconds.max(0), minutes / 60, minutes % 60);
    out.push_str(&format!("author {WHO} {when}\ncommitter {WHO} {when}\n\n"));
    let subject = one_line(&commit.subject);
    out.push_str(if subject.is_empty() { "snapshot" } else { &subject });
    out.push_str("\n\n");
    for (key, value) in &commit.trailers {
        out.push_str(&format!("{key}: {}\n", value.replace(['\n', '\0'], " ")));
    }
    out.into_bytes()
}

pub fn decode(id: ObjectId, bytes: &[u8]) -> Result<Commit> {
    let damaged = |why: String| Error::Damaged { id, why };
    let commit = gix::objs::CommitRef::from_bytes(bytes, gix::hash::Kind::Sha1)
        .map_err(|error| damaged(error.to_string()))?;
    let time = commit.author().map_err(|error| damaged(error.to_string()))?;
    let time = time.time().map_err(|error| damaged(error.to_string()))?;
    let message = String::from_utf8_lossy(commit.message);
    let subject = message.split('\n').next().unwrap_or_default();
    Ok(Commit {
        id,
        tree: commit.tree(),
        parents: commit.parents().collect(),
        time: Time { seconds: time.seconds, offset: time.offset },
        subject: subject.to_owned(),
        trailers: trailer::parse(&message),
        is_text: matches!(message, Cow::Borrowed(_)),
    })
}

/// Trims the text and replaces control characters by spaces. A line feed in a user's message could
/// otherwise begin a forged trailer.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}
