//! Merges the lorebook of one timeline into the lorebook of another timeline.
//!
//! Order: read both current lorebooks and their common ancestor; merge; with `write`, store both
//! lorebooks, log the operation, and write the changed file. The chats and the other lorebook are
//! not changed.
//!
//! If both devices made changes that a sync cannot merge, the sync stores the local state as a new
//! timeline under another name. This new timeline was *set aside* by the sync. The user resolves
//! the conflict by merging the two timelines.

use crate::archive::merge::{Merged, Side, Unmergeable, merge_books};
use crate::archive::{Blake3, Kind, Snapshot, SnapshotId, State};
use crate::engine::Workspace;
use crate::engine::device::Device;
use crate::engine::files::{ChatOpenState, FileAction, FilePlan, WritePermissions};
use crate::engine::operation::{FinalSnapshot, Operation, RunMode, SnapshotParents};
use crate::engine::reload_page::{WriteEffects, reload};
use crate::history::History;
use crate::history::at_message::read_book;
use crate::history::moment::NameKind;
use crate::history::state_then::{NeedBook, StateThen};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{self, Disk, Groups, Library, LibraryPath, TimelineName};
use crate::store::Store;
use crate::verbs::{MergeError, Result};
use crate::words::listed;
use std::borrow::Cow;

/// Lorebooks to merge.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timeline whose lorebook is changed.
    pub into: String,
    /// Timeline or snapshot whose lorebook is merged into the lorebook of `into`.
    pub from: String,
    /// Values to keep in conflicts. If `None` and there are conflicts, nothing is written.
    pub keep: Option<Keep>,
    /// Write the merged lorebook. If false, the merge is only planned.
    pub write: bool,
    /// Hash of the merged lorebook in the plan that the user accepted. If the result differs,
    /// nothing is written.
    pub expected: Option<Blake3>,
    /// Whether SillyTavern may overwrite the file that is written.
    pub closed: ChatOpenState,
    /// Merge even while ST-Auto-Recap is working on the lorebook that is changed.
    pub allow_active_queue: bool,
}

/// The side whose values are kept in conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The lorebook of `Options::into`, which is changed.
    A,
    /// The lorebook of `Options::from`.
    B,
    /// The lorebook with the values of this device. Refused unless a sync set one of the two
    /// timelines aside.
    Local,
    /// The lorebook with the values of the other device. Refused unless a sync set one of the two
    /// timelines aside.
    Remote,
}

/// The result of a merge, or the plan of a merge.
#[non_exhaustive]
pub struct Report {
    /// Timeline whose lorebook is changed.
    pub into: TimelineName,
    /// Timeline whose lorebook is only read.
    pub from: Source,
    /// Snapshot of the common ancestor. `None` if no ancestor with a lorebook is known.
    pub base: Option<Snapshot>,
    /// The side with the values of this device. `None` unless a sync set one of the two timelines
    /// aside.
    pub local: Option<Side>,
    /// Changes and conflicts.
    pub merged: Merged,
    /// The lorebook file that is changed. Its hash is the hash of the merged lorebook.
    pub file: FileAction,
    /// Snapshots that contain the files as they were before the merge.
    pub safety: Vec<Snapshot>,
    /// Whether the former content of the file was stored separately because no snapshot contains
    /// it.
    pub kept: bool,
    /// Problems of the merged lorebook.
    pub findings: Vec<Finding>,
    /// Whether the merge was only planned.
    pub planned: bool,
}

/// The lorebook of [`Options::from`].
pub struct Source {
    /// Timeline of the lorebook.
    pub timeline: TimelineName,
    /// The snapshot from which the lorebook was read. `None` if the current file was read.
    pub snapshot: Option<SnapshotId>,
    /// Whether both timelines use one file.
    pub is_same_file: bool,
}

struct Book {
    timeline: TimelineName,
    path: LibraryPath,
    bytes: Vec<u8>,
    /// The snapshot from which the lorebook was read. `None` if the current file was read.
    stored: Option<SnapshotId>,
}

impl Book {
    fn of(timeline: &TimelineName, book: st::Book<'_>, stored: Option<SnapshotId>) -> Self {
        let (path, bytes) = (book.path.clone(), book.bytes.to_vec());
        Self { timeline: timeline.clone(), path, bytes, stored }
    }
}

