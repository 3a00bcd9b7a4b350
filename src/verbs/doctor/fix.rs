//! Doing what was planned: all of it in one operation, which `stvc undo` takes back whole.
//!
//! Order: read every file anew under the store's lock and hold it against the plan; put all bytes, before and after, into the store; then all
//! of it is one operation: new lorebooks first, so that no chat names one that is not there, then chats and groups, removals last. Only one
//! chat is in memory at a time, so each is read from the store when it is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::examine::stored_book;
use super::repairs::{OwnBook, Repair, RepairStep, Source};
use crate::archive::{self, Kind, Snapshot, SnapshotId, State};
use crate::auto_recap::{self, Wish, without_mapped};
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::operation::{Ending, Follows, Operation};
use crate::engine::reload_page::{Written, reload};
use crate::engine::take_first::take_as_it_is;
use crate::engine::{self, Workspace, changed_timelines};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{
    self, BookRename, BoundBook, Category, Chat, Library, LibraryPath, Raw, Rename, Scan,
    TimelineFiles, TimelineName,
};
use crate::store::Store;
use crate::verbs::{Error, Result};

/// What was done.
#[derive(Default)]
pub struct Fixed {
    /// The files that were written or removed.
    pub files: Vec<FileAction>,
    /// For each repair, whether it was done. One is not if a lorebook that nothing used is used by now, or if ST-Auto-Recap is at work in one that was to be copied.
    pub done: Vec<bool>,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

/// An empty lorebook as SillyTavern would write it.
const EMPTY_BOOK: &[u8] = b"{\n    \"entries\": {}\n}";

/// Make repairs that [`doctor`](super::doctor()) planned.
pub fn fix(
    workspace: &Workspace,
    repairs: &[&Repair],
    closed: Closed,
    monitor: &mut dyn Monitor,
) -> Result<Fixed> {
    if repairs.is_empty() {
        return Ok(Fixed::default());
    }
    let library = workspace.library()?;
    // Everything is stored as it is before it is changed; a fork finds where it comes from on the way.
    let first = take_as_it_is(workspace, None, monitor)?;
    let refused: Vec<_> = repairs.iter().map(|repair| at_work(&library, repair)).collect();
    let allowed = repairs.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
    let allowed: Vec<_> = allowed.map(|(repair, _)| *repair).collect();
    let mut fixed = if allowed.is_empty() {
        Fixed::default()
    } else {
        fix_stored(workspace, &library, &allowed, closed, monitor)
            .map_err(Error::after(first.new > 0))?
    };
    let mut done = std::mem::take(&mut fixed.done).into_iter();
    let is_done = |refused: &Option<Finding>| refused.is_none() && done.next() == Some(true);
    fixed.done = refused.iter().map(is_done).collect();
    fixed.findings.extend(refused.into_iter().flatten());
    fixed.findings.extend(first.findings);
    Ok(fixed)
}

/// Why a lorebook cannot be copied just now, if it cannot.
fn at_work(library: &Library, repair: &Repair) -> Option<Finding> {
    let (subject, book) = match &repair.step {
        RepairStep::OwnBook { timeline, book } => {
            (timeline.as_str(), st::lorebook_path(&book.old)?)
        }
        RepairStep::Write { path, source: Source::CopyOf(other), .. } => {
            (path.as_str(), other.clone())
        }
        _ => return None,
    };
    let bytes = files::read(library.root(), &book).ok()??;
    auto_recap::queue_active(subject, Some(&bytes), Wish::Copy)
}

fn fix_stored(
    workspace: &Workspace,
    library: &Library,
    repairs: &[&Repair],
    closed: Closed,
    monitor: &mut dyn Monitor,
) -> Result<Fixed> {
    let touched = touched(library, repairs)?;
    let (store, held) = workspace.hold(&Store::create(&workspace.store_path()?)?)?;
    let scan = library.scan()?;
    let mut work = Work {
        store: &store,
        library,
        operation: Operation::new(workspace, &store, Some("after a repair")),
        closed,
        turns: BTreeMap::new(),
        groups: BTreeMap::new(),
        whole: Vec::new(),
        taken: BTreeSet::new(),
        fixed: Fixed::default(),
    };
    monitor.begin("keeping what is there", Some(repairs.len() as u64));
    work.plan_books(repairs, &scan)?;
    let doable = repairs.iter().zip(&work.fixed.done).filter(|(_, done)| **done);
    let doable: Vec<_> = doable.map(|(repair, _)| *repair).collect();
    for (timeline, edit) in edits(&doable) {
        work.edit_timeline(&scan, timeline, &edit)?;
        monitor.advance(1);
    }
    work.keep_whole_files()?;
    let Work { mut operation, turns, mut fixed, taken, .. } = work;
    let ending = Ending { message: "after a repair", ..Ending::default() };
    for timeline in touched.difference(&taken) {
        operation.end_with(library, timeline, &ending)?;
    }
    operation.end_others(library, &ending)?;
    monitor.begin("writing", None);
    operation.order_files(|path| turns.get(path).copied());
    operation.finish(&held)?;
    if !fixed.files.is_empty() {
        let subject = library.root().display().to_string();
        fixed.findings.push(reload(library.root(), &subject, Written::REPLACED));
    }
    Ok(fixed)
}

/// The timelines whose chat or lorebook will not be what it is.
fn touched(library: &Library, repairs: &[&Repair]) -> Result<BTreeSet<TimelineName>> {
    let mut touched: BTreeSet<_> = edits(repairs).into_keys().cloned().collect();
    for repair in repairs {
        match &repair.step {
            RepairStep::Write { path, users, .. } => {
                touched.extend(users.iter().cloned());
                match TimelineName::of_file(path).map(|name| name.category()) {
                    // What it says of a chat without a header is a part of that chat.
                    Some(Category::Group) => {
                        let chats = library.scan()?.chats;
                        touched.extend(chats.into_iter().filter(TimelineName::is_group));
                    }
                    Some(Category::Lorebook) | None => {
                        touched.extend(st::users_of_lorebook(library, path)?);
                    }
                    Some(_) => {}
                }
            }
            RepairStep::ListInGroup { timeline, .. } => {
                touched.insert(timeline.clone());
            }
            _ => {}
        }
    }
    Ok(touched)
}

/// All that happens to one timeline's metadata.
#[derive(Default)]
struct Edit<'r> {
    own_book: Option<&'r OwnBook>,
    detach: Option<&'r str>,
    own_recap: bool,
    /// The lorebooks that are removed, and go from its map of checkpoints.
    unmap: Vec<&'r LibraryPath>,
}

