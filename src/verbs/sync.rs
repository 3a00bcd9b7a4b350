//! Synchronises the store with a remote: fetch, reconcile, push.
//!
//! Order: create snapshots of local changes; fetch and validate the remote's history; apply that
//! history to objects, log, refs and files in one operation; push. If another device pushed in the
//! meantime, start again with the fetch.

use crate::engine::copies::{CopyError, CopyPlace, mirror, server};
use crate::engine::files::{Action, ChatOpenState, FileAction};
use crate::engine::receive::{
    self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Request, Source,
};
use crate::engine::reload_page::{WriteEffects, reload};
use crate::engine::safety_snapshots::take_what_is_ready;
use crate::engine::{self, Workspace};
use crate::progress::Monitor;
use crate::rules::Finding;
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
}

/// Maximum number of attempts. An attempt is repeated if another device pushes or SillyTavern saves
/// a file in the meantime.
const ATTEMPTS: usize = 5;

/// Synchronises this device with a remote.
pub fn sync(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let workspace = &workspace;
    match &options.place {
        CopyPlace::File(path) => return Err(not_shared(path.display().to_string()).into()),
        CopyPlace::Output => return Err(not_shared("-".into()).into()),
        CopyPlace::Folder(_) | CopyPlace::Remote(_) => {}
    }
    if let Some(root) = begun.filter(|_| !options.dry_run) {
        Workspace::begin_library(&root)?;
    }
    if let CopyPlace::Folder(folder) = &options.place {
        mirror::look(folder, workspace.find_store()?.as_ref())?;
    }
    // A dry run also creates snapshots of local changes, but in a copy of the store.
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let workspace = copy.as_ref().map_or(workspace, |(_, copy)| copy);
    let mut report = Report { dry_run: options.dry_run, ..Report::default() };
    if workspace.library().is_ok() {
        let first = take_what_is_ready(workspace, monitor)?;
        (report.taken_first, report.failed) = (first.new, first.not_taken);
        report.findings.extend(first.findings);
    }
    if let Err(error) = exchange(workspace, options, &mut report, monitor) {
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
    let why = "`stvc sync` requires a folder or a git server";
    CopyError::UnknownDestination { destination, why }
}

fn exchange(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    for attempt in 1.. {
        let unsent = match take_in(workspace, options, report, monitor) {
            // SillyTavern saved a file during this attempt. The next attempt reads the new content.
            Err(
                engine::Error::SavedByOther { .. }
                | engine::Error::St(st::Error::SavedMeanwhile { .. }),
            ) if attempt < ATTEMPTS => continue,
            unsent => unsent?,
        };
        if options.dry_run {
            break;
        }
        let sent = match &options.place {
            CopyPlace::Remote(url) => server::to_server(workspace, url, &unsent, monitor),
            CopyPlace::Folder(folder) => mirror::to_folder(workspace, folder, &unsent, monitor),
            CopyPlace::File(_) | CopyPlace::Output => break,
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
    let request = Request {
        source: Source {
            place: &options.place,
            passphrase: None,
            beside: receive::beside(workspace)?,
        },
        closed: options.closed,
        policy: Policy::Join,
        dry_run: options.dry_run,
    };
    let done = receive::reconcile(workspace, &request, monitor)?;
    report.left_there = done.incoming.withheld.invalid.len();
    report.tags.extend(done.tags);
    report.files.extend(done.files);
    // An earlier attempt may have reported the same finding.
    for finding in done.findings {
        if !report.findings.contains(&finding) {
            report.findings.push(finding);
        }
    }
    // The outcome of an earlier attempt is retained unless this attempt changed the timeline.
    for entry in done.entries {
        let is_it = |known: &&mut ReceivedTimeline| {
            known.timeline == entry.timeline && known.set_aside() == entry.set_aside()
        };
        match report.entries.iter_mut().find(is_it) {
            Some(known) if entry.outcome != Outcome::Known => *known = entry,
            Some(_) => {}
            None => report.entries.push(entry),
        }
    }
    report.entries.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    Ok(done.unsent)
}
