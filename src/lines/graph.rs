//! The map of the stories.

use serde::Serialize;

use crate::archive::SnapshotId;
use crate::store::Time;
use crate::verbs::timelines::graph::{Dot, Lane, Report, SceneEnd};

/// The map; its lanes follow.
#[derive(Serialize)]
pub struct GraphLine {
    lanes: usize,
    columns: usize,
    messages: u64,
    stories: usize,
}

impl From<&Report> for GraphLine {
    fn from(report: &Report) -> Self {
        let (lanes, columns) = (report.total, report.columns);
        Self { lanes, columns, messages: report.messages, stories: report.stories }
    }
}

/// A timeline on the map.
#[derive(Serialize)]
pub struct LaneLine<'a> {
    timeline: &'a str,
    number: usize,
    story: usize,
    column: usize,
    /// The lane that it leaves, and how many messages it shares with that.
    leaves: Option<usize>,
    fork_at: Option<u64>,
    messages: u64,
    state: &'static str,
    /// Its own snapshots, oldest first, if they were asked for.
    dots: Option<Vec<DotFields<'a>>>,
    /// The ends of its own scenes, if they were asked for.
    scenes: Option<Vec<SceneFields<'a>>>,
}

#[derive(Serialize)]
struct SceneFields<'a> {
    index: usize,
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct DotFields<'a> {
    snapshot: SnapshotId,
    /// The last message.
    index: Option<u64>,
    time: Time,
    kind: &'a str,
    tags: &'a [String],
}

impl<'a> From<&'a Lane> for LaneLine<'a> {
    fn from(lane: &'a Lane) -> Self {
        let dot = |dot: &'a Dot| DotFields {
            snapshot: dot.snapshot.id,
            index: dot.snapshot.messages.checked_sub(1),
            time: dot.snapshot.time,
            kind: dot.snapshot.kind.as_str(),
            tags: &dot.tags,
        };
        let scene =
            |scene: &'a SceneEnd| SceneFields { index: scene.message, name: scene.name.as_deref() };
        Self {
            timeline: lane.timeline.as_str(),
            number: lane.number,
            story: lane.story,
            column: lane.column,
            leaves: lane.leaves.map(|(lane, _)| lane),
            fork_at: lane.leaves.map(|(_, at)| at),
            messages: lane.messages,
            state: lane.state,
            dots: lane.dots.as_ref().map(|dots| dots.iter().map(dot).collect()),
            scenes: lane.scenes.as_ref().map(|scenes| scenes.iter().map(scene).collect()),
        }
    }
}
