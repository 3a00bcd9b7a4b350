//! Take in what is already there: SillyTavern's own backups become snapshots of the right timelines, at their own times.
//!
//! A backup does not say which chat it is of. Its header does where it can (`integrity`, `main_chat`), its messages always: it belongs to
//! the timeline that begins like it. What fits none becomes a timeline of its own. First everything is snapshotted as it is
//! now, so that every chat has a timeline to which its past can be added.

use std::collections::{BTreeMap, HashSet};
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
use crate::st::{self, Backup, Chat, Disk, Library, Scan, TimelineFiles, TimelineName};
use crate::store::{ObjectId, Reader, Store, Time, unless_lost};
use crate::verbs::Result;

/// What to take in.
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

/// One backup.
pub struct ChatBackup {
    /// Its file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// When it was taken.
    pub time: Time,
    /// How many messages it has.
    pub messages: u64,
    /// What became of it.
    pub outcome: ChatBackupOutcome,
}

/// What was taken in.
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
    let mut report = Report {
        source,
        entries: Vec::new(),
        new_timelines: Vec::new(),
        taken_first: 0,
        findings: Vec::new(),
        rewritten: 0,
        bytes_there: backups.iter().map(|backup| backup.bytes).sum(),
        bytes_written: 0,
        dry_run: false,
    };
    if backups.is_empty() {
        return Ok(report);
    }
    let first = take_as_it_is(workspace, None, monitor)?;
    (report.taken_first, report.findings) = (first.new, first.findings);
    let scan = library.scan()?;
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let mut lineage = Lineage::load(&store, &scan)?;
    let mut operation = Operation::new(workspace, &store, None);
    let mut sorting = Sorting::new(&store, &library, &scan, &lineage, options.dry_run)?;
    monitor.begin("reading backups", Some(backups.len() as u64));
    for backup in &backups {
        let entry = sorting.sort(backup, &mut lineage, &mut operation)?;
        report.entries.push(entry);
        monitor.advance(1);
    }
    let (insertions, new) = sorting.finish();
    report.new_timelines = new;
    let rewritten = insert(&mut operation.pack, &store, &mut lineage, insertions)?;
    report.rewritten = operation.follow(&rewritten)?.len();
    (_, report.bytes_written) = operation.finish(&held)?;
    lineage.save();
    Ok(report)
}

/// A timeline that a backup can be of.
struct Candidate {
    name: TimelineName,
    integrity: Option<String>,
    main_chat: Option<String>,
    /// Backups taken in for it, by their chat's tree; with the stored ones once they were asked for.
    chats: HashSet<ObjectId>,
    chats_loaded: bool,
    stored: bool,
    insertions: Vec<Insertion>,
}

/// Which backup belongs where.
struct Sorting<'a> {
    reader: Reader,
    scan: &'a Scan,
    candidates: Vec<Candidate>,
}

/// What a backup says of itself.
struct Content<'b> {
    chat: Chat<'b>,
    chain: Chain,
    integrity: Option<String>,
    main_chat: Option<String>,
}

