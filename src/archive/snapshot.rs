//! A snapshot as its commit tells it, without opening the tree.

use std::borrow::Cow;
use std::fmt;

use super::{Blake3, ContentId, Error, Manifest, Result};
use crate::st::{self, Chat, TimelineName};
use crate::store::{self, Commit, NewCommit, ObjectId, RefName, Time};

/// Names a snapshot: the id of its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotId(pub ObjectId);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a snapshot was taken. Later versions may know more kinds; they are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind(Cow<'static, str>);

impl Kind {
    /// The state of the files, by `stvc snapshot`.
    pub const SNAPSHOT: Kind = Kind(Cow::Borrowed("snapshot"));
    /// The same by `stvc watch` in the middle of the extension's work, which took too long to wait for.
    pub const AUTOSAVE: Kind = Kind(Cow::Borrowed("autosave"));
    /// A state on purpose at a message.
    pub const CHECKPOINT: Kind = Kind(Cow::Borrowed("checkpoint"));
    /// Taken in from a backup.
    pub const IMPORT: Kind = Kind(Cow::Borrowed("import"));
    /// Put together from what messages carry.
    pub const RECONSTRUCTED: Kind = Kind(Cow::Borrowed("reconstructed"));
    /// What was on disk before a restore overwrote it.
    pub const SAFETY: Kind = Kind(Cow::Borrowed("safety"));

    /// The word in the commit.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The branch of a timeline.
pub fn branch(timeline: &TimelineName) -> RefName {
    match timeline.folder() {
        Some(folder) => RefName::branch(["chats", folder, timeline.chat()]),
        None => RefName::branch(["group chats", timeline.chat()]),
    }
}

/// One snapshot.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// What it holds.
    pub content: ContentId,
    /// Its tree.
    pub tree: ObjectId,
    /// The snapshots it follows.
    pub parents: Vec<SnapshotId>,
    /// Whose state it is.
    pub timeline: TimelineName,
    /// Why it was taken.
    pub kind: Kind,
    /// How many messages the chat had.
    pub messages: u64,
    /// For the first of a fork: how many messages it shares with its parent.
    pub fork_at: Option<u64>,
    /// When the state was taken.
    pub time: Time,
    /// What it is called.
    pub subject: String,
    /// The lorebook's name.
    pub lorebook: Option<String>,
    /// The end of the last message, with its speaker.
    pub last_words: Option<String>,
    /// The chat that it says it was forked from.
    pub main_chat: Option<String>,
    /// What its timeline was called until this snapshot.
    pub renamed_from: Option<TimelineName>,
    /// Where its state comes from, if not from the timeline's own files.
    pub source: Option<String>,
}

const TIMELINE: &str = "Stvc-Timeline";
const KIND: &str = "Stvc-Kind";
const MESSAGES: &str = "Stvc-Messages";
const FORK_AT: &str = "Stvc-Fork-At";
const LOREBOOK: &str = "Stvc-Lorebook";
const LAST_WORDS: &str = "Stvc-Last-Words";
const MAIN_CHAT: &str = "Stvc-Main-Chat";
const RENAMED_FROM: &str = "Stvc-Renamed-From";
const SOURCE: &str = "Stvc-Source";

impl Snapshot {
    /// Read a commit.
    pub fn read(commit: &Commit) -> Result<Self> {
        let id = SnapshotId(commit.id);
        let missing = |why: &str| Error::NotASnapshot { id, why: why.into() };
        let number = |key: &str| commit.trailer(key).and_then(|text| text.parse::<u64>().ok());
        let content = commit.trailer(store::CONTENT_TRAILER).and_then(Blake3::from_hex);
        let timeline =
            commit.trailer(TIMELINE).and_then(|text| TimelineName::parse(&decode(text)).ok());
        Ok(Self {
            id,
            content: ContentId(content.ok_or_else(|| missing("it has no content id"))?),
            tree: commit.tree,
            parents: commit.parents.iter().copied().map(SnapshotId).collect(),
            timeline: timeline.ok_or_else(|| missing("it names no timeline"))?,
            kind: Kind(Cow::Owned(commit.trailer(KIND).unwrap_or("snapshot").to_owned())),
            messages: number(MESSAGES).ok_or_else(|| missing("it has no message count"))?,
            fork_at: number(FORK_AT),
            time: commit.time,
            subject: commit.subject.clone(),
            lorebook: commit.trailer(LOREBOOK).map(decode),
            last_words: commit.trailer(LAST_WORDS).map(str::to_owned),
            main_chat: commit.trailer(MAIN_CHAT).map(decode),
            renamed_from: commit
                .trailer(RENAMED_FROM)
                .and_then(|text| TimelineName::parse(&decode(text)).ok()),
            source: commit.trailer(SOURCE).map(decode),
        })
    }
}

