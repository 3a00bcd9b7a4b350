//! Finds the parent snapshot, in the same timeline, for a checkpoint at an earlier message.

use super::Identities;
use crate::archive::message_identity::Identity;
use crate::archive::{Snapshot, Tree};
use crate::history::{Result, name_lookup};
use crate::parallel::in_parts;
use crate::store::{Kind, ObjectId, Store, hash, unless_lost};

/// Returns the parent of a checkpoint that consists of `lines`: the latest snapshot whose messages
/// are a prefix of `lines`, or else the latest snapshot that shares the most messages with `lines`.
pub(crate) fn closest(store: &Store, head: &Snapshot, lines: &[&[u8]]) -> Result<Option<Snapshot>> {
    let messages = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count() as u64;
    let mut compare = Comparison::new(store, lines)?;
    let mut others = Vec::new();
    let reader = store.reader();
    let mut next = Some(head.clone());
    while let Some(snapshot) = next {
        next = match snapshot.parents.first() {
            Some(parent) => name_lookup::find_with(&reader, *parent)?,
            None => None,
        };
        // A commit records the number of messages, so most trees are never opened.
        if snapshot.messages > messages {
            others.push((None, snapshot));
            continue;
        }
        match compare.shared(&snapshot)? {
            Some((_, true)) => return Ok(Some(snapshot)),
            Some((count, false)) => others.push((Some(count), snapshot)),
            None => {}
        }
    }
    let mut best: Option<(usize, Snapshot)> = None;
    for (count, snapshot) in others {
        let count = match count {
            Some(count) => count,
            None => match compare.shared(&snapshot)? {
                Some((count, _)) => count,
                None => continue,
            },
        };
        if best.as_ref().is_none_or(|(most, _)| count > *most) {
            best = Some((count, snapshot));
        }
        // No other snapshot shares more messages, and all remaining snapshots are older.
        if count == lines.len() {
            break;
        }
    }
    Ok(best.map(|(_, snapshot)| snapshot))
}

/// Compares lines with stored messages. Compares object ids first, because most lines are equal
/// byte for byte.
struct Comparison<'a> {
    store: &'a Store,
    lines: &'a [&'a [u8]],
    ids: Vec<ObjectId>,
    said: Vec<Option<Identity>>,
    identities: Identities,
}

impl<'a> Comparison<'a> {
    fn new(store: &'a Store, lines: &'a [&'a [u8]]) -> Result<Self> {
        let ids = |part: &[&[u8]]| -> crate::store::Result<Vec<ObjectId>> {
            part.iter().map(|line| hash(Kind::Blob, line)).collect()
        };
        let ids: crate::store::Result<Vec<_>> = in_parts(lines, 256, ids).into_iter().collect();
        let (ids, said) = (ids?.concat(), vec![None; lines.len()]);
        Ok(Self { store, lines, ids, said, identities: Identities::new(store.reader()) })
    }

    /// Returns how many first messages a snapshot shares with the lines, and whether the snapshot
    /// has no other messages. `None` if the snapshot is lost.
    fn shared(&mut self, snapshot: &Snapshot) -> Result<Option<(usize, bool)>> {
        let Some(tree) = unless_lost(Tree::open(&self.store.reader(), snapshot.tree))? else {
            return Ok(None);
        };
        let mut shared = 0;
        for (n, id) in tree.messages().iter().enumerate().take(self.lines.len()) {
            if *id != self.ids[n] && !self.says_the_same(n, *id)? {
                break;
            }
            shared += 1;
        }
        Ok(Some((shared, shared == tree.messages().len())))
    }

    fn says_the_same(&mut self, line: usize, stored: ObjectId) -> Result<bool> {
        let Some(stored) = self.identities.find(stored)? else { return Ok(false) };
        let said = self.said[line].get_or_insert_with(|| Identity::of(self.lines[line]));
        Ok(stored == *said)
    }
}