impl<'a> Sorting<'a> {
    fn new(
        store: &Store,
        library: &Library,
        scan: &'a Scan,
        lineage: &Lineage,
        dry_run: bool,
    ) -> Result<Self> {
        let reader = store.reader();
        let mut candidates = Vec::new();
        for (name, head) in lineage.history().heads() {
            let tree = unless_lost(Tree::open(&reader, head.tree))?;
            let header = match tree.and_then(|tree| tree.header()) {
                Some(header) => unless_lost(reader.blob(header))?.unwrap_or_default(),
                None => Vec::new(),
            };
            let main_chat = head.main_chat.clone();
            candidates.push(Candidate::stored(name.clone(), integrity_of(&header), main_chat));
        }
        if dry_run {
            // What is not stored yet would be, before the backups are taken in.
            for name in scan.chats.iter().filter(|name| lineage.history().head(name).is_none()) {
                if let Ok(captured) = st::capture(library, &scan.groups, name, &Disk) {
                    let content = Content::read(&captured.files.main.bytes, name.is_group());
                    candidates.push(Candidate::new(name.clone(), &content));
                }
            }
        }
        Ok(Self { reader, scan, candidates })
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
        let is_group = self
            .candidates
            .iter()
            .any(|known| known.name.is_group() && backup.may_be_of(known.name.chat()));
        let content = Content::read(&bytes, is_group);
        entry.messages = content.chat.message_count() as u64;
        let index = match self.choose(backup, &content, lineage)? {
            Some(index) => index,
            None => {
                let name = self.free_name(backup, is_group)?;
                self.candidates.push(Candidate::new(name, &content));
                self.candidates.len() - 1
            }
        };
        let candidate = &mut self.candidates[index];
        candidate.load_chats(lineage, &self.reader);
        let name = candidate.name.clone();
        let files = TimelineFiles::alone(&name, bytes.clone());
        let state = State::chat_only(&files);
        if !candidate.chats.insert(archive::write_chat(&state, &mut operation.pack, &self.reader)?)
        {
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
        let new = NewSnapshot {
            source: Some(format!("backups/{}", backup.file)),
            ..NewSnapshot::of(&state, Kind::IMPORT, entry.time)
        };
        candidate.insertions.push(Insertion {
            commit: new.commit(written.tree),
            newcomer: Newcomer::new(&name, &content.chat, None),
        });
        entry.outcome = ChatBackupOutcome::Imported(name);
        Ok(entry)
    }

    /// The timeline that a backup is of: the one that is the same chat by its own word, or else that shares the most.
    fn choose(
        &self,
        backup: &Backup,
        content: &Content<'_>,
        lineage: &mut Lineage,
    ) -> Result<Option<usize>> {
        let possible: Vec<_> = (0..self.candidates.len())
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
            enough.then_some((certain, shared, same_key, std::cmp::Reverse(&candidate.name), *n))
        };
        Ok(possible.iter().zip(stored).filter_map(rank).max().map(|(.., n)| n))
    }

    /// A name for a chat that nobody knows: in its character's folder if that is there.
    fn free_name(&self, backup: &Backup, is_group: bool) -> Result<TimelineName> {
        let mut folders = self.scan.chats.iter().filter_map(|name| name.folder());
        let folder = folders.find(|folder| backup.may_be_of(folder)).unwrap_or(&backup.key);
        let folder = if folder.is_empty() { "unknown" } else { folder };
        let taken = backup.taken.format("%Y-%m-%d %Hh%Mm%Ss");
        let mut number = 1;
        loop {
            let chat = if number == 1 {
                format!("Backup {taken}")
            } else {
                format!("Backup {taken} ({number})")
            };
            let name = if is_group {
                TimelineName::group(&chat)?
            } else {
                TimelineName::solo(folder, &chat)?
            };
            if !self.candidates.iter().any(|known| known.name == name)
                && !self.scan.chats.contains(&name)
            {
                return Ok(name);
            }
            number += 1;
        }
    }

    fn finish(self) -> (BTreeMap<TimelineName, Vec<Insertion>>, Vec<TimelineName>) {
        let with_new =
            self.candidates.into_iter().filter(|candidate| !candidate.insertions.is_empty());
        let mut insertions = BTreeMap::new();
        let mut new = Vec::new();
        for candidate in with_new {
            if !candidate.stored && !self.scan.chats.contains(&candidate.name) {
                new.push(candidate.name.clone());
            }
            insertions.insert(candidate.name, candidate.insertions);
        }
        (insertions, new)
    }
}

impl Candidate {
    fn stored(name: TimelineName, integrity: Option<String>, main_chat: Option<String>) -> Self {
        Self {
            name,
            integrity,
            main_chat,
            chats: HashSet::new(),
            chats_loaded: false,
            stored: true,
            insertions: Vec::new(),
        }
    }

    fn new(name: TimelineName, content: &Content<'_>) -> Self {
        Self {
            stored: false,
            ..Self::stored(name, content.integrity.clone(), content.main_chat.clone())
        }
    }

    fn has_key(&self, backup: &Backup) -> bool {
        backup.may_be_of(self.name.folder().unwrap_or(self.name.chat()))
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

    fn load_chats(&mut self, lineage: &Lineage, reader: &Reader) {
        if std::mem::replace(&mut self.chats_loaded, true) {
            return;
        }
        let own = lineage.own(&self.name).map(|(own, _)| own).unwrap_or_default();
        let chat = |tree| {
            reader
                .tree(tree)
                .ok()?
                .into_iter()
                .find(|entry| entry.name == "chat")
                .map(|entry| entry.id)
        };
        self.chats.extend(own.iter().filter_map(|snapshot| chat(snapshot.tree)));
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