/// Merges the lorebook of `options.from` into the lorebook of `options.into`.
pub fn merge(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // The lock excludes other stvc processes, but not SillyTavern; see `engine::operation`.
    let (store, held) = workspace.open(RunMode::of_dry_run(!options.write))?;
    let library = workspace.library()?;
    monitor.begin("reading lorebooks", None);
    let mut history = History::load(&store)?;
    let groups = library.scan()?.groups;
    let (head, ours) = ours(workspace, options, &store, &groups, &history)?;
    let (other, theirs) = theirs(workspace, options, &store, &groups)?;
    // `head` and `other` may not be reachable from a branch.
    history.add(&store, [head.id, other.id])?;
    // If `theirs` is an earlier snapshot of the same timeline, that snapshot is the common
    // ancestor.
    let is_earlier = theirs.stored.is_some() && theirs.timeline == ours.timeline;
    let base = match history.merge_base(head.id, &history.past([other.id])) {
        _ if is_earlier => Some((other.clone(), theirs.bytes.clone())),
        Some(common) => read_book(&store.reader(), common)?.map(|bytes| (common.clone(), bytes)),
        None => None,
    };
    let base_bytes = base.as_ref().map(|(_, bytes)| bytes.as_slice());
    let local = local_side(&store, &history, &head, &other)?;
    let not_set_aside = || {
        let (into, from) = (options.into.clone(), options.from.clone());
        MergeError::NotSetAside { into, from }
    };
    let prefer = match options.keep {
        None => Side::default(),
        Some(Keep::A) => Side::Ours,
        Some(Keep::B) => Side::Theirs,
        Some(Keep::Local) => local.ok_or_else(not_set_aside)?,
        Some(Keep::Remote) => local.ok_or_else(not_set_aside)?.other(),
    };
    let merged = merge_books(base_bytes, &ours.bytes, &theirs.bytes, prefer).map_err(
        |Unmergeable { side, why }| {
            let book = if side == Side::Ours { &ours } else { &theirs };
            MergeError::Unmergeable { book: book.path.to_string(), why }
        },
    )?;
    if options.write && options.keep.is_none() && !merged.conflicts.is_empty() {
        return Err(MergeError::Conflicts {
            count: merged.conflicts.len(),
            into: options.into.clone(),
            from: options.from.clone(),
            local,
        }
        .into());
    }
    let is_same_file = theirs.stored.is_none() && theirs.path == ours.path;
    let new = Some(Cow::Borrowed(merged.bytes.as_slice()));
    let mut plan = FilePlan::new(ours.path.clone(), Some(ours.bytes.clone()), new);
    let changes = !plan.is_up_to_date();
    let file = plan.action();
    let mut findings = noticed(&merged, &ours, &theirs);
    if changes {
        findings.extend(shared(&library, &ours)?);
    }
    let mut safe = Vec::new();
    let mut kept = false;
    // If all conflicts are resolved in favour of the existing file, the file does not change, but
    // the merge is recorded.
    let settled = options.keep.is_some() && !merged.conflicts.is_empty();
    if let Some(held) = held.filter(|_| changes || settled) {
        if options.expected.is_some_and(|expected| expected != file.blake3) {
            let path = ours.path.under(library.root());
            return Err(st::Error::SavedMeanwhile { path }.into());
        }
        let words = format!("with the lorebook of {} merged into it", theirs.timeline);
        let mut operation = Operation::new(workspace, &store, Some("before a merge"));
        let mine = operation.take_safety(&library, &ours.timeline)?;
        let mut joined = theirs.stored.filter(|_| theirs.timeline != ours.timeline);
        if theirs.stored.is_none() && theirs.timeline != ours.timeline {
            // Create a snapshot of the other lorebook, so that its rejected values are also in the
            // store.
            let other = operation.take_safety(&library, &theirs.timeline)?;
            joined = other.as_ref().map(|(taken, _)| taken.id);
            let is_new = |taken: &Snapshot| history.get(taken.id).is_none();
            safe.extend(other.map(|(taken, _)| taken).filter(is_new));
        }
        if let (Some((before, _)), Some(joined)) = (&mine, joined) {
            // Record the merge in a snapshot with both sides as parents, so that this snapshot is
            // the common ancestor in the next merge of the two timelines.
            operation.message = Some(words.clone());
            let after =
                leave_trace(&library, &groups, &ours, &merged, before, joined, &mut operation)?;
            plan = plan.stored_in(after);
        }
        let why = format!("{} as it was before {} was merged into it", ours.path, theirs.path);
        let had: Vec<_> = mine.iter().map(|(taken, manifest)| (taken.id, manifest)).collect();
        let permissions =
            WritePermissions { closed: options.closed, active_queue: options.allow_active_queue };
        let planned = operation.write_files(library.root(), vec![plan], &had, permissions, &why)?;
        let ending = FinalSnapshot { message: &words, ..FinalSnapshot::default() };
        operation.end_with(&library, &ours.timeline, &ending)?;
        if is_same_file {
            operation.end_with(&library, &theirs.timeline, &ending)?;
        }
        operation.end_others(&library, &ending)?;
        operation.finish(&held)?;
        kept = planned.kept;
        safe.splice(0..0, mine.map(|(taken, _)| taken));
        findings.push(reload(library.root(), Some(&ours.timeline), WriteEffects::REPLACED));
    }
    Ok(Report {
        into: ours.timeline,
        from: Source { timeline: theirs.timeline, snapshot: theirs.stored, is_same_file },
        base: base.map(|(snapshot, _)| snapshot),
        local,
        merged,
        file,
        safety: safe,
        kept,
        findings,
        planned: !options.write,
    })
}

