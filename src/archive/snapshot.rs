//! A snapshot as its commit tells it, without opening the tree.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Blake3, ContentId, Error, Manifest, Result, SnapshotId, State};
use crate::st::{self, Category, Chat, TimelineName};
use crate::store::commit::one_line;
use crate::store::{self, Commit, NewCommit, ObjectId, RefName, Sequence, Time, trailer};

/// Why a snapshot was created. Kinds of later versions are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind(Cow<'static, str>);

impl Kind {
    /// The state of the files, by `stvc snapshot`.
    pub const SNAPSHOT: Kind = Kind(Cow::Borrowed("snapshot"));
    /// Created by `stvc watch` while ST-Auto-Recap was at work, which took too long to wait for.
    pub const AUTOSAVE: Kind = Kind(Cow::Borrowed("autosave"));
    /// A state on purpose at a message.
    pub const CHECKPOINT: Kind = Kind(Cow::Borrowed("checkpoint"));
    /// Taken in from a backup.
    pub const IMPORT: Kind = Kind(Cow::Borrowed("import"));
    /// Put together from what messages carry.
    pub const RECONSTRUCTED: Kind = Kind(Cow::Borrowed("reconstructed"));
    /// A state that was brought back in place.
    pub const RESTORED: Kind = Kind(Cow::Borrowed("restored"));
    /// The timeline's last state, when its file was found deleted.
    pub const DELETED: Kind = Kind(Cow::Borrowed("deleted"));
    /// The files before a restore replaced them.
    pub const SAFETY: Kind = Kind(Cow::Borrowed("safety"));

    /// Returns the name that commits and JSON use.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub fn branch(timeline: &TimelineName) -> RefName {
    RefName::branch(timeline.as_str().split('/'))
}

/// Whether a ref of that name can be a timeline's branch.
pub fn is_branch(name: &str) -> bool {
    const ROOTS: [&str; 6] =
        ["chats", "group%20chats", "worlds", "characters", "User%20Avatars", "groups"];
    let Some(place) = name.strip_prefix("refs/heads/") else { return false };
    let root = place.split_once('/').map(|(root, _)| root);
    place == "settings.json" || root.is_some_and(|root| ROOTS.contains(&root))
}

/// A snapshot; as JSON it is the line that docs/json.md describes.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    pub content: ContentId,
    #[serde(skip)]
    pub tree: ObjectId,
    pub timeline: TimelineName,
    /// The snapshots it follows.
    pub parents: Vec<SnapshotId>,
    /// For the first of a fork: how many messages it shares with its parent.
    pub fork_at: Option<u64>,
    pub messages: u64,
    /// The number of entries of a lorebook that is a timeline of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    pub kind: Kind,
    pub time: Time,
    /// Its position in the order of creation, which the clock alone does not give.
    #[serde(skip)]
    pub sequence: Sequence,
    /// Where the moments of its parent end, if snapshots between them were forgotten.
    #[serde(skip)]
    pub parent_until: Option<Sequence>,
    /// The first line of its message.
    pub subject: String,
    pub lorebook: Option<String>,
    /// The bound lorebook, if the snapshot does not have it.
    #[serde(skip)]
    pub bound: Option<String>,
    /// The lorebook file that could not be read, so that the snapshot has the chat alone.
    #[serde(skip)]
    pub unread: Option<String>,
    /// The end of the last message, with its speaker.
    pub last_words: Option<String>,
    /// The chat that it says it was forked from.
    pub main_chat: Option<String>,
    /// The timeline's name before this snapshot.
    pub renamed_from: Option<TimelineName>,
    /// The source of its state, if not the timeline's own files.
    pub source: Option<String>,
}

/// Serialises a part of a JSON object: the id as `snapshot`, and `time`.
pub(crate) fn id_and_time<S: Serializer>(
    snapshot: &Snapshot,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts {
        snapshot: SnapshotId,
        time: Time,
    }
    Parts { snapshot: snapshot.id, time: snapshot.time }.serialize(out)
}

pub(crate) fn id_if_any<S: Serializer>(
    it: &Option<Snapshot>,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    it.as_ref().map(|snapshot| snapshot.id).serialize(out)
}

const TIMELINE: &str = "Stvc-Timeline";
const KIND: &str = "Stvc-Kind";
const MESSAGES: &str = "Stvc-Messages";
const ENTRIES: &str = "Stvc-Entries";
const FORK_AT: &str = "Stvc-Fork-At";
const SEQUENCE: &str = "Stvc-Sequence";
const PARENT_UNTIL: &str = "Stvc-Parent-Until";
const LOREBOOK: &str = "Stvc-Lorebook";
const BOUND: &str = "Stvc-Bound";
const UNREAD: &str = "Stvc-Unread";
const LAST_WORDS: &str = "Stvc-Last-Words";
const MAIN_CHAT: &str = "Stvc-Main-Chat";
const RENAMED_FROM: &str = "Stvc-Renamed-From";
const SOURCE: &str = "Stvc-Source";

