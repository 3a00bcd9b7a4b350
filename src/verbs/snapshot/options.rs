use std::collections::HashMap;

use serde::Deserialize;

use super::template::{self, TEMPLATE};
use crate::archive::{Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::engine::gate::{GatePolicy, SceneRule};
use crate::engine::take_snapshots::{Taken, TakenTimeline, Unchanged};
use crate::rules::{Code, Finding};
use crate::st::Category;
use crate::verbs::{Error, Result};

/// Timelines to store, and how.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub gate: GatePolicy,
    /// Mark them as created without a request.
    #[serde(skip)]
    pub autosave: bool,
    pub message: Option<String>,
    /// A plan is made on a copy of the store.
    pub dry_run: bool,
    /// Report every timeline, also unchanged ones.
    #[serde(skip)]
    pub tell_all: bool,
}

/// Timelines to create snapshots of.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Asked")]
pub enum Subject {
    /// Every timeline that changed; of these categories, if there are any.
    Changed {
        only: Vec<Category>,
    },
    Named(Vec<String>),
    One {
        timeline: OneTimeline,
        tag: Option<String>,
    },
    /// The messages of one chat up to number `at`, under a tag. Its branch does not move.
    Checkpoint {
        timeline: OneTimeline,
        at: usize,
        name: CheckpointName,
    },
    /// The end of each scene of these chats, or of all if there are none, each as a checkpoint.
    Scenes {
        timelines: Vec<String>,
        template: String,
    },
}

/// A timeline that is named alone.
#[derive(Clone, Debug)]
pub struct OneTimeline {
    /// `None`: the only one of the library.
    pub name: Option<String>,
    /// The git object id that its file must have; otherwise it is not saved yet.
    pub holds: Option<String>,
}

/// The name of a checkpoint at a message.
#[derive(Clone, Debug)]
pub enum CheckpointName {
    /// After its chat and message.
    Default,
    Tag(String),
    /// See [`TEMPLATE`].
    Template(String),
}

/// The values of a request, before they are checked against each other.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    pub timelines: Vec<String>,
    #[serde(skip)]
    pub only: Vec<Category>,
    pub at: Option<usize>,
    pub scenes: bool,
    #[serde(skip)]
    pub template: Option<String>,
    pub tag: Option<String>,
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

impl TryFrom<Asked> for Subject {
    type Error = Error;

    fn try_from(asked: Asked) -> Result<Self> {
        let Asked { mut timelines, only, at, scenes, template, tag, holds } = asked;
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
    /// A checkpoint is judged even if nothing changed.
    pub(super) fn unchanged(&self) -> Unchanged {
        let is_checkpoint = self.subject.at().is_some() || self.subject.tag().is_some();
        if is_checkpoint || self.gate.scene != SceneRule::Warn {
            Unchanged::Judge
        } else if self.tell_all {
            Unchanged::List
        } else {
            Unchanged::Skip
        }
    }
}

/// Created snapshots.
#[derive(Default)]
pub struct Report {
    pub timelines: Vec<TakenTimeline>,
    /// The number of other timelines, unchanged since their latest snapshot.
    pub untouched: usize,
    /// Folders that could not be listed; also among the findings.
    pub unreadable: Vec<Finding>,
    /// The state of ST-Auto-Recap in new snapshots.
    pub states: HashMap<SnapshotId, CheckpointState>,
    pub findings: Vec<Finding>,
    /// The number of timelines without a file; counted when no chat was named.
    pub deleted: usize,
    /// The last states of those that were found deleted only now.
    pub newly_deleted: Vec<Snapshot>,
    pub created_store: bool,
    pub objects: usize,
    pub bytes: u64,
}

impl Report {
    /// Counts the timelines, and folders of them, that could not be stored.
    pub fn failed(&self) -> usize {
        let failed = |outcome: &&TakenTimeline| matches!(outcome.result, Taken::Failed(_));
        self.timelines.iter().filter(failed).count() + self.unreadable.len()
    }

    /// Returns whether a chat was stored without its lorebook, which could not be read.
    pub fn is_without_lorebook(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::LorebookUnread)
    }

    /// Counts the timelines that a rule refused.
    pub fn refused(&self) -> usize {
        self.timelines.iter().filter(|outcome| matches!(outcome.result, Taken::Refused(_))).count()
    }
}
