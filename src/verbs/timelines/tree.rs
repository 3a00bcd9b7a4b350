//! The timelines as a tree of forks, by messages and not by snapshots.
//!
//! A snapshot records which other it was forked from. If the fork point precedes the other's own
//! fork point, that one is chance: both have these messages from a third. Here a timeline hangs
//! below the one in which the shared messages first appeared.

use std::collections::{HashMap, HashSet};

use super::Timeline;
use crate::st::TimelineName;

/// A line of the tree.
pub struct Branch<'t> {
    pub timeline: &'t Timeline,
    /// The timeline above and the number of shared messages; `None` at a root.
    pub below: Option<(&'t Timeline, u64)>,
    /// For each level above and its own: whether it is the last there. Empty at a root.
    pub is_last: Vec<bool>,
}

/// Returns all timelines, parents first; forks of one timeline in the order of their fork points.
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

/// Returns the timeline above `at`, and the number of shared messages.
///
/// Every step goes up to a timeline that shares at least as much with its own parent. Names alone
/// might form a circle, if a branch was unreadable and begun again; such timelines are roots.
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
