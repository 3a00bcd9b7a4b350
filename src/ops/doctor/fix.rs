//! Doing what was planned: all of it in one operation, which `stvc undo` takes back whole.
//!
//! Order: read every file anew under the store's lock and hold it against the plan; put all bytes, before and after, into the store; log the
//! operation; then write: new lorebooks first, so that no chat names one that is not there, then chats and groups, removals last. Only one
//! chat is in memory at a time, so each is read again when it is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::examine::stored_book;
use super::repairs::{Repair, Source, Step};
use crate::archive::{self, Blake3, Folders, Kind, Manifest, Snapshot, SnapshotId, State};
use crate::ops::files::{self, FileAction, FilePlan};
use crate::ops::open_page::{Written, reload};
use crate::ops::session::{Follows, Session};
use crate::ops::{Error, Result, Workspace, cache, survey};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{
    self, BookRename, Captured, CapturedBook, CapturedFile, Chat, Library, LibraryPath, Raw,
    Rename, Scan, TimelineName,
};
use crate::store::{FileChange, RefName, Store};

/// What was done.
#[derive(Default)]
pub struct Fixed {
    /// The files that were written or removed.
    pub files: Vec<FileAction>,
    /// For each repair, whether it was done. One is not if a lorebook that nothing used is used by now.
    pub done: Vec<bool>,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

/// An empty lorebook as SillyTavern would write it.
const EMPTY_BOOK: &[u8] = b"{\n    \"entries\": {}\n}";

/// Make repairs that [`doctor`](super::doctor()) planned.
pub fn fix(workspace: &Workspace, repairs: &[&Repair], monitor: &mut dyn Monitor) -> Result<Fixed> {
    if repairs.is_empty() {
        return Ok(Fixed::default());
    }
    let library = workspace.library()?;
    let store = Store::create(&workspace.store_path()?)?;
    let lock = workspace.lock(&store)?;
    let scan = library.scan()?;
    let mut work = Work {
        workspace,
        store: &store,
        library: &library,
        session: Session::new(workspace, &store, Some("kept by a repair")),
        changes: Vec::new(),
        pending: Vec::new(),
        groups: BTreeMap::new(),
        whole: Vec::new(),
        fixed: Fixed::default(),
    };
    monitor.begin("keeping what is there", Some(repairs.len() as u64));
    work.plan_books(repairs, &scan)?;
    for (timeline, edit) in edits(repairs) {
        work.edit_timeline(&scan, timeline, &edit)?;
        monitor.advance(1);
    }
    work.keep_whole_files()?;
    let Work { session, changes, mut pending, mut fixed, .. } = work;
    session.finish(&lock, changes)?;
    monitor.begin("writing", Some(pending.len() as u64));
    pending.sort_by_key(|file| file.turn);
    for file in pending {
        write(library.root(), file)?;
        monitor.advance(1);
    }
    if !fixed.files.is_empty() {
        let subject = library.root().display().to_string();
        fixed.findings.push(reload(library.root(), &subject, Written::REPLACED));
    }
    Ok(fixed)
}

/// All that happens to one timeline's metadata.
#[derive(Default)]
struct Edit<'r> {
    /// The lorebook's name before and after, and the new file.
    own_book: Option<(&'r str, &'r str, &'r LibraryPath)>,
    detach: Option<&'r str>,
    own_recap: bool,
}

fn edits<'r>(repairs: &[&'r Repair]) -> BTreeMap<&'r TimelineName, Edit<'r>> {
    let mut edits: BTreeMap<_, Edit<'_>> = BTreeMap::new();
    for repair in repairs {
        match &repair.step {
            Step::OwnBook { timeline, old, new, path } => {
                edits.entry(timeline).or_default().own_book = Some((old, new, path));
            }
            Step::Detach { timeline, book } => {
                edits.entry(timeline).or_default().detach = Some(book);
            }
            Step::OwnRecap { timeline } => edits.entry(timeline).or_default().own_recap = true,
            Step::WriteBook { .. } | Step::Remove { .. } => {}
        }
    }
    edits
}

/// A file that waits to be written.
struct Pending {
    path: LibraryPath,
    turn: Turn,
    /// What it must hold until then; none: nothing.
    former: Option<Blake3>,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Books,
    Metadata,
    Removals,
}

enum Change {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Another first line, and all else as it is.
    Header(Vec<u8>),
    /// The bytes of another file, which must be these.
    CopyOf(LibraryPath, Blake3),
    /// Not there.
    Nothing,
}

