//! Measures the size of the store, the share of each timeline, and the largest messages.

use std::collections::HashMap;

use serde::Serialize;

use crate::archive::{self, Reach, Tree, read_manifest};
use crate::auto_recap::ON_MESSAGE;
use crate::engine::{Include, Workspace, left_out};
use crate::history::History;
use crate::history::owner_of_snapshot::Owners;
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{Message, Raw, TimelineName};
use crate::store::{Loss, ObjectId, Store, unless_lost};
use crate::verbs::Result;

/// Sizes in bytes.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// Number of snapshots.
    pub snapshots: usize,
    /// Number of tags.
    pub tags: usize,
    /// Total size of the files of all snapshots, as if each snapshot were a full copy.
    pub bytes_as_copies: u64,
    /// Size of the store's packs and objects.
    pub bytes_stored: u64,
    /// Sorted by `bytes`, largest first.
    pub timelines: Vec<TimelineShare>,
    /// Size of the objects that several timelines use.
    pub bytes_shared: u64,
    /// The largest messages of the latest snapshots, largest first.
    pub largest: Vec<LargeMessage>,
    /// Number of snapshots and refs that cannot be read.
    pub damaged: usize,
    /// Finding about files of the library that are not stored.
    pub left_out: Option<Finding>,
}

/// The snapshots and the storage space of one timeline.
#[derive(Serialize)]
pub struct TimelineShare {
    /// Current name of the timeline.
    #[serde(rename = "timeline")]
    pub name: TimelineName,
    /// Number of the timeline's own snapshots, without the snapshots of its parent.
    pub snapshots: usize,
    /// Size of the objects that only this timeline uses.
    pub bytes: u64,
    /// Total size of the files of these snapshots, as if each snapshot were a full copy.
    pub bytes_as_copies: u64,
}

/// A large message, and the sizes of its parts in bytes.
#[derive(Serialize)]
pub struct LargeMessage {
    /// Chat that contains the message.
    pub timeline: TimelineName,
    /// Number of the message.
    pub index: usize,
    /// Name of the character or persona who said it.
    pub name: String,
    /// Size of the complete message.
    pub bytes: u64,
    /// Size of the displayed text.
    pub text: u64,
    /// Size of the alternative texts.
    pub swipes: u64,
    /// Size of the copies of the lorebook that ST-Auto-Recap stores in the message.
    pub lorebook: u64,
    /// Size of everything else.
    pub rest: u64,
}

const LARGEST: usize = 5;

/// Measures the store.
pub fn stats(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = History::load(&store)?;
    let owners = history.owners();
    let left_out = match workspace.library() {
        Ok(library) => left_out::finding(&library, &Include::of(Some(&store)), Some(&store))?,
        Err(_) => None,
    };
    let mut report = Report {
        left_out,
        snapshots: history.len(),
        tags: history.tags().count(),
        bytes_stored: store.bytes_on_disk(),
        damaged: history.broken.len(),
        ..Report::default()
    };
    let mut shares: HashMap<&TimelineName, TimelineShare> = HashMap::new();
    let share = |name: &TimelineName| TimelineShare {
        name: name.clone(),
        snapshots: 0,
        bytes_as_copies: 0,
        bytes: 0,
    };
    monitor.begin("counting", Some(history.len() as u64));
    let reader = store.reader();
    let mut snapshots: Vec<_> = history.iter().collect();
    snapshots.sort_by_key(|snapshot| snapshot.id);
    for snapshot in &snapshots {
        let name = owners.of_snapshot(snapshot);
        let entry = shares.entry(name).or_insert_with(|| share(name));
        entry.snapshots += 1;
        match read_manifest(&reader, snapshot.tree) {
            Ok(manifest) => {
                let lengths = manifest.files.iter().map(|file| file.bytes);
                let bytes = lengths.fold(0, u64::saturating_add);
                entry.bytes_as_copies = entry.bytes_as_copies.saturating_add(bytes);
                report.bytes_as_copies = report.bytes_as_copies.saturating_add(bytes);
            }
            // A snapshot with an unknown format does not count as damaged.
            Err(archive::Error::NewerFormat { .. }) => {}
            Err(error) if !error.is_loss() => return Err(error.into()),
            Err(_) => report.damaged += 1,
        }
        monitor.advance(1);
    }
    let stored = shared_bytes(&store, &history, owners, monitor)?;
    for (name, bytes) in stored {
        match name.and_then(|name| shares.get_mut(&name)) {
            Some(share) => share.bytes += bytes,
            None => report.bytes_shared += bytes,
        }
    }
    report.timelines = shares.into_values().collect();
    report.timelines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    report.largest = largest(&store, &history)?;
    Ok(report)
}

