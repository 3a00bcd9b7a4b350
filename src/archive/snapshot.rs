//! Data of a snapshot that its commit contains, so that the tree need not be read.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Serialize, Serializer};

use super::{Blake3, ContentId, Error, Manifest, Result, SnapshotId, State};
use crate::st::{self, Category, Chat, TimelineName};
use crate::store::commit::one_line;
use crate::store::{self, Commit, NewCommit, ObjectId, RefName, Sequence, Time, trailer};
use crate::words::count;

/// Reason why a snapshot was created. Kinds that only later versions of stvc know are preserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind(Cow<'static, str>);

impl Kind {
    /// State of the files on the disk.
    pub const SNAPSHOT: Kind = Kind(Cow::Borrowed("snapshot"));
    /// Created by `stvc watch` while ST-Auto-Recap was still working, because it did not finish in
    /// time.
    pub const AUTOSAVE: Kind = Kind(Cow::Borrowed("autosave"));
    /// Chat up to a message, created on request.
    pub const CHECKPOINT: Kind = Kind(Cow::Borrowed("checkpoint"));
    /// Imported from one of SillyTavern's own backups.
    pub const IMPORT: Kind = Kind(Cow::Borrowed("import"));
    /// Reconstructed from the data in messages.
    pub const RECONSTRUCTED: Kind = Kind(Cow::Borrowed("reconstructed"));
    /// State that was restored in place.
    pub const RESTORED: Kind = Kind(Cow::Borrowed("restored"));
    /// Last state of the timeline, stored again when its file was found deleted.
    pub const DELETED: Kind = Kind(Cow::Borrowed("deleted"));
    /// State of the files before a restore replaced them.
    pub const SAFETY: Kind = Kind(Cow::Borrowed("safety"));

    /// Returns the name that commits and JSON use.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub fn branch(timeline: &TimelineName) -> RefName {
    RefName::branch(timeline.as_str().split('/'))
}

/// Returns whether a ref with this name can be the branch of a timeline.
pub fn is_branch(name: &str) -> bool {
    const ROOTS: [&str; 6] =
        ["chats", "group%20chats", "worlds", "characters", "User%20Avatars", "groups"];
    let Some(place) = name.strip_prefix("refs/heads/") else { return false };
    let root = place.split_once('/').map(|(root, _)| root);
    place == "settings.json" || root.is_some_and(|root| ROOTS.contains(&root))
}

/// A snapshot, as its commit describes it. docs/json.md describes its JSON form.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Commit id in the store.
    pub id: SnapshotId,
    /// Id of the stored files, which is equal for snapshots of equal files.
    pub content: ContentId,
    /// Tree of the commit.
    #[serde(skip)]
    pub tree: ObjectId,
    /// Name of the timeline when the snapshot was created.
    pub timeline: TimelineName,
    /// Parents of the snapshot. The first parent is the previous snapshot of the timeline or, for
    /// the first snapshot of a fork, the snapshot it was forked from. A second parent was joined by
    /// a merge or a sync.
    pub parents: Vec<SnapshotId>,
    /// For the first snapshot of a fork: number of messages shared with the parent.
    pub fork_at: Option<u64>,
    /// Number of messages in the chat; 0 for other timelines.
    pub messages: u64,
    /// Number of entries, if the timeline is a lorebook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// The reason for which the snapshot was created.
    pub kind: Kind,
    /// Time at which the files had this state.
    pub time: Time,
    /// Position in the order of creation. `time` is not enough: clocks can be set back, and two
    /// snapshots can be created in one second.
    #[serde(skip)]
    pub sequence: Sequence,
    /// Sequence of the first forgotten snapshot, if snapshots between this one and its first parent
    /// were forgotten. Later changes of the lorebook are not moments of the parent.
    #[serde(skip)]
    pub parent_until: Option<Sequence>,
    /// First line of the commit message.
    pub subject: String,
    /// Name of the lorebook that is stored with the chat.
    pub lorebook: Option<String>,
    /// Name of the lorebook that the chat is bound to, if the snapshot does not contain the
    /// lorebook.
    #[serde(skip)]
    pub bound: Option<String>,
    /// Path of the chat's lorebook file, if the file existed but could not be read. The snapshot
    /// does not contain the lorebook in this case.
    #[serde(skip)]
    pub unread: Option<String>,
    /// Speaker and end of the last message.
    pub last_words: Option<String>,
    /// Name of the parent chat in the chat's metadata.
    pub main_chat: Option<String>,
    /// Former name of the timeline, if this is the first snapshot after a rename.
    pub renamed_from: Option<TimelineName>,
    /// Origin of the files, if they are not the timeline's own files: for example, the id of the
    /// restored snapshot.
    pub source: Option<String>,
}

