//! Sets the parent of a timeline.

use std::collections::HashMap;

use crate::archive::SnapshotId;
use crate::engine::{Workspace, family};
use crate::history::rewrite_history::shared_messages;
use crate::history::{self, History, name_lookup};
use crate::st::TimelineName;
use crate::verbs::{Error, Result};

/// A timeline and its new parent.
pub struct Parent {
    /// The timeline whose parent was changed.
    pub timeline: TimelineName,
    /// The parent, and the number of messages that the timeline shares with it. `None` if the
    /// timeline is no longer a fork.
    pub parent: Option<(TimelineName, u64)>,
    /// Number of snapshots that got a new id.
    pub rewritten: usize,
}

/// Makes a timeline a fork of `parent`. If `parent` is `None`, the timeline is no longer a fork.
pub fn set_parent(workspace: &Workspace, timeline: &str, parent: Option<&str>) -> Result<Parent> {
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    let library = workspace.library().ok();
    let history = History::load(&store)?;
    let all = history.heads().map(|(name, _)| name.clone()).collect();
    let find =
        |name: &str| name_lookup::timeline(name, library.as_ref(), &all, || Ok(Some(&history)));
    let head_of = |name: &TimelineName| {
        let missing = || history::Error::no_such_timeline(name.to_string());
        history.head(name).ok_or_else(missing)
    };
    let timeline = find(timeline)?;
    let parent = parent.map(find).transpose()?;
    let (own, origin) = history.own(head_of(&timeline)?);
    let Some(first) = own.last() else {
        return Ok(Parent { timeline, parent: None, rewritten: 0 });
    };
    let mut beginnings = HashMap::new();
    let mut shares = None;
    if let Some(parent) = &parent {
        let unrelated =
            || Error::NoParent { parent: parent.to_string(), child: timeline.to_string() };
        let head = head_of(parent)?;
        let closest = if *parent == timeline {
            None
        } else {
            family::closest(&store, &history, head, first)?
        };
        let (from, shared) = closest.ok_or_else(unrelated)?;
        // If the new parent is a fork of this timeline, the new parent first becomes a fork of this
        // timeline's former parent. Otherwise the two timelines would be each other's parent.
        let is_own = |id: &SnapshotId| own.iter().any(|snapshot| snapshot.id == *id);
        let turn =
            history.ancestry(&from).find(|snapshot| snapshot.parents.first().is_some_and(is_own));
        if let Some(turn) = turn.filter(|turn| !is_own(&turn.id)) {
            let before = match origin {
                Some(origin) => {
                    let shared = shared_messages(&store, origin, turn)?;
                    Some((origin.id, shared))
                }
                None => None,
            };
            beginnings.insert(turn.id, before);
        }
        beginnings.insert(first.id, Some((from.id, shared)));
        shares = Some(shared);
    } else {
        beginnings.insert(first.id, None);
    }
    let rewritten = family::begin(workspace, &store, &held, &history, &beginnings)?;
    Ok(Parent { rewritten, parent: parent.zip(shares), timeline })
}