fn edits<'r>(repairs: &[&'r Repair]) -> BTreeMap<&'r TimelineName, Edit<'r>> {
    let mut edits: BTreeMap<_, Edit<'_>> = BTreeMap::new();
    for repair in repairs {
        match &repair.step {
            RepairStep::OwnBook { timeline, book } => {
                edits.entry(timeline).or_default().own_book = Some(book);
            }
            RepairStep::Detach { timeline, book } => {
                edits.entry(timeline).or_default().detach = Some(book);
            }
            RepairStep::OwnRecap { timeline } => {
                edits.entry(timeline).or_default().own_recap = true
            }
            RepairStep::Remove { path, mapped_in } => {
                for owner in mapped_in {
                    edits.entry(owner).or_default().unmap.push(path);
                }
            }
            RepairStep::Write { .. } | RepairStep::ListInGroup { .. } => {}
        }
    }
    edits
}

/// When it is a file's turn to be written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Books,
    Metadata,
    Removals,
}

/// Another first line of a chat.
struct Header {
    old_length: usize,
    new: Vec<u8>,
}

/// One run of repairs.
struct Work<'a> {
    store: &'a Store,
    library: &'a Library,
    operation: Operation<'a>,
    closed: Closed,
    turns: BTreeMap<LibraryPath, Turn>,
    /// The files of groups that are edited: as they are, and as they shall be so far.
    groups: BTreeMap<LibraryPath, (Vec<u8>, Vec<u8>)>,
    /// Files that are no part of a chat with a header, and when it is their turn.
    whole: Vec<(Turn, FilePlan<'static>)>,
    /// The timelines whose state after it is taken already.
    taken: BTreeSet<TimelineName>,
    fixed: Fixed,
}

