//! Remove timelines for good: out of the history, out of the operation log, off the disk.
//!
//! Everything else in this program keeps what was; this is for what its owner wants nobody to read again. Forks of such a timeline stay, with the messages that they share with it: those
//! are theirs as well. Order: the history is written anew without it, then the log and all that was kept for `undo` goes, then the objects.

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
use crate::engine::operation::Operation;
use crate::engine::{self, CommandRun, Workspace};
use crate::history::owner_of_snapshot::Owners;
use crate::history::{self, History, name_lookup, rewrite_history};
use crate::progress::Monitor;
use crate::st::LibraryPath;
use crate::st::{self, Library, TimelineName};
use crate::store::{ObjectId, Store};
use crate::verbs::{Error, Result};

pub use traces::{Trace, TraceKind};

/// What to remove.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name.
    pub timelines: Vec<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// One timeline that goes.
#[derive(Serialize)]
pub struct ErasedTimeline {
    #[serde(rename = "timeline")]
    pub name: TimelineName,
    /// How many snapshots it has, checkpoints included.
    pub snapshots: usize,
    /// The tags of these, which go with them.
    pub tags: Vec<String>,
}

/// What was removed.
#[derive(Default)]
pub struct Report {
    pub timelines: Vec<ErasedTimeline>,
    /// Timelines that were forked from them: they stay, with the messages that they share.
    pub forks: Vec<TimelineName>,
    /// Timelines from which they were forked: these stay, and so do the messages that they share.
    pub parents: Vec<TimelineName>,
    /// All commits that ever were snapshots of these timelines.
    pub ids: HashSet<ObjectId>,
    /// Backups that still hold them, as far as is known.
    pub backups: Vec<LastBackup>,
    /// Files of the library that still have the text.
    pub traces: Vec<Trace>,
    /// What it freed.
    pub bytes: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Remove timelines for good.
pub fn erase(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    erase_from(workspace, options, Place::Store, monitor)
}

/// Where timelines are erased.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The store of the library: a chat that is still in the library is refused.
    Store,
    /// A folder backup. What its timelines are called says nothing about the library, where a new chat may have such a name.
    Backup,
}