impl Snapshot {
    /// Reads a commit. Every trailer must be valid, or two readers could understand it differently.
    pub fn read(commit: &Commit) -> Result<Self> {
        let says = Says(commit);
        let content = says.once(store::MARK_TRAILER)?.and_then(Blake3::from_hex);
        let content = content.ok_or_else(|| says.wrong("it has no content id"))?;
        let timeline = says.timeline(TIMELINE)?;
        let messages = says.number(MESSAGES)?;
        let text = |key| says.once(key).map(|value| value.map(trailer::decode));
        Ok(Self {
            id: SnapshotId(commit.id),
            content: ContentId(content),
            tree: commit.tree,
            parents: commit.parents.iter().copied().map(SnapshotId).collect(),
            timeline: timeline.ok_or_else(|| says.wrong("it names no timeline"))?,
            kind: Kind(Cow::Owned(says.once(KIND)?.unwrap_or("snapshot").to_owned())),
            messages: messages.ok_or_else(|| says.wrong("it has no message count"))?,
            entries: says.number(ENTRIES)?,
            fork_at: says.number(FORK_AT)?,
            time: commit.time,
            sequence: says.sequence(SEQUENCE)?.unwrap_or(Sequence::at(commit.time.seconds)),
            parent_until: says.sequence(PARENT_UNTIL)?,
            subject: commit.subject.clone(),
            lorebook: text(LOREBOOK)?,
            bound: text(BOUND)?,
            unread: text(UNREAD)?,
            last_words: says.once(LAST_WORDS)?.map(str::to_owned),
            main_chat: text(MAIN_CHAT)?,
            renamed_from: says.timeline(RENAMED_FROM)?,
            source: text(SOURCE)?,
        })
    }
}

struct Says<'c>(&'c Commit);

impl<'c> Says<'c> {
    fn wrong(&self, why: impl Into<String>) -> Error {
        Error::NotASnapshot { id: SnapshotId(self.0.id), why: why.into() }
    }

    /// Returns the value of a trailer, which must not be there twice: which one would count?
    fn once(&self, key: &str) -> Result<Option<&'c str>> {
        if !self.0.is_text {
            return Err(self.wrong("its message is not UTF-8"));
        }
        let mut values = self.0.trailers.iter().filter(|(name, _)| name == key);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.map(|(_, value)| value.as_str())),
            _ => Err(self.wrong(format!("its trailer {key} is there twice"))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.once(key)? else { return Ok(None) };
        // `parse` alone takes a plus sign, too.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.map(Some).ok_or_else(|| self.wrong(format!("its trailer {key} is no number")))
    }

    fn sequence(&self, key: &str) -> Result<Option<Sequence>> {
        let Some(text) = self.once(key)? else { return Ok(None) };
        let sequence = text.parse();
        sequence.map(Some).map_err(|error| self.wrong(format!("its trailer {key}: {error}")))
    }

    fn timeline(&self, key: &str) -> Result<Option<TimelineName>> {
        let Some(text) = self.once(key)? else { return Ok(None) };
        let name = TimelineName::parse(&trailer::decode(text));
        name.map(Some).map_err(|error| self.wrong(format!("its trailer {key}: {error}")))
    }
}

/// Returns the commit again, as another's successor: other parents, and a fork or none.
pub fn moved(commit: Commit, parents: Vec<ObjectId>, fork_at: Option<u64>) -> NewCommit {
    let mut new = NewCommit { parents, ..NewCommit::from(commit) };
    new.trailers.retain(|(key, _)| key != FORK_AT);
    match fork_at {
        Some(shared) => with_fork(new, shared),
        None => new,
    }
}

/// Sets where the moments of the parent end, if snapshots between them were forgotten.
pub fn with_parent_until(mut commit: NewCommit, until: Sequence) -> NewCommit {
    commit.trailers.retain(|(key, _)| key != PARENT_UNTIL);
    commit.trailers.push((PARENT_UNTIL.into(), until.to_string()));
    commit
}

/// Returns the commit as the first of a fork that shares so many messages with its parent.
pub fn with_fork(mut commit: NewCommit, shared: u64) -> NewCommit {
    commit.trailers.push((FORK_AT.into(), shared.to_string()));
    commit
}

