//! Reads the messages of a snapshot as text for a person.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::archive::{Attachment, Blake3, Snapshot, Tree};
use crate::durable;
use crate::engine::{self, Workspace};
use crate::history::at_message::message_not_found;
use crate::history::moment::Moment;
use crate::st::{self, LibraryPath, Message};
use crate::store::{self, Loss, ObjectId, Reader};
use crate::verbs::Result;

/// Messages to read.
#[derive(Clone, Debug, Deserialize)]
pub struct Options {
    /// Name of the moment to read.
    pub snapshot: String,
    /// Numbers of the messages. `None` selects all messages.
    #[serde(skip)]
    pub messages: Option<RangeInclusive<usize>>,
    /// Also return messages that are hidden from the prompt. If `messages` is given, hidden
    /// messages are always returned.
    #[serde(skip)]
    pub with_hidden: bool,
}

/// A message in the form that is shown to the user.
#[derive(Default, Serialize)]
pub struct SpokenMessage {
    /// Number of the message, counting from 0.
    #[serde(rename = "index")]
    pub number: usize,
    /// Name of the character or persona who said it.
    pub name: String,
    /// Whether the user said it.
    #[serde(rename = "user")]
    pub is_user: bool,
    /// Whether it is hidden from the prompt.
    #[serde(rename = "hidden")]
    pub is_hidden: bool,
    /// Date of the message, in seconds since 1970.
    #[serde(serialize_with = "store::in_utc")]
    pub said: Option<i64>,
    /// The displayed text.
    pub text: String,
    /// Texts of all swipes. `shown` is the index of the displayed swipe.
    pub swipes: Vec<String>,
    /// Index of the displayed text in `swipes`.
    #[serde(rename = "swipe")]
    pub shown: Option<usize>,
    /// Reasoning that the model returned with the text.
    pub reasoning: Option<String>,
    /// Name of the card of the character who said it.
    pub character: Option<String>,
    /// Files that SillyTavern displays with the text.
    pub attachments: Vec<DisplayedFile>,
}

/// A file that SillyTavern displays with a message.
#[derive(Clone, Serialize)]
pub struct DisplayedFile {
    /// Where the file was in the library.
    pub path: LibraryPath,
    /// Its length and hash; `None` if the snapshot does not contain the file.
    #[serde(flatten)]
    pub stored: Option<StoredFile>,
}

/// Length and hash of a file in a snapshot.
#[derive(Clone, Copy, Serialize)]
pub struct StoredFile {
    /// Length of the file.
    pub bytes: u64,
    /// Hash of the file.
    pub blake3: Blake3,
}

/// The requested messages of a snapshot.
#[non_exhaustive]
pub struct Report {
    /// The snapshot that was read.
    pub snapshot: Snapshot,
    /// The requested messages, in order.
    pub messages: Vec<SpokenMessage>,
    /// Number of messages in the moment.
    pub total: usize,
    /// Number of hidden messages that were omitted.
    pub hidden: usize,
    /// Descriptions of messages that the store has lost.
    pub broken: Vec<String>,
}

/// Reads the requested messages. Other messages are not read from the store.
pub fn read(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let Moment { snapshot, upto, .. } = workspace.moment(&options.snapshot, &store)?;
    let reader = store.reader();
    let tree = Tree::open(&reader, snapshot.tree)?;
    let all = tree.messages();
    let all =
        &all[..upto.message().map_or(all.len(), |last| all.len().min(last.saturating_add(1)))];
    let wanted = match &options.messages {
        Some(wanted) if *wanted.start() >= all.len() => {
            let finding = message_not_found(&snapshot.timeline, all.len(), *wanted.start());
            return Err(engine::Error::refused(finding).into());
        }
        Some(wanted) => *wanted.start()..all.len().min(wanted.end().saturating_add(1)),
        None => 0..all.len(),
    };
    let with_hidden = options.with_hidden || options.messages.is_some();
    let mut report = read_listed(&reader, snapshot, all, wanted)?;
    if !with_hidden {
        let before = report.messages.len();
        report.messages.retain(|message| !message.is_hidden);
        report.hidden = before - report.messages.len();
    }
    Ok(report)
}

