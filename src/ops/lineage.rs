//! Finding where a chat that was never seen comes from: the stored snapshot, or the other new chat, with the longest common
//! beginning; or the timeline that it is under a new name.
//!
//! Messages are compared by what they say (`archive::lineage`). What is known of stored snapshots lies in `stvc/lineage.json`: for each
//! the hash of its beginning at every twentieth message, so that a thousand timelines are held against a new chat without
//! reading their messages. It is a cache: it is brought up to date when it is needed, and can be deleted at any time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Result;
use super::weave::Own;
use crate::archive::lineage::{Chain, Identity, Link};
use crate::archive::{History, Snapshot, SnapshotId, State, Tree};
use crate::st::{self, Captured, Chat, TimelineName};
use crate::store::{ObjectId, Reader, Store};

/// A link is kept for every so many messages.
const SAMPLE: usize = 20;
const VERSION: u32 = 1;

/// A chat that has no branch yet.
pub(super) struct Newcomer {
    pub name: TimelineName,
    /// What its messages say.
    pub chain: Chain,
    /// The chat it says it was forked from, as typed.
    pub main_chat: Option<String>,
    /// When each message was sent, where that can be read.
    sent: Vec<Option<i64>>,
}

impl Newcomer {
    pub(super) fn of(captured: &Captured) -> Self {
        let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
        Self::new(
            &captured.name,
            &chat,
            captured.group.as_ref().map(|group| group.bytes.as_slice()),
        )
    }

    pub(super) fn of_state(state: &State<'_>) -> Self {
        Self::new(state.timeline, &state.chat, state.group.map(|group| group.bytes))
    }

    pub(super) fn new(name: &TimelineName, chat: &Chat<'_>, group: Option<&[u8]>) -> Self {
        let lines = without_blank_end(&chat.messages);
        let sent = |line: &&[u8]| {
            st::Message::read(line).and_then(|message| st::send_time(message.send_date()?))
        };
        let chat = Chat { header: chat.header, messages: Vec::new() };
        let main_chat = st::metadata(&chat, name, group).and_then(st::main_chat);
        // When messages were sent settles the order of forks, and matters for nothing else.
        let sent = if main_chat.is_some() { lines.iter().map(sent).collect() } else { Vec::new() };
        Self { name: name.clone(), chain: Chain::of(lines), main_chat, sent }
    }

    /// The timeline that `main_chat` names.
    fn parent_name(&self) -> Option<TimelineName> {
        let chat = st::chat_name(self.main_chat.as_deref()?)?;
        match self.name.folder() {
            Some(folder) => TimelineName::solo(folder, &chat).ok(),
            None => TimelineName::group(&chat).ok(),
        }
    }
}

