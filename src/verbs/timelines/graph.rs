//! Draws a map of timelines. Each timeline is a lane from its fork point to its last message, with
//! its snapshots as dots.
//!
//! A fork is drawn to the right of its parent, in the first column without another lane at the same
//! messages. Thirty short forks therefore need only a few columns. A *family* is a timeline without
//! a parent, together with its forks and their forks. Each family begins to the right of the
//! previous family.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::tree::tree;
use super::{Timeline, timelines};
use crate::archive::message_lives::MessageLists;
use crate::archive::{Kind, Snapshot, SnapshotId, read_manifest};
use crate::auto_recap::{self, Scene};
use crate::engine::Workspace;
use crate::history::{History, name_lookup};
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{ObjectId, Store, Time, unless_lost};
use crate::verbs::{Error, Result};

/// The lanes to draw.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Draw only the family of this timeline.
    pub timeline: Option<String>,
    /// Range of lanes to return. `None` returns all lanes.
    #[serde(skip)]
    pub lanes: Option<Range<usize>>,
    /// Omit the snapshots.
    pub lanes_only: bool,
    /// Include the ends of scenes. Every message of the chats that use ST-Auto-Recap is read.
    pub scenes: bool,
}

/// The requested lanes, and the size of the complete map.
#[derive(Serialize)]
pub struct Report {
    /// Each parent comes before its forks.
    #[serde(skip)]
    pub lanes: Vec<Lane>,
    /// Number of lanes on the complete map.
    #[serde(rename = "lanes")]
    pub total: usize,
    /// Number of columns that the lanes need side by side.
    pub columns: usize,
    /// Highest number of messages of a lane.
    pub messages: u64,
    /// Number of families.
    pub stories: usize,
}

/// A timeline on the map.
#[derive(Serialize)]
pub struct Lane {
    /// Current name of the timeline.
    pub timeline: TimelineName,
    /// Position of the lane in the list of all lanes.
    pub number: usize,
    /// Number of the family, counted from 0.
    pub story: usize,
    /// Column in which the lane is drawn, counted from 0.
    pub column: usize,
    /// Position of the parent's lane in the list of all lanes.
    pub parent: Option<usize>,
    /// Number of messages shared with the parent.
    pub fork_at: Option<u64>,
    /// Number of messages, with the shared ones.
    pub messages: u64,
    /// Word for the state, as `stvc timelines` prints it.
    pub state: &'static str,
    /// The timeline's own snapshots, oldest first. `None` if snapshots were not requested.
    pub dots: Option<Vec<Dot>>,
    /// Ends of scenes, in order. `None` if they were not requested.
    pub scenes: Option<Vec<SceneEnd>>,
}

/// A message that ends a scene.
#[derive(Serialize)]
pub struct SceneEnd {
    /// Number of the message.
    #[serde(rename = "index")]
    pub message: usize,
    /// Name that the user gave to the scene.
    pub name: Option<String>,
}

/// A snapshot on a lane.
#[derive(Serialize)]
pub struct Dot {
    /// Commit id.
    pub snapshot: SnapshotId,
    /// Number of the last message in the snapshot. `None` if the snapshot has no messages.
    pub index: Option<u64>,
    /// Time at which the files had this state.
    pub time: Time,
    /// The reason for which the snapshot was created.
    pub kind: Kind,
    /// Names of the tags at the snapshot.
    pub tags: Vec<String>,
}