/// Another first line of a chat.
struct Header {
    old_length: usize,
    new: Vec<u8>,
}

/// One run of repairs.
struct Work<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    library: &'a Library,
    session: Session<'a>,
    changes: Vec<FileChange>,
    pending: Vec<Pending>,
    /// The files of groups that are edited: as they are, and as they shall be so far.
    groups: BTreeMap<LibraryPath, (Vec<u8>, Vec<u8>)>,
    /// Files that are no part of a chat with a header, and when it is their turn.
    whole: Vec<(Turn, FilePlan<'static>)>,
    fixed: Fixed,
}

impl Work<'_> {
    /// Plan the lorebooks that are written or removed for themselves.
    fn plan_books(&mut self, repairs: &[&Repair], scan: &Scan) -> Result<()> {
        let root = self.library.root();
        let removes = repairs.iter().any(|repair| matches!(repair.step, Step::Remove { .. }));
        // Somebody may have begun to use one since.
        let unused = if removes { unused_now(self.library, scan)? } else { BTreeSet::new() };
        for repair in repairs {
            let mut done = true;
            match &repair.step {
                Step::WriteBook { path, source } => {
                    if files::read(root, path)?.is_some() {
                        return Err(st::Error::AlreadyThere { path: path.under(root) }.into());
                    }
                    let (bytes, stored_in) = self.book_from(path, source)?;
                    let new = Some(Cow::Owned(bytes));
                    let plan = FilePlan { path: path.clone(), now: None, new, stored_in };
                    self.whole.push((Turn::Books, plan));
                }
                Step::Remove { path } => {
                    let now = files::read(root, path)?;
                    done = unused.contains(path.as_str()) && now.is_some();
                    if done {
                        let plan = FilePlan { path: path.clone(), now, new: None, stored_in: None };
                        self.whole.push((Turn::Removals, plan));
                    }
                }
                _ => {}
            }
            self.fixed.done.push(done);
        }
        Ok(())
    }

    fn book_from(
        &self,
        path: &LibraryPath,
        source: &Source,
    ) -> Result<(Vec<u8>, Option<SnapshotId>)> {
        let root = self.library.root();
        match source {
            Source::Empty => Ok((EMPTY_BOOK.to_vec(), None)),
            Source::CopyOf(other) => match files::read(root, other)? {
                Some(bytes) => Ok((bytes, None)),
                None => Err(changed(root, other)),
            },
            Source::Snapshot(id) => match stored_book(self.store, *id, path)? {
                Some(bytes) => Ok((bytes, Some(*id))),
                None => Err(Error::NoSuchPart { snapshot: id.to_string(), part: "lorebook" }),
            },
        }
    }

    /// Change a timeline's metadata where it stands: in the chat's header or in its group's file.
    fn edit_timeline(&mut self, scan: &Scan, name: &TimelineName, edit: &Edit<'_>) -> Result<()> {
        let root = self.library.root();
        let look = survey::look(Some(self.store), self.library, &scan.groups, name, &mut None)?;
        let captured = look.captured.ok_or_else(|| changed(root, &name.file()))?;
        check(root, &captured, edit)?;
        let chat = Chat::header_of(&captured.chat.bytes, name.is_group());
        let group = captured.group.as_ref().map(|group| group.bytes.as_slice());
        let metadata = st::metadata(&chat, name, group);
        let stands_in = |header: &&[u8]| metadata.is_some_and(|m| !m.span_in(header).is_empty());
        match (chat.header.filter(stands_in), metadata) {
            (Some(header), Some(metadata)) => {
                let change = Header {
                    old_length: header.len(),
                    new: edited(header, metadata, edit, &captured),
                };
                let head = look.head.map(|head| (head, look.unchanged));
                self.change_header(captured, change, edit, head)
            }
            (None, Some(_)) => self.change_group(&captured, edit),
            _ => Err(changed(root, &name.file())),
        }
    }

    /// Both states of the chat go into the store as snapshots that no branch leads to: their messages are there once, and a timeline's history
    /// begins with a snapshot of the user's.
    fn change_header(
        &mut self,
        captured: Captured,
        header: Header,
        edit: &Edit<'_>,
        head: Option<(Snapshot, bool)>,
    ) -> Result<()> {
        let safety = self.keep_state(&captured, head)?;
        let after = with_changes(&captured, &header, edit);
        let follows = Follows::previous(safety.0.clone());
        let state = State::of(&after);
        let (kept, _) = self.session.commit(&state, Kind::SAFETY, follows, &Folders::default())?;
        self.session.move_ref(RefName::kept(kept.id.0), kept.id)?;
        let stored_in = Some(kept.id);
        let former = captured.chat;
        self.pending.push(Pending {
            path: former.path.clone(),
            turn: Turn::Metadata,
            former: Some(Blake3::of(&former.bytes)),
            change: Change::Header(header.new),
        });
        let mut plans = vec![FilePlan {
            path: former.path,
            now: Some(former.bytes.into_vec()),
            new: Some(Cow::Owned(after.chat.bytes.into_vec())),
            stored_in,
        }];
        let new_book = edit.own_book.and(after.lorebook).and_then(|book| book.file);
        let old_book = captured.lorebook.and_then(|book| book.file);
        if let (Some(new), Some(old)) = (new_book, old_book) {
            self.pending.push(Pending {
                path: new.path.clone(),
                turn: Turn::Books,
                former: None,
                change: Change::CopyOf(old.path, Blake3::of(&old.bytes)),
            });
            let bytes = Some(Cow::Owned(new.bytes.into_vec()));
            plans.push(FilePlan { path: new.path, now: None, new: bytes, stored_in });
        }
        let why = format!("Files as they were before {} was repaired", captured.name);
        let changes = files::keep(self.workspace, &plans, Some(&safety), &mut self.session, why)?;
        self.changes.extend(changes);
        self.fixed.files.extend(plans.iter().map(FilePlan::action));
        Ok(())
    }

    /// A snapshot that has what is there, and its manifest: the newest one, or one that is made for it.
    fn keep_state(
        &mut self,
        captured: &Captured,
        head: Option<(Snapshot, bool)>,
    ) -> Result<(Snapshot, Manifest)> {
        let (follows, known) = match head {
            Some((head, true)) => {
                let manifest = archive::read_manifest(&self.store.reader(), head.tree)?;
                return Ok((head, manifest));
            }
            Some((head, false)) => {
                (Follows::previous(head), cache::load_folders(self.store, &captured.name))
            }
            None => (Follows::default(), Folders::default()),
        };
        let state = State::of(captured);
        let (kept, _) = self.session.commit(&state, Kind::SAFETY, follows, &known)?;
        Ok((kept, state.manifest))
    }

    /// Several chats may have their metadata in one group's file: it is changed for one after the other.
    fn change_group(&mut self, captured: &Captured, edit: &Edit<'_>) -> Result<()> {
        let root = self.library.root();
        let group = captured.group.as_ref();
        let group = group.ok_or_else(|| changed(root, &captured.chat.path))?;
        let states = self
            .groups
            .entry(group.path.clone())
            .or_insert_with(|| (group.bytes.to_vec(), group.bytes.to_vec()));
        if states.0 != *group.bytes {
            return Err(changed(root, &group.path));
        }
        let headless = Chat { header: None, messages: Vec::new() };
        let metadata = st::metadata(&headless, &captured.name, Some(&states.1));
        let metadata = metadata.ok_or_else(|| changed(root, &group.path))?;
        states.1 = edited(&states.1, metadata, edit, captured);
        if let (Some((_, _, path)), Some(source)) = (edit.own_book, book_file(captured)) {
            let new = Some(Cow::Owned(source.bytes.to_vec()));
            let plan = FilePlan { path: path.clone(), now: None, new, stored_in: None };
            self.whole.push((Turn::Books, plan));
        }
        Ok(())
    }

    /// Keep both states of lorebooks and groups.
    fn keep_whole_files(&mut self) -> Result<()> {
        let groups = std::mem::take(&mut self.groups).into_iter().map(|(path, (now, new))| {
            let new = Some(Cow::Owned(new));
            (Turn::Metadata, FilePlan { path, now: Some(now), new, stored_in: None })
        });
        let (turns, plans): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.whole).into_iter().chain(groups).unzip();
        let why = "Files as they were before a repair".to_owned();
        self.changes.extend(files::keep(self.workspace, &plans, None, &mut self.session, why)?);
        for (turn, plan) in turns.into_iter().zip(plans) {
            self.fixed.files.push(plan.action());
            self.pending.push(Pending {
                turn,
                former: plan.now.as_deref().map(Blake3::of),
                change: plan.new.map_or(Change::Nothing, |new| Change::Bytes(new.into_owned())),
                path: plan.path,
            });
        }
        Ok(())
    }
}

