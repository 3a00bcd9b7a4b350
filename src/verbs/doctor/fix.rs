//! Carries out repairs in one operation, which `stvc undo` can undo.
//!
//! Order:
//!
//! 1. Read every file again under the store's lock, and compare it with the plan.
//! 2. Store the former and the new content of every file.
//! 3. Write lorebooks first, so that no chat refers to a missing lorebook. Then write chats and
//!    groups, and remove files last.
//!
//! Only one chat is in memory at a time. When a chat's file is written, its new content is read
//! from the store.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::repairs::{OwnBook, Repair, RepairStep, Source};
use crate::archive::{Kind, Role, Snapshot, SnapshotId, State, Tree, read_manifest};
use crate::auto_recap::{self, QueueIntent, without_mapped};
use crate::engine::files::{self, ChatOpenState, FileAction, FilePlan, WritePermissions};
use crate::engine::operation::{FinalSnapshot, Operation, SnapshotParents};
use crate::engine::reload_page::{WriteEffects, reload};
use crate::engine::safety_snapshots::take_as_it_is;
use crate::engine::{self, Workspace, changed_timelines};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{
    self, BookRename, BoundBook, Category, Chat, Library, LibraryPath, Raw, Rename, Scan,
    TimelineFiles, TimelineName,
};
use crate::store::Store;
use crate::verbs::{Error, Result};

/// The results of the repairs.
#[derive(Default)]
#[non_exhaustive]
pub struct FixReport {
    /// Files that the repairs wrote or deleted.
    pub files: Vec<FileAction>,
    /// Whether each repair was made, in the order of the requested repairs. A repair is not made if
    /// the lorebook to remove is in use again, if ST-Auto-Recap is changing the lorebook to copy,
    /// or if the group's file cannot be edited.
    pub done: Vec<bool>,
    /// Problems of the repairs, and advice for SillyTavern's page.
    pub findings: Vec<Finding>,
}

/// An empty lorebook in the format that SillyTavern writes.
const EMPTY_BOOK: &[u8] = b"{\n    \"entries\": {}\n}";

/// Carries out repairs that [`doctor`](super::doctor()) planned.
pub fn fix(
    workspace: &Workspace,
    repairs: &[&Repair],
    closed: ChatOpenState,
    monitor: &mut dyn Monitor,
) -> Result<FixReport> {
    if repairs.is_empty() {
        return Ok(FixReport::default());
    }
    // Create snapshots of all current files before any file is changed. These snapshots also record
    // the parents of forks.
    let first = take_as_it_is(workspace, None, monitor)?;
    let fixed = fix_stored(workspace, repairs, closed, monitor);
    let mut fixed = fixed.map_err(|error| if first.new > 0 { error.partway() } else { error })?;
    fixed.findings.extend(first.findings);
    Ok(fixed)
}

