//! Imports the timelines of a backup into the store.

use crate::archive::backup::{Header, Passphrase};
use crate::engine::Workspace;
use crate::engine::copies::CopyPlace;
use crate::engine::files::{ChatOpenState, FileAction};
use crate::engine::receive::{
    self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Request, Source, SourcePlace,
};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::verbs::Result;

/// Options of an import of a backup.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file, folder or server to read.
    pub source: CopyPlace,
    /// Decrypts the backup. Not needed for others.
    pub passphrase: Option<Passphrase>,
    /// Whether SillyTavern may overwrite the files that are written.
    pub closed: ChatOpenState,
    /// Read and verify the backup, and store nothing.
    pub dry_run: bool,
}

/// The outcome for each timeline of the backup.
#[non_exhaustive]
pub struct Report {
    /// Contents of the backup, as its header lists them.
    pub header: Header,
    /// Decisions about the timelines.
    pub entries: Vec<ReceivedTimeline>,
    /// Decisions about the tags.
    pub tags: Vec<ReceivedTag>,
    /// Whether there was no store before.
    pub created_store: bool,
    /// The files that were written. Empty in a dry run.
    pub files: Vec<FileAction>,
    /// Number of snapshots that were not imported because of the problems in `findings`.
    pub left_out: usize,
    /// Problems of the imported snapshots.
    pub findings: Vec<Finding>,
    /// Number of objects that the store did not have.
    pub objects: usize,
    /// Size of these objects in the store.
    pub bytes: u64,
    /// Whether nothing was stored.
    pub dry_run: bool,
}

impl Report {
    /// Counts the timelines whose outcome satisfies `wanted`.
    pub fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// Imports a backup. Validates the complete backup, writes missing objects, and then moves the refs
/// in one operation.
pub fn take_in(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let created_store = workspace.find_store()?.is_none();
    let request = Request {
        source: Source {
            place: SourcePlace::Place(&options.source),
            passphrase: options.passphrase.as_ref(),
            beside: receive::beside(&workspace)?,
        },
        closed: options.closed,
        policy: Policy::KeepLocal,
        dry_run: options.dry_run,
    };
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let workspace = copy.as_ref().map_or(&workspace, |(_, copy)| copy);
    let mut done = receive::reconcile(workspace, &request, monitor)?;
    if options.dry_run {
        done.files.clear();
    } else if let Some(root) = begun {
        // Turn the empty folder into a library, so that `restore --all` finds it.
        Workspace::begin_library(&root)?;
    }
    Ok(Report {
        header: done.incoming.header,
        entries: done.entries,
        tags: done.tags,
        created_store,
        files: done.files,
        left_out: done.incoming.left_out,
        findings: done.findings,
        objects: done.objects,
        bytes: done.bytes,
        dry_run: options.dry_run,
    })
}