fn erase_from(
    workspace: &Workspace,
    options: &Options,
    place: Place,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // The log must not say who was removed.
    let mut workspace = workspace.clone();
    let program = workspace.command.words().first().cloned();
    workspace.command = CommandRun::new(program.into_iter().chain(["erase".into()]).collect());
    let workspace = &workspace;
    let (store, held) = workspace.open(options.dry_run)?;
    let history = workspace.whole_history(&store)?;
    // What can be finished is, once the store is held.
    if let (Some(open), true) = (store.unfinished()?.first(), held.is_some()) {
        let subject = format!("operation {}", open.number);
        let why = "it was interrupted, and its library is not here to finish it".to_owned();
        return Err(engine::Error::BrokenHistory { subject, why }.into());
    }
    // What is left of one that was interrupted.
    let begun = store.erasing()?;
    let names = wanted(workspace, &options.timelines, place, &history, begun.as_ref())?;
    let owners = Owners::of(&history);
    let owner = |snapshot: &Snapshot| owners.by_descent(&history, snapshot).clone();
    // What another timeline has as its own past stays, whoever has it as well.
    let staying = history.heads().filter(|(name, _)| !names.contains(name));
    let staying: HashSet<_> =
        staying.flat_map(|(_, head)| history.own(head).0).map(|snapshot| snapshot.id).collect();
    let goes =
        |snapshot: &&Snapshot| names.contains(&owner(snapshot)) && !staying.contains(&snapshot.id);
    let gone: HashSet<SnapshotId> = history.iter().filter(goes).map(|found| found.id).collect();
    let erased = |name: &TimelineName| {
        let going = history.iter().filter(|found| gone.contains(&found.id));
        let own: Vec<_> = going.filter(|found| owner(found) == *name).collect();
        let tags = own.iter().flat_map(|snapshot| history.tags_of(snapshot.id)).collect();
        ErasedTimeline { name: name.clone(), snapshots: own.len(), tags }
    };
    let timelines = names.iter().map(erased).collect();
    let follows_gone = |found: &&Snapshot| found.parents.iter().any(|id| gone.contains(id));
    let left = history.iter().filter(|found| !gone.contains(&found.id));
    let forks: BTreeSet<_> = left.filter(follows_gone).map(owner).collect();
    let forks = forks.into_iter().collect();
    let parents = shared_with(&history, &gone, owner);
    let mut lost = ever(&store, &history, &gone)?;
    // Not what was taken in again since.
    let is_back = |id: &ObjectId| history.get(SnapshotId(*id)).is_some();
    lost.extend(begun.into_iter().flatten().filter(|id| !is_back(id)));
    let branches = branches_ever(&history, &names, &gone);
    let backups = last_backups::holding(&store, &branches, &lost)?;
    let library = workspace.library().ok().filter(|_| place == Place::Store);
    let traces = match &library {
        Some(library) => traces::find(library, &store, &history, &gone)?,
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
    for snapshot in gone.iter().filter_map(|id| history.get(*id)) {
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
    // What is remembered of all chats beside the history is made anew, without them.
    cache::forget_all(&store);
    history::origin::forget_index(&store);
    last_backups::forget(&store, &branches, &lost)?;
    library.iter().for_each(traces::clear_mailbox);
    store.mend_head(&held.lock)?;
    store.remove_set_aside(&held.lock)?;
    // Everything: any operation may lead to it.
    let (collected, _) = collect(workspace, &store, &held, Disposal::EVERYTHING, monitor)?;
    report.bytes = collected.bytes_before.saturating_sub(collected.bytes_after);
    // With other eyes: what was open is still at hand here.
    let reader = Store::open(store.path())?.reader();
    let mut left = 0;
    for id in &lost {
        left += usize::from(reader.has(*id)?);
    }
    if left > 0 || collected.held > 0 {
        let subject = store.path().display().to_string();
        let why = match left {
            0 => format!(
                "{} files of packs are still there; another program has them open (`stvc view`, `stvc watch`, a git): end it and erase again",
                collected.held
            ),
            _ => format!("{left} of the snapshots are still there; something else holds them"),
        };
        let held = engine::Error::BrokenHistory { subject, why };
        return Err(Error::after(true)(Error::from(held)));
    }
    store.end_erasing(&held.lock)?;
    Ok(report)
}

/// Returns the copies in reach that still have text of timelines which were erased earlier: files of the library by the marks that were recorded, and folder backups by the record of erasures.
pub fn left_copies(workspace: &Workspace, dry_run: bool) -> Result<Report> {
    let store = workspace.open_store()?;
    let marks = store.left_copies()?;
    let marks: Vec<_> = marks.iter().filter_map(|line| CopyMark::parse(line)).collect();
    let mut report = Report { dry_run, ..Report::default() };
    if let (Ok(library), false) = (workspace.library(), marks.is_empty()) {
        let history = History::load(&store)?;
        report.traces = traces::find_marked(&library, &store, &history, &HashSet::new(), &marks)?;
    }
    let all = last_backups::folders(&store)?;
    for taken in all.into_iter().filter(LastBackup::is_folder_in_reach) {
        let folder = match mirror::look(Path::new(&taken.destination), Some(&store)) {
            Ok(Some(folder)) => folder,
            // Something else is in its place by now.
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

/// Erases the timelines of a plan from a folder backup, whatever they are called there, and all that the record of erasures names; returns how many snapshots were removed.
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
    let owners = Owners::of(&history);
    let named = history.iter().filter(|snapshot| erased.contains(&snapshot.id.0));
    let names: BTreeSet<_> = named.map(|snapshot| owners.by_descent(&history, snapshot)).collect();
    // A chat that has the name of an erased one is another, and stays.
    let is_erased =
        |name: &&TimelineName| history.head(name).is_none_or(|head| erased.contains(&head.id.0));
    let timelines: Vec<_> = names.into_iter().filter(is_erased).map(ToString::to_string).collect();
    if !timelines.is_empty() || store.erasing()?.is_some() {
        let options = Options { timelines, dry_run: false };
        erase_from(&there, &options, Place::Backup, monitor)?;
    } else {
        // Only objects are left, or files of an update that was interrupted.
        let (store, held) = there.hold(&store)?;
        let mut erasures = store.erasures()?;
        erasures.join(&workspace.open_store()?.erasures()?);
        store.set_erasures(&held.lock, &erasures)?;
        purge_erased(&there, &store, &held, monitor)?;
    }
    Ok(erased.len())
}

/// Returns the snapshots of a folder backup that are among `going` or were erased, and that the store does not have: those that a branch or tag leads to, and those of which only objects are left.
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
    // A chat that was given the name and the first message of an erased one is another.
    erased.retain(|id| here.get(SnapshotId(*id)).is_none());
    erased.extend(history.iter().map(|snapshot| snapshot.id.0).filter(|id| going.contains(id)));
    Ok(erased)
}

/// Refuses to remove the copies of a timeline before it is erased while something cannot be read: once it is erased, nothing tells any more whether that is a copy.
pub fn must_know_copies(workspace: &Workspace, plan: &Report) -> Result<()> {
    match workspace.library() {
        Ok(library) => refuse_unreadable(&library, &plan.traces),
        Err(_) => Ok(()),
    }
}

fn refuse_unreadable(library: &Library, traces: &[Trace]) -> Result<()> {
    match traces.iter().find(|trace| trace.kind == TraceKind::Unreadable) {
        Some(unread) => {
            let source = io::Error::other("it cannot be read, so it may be a copy");
            Err(st::Error::Io { path: library.root().join(&unread.path), source }.into())
        }
        None => Ok(()),
    }
}

/// Removes the files that still have the text and that can be removed, as a plan named them; returns their paths. A lorebook or file that something uses since stays. Not the store's: that
/// is [`erase`].
pub fn remove_traces(workspace: &Workspace, plan: &Report) -> Result<Vec<String>> {
    let library = workspace.library()?;
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let mut removed = Vec::new();
    let marks = traces::marks(&library, &plan.traces)?;
    let history = History::load(&store)?;
    let now = traces::find_marked(&library, &store, &history, &plan.ids, &marks)?;
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

/// Erases the histories of lorebooks whose files were removed as copies, unless a chat of the store had them.
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

/// Returns the timelines that stay and have the snapshots from which those in `gone` were forked.
fn shared_with(
    history: &History,
    gone: &HashSet<SnapshotId>,
    owner: impl Fn(&Snapshot) -> TimelineName,
) -> Vec<TimelineName> {
    let going = gone.iter().filter_map(|id| history.get(*id));
    let forked = going.filter(|snapshot| snapshot.fork_at.is_some_and(|shared| shared > 0));
    let parents = forked.flat_map(|snapshot| &snapshot.parents).filter(|id| !gone.contains(id));
    let names: BTreeSet<_> = parents.filter_map(|id| history.get(*id)).map(owner).collect();
    names.into_iter().collect()
}

/// The branches that these timelines have or had, as backups name them. One that another timeline has by now is not among them.
fn branches_ever(
    history: &History,
    names: &[TimelineName],
    gone: &HashSet<SnapshotId>,
) -> HashSet<String> {
    let going = gone.iter().filter_map(|id| history.get(*id));
    let former =
        going.flat_map(|snapshot| snapshot.renamed_from.iter().chain([&snapshot.timeline]));
    let is_free = |name: &&TimelineName| names.contains(name) || history.head(name).is_none();
    let all = names.iter().chain(former.filter(is_free));
    all.map(|name| branch(name).to_string()).collect()
}

/// All commits that ever were these snapshots: under former ids, and kept for `undo`. Other devices may have them.
fn ever(store: &Store, history: &History, gone: &HashSet<SnapshotId>) -> Result<HashSet<ObjectId>> {
    let former = store.former_ids()?;
    let is_gone = |(_, now): &(_, &ObjectId)| gone.contains(&SnapshotId(**now));
    let mut ids: HashSet<_> = former.iter().filter(is_gone).map(|(old, _)| *old).collect();
    ids.extend(gone.iter().map(|id| id.0));
    let was: HashSet<_> = gone
        .iter()
        .filter_map(|id| history.get(*id))
        .flat_map(|snapshot| snapshot.renamed_from.iter().chain([&snapshot.timeline]))
        .filter(|name| history.head(name).is_none_or(|head| gone.contains(&head.id)))
        .collect();
    let kept = History::load_with_kept(store)?;
    let kept = kept.iter().filter(|snapshot| was.contains(&snapshot.timeline));
    // What is in the history under this id or another stays or goes for itself.
    let stays = |id: SnapshotId| history.get(id).is_some_and(|found| !gone.contains(&found.id));
    let kept = kept.filter(|snapshot| {
        let now = former.get(&snapshot.id.0).copied().map(SnapshotId);
        !stays(snapshot.id) && !now.is_some_and(stays)
    });
    ids.extend(kept.map(|snapshot| snapshot.id.0));
    Ok(ids)
}

/// The lorebooks that only these chats had, and whose files are gone: their histories go with them.
fn own_books(
    library: Option<&Library>,
    names: &[TimelineName],
    history: &History,
) -> Vec<TimelineName> {
    let owners = Owners::of(history);
    let goes = |snapshot: &Snapshot| names.contains(owners.by_descent(history, snapshot));
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

/// The timelines that are meant. One whose chat is still there would be taken again by the next snapshot. After an erasure that was interrupted, `begun` are the commits that it erases.
fn wanted(
    workspace: &Workspace,
    names: &[String],
    place: Place,
    history: &History,
    begun: Option<&HashSet<ObjectId>>,
) -> Result<Vec<TimelineName>> {
    let library = workspace.library().ok();
    let mut found = Vec::new();
    for text in names {
        let name = match name_lookup::ever(text, history, library.as_ref()) {
            // It is out of the history, and what is left of it is yet to go.
            Err(history::Error::NoSuchTimeline { .. }) if begun.is_some() => continue,
            name => name?,
        };
        let path = library.as_ref().map(|library| name.file().under(library.root()));
        if let Some(path) = path.filter(|_| place == Place::Store) {
            match st::is_absent(&path) {
                Ok(true) => {}
                Ok(false) => return Err(Error::StillThere { timeline: name.to_string(), path }),
                // A chat on a drive that is not mounted was not deleted.
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
