//! Take in what is already there: SillyTavern's own backups become snapshots of the right timelines, at their own times.
//!
//! The name of a backup says whose it is (`backup_owner`), and not which chat it is of. Its header does where it can (`integrity`, `main_chat`), its messages always: it
//! belongs to the timeline of that character that begins like it. What fits none becomes a timeline of its own. First everything is snapshotted as it is
//! now, so that every chat has a timeline to which its past can be added.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use chrono::{Local, NaiveDateTime, TimeZone};

use crate::archive::message_identity::Chain;
use crate::archive::{self, Folders, Kind, NewSnapshot, State, Tree};
use crate::engine::Workspace;
use crate::engine::operation::Operation;
use crate::engine::take_first::take_as_it_is;
use crate::history::origin::{Lineage, Newcomer, without_blank_end};
use crate::history::rewrite_history::{Insertion, insert};
use crate::progress::Monitor;
use crate::regular;
use crate::rules::Finding;
use crate::st::{self, Backup, Chat, Library, Scan, TimelineFiles, TimelineName};
use crate::store::{ObjectId, Reader, Store, Time, unless_lost};
use crate::verbs::Result;
use crate::verbs::import::backup_owner::{self, KnownOwners, Owner};

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A folder of backups; none: the library's own.
    pub source: Option<PathBuf>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of one backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatBackupOutcome {
    /// It is a snapshot of this timeline now.
    Imported(TimelineName),
    /// The timeline has that state already.
    Known(TimelineName),
    /// There is nothing in it.
    Empty,
    /// It could not be read.
    Failed(String),
}

/// One backup of a chat.
pub struct ChatBackup {
    pub file: String,
    pub bytes: u64,
    pub time: Time,
    pub messages: u64,
    pub outcome: ChatBackupOutcome,
}

#[derive(Default)]
pub struct Report {
    /// The folder.
    pub source: PathBuf,
    /// The backups, oldest first.
    pub entries: Vec<ChatBackup>,
    /// Timelines that did not exist before.
    pub new_timelines: Vec<TimelineName>,
    /// Snapshots taken of the chats as they are now.
    pub taken_first: usize,
    /// What of them could not be taken.
    pub findings: Vec<Finding>,
    /// Stored snapshots that got a new id because something came before them.
    pub rewritten: usize,
    /// What the backups take.
    pub bytes_there: u64,
    /// What was written for them.
    pub bytes_written: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

impl Report {
    pub fn count(&self, wanted: impl Fn(&ChatBackupOutcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// Take backups in.
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
    let mut sorting = Sorting::new(&store, &library, &scan, &lineage)?;
    monitor.begin("reading backups", Some(backups.len() as u64));
    for backup in &backups {
        let entry = sorting.sort(backup, &mut lineage, &mut operation)?;
        report.entries.push(entry);
        monitor.advance(1);
    }
    report.findings.append(&mut sorting.findings);
    let insertions = sorting.finish();
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

/// A timeline that a backup can be of.
struct Candidate {
    name: TimelineName,
    /// What it was called before.
    former: Vec<TimelineName>,
    integrity: Option<String>,
    main_chat: Option<String>,
    /// The trees of its chat that are stored or taken in now, once they were asked for.
    chats: Option<HashSet<ObjectId>>,
    insertions: Vec<Insertion>,
}

/// How well a backup fits a timeline: the first difference decides.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'c> {
    /// The chat itself says so.
    certain: bool,
    /// So many messages are the same.
    shared: usize,
    same_key: bool,
    name: Reverse<&'c TimelineName>,
    /// The position of the candidate.
    n: usize,
}

/// Which backup belongs where.
struct Sorting<'a> {
    reader: Reader,
    scan: &'a Scan,
    owners: KnownOwners,
    candidates: Vec<Candidate>,
    findings: Vec<Finding>,
}

/// What a backup says of itself.
struct Content<'b> {
    chat: Chat<'b>,
    chain: Chain,
    integrity: Option<String>,
    main_chat: Option<String>,
}

impl<'a> Sorting<'a> {
    fn new(store: &Store, library: &Library, scan: &'a Scan, lineage: &Lineage) -> Result<Self> {
        let reader = store.reader();
        let mut candidates = Vec::new();
        for (name, head) in lineage.history().heads().filter(|(name, _)| name.is_chat()) {
            let tree = unless_lost(Tree::open(&reader, head.tree))?;
            let header = match tree.and_then(|tree| tree.header()) {
                Some(header) => unless_lost(reader.blob(header))?.unwrap_or_default(),
                None => Vec::new(),
            };
            let main_chat = head.main_chat.clone();
            let former = lineage.history().own(head).0.into_iter();
            let former = former.flat_map(|own| own.renamed_from.iter().chain([&own.timeline]));
            let former = former.filter(|former| *former != name).cloned().collect();
            let known = Candidate::new(name.clone(), integrity_of(&header), main_chat);
            candidates.push(Candidate { former, ..known });
        }
        let owners = KnownOwners::new(library, scan, lineage);
        Ok(Self { reader, scan, owners, candidates, findings: Vec::new() })
    }