fn fix_stored(
    workspace: &Workspace,
    repairs: &[&Repair],
    closed: ChatOpenState,
    monitor: &mut dyn Monitor,
) -> Result<FixReport> {
    let library = workspace.library()?;
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let scan = library.scan()?;
    let removes = repairs.iter().any(|repair| matches!(repair.step, RepairStep::Remove { .. }));
    let mut work = Fixer {
        store: &store,
        library: &library,
        scan: &scan,
        operation: Operation::new(workspace, &store, Some("after a repair")),
        permissions: WritePermissions { closed, active_queue: false },
        unused: if removes { unused_now(&library, &scan)? } else { BTreeSet::new() },
        groups: BTreeMap::new(),
        plans: Vec::new(),
        actions: Vec::new(),
    };
    monitor.begin("storing current files", Some(repairs.len() as u64));
    let busy: Vec<_> = repairs.iter().map(|repair| busy_queue(&library, repair)).collect();
    let mut fixed = FixReport::default();
    let mut doable = Vec::new();
    for (repair, busy) in repairs.iter().zip(&busy) {
        let done = busy.is_none() && work.plan_file_of(repair)?;
        fixed.done.push(done);
        doable.extend(done.then_some(*repair));
    }
    let mut touched = touched(&library, &doable)?;
    for (timeline, steps) in edits(&doable) {
        if work.edit_timeline(timeline, &steps)? {
            touched.remove(timeline);
        }
        monitor.advance(1);
    }
    let groups = std::mem::take(&mut work.groups).into_iter();
    work.plans.extend(groups.map(|(path, (now, new))| plan(path, Some(now), new)));
    let plans = std::mem::take(&mut work.plans);
    let removed = plans.iter().filter(|plan| plan.new_bytes().is_none());
    let removed: BTreeSet<_> = removed.map(|plan| plan.path.clone()).collect();
    work.write(plans, "Files as they were before a repair")?;
    let Fixer { mut operation, actions, .. } = work;
    let ending = FinalSnapshot { message: "after a repair", ..FinalSnapshot::default() };
    for timeline in &touched {
        operation.end_with(&library, timeline, &ending)?;
    }
    operation.end_others(&library, &ending)?;
    monitor.begin("writing", None);
    operation.order_files(|path| match path {
        path if removed.contains(path) => RepairOrder::Removals,
        path if path.is_lorebook() => RepairOrder::Books,
        _ => RepairOrder::Others,
    });
    operation.finish(&held)?;
    if !actions.is_empty() {
        fixed.findings.push(reload(library.root(), None, WriteEffects::REPLACED));
    }
    fixed.files = actions;
    fixed.findings.extend(busy.into_iter().flatten());
    Ok(fixed)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum RepairOrder {
    Books,
    Others,
    Removals,
}

/// Returns a finding if ST-Auto-Recap is changing the lorebook that the repair copies.
fn busy_queue(library: &Library, repair: &Repair) -> Option<Finding> {
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
    auto_recap::queue_active(subject, Some(&bytes), QueueIntent::Copy)
}

/// Returns the timelines whose chat or lorebook will change.
fn touched(library: &Library, repairs: &[&Repair]) -> Result<BTreeSet<TimelineName>> {
    let mut touched: BTreeSet<_> = edits(repairs).into_keys().cloned().collect();
    for repair in repairs {
        match &repair.step {
            RepairStep::Write { path, users, .. } => {
                touched.extend(users.iter().cloned());
                match TimelineName::of_file(path).map(|name| name.category()) {
                    // A group's file contains the metadata of those chats that have no header.
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

/// Returns the steps that edit a chat's metadata, grouped by timeline.
fn edits<'r>(repairs: &[&'r Repair]) -> BTreeMap<&'r TimelineName, Vec<&'r RepairStep>> {
    let mut edits: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for step in repairs.iter().map(|repair| &repair.step) {
        let timelines = match step {
            RepairStep::OwnBook { timeline, .. }
            | RepairStep::Detach { timeline, .. }
            | RepairStep::OwnRecap { timeline } => std::slice::from_ref(timeline),
            RepairStep::Remove { mapped_in, .. } => mapped_in,
            RepairStep::Write { .. } | RepairStep::ListInGroup { .. } => &[],
        };
        timelines.iter().for_each(|timeline| edits.entry(timeline).or_default().push(step));
    }
    edits
}

struct Fixer<'a> {
    store: &'a Store,
    library: &'a Library,
    scan: &'a Scan,
    operation: Operation<'a>,
    permissions: WritePermissions,
    /// Paths of the lorebooks that nothing uses now. Empty if no repair removes a lorebook.
    unused: BTreeSet<String>,
    /// Group files to edit. Each has its content on disk, and its new content after the edits so
    /// far.
    groups: BTreeMap<LibraryPath, (Vec<u8>, Vec<u8>)>,
    /// Planned writes and removals, except for chats whose metadata is in their header.
    plans: Vec<FilePlan<'static>>,
    actions: Vec<FileAction>,
}

fn plan(path: LibraryPath, now: Option<Vec<u8>>, new: Vec<u8>) -> FilePlan<'static> {
    FilePlan::new(path, now, Some(Cow::Owned(new)))
}

impl Fixer<'_> {
    /// Plans the file that a repair writes or removes. Returns false if the repair is no longer
    /// possible.
    fn plan_file_of(&mut self, repair: &Repair) -> Result<bool> {
        let root = self.library.root();
        match &repair.step {
            RepairStep::Write { path, source, .. } => {
                let now = files::read(root, path)?;
                let is_valid = |now: &[u8]| match TimelineName::of_file(path) {
                    Some(name) => st::damage(&name, now).is_none(),
                    None => st::book_damage(now).is_none(),
                };
                if now.as_deref().is_some_and(is_valid) {
                    return Err(st::Error::AlreadyThere { path: path.under(root) }.into());
                }
                let (bytes, stored_in) = self.bytes_from(path, source)?;
                self.plans.push(plan(path.clone(), now, bytes).stored_in(stored_in));
            }
            RepairStep::Remove { path, .. } => {
                let now = files::read(root, path)?;
                if now.is_none() || !self.unused.contains(path.as_str()) {
                    return Ok(false);
                }
                self.plans.push(FilePlan::new(path.clone(), now, None));
            }
            RepairStep::ListInGroup { timeline, group, metadata } => {
                if !self.groups.contains_key(group) {
                    let now = files::read(root, group)?.ok_or_else(|| changed(root, group))?;
                    self.groups.insert(group.clone(), (now.clone(), now));
                }
                let Some((_, so_far)) = self.groups.get_mut(group) else { return Ok(false) };
                let mut new = st::list_in_group(so_far, timeline);
                if let Some(own) = metadata {
                    new = new.and_then(|group| st::set_group_metadata(&group, timeline, own));
                }
                let Some(new) = new else { return Ok(false) };
                *so_far = new;
            }
            RepairStep::OwnBook { .. }
            | RepairStep::Detach { .. }
            | RepairStep::OwnRecap { .. } => {}
        }
        Ok(true)
    }

    /// Returns the new content of a file, and the snapshot that contains this content under the
    /// same path, if there is such a snapshot.
    fn bytes_from(
        &self,
        path: &LibraryPath,
        source: &Source,
    ) -> Result<(Vec<u8>, Option<SnapshotId>)> {
        let root = self.library.root();
        let id = match source {
            Source::Empty => return Ok((EMPTY_BOOK.to_vec(), None)),
            Source::CopyOf(other) => match files::read(root, other)? {
                Some(bytes) if st::book_damage(&bytes).is_none() => return Ok((bytes, None)),
                _ => return Err(changed(root, other)),
            },
            Source::Snapshot(id) => *id,
        };
        let reader = self.store.reader();
        let snapshot = Snapshot::read(&reader.commit(id.0)?)?;
        let tree = Tree::open(&reader, snapshot.tree)?;
        let is_chat = snapshot.timeline.is_chat();
        let role = if is_chat { Role::Lorebook } else { tree.manifest.main_role() };
        let Some(record) = tree.manifest.file(role) else {
            let snapshot = id.to_string();
            return Err(engine::Error::NoSuchPart { snapshot, part: "lorebook" }.into());
        };
        let stored_in = (record.path == path.as_str()).then_some(id);
        Ok((tree.rebuild(&reader, record)?, stored_in))
    }

    /// Edits a timeline's metadata in the chat's header or in the group's file. Returns true if a
    /// snapshot of the edited timeline was created. Returns false if the metadata is in the group's
    /// file, which is written later.
    fn edit_timeline(&mut self, name: &TimelineName, steps: &[&RepairStep]) -> Result<bool> {
        let (root, groups) = (self.library.root(), &self.scan.groups);
        let look = changed_timelines::look(self.store, self.library, groups, name)?;
        let head = if look.is_new() { None } else { look.head };
        let files = look.captured.ok_or_else(|| changed(root, &name.file()))?.files;
        let own_book = check(root, &files, steps)?;
        let chat = Chat::header_of(&files.main.bytes, name.category());
        let metadata = files.metadata(&chat).ok_or_else(|| changed(root, &name.file()))?;
        let Some(header) = chat.header.filter(|header| !metadata.span_in(header).is_empty()) else {
            self.edit_group(&files, own_book, steps)?;
            return Ok(false);
        };
        let head = head.ok_or_else(|| changed(root, &files.main.path))?;
        let mut after = files.clone();
        let new = edited(header, metadata, steps, &files);
        after.main.bytes = [&new, &files.main.bytes[header.len()..]].concat().into();
        match own_book.zip(files.book()) {
            Some((own, source)) => {
                let bytes = source.bytes.to_vec();
                after.lorebook = Some(BoundBook::new(&own.new, own.path.clone(), bytes));
            }
            None if steps.iter().any(|step| matches!(step, RepairStep::Detach { .. })) => {
                after.lorebook = None;
            }
            None => {}
        }
        // If another repair restores the missing lorebook, the snapshot includes the restored
        // lorebook.
        let missing = after.lorebook.as_ref().filter(|book| book.bytes.is_none());
        let path = missing.and_then(|book| st::lorebook_path(&book.name));
        let restored = self.plans.iter().find(|plan| Some(&plan.path) == path.as_ref());
        if let Some(bytes) = restored.and_then(FilePlan::new_bytes) {
            after.set_book(bytes.to_vec());
        }
        let manifest = read_manifest(&self.store.reader(), head.tree)?;
        let had = [(head.id, &manifest)];
        let follows = SnapshotParents::previous(head);
        let taken = self.operation.take(&State::of(&after), Kind::SNAPSHOT, follows)?;
        let stored_in = Some(taken.id);
        let why = format!("Files as they were before {} was repaired", files.timeline);
        let (path, now) = (files.main.path, Some(files.main.bytes.into_vec()));
        let chat = plan(path, now, after.main.bytes.to_vec()).stored_in(stored_in);
        let written =
            self.operation.write_stored_files(root, vec![chat], &had, self.permissions, &why)?;
        self.actions.extend(written.actions);
        if let Some(book) = after.book().filter(|_| own_book.is_some()) {
            let book = plan(book.path.clone(), None, book.bytes.to_vec()).stored_in(stored_in);
            self.write(vec![book], &why)?;
        }
        Ok(true)
    }

    /// Edits a timeline's metadata in the group's file. One group's file may contain the metadata
    /// of several chats, so each edit is applied to the result of the previous edit.
    fn edit_group(
        &mut self,
        files: &TimelineFiles,
        own_book: Option<&OwnBook>,
        steps: &[&RepairStep],
    ) -> Result<()> {
        let root = self.library.root();
        let group = files.group.as_ref().ok_or_else(|| changed(root, &files.main.path))?;
        let as_read = || (group.bytes.to_vec(), group.bytes.to_vec());
        let (now, new) = self.groups.entry(group.path.clone()).or_insert_with(as_read);
        if *now != *group.bytes {
            return Err(changed(root, &group.path));
        }
        let headless = Chat { header: None, messages: Vec::new() };
        let metadata = st::metadata(&headless, &files.timeline, Some(new));
        let metadata = metadata.ok_or_else(|| changed(root, &group.path))?;
        *new = edited(new, metadata, steps, files);
        if let (Some(own), Some(source)) = (own_book, files.book()) {
            self.plans.push(plan(own.path.clone(), None, source.bytes.to_vec()));
        }
        Ok(())
    }

    fn write(&mut self, plans: Vec<FilePlan<'static>>, why: &str) -> Result<()> {
        let root = self.library.root();
        let written = self.operation.write_files(root, plans, &[], self.permissions, why)?;
        self.actions.extend(written.actions);
        Ok(())
    }
}

/// Returns the paths of the lorebooks that nothing uses. Fails if a file that may use a lorebook
/// has become unreadable since the repair was planned.
fn unused_now(library: &Library, scan: &Scan) -> Result<BTreeSet<String>> {
    let references = library.references(scan);
    let names = library.lorebooks()?;
    if let Some((subject, why)) = references.unreadable.first() {
        let (path, source) = (library.root().join(subject), io::Error::other(why.clone()));
        return Err(st::Error::Io { path, source }.into());
    }
    Ok(references.unused(&names).iter().map(|name| format!("worlds/{name}.json")).collect())
}

/// Checks that the timeline still has the lorebook that the plan expects. Returns the new lorebook
/// that the steps give to the timeline, if any.
fn check<'r>(
    root: &Path,
    files: &TimelineFiles,
    steps: &[&'r RepairStep],
) -> Result<Option<&'r OwnBook>> {
    let bound = files.lorebook.as_ref().map(|book| (&book.name, book.bytes.is_some()));
    let is_damaged = || files.book_bytes().and_then(st::book_damage).is_some();
    let mut own_book = None;
    for step in steps {
        let fits = match step {
            RepairStep::OwnBook { book, .. } => {
                own_book = Some(book);
                let path = book.path.under(root);
                if path.exists() {
                    return Err(st::Error::AlreadyThere { path }.into());
                }
                bound == Some((&book.old, true)) && !is_damaged()
            }
            RepairStep::Detach { book, .. } => {
                bound == Some((book, false)) && files.unread_book().is_none()
            }
            _ => true,
        };
        if !fits {
            return Err(changed(root, &files.main.path));
        }
    }
    Ok(own_book)
}