impl Work<'_> {
    /// Plan the lorebooks that are written or removed for themselves.
    fn plan_books(&mut self, repairs: &[&Repair], scan: &Scan) -> Result<()> {
        let root = self.library.root();
        let removes = repairs.iter().any(|repair| matches!(repair.step, RepairStep::Remove { .. }));
        // Somebody may have begun to use one since.
        let unused = if removes { unused_now(self.library, scan)? } else { BTreeSet::new() };
        for repair in repairs {
            let mut done = true;
            match &repair.step {
                RepairStep::Write { path, source, .. } => {
                    let now = files::read(root, path)?;
                    let name = TimelineName::of_file(path);
                    let is_valid = |now: &[u8]| match &name {
                        Some(name) => st::damage(name, now).is_none(),
                        None => st::book_damage(now).is_none(),
                    };
                    if now.as_deref().is_some_and(is_valid) {
                        return Err(st::Error::AlreadyThere { path: path.under(root) }.into());
                    }
                    let (bytes, stored_in) = self.book_from(path, source)?;
                    let new = Some(Cow::Owned(bytes));
                    let plan = FilePlan::new(path.clone(), now, new).stored_in(stored_in);
                    self.whole.push((Turn::Books, plan));
                }
                RepairStep::Remove { path, .. } => {
                    let now = files::read(root, path)?;
                    done = unused.contains(path.as_str()) && now.is_some();
                    if done {
                        self.whole.push((Turn::Removals, FilePlan::new(path.clone(), now, None)));
                    }
                }
                RepairStep::ListInGroup { timeline, group, metadata } => {
                    done = self.list_in_group(timeline, group, metadata.as_deref())?;
                }
                _ => {}
            }
            self.fixed.done.push(done);
        }
        Ok(())
    }

    /// Lists a chat in its group's file; whether that can be edited.
    fn list_in_group(
        &mut self,
        name: &TimelineName,
        group: &LibraryPath,
        metadata: Option<&[u8]>,
    ) -> Result<bool> {
        let root = self.library.root();
        if !self.groups.contains_key(group) {
            let now = files::read(root, group)?.ok_or_else(|| changed(root, group))?;
            self.groups.insert(group.clone(), (now.clone(), now));
        }
        let Some((_, so_far)) = self.groups.get_mut(group) else { return Ok(false) };
        let listed = st::list_in_group(so_far, name);
        let new = match metadata {
            Some(own) => listed.and_then(|group| st::set_group_metadata(&group, name, own)),
            None => listed,
        };
        let is_listed = new.is_some();
        *so_far = new.unwrap_or_else(|| so_far.clone());
        Ok(is_listed)
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
                Some(bytes) if st::book_damage(&bytes).is_none() => Ok((bytes, None)),
                _ => Err(changed(root, other)),
            },
            Source::Snapshot(id) => match stored_book(self.store, *id, path)? {
                Some((bytes, is_here)) => Ok((bytes, is_here.then_some(*id))),
                None => {
                    Err(engine::Error::NoSuchPart { snapshot: id.to_string(), part: "lorebook" }
                        .into())
                }
            },
        }
    }

    /// Change a timeline's metadata where it stands: in the chat's header or in its group's file.
    fn edit_timeline(&mut self, scan: &Scan, name: &TimelineName, edit: &Edit<'_>) -> Result<()> {
        let root = self.library.root();
        let look =
            changed_timelines::look(Some(self.store), self.library, &scan.groups, name, &mut None)?;
        let is_stored = !look.is_new();
        let captured = look.captured.ok_or_else(|| changed(root, &name.file()))?;
        let files = captured.files;
        check(root, &files, edit)?;
        let chat = Chat::header_of(&files.main.bytes, name.is_group());
        let metadata = files.metadata(&chat);
        let stands_in = |header: &&[u8]| metadata.is_some_and(|m| !m.span_in(header).is_empty());
        match (chat.header.filter(stands_in), metadata) {
            (Some(header), Some(metadata)) => {
                let change = Header {
                    old_length: header.len(),
                    new: edited(header, metadata, edit, &files),
                };
                let head = look.head.filter(|_| is_stored);
                let head = head.ok_or_else(|| st::Error::SavedMeanwhile {
                    path: files.main.path.under(self.library.root()),
                })?;
                self.taken.insert(files.timeline.clone());
                self.change_header(files, change, edit, head)
            }
            (None, Some(_)) => self.change_group(&files, edit),
            _ => Err(changed(root, &name.file())),
        }
    }

    /// What is there is the newest snapshot, and what comes follows it.
    fn change_header(
        &mut self,
        files: TimelineFiles,
        header: Header,
        edit: &Edit<'_>,
        head: Snapshot,
    ) -> Result<()> {
        let manifest = archive::read_manifest(&self.store.reader(), head.tree)?;
        let mut after = with_changes(&files, &header, edit);
        // A book that was missing may come back by another repair.
        let book = after.lorebook.as_ref().filter(|book| book.bytes.is_none());
        let path = book.and_then(|book| st::lorebook_path(&book.name));
        let mut planned = self.whole.iter().map(|(_, plan)| plan);
        if let Some(plan) = planned.find(|plan| Some(&plan.path) == path.as_ref())
            && let Some(bytes) = plan.new_bytes()
        {
            after.set_book(bytes.to_vec());
        }
        let had = head.id;
        let state = State::of(&after);
        let taken = self.operation.take(&state, Kind::SNAPSHOT, Follows::previous(head))?;
        let stored_in = Some(taken.id);
        let former = files.main;
        self.turns.insert(former.path.clone(), Turn::Metadata);
        let new = Some(Cow::Owned(after.main.bytes.to_vec()));
        let chat = FilePlan::new(former.path, Some(former.bytes.into_vec()), new);
        let chat = vec![chat.stored_in(stored_in)];
        let why = format!("Files as they were before {} was repaired", files.timeline);
        let (root, leave) = (self.library.root(), self.leave());
        let had = [(had, &manifest)];
        let planned = self.operation.write_stored_files(root, chat, &had, leave, &why)?;
        self.fixed.files.extend(planned.actions);
        if let Some(new) = after.book().filter(|_| edit.own_book.is_some()) {
            self.turns.insert(new.path.clone(), Turn::Books);
            let bytes = Some(Cow::Owned(new.bytes.to_vec()));
            let plan = FilePlan::new(new.path.clone(), None, bytes);
            self.plan(vec![plan.stored_in(stored_in)], &why)?;
        }
        Ok(())
    }

    /// Several chats may have their metadata in one group's file: it is changed for one after the other.
    fn change_group(&mut self, files: &TimelineFiles, edit: &Edit<'_>) -> Result<()> {
        let root = self.library.root();
        let group = files.group.as_ref();
        let group = group.ok_or_else(|| changed(root, &files.main.path))?;
        let states = self
            .groups
            .entry(group.path.clone())
            .or_insert_with(|| (group.bytes.to_vec(), group.bytes.to_vec()));
        if states.0 != *group.bytes {
            return Err(changed(root, &group.path));
        }
        let headless = Chat { header: None, messages: Vec::new() };
        let metadata = st::metadata(&headless, &files.timeline, Some(&states.1));
        let metadata = metadata.ok_or_else(|| changed(root, &group.path))?;
        states.1 = edited(&states.1, metadata, edit, files);
        if let (Some(own), Some(source)) = (edit.own_book, files.book()) {
            let new = Some(Cow::Owned(source.bytes.to_vec()));
            self.whole.push((Turn::Books, FilePlan::new(own.path.clone(), None, new)));
        }
        Ok(())
    }

    /// Keep both states of lorebooks and groups.
    fn keep_whole_files(&mut self) -> Result<()> {
        let groups = std::mem::take(&mut self.groups).into_iter().map(|(path, (now, new))| {
            (Turn::Metadata, FilePlan::new(path, Some(now), Some(Cow::Owned(new))))
        });
        let (turns, plans): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.whole).into_iter().chain(groups).unzip();
        for (turn, plan) in turns.into_iter().zip(&plans) {
            self.turns.insert(plan.path.clone(), turn);
        }
        self.plan(plans, "Files as they were before a repair")
    }

    fn plan(&mut self, plans: Vec<FilePlan<'static>>, why: &str) -> Result<()> {
        let (root, leave) = (self.library.root(), self.leave());
        let planned = self.operation.write_files(root, plans, &[], leave, why)?;
        self.fixed.files.extend(planned.actions);
        Ok(())
    }

    fn leave(&self) -> Leave {
        Leave { closed: self.closed, active_queue: false }
    }
}