    fn sort(
        &mut self,
        backup: &Backup,
        lineage: &mut Lineage,
        operation: &mut Operation<'_>,
    ) -> Result<ChatBackup> {
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
        let lines = Chat::split(&bytes, true);
        let owner = self.owners.of(backup, &lines);
        let is_group = match owner {
            Owner::GroupChat(_) => true,
            Owner::Character(_) => false,
            Owner::OneOf(_) | Owner::Unknown => backup_owner::is_of_group(&lines),
        };
        let content = Content::read(&bytes, is_group);
        entry.messages = content.chat.message_count() as u64;
        if !backup.is_dated {
            self.findings.push(backup_owner::undated(backup));
        }
        let found = match self.choose(backup, &owner, &content, lineage)? {
            Some(index) => Some(index),
            None => self.imported_before(backup, &owner, &content, lineage, operation)?,
        };
        let index = match found {
            Some(index) => index,
            None => {
                let name = self.new_name(backup, &owner, &content)?;
                if let Owner::OneOf(owners) = &owner {
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
        let state = State::chat_only(&files);
        let tree = archive::write_chat(&state, &mut operation.pack, &self.reader)?;
        if !candidate.chats(lineage, &self.reader).insert(tree) {
            entry.outcome = ChatBackupOutcome::Known(name);
            return Ok(entry);
        }
        let written = archive::write(
            &state,
            &mut operation.pack,
            &self.reader,
            None,
            &Folders::default(),
            &[],
        )?;
        let mut new = NewSnapshot::of(&state, Kind::IMPORT, entry.time);
        new.source = Some(format!("backups/{}", backup.file));
        candidate.insertions.push(Insertion {
            commit: new.commit(written.tree),
            newcomer: Newcomer::new(&name, &content.chat, None),
        });
        entry.outcome = ChatBackupOutcome::Imported(name);
        Ok(entry)
    }

    /// The timeline that a backup is of: among those of its owner the one that is the same chat by its own word, or else that shares the most. None if it fits chats of two
    /// characters equally well.
    fn choose(
        &self,
        backup: &Backup,
        owner: &Owner,
        content: &Content<'_>,
        lineage: &mut Lineage,
    ) -> Result<Option<usize>> {
        let possible: Vec<_> = (0..self.candidates.len())
            .filter(|n| self.candidates[*n].is_of(owner, backup))
            .filter(|n| self.candidates[*n].may_be(backup, content))
            .collect();
        let names: Vec<_> = possible.iter().map(|n| self.candidates[*n].name.clone()).collect();
        let stored = lineage.shared_with_timelines(&content.chain, &names)?;
        let rank = |(n, stored): (&usize, usize)| {
            let candidate = &self.candidates[*n];
            let own = candidate
                .insertions
                .iter()
                .map(|other| content.chain.shared_with(&other.newcomer.chain))
                .max();
            let shared = stored.max(own.unwrap_or(0));
            let same_key = candidate.has_key(backup);
            let same_chat =
                candidate.integrity.is_some() && candidate.integrity == content.integrity;
            let certain = same_chat || (same_key && candidate.name.is_group());
            let enough = certain || shared >= 2 || (shared == 1 && same_key);
            let name = Reverse(&candidate.name);
            enough.then_some(Rank { certain, shared, same_key, name, n: *n })
        };
        let ranks: Vec<_> = possible.iter().zip(stored).filter_map(rank).collect();
        let Some(best) = ranks.iter().max() else { return Ok(None) };
        let as_good =
            ranks.iter().filter(|rank| rank.certain == best.certain && rank.shared == best.shared);
        let places: BTreeMap<_, _> =
            as_good.map(|rank| (place(&self.candidates[rank.n].name), rank.n)).collect();
        if matches!(owner, Owner::OneOf(_)) && places.len() > 1 {
            // Where an earlier import put it, it stays.
            return Ok(places.get(backup.key.as_str()).copied());
        }
        Ok(Some(best.n))
    }

    /// Returns the timeline that has exactly this chat. Chats without a message that can be read share nothing by which they could be recognised.
    fn imported_before(
        &mut self,
        backup: &Backup,
        owner: &Owner,
        content: &Content<'_>,
        lineage: &Lineage,
        operation: &mut Operation<'_>,
    ) -> Result<Option<usize>> {
        // Whether the first line is a header depends on whether it is a group's chat.
        let mut trees = HashMap::new();
        for (n, candidate) in self.candidates.iter_mut().enumerate() {
            let is_unknown = matches!(owner, Owner::Unknown);
            if !candidate.is_of(owner, backup) || is_unknown && !candidate.is_unknown(backup) {
                continue;
            }
            let chat = match trees.entry(candidate.name.is_group()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let files = TimelineFiles::alone(&candidate.name, content.chat.join());
                    let state = State::chat_only(&files);
                    let tree = archive::write_chat(&state, &mut operation.pack, &self.reader)?;
                    *unknown.insert(tree)
                }
            };
            if candidate.chats(lineage, &self.reader).contains(&chat) {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// A name for a chat that nobody knows: in its character's folder if that can be told. A group chat's name is all but its key.
    fn new_name(
        &self,
        backup: &Backup,
        owner: &Owner,
        content: &Content<'_>,
    ) -> Result<TimelineName> {
        let folder = match owner {
            Owner::GroupChat(chat) => return Ok(TimelineName::group(chat)?),
            Owner::Character(folder) => folder.clone(),
            _ if backup_owner::is_of_group(&content.chat) => {
                return Ok(TimelineName::group(&backup.key)?);
            }
            Owner::OneOf(_) => backup.key.clone(),
            Owner::Unknown => backup_owner::unknown_folder(backup, &content.chat),
        };
        let taken = backup.taken.format("%Y-%m-%d %Hh%Mm%Ss");
        let mut number = 1;
        loop {
            let chat = if number == 1 {
                format!("Backup {taken}")
            } else {
                format!("Backup {taken} ({number})")
            };
            let name = TimelineName::solo(&folder, &chat)?;
            if !self.candidates.iter().any(|known| known.name == name)
                && !self.scan.chats.contains(&name)
            {
                return Ok(name);
            }
            number += 1;
        }
    }

    fn finish(self) -> BTreeMap<TimelineName, Vec<Insertion>> {
        let all = self.candidates.into_iter();
        let with_new = all.filter(|candidate| !candidate.insertions.is_empty());
        with_new.map(|candidate| (candidate.name, candidate.insertions)).collect()
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

    /// Returns whether it belongs to the backup's owner, or did under a former name.
    fn is_of(&self, owner: &Owner, backup: &Backup) -> bool {
        self.names().any(|name| owner.may_have(backup, name))
    }

    /// Returns whether it is where a backup of an unknown owner is put.
    fn is_unknown(&self, backup: &Backup) -> bool {
        self.has_key(backup) || backup.key.is_empty() && place(&self.name) == backup_owner::UNKNOWN
    }

    fn names(&self) -> impl Iterator<Item = &TimelineName> {
        std::iter::once(&self.name).chain(&self.former)
    }

    /// Whether nothing speaks against it. Forks copy their parent's messages, and before 1.19 its `integrity`, but say whose they are.
    fn may_be(&self, backup: &Backup, content: &Content<'_>) -> bool {
        if self.name.is_group() && self.has_key(backup) {
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
                let mut entries = reader.tree(tree).ok()?.into_iter();
                entries.find(|entry| entry.name == "chat").map(|entry| entry.id)
            };
            own.iter().filter_map(|snapshot| chat(snapshot.tree)).collect()
        })
    }
}

impl<'b> Content<'b> {
    fn read(bytes: &'b [u8], is_group: bool) -> Self {
        let chat = Chat::split(bytes, is_group);
        let header = chat.header.unwrap_or_default();
        let metadata = st::Raw::parse(header).and_then(|header| header.get("chat_metadata"));
        Self {
            chain: Chain::of(without_blank_end(&chat.messages)),
            integrity: integrity_of(header),
            main_chat: metadata.and_then(st::main_chat),
            chat,
        }
    }
}

/// Returns the character's folder, or the group chat's own name: backups are called by it.
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
        // An hour that the clocks skipped.
        None => Time { seconds: taken.and_utc().timestamp(), offset: 0 },
    }
}
