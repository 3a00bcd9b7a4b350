//! Synchronises the store with a remote: fetch, reconcile, push.
//!
//! Order: create snapshots of local changes; fetch and validate the remote's history; apply that
//! history to objects, log, refs and files in one operation; push. If another device pushed in the
//! meantime, start again with the fetch.
//!
//! A remote on plain storage has no common state. There, the announcements of the other devices are
//! received one after the other, and then this device announces the result.

use crate::engine::copies::{CopyError, CopyPlace, last_sync, mirror, server, synchronised_folder};
use crate::engine::files::{Action, ChatOpenState, FileAction};
use crate::engine::receive::{
    self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Reconciled, Request, Source, SourcePlace,
};
use crate::engine::reload_page::{WriteEffects, reload};
use crate::engine::remotes::Session;
use crate::engine::safety_snapshots::take_what_is_ready;
use crate::engine::{self, Workspace};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st;
use crate::store::{self, Loss, RemoteError};
use crate::verbs::Result;

/// Options of a sync.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder or server that other devices use, too.
    pub place: CopyPlace,
    /// Whether SillyTavern may overwrite the files that are written.
    pub closed: ChatOpenState,
    /// Fetch and compare, and change nothing on either side.
    pub dry_run: bool,
    /// Send nothing.
    pub receive_only: bool,
}

/// The outcome for each timeline, and the pushed changes.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// Number of snapshots of local changes that were created first.
    pub taken_first: usize,
    /// Number of timelines whose current files could not be stored. Only their earlier snapshots
    /// were sent.
    pub failed: usize,
    /// Number of branches and tags of the remote that were not imported because of invalid or
    /// unsupported snapshots.
    pub left_there: usize,
    /// Decisions about timelines that the remote had changed.
    pub entries: Vec<ReceivedTimeline>,
    /// Decisions about tags that the remote had changed.
    pub tags: Vec<ReceivedTag>,
    /// Files of the library that were brought up to date.
    pub files: Vec<FileAction>,
    /// Result of the push. `None` in a dry run.
    pub sent: Option<mirror::Report>,
    /// Problems of received snapshots, and advice for SillyTavern's page.
    pub findings: Vec<Finding>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

impl Report {
    /// Counts the timelines whose outcome matches `wanted`.
    pub fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }

    /// Adds what one call has received.
    fn add(&mut self, done: Reconciled) {
        self.left_there = done.incoming.withheld.invalid.len();
        self.tags.extend(done.tags);
        self.files.extend(done.files);
        // An earlier attempt may have reported the same finding.
        for finding in done.findings {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        // The outcome of an earlier attempt is retained unless this attempt changed the timeline.
        for entry in done.entries {
            let is_it = |known: &&mut ReceivedTimeline| {
                known.timeline == entry.timeline && known.set_aside() == entry.set_aside()
            };
            match self.entries.iter_mut().find(is_it) {
                Some(known) if entry.outcome != Outcome::Known => *known = entry,
                Some(_) => {}
                None => self.entries.push(entry),
            }
        }
        self.entries.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    }

    /// Returns the number of timelines that were received.
    pub fn received(&self) -> usize {
        use Outcome::{Erased, ErasedElsewhere, ForkOfErased, Known, Left};
        self.count(|outcome| {
            !matches!(outcome, Known | Left(_) | Erased | ErasedElsewhere | ForkOfErased)
        })
    }

    /// Returns the number of snapshots that were sent.
    pub fn sent_snapshots(&self) -> usize {
        self.sent.as_ref().map_or(0, |sent| sent.new_snapshots)
    }
}

/// Maximum number of attempts. An attempt is repeated if another device pushes or SillyTavern saves
/// a file in the meantime.
const ATTEMPTS: usize = 5;

/// Synchronises this device with a remote, and records whether that succeeded.
pub fn sync(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let open = |workspace: &Workspace, address: &str| {
        Session::open(workspace, &workspace.find_or_create_store()?, address)
    };
    let mut synced = sync_with(workspace, options, &open, monitor);
    if !options.dry_run {
        let failure = synced.as_ref().err().map(|error| (error.code(), error.to_string()));
        let noted = last_sync::note(workspace, &options.place, failure);
        // The sync itself succeeded.
        if let (Ok(report), Err(error)) = (&mut synced, noted) {
            let message = format!("the sync could not be recorded in the store: {error}");
            let finding = Finding::new(Code::BackupNotNoted, options.place.to_string(), message);
            report.findings.push(finding.remedy("no action is needed: the sync succeeded"));
        }
    }
    synced
}

