use std::path::PathBuf;

use serde::Serialize;

use crate::archive::{Blake3, Role, Snapshot};
use crate::auto_recap::CheckpointState;
use crate::engine::files::{Action, FileAction, Leave};
use crate::engine::gate::GatePolicy;
use crate::engine::operation::missing_attachments::Admission;
use crate::engine::{self, reload_page};
use crate::history::at_message::Origin;
use crate::rules::Finding;
use crate::st::{self, TimelineName};
use crate::store::Store;

/// A snapshot and where to restore it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub snapshot: String,
    pub until: Until,
    pub target: Target,
    pub queue: QueueChange,
    /// Also write attachments of uncommon kinds that the library never had.
    pub any_attachments: bool,
    pub dry_run: bool,
}

/// The part of a chat that is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    #[default]
    End,
    /// The state at this message, with the recap and the lorebook of then.
    Message(usize),
    /// The messages up to this one; everything else is as the snapshot has it.
    Cut(usize),
}

/// The place of the restored files.
#[derive(Clone, Debug)]
pub enum Target {
    /// In the library, under its own name; all files, or only one.
    InPlace { only: Option<Role>, overwrite: Overwrite, leave: Leave },
    /// In the library, as a new timeline with its own lorebook, after a readiness check if one is
    /// given.
    NewTimeline { name: String, gate: Option<GatePolicy> },
    /// In an empty folder; all files, or only one.
    Folder { dir: PathBuf, only: Option<Role> },
}

/// The files that may be replaced, after they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    #[default]
    None,
    All,
    /// Files with these hashes, as a plan reported them.
    Only(Vec<Blake3>),
}

/// The change of pending work in the lorebook's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueChange {
    #[default]
    Keep,
    Clear,
    /// Work about later messages is dropped.
    Trim,
}

impl Options {
    pub(super) fn admission(&self, store: &Store) -> engine::Result<Admission> {
        if self.any_attachments { Ok(Admission::Any) } else { Admission::own(store) }
    }
}

impl Until {
    pub(super) fn message(self) -> Option<usize> {
        if let Self::Message(message) = self { Some(message) } else { None }
    }

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
    pub(super) fn only(&self) -> Option<Role> {
        match self {
            Self::InPlace { only, .. } | Self::Folder { only, .. } => *only,
            Self::NewTimeline { .. } => None,
        }
    }

    pub(super) fn includes(&self, role: Role) -> bool {
        match self.only() {
            None => true,
            // A chat that its group does not list would not open.
            Some(Role::Chat) => role != Role::Lorebook,
            Some(only) => role == only,
        }
    }
}

/// A restored state.
#[derive(Serialize)]
pub struct Report {
    #[serde(skip)]
    pub source: Source,
    /// The state of ST-Auto-Recap in it.
    pub state: Option<CheckpointState>,
    pub messages: u64,
    /// Of the lorebook that was restored with a chat.
    pub entries: Option<u64>,
    /// The number of operations dropped from the queue.
    #[serde(skip)]
    pub dropped_operations: usize,
    #[serde(skip)]
    pub written: Written,
    #[serde(skip)]
    pub findings: Vec<Finding>,
    #[serde(skip)]
    pub dry_run: bool,
}

/// The stored state that was restored.
pub struct Source {
    /// By its name of today; the parent of a new timeline.
    pub timeline: TimelineName,
    pub snapshot: Snapshot,
    /// The name that always means this moment.
    pub moment: String,
    pub tags: Vec<String>,
    /// The older snapshot with the lorebook, if the latest one is damaged.
    pub older_book: Option<Snapshot>,
    /// Where the parts come from, if the state was put together.
    pub origin: Option<Origin>,
}

/// Written files, and the snapshots created with them.
#[derive(Default)]
pub struct Written {
    pub root: PathBuf,
    pub files: Vec<FileAction>,
    /// The snapshot of the replaced files.
    pub safety: Option<Snapshot>,
    /// The new latest snapshot of the timeline, if the restored one was not the latest.
    pub restored: Option<Snapshot>,
    /// The first snapshot of the new timeline.
    pub fork: Option<Snapshot>,
    /// Whether former bytes are kept outside of any snapshot.
    pub kept: bool,
    pub(super) findings: Vec<Finding>,
}

impl Written {
    /// Counts the written files, without those that were there.
    pub fn count(&self) -> usize {
        self.files.iter().filter(|file| file.action == Action::Write).count()
    }

    /// Adds the advice about SillyTavern's page. A plan only warns of files that would be replaced
    /// while SillyTavern runs.
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
