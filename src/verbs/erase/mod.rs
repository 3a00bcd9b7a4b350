//! Removes timelines permanently from the history, the operation log and the disk.
//!
//! Forks of an erased timeline remain, including the messages that they share with it. Order:
//! rewrite the history without the erased timelines; drop the log and all undo data; drop the
//! objects.

mod traces;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::archive::{CopyMark, Snapshot, SnapshotId, branch, erasure_marks};
use crate::engine::cache;
use crate::engine::collect::{Disposal, collect};
use crate::engine::copies::CopyError;
use crate::engine::copies::erased::erased_among;
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::copies::mirror;
use crate::engine::copies::purge_erased::purge_erased;
use crate::engine::operation::{Operation, RunMode};
use crate::engine::{self, CommandRun, Workspace};
use crate::history::{self, History, name_lookup, rewrite_history};
use crate::progress::Monitor;
use crate::st::LibraryPath;
use crate::st::{self, Library, TimelineName};
use crate::store::{ObjectId, Store};
use crate::verbs::{Error, Result};

use traces::TraceSearch;
pub use traces::{Trace, TraceKind};

/// Timelines to erase.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the timelines. Their files must be deleted first.
    pub timelines: Vec<String>,
    /// Only plan the erasure.
    pub dry_run: bool,
}

/// An erased timeline, with the number and the tags of its snapshots.
#[derive(Serialize)]
pub struct ErasedTimeline {
    /// Latest name of the timeline.
    #[serde(rename = "timeline")]
    pub name: TimelineName,
    /// Number of its own snapshots, without those before its fork point.
    pub snapshots: usize,
    /// Names of tags that are deleted, too.
    pub tags: Vec<String>,
}

/// The erased timelines. In a dry run, the timelines that would be erased.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// Timelines that are erased with all their snapshots.
    pub timelines: Vec<ErasedTimeline>,
    /// Forks of erased timelines. The forks remain, including the messages that they share with the
    /// erased timelines.
    pub forks: Vec<TimelineName>,
    /// Parents of erased timelines. The parents remain, including the messages that they share with
    /// the erased timelines.
    pub parents: Vec<TimelineName>,
    /// All commits that ever were snapshots of the erased timelines.
    pub ids: HashSet<ObjectId>,
    /// Known backups that still contain the erased timelines.
    pub backups: Vec<LastBackup>,
    /// Files of the library that still contain text of the erased timelines.
    pub traces: Vec<Trace>,
    /// Size by which the store has become smaller.
    pub bytes: u64,
    /// Whether this is only a plan.
    pub dry_run: bool,
}

