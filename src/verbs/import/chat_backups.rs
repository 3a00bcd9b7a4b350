//! Imports SillyTavern's own backups as snapshots of existing or new timelines, with the backups'
//! times.
//!
//! The file name of a backup identifies its owner (`backup_owner`), but not its chat. The header
//! fields `integrity` and `main_chat` may identify the chat, and the messages always do: a backup
//! belongs to the owner's timeline that begins with the same messages. If there is no such
//! timeline, a new one is created. Snapshots of all current chats are created first, so that the
//! backups can be inserted before these snapshots.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use chrono::{Local, NaiveDateTime, TimeZone};
use serde::Serialize;

use crate::archive::message_identity::Chain;
use crate::archive::{self, Ancestry, Kind, NewSnapshot, State, Tree};
use crate::engine::Workspace;
use crate::engine::operation::Operation;
use crate::engine::safety_snapshots::take_as_it_is;
use crate::history::origin::{Lineage, NewTimeline, without_blank_end};
use crate::history::rewrite_history::{Insertion, insert};
use crate::progress::Monitor;
use crate::regular;
use crate::rules::Finding;
use crate::st::{self, Backup, Category, Chat, Library, Scan, TimelineFiles, TimelineName};
use crate::store::{ObjectId, Reader, Store, Time, unless_lost};
use crate::verbs::Result;
use crate::verbs::import::backup_owner::{self, KnownOwners, Owner};

/// Options of an import of SillyTavern's own backups.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder with the backups. `None` selects the folder `backups` of the library.
    pub source: Option<PathBuf>,
    /// Only decide about the backups, and store nothing.
    pub dry_run: bool,
}

/// The outcome for one backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatBackupOutcome {
    /// The backup became a snapshot of this timeline.
    Imported(TimelineName),
    /// This timeline already has an equal snapshot.
    Known(TimelineName),
    /// The backup has no messages.
    Empty,
    /// The backup could not be read, for this reason.
    Failed(String),
}

/// A backup file that SillyTavern created of a chat.
#[derive(Serialize)]
pub struct ChatBackup {
    /// File name in the folder.
    pub file: String,
    /// Length of the backup.
    pub bytes: u64,
    /// Time at which SillyTavern wrote the backup.
    pub time: Time,
    /// Number of messages in the backup.
    pub messages: u64,
    /// The decision about the backup.
    #[serde(skip)]
    pub outcome: ChatBackupOutcome,
}

/// The outcomes for all backups.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// The folder that was read.
    pub source: PathBuf,
    /// Oldest backup first.
    pub entries: Vec<ChatBackup>,
    /// Timelines of chats that are not in the store or the library.
    pub new_timelines: Vec<TimelineName>,
    /// Number of snapshots of current files that were created first.
    pub taken_first: usize,
    /// Problems of backups, and of snapshots that were created first.
    pub findings: Vec<Finding>,
    /// Number of existing snapshots that got a new id because backups were inserted before them.
    pub rewritten: usize,
    /// Total size of the backup files.
    pub bytes_there: u64,
    /// Size of the new objects in the store.
    pub bytes_written: u64,
    /// Whether nothing was stored.
    pub dry_run: bool,
}