/// Reads the messages with these numbers, of a snapshot whose messages are `all`.
pub(crate) fn read_listed(
    reader: &Reader,
    snapshot: Snapshot,
    all: &[ObjectId],
    wanted: Range<usize>,
) -> Result<Report> {
    let (messages, broken) = Default::default();
    let mut report = Report { snapshot, messages, total: all.len(), hidden: 0, broken };
    let mut files = StoredFiles { reader, tree: report.snapshot.tree, known: None };
    for number in wanted {
        let found = one(reader, number, all[number]);
        let found = found.map(|found| found.map(|line| line.shown(&report.snapshot, &mut files)));
        match found {
            Ok(message) => report.messages.extend(message),
            Err(error) if error.is_loss() => report.broken.push(format!("#{number}: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(report)
}

/// Writes exported messages to a new file. Fails if the file exists.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = durable::write(path, bytes, durable::Existing::Keep);
    written.map_err(|source| store::Error::Io { path: path.to_owned(), source }.into())
}

/// The files in a snapshot, which are listed when the first one is looked up.
struct StoredFiles<'r> {
    reader: &'r Reader,
    tree: ObjectId,
    known: Option<HashMap<LibraryPath, StoredFile>>,
}

impl StoredFiles<'_> {
    fn find(&mut self, path: LibraryPath) -> DisplayedFile {
        let known = self.known.get_or_insert_with(|| {
            // Without the list, the messages can still be read.
            let listed = Tree::attachments_of(self.reader, self.tree).unwrap_or_default();
            let stored = |file: Attachment| {
                (file.path, StoredFile { bytes: file.bytes, blake3: file.blake3 })
            };
            listed.into_iter().map(stored).collect()
        });
        let stored = known.get(&path).copied();
        DisplayedFile { path, stored }
    }
}

/// A line of a chat, and the files that its message displays.
struct Line {
    message: SpokenMessage,
    files: BTreeSet<LibraryPath>,
}

impl Line {
    fn shown(self, snapshot: &Snapshot, files: &mut StoredFiles<'_>) -> SpokenMessage {
        let Self { mut message, files: paths } = self;
        message.attachments = paths.into_iter().map(|path| files.find(path)).collect();
        if !message.is_user && message.character.is_none() {
            message.character = snapshot.timeline.folder().map(str::to_owned);
        }
        message
    }
}

/// Reads one message. Returns `None` for a blank line. A line that is not a valid message is
/// returned unchanged as the text of a message without a name.
fn one(reader: &Reader, number: usize, id: ObjectId) -> store::Result<Option<Line>> {
    let bytes = reader.blob(id)?;
    if st::is_blank(&bytes) {
        return Ok(None);
    }
    let line = String::from_utf8_lossy(&bytes);
    let Some(message) = Message::read(line.as_bytes()) else {
        let text = line.into_owned();
        let message = SpokenMessage { number, text, ..SpokenMessage::default() };
        return Ok(Some(Line { message, files: BTreeSet::new() }));
    };
    let swipes = message.swipes().unwrap_or_default();
    let reasoning = message.extra().and_then(|extra| extra.get("reasoning")?.string());
    let spoken = SpokenMessage {
        number,
        name: message.name().unwrap_or_default(),
        is_user: message.is_user(),
        is_hidden: message.is_system(),
        said: message.send_date().and_then(st::send_millis).map(|ms| ms.div_euclid(1000)),
        text: message.text().unwrap_or_default(),
        swipes: swipes.iter().map(|swipe| swipe.string().unwrap_or_default()).collect(),
        shown: message.swipe_id().and_then(|shown| usize::try_from(shown).ok()),
        reasoning: reasoning.filter(|text| !text.trim().is_empty()),
        character: card_of(&message),
        attachments: Vec::new(),
    };
    Ok(Some(Line { message: spoken, files: st::displayed_attachments(&message) }))
}

/// Returns the card that a message of a group chat names.
fn card_of(message: &Message<'_>) -> Option<String> {
    let card = message.raw().get("original_avatar")?.string()?;
    card.strip_suffix(".png").map(str::to_owned)
}
