//! Shows one moment, with its files and its last messages.

use crate::archive::{self, FileRecord, Manifest, Role, Snapshot, State};
use crate::auto_recap;
use crate::engine::{Workspace, verdict_findings};
use crate::history::History;
use crate::history::at_message::Origin;
use crate::history::moment::{Book, MessageLimit, Moment};
use crate::history::pairs::book_record;
use crate::history::state_then::{NeedBook, StateThen};
use crate::rules::{self, Finding};
use crate::st::{
    self, Category, Library, LibraryPath, MessageText, OpenCard, Raw, Reference, TimelineName, User,
};
use crate::verbs::Result;

/// One moment, without the contents of its files.
#[non_exhaustive]
pub struct ShownMoment {
    /// Current name of the timeline. `snapshot` may have a former name.
    pub timeline: TimelineName,
    /// The snapshot that contains the chat of this moment.
    pub snapshot: Snapshot,
    /// Permanent name of this moment; see docs/moments.md.
    pub moment: String,
    /// The snapshot that contains the lorebook of this moment. `None` if the lorebook did not
    /// change after `snapshot` was created.
    pub book: Option<Snapshot>,
    /// Number of the moment's last message, if the requested name contained a message number.
    pub at: Option<usize>,
    /// Names of the tags at the snapshot.
    pub tags: Vec<String>,
    /// List of the files, with their hashes.
    pub manifest: Manifest,
}

/// One moment in detail.
#[non_exhaustive]
pub struct Report {
    /// The moment, without the contents of its files.
    pub shown: ShownMoment,
    /// Sources of the chat and the lorebook. `None` if the moment was stored in snapshots and did
    /// not have to be reconstructed.
    pub origin: Option<Origin>,
    /// Parsed contents of the files.
    pub contents: Contents,
    /// Chats that use the lorebook, if the timeline is a lorebook.
    pub used_by: Vec<User>,
    /// Problems of the stored files.
    pub findings: Vec<Finding>,
}

/// The contents of a moment's files.
pub struct Contents {
    /// The last messages with their numbers, oldest first.
    pub last_messages: Vec<(usize, MessageText)>,
    /// Key and title of each lorebook entry.
    pub entries: Vec<(String, String)>,
    /// Name and text of each field of a character card. Empty for other timelines.
    pub card: Vec<(&'static str, String)>,
}

const LAST: usize = 3;

/// Reads a moment, with its files and its last messages.
pub fn show(workspace: &Workspace, name: &str) -> Result<Report> {
    let store = workspace.open_store()?;
    let moment = workspace.moment(name, &store)?;
    let library = workspace.library().ok();
    let history = workspace.history(&store)?;
    let then = StateThen::rebuild(&store, &moment, NeedBook::IfKnown)?;
    let StateThen { snapshot, contents, mut problems, book_of, origin, findings: noticed } = then;
    for attachment in &contents.attachments {
        let loss = attachment.check_headers(&store.reader())?;
        loss.into_iter().for_each(|loss| problems.lose_attachment(loss));
    }
    let chat = contents.files.split();
    let texts = chat
        .messages
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(n, line)| Some((n, st::text_of(line)?)));
    let mut last_messages: Vec<_> = texts.take(LAST).collect();
    last_messages.reverse();
    let entries = contents.files.book_bytes().map(titles).unwrap_or_default();
    let mut findings = verdict_findings::all(&snapshot, &moment.timeline, &problems);
    findings.extend(noticed);
    if origin.is_none() {
        findings.extend(auto_recap::restored(&contents));
    }
    let template = library.as_ref().map(Library::book_template).cloned().unwrap_or_default();
    let has = |path: &_| library.as_ref().is_some_and(|library| library.has(path));
    findings.extend(rules::of_stored(&contents.files, &chat, &template, has));
    // The manifest of `snapshot` does not describe a moment that is composed of several snapshots.
    let manifest = if origin.is_some() || book_of.is_some() {
        State::of(&contents.files).manifest
    } else {
        contents.manifest.clone()
    };
    let card = match snapshot.timeline.category() {
        Category::Card => fields(&contents.files.main.bytes),
        _ => Vec::new(),
    };
    let used_by = match (&library, snapshot.timeline.category()) {
        (Some(library), Category::Lorebook) => users(library, &moment.timeline.file())?,
        _ => Vec::new(),
    };
    let book = book_of.map(|book| *book);
    let shown = ShownMoment::of(&moment, book, manifest, &history);
    let contents = Contents { last_messages, entries, card };
    Ok(Report { shown, origin, contents, used_by, findings })
}

/// Reads a moment without the contents of its files, which are not validated.
pub fn brief(workspace: &Workspace, name: &str) -> Result<ShownMoment> {
    let store = workspace.open_store()?;
    let moment = workspace.moment(name, &store)?;
    if let MessageLimit::Cut(_) = moment.upto {
        // The files of this moment have to be reconstructed.
        return Ok(show(workspace, name)?.shown);
    }
    let reader = store.reader();
    let mut manifest = archive::read_manifest(&reader, moment.snapshot.tree)?;
    let mut book = None;
    if let Book::Snapshot(source) = &moment.book
        && let Some(record) = book_record(&reader, source)?
    {
        manifest.files.retain(|file| file.role != Role::Lorebook);
        manifest.files.push(FileRecord { role: Role::Lorebook, ..record });
        manifest.checkpoint = None;
        book = Some((**source).clone());
    }
    Ok(ShownMoment::of(&moment, book, manifest, &*workspace.history(&store)?))
}

impl ShownMoment {
    fn of(moment: &Moment, book: Option<Snapshot>, manifest: Manifest, history: &History) -> Self {
        Self {
            timeline: moment.timeline.clone(),
            snapshot: moment.snapshot.clone(),
            moment: moment.id(),
            book,
            at: moment.upto.message(),
            tags: history.tags_of(moment.snapshot.id),
            manifest,
        }
    }
}

/// The card fields that users write, in the order of SillyTavern's form.
const FIELDS: [&str; 11] = [
    "name",
    "description",
    "first_mes",
    "alternate_greetings",
    "personality",
    "scenario",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "tags",
];

fn fields(card: &[u8]) -> Vec<(&'static str, String)> {
    let text = OpenCard::of(card).text.unwrap_or_default();
    let Some(root) = Raw::parse(&text) else { return Vec::new() };
    // Cards in the V1 format have no `data` object. Their fields are at the top level.
    let data = root.get("data").filter(Raw::is_object).unwrap_or(root);
    let said = |field: &'static str| {
        let value = data.get(field)?;
        let items = value.items().unwrap_or_else(|| vec![value]);
        let texts: Vec<_> = items.iter().filter_map(Raw::string).collect();
        let text = texts.join(if field == "tags" { ", " } else { " · " });
        (!text.trim().is_empty()).then_some((field, text))
    };
    FIELDS.into_iter().filter_map(said).collect()
}

fn users(library: &Library, book: &LibraryPath) -> Result<Vec<User>> {
    let references = library.references(&library.scan()?);
    let is_it = |found: &Reference| st::lorebook_path(&found.book).as_ref() == Some(book);
    Ok(references.list.into_iter().filter(is_it).map(|found| found.user).collect())
}

fn titles(book: &[u8]) -> Vec<(String, String)> {
    let members =
        Raw::parse(book).and_then(|book| book.get("entries")?.members()).unwrap_or_default();
    let title = |member: st::Member<'_>| {
        (member.key.to_string_lossy(), st::entry_comment(member.value).unwrap_or_default())
    };
    members.into_iter().map(title).collect()
}