/// The lorebooks that nothing uses. What cannot be read now could be read when the repair was planned.
fn unused_now(library: &Library, scan: &Scan) -> Result<BTreeSet<String>> {
    let references = library.references(scan);
    let names = library.lorebooks()?;
    if let Some((subject, why)) = references.unreadable.first() {
        let (path, source) = (library.root().join(subject), io::Error::other(why.clone()));
        return Err(st::Error::Io { path, source }.into());
    }
    let path = |name: &str| format!("worlds/{name}.json");
    Ok(references.unused(&names).into_iter().map(path).collect())
}

/// Whether the timeline is still what the plan was made for.
fn check(root: &Path, files: &TimelineFiles, edit: &Edit<'_>) -> Result<()> {
    let book = files.lorebook.as_ref();
    let bound = book.map(|book| (book.name.as_str(), book.bytes.is_some()));
    let new = edit.own_book.map(|own| own.path.under(root));
    if let Some(path) = new.filter(|path| path.exists()) {
        return Err(st::Error::AlreadyThere { path }.into());
    }
    let is_damaged = || files.book_bytes().and_then(st::book_damage).is_some();
    let fits = match (edit.own_book, edit.detach) {
        (Some(own), _) => bound == Some((&own.old, true)) && !is_damaged(),
        (None, Some(missing)) => bound == Some((missing, false)) && files.unread_book().is_none(),
        (None, None) => true,
    };
    if fits { Ok(()) } else { Err(changed(root, &files.main.path)) }
}

