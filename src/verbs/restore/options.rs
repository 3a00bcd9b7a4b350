use std::path::PathBuf;

use serde::Serialize;

use crate::archive::{Blake3, Role, Snapshot};
use crate::auto_recap::CheckpointState;
use crate::engine::files::{Action, FileAction, WritePermissions};
use crate::engine::gate::GatePolicy;
use crate::engine::operation::missing_attachments::AttachmentFilter;
use crate::engine::{self, reload_page};
use crate::history::at_message::Origin;
use crate::rules::Finding;
use crate::st::{self, TimelineName};
use crate::store::Store;

/// The snapshot to restore, and the destination.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the moment to restore.
    pub snapshot: String,
    /// The last message to restore.
    pub until: RestoreRange,
    /// The destination and its conditions.
    pub target: Target,
    /// The change of ST-Auto-Recap's queue in the restored lorebook.
    pub queue: QueueChange,
    /// Also write attachments with uncommon file types that the library never had.
    pub any_attachments: bool,
    /// Only plan the restore.
    pub dry_run: bool,
}

/// The part of a chat that is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreRange {
    /// The complete moment.
    #[default]
    End,
    /// The chat up to this message, with the recap and the lorebook as they were at this message.
    Message(usize),
    /// The snapshot without the messages after this one. The recap and the lorebook are not
    /// changed.
    Cut(usize),
}

/// The destination of the restored files.
#[derive(Clone, Debug)]
pub enum Target {
    /// In the library, under the files' own names.
    InPlace {
        /// Restores only this part. `None` restores all parts.
        only: Option<Role>,
        /// Files that may be replaced.
        overwrite: Overwrite,
        /// Permissions that protect from SillyTavern's own saves.
        permissions: WritePermissions,
    },
    /// In the library, as a new timeline with its own copy of the lorebook.
    NewTimeline {
        /// Name of the new chat, without its folder.
        name: String,
        /// The readiness check. `None` skips it.
        gate: Option<GatePolicy>,
    },
    /// In an empty folder.
    Folder {
        /// The folder, which is created if it does not exist.
        dir: PathBuf,
        /// Restores only this part. `None` restores all parts.
        only: Option<Role>,
    },
}

/// The files that may be replaced. Replaced files are stored first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse to replace a file that differs.
    #[default]
    None,
    /// Replace only a file that nobody worked on: SillyTavern created it at its first start, or its
    /// content is that of an earlier snapshot of its timeline.
    Unedited,
    /// Replace every file that differs.
    All,
    /// Only files whose current content has one of these hashes. An earlier plan reported the
    /// hashes.
    Only(Vec<Blake3>),
}

/// The change of ST-Auto-Recap's queue of pending work in the restored lorebook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueChange {
    /// Restore the queue as it was.
    #[default]
    Keep,
    /// Remove all work.
    Clear,
    /// Drop work that refers to messages after the last restored message.
    Trim,
}

impl Options {
    pub(super) fn admission(&self, store: &Store) -> engine::Result<AttachmentFilter> {
        if self.any_attachments { Ok(AttachmentFilter::Any) } else { AttachmentFilter::own(store) }
    }
}

impl RestoreRange {
    pub(super) fn message(self) -> Option<usize> {
        if let Self::Message(message) = self { Some(message) } else { None }
    }

    pub(super) fn cut(self) -> Option<usize> {
        if let Self::Cut(message) = self { Some(message) } else { None }
    }
}

impl Default for Target {
    fn default() -> Self {
        Self::InPlace {
            only: None,
            overwrite: Overwrite::None,
            permissions: WritePermissions::default(),
        }
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
            // The group's file is included, because SillyTavern cannot open a group chat that is
            // not listed in it.
            Some(Role::Chat) => role != Role::Lorebook,
            Some(only) => role == only,
        }
    }
}

/// The outcome of a restore.
#[derive(Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The moment with its names.
    #[serde(skip)]
    pub source: Source,
    /// State of ST-Auto-Recap in the restored chat.
    pub state: Option<CheckpointState>,
    /// Number of messages in the restored chat.
    pub messages: u64,
    /// Number of entries in the lorebook. `None` unless a lorebook was restored together with a
    /// chat.
    pub entries: Option<u64>,
    /// Number of entries that were removed from ST-Auto-Recap's queue.
    #[serde(skip)]
    pub dropped_operations: usize,
    /// Files that were written, and new snapshots.
    #[serde(skip)]
    pub written: RestoreResult,
    /// Problems of the restored files, and advice for SillyTavern's page.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// Whether nothing was written.
    #[serde(skip)]
    pub dry_run: bool,
}

impl Report {
    /// Returns the name of the checkpoint: its tag, else the name of the scene that it ends, else
    /// the name of its chat.
    pub fn label(&self) -> &str {
        let tag = self.source.tags.first().map(String::as_str);
        let scene = || self.state.as_ref()?.scene_break_name.as_deref();
        tag.or_else(scene).unwrap_or(self.source.timeline.chat())
    }
}

/// The moment that was restored.
pub struct Source {
    /// Current name of the timeline. If the restore creates a new timeline, this is its parent.
    pub timeline: TimelineName,
    /// The snapshot that contains the chat of this moment.
    pub snapshot: Snapshot,
    /// Permanent name of this moment; see docs/moments.md.
    pub moment: String,
    /// Names of the tags at the snapshot.
    pub tags: Vec<String>,
    /// The snapshot with an older lorebook that was restored because the latest lorebook is
    /// damaged.
    pub older_book: Option<Snapshot>,
    /// Sources of the chat and the lorebook. `None` if the moment was stored in snapshots and did
    /// not have to be reconstructed.
    pub origin: Option<Origin>,
}

/// The written files, and the snapshots created by the restore.
#[derive(Default)]
pub struct RestoreResult {
    /// Folder to which the paths in `files` are relative.
    pub root: PathBuf,
    /// Every file of the moment.
    pub files: Vec<FileAction>,
    /// Snapshot of the replaced files, created before the restore.
    pub safety: Option<Snapshot>,
    /// New latest snapshot of the timeline. `None` if the restored snapshot was already the latest.
    pub restored: Option<Snapshot>,
    /// The first snapshot of the new timeline.
    pub fork: Option<Snapshot>,
    /// Whether the former content of a file was stored separately because no snapshot contains it.
    pub kept: bool,
    pub(super) findings: Vec<Finding>,
}

impl RestoreResult {
    /// Counts the written files. Files that already had the restored content are not counted.
    pub fn count(&self) -> usize {
        self.files.iter().filter(|file| file.action == Action::Write).count()
    }

    /// Adds the finding that tells the user to reload SillyTavern's page. In a dry run, the finding
    /// is added only if SillyTavern is running and files would be replaced.
    pub(super) fn advise_reload(&mut self, timeline: &TimelineName, options: &Options) {
        let replaced = self.files.iter().any(|file| file.replaces);
        let written = self.files.iter().any(|file| file.action != Action::Keep);
        let runs = || st::process_on(&self.root).is_some();
        if !written || options.dry_run && !(replaced && runs()) {
            return;
        }
        let fork = self.fork.as_ref().map(|fork| &fork.timeline);
        let subject = fork.unwrap_or(timeline);
        let asked =
            replaced && self.files.iter().all(|file| !file.replaces || file.integrity.is_some());
        let written = reload_page::WriteEffects { new_chat: fork.is_some(), replaced, asked };
        let finding = reload_page::reload(&self.root, Some(subject), written);
        self.findings.push(finding);
    }
}
