//! Which snapshot of its own timeline an earlier state goes on from.

use super::Identities;
use crate::archive::message_identity::Identity;
use crate::archive::{Snapshot, Tree};
use crate::history::{Result, name_lookup};
use crate::store::{Store, unless_lost};

/// What a checkpoint follows that has these lines: of `head` and those before it the longest that is a beginning of it, else the newest that shares the most.
pub(crate) fn closest(store: &Store, head: &Snapshot, lines: &[&[u8]]) -> Result<Option<Snapshot>> {
    let messages = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count() as u64;
    let mut line = vec![head.clone()];
    while let Some(parent) = line.last().and_then(|last| last.parents.first())
        && let Some(parent) = name_lookup::find(store, *parent)?
    {
        line.push(parent);
    }
    // A commit tells how long its chat was. So the first that is a beginning is the longest, and most trees are never opened.
    let (mut may_begin, mut longer): (Vec<_>, Vec<_>) =
        line.into_iter().partition(|snapshot| snapshot.messages <= messages);
    may_begin.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.messages));
    let wanted: Vec<_> = lines.iter().map(|line| Identity::of(line)).collect();
    let mut compare =
        Comparison { store, wanted: &wanted, identities: Identities::new(store.reader()) };
    let mut shared = Vec::new();
    for snapshot in may_begin {
        match compare.shared(&snapshot)? {
            Some((_, true)) => return Ok(Some(snapshot)),
            Some((count, false)) => shared.push((count, snapshot)),
            None => {}
        }
    }
    for snapshot in longer.drain(..) {
        if let Some((count, _)) = compare.shared(&snapshot)? {
            shared.push((count, snapshot));
        }
    }
    let best =
        shared.into_iter().rev().max_by_key(|(count, snapshot)| (*count, snapshot.time.seconds));
    Ok(best.map(|(_, snapshot)| snapshot))
}

struct Comparison<'a> {
    store: &'a Store,
    wanted: &'a [Identity],
    identities: Identities,
}

impl Comparison<'_> {
    /// How many first messages a snapshot shares with what is wanted, and whether it has no others. `None` if it is lost.
    fn shared(&mut self, snapshot: &Snapshot) -> Result<Option<(usize, bool)>> {
        let Some(tree) = unless_lost(Tree::open(&self.store.reader(), snapshot.tree))? else {
            return Ok(None);
        };
        let mut shared = 0;
        for (id, wanted) in tree.messages().iter().zip(self.wanted) {
            if self.identities.find(*id)? != Some(*wanted) {
                break;
            }
            shared += 1;
        }
        Ok(Some((shared, shared == tree.messages().len())))
    }
}
