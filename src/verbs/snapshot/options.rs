use std::collections::HashMap;

use serde::Deserialize;

use super::template::{self, TEMPLATE};
use crate::archive::{Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::engine::gate::{GatePolicy, SceneRule};
use crate::engine::take_snapshots::{SnapshotResult, TimelineResult, UnchangedPolicy};
use crate::rules::{Code, Finding};
use crate::st::Category;
use crate::verbs::{Error, Result};

/// The timelines to store, and options for their snapshots.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The timelines, as the user named them.
    #[serde(flatten)]
    pub subject: Subject,
    /// The readiness check of each chat.
    #[serde(flatten)]
    pub gate: GatePolicy,
    /// Mark the snapshots as created automatically.
    #[serde(skip)]
    pub autosave: bool,
    /// Subject of the snapshots. `None` uses the name of the timeline and the number of messages.
    pub message: Option<String>,
    /// Only plan the snapshots, in a copy of the store.
    pub dry_run: bool,
    /// Also report unchanged timelines.
    #[serde(skip)]
    pub tell_all: bool,
}

/// Timelines to create snapshots of.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "SnapshotRequest")]
pub enum Subject {
    /// Every changed timeline. If `only` is not empty, only timelines of these categories.
    Changed {
        /// Categories of the timelines. Empty for all.
        only: Vec<Category>,
    },
    /// The named timelines, changed or not.
    Named(Vec<String>),
    /// One timeline, with a tag for its snapshot.
    One {
        /// The timeline to store.
        timeline: OneTimeline,
        /// Name of the tag. `None` creates no tag.
        tag: Option<String>,
    },
    /// A checkpoint of one chat: its messages up to message `at`, with a tag. The chat's branch
    /// does not move.
    Checkpoint {
        /// The chat, of which no later message is stored.
        timeline: OneTimeline,
        /// Number of the last message.
        at: usize,
        /// The tag that keeps the checkpoint.
        name: CheckpointName,
    },
    /// A checkpoint at the end of each scene of these chats. An empty list selects all chats.
    Scenes {
        /// Names of the chats.
        timelines: Vec<String>,
        /// Template for the tags; see [`TEMPLATE`].
        template: String,
    },
}

/// The timeline of a request that allows exactly one timeline.
#[derive(Clone, Debug)]
pub struct OneTimeline {
    /// Name of the timeline. `None` selects the only timeline of the library.
    pub name: Option<String>,
    /// Git object id of the content that the chat has in SillyTavern's page. If the file has other
    /// content, the chat has unsaved changes, and the request is refused.
    pub holds: Option<String>,
}

/// The tag of a checkpoint at a message.
#[derive(Clone, Debug)]
pub enum CheckpointName {
    /// A tag made from the chat's name and the message number.
    Default,
    /// Exactly this tag.
    Tag(String),
    /// A template for the tag; see [`TEMPLATE`].
    Template(String),
}

/// The values of a request, which may contradict each other. The conversion into [`Subject`] checks
/// them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SnapshotRequest {
    /// Names of the timelines.
    pub timelines: Vec<String>,
    /// Categories of the timelines. Empty for all.
    #[serde(skip)]
    pub only: Vec<Category>,
    /// Number of the last message of a checkpoint.
    pub at: Option<usize>,
    /// Create a checkpoint at the end of each scene.
    pub scenes: bool,
    /// Template for the tags of checkpoints; see [`TEMPLATE`].
    #[serde(skip)]
    pub template: Option<String>,
    /// Tag for the snapshot.
    pub tag: Option<String>,
    /// Content that the chat must have; see [`OneTimeline::holds`].
    pub holds: Option<String>,
}

impl Default for Subject {
    fn default() -> Self {
        Self::Changed { only: Vec::new() }
    }
}

impl Subject {
    /// Returns whether timelines were named.
    pub fn is_named(&self) -> bool {
        !self.names().is_empty()
    }

    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Changed { .. } => &[],
            Self::Named(timelines) | Self::Scenes { timelines, .. } => timelines,
            Self::One { timeline, .. } | Self::Checkpoint { timeline, .. } => {
                timeline.name.as_slice()
            }
        }
    }

    /// Returns whether all timelines of the library were selected.
    pub(super) fn is_of_library(&self) -> bool {
        match self {
            Self::Changed { only } => only.is_empty(),
            Self::Scenes { timelines, .. } => timelines.is_empty(),
            Self::Named(_) | Self::One { .. } | Self::Checkpoint { .. } => false,
        }
    }

    pub(super) fn at(&self) -> Option<usize> {
        if let Self::Checkpoint { at, .. } = self { Some(*at) } else { None }
    }

    pub(super) fn needs_one(&self) -> Option<&'static str> {
        match self {
            Self::Checkpoint { .. } => Some("--at"),
            Self::One { .. } => Some("--tag"),
            Self::Changed { .. } | Self::Named(_) | Self::Scenes { .. } => None,
        }
    }

    pub(super) fn holds(&self) -> Option<&str> {
        match self {
            Self::One { timeline, .. } | Self::Checkpoint { timeline, .. } => {
                timeline.holds.as_deref()
            }
            _ => None,
        }
    }

    pub(super) fn tag(&self) -> Option<&str> {
        match self {
            Self::One { tag, .. } => tag.as_deref(),
            Self::Checkpoint { name: CheckpointName::Tag(tag), .. } => Some(tag),
            _ => None,
        }
    }
}