/// The commit again, as another's successor: other parents, and a fork or none.
pub fn moved(commit: Commit, parents: Vec<ObjectId>, fork_at: Option<u64>) -> NewCommit {
    let mut new = NewCommit { parents, ..NewCommit::from(commit) };
    new.trailers.retain(|(key, _)| key != FORK_AT);
    match fork_at {
        Some(shared) => with_fork(new, shared),
        None => new,
    }
}

/// The commit as the first of a fork that shares so many messages with its parent.
pub fn with_fork(mut commit: NewCommit, shared: u64) -> NewCommit {
    commit.trailers.push((FORK_AT.into(), shared.to_string()));
    commit
}

/// What a new snapshot's commit is made of.
pub struct NewSnapshot<'a> {
    /// The manifest of its tree.
    pub manifest: &'a Manifest,
    /// The chat, for the last words.
    pub chat: &'a Chat<'a>,
    /// Its tree.
    pub tree: ObjectId,
    /// What it follows.
    pub parent: Option<SnapshotId>,
    /// What was joined with that.
    pub joined: Option<SnapshotId>,
    /// See [`Snapshot::fork_at`].
    pub fork_at: Option<u64>,
    /// See [`Snapshot::main_chat`].
    pub main_chat: Option<String>,
    /// See [`Snapshot::renamed_from`].
    pub renamed_from: Option<TimelineName>,
    /// See [`Snapshot::source`].
    pub source: Option<String>,
    /// Why it is taken.
    pub kind: Kind,
    /// When.
    pub time: Time,
    /// The user's words for it.
    pub message: Option<&'a str>,
}

impl NewSnapshot<'_> {
    /// The commit to write.
    pub fn commit(&self) -> NewCommit {
        let manifest = self.manifest;
        let chat_name = manifest.timeline.rsplit('/').next().unwrap_or_default();
        let subject = match self.message {
            Some(message) if !message.trim().is_empty() => message.to_owned(),
            _ => format!("{chat_name}: {}", plural(manifest.messages, "message", "messages")),
        };
        let lorebook = manifest.file(super::Role::Lorebook).and_then(|file| file.name.as_deref());
        let trailers = [
            (TIMELINE, Some(encode(&manifest.timeline))),
            (KIND, Some(self.kind.as_str().to_owned())),
            (MESSAGES, Some(manifest.messages.to_string())),
            (store::CONTENT_TRAILER, Some(manifest.content.to_string())),
            (FORK_AT, self.fork_at.map(|n| n.to_string())),
            (LOREBOOK, lorebook.map(encode)),
            (MAIN_CHAT, self.main_chat.as_deref().map(encode)),
            (RENAMED_FROM, self.renamed_from.as_ref().map(|name| encode(name.as_str()))),
            (SOURCE, self.source.as_deref().map(encode)),
            (LAST_WORDS, last_words(self.chat)),
        ];
        let trailers =
            trailers.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect();
        NewCommit {
            tree: self.tree,
            parents: self.parent.iter().chain(&self.joined).map(|parent| parent.0).collect(),
            time: self.time,
            subject,
            trailers,
        }
    }
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// How much of the last message stands in the commit.
const WORDS: usize = 80;

/// `Speaker: …the end of what was said`.
fn last_words(chat: &Chat<'_>) -> Option<String> {
    let message = chat.messages.iter().rev().find_map(|line| st::text_of(line))?;
    let text = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skip = text.chars().count().saturating_sub(WORDS);
    let end: String = text.chars().skip(skip).collect();
    let cut = if skip > 0 { "…" } else { "" };
    let speaker =
        if message.name.is_empty() { String::new() } else { format!("{}: ", message.name) };
    Some(format!("{speaker}{cut}{end}")).filter(|words| !words.is_empty())
}

/// A trailer is one line: control characters are percent-encoded, and so is the percent sign.
fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        // A space at either end would not survive.
        if c == '%' || c.is_control() || (c == ' ' && (out.is_empty() || value.ends_with(' '))) {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer)
                .bytes()
                .for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        } else {
            out.push(c);
        }
    }
    out
}

fn decode(value: &str) -> String {
    store::names::decode(value)
}