/// The content of a new snapshot's commit, besides its tree. Fields are those of [`Snapshot`].
pub struct NewSnapshot<'a> {
    pub manifest: Manifest,
    pub last_words: Option<String>,
    pub entries: Option<usize>,
    pub parent: Option<SnapshotId>,
    /// The second parent of a merge.
    pub joined: Option<SnapshotId>,
    pub fork_at: Option<u64>,
    pub bound: Option<String>,
    pub unread: Option<String>,
    pub main_chat: Option<String>,
    pub renamed_from: Option<TimelineName>,
    pub source: Option<String>,
    pub kind: Kind,
    pub time: Time,
    pub sequence: Sequence,
    /// The user's message.
    pub message: Option<&'a str>,
}

impl<'a> NewSnapshot<'a> {
    /// One of this state that follows nothing yet.
    pub fn of(state: &State<'_>, kind: Kind, time: Time) -> Self {
        let metadata = state.files.metadata(&state.chat);
        let has_book = state.manifest.bound_book().is_some();
        let unread = state.files.lorebook.as_ref().filter(|book| book.unread.is_some());
        Self {
            manifest: state.manifest.clone(),
            last_words: last_words(&state.chat),
            entries: match state.timeline().category() {
                Category::Lorebook => Some(st::entries(&state.files.main.bytes).len()),
                _ => None,
            },
            parent: None,
            joined: None,
            fork_at: None,
            bound: metadata.and_then(st::lorebook_name).filter(|_| !has_book),
            unread: unread.and_then(|book| book.path.as_ref()).map(|path| path.to_string()),
            main_chat: metadata.and_then(st::main_chat),
            renamed_from: None,
            source: None,
            kind,
            time,
            sequence: Sequence::at(time.seconds),
            message: None,
        }
    }

    /// Returns the commit of the state's tree.
    pub fn commit(self, tree: ObjectId) -> NewCommit {
        let manifest = &self.manifest;
        let chat_name = manifest.timeline.rsplit('/').next().unwrap_or_default();
        let subject = match self.message {
            Some(message) if !message.trim().is_empty() => message.to_owned(),
            _ if manifest.main_role() != super::Role::Chat => self.other_subject(chat_name),
            _ if manifest.messages == 1 => format!("{chat_name}: 1 message"),
            _ => format!("{chat_name}: {} messages", manifest.messages),
        };
        let trailers = [
            (TIMELINE, Some(trailer::encode(&manifest.timeline))),
            (KIND, Some(self.kind.as_str().to_owned())),
            (MESSAGES, Some(manifest.messages.to_string())),
            (store::MARK_TRAILER, Some(manifest.content.to_string())),
            (ENTRIES, self.entries.map(|n| n.to_string())),
            (FORK_AT, self.fork_at.map(|n| n.to_string())),
            (SEQUENCE, self.sequence.unless_at(self.time.seconds).map(|it| it.to_string())),
            (LOREBOOK, manifest.bound_book().map(trailer::encode)),
            (BOUND, self.bound.as_deref().map(trailer::encode)),
            (UNREAD, self.unread.as_deref().map(trailer::encode)),
            (MAIN_CHAT, self.main_chat.as_deref().map(trailer::encode)),
            (RENAMED_FROM, self.renamed_from.as_ref().map(|name| trailer::encode(name.as_str()))),
            (SOURCE, self.source.as_deref().map(trailer::encode)),
            (LAST_WORDS, self.last_words),
        ];
        let trailers =
            trailers.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect();
        NewCommit {
            tree,
            parents: self.parent.iter().chain(&self.joined).map(|parent| parent.0).collect(),
            time: self.time,
            subject,
            trailers,
        }
    }

    fn other_subject(&self, name: &str) -> String {
        let category = TimelineName::parse(&self.manifest.timeline).map(|name| name.category());
        match category {
            Ok(Category::Lorebook) => match self.entries.unwrap_or(0) {
                1 => format!("{name}: 1 entry"),
                entries => format!("{name}: {entries} entries"),
            },
            Ok(Category::Card) => format!("{name}: character"),
            Ok(Category::Persona) => format!("{name}: persona picture"),
            Ok(Category::Group) => format!("{name}: group"),
            _ => name.to_owned(),
        }
    }
}

/// Characters of the last message in the commit.
const WORDS: usize = 80;