/// Draws the map.
pub fn graph(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let report = timelines(workspace, monitor)?;
    let chats: Vec<_> =
        report.timelines.into_iter().filter(|timeline| timeline.name.is_chat()).collect();
    let mut lanes = lanes(&chats);
    if let Some(text) = &options.timeline {
        let names = chats.iter().map(|timeline| timeline.name.clone()).collect();
        let library = workspace.library().ok();
        let store = workspace.find_store()?;
        let history = || workspace.history_if_any(store.as_ref());
        let name = name_lookup::timeline(text, library.as_ref(), &names, history)?;
        let story = lanes.iter().find(|lane| lane.timeline == name).map(|lane| lane.story);
        let story = story
            .ok_or_else(|| Error::from(crate::history::Error::no_such_timeline(text.clone())))?;
        lanes.retain(|lane| lane.story == story);
        let left = lanes.iter().map(|lane| lane.column).min().unwrap_or(0);
        lanes.iter_mut().for_each(|lane| lane.column -= left);
    }
    let mut drawn = Report {
        total: lanes.len(),
        columns: lanes.iter().map(|lane| lane.column + 1).max().unwrap_or(0),
        messages: lanes.iter().map(|lane| lane.messages).max().unwrap_or(0),
        stories: lanes.iter().map(|lane| lane.story).collect::<HashSet<_>>().len(),
        lanes: Vec::new(),
    };
    let wanted = options.lanes.clone().unwrap_or(0..usize::MAX);
    drawn.lanes = lanes.into_iter().take(wanted.end).skip(wanted.start).collect();
    let Some(store) = workspace.find_store()? else { return Ok(drawn) };
    let history = workspace.history(&store)?;
    if !options.lanes_only {
        dots(&history, &mut drawn.lanes);
    }
    if options.scenes {
        scenes(&store, &history, &mut drawn.lanes)?;
    }
    Ok(drawn)
}

fn lanes(chats: &[Timeline]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut numbers: HashMap<&TimelineName, usize> = HashMap::new();
    // For each column of the current family: the ranges of messages that lanes occupy.
    let mut columns: Vec<Vec<(u64, u64)>> = Vec::new();
    let (mut story, mut left) = (0, 0);
    for branch in tree(chats) {
        let timeline = branch.timeline;
        let parent =
            branch.below.and_then(|(other, shared)| Some((*numbers.get(&other.name)?, shared)));
        if parent.is_none() && !lanes.is_empty() {
            story += 1;
            left += columns.len();
            columns.clear();
        }
        let begin = parent.map_or(0, |(_, shared)| shared);
        let end = timeline.messages.max(begin);
        let right_of = parent.map_or(0, |(lane, _)| lanes[lane].column - left + 1);
        let is_free =
            |column: &Vec<(u64, u64)>| column.iter().all(|(from, to)| end < *from || *to < begin);
        let free = (right_of..columns.len()).find(|at| is_free(&columns[*at]));
        let column = free.unwrap_or(columns.len().max(right_of));
        columns.resize_with(columns.len().max(column + 1), Vec::new);
        columns[column].push((begin, end));
        numbers.insert(&timeline.name, lanes.len());
        lanes.push(Lane {
            timeline: timeline.name.clone(),
            number: lanes.len(),
            story,
            column: column + left,
            parent: parent.map(|(lane, _)| lane),
            fork_at: parent.map(|(_, shared)| shared),
            messages: timeline.messages,
            state: timeline.latest.change.as_str(),
            dots: None,
            scenes: None,
        });
    }
    lanes
}

fn dots(history: &History, lanes: &mut [Lane]) {
    let tags = history.tags_by_snapshot();
    for lane in lanes {
        let drawn = lane.dots.insert(Vec::new());
        let Some(head) = history.head(&lane.timeline) else { continue };
        let (own, _) = history.own(head);
        let dot = |snapshot: &&Snapshot| Dot {
            snapshot: snapshot.id,
            index: snapshot.messages.checked_sub(1),
            time: snapshot.time,
            kind: snapshot.kind.clone(),
            tags: tags.get(&snapshot.id).cloned().unwrap_or_default(),
        };
        // Sorted by ancestry instead of time, because two snapshots may have been created in the
        // same second.
        drawn.extend(own.iter().rev().map(dot));
    }
}