fn changed(root: &Path, path: &LibraryPath) -> Error {
    st::Error::SavedMeanwhile { path: path.under(root) }.into()
}

/// Applies the steps to `metadata`, which is a part of `text`, and returns the new text. A step
/// changes the length of the metadata, so the end of the metadata is located by the length of the
/// text after it.
fn edited(text: &[u8], metadata: Raw<'_>, steps: &[&RepairStep], files: &TimelineFiles) -> Vec<u8> {
    let span = metadata.span_in(text);
    let after = text.len() - span.end;
    let mut edited = text.to_vec();
    for step in steps {
        let Some(metadata) = Raw::parse(&edited[span.start..edited.len() - after]) else { break };
        let rename = |rename: Rename<'_>| st::rename_in_metadata(&edited, metadata, &rename);
        edited = match step {
            RepairStep::OwnBook { book: OwnBook { old, new, .. }, .. } => {
                let bytes = files.book_bytes().unwrap_or_default();
                rename(Rename { book: Some(BookRename { old, new, bytes }), ..Rename::default() })
            }
            RepairStep::OwnRecap { timeline } => {
                rename(Rename { chat: Some(timeline.chat()), ..Rename::default() })
            }
            RepairStep::Detach { .. } => st::unbind_lorebook(&edited, metadata),
            RepairStep::Remove { path, .. } => without_mapped(&edited, metadata, |book| {
                st::lorebook_path(book).as_ref() == Some(path)
            }),
            RepairStep::Write { .. } | RepairStep::ListInGroup { .. } => continue,
        };
    }
    edited
}