/// Serialises only two fields of a snapshot: the id, as `snapshot`, and `time`.
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
    /// Reads a snapshot from its commit. An invalid trailer is an error, because two programs could
    /// interpret it differently.
    pub fn read(commit: &Commit) -> Result<Self> {
        let says = CommitReader(commit);
        let content = says.once(store::MARK_TRAILER)?.and_then(Blake3::from_hex);
        let content = content.ok_or_else(|| says.wrong("it has no content id"))?;
        let timeline = |key| says.parsed(key, |text| TimelineName::parse(&trailer::decode(text)));
        let sequence = |key| says.parsed(key, str::parse::<Sequence>);
        let messages = says.number(MESSAGES)?;
        let text = |key| says.once(key).map(|value| value.map(trailer::decode));
        Ok(Self {
            id: SnapshotId(commit.id),
            content: ContentId(content),
            tree: commit.tree,
            parents: commit.parents.iter().copied().map(SnapshotId).collect(),
            timeline: timeline(TIMELINE)?
                .ok_or_else(|| says.wrong("it does not name a timeline"))?,
            kind: Kind(Cow::Owned(says.once(KIND)?.unwrap_or("snapshot").to_owned())),
            messages: messages.ok_or_else(|| says.wrong("it has no message count"))?,
            entries: says.number(ENTRIES)?,
            fork_at: says.number(FORK_AT)?,
            time: commit.time,
            sequence: sequence(SEQUENCE)?.unwrap_or(Sequence::at(commit.time.seconds)),
            parent_until: sequence(PARENT_UNTIL)?,
            subject: commit.subject.clone(),
            lorebook: text(LOREBOOK)?,
            bound: text(BOUND)?,
            unread: text(UNREAD)?,
            last_words: says.once(LAST_WORDS)?.map(str::to_owned),
            main_chat: text(MAIN_CHAT)?,
            renamed_from: timeline(RENAMED_FROM)?,
            source: text(SOURCE)?,
        })
    }
}

struct CommitReader<'c>(&'c Commit);

impl<'c> CommitReader<'c> {
    fn wrong(&self, why: impl Into<String>) -> Error {
        Error::NotASnapshot { id: SnapshotId(self.0.id), why: why.into() }
    }

    /// Returns the value of a trailer, or `None` if the trailer is absent. A repeated trailer is an
    /// error, because its value would be ambiguous.
    fn once(&self, key: &str) -> Result<Option<&'c str>> {
        if !self.0.is_text {
            return Err(self.wrong("its message is not UTF-8"));
        }
        let mut values = self.0.trailers.iter().filter(|(name, _)| name == key);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.map(|(_, value)| value.as_str())),
            _ => Err(self.wrong(format!("its trailer {key} occurs twice"))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.once(key)? else { return Ok(None) };
        // `parse` alone would accept a plus sign.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.map(Some).ok_or_else(|| self.wrong(format!("its trailer {key} is not a number")))
    }

    fn parsed<T, E: Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> std::result::Result<T, E>,
    ) -> Result<Option<T>> {
        let parse =
            |text| parse(text).map_err(|error| self.wrong(format!("its trailer {key}: {error}")));
        self.once(key)?.map(parse).transpose()
    }
}

/// Returns a copy of the commit with other parents. `fork_at` replaces the fork point; `None`
/// removes it.
pub fn moved(commit: Commit, parents: Vec<ObjectId>, fork_at: Option<u64>) -> NewCommit {
    let mut new = NewCommit { parents, ..NewCommit::from(commit) };
    new.trailers.retain(|(key, _)| key != FORK_AT);
    match fork_at {
        Some(shared) => with_fork(new, shared),
        None => new,
    }
}

/// Sets [`Snapshot::parent_until`], because snapshots between the commit and its parent were
/// forgotten.
pub fn with_parent_until(mut commit: NewCommit, until: Sequence) -> NewCommit {
    commit.trailers.retain(|(key, _)| key != PARENT_UNTIL);
    commit.trailers.push((PARENT_UNTIL.into(), until.to_string()));
    commit
}

/// Returns the commit as the first snapshot of a fork that shares `shared` messages with its
/// parent.
pub fn with_fork(mut commit: NewCommit, shared: u64) -> NewCommit {
    commit.trailers.push((FORK_AT.into(), shared.to_string()));
    commit
}

/// Data for the commit of a new snapshot that follows from its files. Fields have the same meaning
/// as in [`Snapshot`].
pub struct NewSnapshot {
    pub manifest: Manifest,
    pub kind: Kind,
    pub time: Time,
    entries: Option<usize>,
    bound: Option<String>,
    unread: Option<String>,
    last_words: Option<String>,
    main_chat: Option<String>,
}

/// Position of a new snapshot in the history. Fields have the same meaning as in [`Snapshot`].
#[derive(Default)]
pub struct Ancestry {
    pub parent: Option<SnapshotId>,
    /// Second parent, which a merge or a sync joined.
    pub joined: Option<SnapshotId>,
    pub fork_at: Option<u64>,
    pub renamed_from: Option<TimelineName>,
    pub source: Option<String>,
    /// `None` if the order of creation follows from the time.
    pub sequence: Option<Sequence>,
}

