//! A map of timelines: a lane for each, from its fork point to its last message, with its
//! snapshots.
//!
//! A fork stands right of its parent, in the first column that is free along its messages, so that
//! thirty short forks take a few columns. Each family begins right of the one before.

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
use crate::history::History;
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{ObjectId, Store, Time, unless_lost};
use crate::verbs::{Error, Result};

/// Lanes to draw.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Only the family of this timeline.
    pub timeline: Option<String>,
    #[serde(skip)]
    pub lanes: Option<Range<usize>>,
    /// Without the snapshots.
    pub lanes_only: bool,
    /// With the ends of scenes, for which every message of a chat with ST-Auto-Recap is read.
    pub scenes: bool,
}

/// Drawn lanes, and the size of the whole map.
#[derive(Serialize)]
pub struct Report {
    /// Parents first.
    #[serde(skip)]
    pub lanes: Vec<Lane>,
    #[serde(rename = "lanes")]
    pub total: usize,
    pub columns: usize,
    pub messages: u64,
    pub stories: usize,
}

/// A timeline on the map.
#[derive(Serialize)]
pub struct Lane {
    pub timeline: TimelineName,
    pub number: usize,
    pub story: usize,
    pub column: usize,
    pub leaves: Option<usize>,
    pub fork_at: Option<u64>,
    pub messages: u64,
    pub state: &'static str,
    /// Its own snapshots, oldest first, if asked for.
    pub dots: Option<Vec<Dot>>,
    pub scenes: Option<Vec<SceneEnd>>,
}

/// The end of a scene.
#[derive(Serialize)]
pub struct SceneEnd {
    #[serde(rename = "index")]
    pub message: usize,
    pub name: Option<String>,
}

/// A snapshot on a lane.
#[derive(Serialize)]
pub struct Dot {
    pub snapshot: SnapshotId,
    pub index: Option<u64>,
    pub time: Time,
    pub kind: Kind,
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
        let name = crate::history::name_lookup::timeline(text, library.as_ref(), &names)?;
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
    // Occupied ranges of messages by column, in the current family.
    let mut columns: Vec<Vec<(u64, u64)>> = Vec::new();
    let (mut story, mut left) = (0, 0);
    for branch in tree(chats) {
        let timeline = branch.timeline;
        let leaves =
            branch.below.and_then(|(other, shared)| Some((*numbers.get(&other.name)?, shared)));
        if leaves.is_none() && !lanes.is_empty() {
            story += 1;
            left += columns.len();
            columns.clear();
        }
        let begin = leaves.map_or(0, |(_, shared)| shared);
        let end = timeline.messages.max(begin);
        let right_of = leaves.map_or(0, |(lane, _)| lanes[lane].column - left + 1);
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
            leaves: leaves.map(|(lane, _)| lane),
            fork_at: leaves.map(|(_, shared)| shared),
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
        // By descent, not by the clock: two may be of one second.
        drawn.extend(own.iter().rev().map(dot));
    }
}

/// Forks share messages, and each is read once.
fn scenes(store: &Store, history: &History, lanes: &mut [Lane]) -> Result<()> {
    let reader = store.reader();
    let mut lists = MessageLists::new(store.reader());
    let mut known: HashMap<ObjectId, Option<Option<String>>> = HashMap::new();
    for lane in lanes {
        let scenes = lane.scenes.insert(Vec::new());
        let Some(head) = history.head(&lane.timeline) else { continue };
        let manifest = unless_lost(read_manifest(&reader, head.tree))?;
        // The extension is not in use there.
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
    use crate::history::owner_of_snapshot::Owners;
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
            ..of_store(&named(name), &history, &Owners::of(&history))
        }
    }

    fn columns(chats: &[Timeline]) -> Vec<(String, usize, usize)> {
        let lanes = lanes(chats);
        lanes.iter().map(|it| (it.timeline.chat().to_owned(), it.story, it.column)).collect()
    }

    #[test]
    fn forks_stand_right_of_what_they_leave_and_share_columns_where_they_can() {
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
                // Below the end of the early one its column is free.
                ("late", 0, 1),
                ("b", 1, 3),
            ])
        );
    }

    /// Two lanes in one column never have a message in common, and each fork is right of its parent.
    #[test]
    fn no_two_lanes_lie_on_each_other() {
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
            if let Some(parent) = lane.leaves {
                assert!(lanes[parent].column < lane.column);
            }
            for other in lanes[..n].iter().filter(|other| other.column == lane.column) {
                let ((a, b), (c, d)) = (range(lane), range(other));
                assert!(b < c || d < a, "{} lies on {}", lane.timeline, other.timeline);
            }
        }
    }
}