impl Report {
    /// Counts the backups whose outcome satisfies `wanted`.
    pub fn count(&self, wanted: impl Fn(&ChatBackupOutcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// Imports backups in one operation. A backup that cannot be read does not stop the others.
pub fn import(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    if options.dry_run {
        let (_folder, elsewhere) = workspace.on_a_copy()?;
        let real = Options { dry_run: false, ..options.clone() };
        let report = import(&elsewhere, &real, monitor)?;
        return Ok(Report { dry_run: true, taken_first: 0, bytes_written: 0, ..report });
    }
    let library = workspace.library()?;
    let source = options.source.clone().unwrap_or_else(|| library.root().join("backups"));
    let backups = st::list_backups(&source)?;
    let bytes_there = backups.iter().map(|backup| backup.bytes).sum();
    let mut report = Report { source, bytes_there, ..Report::default() };
    if backups.is_empty() {
        return Ok(report);
    }
    let first = take_as_it_is(workspace, None, monitor)?;
    (report.taken_first, report.findings) = (first.new, first.findings);
    let scan = library.scan()?;
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let mut lineage = Lineage::load(&store, &scan)?;
    let mut operation = Operation::new(workspace, &store, None);
    let mut sorting = Sorting::new(&store, &library, &scan, &mut lineage, &mut operation)?;
    monitor.begin("reading backups", Some(backups.len() as u64));
    for backup in &backups {
        report.entries.push(sorting.sort(backup)?);
        monitor.advance(1);
    }
    report.findings.append(&mut sorting.findings);
    let with_new = sorting.candidates.into_iter().filter(|known| !known.insertions.is_empty());
    let insertions: BTreeMap<_, _> = with_new.map(|known| (known.name, known.insertions)).collect();
    let is_new = |name: &&TimelineName| {
        lineage.history().head(name).is_none() && !scan.chats.contains(*name)
    };
    report.new_timelines = insertions.keys().filter(is_new).cloned().collect();
    let rewritten = insert(&mut operation.pack, &store, &mut lineage, insertions)?;
    report.rewritten = operation.follow(&rewritten)?.len();
    report.bytes_written = operation.finish(&held)?.bytes;
    lineage.save();
    Ok(report)
}

struct Candidate {
    name: TimelineName,
    former: Vec<TimelineName>,
    integrity: Option<String>,
    main_chat: Option<String>,
    /// Ids of the chat's trees in all snapshots of the timeline and in the backups imported so far.
    /// Loaded on demand.
    chats: Option<HashSet<ObjectId>>,
    insertions: Vec<Insertion>,
}

/// The quality of the match between a backup and a timeline. Fields are compared in their order,
/// and the greatest rank is the best match.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'c> {
    /// Whether the timeline has the same `integrity`, or is a group chat with the backup's key.
    certain: bool,
    shared: usize,
    same_key: bool,
    name: Reverse<&'c TimelineName>,
    n: usize,
}

struct Sorting<'a, 'o> {
    reader: Reader,
    scan: &'a Scan,
    owners: KnownOwners,
    lineage: &'a mut Lineage,
    operation: &'a mut Operation<'o>,
    candidates: Vec<Candidate>,
    findings: Vec<Finding>,
}

struct Content<'b> {
    backup: &'b Backup,
    owner: Owner,
    chat: Chat<'b>,
    chain: Chain,
    integrity: Option<String>,
    main_chat: Option<String>,
}

impl<'a, 'o> Sorting<'a, 'o> {
    fn new(
        store: &Store,
        library: &Library,
        scan: &'a Scan,
        lineage: &'a mut Lineage,
        operation: &'a mut Operation<'o>,
    ) -> Result<Self> {
        let reader = store.reader();
        let mut candidates = Vec::new();
        let history = lineage.history();
        for (name, head) in history.heads().filter(|(name, _)| name.is_chat()) {
            let tree = unless_lost(Tree::open(&reader, head.tree))?;
            let header = match tree.and_then(|tree| tree.header()) {
                Some(header) => unless_lost(reader.blob(header))?.unwrap_or_default(),
                None => Vec::new(),
            };
            let own = history.own(head).0.into_iter();
            let former = own.flat_map(|own| own.renamed_from.iter().chain([&own.timeline]));
            let former = former.filter(|former| *former != name).cloned().collect();
            let main_chat = head.main_chat.clone();
            let known = Candidate::new(name.clone(), integrity_of(&header), main_chat);
            candidates.push(Candidate { former, ..known });
        }
        let owners = KnownOwners::new(library, scan, lineage);
        Ok(Self { reader, scan, owners, lineage, operation, candidates, findings: Vec::new() })
    }

    fn sort(&mut self, backup: &Backup) -> Result<ChatBackup> {
        let mut entry = ChatBackup {
            file: backup.file.clone(),
            bytes: backup.bytes,
            time: local(backup.taken),
            messages: 0,
            outcome: ChatBackupOutcome::Empty,
        };
        let bytes = match regular::read(&backup.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                entry.outcome = ChatBackupOutcome::Failed(error.to_string());
                return Ok(entry);
            }
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(entry);
        }
        let content = Content::read(backup, &bytes, &self.owners);
        entry.messages = content.chat.message_count() as u64;
        if !backup.is_dated {
            self.findings.push(backup_owner::undated(backup));
        }
        let mut found = self.choose(&content)?;
        if found.is_none() {
            found = self.imported_before(&content)?;
        }
        let index = match found {
            Some(index) => index,
            None => {
                let name = self.new_name(&content)?;
                if let Owner::OneOf(owners) = &content.owner {
                    self.findings.push(backup_owner::ambiguous(backup, owners, &name));
                }
                let (integrity, main_chat) = (content.integrity.clone(), content.main_chat.clone());
                self.candidates.push(Candidate::new(name, integrity, main_chat));
                self.candidates.len() - 1
            }
        };
        let candidate = &mut self.candidates[index];
        let name = candidate.name.clone();
        let files = TimelineFiles::alone(&name, bytes.clone());
        let (state, pack) = (State::chat_only(&files), &mut self.operation.pack);
        let tree = archive::write_chat(&state, pack)?;
        if !candidate.chats(self.lineage, &self.reader).insert(tree) {
            entry.outcome = ChatBackupOutcome::Known(name);
            return Ok(entry);
        }
        let written = archive::write(&state, &[], pack)?;
        let source = Some(format!("backups/{}", backup.file));
        let ancestry = Ancestry { source, ..Ancestry::default() };
        let new = NewSnapshot::of(&state, Kind::IMPORT, entry.time);
        let newcomer = NewTimeline::new(&name, &content.chat, None);
        let commit = new.commit(written.tree, ancestry, None);
        candidate.insertions.push(Insertion { commit, newcomer });
        entry.outcome = ChatBackupOutcome::Imported(name);
        Ok(entry)
    }

