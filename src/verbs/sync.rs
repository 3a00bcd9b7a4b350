//! `sync REMOTE`: fetch, reconcile, push.
//!
//! Order: snapshots of what changed here; the remote's history, verified; one operation with
//! objects, log, refs and files; then the remote. If another device was faster there, it starts
//! again with what that wrote.

use crate::engine::copies::{CopyError, CopyPlace, mirror, server};
use crate::engine::files::{Action, Closed, FileAction};
use crate::engine::receive::{
    self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Request, Source,
};
use crate::engine::reload_page::{Written, reload};
use crate::engine::take_first::take_what_is_ready;
use crate::engine::{self, Workspace};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st;
use crate::store::{self, Loss, RemoteError};
use crate::verbs::Result;

/// Options of a sync.
#[derive(Clone, Debug)]
pub struct Options {
    pub place: CopyPlace,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    pub closed: Closed,
    pub dry_run: bool,
}

/// The outcome for each timeline, and what was sent.
#[derive(Default)]
pub struct Report {
    pub taken_first: usize,
    /// The number of unreadable timelines, of which earlier states were sent.
    pub failed: usize,
    /// The number of the remote's branches and tags that were not taken because of problems.
    pub left_there: usize,
    pub entries: Vec<ReceivedTimeline>,
    pub tags: Vec<ReceivedTag>,
    pub files: Vec<FileAction>,
    /// `None` in a dry run.
    pub sent: Option<mirror::Report>,
    pub findings: Vec<Finding>,
    pub dry_run: bool,
}

impl Report {
    /// Counts the timelines with a wanted outcome.
    pub fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// Attempts while another device is faster.
const ATTEMPTS: usize = 5;

/// Brings this device and a remote to the same state.
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
    // A dry run creates snapshots, too, on a copy.
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
        let written = Written { replaced, ..Written::REPLACED };
        report.findings.push(reload(workspace.library()?.root(), "files", written));
    }
    Ok(report)
}

fn not_shared(destination: String) -> CopyError {
    let why = "two devices meet in a folder or on a git server";
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
            // SillyTavern saved a file just then; the next attempt starts from that.
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
            // It may have been forgotten and collected here meanwhile.
            Err(error) if attempt < ATTEMPTS && error.is_loss() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Takes in the remote's history; returns the options for sending.
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
            asks: options.asks,
            beside: receive::beside(workspace)?,
        },
        closed: options.closed,
        policy: Policy::Join,
        dry_run: options.dry_run,
    };
    let done = receive::reconcile(workspace, &request, monitor)?;
    report.left_there = done.incoming.withheld.odd.len();
    report.tags.extend(done.tags);
    report.files.extend(done.files);
    // An earlier attempt may have reported it.
    for finding in done.findings {
        if !report.findings.contains(&finding) {
            report.findings.push(finding);
        }
    }
    // An earlier attempt's outcome stays unless there is news.
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
