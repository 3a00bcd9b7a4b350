//! The timelines as a tree of forks, by messages and not by snapshots.
//!
//! A snapshot says which other one it forked from. Which timeline that was is chance when the fork point lies before the other's own
//! fork point: both have these messages from a third. Here a timeline hangs below the one in which the messages it shares first
//! stood.

use std::collections::{HashMap, HashSet};

use super::Timeline;
use crate::st::TimelineName;

/// One line of the tree.
pub struct Branch<'t> {
    pub timeline: &'t Timeline,
    /// The one it hangs below, and how many messages it shares with that; none at a root.
    pub below: Option<(&'t Timeline, u64)>,
    /// For each level above and for its own: whether it is the last there. Empty at a root.
    pub is_last: Vec<bool>,
}

/// All timelines, each after the one that it hangs below; forks of one timeline in the order of their fork points.
pub fn tree(timelines: &[Timeline]) -> Vec<Branch<'_>> {
    let by_name: HashMap<&TimelineName, usize> =
        timelines.iter().enumerate().map(|(at, timeline)| (&timeline.name, at)).collect();
    let fork = |at: usize| {
        let timeline: &Timeline = &timelines[at];
        let parent = *by_name.get(timeline.parent.as_ref()?)?;
        Some((parent, timeline.fork_at?))
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

/// Which timeline `at` hangs below, and how many messages it shares with that.
///
/// Every step goes up to a timeline that shares at least as much with its own parent. Names alone might lead in a circle (a branch that could
/// not be read and was begun anew); whoever is in one stands at a root.
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