fn changed(root: &Path, path: &LibraryPath) -> Error {
    st::Error::SavedMeanwhile { path: path.under(root) }.into()
}

/// `text`, in which `metadata` stands, changed.
fn edited(text: &[u8], metadata: Raw<'_>, edit: &Edit<'_>, files: &TimelineFiles) -> Vec<u8> {
    let book = edit.own_book.zip(files.book());
    let rename = Rename {
        chat: edit.own_recap.then_some(files.timeline.chat()),
        book: book.map(|(own, file)| BookRename {
            old: &own.old,
            new: &own.new,
            bytes: file.bytes,
        }),
        ..Rename::default()
    };
    let mut edited = st::rename_in_metadata(text, metadata, &rename);
    // The metadata has another length now: it is found again by where it begins and by what follows it.
    let span = metadata.span_in(text);
    let after = text.len() - span.end;
    let again = |text: &[u8], change: &dyn Fn(Raw<'_>) -> Vec<u8>| {
        Raw::parse(&text[span.start..text.len() - after]).map(change)
    };
    if edit.detach.is_some() {
        let unbound = again(&edited, &|metadata| st::unbind_lorebook(&edited, metadata));
        edited = unbound.unwrap_or(edited);
    }
    if !edit.unmap.is_empty() {
        let is_removed =
            |book: &str| st::lorebook_path(book).is_some_and(|path| edit.unmap.contains(&&path));
        let unmapped = again(&edited, &|metadata| without_mapped(&edited, metadata, is_removed));
        edited = unmapped.unwrap_or(edited);
    }
    edited
}

/// The timeline with its new header and lorebook.
fn with_changes(files: &TimelineFiles, header: &Header, edit: &Edit<'_>) -> TimelineFiles {
    let mut after = files.clone();
    after.main.bytes = [&header.new, &files.main.bytes[header.old_length..]].concat().into();
    match edit.own_book.zip(files.book()) {
        Some((own, source)) => {
            let bytes = source.bytes.to_vec();
            after.lorebook = Some(BoundBook::new(&own.new, own.path.clone(), bytes));
        }
        None if edit.detach.is_some() => after.lorebook = None,
        None => {}
    }
    after
}