/// A trailing newline makes a last line that is no message.
pub(super) fn without_blank_end<'a, 'b>(lines: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    let end =
        lines.iter().rposition(|line| !line.trim_ascii().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// In which order new chats are taken: whoever may be another's origin comes first.
///
/// First those that do not say they were forked, then those whose names lead to one of these, then those whose names are dead: these may
/// come from any, but no other comes from them. Among equals the one whose own part was written earlier: a fork is made of what
/// was there. And none before the one it names.
pub(super) fn order(newcomers: &[Newcomer]) -> Vec<usize> {
    let by_name: HashMap<_, _> =
        newcomers.iter().enumerate().map(|(n, newcomer)| (&newcomer.name, n)).collect();
    let parent: Vec<Option<usize>> =
        newcomers.iter().map(|newcomer| by_name.get(&newcomer.parent_name()?).copied()).collect();
    let roots: Vec<_> = newcomers.iter().filter(|newcomer| newcomer.main_chat.is_none()).collect();
    let own_part = |newcomer: &Newcomer| {
        let shared = roots.iter().map(|root| newcomer.chain.shared_with(&root.chain)).max();
        newcomer.sent[shared.unwrap_or(0).min(newcomer.sent.len())..].to_vec()
    };
    // Where the names lead: to itself, to one that names nobody, or nowhere.
    let class = |n: usize| {
        let mut line = vec![n];
        while let Some(next) =
            line.last().and_then(|last| parent[*last]).filter(|next| !line.contains(next))
        {
            line.push(next);
        }
        let top = line.last().is_none_or(|top| newcomers[*top].main_chat.is_none());
        if newcomers[n].main_chat.is_none() {
            0
        } else if top {
            1
        } else {
            2
        }
    };
    let key = |n: usize| {
        let own = if class(n) == 0 { Vec::new() } else { own_part(&newcomers[n]) };
        (class(n), own, newcomers[n].name.clone())
    };
    let mut wanted: Vec<_> = (0..newcomers.len()).collect();
    wanted.sort_by_cached_key(|n| key(*n));
    let mut order = Vec::with_capacity(newcomers.len());
    let mut placed = vec![false; newcomers.len()];
    for n in wanted {
        // The line of those it comes from, as far as they are not placed; names can go round in a circle after renames.
        let mut line = vec![n];
        while let Some(next) = line.last().and_then(|last| parent[*last])
            && !placed[next]
            && !line.contains(&next)
        {
            line.push(next);
        }
        for n in line.into_iter().rev() {
            if !std::mem::replace(&mut placed[n], true) {
                order.push(n);
            }
        }
    }
    order
}

/// Where a new chat comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// From nowhere: it is the first of its kind.
    None,
    /// It shares its first messages with this snapshot.
    Fork { id: SnapshotId, tree: ObjectId, shared: usize },
    /// It is this timeline under another name.
    Renamed { from: Box<Snapshot> },
}

/// All that a new chat can come from.
pub(super) struct Lineage {
    reader: Reader,
    index: Index,
    history: History,
    /// Timelines whose file is gone and that no renamed chat has claimed yet.
    vanished: BTreeMap<TimelineName, SnapshotId>,
    /// Folders of characters that are still there.
    folders: HashSet<String>,
    /// Chats taken by this very command; their objects are not readable yet.
    taken: Vec<Taken>,
    identities: HashMap<ObjectId, Identity>,
    path: PathBuf,
}

struct Taken {
    id: SnapshotId,
    tree: ObjectId,
    timeline: TimelineName,
    main_chat: Option<String>,
    chain: Chain,
    seconds: i64,
}

#[derive(Default, Serialize, Deserialize)]
struct Index {
    version: u32,
    snapshots: BTreeMap<String, Record>,
}

/// What is known of one stored snapshot.
#[derive(Clone, Serialize, Deserialize)]
struct Record {
    messages: usize,
    /// Its beginning at every `SAMPLE`th message, and at last all of it.
    samples: Vec<String>,
}

impl Record {
    fn link(&self, sample: usize) -> Option<Link> {
        Link::from_hex(self.samples.get(sample)?)
    }
}

/// How well a candidate fits; the greatest wins.
type Rank = (usize, u8, i64, usize);

impl Lineage {
    /// Load what is known and bring it up to date. `here` are the timelines whose files are there.
    pub(super) fn load(store: &Store, here: &[TimelineName]) -> Result<Self> {
        let path = store.private_dir().join("lineage.json");
        let index =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Index>(&text).ok());
        let index = index.filter(|index| index.version == VERSION).unwrap_or_default();
        let history = History::load(store)?;
        let present: HashSet<_> = here.iter().collect();
        let vanished = history.heads().filter(|(name, _)| !present.contains(name));
        let vanished = vanished.map(|(name, head)| (name.clone(), head.id)).collect();
        let mut lineage = Self {
            reader: store.reader(),
            index,
            history,
            vanished,
            folders: here.iter().filter_map(|name| name.folder()).map(str::to_owned).collect(),
            taken: Vec::new(),
            identities: HashMap::new(),
            path,
        };
        lineage.update();
        Ok(lineage)
    }

    /// Where this chat comes from.
    pub(super) fn origin(&mut self, newcomer: &Newcomer) -> Origin {
        if let Some(from) = self.renamed(newcomer) {
            self.vanished.remove(&from.timeline);
            return Origin::Renamed { from: Box::new(from) };
        }
        self.fork(newcomer)
    }

    /// The snapshot that this chat was forked from.
    pub(super) fn fork(&mut self, newcomer: &Newcomer) -> Origin {
        let parent = newcomer.parent_name();
        let tier = |timeline: &TimelineName, former: bool, main_chat: Option<&str>| {
            if Some(timeline) == parent.as_ref() {
                3
            } else if former {
                2
            } else {
                // One that names the same parent is a sibling.
                u8::from(main_chat.is_none() || main_chat != newcomer.main_chat.as_deref())
            }
        };
        let mut best: Option<(Rank, SnapshotId, ObjectId)> = None;
        let mut offer = |rank: Rank, id, tree| {
            if rank.0 > 0 && best.as_ref().is_none_or(|(other, ..)| rank > *other) {
                best = Some((rank, id, tree));
            }
        };
        for (order, taken) in self.taken.iter().enumerate() {
            let shared = newcomer.chain.shared_with(&taken.chain);
            let tier = tier(&taken.timeline, false, taken.main_chat.as_deref());
            // Of chats taken at one moment, the one that could be an origin first is the older.
            offer((shared, tier, taken.seconds, usize::MAX - order), taken.id, taken.tree);
        }
        for snapshot in self.closest_stored(&newcomer.chain) {
            let shared = self.shared(&newcomer.chain, &snapshot);
            let former = parent.as_ref().is_some_and(|parent| self.was_called(&snapshot, parent));
            let tier = tier(&snapshot.timeline, former, snapshot.main_chat.as_deref());
            offer((shared, tier, snapshot.time.seconds, 0), snapshot.id, snapshot.tree);
        }
        // A greeting alone makes no fork, unless the chat says that it is one: new chats of one character begin alike.
        let least = if newcomer.main_chat.is_some() { 1 } else { 2 };
        match best {
            Some(((shared, ..), id, tree)) if shared >= least => Origin::Fork { id, tree, shared },
            _ => Origin::None,
        }
    }

    /// All that is stored.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// The snapshots of a timeline, oldest first, and what it was forked from.
    pub(super) fn own(&self, timeline: &TimelineName) -> Option<Own> {
        let (mut own, origin) = self.history.own(self.history.head(timeline)?);
        own.reverse();
        Some((own.into_iter().cloned().collect(), origin.cloned()))
    }

    /// How many first messages `chain` shares with the states of each of these timelines at most. Only those that come close are
    /// compared exactly; the others count as what their samples tell.
    pub(super) fn shared_with_timelines(
        &mut self,
        chain: &Chain,
        timelines: &[TimelineName],
    ) -> Vec<usize> {
        let wanted: HashMap<_, _> =
            timelines.iter().enumerate().map(|(n, name)| (name, n)).collect();
        let mut best: Vec<(usize, Vec<Snapshot>)> = vec![(0, Vec::new()); timelines.len()];
        for (id, record) in &self.index.snapshots {
            let Some(snapshot) = ObjectId::from_hex(id.as_bytes())
                .ok()
                .and_then(|id| self.history.get(SnapshotId(id)))
            else {
                continue;
            };
            let Some(n) = wanted.get(&snapshot.timeline) else { continue };
            let samples = samples_shared(chain, record);
            let (most, closest) = &mut best[*n];
            if samples > *most {
                closest.clear();
                *most = samples;
            }
            if samples == *most {
                closest.push(snapshot.clone());
            }
        }
        let most = best.iter().map(|(samples, _)| *samples).max().unwrap_or(0);
        best.into_iter()
            .map(|(samples, snapshots)| match samples == most {
                true => {
                    snapshots.iter().map(|snapshot| self.shared(chain, snapshot)).max().unwrap_or(0)
                }
                false => samples * SAMPLE,
            })
            .collect()
    }

    /// Let later ones come from this one, too.
    pub(super) fn add(&mut self, newcomer: Newcomer, snapshot: &Snapshot) {
        self.index.snapshots.insert(snapshot.id.to_string(), record(&newcomer.chain));
        self.taken.push(Taken {
            id: snapshot.id,
            tree: snapshot.tree,
            timeline: newcomer.name,
            main_chat: newcomer.main_chat,
            chain: newcomer.chain,
            seconds: snapshot.time.seconds,
        });
    }

    /// Write back what was learnt. That it fails matters to nobody.
    pub(super) fn save(mut self) {
        self.index.version = VERSION;
        let temp = self.path.with_extension("tmp");
        let written =
            serde_json::to_vec(&self.index).ok().and_then(|text| fs::write(&temp, text).ok());
        if written.is_some() {
            let _ = fs::rename(&temp, &self.path);
        }
    }

    /// A timeline whose file is gone and whose newest state is the beginning of this chat, in the same folder or in one that is
    /// gone as well. A fork says whose it is; a renamed chat says what it said before.
    fn renamed(&mut self, newcomer: &Newcomer) -> Option<Snapshot> {
        let mut found: Option<Snapshot> = None;
        for id in self.vanished.values().copied().collect::<Vec<_>>() {
            let Some(head) = self.history.get(id).cloned() else { continue };
            let moved = head.timeline.folder().is_some_and(|folder| !self.folders.contains(folder));
            let nearby = head.timeline.folder() == newcomer.name.folder() || moved;
            let length =
                self.index.snapshots.get(&id.to_string()).map_or(0, |record| record.messages);
            if head.timeline.is_group() != newcomer.name.is_group()
                || !nearby
                || head.main_chat != newcomer.main_chat
                || length == 0
                || length > newcomer.chain.len()
            {
                continue;
            }
            // New chats of one character may begin with the same greeting in the same minute.
            let alone = length == 1 && newcomer.chain.len() > 1;
            let longer = found.as_ref().is_none_or(|other| other.messages < head.messages);
            if !alone && longer && self.shared(&newcomer.chain, &head) == length {
                found = Some(head);
            }
        }
        found
    }

    fn was_called(&self, snapshot: &Snapshot, name: &TimelineName) -> bool {
        let former = |snapshot: &Snapshot| snapshot.renamed_from.as_ref() == Some(name);
        self.history.ancestry(snapshot).take_while(|other| other.fork_at.is_none()).any(former)
    }

    /// The stored snapshots that share the most sampled beginnings with `chain`.
    fn closest_stored(&self, chain: &Chain) -> Vec<Snapshot> {
        let mut most = 0;
        let mut closest = Vec::new();
        for (id, record) in &self.index.snapshots {
            let samples = samples_shared(chain, record);
            if samples >= most {
                let id = ObjectId::from_hex(id.as_bytes()).ok().map(SnapshotId);
                if let Some(snapshot) = id.and_then(|id| self.history.get(id)) {
                    if samples > most {
                        closest.clear();
                        most = samples;
                    }
                    closest.push(snapshot.clone());
                }
            }
        }
        closest
    }

    /// How many first messages `chain` shares with a stored snapshot, exactly.
    pub(super) fn shared(&mut self, chain: &Chain, snapshot: &Snapshot) -> usize {
        let Some(record) = self.index.snapshots.get(&snapshot.id.to_string()).cloned() else {
            return 0;
        };
        let samples = samples_shared(chain, &record);
        let Ok(tree) = Tree::open(&self.reader, snapshot.tree) else { return 0 };
        let mut length = samples * SAMPLE;
        let Some(mut link) = chain.at(length) else { return 0 };
        for message in tree.messages().iter().take(record.messages).skip(length) {
            let Some(identity) = self.identity(*message) else { break };
            link = link.then(identity);
            if chain.at(length + 1) != Some(link) {
                break;
            }
            length += 1;
        }
        length
    }

    fn identity(&mut self, message: ObjectId) -> Option<Identity> {
        if let Some(identity) = self.identities.get(&message) {
            return Some(*identity);
        }
        let identity = Identity::of(&self.reader.blob(message).ok()?);
        self.identities.insert(message, identity);
        Some(identity)
    }

    /// Index what was stored since the last time. A snapshot that only grew into the next one of its timeline is left out: the next
    /// one begins the same and is newer.
    fn update(&mut self) {
        let reachable: HashSet<String> =
            self.history.iter().map(|snapshot| snapshot.id.to_string()).collect();
        self.index.snapshots.retain(|id, _| reachable.contains(id));
        let mut tips: Vec<Snapshot> = self.history.heads().map(|(_, head)| head.clone()).collect();
        tips.extend(self.history.tags().filter_map(|(_, id)| self.history.get(id).cloned()));
        for tip in tips {
            let mut unknown = Vec::new();
            let mut base = None;
            for snapshot in self.history.ancestry(&tip) {
                if self.index.snapshots.contains_key(&snapshot.id.to_string()) {
                    base = Some(snapshot.clone());
                    break;
                }
                unknown.push(snapshot.clone());
                if snapshot.fork_at.is_some() {
                    break;
                }
            }
            for snapshot in unknown.into_iter().rev() {
                self.index_one(&snapshot, base.as_ref());
                base = Some(snapshot);
            }
        }
    }

    fn index_one(&mut self, snapshot: &Snapshot, base: Option<&Snapshot>) {
        let Ok(tree) = Tree::open(&self.reader, snapshot.tree) else { return };
        let known = base.and_then(|base| {
            let record = self.index.snapshots.get(&base.id.to_string())?.clone();
            Some((base, record, Tree::open(&self.reader, base.tree).ok()?))
        });
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
            reader.blob(*id).is_ok_and(|line| line.trim_ascii().is_empty())
        };
        let mut lines = tree.messages();
        while let Some((last, rest)) = lines.split_last()
            && blank_end(&self.reader, last)
        {
            lines = rest;
        }
        // The base is dominated if this one begins with all of it.
        let base_messages = known.as_ref().map(|(_, record, _)| record.messages);
        let base_end =
            known.as_ref().and_then(|(_, record, _)| Link::from_hex(record.samples.last()?));
        let mut grew = base_messages == Some(messages) && base_end.is_none_or(|end| end == link);
        for message in &lines[messages.min(lines.len())..] {
            let Some(identity) = self.identity(*message) else { return };
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
            self.index.snapshots.remove(&base.id.to_string());
        }
        self.index.snapshots.insert(snapshot.id.to_string(), Record { messages, samples });
    }
}

/// How many sampled beginnings a chain and a stored snapshot share.
fn samples_shared(chain: &Chain, record: &Record) -> usize {
    let common = (record.messages / SAMPLE).min(chain.len() / SAMPLE);
    // Equal beginnings stay equal however short they are cut, so halving finds the last one.
    partition(common, |sample| {
        record.link(sample - 1).is_some() && record.link(sample - 1) == chain.at(sample * SAMPLE)
    })
}

fn record(chain: &Chain) -> Record {
    let whole = chain.len() / SAMPLE;
    let mut lengths: Vec<_> = (1..=whole).map(|n| n * SAMPLE).collect();
    if !chain.len().is_multiple_of(SAMPLE) {
        lengths.push(chain.len());
    }
    let samples =
        lengths.into_iter().filter_map(|length| chain.at(length)).map(Link::to_hex).collect();
    Record { messages: chain.len(), samples }
}

/// The greatest `n` up to `most` for which `holds(n)`; it holds for all smaller ones, too.
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
