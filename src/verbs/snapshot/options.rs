//! What is asked of `snapshot`, and what it tells.

use std::collections::HashMap;

use crate::archive::{CheckpointState, Snapshot, SnapshotId};
use crate::engine::gate::GatePolicy;
use crate::engine::take_snapshots::{Taken, TakenTimeline};
use crate::engine::{self, Result};
use crate::history::at_message::message_not_found;
use crate::history::origin::without_blank_end;
use crate::rules::{Code, Finding};
use crate::st::{Category, TimelineFiles};

/// What to take.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name; none: every one that changed.
    pub timelines: Vec<String>,
    /// Cut after this message.
    pub at: Option<usize>,
    /// Only where the one chat's file is the git object of this id: else somebody still has to save it.
    pub holds: Option<String>,
    /// Checkpoints at the end of every scene instead.
    pub scenes: bool,
    /// What these are called; see [`TEMPLATE`](super::TEMPLATE).
    pub template: Option<String>,
    /// What is asked of the readiness check.
    pub gate: GatePolicy,
    /// Mark it as taken without being asked, in the middle of that work.
    pub autosave: bool,
    /// The user's words for it.
    pub message: Option<String>,
    /// A tag for it.
    pub tag: Option<String>,
    /// Only files of these kinds, if there are any.
    pub only: Vec<Category>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Tell of every timeline, also of those that nobody touched.
    pub tell_all: bool,
}

impl Options {
    /// Whether it is a checkpoint that the user means: then the rules are asked also where nothing changed.
    pub(super) fn is_on_purpose(&self) -> bool {
        let GatePolicy { strict, require_scene_break, .. } = self.gate;
        self.at.is_some() || self.tag.is_some() || strict || require_scene_break
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

/// The files with the chat cut after message `at`.
pub(super) fn cut(files: &TimelineFiles, at: usize) -> Result<TimelineFiles> {
    let messages = without_blank_end(&files.split().messages).len();
    if at >= messages {
        return Err(engine::Error::refused(message_not_found(&files.timeline, messages, at)));
    }
    Ok(files.cut_after(at))
}
