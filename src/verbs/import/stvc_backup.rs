//! `import SRC`: a backup's timelines into the store.

use crate::archive::backup::{Header, Passphrase};
use crate::engine::Workspace;
use crate::engine::copies::CopyPlace;
use crate::engine::files::{Closed, FileAction};
use crate::engine::receive::{self, Outcome, Policy, ReceivedTag, ReceivedTimeline, Request};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::verbs::Result;

#[derive(Clone, Debug)]
pub struct Options {
    /// The backup.
    pub source: CopyPlace,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// Whether SillyTavern has the chats closed.
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

pub struct Report {
    /// What the backup says of itself.
    pub header: Header,
    /// Its timelines.
    pub entries: Vec<ReceivedTimeline>,
    /// Its tags that were not here.
    pub tags: Vec<ReceivedTag>,
    /// Whether the store was made now.
    pub created_store: bool,
    /// Files of timelines that go on, and that followed; none in a dry run.
    pub files: Vec<FileAction>,
    /// How many snapshots of it were left out, because something is wrong with them.
    pub left_out: usize,
    pub findings: Vec<Finding>,
    /// How many objects were written.
    pub objects: usize,
    /// What they take.
    pub bytes: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

impl Report {
    pub fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
}

/// Take a backup in: verify all of it, write the objects that are missing, then move the refs in one operation.
pub fn take_in(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let created_store = workspace.find_store()?.is_none();
    let request = Request {
        place: &options.source,
        passphrase: options.passphrase.as_ref(),
        asks: options.asks,
        beside: receive::beside(&workspace)?,
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
        // `restore --all` finds it now.
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