/// Synchronises with the configured remote, or else the last one.
pub(crate) fn again(
    workspace: &Workspace,
    closed: ChatOpenState,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let place = last_sync::next_place(workspace)?;
    sync(workspace, &Options { place, closed, dry_run: false, receive_only: false }, monitor)
}

/// Opens the remote at an address.
type OpenSession<'o> = &'o dyn Fn(&Workspace, &str) -> engine::Result<Session>;

/// Synchronises this device with a remote that `open` opens if it is on plain storage.
pub(crate) fn sync_with(
    workspace: &Workspace,
    options: &Options,
    open: OpenSession<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let workspace = &workspace;
    match &options.place {
        CopyPlace::File(path) => return Err(not_shared(path.display().to_string()).into()),
        CopyPlace::Output => return Err(not_shared("-".into()).into()),
        CopyPlace::Folder(_) | CopyPlace::Remote(_) | CopyPlace::Storage(_) => {}
    }
    if let Some(root) = begun.filter(|_| !options.dry_run) {
        Workspace::begin_library(&root)?;
    }
    if let CopyPlace::Folder(folder) = &options.place {
        mirror::look(folder, workspace.find_store()?.as_ref())?;
    }
    let mut session = match &options.place {
        CopyPlace::Storage(address) => Some(open(workspace, address)?),
        _ => None,
    };
    // A dry run also creates snapshots of local changes, but in a copy of the store.
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let workspace = copy.as_ref().map_or(workspace, |(_, copy)| copy);
    let mut report = Report { dry_run: options.dry_run, ..Report::default() };
    if let CopyPlace::Folder(folder) = &options.place {
        report.findings.extend(synchronised_folder::finding(folder));
    }
    if workspace.library().is_ok() {
        let first = take_what_is_ready(workspace, monitor)?;
        (report.taken_first, report.failed) = (first.new, first.not_taken);
        report.findings.extend(first.findings);
    }
    let exchanged = match &mut session {
        Some(session) => exchange_announcements(workspace, session, options, &mut report, monitor),
        None => exchange(workspace, options, &mut report, monitor),
    };
    if let Err(error) = exchanged {
        let came = report.entries.iter().any(|entry| entry.outcome != Outcome::Known);
        return Err(if report.taken_first > 0 || came { error.partway() } else { error });
    }
    let written = report.files.iter().any(|file| file.action != Action::Keep);
    if written && !options.dry_run {
        let replaced = report.files.iter().any(|file| file.replaces);
        let written = WriteEffects { replaced, ..WriteEffects::REPLACED };
        report.findings.push(reload(workspace.library()?.root(), None, written));
    }
    Ok(report)
}

fn not_shared(destination: String) -> CopyError {
    let why = "`stvc sync` requires a folder, a git server or a remote";
    CopyError::UnknownDestination { destination, why }
}

/// Returns whether SillyTavern saved a file during an attempt. The next one reads the new content.
fn is_saved_meanwhile(error: &engine::Error) -> bool {
    matches!(
        error,
        engine::Error::SavedByOther { .. } | engine::Error::St(st::Error::SavedMeanwhile { .. })
    )
}

