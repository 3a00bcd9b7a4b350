//! `sync REMOTE`: two devices, one history. Fetch, take in, push.
//!
//! Order: snapshots of what changed here; the other side's, verified; a plan for every timeline and the files of the library; then all of it in one operation, as `restore` and
//! `import` do it: objects, log, refs, files. Only then is the remote brought up to date. If somebody else was quicker there, it begins anew with what they wrote.

mod counterparts;
mod future_library;
mod joined_book;
mod lorebooks;
mod others;
mod outcome;
mod plan;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::archive::{Kind, Manifest, Snapshot, SnapshotId, State, Tree, branch, read_manifest};
use crate::engine::copies::CopyError;
use crate::engine::copies::erased::{ErasedRef, erased_refs};
use crate::engine::copies::incoming::{Incoming, Source, nearest_folder, receive_as_it_is};
use crate::engine::copies::{CopyPlace, May, chosen_refs, mirror, server};
use crate::engine::device::Device;
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::include::Include;
use crate::engine::operation::missing_attachments::Admission;
use crate::engine::operation::{Ending, Follows, Held, Operation, missing_attachments};
use crate::engine::reload_page::{Written, reload};
use crate::engine::take_first::take_what_is_ready;
use crate::engine::{self, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{LibraryPath, TimelineName};
use crate::store::{self, Loss, RefName, RemoteError, Store};
use crate::verbs::{Error, Result};
use crate::{durable, st};
use counterparts::{Counterpart, Counterparts};
use future_library::FutureLibrary;
pub use outcome::{Conflict, SyncOutcome, SyncedTimeline};
use plan::{BranchMove, Planner, TimelinePlan};

/// With whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder or server that both devices use.
    pub place: CopyPlace,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// Whether SillyTavern has the chats closed.
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// A tag that came or moved: its name and what it names.
pub type Tag = (String, SnapshotId);

/// What was done.
pub struct Report {
    /// Snapshots that were taken first.
    pub taken_first: usize,
    /// Timelines here that could not be read, and so were not sent as they are now.
    pub failed: usize,
    /// Branches and tags of the other side that something is wrong with.
    pub left_there: usize,
    /// The other side's timelines.
    pub entries: Vec<SyncedTimeline>,
    /// Tags that came.
    pub tags: Vec<Tag>,
    /// Files that were written or removed.
    pub files: Vec<FileAction>,
    /// What went to the remote; none in a dry run.
    pub sent: Option<mirror::Report>,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

impl Report {
    pub fn count(&self, wanted: impl Fn(&SyncOutcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// How often it begins anew because somebody else was quicker.
const ATTEMPTS: usize = 5;

/// Bring this device and a remote to the same state.
pub fn sync(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let workspace = &workspace;
    if let CopyPlace::File(_) | CopyPlace::Output = options.place {
        return Err(not_shared(&options.place).into());
    }
    if let Some(root) = begun.filter(|_| !options.dry_run) {
        // Now it is a user's folder.
        let chats = root.join("chats");
        durable::create_dir_all(&chats)
            .map_err(|source| store::Error::Io { path: chats, source })?;
    }
    let mut report = Report {
        taken_first: 0,
        failed: 0,
        left_there: 0,
        entries: Vec::new(),
        tags: Vec::new(),
        files: Vec::new(),
        sent: None,
        findings: Vec::new(),
        dry_run: options.dry_run,
    };
    if let CopyPlace::Folder(folder) = &options.place {
        mirror::look(folder, workspace.find_store()?.as_ref())?;
    }
    // A plan begins with the snapshots, too; it is made on a copy.
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let workspace = copy.as_ref().map_or(workspace, |(_, copy)| copy);
    if workspace.library().is_ok() {
        let first = take_what_is_ready(workspace, monitor)?;
        (report.taken_first, report.failed) = (first.new, first.not_taken);
        report.findings.extend(first.findings);
    }
    if let Err(error) = exchange(workspace, options, &mut report, monitor) {
        let came = report.entries.iter().any(|entry| entry.outcome != SyncOutcome::Known);
        return Err(error).map_err(Error::after(report.taken_first > 0 || came));
    }
    let written = report.files.iter().any(|file| file.action != files::Action::Keep);
    if written && !options.dry_run {
        let replaced = report.files.iter().any(|file| file.replaces);
        let written = Written { replaced, ..Written::REPLACED };
        report.findings.push(reload(workspace.library()?.root(), "files", written));
    }
    Ok(report)
}

/// Take in and send, until nobody was quicker.
fn exchange(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    for attempt in 1.. {
        let left = match take_in(workspace, options, report, monitor) {
            // What SillyTavern saved just then goes on here; the next look finds it so.
            Err(Error::Engine(
                engine::Error::LeftAlone { .. }
                | engine::Error::St(st::Error::SavedMeanwhile { .. }),
            )) if attempt < ATTEMPTS => {
                continue;
            }
            left => left?,
        };
        if options.dry_run {
            break;
        }
        match send(workspace, options, left, monitor) {
            Ok(sent) => {
                report.findings.extend(sent.findings.clone());
                report.sent = Some(sent);
                break;
            }
            Err(
                engine::Error::Remote(RemoteError::Raced { .. })
                | engine::Error::Copy(CopyError::NotHere { .. })
                | engine::Error::Store(store::Error::RefMoved { .. }),
            ) if attempt < ATTEMPTS => {}
            // Perhaps it was forgotten and collected here meanwhile.
            Err(error) if attempt < ATTEMPTS && error.is_loss() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn send(
    workspace: &Workspace,
    options: &Options,
    unsent: Unsent,
    monitor: &mut dyn Monitor,
) -> engine::Result<mirror::Report> {
    let Unsent { except, erased } = unsent;
    let to = mirror::Options { timelines: Vec::new(), may: May::default(), except, erased };
    match &options.place {
        CopyPlace::Remote(url) => server::to_server(workspace, url, &to, options.asks, monitor),
        CopyPlace::Folder(folder) => mirror::to_folder(workspace, folder, &to, monitor),
        place => Err(not_shared(place).into()),
    }
}

fn not_shared(place: &CopyPlace) -> CopyError {
    let destination = match place {
        CopyPlace::File(path) | CopyPlace::Folder(path) => path.display().to_string(),
        CopyPlace::Remote(url) => url.to_string(),
        CopyPlace::Output => "-".into(),
    };
    CopyError::UnknownDestination {
        destination,
        why: "two devices meet in a folder or on a git server",
    }
}

/// The branches and tags that are not sent.
#[derive(Default)]
struct Unsent {
    /// They stay on the remote as they are.
    except: BTreeSet<RefName>,
    /// They are removed there, because what they lead to was removed for good.
    erased: BTreeSet<RefName>,
}

/// Takes in what the remote has; what must not be sent afterwards.
fn take_in(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<Unsent> {
    let store = match workspace.find_store()? {
        Some(store) => store,
        None => Store::create(&workspace.store_path()?)?,
    };
    let Some(mut incoming) = fetch(workspace, options, &store, monitor)? else {
        return Ok(Unsent::default());
    };
    let (store, held) = if options.dry_run {
        (store, None)
    } else {
        workspace.hold(&store).map(|(store, held)| (store, Some(held)))?
    };
    // Branches that move without their files would make those look like something newer.
    let library =
        if options.dry_run { workspace.library().ok() } else { Some(workspace.library()?) };
    let ours = History::load(&store)?;
    if !incoming.fits(&ours)
        && let Some(again) = fetch(workspace, options, &store, monitor)?
    {
        incoming = again;
    }
    let theirs = &incoming.history;
    let all = ours.heads().chain(theirs.heads());
    let names = all.map(|(name, _)| name.as_str().to_lowercase()).collect();
    let mut planner = Planner {
        ours: &ours,
        theirs,
        store: &store,
        here: store.reader(),
        there: incoming.store.reader(),
        groups: match &library {
            Some(library) => library.scan()?.groups,
            None => Default::default(),
        },
        files: FutureLibrary::new(
            library.as_ref().map_or_else(Default::default, |found| found.root().to_owned()),
            incoming.store.reader(),
        ),
        library: library.as_ref(),
        findings: Vec::new(),
        names,
        books: BTreeSet::new(),
        moved: HashMap::new(),
        namesakes: HashMap::new(),
        vacated: BTreeSet::new(),
        day: workspace.day(),
        include: Include::of(Some(&store)),
        device: Device::of(&store)?,
    };
    let heads = theirs.without_renamed(&incoming.heads);
    let former = store.former_ids()?;
    let (here, there) = (store.reader(), incoming.store.reader());
    let device = planner.device.id.clone();
    let erased = erased_refs(&store, &ours, &chosen_refs::ours(&store)?, &incoming.erasures)?;
    let erased = erased.into_iter().filter(|erased| !erased.is_fork);
    let erased = erased.map(|erased| erased.head.timeline).collect();
    let sides = counterparts::Sides {
        ours: &ours,
        theirs,
        here: &here,
        there: &there,
        former: &former,
        device: &device,
        erased,
    };
    let counterparts = counterparts::pair(&sides, heads, |name| planner.free_name(name))?;
    let Counterparts { mut pairs, displaced } = counterparts;
    // Lorebooks first: chats find them as they will be. Then the timelines that exist locally, then the latest.
    pairs.sort_by_key(|Counterpart { remote, local, name, .. }| {
        let latest = std::cmp::Reverse(remote.time.seconds);
        (name.is_chat(), local.is_none(), latest, name.clone())
    });
    let mut steps = Vec::new();
    monitor.begin("comparing timelines", Some(pairs.len() as u64));
    planner.vacate(&pairs, &displaced)?;
    // Lorebooks first: a chat that makes room may use one that gets another name.
    let (chats, others): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.name.is_chat());
    let (moved_chats, moved): (Vec<_>, Vec<_>) =
        displaced.into_iter().partition(|local| local.timeline.is_chat());
    for (moved, pairs) in [(moved, others), (moved_chats, chats)] {
        for local in moved {
            steps.push(planner.displace(local)?);
        }
        for pair in pairs {
            steps.push(planner.step(pair)?);
            monitor.advance(1);
        }
    }
    planner.follow_namesakes(&mut steps)?;
    planner.add_unsettled(&mut steps)?;
    let tags = plan_tags(&ours, theirs);
    let Planner { files, findings, device, .. } = planner;
    // An earlier attempt may have told it.
    for finding in findings.into_iter().chain(incoming.findings.iter().cloned()) {
        if !report.findings.contains(&finding) {
            report.findings.push(finding);
        }
    }
    match &held {
        Some(held) => {
            if store.erasures()? != incoming.erasures {
                store.set_erasures(&held.lock, &incoming.erasures)?;
            }
            let (incoming, steps, tags, files) = (&incoming, &steps[..], &tags[..], &files);
            let change = Planned { incoming, steps, tags, files, device: &device };
            let (actions, findings) = apply(workspace, &store, held, &change, options.closed)?;
            report.files.extend(actions);
            report.findings.extend(findings);
        }
        None => {
            let mut plan = files.plan(&[]);
            if let Some(library) = &library {
                let (files, findings) = attached(&store, &incoming, &steps, library.root())?;
                plan.extend(files);
                report.findings.extend(findings);
            }
            report.files.extend(plan.iter().map(FilePlan::action));
        }
    }
    let moved = tags.iter().filter(|(name, id)| ours.tags().all(|known| known != (name, *id)));
    report.tags.extend(moved.cloned());
    let left = steps.iter().filter(|step| matches!(step.entry.outcome, SyncOutcome::Left(_)));
    // A timeline that was left alone keeps the name that it has on either side.
    let left = left.flat_map(|step| step.local.iter().chain([&step.entry.head]));
    let left = left.map(|snapshot| branch(&snapshot.timeline));
    let mut unsent = Unsent { except: left.collect(), erased: BTreeSet::new() };
    unsent.except.extend(incoming.odd.iter().cloned());
    report.left_there = incoming.odd.len();
    let erased = leave_out_erased(&store, &incoming, &mut unsent)?;
    let is_erased = |name: &TimelineName| erased.iter().any(|erased| erased.timeline == *name);
    steps.retain(|step| !is_erased(&step.entry.timeline));
    let entries = steps.into_iter().map(|step| step.entry).chain(erased);
    // What was told of a timeline in an earlier attempt stays told unless there is news.
    for entry in entries {
        let is_it = |known: &&mut SyncedTimeline| {
            known.timeline == entry.timeline && known.set_aside() == entry.set_aside()
        };
        let known = report.entries.iter_mut().find(is_it);
        match known {
            Some(known) if entry.outcome != SyncOutcome::Known => *known = entry,
            Some(_) => {}
            None => report.entries.push(entry),
        }
    }
    report.entries.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    Ok(unsent)
}

/// Leaves out what was removed for good, on this device or another, of what is sent; what is told of it.
fn leave_out_erased(
    store: &Store,
    incoming: &Incoming,
    unsent: &mut Unsent,
) -> Result<Vec<SyncedTimeline>> {
    let refs = chosen_refs::ours(store)?;
    let here = erased_refs(store, &History::load(store)?, &refs, &incoming.erasures)?;
    let mut told = Vec::new();
    for found in &incoming.erased {
        // A fork that was rewritten locally takes the place of the one that still leads to what was removed.
        if found.is_fork && !store.find_former(&found.head.id.to_string())?.is_empty() {
            continue;
        }
        if found.is_fork || here.iter().any(|here| here.name == found.name) {
            unsent.except.insert(found.name.clone())
        } else {
            unsent.erased.insert(found.name.clone())
        };
        told.push((found, SyncOutcome::Erased));
    }
    for found in &here {
        unsent.except.insert(found.name.clone());
        told.retain(|(known, _)| known.head.timeline != found.head.timeline);
        told.push((found, SyncOutcome::ErasedElsewhere));
    }
    let branches = told.into_iter().filter(|(found, _)| found.name.is_branch());
    let entry = |(found, outcome): (&ErasedRef, SyncOutcome)| {
        let outcome = if found.is_fork { SyncOutcome::ForkOfErased } else { outcome };
        SyncedTimeline::erased(&found.head, outcome)
    };
    Ok(branches.map(entry).collect())
}

/// What the remote has, verified; none if there is nothing yet.
fn fetch(
    workspace: &Workspace,
    options: &Options,
    store: &Store,
    monitor: &mut dyn Monitor,
) -> Result<Option<Incoming>> {
    if let CopyPlace::Folder(folder) = &options.place {
        match mirror::look(folder, Some(store))? {
            Some(mirror)
                if !mirror.refs("refs/heads/")?.refs.is_empty()
                    || !mirror.erasures()?.is_empty() => {}
            _ => return Ok(None),
        }
    }
    let beside = nearest_folder(&store.path().join("x"));
    let source = Source {
        place: &options.place,
        passphrase: None,
        asks: options.asks,
        beside: &beside,
        store: Some(store),
    };
    Ok(Some(receive_as_it_is(workspace, &source, monitor)?))
}

/// What was planned.
struct Planned<'p> {
    incoming: &'p Incoming,
    steps: &'p [TimelinePlan],
    tags: &'p [Tag],
    files: &'p FutureLibrary,
    device: &'p Device,
}

/// Returns the files that messages of chats that come name, and that are not here, and what is told of those that are refused for their kind.
fn attached(
    store: &Store,
    incoming: &Incoming,
    steps: &[TimelinePlan],
    root: &Path,
) -> Result<(Vec<FilePlan<'static>>, Vec<Finding>)> {
    let admission = Admission::of(store, false)?;
    let mut findings = Vec::new();
    let reader = incoming.store.reader();
    let mut plan: BTreeMap<LibraryPath, FilePlan<'static>> = BTreeMap::new();
    // A chat of here may only get another lorebook's name.
    let comes = |step: &&TimelinePlan| {
        let head = &step.entry.head;
        head.timeline.is_chat()
            && !matches!(step.branch, BranchMove::Stay)
            && incoming.history.get(head.id).is_some()
    };
    for step in steps.iter().filter(comes) {
        let tree = Tree::open(&reader, step.entry.head.tree)?;
        // What is lost was told when the snapshots were judged.
        let (head, found) = (&step.entry.head, tree.attachments());
        let unplanned = &|_: &LibraryPath| None;
        let missing = missing_attachments::missing(
            root,
            &reader,
            &head.timeline,
            found,
            &admission,
            unplanned,
        )?;
        let is_refused = |finding: &Finding| finding.code == Code::AttachmentRefused;
        findings.extend(missing.findings.into_iter().filter(is_refused));
        plan.extend(missing.plan.into_iter().map(|file| (file.path.clone(), file)));
    }
    Ok((plan.into_values().collect(), findings))
}

/// Do what was planned, in one operation.
fn apply(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    change: &Planned<'_>,
    closed: Closed,
) -> Result<(Vec<FileAction>, Vec<Finding>)> {
    let Planned { incoming, steps, tags, files, .. } = *change;
    let mut pack = store.pack_writer();
    pack.adopt_some(&incoming.store, &incoming.objects)?;
    pack.finish()?;
    let reader = store.reader();
    let mut operation = Operation::new(workspace, store, None);
    // Snapshots that have what is on disk now, and what will be.
    let mut had: Vec<(SnapshotId, Manifest)> = Vec::new();
    let mut will_have: Vec<(SnapshotId, Manifest)> = Vec::new();
    for step in steps {
        let (timeline, head) = (&step.entry.timeline, &step.entry.head);
        for name in [Some(timeline), step.entry.former.as_ref()].into_iter().flatten() {
            if let Some(id) = store.ref_target(&branch(name))?
                && let Ok(before) = crate::history::name_lookup::read(store, SnapshotId(id))
            {
                had.push((before.id, read_manifest(&reader, before.tree)?));
            }
        }
        match &step.branch {
            BranchMove::Stay => continue,
            BranchMove::There => {
                operation.move_ref(branch(timeline), head.id)?;
                will_have.push((head.id, read_manifest(&reader, head.tree)?));
            }
            BranchMove::Renamed(whole) => {
                let state = State::made(whole, None);
                let follows = step.local.clone().map(Follows::renamed).unwrap_or_default();
                let taken = operation.take(&state, Kind::SNAPSHOT, follows)?;
                will_have.push((taken.id, state.manifest));
            }
            BranchMove::Made(whole, joined) => {
                let state = State::made(whole, None);
                let follows = Follows::joined(head.clone(), *joined);
                // A chat that both sides deleted stays deleted.
                let is_deleted = |side: &Snapshot| side.kind == Kind::DELETED;
                let kind = if is_deleted(head) && step.local.as_ref().is_some_and(is_deleted) {
                    Kind::DELETED
                } else {
                    Kind::SNAPSHOT
                };
                let taken = operation.take(&state, kind, follows)?;
                will_have.push((taken.id, state.manifest));
            }
        }
        if let Some((from, whole)) = &step.aside {
            let state = State::made(whole, None);
            let follows = Follows::copy(from, &state).taken_from(change.device.sets_aside());
            let taken = operation.take(&state, Kind::SNAPSHOT, follows)?;
            will_have.push((taken.id, state.manifest));
        }
    }
    let moved = || steps.iter().filter(|step| !matches!(step.branch, BranchMove::Stay));
    let names: BTreeSet<_> = moved().map(|step| branch(&step.entry.timeline)).collect();
    for former in moved().filter_map(|step| step.entry.former.as_ref()).map(branch) {
        // Another timeline may have taken the name.
        if !names.contains(&former) {
            operation.drop_ref(former)?;
        }
    }
    for (name, id) in tags {
        if let Some(name) = RefName::tag(name) {
            operation.move_ref(name, *id)?;
        }
    }
    let mut plan = files.plan(&will_have);
    let (attached, findings) = attached(store, incoming, steps, workspace.library()?.root())?;
    plan.extend(attached);
    let had: Vec<_> = had.iter().map(|(id, manifest)| (*id, manifest)).collect();
    let why = "Files as they were before what another device wrote came";
    let library = workspace.library()?;
    let leave = Leave { closed, active_queue: false };
    let planned = operation.write_files(library.root(), plan, &had, leave, why)?;
    let ending = Ending { message: "as it is after a sync", ..Ending::default() };
    // The file of a kind that this device does not keep is never read: it may hold passwords.
    let include = Include::of(Some(store));
    for step in moved().filter(|step| include.has(step.entry.timeline.category())) {
        operation.end_with(&library, &step.entry.timeline, &ending)?;
    }
    operation.end_others(&library, &ending)?;
    operation.finish(held)?;
    Ok((planned.actions, findings))
}

/// Where tags go. One that stands for different snapshots here and there is the remote's; the one here gets a number.
fn plan_tags(ours: &History, theirs: &History) -> Vec<Tag> {
    let here: BTreeMap<_, _> = ours.tags().collect();
    let there: BTreeMap<_, _> = theirs.tags().collect();
    let mut taken: BTreeSet<String> =
        here.keys().chain(there.keys()).map(|name| (*name).to_owned()).collect();
    let mut tags = Vec::new();
    for (name, id) in &there {
        match here.get(name) {
            Some(known) if known == id => {}
            None => tags.push(((*name).to_owned(), *id)),
            Some(known) => {
                tags.push(((*name).to_owned(), *id));
                let mut numbered = (2..).map(|n| format!("{name} ({n})"));
                // One that has the number already and names the same is enough.
                let same = |other: &String| {
                    here.get(other.as_str()) == Some(known)
                        || there.get(other.as_str()) == Some(known)
                };
                let free = numbered.find(|other| same(other) || !taken.contains(other));
                if let Some(free) = free {
                    taken.insert(free.clone());
                    tags.push((free, *known));
                }
            }
        }
    }
    tags
}