/// The lorebooks that nothing uses, if that is certain.
fn unused_now(library: &Library, scan: &Scan) -> Result<BTreeSet<String>> {
    let references = library.references(scan);
    let names = library.lorebooks()?;
    if !references.unreadable.is_empty() {
        return Ok(BTreeSet::new());
    }
    let path = |name: &str| format!("worlds/{name}.json");
    Ok(references.unused(&names).into_iter().map(path).collect())
}

/// Whether the timeline is still what the plan was made for.
fn check(root: &Path, captured: &Captured, edit: &Edit<'_>) -> Result<()> {
    let book = captured.lorebook.as_ref();
    let bound = book.map(|book| (book.name.as_str(), book.file.is_some()));
    if let Some((_, _, path)) = edit.own_book
        && path.under(root).exists()
    {
        return Err(st::Error::AlreadyThere { path: path.under(root) }.into());
    }
    let fits = match (edit.own_book, edit.detach) {
        (Some((old, ..)), _) => bound == Some((old, true)),
        (None, Some(missing)) => bound == Some((missing, false)),
        (None, None) => true,
    };
    if fits { Ok(()) } else { Err(changed(root, &captured.chat.path)) }
}

fn changed(root: &Path, path: &LibraryPath) -> Error {
    st::Error::SavedMeanwhile { path: path.under(root) }.into()
}