/// Finds the ends of scenes. A message that several forks share is read only once.
fn scenes(store: &Store, history: &History, lanes: &mut [Lane]) -> Result<()> {
    let reader = store.reader();
    let mut lists = MessageLists::new(store.reader());
    let mut known: HashMap<ObjectId, Option<Option<String>>> = HashMap::new();
    for lane in lanes {
        let scenes = lane.scenes.insert(Vec::new());
        let Some(head) = history.head(&lane.timeline) else { continue };
        let manifest = unless_lost(read_manifest(&reader, head.tree))?;
        // The chat does not use ST-Auto-Recap.
        if manifest.is_none_or(|manifest| manifest.checkpoint.is_none()) {
            continue;
        }
        let list = unless_lost(lists.of(head.tree))?.unwrap_or_default();
        let shared = lane.fork_at.map_or(0, |shared| shared as usize);
        for (message, id) in list.into_iter().enumerate().skip(shared) {
            let end = match known.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let line = unless_lost(reader.blob(id))?.unwrap_or_default();
                    let scene = auto_recap::scene(&line).filter(Scene::is_break);
                    new.insert(scene.map(|scene| scene.name()))
                }
            };
            if let Some(name) = end {
                scenes.push(SceneEnd { message, name: name.clone() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::timelines::{Fork, of_store};

    fn chat(name: &str, messages: u64, fork: Option<(&str, u64)>) -> Timeline {
        let named = |name: &str| TimelineName::parse(&format!("chats/M/{name}")).unwrap();
        let history = History::default();
        Timeline {
            messages,
            fork: Fork {
                parent: fork.map(|(parent, _)| named(parent)),
                fork_at: fork.map(|(_, at)| at),
            },
            ..of_store(&named(name), &history, history.owners())
        }
    }

    fn columns(chats: &[Timeline]) -> Vec<(String, usize, usize)> {
        let lanes = lanes(chats);
        lanes.iter().map(|it| (it.timeline.chat().to_owned(), it.story, it.column)).collect()
    }

    #[test]
    fn forks_are_right_of_their_parent_and_reuse_free_columns() {
        let chats = [
            chat("a", 100, None),
            chat("early", 20, Some(("a", 10))),
            chat("late", 90, Some(("a", 50))),
            chat("of early", 30, Some(("early", 15))),
            chat("b", 5, None),
        ];
        let named = |list: &[(&str, usize, usize)]| -> Vec<(String, usize, usize)> {
            list.iter().map(|(name, story, column)| ((*name).to_owned(), *story, *column)).collect()
        };
        assert_eq!(
            columns(&chats),
            named(&[
                ("a", 0, 0),
                ("early", 0, 1),
                ("of early", 0, 2),
                // The column of `early` is free after the last message of `early`.
                ("late", 0, 1),
                ("b", 1, 3),
            ])
        );
    }

    /// Checks that two lanes in one column never overlap, and that each fork is to the right of its
    /// parent.
    #[test]
    fn lanes_in_one_column_do_not_overlap() {
        let mut chats = vec![chat("c0", 300, None)];
        for n in 1..200_u64 {
            let parent = (n * 7919) % n;
            let at = (n * 31) % chats[parent as usize].messages.max(1);
            let length = at + 1 + (n * 17) % 40;
            chats.push(chat(&format!("c{n}"), length, Some((&format!("c{parent}"), at))));
        }
        let lanes = lanes(&chats);
        for (n, lane) in lanes.iter().enumerate() {
            let range = |lane: &Lane| (lane.fork_at.unwrap_or(0), lane.messages);
            if let Some(parent) = lane.parent {
                assert!(lanes[parent].column < lane.column);
            }
            for other in lanes[..n].iter().filter(|other| other.column == lane.column) {
                let ((a, b), (c, d)) = (range(lane), range(other));
                assert!(b < c || d < a, "{} lies on {}", lane.timeline, other.timeline);
            }
        }
    }
}