/// Returns, for each timeline, the size of the objects that only this timeline uses. The key `None`
/// has the size of the objects that several timelines use.
fn shared_bytes(
    store: &Store,
    history: &History,
    owners: Owners<'_>,
    monitor: &mut dyn Monitor,
) -> Result<HashMap<Option<TimelineName>, u64>> {
    let sizes = store.packed_sizes()?;
    let mut by_timeline: HashMap<&TimelineName, Vec<ObjectId>> = HashMap::new();
    for snapshot in history.iter() {
        by_timeline.entry(owners.of_snapshot(snapshot)).or_default().push(snapshot.tree);
    }
    let names: Vec<_> = by_timeline.keys().copied().collect();
    // Maps an object to the index in `names` of the only timeline that uses the object, or to
    // `several` if more than one timeline uses it.
    let several = names.len();
    let mut whose: HashMap<ObjectId, usize> = HashMap::new();
    monitor.begin("measuring timelines", Some(names.len() as u64));
    for (n, name) in names.iter().enumerate() {
        let mut reach = Reach::new(store.reader());
        for tree in by_timeline.get(name).into_iter().flatten() {
            // Lost objects are ignored here: `stats` counts damaged snapshots.
            unless_lost(reach.visit(*tree, &mut |id, _| {
                whose.entry(id).and_modify(|owner| *owner = several).or_insert(n);
            }))?;
        }
        monitor.advance(1);
    }
    let mut bytes: HashMap<Option<TimelineName>, u64> = HashMap::new();
    for (id, owner) in whose {
        let name = names.get(owner).map(|name| (*name).clone());
        *bytes.entry(name).or_default() += sizes.get(&id).copied().unwrap_or(0);
    }
    Ok(bytes)
}

fn largest(store: &Store, history: &History) -> Result<Vec<LargeMessage>> {
    let reader = store.reader();
    let mut found: Vec<LargeMessage> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut line = Vec::new();
    for (name, head) in history.heads() {
        let Some(tree) = unless_lost(Tree::open(&reader, head.tree))? else { continue };
        for (index, id) in tree.messages().iter().enumerate() {
            if !seen.insert(*id) {
                continue;
            }
            let read = unless_lost(reader.read_unchecked(*id, &mut line))?;
            let Some(bytes) = read else { continue };
            let smallest = found.last().map_or(0, |last| last.bytes);
            if found.len() < LARGEST || bytes.len() as u64 > smallest {
                found.push(made_of(name, index, bytes));
                found.sort_by_key(|large| std::cmp::Reverse(large.bytes));
                found.truncate(LARGEST);
            }
        }
    }
    Ok(found)
}

fn made_of(timeline: &TimelineName, index: usize, line: &[u8]) -> LargeMessage {
    let length = |value: Option<Raw<'_>>| value.map_or(0, |value| value.as_bytes().len() as u64);
    let message = Message::read(line);
    let raw = message.map(|message| message.raw());
    let extra = message.and_then(|message| message.extra());
    let lorebook =
        ON_MESSAGE.iter().map(|key| length(extra.and_then(|extra| extra.get(key)))).sum();
    let text = length(raw.and_then(|raw| raw.get("mes")));
    let swipes = length(raw.and_then(|raw| raw.get("swipes")))
        + length(raw.and_then(|raw| raw.get("swipe_info")));
    let bytes = line.len() as u64;
    LargeMessage {
        timeline: timeline.clone(),
        index,
        name: message.and_then(|message| message.name()).unwrap_or_default(),
        bytes,
        text,
        swipes,
        lorebook,
        rest: bytes.saturating_sub(text + swipes + lorebook),
    }
}