impl NewSnapshot {
    pub fn of(state: &State<'_>, kind: Kind, time: Time) -> Self {
        let metadata = state.files.metadata(&state.chat);
        let has_book = state.manifest.bound_book().is_some();
        let unread = state.files.lorebook.as_ref().filter(|book| book.unread.is_some());
        Self {
            manifest: state.manifest.clone(),
            kind,
            time,
            entries: match state.timeline().category() {
                Category::Lorebook => Some(st::entries(&state.files.main.bytes).len()),
                _ => None,
            },
            bound: metadata.and_then(st::lorebook_name).filter(|_| !has_book),
            unread: unread.and_then(|book| book.path.as_ref()).map(|path| path.to_string()),
            last_words: last_words(&state.chat),
            main_chat: metadata.and_then(st::main_chat),
        }
    }

    /// Returns the commit for the tree of the state. `message` was given by the user and is used as
    /// the subject; without it, a subject is generated.
    pub fn commit(self, tree: ObjectId, ancestry: Ancestry, message: Option<&str>) -> NewCommit {
        let manifest = &self.manifest;
        let chat_name = manifest.timeline.rsplit('/').next().unwrap_or_default();
        let subject = match message {
            Some(message) if !message.trim().is_empty() => message.to_owned(),
            _ if manifest.main_role() != super::Role::Chat => self.other_subject(chat_name),
            _ => format!("{chat_name}: {}", count(manifest.messages, "message")),
        };
        let Ancestry { parent, joined, fork_at, renamed_from, source, sequence } = ancestry;
        let sequence = sequence.and_then(|sequence| sequence.unless_at(self.time.seconds));
        let text = |text: Option<String>| text.map(|text| trailer::encode(&text));
        let trailers = [
            (TIMELINE, Some(trailer::encode(&manifest.timeline))),
            (KIND, Some(self.kind.as_str().to_owned())),
            (MESSAGES, Some(manifest.messages.to_string())),
            (store::MARK_TRAILER, Some(manifest.content.to_string())),
            (ENTRIES, self.entries.map(|n| n.to_string())),
            (FORK_AT, fork_at.map(|n| n.to_string())),
            (SEQUENCE, sequence.map(|it| it.to_string())),
            (LOREBOOK, manifest.bound_book().map(trailer::encode)),
            (BOUND, text(self.bound)),
            (UNREAD, text(self.unread)),
            (MAIN_CHAT, text(self.main_chat)),
            (RENAMED_FROM, text(renamed_from.map(String::from))),
            (SOURCE, text(source)),
            (LAST_WORDS, self.last_words),
        ];
        let trailers = trailers.into_iter().filter_map(|(key, value)| Some((key.into(), value?)));
        NewCommit {
            tree,
            parents: parent.iter().chain(&joined).map(|parent| parent.0).collect(),
            time: self.time,
            subject,
            trailers: trailers.collect(),
        }
    }

    fn other_subject(&self, name: &str) -> String {
        let category = TimelineName::parse(&self.manifest.timeline).map(|name| name.category());
        match category {
            Ok(Category::Lorebook) => {
                format!("{name}: {}", count(self.entries.unwrap_or(0), "entry"))
            }
            Ok(Category::Card) => format!("{name}: character"),
            Ok(Category::Persona) => format!("{name}: persona picture"),
            Ok(Category::Group) => format!("{name}: group"),
            _ => name.to_owned(),
        }
    }
}

/// Maximum number of characters of the last message in the commit.
const WORDS: usize = 80;

/// Returns `Speaker: …end of the message`, which is stored in the commit for people to read.
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

    /// Parses a commit with these trailers.
    fn read(trailers: &[(&'static str, &str)]) -> Result<Snapshot> {
        let trailers =
            trailers.iter().map(|(key, value)| ((*key).into(), (*value).to_owned())).collect();
        let time = Time { seconds: 0, offset: 0 };
        let subject = "subject".to_owned();
        let new = NewCommit { tree: nobody(), parents: Vec::new(), time, subject, trailers };
        Snapshot::read(&commit::decode(nobody(), &commit::encode(&new))?)
    }

    /// Returns the three trailers that a snapshot requires, followed by `more`.
    fn with<'a>(more: &[(&'static str, &'a str)]) -> Vec<(&'static str, &'a str)> {
        const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";
        let least = [(MESSAGES, "1"), (TIMELINE, "chats/a/b"), (store::MARK_TRAILER, HASH)];
        [&least, more].concat()
    }

    #[test]
    fn snapshot_requires_three_trailers_and_ignores_unknown_ones() {
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
    fn commit_with_duplicate_or_malformed_trailers_is_not_a_snapshot() {
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
        fn names_in_commit_trailers_round_trip(
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
