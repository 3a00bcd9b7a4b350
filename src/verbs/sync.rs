//! `sync REMOTE`: two devices, one history. Fetch, take in, push.
//!
//! Order: snapshots of what changed here; the other side's, verified; a plan for every timeline and the files of the library; then all of it in one operation, as `restore` and
//! `import` do it: objects, log, refs, files. Only then is the remote brought up to date. If somebody else was quicker there, it begins anew with what they wrote.

use crate::engine::copies::{CopyError, CopyPlace, mirror, server};
use crate::engine::files::{Action, Closed, FileAction};
use crate::engine::receive::{self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Request};
use crate::engine::reload_page::{Written, reload};
use crate::engine::take_first::take_what_is_ready;
use crate::engine::{self, Workspace};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st;
use crate::store::{self, Loss, RemoteError};
use crate::verbs::{Error, Result};

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

#[derive(Default)]
pub struct Report {
    /// Snapshots that were taken first.
    pub taken_first: usize,
    /// Timelines here that could not be read, and so were not sent as they are now.
    pub failed: usize,
    /// Branches and tags of the other side that something is wrong with.
    pub left_there: usize,
    /// The other side's timelines.
    pub entries: Vec<ReceivedTimeline>,
    /// Tags that came or moved.
    pub tags: Vec<ReceivedTag>,
    /// Files that were written or removed.
    pub files: Vec<FileAction>,
    /// What went to the remote; none in a dry run.
    pub sent: Option<mirror::Report>,
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

impl Report {
    pub fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// How often it begins anew because somebody else was quicker.
const ATTEMPTS: usize = 5;

/// Bring this device and a remote to the same state.
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
    // A plan begins with the snapshots, too; it is made on a copy.
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
        return Err(error).map_err(Error::after(report.taken_first > 0 || came));
    }
    let written = report.files.iter().any(|file| file.action != Action::Keep);
    if written && !options.dry_run {
        let replaced = report.files.iter().any(|file| file.replaces);
        let written = Written { replaced, ..Written::REPLACED };
        report.findings.push(reload(workspace.library()?.root(), "files", written));
    }
    Ok(report)
}

fn not_shared(destination: String) -> CopyError {
    let why = "two devices meet in a folder or on a git server";
    CopyError::UnknownDestination { destination, why }
}

/// Take in and send, until nobody was quicker.
fn exchange(
    workspace: &Workspace,
    options: &Options,
    report: &mut Report,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    for attempt in 1.. {
        let unsent = match take_in(workspace, options, report, monitor) {
            // What SillyTavern saved just then goes on here; the next look finds it so.
            Err(
                engine::Error::LeftAlone { .. }
                | engine::Error::St(st::Error::SavedMeanwhile { .. }),
            ) if attempt < ATTEMPTS => continue,
            unsent => unsent?,
        };
        if options.dry_run {
            break;
        }
        let sent = match &options.place {
            CopyPlace::Remote(url) => {
                server::to_server(workspace, url, &unsent, options.asks, monitor)
            }
            CopyPlace::Folder(folder) => mirror::to_folder(workspace, folder, &unsent, monitor),
            // They were refused.
            CopyPlace::File(_) | CopyPlace::Output => break,
        };
        match sent {
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

/// Takes in what the remote has; returns what is sent afterwards, and what is not.
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
        place: &options.place,
        passphrase: None,
        asks: options.asks,
        beside: receive::beside(workspace)?,
        closed: options.closed,
        policy: Policy::Join,
        dry_run: options.dry_run,
    };
    let done = receive::reconcile(workspace, &request, monitor)?;
    report.left_there = done.incoming.withheld.odd.len();
    report.tags.extend(done.tags);
    report.files.extend(done.files);
    // An earlier attempt may have told it.
    for finding in done.findings {
        if !report.findings.contains(&finding) {
            report.findings.push(finding);
        }
    }
    // What was told of a timeline in an earlier attempt stays told unless there is news.
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