    /// Returns the owner's timeline with the same `integrity`, or else the timeline that shares the
    /// most messages. Returns `None` if no timeline matches, or if chats of several possible owners
    /// match equally well.
    fn choose(&mut self, content: &Content<'_>) -> Result<Option<usize>> {
        let backup = content.backup;
        let candidates = self.candidates.iter().enumerate();
        let possible: Vec<_> =
            candidates.filter(|(_, it)| it.is_of(content) && it.may_be(content)).collect();
        let names: Vec<_> = possible.iter().map(|(_, it)| it.name.clone()).collect();
        let stored = self.lineage.shared_with_timelines(&content.chain, &names)?;
        let ranks = possible.into_iter().zip(stored).filter_map(|((n, candidate), stored)| {
            let own = candidate.insertions.iter();
            let own = own.map(|other| content.chain.shared_with(&other.newcomer.chain)).max();
            let shared = stored.max(own.unwrap_or(0));
            let same_key = candidate.has_key(backup);
            let same_chat =
                candidate.integrity.is_some() && candidate.integrity == content.integrity;
            let certain = same_chat || (same_key && candidate.name.is_group());
            let enough = certain || shared >= 2 || (shared == 1 && same_key);
            let name = Reverse(&candidate.name);
            enough.then_some(Rank { certain, shared, same_key, name, n })
        });
        let ranks: Vec<_> = ranks.collect();
        let Some(best) = ranks.iter().max() else { return Ok(None) };
        let as_good =
            ranks.iter().filter(|rank| rank.certain == best.certain && rank.shared == best.shared);
        let places: BTreeMap<_, _> = as_good.map(|rank| (place(rank.name.0), rank.n)).collect();
        if matches!(content.owner, Owner::OneOf(_)) && places.len() > 1 {
            // Use the timeline that an earlier import created for this ambiguous backup, if there
            // is one.
            return Ok(places.get(backup.key.as_str()).copied());
        }
        Ok(Some(best.n))
    }