fn exchange(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    for attempt in 1.. {
        let unsent = match take_in(workspace, options, report, monitor) {
            Err(error) if attempt < ATTEMPTS && is_saved_meanwhile(&error) => continue,
            unsent => unsent?,
        };
        if options.dry_run || options.receive_only {
            break;
        }
        let sent = match &options.place {
            CopyPlace::Remote(url) => server::to_server(workspace, url, &unsent, monitor),
            CopyPlace::Folder(folder) => mirror::to_folder(workspace, folder, &unsent, monitor),
            CopyPlace::File(_) | CopyPlace::Output | CopyPlace::Storage(_) => break,
        };
        match sent {
            Ok(sent) => {
                report.findings.extend(sent.findings.clone());
                report.sent = Some(sent);
                break;
            }
            Err(
                engine::Error::Remote(RemoteError::ChangedConcurrently { .. })
                | engine::Error::Copy(CopyError::NotHere { .. })
                | engine::Error::Store(store::Error::RefMoved { .. }),
            ) if attempt < ATTEMPTS => {}
            // `forget` and `gc` may have removed the missing object from the local store in the
            // meantime.
            Err(error) if attempt < ATTEMPTS && error.is_loss() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Imports the remote's history. Returns the refs that must not be sent to the remote.
fn take_in(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> engine::Result<mirror::Options> {
    if receive::has_nothing(&options.place, &workspace.find_or_create_store()?)? {
        return Ok(mirror::Options::default());
    }
    let place = SourcePlace::Place(&options.place);
    receive_from(workspace, place, Policy::Join, options, report, monitor)
}

/// Joins the announcements that this device does not know yet, one after the other, and announces
/// the result.
fn exchange_announcements(
    workspace: &Workspace,
    session: &mut Session,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    for attempt in 1.. {
        let unsent = match join_announcements(workspace, session, options, report, monitor) {
            Err(error) if attempt < ATTEMPTS && is_saved_meanwhile(&error) => continue,
            unsent => unsent?,
        };
        if options.dry_run || options.receive_only {
            report.findings.extend(session.take_findings());
            break;
        }
        match session.send(workspace, &unsent, monitor) {
            Ok(sent) => {
                session.finish_reading()?;
                report.findings.extend(sent.findings.clone());
                report.sent = Some(sent);
                break;
            }
            Err(
                engine::Error::Copy(CopyError::NotHere { .. })
                | engine::Error::Store(store::Error::RefMoved { .. }),
            ) if attempt < ATTEMPTS => session.set_unsettled(true)?,
            Err(error) if attempt < ATTEMPTS && error.is_loss() => session.set_unsettled(true)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the refs that must not be sent to the remote.
fn join_announcements(
    workspace: &Workspace,
    session: &mut Session,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> engine::Result<mirror::Options> {
    session.refresh(monitor)?;
    let mut unsent = mirror::Options::default();
    let store = workspace.find_or_create_store()?;
    let beside = receive::beside(workspace)?;
    let new = session.new_announcements();
    let (mut is_late, has_new) = (false, !new.is_empty());
    for announcement in new {
        let opened = session.open_state(announcement, Some(&store), &beside, monitor)?;
        let Some((announcement, opened)) = opened else {
            is_late = true;
            continue;
        };
        let place = SourcePlace::Opened(&opened);
        let policy = Policy::JoinByTime;
        let left = receive_from(workspace, place, policy, options, report, monitor)?;
        unsent.except.extend(left.except);
        unsent.erased.extend(left.erased);
        if !options.dry_run {
            session.join(&announcement)?;
        }
    }
    // The joined state has what was left out before, and what this device has undone since.
    if session.is_unsettled() || !has_new && !session.is_received(&store)? {
        let opened = session.open_joined_state(Some(&store), &beside, monitor)?;
        let place = SourcePlace::Opened(&opened);
        unsent = receive_from(workspace, place, Policy::JoinByTime, options, report, monitor)?;
    }
    if !options.dry_run {
        // Each sync reports the timelines for which the user must do something.
        let is_left = |outcome: &Outcome| {
            use Outcome::{ErasedElsewhere, ForkOfErased, Left};
            matches!(outcome, Left(_) | ErasedElsewhere | ForkOfErased)
        };
        let has_conflict = report.entries.iter().any(|entry| entry.conflict.is_some());
        let is_left = report.count(is_left) > 0 || report.left_there > 0;
        session.set_unsettled(is_late || is_left || has_conflict)?;
    }
    Ok(unsent)
}

fn receive_from(
    workspace: &Workspace,
    place: SourcePlace<'_>,
    policy: Policy,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> engine::Result<mirror::Options> {
    let request = Request {
        source: Source { place, passphrase: None, beside: receive::beside(workspace)? },
        closed: options.closed,
        policy,
        dry_run: options.dry_run,
    };
    let mut done = receive::reconcile(workspace, &request, monitor)?;
    // Each call joins at least one of the branches that belong to one timeline.
    while done.postponed > 0 && !options.dry_run {
        let postponed = done.postponed;
        report.add(done);
        done = receive::reconcile(workspace, &request, monitor)?;
        if done.postponed >= postponed {
            break;
        }
    }
    let unsent = done.unsent.clone();
    report.add(done);
    Ok(unsent)
}