/// Erases timelines from the store.
pub fn erase(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    erase_from(workspace, options, EraseIn::Store, monitor)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EraseIn {
    /// The store of the library. A timeline whose file still exists in the library is refused.
    Store,
    /// A folder backup. Existing files of the library are ignored, because a new chat may have the
    /// same name as an erased timeline.
    Backup,
}

fn erase_from(
    workspace: &Workspace,
    options: &Options,
    place: EraseIn,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // The log must not contain the names of erased timelines, so the command is logged without its
    // arguments.
    let mut workspace = workspace.clone();
    let program = workspace.command.words().first().cloned();
    workspace.command = CommandRun::new(program.into_iter().chain(["erase".into()]).collect());
    let workspace = &workspace;
    let (store, held) = workspace.open(RunMode::of_dry_run(options.dry_run))?;
    let history = workspace.whole_history(&store)?;
    // Acquiring the lock finishes interrupted operations. An operation that is still unfinished
    // cannot be finished.
    if let (Some(open), true) = (store.unfinished()?.first(), held.is_some()) {
        return Err(Error::Unfinished { number: open.number });
    }
    // The commits of an earlier, interrupted erasure.
    let begun = store.erasing()?;
    let names = wanted(workspace, &options.timelines, place, &history, begun.as_ref())?;
    let owners = history.owners();
    let owner = |snapshot: &Snapshot| owners.by_descent(snapshot).clone();
    // Snapshots that also belong to the history of another timeline are not erased.
    let staying = history.heads().filter(|(name, _)| !names.contains(name));
    let staying: HashSet<_> =
        staying.flat_map(|(_, head)| history.own(head).0).map(|snapshot| snapshot.id).collect();
    let goes =
        |snapshot: &&Snapshot| names.contains(&owner(snapshot)) && !staying.contains(&snapshot.id);
    let going: Vec<_> = history.iter().filter(goes).collect();
    let gone: HashSet<SnapshotId> = going.iter().map(|found| found.id).collect();
    let erased = |name: &TimelineName| {
        let own: Vec<_> = going.iter().filter(|found| owner(found) == *name).collect();
        let tags = own.iter().flat_map(|snapshot| history.tags_of(snapshot.id)).collect();
        ErasedTimeline { name: name.clone(), snapshots: own.len(), tags }
    };
    let timelines = names.iter().map(erased).collect();
    let follows_gone = |found: &&Snapshot| found.parents.iter().any(|id| gone.contains(id));
    let left = history.iter().filter(|found| !gone.contains(&found.id));
    let forks: BTreeSet<_> = left.filter(follows_gone).map(owner).collect();
    let forks = forks.into_iter().collect();
    let forked = going.iter().filter(|found| found.fork_at.is_some_and(|shared| shared > 0));
    let parents = forked.flat_map(|found| &found.parents).filter(|id| !gone.contains(id));
    let parents: BTreeSet<_> = parents.filter_map(|id| history.get(*id)).map(owner).collect();
    let parents = parents.into_iter().collect();
    let mut lost = ever(&store, &history, &going, &gone)?;
    // Some commits of the interrupted erasure may have been received again from a remote.
    let is_back = |id: &ObjectId| history.get(SnapshotId(*id)).is_some();
    lost.extend(begun.into_iter().flatten().filter(|id| !is_back(id)));
    let branches = branches_ever(&history, &names, &going);
    let backups = last_backups::holding(&store, &branches, &lost)?;
    let library = workspace.library().ok().filter(|_| place == EraseIn::Store);
    let traces = match &library {
        Some(library) => {
            let goes = |head: &Snapshot| gone.contains(&head.id);
            TraceSearch::new(library, &store, &history, goes).find(&going)?
        }
        None => Vec::new(),
    };
    let dry_run = options.dry_run;
    let ids = lost.clone();
    let mut report = Report { timelines, forks, parents, ids, backups, traces, bytes: 0, dry_run };
    let Some(held) = held else { return Ok(report) };
    store.release_reserve(&held.lock);

    let all_ids: Vec<_> = lost.iter().copied().collect();
    let reader = store.reader();
    let mut marks = BTreeSet::new();
    for snapshot in going {
        marks.extend(erasure_marks(&reader, snapshot)?);
    }
    if let Some(library) = &library {
        let mut left = store.left_copies()?;
        left.extend(traces::marks(library, &report.traces)?.iter().map(ToString::to_string));
        left.sort_unstable();
        left.dedup();
        store.set_left_copies(&held.lock, &left)?;
    }
    store.begin_erasing(&held.lock, &all_ids, marks.into_iter().collect())?;
    let mut operation = Operation::new(workspace, &store, None);
    let rewritten = rewrite_history::without(&mut operation.pack, &store, &history, &gone)?;
    operation.follow(&rewritten)?;
    for name in names.iter().map(branch) {
        if store.ref_target(&name)?.is_some_and(|id| !staying.contains(&SnapshotId(id))) {
            operation.drop_ref(name)?;
        }
    }
    for (name, id) in store.refs("refs/")?.refs {
        if lost.contains(&id) && !name.is_kept() {
            operation.drop_ref(name)?;
        }
    }
    operation.finish(&held)?;
    // Delete the caches, which contain data of all chats. They are rebuilt without the erased
    // timelines.
    cache::forget_all(&store);
    history::origin::forget_index(&store);
    last_backups::forget(&store, &branches, &lost)?;
    library.iter().for_each(traces::clear_mailbox);
    store.repair_head(&held.lock)?;
    store.remove_set_aside(&held.lock)?;
    // All undo data is dropped, because any operation may refer to the erased timelines.
    let (collected, _) = collect(workspace, &store, &held, Disposal::EVERYTHING, monitor)?;
    report.bytes = collected.bytes_before.saturating_sub(collected.bytes_after);
    // A new reader is needed, because the old reader still has removed files open.
    let reader = Store::open(store.path())?.reader();
    let mut left = 0;
    for id in &lost {
        left += usize::from(reader.has(*id)?);
    }
    if left > 0 {
        return Err(Error::ErasedReachable { snapshots: left }.partway());
    }
    if collected.held > 0 {
        return Err(Error::PacksInUse { packs: collected.held }.partway());
    }
    store.end_erasing(&held.lock)?;
    Ok(report)
}

/// Returns the copies that still contain text of timelines that were erased earlier. Files of the
/// library are recognised by recorded marks, and folder backups by the record of erasures. Backups
/// that cannot be reached are ignored.
pub fn left_copies(workspace: &Workspace) -> Result<Report> {
    let store = workspace.open_store()?;
    let marks = store.left_copies()?;
    let marks: Vec<_> = marks.iter().filter_map(|line| CopyMark::parse(line)).collect();
    let mut report = Report::default();
    if let (Ok(library), false) = (workspace.library(), marks.is_empty()) {
        let history = History::load(&store)?;
        report.traces =
            TraceSearch::new(&library, &store, &history, |_| false).find_marked(&marks)?;
    }
    let all = last_backups::folders(&store)?;
    for taken in all.into_iter().filter(LastBackup::is_folder_in_reach) {
        let folder = match mirror::look(Path::new(&taken.destination), Some(&store)) {
            Ok(Some(folder)) => folder,
            // The folder no longer contains the backup.
            Ok(None) | Err(engine::Error::Copy(CopyError::InTheWay { .. })) => continue,
            Err(error) => return Err(error.into()),
        };
        let is_begun = folder.erasing()?.is_some();
        if is_begun || !erased_in(workspace, &folder, &HashSet::new())?.is_empty() {
            report.backups.push(taken);
        }
    }
    Ok(report)
}

/// Erases the timelines of a plan from a folder backup, even if they have other names in the
/// backup. Also erases all timelines in the record of erasures. Returns the number of removed
/// snapshots.
pub fn erase_from_folder(
    workspace: &Workspace,
    folder: &Path,
    plan: &Report,
    monitor: &mut dyn Monitor,
) -> Result<usize> {
    let there = Workspace { store: Some(folder.to_owned()), ..workspace.clone() };
    let store = there.open_store()?;
    let erased = erased_in(workspace, &store, &plan.ids)?;
    let history = History::load(&store)?;
    let owners = history.owners();
    let named = history.iter().filter(|snapshot| erased.contains(&snapshot.id.0));
    let names: BTreeSet<_> = named.map(|snapshot| owners.by_descent(snapshot)).collect();
    // A chat that only has the same name as an erased chat is not erased.
    let is_erased =
        |name: &&TimelineName| history.head(name).is_none_or(|head| erased.contains(&head.id.0));
    let timelines: Vec<_> = names.into_iter().filter(is_erased).map(ToString::to_string).collect();
    if !timelines.is_empty() || store.erasing()?.is_some() {
        let options = Options { timelines, dry_run: false };
        erase_from(&there, &options, EraseIn::Backup, monitor)?;
    } else {
        // The history of the backup contains no erased timeline. Only unreachable objects or files
        // of an interrupted update remain.
        let (store, held) = there.hold(&store)?;
        let mut erasures = store.erasures()?;
        erasures.join(&workspace.open_store()?.erasures()?);
        store.set_erasures(&held.lock, &erasures)?;
        purge_erased(&there, &store, &held, monitor)?;
    }
    Ok(erased.len())
}

/// Returns the snapshots to erase from a folder backup: snapshots in `going`, and snapshots in the
/// record of erasures that the store does not contain. Unreachable snapshots whose objects still
/// exist are included.
fn erased_in(
    workspace: &Workspace,
    folder: &Store,
    going: &HashSet<ObjectId>,
) -> Result<HashSet<ObjectId>> {
    let store = workspace.open_store()?;
    let (erasures, here) = (store.erasures()?, History::load(&store)?);
    let (history, reader) = (workspace.whole_history(folder)?, folder.reader());
    let mut erased = erased_among(&erasures, &reader, history.iter())?;
    for id in erasures.commits() {
        if !erased.contains(&id) && reader.has(id)? {
            erased.insert(id);
        }
    }
    // A snapshot that the store still contains belongs to another chat, which has the same name and
    // first message as the erased chat.
    erased.retain(|id| here.get(SnapshotId(*id)).is_none());
    erased.extend(history.iter().map(|snapshot| snapshot.id.0).filter(|id| going.contains(id)));
    Ok(erased)
}

/// Fails if the plan lists an unreadable file. Call this before an erasure that also removes
/// copies: after the erasure it cannot be determined whether the unreadable file is a copy.
pub fn must_know_copies(workspace: &Workspace, plan: &Report) -> Result<()> {
    match workspace.library() {
        Ok(library) => refuse_unreadable(&library, &plan.traces),
        Err(_) => Ok(()),
    }
}

fn refuse_unreadable(library: &Library, traces: &[Trace]) -> Result<()> {
    match traces.iter().find(|trace| trace.kind == TraceKind::Unreadable) {
        Some(unread) => {
            let source = io::Error::other("it cannot be read, so it may contain a copy");
            Err(st::Error::Io { path: library.root().join(&unread.path), source }.into())
        }
        None => Ok(()),
    }
}

/// Removes the files of a plan that still contain erased text, and returns their paths. A lorebook
/// or attachment that is in use again is not removed.
pub fn remove_traces(workspace: &Workspace, plan: &Report) -> Result<Vec<String>> {
    let library = workspace.library()?;
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let mut removed = Vec::new();
    let marks = traces::marks(&library, &plan.traces)?;
    let history = History::load(&store)?;
    let goes = |head: &Snapshot| plan.ids.contains(&head.id.0);
    let now = TraceSearch::new(&library, &store, &history, goes).find_marked(&marks)?;
    refuse_unreadable(&library, &now)?;
    let is_planned = |trace: &&Trace| trace.kind.can_be_removed() && plan.traces.contains(trace);
    for trace in now.iter().filter(is_planned) {
        st::remove_file(library.root(), &trace.path)?;
        removed.push(trace.path.clone());
    }
    let mut left = store.left_copies()?;
    let is_gone = |line: &String| {
        let mark = CopyMark::parse(line);
        mark.is_none_or(|mark| removed.iter().any(|path| mark.has_path(path)))
    };
    if left.iter().any(is_gone) {
        left.retain(|line| !is_gone(line));
        store.set_left_copies(&held.lock, &left)?;
    }
    Ok(removed)
}

/// Erases the timelines of lorebooks whose files were removed as copies. A lorebook is not erased
/// if a snapshot of a remaining chat contains it.
pub fn erase_removed_books(
    workspace: &Workspace,
    removed: &[String],
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let history = History::load(&workspace.open_store()?)?;
    let chats = history.iter().filter(|snapshot| snapshot.timeline.is_chat());
    let used = chats.filter_map(|chat| chat.lorebook.as_deref().and_then(st::lorebook_path));
    let used: HashSet<_> = used.collect();
    let books = removed.iter().filter_map(|path| LibraryPath::parse(path).ok());
    let books = books.filter(|path| path.is_lorebook() && !used.contains(path));
    let books = books.filter_map(|path| TimelineName::of_file(&path));
    let timelines: Vec<_> =
        books.filter(|name| history.head(name).is_some()).map(|name| name.to_string()).collect();
    if timelines.is_empty() {
        return Ok(());
    }
    erase(workspace, &Options { timelines, dry_run: false }, monitor).map(drop)
}

/// Returns the names of the timelines in these snapshots, including their former names.
fn former_names<'s>(going: &[&'s Snapshot]) -> impl Iterator<Item = &'s TimelineName> {
    going.iter().flat_map(|snapshot| snapshot.renamed_from.iter().chain([&snapshot.timeline]))
}

