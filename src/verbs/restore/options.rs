//! What is asked of a restore, and what it tells.

use std::path::PathBuf;

use crate::archive::{Blake3, Role, Snapshot};
use crate::auto_recap::CheckpointState;
use crate::engine::files::{Action, Closed, FileAction};
use crate::engine::gate::GatePolicy;
use crate::engine::reload_page::{self, Written};
use crate::history::at_message::Origin;
use crate::rules::Finding;
use crate::st::{self, TimelineName};

/// What to bring back, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The snapshot.
    pub snapshot: String,
    /// Whether `snapshot` was found as the latest of its timeline: if its file is damaged, the latest valid one is meant.
    pub is_latest: bool,
    /// As a timeline of its own under this name.
    pub name: Option<String>,
    /// As it was at this message.
    pub at: Option<usize>,
    /// Cut after this message; all else is as it is in the snapshot.
    pub cut: Option<usize>,
    /// Into this empty folder instead of the library.
    pub to: Option<PathBuf>,
    /// Only this file.
    pub only: Option<Role>,
    /// Also where something else is; that is stored first.
    pub overwrite: bool,
    /// Only over these: the hashes of the files that may be replaced, as a plan told them.
    pub expect: Option<Vec<Blake3>>,
    /// Whether SillyTavern, which may be running, has the chat closed.
    pub closed: Closed,
    /// Also where ST-Auto-Recap is at work in the lorebook that is replaced.
    pub allow_active_queue: bool,
    /// Also attachments of uncommon kinds that the library never had.
    pub any_attachments: bool,
    /// What is asked of the readiness check before a timeline of its own is made; none: nothing.
    pub gate: Option<GatePolicy>,
    /// What to do with the queue in the lorebook.
    pub queue: QueueChange,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What to do with the work that waits in the lorebook's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueChange {
    /// It stays as it is.
    #[default]
    Keep,
    /// All of it is dropped.
    Clear,
    /// What is about later messages is dropped.
    Trim,
}

/// What was done.
pub struct Report {
    /// The timeline that was restored, by its name of today; with `name` the one that the new timeline was made of.
    pub timeline: TimelineName,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The name that always means the moment that was restored.
    pub moment: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it says of the state of ST-Auto-Recap.
    pub state: Option<CheckpointState>,
    /// How many messages the restored chat has.
    pub messages: u64,
    /// How many entries the lorebook has that was restored with a chat.
    pub entries: Option<u64>,
    /// Where the files are.
    pub root: PathBuf,
    /// The files.
    pub files: Vec<FileAction>,
    /// The snapshot that was taken of what was there.
    pub safety: Option<Snapshot>,
    /// The snapshot that the timeline ends with now, if it was not there.
    pub restored: Option<Snapshot>,
    /// The first snapshot of the new timeline.
    pub fork: Option<Snapshot>,
    /// The older snapshot that the lorebook was taken from because the latest one is damaged.
    pub older_book: Option<Snapshot>,
    /// Where the parts come from, if they were put together.
    pub origin: Option<Origin>,
    /// How many operations were dropped from the queue.
    pub dropped_operations: usize,
    /// Whether former bytes are kept outside any snapshot.
    pub kept: bool,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Whether a file of this role is to be written.
pub(super) fn wanted(options: &Options, role: Role) -> bool {
    match options.only {
        None => true,
        // A chat that its group does not list would not open.
        Some(Role::Chat) => role != Role::Lorebook,
        Some(only) => role == only,
    }
}

/// Say what to do in SillyTavern. What would be replaced is warned of beforehand, too.
pub(super) fn reload(report: &mut Report) {
    let replaced = report.files.iter().any(|file| file.replaces);
    let written = report.files.iter().any(|file| file.action != Action::Keep);
    let runs = || st::process_on(&report.root).is_some();
    if !written || report.dry_run && !(replaced && runs()) {
        return;
    }
    let fork = report.fork.as_ref().map(|fork| &fork.timeline);
    let subject = fork.unwrap_or(&report.timeline);
    let asked = replaced && report.files.iter().all(|file| !file.replaces || file.mark.is_some());
    let written = Written { new_chat: fork.is_some(), replaced, asked };
    let finding = reload_page::reload(&report.root, subject.as_str(), written);
    report.findings.push(finding);
}
