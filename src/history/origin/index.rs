//! Index of the beginnings of stored chats: `stvc/lineage.json`. The index is a cache and is
//! updated when needed.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::identities::Identities;
use crate::archive::message_identity::{Chain, Link};
use crate::archive::{Snapshot, SnapshotId, Tree};
use crate::history::{History, Result};
use crate::store::{ObjectId, Reader, unless_lost};
use crate::{durable, regular};

/// Distance between two samples, in messages.
pub(crate) const SAMPLE: usize = 20;
const VERSION: u32 = 1;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Index {
    version: u32,
    snapshots: BTreeMap<String, Record>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub messages: usize,
    /// Chain hashes after every `SAMPLE` messages, and after the last message.
    samples: Vec<String>,
}

impl Record {
    pub(crate) fn of(chain: &Chain) -> Self {
        let whole = chain.len() / SAMPLE;
        let mut lengths: Vec<_> = (1..=whole).map(|n| n * SAMPLE).collect();
        if !chain.len().is_multiple_of(SAMPLE) {
            lengths.push(chain.len());
        }
        let samples =
            lengths.into_iter().filter_map(|length| chain.at(length)).map(Link::to_hex).collect();
        Record { messages: chain.len(), samples }
    }

    fn link(&self, sample: usize) -> Option<Link> {
        Link::from_hex(self.samples.get(sample)?)
    }
}

impl Index {
    /// Loads the index; returns an empty index if the file is missing or damaged.
    pub(crate) fn load(path: &Path) -> Self {
        let index =
            regular::read(path).ok().and_then(|text| serde_json::from_slice::<Index>(&text).ok());
        index.filter(|index| index.version == VERSION).unwrap_or_default()
    }

    /// Saves the index. Failures are ignored, because the index can be rebuilt.
    pub(crate) fn save(mut self, path: &Path) {
        self.version = VERSION;
        if let Ok(text) = serde_json::to_vec(&self) {
            durable::replace_cache(path, &text);
        }
    }

    pub(crate) fn get(&self, id: SnapshotId) -> Option<&Record> {
        self.snapshots.get(&id.to_string())
    }

    pub(crate) fn insert(&mut self, id: SnapshotId, record: Record) {
        self.snapshots.insert(id.to_string(), record);
    }

    pub(crate) fn iter<'i>(
        &'i self,
        history: &'i History,
    ) -> impl Iterator<Item = (&'i Snapshot, &'i Record)> {
        self.snapshots.iter().filter_map(|(id, record)| {
            let id = ObjectId::from_hex(id.as_bytes()).ok()?;
            Some((history.get(SnapshotId(id))?, record))
        })
    }

    /// Adds new snapshots. Removes a snapshot that a later snapshot of the same timeline continues,
    /// because the later snapshot has the same beginning.
    pub(crate) fn update(&mut self, history: &History, identities: &mut Identities) -> Result<()> {
        let reachable: HashSet<String> =
            history.iter().map(|snapshot| snapshot.id.to_string()).collect();
        self.snapshots.retain(|id, _| reachable.contains(id));
        let mut tips: Vec<Snapshot> = history.heads().map(|(_, head)| head.clone()).collect();
        tips.extend(history.tags().filter_map(|(_, id)| history.get(id).cloned()));
        tips.retain(|tip| tip.timeline.is_chat());
        for tip in tips {
            let mut unknown = Vec::new();
            let mut base = None;
            for snapshot in history.ancestry(&tip) {
                if self.snapshots.contains_key(&snapshot.id.to_string()) {
                    base = Some(snapshot.clone());
                    break;
                }
                unknown.push(snapshot.clone());
                if snapshot.fork_at.is_some() {
                    break;
                }
            }
            for snapshot in unknown.into_iter().rev() {
                self.add_stored(&snapshot, base.as_ref(), identities)?;
                base = Some(snapshot);
            }
        }
        Ok(())
    }

    fn add_stored(
        &mut self,
        snapshot: &Snapshot,
        base: Option<&Snapshot>,
        identities: &mut Identities,
    ) -> Result<()> {
        let open = |snapshot: &Snapshot| unless_lost(Tree::open(&identities.reader, snapshot.tree));
        let Some(tree) = open(snapshot)? else { return Ok(()) };
        let record = base.and_then(|base| Some((base, self.snapshots.get(&base.id.to_string())?)));
        let known = match record {
            Some((base, record)) => open(base)?.map(|tree| (base, record.clone(), tree)),
            None => None,
        };
        let mut samples = Vec::new();
        let mut link = Link::START;
        let mut messages = 0;
        if let Some((_, record, base)) = &known {
            let equal =
                base.messages().iter().zip(tree.messages()).take_while(|(a, b)| a == b).count();
            let whole = equal.min(record.messages) / SAMPLE;
            samples.extend(record.samples.iter().take(whole).cloned());
            link = whole.checked_sub(1).and_then(|last| record.link(last)).unwrap_or(Link::START);
            messages = whole * SAMPLE;
        }
        let blank_end = |reader: &Reader, id: &ObjectId| {
            let line = unless_lost(reader.blob(*id))?;
            Ok::<_, crate::store::Error>(line.is_some_and(|line| line.trim_ascii().is_empty()))
        };
        let mut lines = tree.messages();
        while let Some((last, rest)) = lines.split_last()
            && blank_end(&identities.reader, last)?
        {
            lines = rest;
        }
        // This snapshot replaces `base` in the index if it begins with all messages of `base`.
        let base_messages = known.as_ref().map(|(_, record, _)| record.messages);
        let base_end =
            known.as_ref().and_then(|(_, record, _)| Link::from_hex(record.samples.last()?));
        let mut grew = base_messages == Some(messages) && base_end.is_none_or(|end| end == link);
        for message in &lines[messages.min(lines.len())..] {
            let Some(identity) = identities.find(*message)? else { return Ok(()) };
            link = link.then(identity);
            messages += 1;
            if messages % SAMPLE == 0 {
                samples.push(link.to_hex());
            }
            grew |= base_messages == Some(messages) && base_end == Some(link);
        }
        if messages % SAMPLE != 0 {
            samples.push(link.to_hex());
        }
        if let Some((base, ..)) = known
            && grew
            && base.timeline == snapshot.timeline
        {
            self.snapshots.remove(&base.id.to_string());
        }
        self.snapshots.insert(snapshot.id.to_string(), Record { messages, samples });
        Ok(())
    }
}

pub(crate) fn samples_shared(chain: &Chain, record: &Record) -> usize {
    let common = (record.messages / SAMPLE).min(chain.len() / SAMPLE);
    // Chats that share a sample share all earlier samples, so a binary search finds the last shared
    // one.
    partition(common, |sample| {
        record.link(sample - 1).is_some() && record.link(sample - 1) == chain.at(sample * SAMPLE)
    })
}

/// Returns the greatest `n` up to `most` for which `holds(n)` is true. `holds` must be monotonic.
fn partition(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