/// `Speaker: …the end of what was said`: words for people, which stand in the commit as they are.
fn last_words(chat: &Chat<'_>) -> Option<String> {
    let message = chat.messages.iter().rev().find_map(|line| st::text_of(line))?;
    let text = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skip = text.chars().count().saturating_sub(WORDS);
    let end: String = text.chars().skip(skip).collect();
    let cut = if skip > 0 { "…" } else { "" };
    let speaker =
        if message.name.is_empty() { String::new() } else { format!("{}: ", message.name) };
    Some(one_line(&format!("{speaker}{cut}{end}"))).filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::commit;
    use proptest::prelude::*;

    fn nobody() -> ObjectId {
        ObjectId::from_hex("0".repeat(40).as_bytes()).unwrap()
    }

    /// What is read of a commit with these trailers.
    fn read(trailers: &[(&'static str, &str)]) -> Result<Snapshot> {
        let trailers =
            trailers.iter().map(|(key, value)| ((*key).into(), (*value).to_owned())).collect();
        let time = Time { seconds: 0, offset: 0 };
        let subject = "subject".to_owned();
        let new = NewCommit { tree: nobody(), parents: Vec::new(), time, subject, trailers };
        Snapshot::read(&commit::decode(nobody(), &commit::encode(&new))?)
    }

    /// The three that make a snapshot, and more.
    fn with<'a>(more: &[(&'static str, &'a str)]) -> Vec<(&'static str, &'a str)> {
        const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";
        let least = [(MESSAGES, "1"), (TIMELINE, "chats/a/b"), (store::MARK_TRAILER, HASH)];
        [&least, more].concat()
    }

    #[test]
    fn three_trailers_make_a_snapshot() {
        let least = with(&[]);
        let snapshot = read(&least).unwrap();
        assert_eq!((snapshot.kind, snapshot.messages), (Kind::SNAPSHOT, 1));
        for missing in 0..3 {
            let mut less = least.clone();
            less.remove(missing);
            assert!(read(&less).is_err());
        }
        let more = [("Reviewed-By", "x"), ("Stvc-Mood", "sunny"), (KIND, "later")];
        assert_eq!(read(&with(&more)).unwrap().kind.as_str(), "later");
    }

    #[test]
    fn what_could_be_taken_in_two_ways_is_no_snapshot() {
        for (key, value) in [
            (MESSAGES, "1"),
            (TIMELINE, "chats/a/c"),
            (FORK_AT, "x"),
            (FORK_AT, "+1"),
            (FORK_AT, ""),
            (FORK_AT, "18446744073709551616"),
            (SEQUENCE, "1"),
            (SEQUENCE, "1.00"),
            (SEQUENCE, "+1.0"),
            (PARENT_UNTIL, "x"),
            (RENAMED_FROM, "chats/a"),
            (RENAMED_FROM, "chats/../a"),
        ] {
            assert!(read(&with(&[(key, value)])).is_err(), "{key}: {value}");
        }
        let twice = [(LOREBOOK, "a"), (LOREBOOK, "a")];
        assert!(read(&with(&twice)).is_err());
        let mut bytes =
            b"tree 0000000000000000000000000000000000000000\nauthor a <a> 0 +0000\n".to_vec();
        bytes.extend(b"committer a <a> 0 +0000\n\n\xff\n\nStvc-Messages: 1\n");
        let commit = commit::decode(nobody(), &bytes).unwrap();
        let why = Snapshot::read(&commit).unwrap_err().to_string();
        assert!(why.contains("not UTF-8"), "{why}");
    }

    proptest! {
        #[test]
        fn names_come_back_from_a_commit(
            folder in "[^/\\\\\0]{1,20}", name in "[^/\\\\\0]{1,20}|[ \u{3000}\u{a0}\u{2028}\u{85}%]{1,3}",
            book in any::<String>(), blank in "[ \u{3000}\u{2028}\u{feff}]{0,2}",
        ) {
            prop_assume!(![".", ".."].contains(&folder.as_str()) && ![".", ".."].contains(&name.as_str()));
            let timeline = TimelineName::solo(&folder, &name).unwrap();
            let group = TimelineName::group(&name).unwrap();
            let (here, there) = (trailer::encode(timeline.as_str()), trailer::encode(group.as_str()));
            let (book_value, blank_value) = (trailer::encode(&book), trailer::encode(&blank));
            let mut trailers = with(&[(RENAMED_FROM, &there), (LOREBOOK, &book_value), (SOURCE, &blank_value)]);
            trailers[1].1 = &here;
            let snapshot = read(&trailers).unwrap();
            prop_assert_eq!(snapshot.timeline, timeline);
            prop_assert_eq!(snapshot.renamed_from, Some(group));
            prop_assert_eq!(snapshot.lorebook, Some(book));
            prop_assert_eq!(snapshot.source, Some(blank));
        }
    }
}
