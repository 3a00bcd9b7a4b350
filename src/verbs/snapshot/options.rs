//! What is asked of `snapshot`, and what it tells.

use std::collections::HashMap;

use super::template::{self, TEMPLATE};
use crate::archive::{Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::engine::gate::{GatePolicy, SceneRule};
use crate::engine::take_snapshots::{Taken, TakenTimeline};
use crate::rules::{Code, Finding};
use crate::st::Category;
use crate::verbs::{Error, Result};

/// How to take snapshots, and of what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub subject: Subject,
    /// What is asked of the readiness check.
    pub gate: GatePolicy,
    /// Mark them as taken without being asked, in the middle of that work.
    pub autosave: bool,
    /// The user's words for them.
    pub message: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Tell of every timeline, also of those that nobody touched.
    pub tell_all: bool,
}

/// What snapshots are taken of.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Every timeline that changed; if categories are given, only those.
    Changed { only: Vec<Category> },
    /// Several timelines, by name.
    Named(Vec<String>),
    /// One timeline, by name, with a tag if one is given.
    One { timeline: OneTimeline, tag: Option<String> },
    /// The messages of one chat up to number `at`, under a tag. Its branch does not move.
    Checkpoint { timeline: OneTimeline, at: usize, name: CheckpointName },
    /// The end of each scene of these chats, or of all if none is given, each as a checkpoint.
    Scenes { timelines: Vec<String>, template: String },
}

/// A timeline that is named alone.
#[derive(Clone, Debug)]
pub struct OneTimeline {
    /// Its name; `None`: it is the only one of the library.
    pub name: Option<String>,
    /// The git object that its file must hold; otherwise somebody still has to save it.
    pub holds: Option<String>,
}

/// How a checkpoint at a message is called.
#[derive(Clone, Debug)]
pub enum CheckpointName {
    /// After its chat and message.
    Default,
    Tag(String),
    /// By filling in a template; see [`TEMPLATE`].
    Template(String),
}

/// What a front end was asked to take, value by value.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub timelines: Vec<String>,
    pub only: Vec<Category>,
    pub at: Option<usize>,
    pub scenes: bool,
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

    /// Returns the names that were given.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::Changed { .. } => &[],
            Self::Named(timelines) | Self::Scenes { timelines, .. } => timelines,
            Self::One { timeline, .. } | Self::Checkpoint { timeline, .. } => {
                timeline.name.as_slice()
            }
        }
    }

    /// Returns the message of a checkpoint.
    pub(super) fn at(&self) -> Option<usize> {
        if let Self::Checkpoint { at, .. } = self { Some(*at) } else { None }
    }

    /// Returns the option that needs exactly one timeline.
    pub(super) fn needs_one(&self) -> Option<&'static str> {
        match self {
            Self::Checkpoint { .. } => Some("--at"),
            Self::One { .. } => Some("--tag"),
            Self::Changed { .. } | Self::Named(_) | Self::Scenes { .. } => None,
        }
    }

    /// Returns the git object that the file of the timeline must hold.
    pub(super) fn holds(&self) -> Option<&str> {
        match self {
            Self::One { timeline, .. } | Self::Checkpoint { timeline, .. } => {
                timeline.holds.as_deref()
            }
            _ => None,
        }
    }

    /// Returns the tag that was asked for.
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
    /// Returns whether the user means a checkpoint: then the rules are asked although nothing changed.
    pub(super) fn is_on_purpose(&self) -> bool {
        let is_checkpoint = self.subject.at().is_some() || self.subject.tag().is_some();
        is_checkpoint || self.gate.scene != SceneRule::Warn
    }
}

/// What was taken.
#[derive(Default)]
pub struct Report {
    /// The timelines that were looked at, in order.
    pub timelines: Vec<TakenTimeline>,
    /// How many more there are, which nobody touched since their newest snapshot.
    pub untouched: usize,
    /// What of the library could not even be listed; it is among the findings, too.
    pub unreadable: Vec<Finding>,
    /// What the new snapshots say of the state of ST-Auto-Recap.
    pub states: HashMap<SnapshotId, CheckpointState>,
    /// What was noticed about them.
    pub findings: Vec<Finding>,
    /// How many timelines have snapshots but no file any more; counted when no chat was named.
    pub deleted: usize,
    /// The last states of those that were found deleted only now.
    pub newly_deleted: Vec<Snapshot>,
    /// Whether the store was made for it.
    pub created_store: bool,
    /// How many objects were written.
    pub objects: usize,
    /// How many bytes they take.
    pub bytes: u64,
}

impl Report {
    /// How many timelines, and folders of them, could not be taken.
    pub fn failed(&self) -> usize {
        let failed = |outcome: &&TakenTimeline| matches!(outcome.result, Taken::Failed(_));
        self.timelines.iter().filter(failed).count() + self.unreadable.len()
    }

    /// Whether a chat was taken without its lorebook, which could not be read.
    pub fn is_without_lorebook(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::LorebookUnread)
    }

    /// How many a rule refused.
    pub fn refused(&self) -> usize {
        self.timelines.iter().filter(|outcome| matches!(outcome.result, Taken::Refused(_))).count()
    }
}
