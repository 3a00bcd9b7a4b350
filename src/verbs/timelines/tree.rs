//! Arranges timelines as a tree of forks, by messages and not by snapshots.
//!
//! A snapshot records the parent of its timeline. If the fork point is before the parent's own fork
//! point, the parent has the shared messages from a third timeline. The tree shows each timeline
//! below the timeline in which the shared messages first appeared.

use std::collections::{HashMap, HashSet};

use super::Timeline;
use crate::st::TimelineName;

/// A line of the tree.
pub struct Branch<'t> {
    /// The timeline in this line.
    pub timeline: &'t Timeline,
    /// The timeline above this one in the tree, and the number of shared messages. `None` for a
    /// root.
    pub below: Option<(&'t Timeline, u64)>,
    /// For each ancestor except the root, and for the timeline itself: whether it is the last fork
    /// of the timeline above it. Empty for a root.
    pub is_last: Vec<bool>,
}

/// Returns all timelines. Each parent comes before its forks, and the forks of one timeline are
/// sorted by fork point.
pub fn tree(timelines: &[Timeline]) -> Vec<Branch<'_>> {
    let by_name: HashMap<&TimelineName, usize> =
        timelines.iter().enumerate().map(|(at, timeline)| (&timeline.name, at)).collect();
    let fork = |at: usize| {
        let timeline: &Timeline = &timelines[at];
        let parent = *by_name.get(timeline.fork.parent.as_ref()?)?;
        Some((parent, timeline.fork.fork_at?))
    };
    let mut forks = vec![Vec::new(); timelines.len()];
    let mut roots = Vec::new();
    for at in 0..timelines.len() {
        match holder(at, fork) {
            Some((parent, shared)) => forks[parent].push((shared, at)),
            None => roots.push(at),
        }
    }
    forks.iter_mut().for_each(|forks| forks.sort_unstable());
    let mut branches = Vec::with_capacity(timelines.len());
    let mut open: Vec<_> = roots.into_iter().rev().map(|at| (at, None, Vec::new())).collect();
    while let Some((at, below, is_last)) = open.pop() {
        let timeline = &timelines[at];
        for (n, (shared, fork)) in forks[at].iter().enumerate().rev() {
            let mut levels = is_last.clone();
            levels.push(n + 1 == forks[at].len());
            open.push((*fork, Some((timeline, *shared)), levels));
        }
        branches.push(Branch { timeline, below, is_last });
    }
    branches
}

/// Returns the timeline above `at` in the tree, and the number of shared messages.
///
/// As long as the fork point is before the parent's own fork point, the search continues with the
/// parent's parent. The recorded parents may form a cycle if a branch was unreadable and created
/// again. In that case, returns `None`, and the timeline is a root.
fn holder(at: usize, fork: impl Fn(usize) -> Option<(usize, u64)>) -> Option<(usize, u64)> {
    let (mut parent, shared) = fork(at)?;
    let mut seen = HashSet::from([at]);
    let mut above = parent;
    while seen.insert(above) {
        match fork(above) {
            Some((next, at_most)) => {
                if shared <= at_most && above == parent {
                    parent = next;
                }
                above = next;
            }
            None => return Some((parent, shared)),
        }
    }
    None
}