/// Returns the side with the values of this device, or `None` if neither timeline was set aside by
/// a sync. The sync may have run on this device or on another device.
fn local_side(
    store: &Store,
    history: &History,
    ours: &Snapshot,
    theirs: &Snapshot,
) -> Result<Option<Side>> {
    for (aside, side) in [(theirs, Side::Theirs), (ours, Side::Ours)] {
        if let Some(device) = Device::of_set_aside_timeline(history, aside) {
            let is_here = device.id == Device::of(store)?.id;
            return Ok(Some(if is_here { side } else { side.other() }));
        }
    }
    Ok(None)
}

/// Creates a snapshot of the chat with the merged lorebook. The parents of the snapshot are the
/// snapshots of both sides. Returns `None` if the chat has no lorebook.
fn leave_trace(
    library: &Library,
    groups: &Groups,
    ours: &Book,
    merged: &Merged,
    before: &Snapshot,
    joined: SnapshotId,
    operation: &mut Operation<'_>,
) -> Result<Option<SnapshotId>> {
    let mut captured = st::capture(library, groups, &ours.timeline, &Disk)?;
    if captured.files.book().is_none() {
        return Ok(None);
    }
    captured.files.set_book(merged.bytes.clone());
    let follows = SnapshotParents::joined(before.clone(), Some(joined));
    let taken = operation.take(&State::of(&captured.files), Kind::SNAPSHOT, follows)?;
    Ok(Some(taken.id))
}

fn ours(
    workspace: &Workspace,
    options: &Options,
    store: &Store,
    groups: &Groups,
    history: &History,
) -> Result<(Snapshot, Book)> {
    let library = &workspace.library()?;
    let moment = workspace.moment(&options.into, store)?;
    let head = moment.taken()?.clone();
    if history.head(&moment.timeline).is_none_or(|newest| newest.id != head.id) {
        let (name, timeline) = (options.into.clone(), moment.timeline.to_string());
        return Err(MergeError::NotNewest { name, timeline }.into());
    }
    let book = file_now(library, groups, &head.timeline)?;
    let book =
        book.ok_or_else(|| MergeError::NoLorebook { timeline: head.timeline.to_string() })?;
    Ok((head, book))
}

/// Reads the lorebook to merge from: the current file if `options.from` is the name of a timeline
/// whose file exists, otherwise the stored lorebook.
fn theirs(
    workspace: &Workspace,
    options: &Options,
    store: &Store,
    groups: &Groups,
) -> Result<(Snapshot, Book)> {
    let library = &workspace.library()?;
    let moment = workspace.moment(&options.from, store)?;
    let snapshot = moment.taken()?;
    let mut book = None;
    if moment.named == NameKind::Timeline && snapshot.timeline.file().under(library.root()).exists()
    {
        book = file_now(library, groups, &snapshot.timeline)?;
    }
    if book.is_none() {
        let then = StateThen::rebuild(store, &moment, NeedBook::Yes)?;
        let stored = then.contents.files.book();
        book = stored.map(|book| Book::of(&snapshot.timeline, book, Some(snapshot.id)));
    }
    let book =
        book.ok_or_else(|| MergeError::NoLorebook { timeline: snapshot.timeline.to_string() })?;
    Ok((snapshot.clone(), book))
}

fn file_now(library: &Library, groups: &Groups, timeline: &TimelineName) -> Result<Option<Book>> {
    let captured = st::capture(library, groups, timeline, &Disk)?;
    Ok(captured.files.book().map(|book| Book::of(timeline, book, None)))
}

fn noticed(merged: &Merged, ours: &Book, theirs: &Book) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !merged.with_base && ours.bytes != theirs.bytes {
        let what = "the lorebooks have no known common ancestor: no entry is removed, and every difference within an entry is a conflict";
        findings.push(Finding::new(Code::MergeNoBase, ours.path.as_str(), what));
    }
    if merged.queue_left > 0 {
        let pieces = match merged.queue_left {
            1 => "1 queued task was".into(),
            many => format!("{many} queued tasks were"),
        };
        let what = format!("{pieces} not merged: a queue belongs to its chat");
        findings.push(Finding::new(Code::MergeQueueLeft, theirs.path.as_str(), what));
    }
    for registry in &merged.not_renumbered {
        let what = format!(
            "the registry {} (UID {}) still lists old UIDs: stvc cannot edit its format",
            registry.title, registry.uid
        );
        let remedy = "review the entry after the merge and correct its UIDs";
        let finding = Finding::new(Code::MergeRegistry, ours.path.as_str(), what);
        findings.push(finding.remedy(remedy));
    }
    findings
}

fn shared(library: &Library, ours: &Book) -> Result<Option<Finding>> {
    let mut users = st::users_of_lorebook(library, &ours.path)?;
    users.retain(|user| *user != ours.timeline);
    if users.is_empty() {
        return Ok(None);
    }
    let list = listed(&users);
    let message =
        format!("this lorebook is also used by {list}, so the merge changes it for them, too");
    let remedy = "run `stvc doctor --fix` to give each fork its own copy";
    let finding = Finding::new(Code::LorebookShared, ours.path.as_str(), message);
    Ok(Some(finding.remedy(remedy)))
}