/// Returns the branches that the erased timelines have or had. The branch of a former name is
/// excluded if another timeline has this name now.
fn branches_ever(
    history: &History,
    names: &[TimelineName],
    going: &[&Snapshot],
) -> HashSet<String> {
    let is_free = |name: &&TimelineName| names.contains(name) || history.head(name).is_none();
    let all = names.iter().chain(former_names(going).filter(is_free));
    all.map(|name| branch(name).to_string()).collect()
}

/// Returns all commits that ever represented these snapshots: with current ids, with former ids,
/// and commits that are kept for `undo`. Other devices may have any of these commits.
fn ever(
    store: &Store,
    history: &History,
    going: &[&Snapshot],
    gone: &HashSet<SnapshotId>,
) -> Result<HashSet<ObjectId>> {
    let former = store.former_ids()?;
    let is_gone = |(_, now): &(_, &ObjectId)| gone.contains(&SnapshotId(**now));
    let mut ids: HashSet<_> = former.iter().filter(is_gone).map(|(old, _)| *old).collect();
    ids.extend(gone.iter().map(|id| id.0));
    let is_gone =
        |name: &&TimelineName| history.head(name).is_none_or(|head| gone.contains(&head.id));
    let was: HashSet<_> = former_names(going).filter(is_gone).collect();
    // A snapshot that remains in the history, with this id or another id, is not erased.
    let stays = |id: SnapshotId| history.get(id).is_some_and(|found| !gone.contains(&found.id));
    let is_kept = |snapshot: &&Snapshot| {
        let now = former.get(&snapshot.id.0).copied().map(SnapshotId);
        was.contains(&snapshot.timeline) && !stays(snapshot.id) && !now.is_some_and(stays)
    };
    let kept = History::load_with_kept(store)?;
    ids.extend(kept.iter().filter(is_kept).map(|snapshot| snapshot.id.0));
    Ok(ids)
}