    /// Returns the timeline that already contains exactly this chat. `choose` cannot recognise a
    /// chat without readable messages.
    fn imported_before(&mut self, content: &Content<'_>) -> Result<Option<usize>> {
        let is_unknown = matches!(content.owner, Owner::Unknown);
        // The first line is parsed as a header or as a message, depending on whether the timeline
        // is a group chat. The two cases result in different trees.
        let mut trees = HashMap::new();
        for (n, candidate) in self.candidates.iter_mut().enumerate() {
            if !candidate.is_of(content) || is_unknown && !candidate.is_unknown(content.backup) {
                continue;
            }
            let chat = match trees.entry(candidate.name.is_group()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let files = TimelineFiles::alone(&candidate.name, content.chat.join());
                    let (state, pack) = (State::chat_only(&files), &mut self.operation.pack);
                    *unknown.insert(archive::write_chat(&state, pack)?)
                }
            };
            if candidate.chats(self.lineage, &self.reader).contains(&chat) {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// Returns a name for a new timeline. A group chat is named after its key. Any other chat is
    /// named after the time of the backup. If its character is known, the chat is in the
    /// character's folder.
    fn new_name(&self, Content { backup, owner, chat, .. }: &Content<'_>) -> Result<TimelineName> {
        let folder = match owner {
            Owner::GroupChat(chat) => return Ok(TimelineName::group(chat)?),
            Owner::Character(folder) => folder.clone(),
            _ if backup_owner::is_of_group(chat) => return Ok(TimelineName::group(&backup.key)?),
            Owner::OneOf(_) => backup.key.clone(),
            Owner::Unknown => backup_owner::unknown_folder(backup, chat),
        };
        let mut chat = format!("Backup {}", backup.taken.format("%Y-%m-%d %Hh%Mm%Ss"));
        let base = chat.clone();
        let mut number = 1;
        loop {
            let name = TimelineName::solo(&folder, &chat)?;
            let is_known = self.candidates.iter().any(|known| known.name == name);
            if !is_known && !self.scan.chats.contains(&name) {
                return Ok(name);
            }
            number += 1;
            chat = format!("{base} ({number})");
        }
    }
}

impl Candidate {
    fn new(name: TimelineName, integrity: Option<String>, main_chat: Option<String>) -> Self {
        let (former, insertions) = (Vec::new(), Vec::new());
        Self { name, former, integrity, main_chat, chats: None, insertions }
    }

    fn has_key(&self, backup: &Backup) -> bool {
        self.names().any(|name| backup.may_be_of(place(name)))
    }

    /// Returns whether the timeline belongs to the backup's owner, under its current name or a
    /// former name.
    fn is_of(&self, Content { backup, owner, .. }: &Content<'_>) -> bool {
        self.names().any(|name| owner.may_have(backup, name))
    }

    /// Returns whether the timeline is in the folder for backups of an unknown owner.
    fn is_unknown(&self, backup: &Backup) -> bool {
        self.has_key(backup) || backup.key.is_empty() && place(&self.name) == backup_owner::UNKNOWN
    }

    fn names(&self) -> impl Iterator<Item = &TimelineName> {
        std::iter::once(&self.name).chain(&self.former)
    }

    /// Returns whether the backup may belong to this timeline, according to the headers. A fork
    /// contains its parent's messages and, before SillyTavern 1.19, its parent's `integrity`. A
    /// fork differs from its parent in `main_chat`, which is the parent's name.
    fn may_be(&self, content: &Content<'_>) -> bool {
        if self.name.is_group() && self.has_key(content.backup) {
            return true;
        }
        let same_slug = match (&self.integrity, &content.integrity) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        same_slug
            && self.main_chat == content.main_chat
            && (content.chat.header.is_some() || self.name.is_group())
    }

    fn chats(&mut self, lineage: &Lineage, reader: &Reader) -> &mut HashSet<ObjectId> {
        self.chats.get_or_insert_with(|| {
            let own = lineage.own(&self.name).map(|(own, _)| own).unwrap_or_default();
            let chat = |tree| {
                let mut entries = reader.raw_tree(tree).ok()?.entries.into_iter();
                entries.find(|entry| entry.name == b"chat").map(|entry| entry.id)
            };
            own.iter().filter_map(|snapshot| chat(snapshot.tree)).collect()
        })
    }
}

impl<'b> Content<'b> {
    fn read(backup: &'b Backup, bytes: &'b [u8], owners: &KnownOwners) -> Self {
        let lines = Chat::split(bytes, Category::GroupChat);
        let owner = owners.of(backup, &lines);
        let category = match owner {
            Owner::Character(_) => Category::Chat,
            Owner::OneOf(_) | Owner::Unknown if !backup_owner::is_of_group(&lines) => {
                Category::Chat
            }
            _ => Category::GroupChat,
        };
        let chat = Chat::split(bytes, category);
        let header = chat.header.unwrap_or_default();
        let metadata = st::Raw::parse(header).and_then(|header| header.get("chat_metadata"));
        Self {
            backup,
            owner,
            chain: Chain::of(without_blank_end(&chat.messages)),
            integrity: integrity_of(header),
            main_chat: metadata.and_then(st::main_chat),
            chat,
        }
    }
}

/// Returns the name from which SillyTavern derives the key of a backup: the character's folder, or
/// the name of the group chat.
fn place(name: &TimelineName) -> &str {
    name.folder().unwrap_or(name.chat())
}

fn integrity_of(header: &[u8]) -> Option<String> {
    st::Raw::parse(header)?.path(&["chat_metadata", "integrity"])?.string()
}

fn local(taken: NaiveDateTime) -> Time {
    let moment = Local.from_local_datetime(&taken).earliest();
    match moment {
        Some(moment) => {
            Time { seconds: moment.timestamp(), offset: moment.offset().local_minus_utc() }
        }
        // This local time does not exist, because the clocks were set forward.
        None => Time { seconds: taken.and_utc().timestamp(), offset: 0 },
    }
}