impl TryFrom<SnapshotRequest> for Subject {
    type Error = Error;

    fn try_from(asked: SnapshotRequest) -> Result<Self> {
        let SnapshotRequest { mut timelines, only, at, scenes, template, tag, holds } = asked;
        if let Some(template) = &template {
            template::check(template)?;
        }
        if scenes && tag.is_none() && at.is_none() {
            let template = template.unwrap_or_else(|| TEMPLATE.to_owned());
            return Ok(Self::Scenes { timelines, template });
        }
        let needs_one =
            [(at.is_some(), "--at"), (tag.is_some(), "--tag"), (holds.is_some(), "holds")];
        let needs_one = needs_one.into_iter().find(|(is_asked, _)| *is_asked);
        if let Some((_, option)) = needs_one.filter(|_| timelines.len() > 1 || scenes) {
            return Err(Error::NeedsOneTimeline { option });
        }
        if template.is_some() && at.is_none() {
            return Err(Error::NeedsCheckpoint { option: "--name" });
        }
        match (timelines.len(), needs_one) {
            (0, None) => return Ok(Self::Changed { only }),
            (2.., None) => return Ok(Self::Named(timelines)),
            _ => {}
        }
        let timeline = OneTimeline { name: timelines.pop(), holds };
        let Some(at) = at else { return Ok(Self::One { timeline, tag }) };
        let name = match (tag, template) {
            (Some(tag), _) => CheckpointName::Tag(tag),
            (None, Some(template)) => CheckpointName::Template(template),
            (None, None) => CheckpointName::Default,
        };
        Ok(Self::Checkpoint { timeline, at, name })
    }
}

impl Options {
    /// Returns the policy for unchanged timelines. For checkpoints and tags, the readiness check
    /// also applies to unchanged timelines.
    pub(super) fn unchanged(&self) -> UnchangedPolicy {
        let is_checkpoint = self.subject.at().is_some() || self.subject.tag().is_some();
        if is_checkpoint || self.gate.scene != SceneRule::Warn {
            UnchangedPolicy::Judge
        } else if self.tell_all {
            UnchangedPolicy::List
        } else {
            UnchangedPolicy::Skip
        }
    }
}

/// Results for the selected timelines.
#[derive(Default)]
pub struct Report {
    /// Timelines that changed, or were named, in the order of their names.
    pub timelines: Vec<TimelineResult>,
    /// Number of timelines that are unchanged since their latest snapshot and are not listed in
    /// `timelines`.
    pub untouched: usize,
    /// Findings about files and folders that could not be read. `findings` also contains them.
    pub unreadable: Vec<Finding>,
    /// State of ST-Auto-Recap in each new snapshot.
    pub states: HashMap<SnapshotId, CheckpointState>,
    /// Problems of the files, and warnings of the readiness check.
    pub findings: Vec<Finding>,
    /// Number of timelines whose file no longer exists. Always 0 if timelines were named.
    pub deleted: usize,
    /// Latest snapshots of the timelines that this command found to be deleted.
    pub newly_deleted: Vec<Snapshot>,
    /// Whether there was no store before.
    pub created_store: bool,
    /// Number of objects that the store did not have.
    pub objects: usize,
    /// Size of these objects in the store.
    pub bytes: u64,
}

impl Report {
    /// Counts the timelines that could not be stored and the folders that could not be listed.
    pub fn failed(&self) -> usize {
        let failed =
            |outcome: &&TimelineResult| matches!(outcome.result, SnapshotResult::Failed(_));
        self.timelines.iter().filter(failed).count() + self.unreadable.len()
    }

    /// Returns whether a chat was stored without its lorebook because the lorebook could not be
    /// read.
    pub fn is_without_lorebook(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::LorebookUnread)
    }

    /// Counts the timelines that a rule refused.
    pub fn refused(&self) -> usize {
        self.timelines
            .iter()
            .filter(|outcome| matches!(outcome.result, SnapshotResult::Refused(_)))
            .count()
    }
}