fn book_file(captured: &Captured) -> Option<&CapturedFile> {
    captured.lorebook.as_ref()?.file.as_ref()
}

/// `text`, in which `metadata` stands, changed.
fn edited(text: &[u8], metadata: Raw<'_>, edit: &Edit<'_>, captured: &Captured) -> Vec<u8> {
    let book = edit.own_book.zip(book_file(captured));
    let rename = Rename {
        chat: edit.own_recap.then_some(captured.name.chat()),
        book: book.map(|((old, new, _), file)| BookRename { old, new, bytes: &file.bytes }),
        ..Rename::default()
    };
    let renamed = st::rename_in_metadata(text, metadata, &rename);
    if edit.detach.is_none() {
        return renamed;
    }
    // The metadata has moved: it is found again by where it begins.
    let begin = metadata.span_in(text).start;
    let moved = metadata.as_bytes().len() + renamed.len() - text.len();
    let metadata = Raw::parse(&renamed[begin..begin + moved]);
    match metadata {
        Some(metadata) => st::unbind_lorebook(&renamed, metadata),
        None => renamed,
    }
}

/// The timeline with its new header and lorebook.
fn with_changes(captured: &Captured, header: &Header, edit: &Edit<'_>) -> Captured {
    let chat = [&header.new, &captured.chat.bytes[header.old_length..]].concat();
    let own_book = edit.own_book.zip(book_file(captured));
    let lorebook = match own_book {
        Some(((_, new, path), source)) => Some(CapturedBook {
            name: new.to_owned(),
            path: Some(path.clone()),
            file: Some(CapturedFile { path: path.clone(), ..source.clone() }),
        }),
        None if edit.detach.is_some() => None,
        None => captured.lorebook.clone(),
    };
    Captured {
        name: captured.name.clone(),
        chat: CapturedFile {
            path: captured.chat.path.clone(),
            bytes: chat.into(),
            stamp: captured.chat.stamp,
        },
        lorebook,
        group: captured.group.clone(),
        seen_ns: captured.seen_ns,
    }
}

fn write(root: &Path, file: Pending) -> Result<()> {
    let now = files::read(root, &file.path)?;
    if now.as_deref().map(Blake3::of) != file.former {
        return Err(changed(root, &file.path));
    }
    let new = match file.change {
        Change::Bytes(bytes) => Some(bytes),
        Change::Nothing => None,
        Change::Header(header) => {
            let bytes = now.as_deref().unwrap_or_default();
            let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
            Some([&header, &bytes[end..]].concat())
        }
        Change::CopyOf(other, hash) => {
            let bytes = files::read(root, &other)?.filter(|bytes| Blake3::of(bytes) == hash);
            Some(bytes.ok_or_else(|| changed(root, &other))?)
        }
    };
    let new = new.map(Cow::Owned);
    files::write(root, &[FilePlan { path: file.path, now, new, stored_in: None }])
}
