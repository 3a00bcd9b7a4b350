//! What is asked of a restore, and what it tells.

use std::path::PathBuf;

use crate::archive::{Blake3, Role, Snapshot};
use crate::auto_recap::CheckpointState;
use crate::engine::files::{Action, FileAction, Leave};
use crate::engine::gate::GatePolicy;
use crate::engine::reload_page;
use crate::history::at_message::Origin;
use crate::rules::Finding;
use crate::st::{self, TimelineName};

/// What to restore, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The snapshot, timeline or moment.
    pub snapshot: String,
    pub until: Until,
    pub target: Target,
    pub queue: QueueChange,
    /// Also write attachments of uncommon kinds that the library never had.
    pub any_attachments: bool,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// How much of a chat is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// All of it.
    #[default]
    End,
    /// The state at this message, with the recap and the lorebook of then.
    Message(usize),
    /// The messages up to this one; everything else is as the snapshot has it.
    Cut(usize),
}

/// Where a state is restored.
#[derive(Clone, Debug)]
pub enum Target {
    /// In the library, under its own name; all files, or only one.
    InPlace { only: Option<Role>, overwrite: Overwrite, leave: Leave },
    /// In the library, as a new timeline with a lorebook of its own, after a readiness check if one is given.
    NewTimeline { name: String, gate: Option<GatePolicy> },
    /// In a folder that is empty; all files, or only one.
    Folder { dir: PathBuf, only: Option<Role> },
}

/// Which files may be replaced. What is replaced is stored first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    #[default]
    None,
    All,
    /// Only files with these hashes, which a plan reported.
    Only(Vec<Blake3>),
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

impl Until {
    /// Returns the message at which the state is restored.
    pub(super) fn message(self) -> Option<usize> {
        if let Self::Message(message) = self { Some(message) } else { None }
    }

    /// Returns the message after which the chat is cut.
    pub(super) fn cut(self) -> Option<usize> {
        if let Self::Cut(message) = self { Some(message) } else { None }
    }
}

impl Default for Target {
    fn default() -> Self {
        Self::InPlace { only: None, overwrite: Overwrite::None, leave: Leave::default() }
    }
}

impl Target {
    /// Returns the file that is restored alone.
    pub(super) fn only(&self) -> Option<Role> {
        match self {
            Self::InPlace { only, .. } | Self::Folder { only, .. } => *only,
            Self::NewTimeline { .. } => None,
        }
    }

    /// Returns whether a file of this role is restored.
    pub(super) fn includes(&self, role: Role) -> bool {
        match self.only() {
            None => true,
            // A chat that its group does not list would not open.
            Some(Role::Chat) => role != Role::Lorebook,
            Some(only) => role == only,
        }
    }
}

/// What was restored.
pub struct Report {
    pub source: Source,
    /// The state of ST-Auto-Recap in it.
    pub state: Option<CheckpointState>,
    /// How many messages the restored chat has.
    pub messages: u64,
    /// How many entries the lorebook has that was restored with a chat.
    pub entries: Option<u64>,
    /// How many operations were dropped from the queue.
    pub dropped_operations: usize,
    pub written: Written,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// The stored state that was restored.
pub struct Source {
    /// The timeline, by its name of today; the parent of a new timeline.
    pub timeline: TimelineName,
    pub snapshot: Snapshot,
    /// The name that always means the moment that was restored.
    pub moment: String,
    /// The tags of the snapshot.
    pub tags: Vec<String>,
    /// The older snapshot that the lorebook was taken from because the latest one is damaged.
    pub older_book: Option<Snapshot>,
    /// Where the parts come from, if the state was put together.
    pub origin: Option<Origin>,
}

/// The files that were written, and the snapshots that were created with them.
#[derive(Default)]
pub struct Written {
    /// The folder of the files.
    pub root: PathBuf,
    pub files: Vec<FileAction>,
    /// The snapshot of the files that were replaced.
    pub safety: Option<Snapshot>,
    /// The new latest snapshot of the timeline, if the restored one was not the latest.
    pub restored: Option<Snapshot>,
    /// The first snapshot of the new timeline.
    pub fork: Option<Snapshot>,
    /// Whether former bytes are kept outside any snapshot.
    pub kept: bool,
    pub(super) findings: Vec<Finding>,
}

impl Written {
    /// Counts the files that were written, without those that were there.
    pub fn count(&self) -> usize {
        self.files.iter().filter(|file| file.action == Action::Write).count()
    }

    /// Adds what to do in SillyTavern, about files of a timeline. A plan warns of what would be replaced while SillyTavern runs.
    pub(super) fn advise_reload(&mut self, timeline: &TimelineName, options: &Options) {
        let replaced = self.files.iter().any(|file| file.replaces);
        let written = self.files.iter().any(|file| file.action != Action::Keep);
        let runs = || st::process_on(&self.root).is_some();
        if !written || options.dry_run && !(replaced && runs()) {
            return;
        }
        let fork = self.fork.as_ref().map(|fork| &fork.timeline);
        let subject = fork.unwrap_or(timeline);
        let asked = replaced && self.files.iter().all(|file| !file.replaces || file.mark.is_some());
        let written = reload_page::Written { new_chat: fork.is_some(), replaced, asked };
        let finding = reload_page::reload(&self.root, subject.as_str(), written);
        self.findings.push(finding);
    }
}
