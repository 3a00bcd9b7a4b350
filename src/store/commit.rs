//! Commits: a subject for people, trailers for the machine.

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::{Serialize, Serializer};

use super::{Error, ObjectId, Result, trailer};

/// A moment as git keeps it: seconds since 1970 and the offset from UTC where it was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Time {
    /// Returns the date and time of day, where the calendar has it.
    pub fn moment(self) -> Option<DateTime<FixedOffset>> {
        let zone = FixedOffset::east_opt(self.offset)?;
        Some(DateTime::from_timestamp(self.seconds, 0)?.with_timezone(&zone))
    }
}

/// RFC 3339.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        let text = self.moment().map(|moment| moment.to_rfc3339_opts(SecondsFormat::Secs, true));
        out.serialize_str(&text.unwrap_or_default())
    }
}

/// Serialises seconds since 1970 as RFC 3339 in UTC.
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
    /// The first line. Control characters become spaces, and white space at its ends goes.
    pub subject: String,
    /// Values are written as they are, but for line feeds; use [`trailer::encode`] for any text.
    pub trailers: Vec<(Cow<'static, str>, String)>,
}

#[derive(Clone, Debug)]
pub struct Commit {
    pub id: ObjectId,
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// The author's date.
    pub time: Time,
    /// The first line of the message.
    pub subject: String,
    /// The lines `Key: value` of the last paragraph, in order; see [`trailer::decode`].
    pub trailers: Vec<(String, String)>,
    /// Whether the message is UTF-8. If it is not, what cannot be read stands as U+FFFD.
    pub is_text: bool,
}

impl Commit {
    /// Returns the value of the trailer `key`, the first if there are more.
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

/// Git wants a name and a mail address; a snapshot has no author but the program.
const WHO: &str = "stvc <stvc@localhost>";

pub fn encode(commit: &NewCommit) -> Vec<u8> {
    let mut out = format!("tree {}\n", commit.tree);
    for parent in &commit.parents {
        out.push_str(&format!("parent {parent}\n"));
    }
    let Time { seconds, offset } = commit.time;
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs() / 60;
    // Git knows no time before 1970.
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

/// Replaces control characters by spaces: a user's message must not make a trailer.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}