/// Returns the lorebooks that only these chats used and whose files no longer exist. These
/// lorebooks are erased together with the chats.
fn own_books(
    library: Option<&Library>,
    names: &[TimelineName],
    history: &History,
) -> Vec<TimelineName> {
    let owners = history.owners();
    let goes = |snapshot: &Snapshot| names.contains(owners.by_descent(snapshot));
    let book = |snapshot: &Snapshot| {
        let path = snapshot.lorebook.as_deref().and_then(st::lorebook_path)?;
        TimelineName::of_file(&path).filter(|name| *name != snapshot.timeline)
    };
    let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
    for snapshot in history.iter() {
        let books = if goes(snapshot) { &mut own } else { &mut others };
        books.extend(book(snapshot));
    }
    let is_there = |name: &TimelineName| {
        let absent = |library: &Library| st::is_absent(&name.file().under(library.root()));
        library.is_some_and(|library| !matches!(absent(library), Ok(true)))
    };
    own.retain(|name| !others.contains(name) && !is_there(name) && !names.contains(name));
    own.into_iter().filter(|name| history.head(name).is_some()).collect()
}

/// Resolves names. Refuses a timeline whose file still exists, because the next snapshot would
/// store the timeline again. `begun` contains the commits of an interrupted erasure.
fn wanted(
    workspace: &Workspace,
    names: &[String],
    place: EraseIn,
    history: &History,
    begun: Option<&HashSet<ObjectId>>,
) -> Result<Vec<TimelineName>> {
    let library = workspace.library().ok();
    let mut found = Vec::new();
    for text in names {
        let name = match name_lookup::ever(text, history, library.as_ref()) {
            // The interrupted erasure has already removed this timeline from the history.
            Err(history::Error::NoSuchTimeline { .. }) if begun.is_some() => continue,
            name => name?,
        };
        let path = library.as_ref().map(|library| name.file().under(library.root()));
        if let Some(path) = path.filter(|_| place == EraseIn::Store) {
            match st::is_absent(&path) {
                Ok(true) => {}
                Ok(false) => return Err(Error::StillThere { timeline: name.to_string(), path }),
                // The file may exist on an unmounted drive, so the chat does not count as deleted.
                Err(source) => return Err(st::Error::Io { path, source }.into()),
            }
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    let books = own_books(library.as_ref(), &found, history);
    found.extend(books);
    Ok(found)
}
