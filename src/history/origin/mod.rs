//! Finds the origin of a new chat: the stored snapshot, or the other new chat, with the longest
//! common beginning; or the timeline that was renamed to the new chat.
//!
//! Messages are compared by their content (`archive::message_identity`). For each stored snapshot,
//! `stvc/lineage.json` has a hash of the beginning up to every twentieth message, so that a new
//! chat can be compared with a thousand timelines without reading their messages. The file is a
//! cache: it is updated when needed, and can be deleted at any time.

mod beginning;
mod identities;
mod index;
mod new_timeline;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use super::History;
use crate::archive::message_identity::Chain;
use crate::archive::{Snapshot, SnapshotId, Tree};
use crate::durable;
use crate::history::Result;
use crate::st::{self, Scan, TimelineName};
use crate::store::{ObjectId, Store, unless_lost};
use index::{Index, Record, SAMPLE, samples_shared};

pub(crate) use beginning::closest;
pub(crate) use identities::Identities;
pub(crate) use new_timeline::{NewTimeline, named, order, without_blank_end};

/// The snapshots of a timeline, oldest first, and the snapshot of the parent from which the
/// timeline was forked.
pub(crate) type OwnSnapshots = (Vec<Snapshot>, Option<Snapshot>);

/// The new parent of a timeline's first snapshot, and the number of messages that both share;
/// `None` if the timeline gets no parent.
pub(crate) type NewParent = Option<(SnapshotId, u64)>;

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    None,
    /// The new chat shares its first `shared` messages with the snapshot `id`.
    Fork {
        id: SnapshotId,
        tree: ObjectId,
        shared: usize,
    },
}

pub(crate) struct Lineage {
    index: Index,
    history: History,
    /// Latest snapshots of the timelines whose file is missing. If a new chat is recognised as one
    /// of these timelines under a new name, that timeline is removed from this map.
    vanished: BTreeMap<TimelineName, SnapshotId>,
    /// Timelines that exist in the library or in the store.
    living: HashSet<TimelineName>,
    /// Folders of characters that exist in the library.
    folders: HashSet<String>,
    /// Chats that this command has stored. Their objects cannot be read from the store yet.
    taken: Vec<TakenChat>,
    identities: Identities,
    path: PathBuf,
}

struct TakenChat {
    newcomer: NewTimeline,
    snapshot: Snapshot,
}

/// Rank of a possible parent. Earlier fields take precedence.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Whether the new chat names this candidate as its parent and shares more than a greeting with
    /// it.
    is_named: bool,
    shared: usize,
    names: Names,
    seconds: i64,
    /// Position among the chats that this command stored. The earlier chat takes precedence.
    order: Reverse<usize>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    /// The candidate names the same parent as the new chat.
    Sibling,
    Nothing,
    /// The candidate once had the name of the parent that the new chat names.
    FormerParent,
    Parent,
}

/// The snapshots that share the largest number of samples with a chat.
#[derive(Clone, Default)]
struct ClosestSnapshots {
    samples: usize,
    snapshots: Vec<Snapshot>,
}

impl ClosestSnapshots {
    fn offer(&mut self, samples: usize, snapshot: &Snapshot) {
        if samples > self.samples {
            *self = Self { samples, snapshots: Vec::new() };
        }
        if samples == self.samples {
            self.snapshots.push(snapshot.clone());
        }
    }
}

const INDEX: &str = "lineage.json";

/// Deletes the index. It is rebuilt when needed.
pub(crate) fn forget_index(store: &Store) {
    durable::remove_own(&store.private_dir().join(INDEX));
}

impl Lineage {
    /// Loads and updates the index. A chat in an unreadable folder does not count as missing, so no
    /// new chat can be recognised as that chat after a rename.
    pub(crate) fn load(store: &Store, scan: &Scan) -> Result<Self> {
        let path = store.private_dir().join(INDEX);
        let history = History::load(store)?;
        let gone = |name: &TimelineName| name.is_chat() && !scan.may_have(name);
        let vanished = history.heads().filter(|(name, _)| gone(name));
        let vanished = vanished.map(|(name, head)| (name.clone(), head.id)).collect();
        let mut index = Index::load(&path);
        let mut identities = Identities::new(store.reader());
        index.update(&history, &mut identities)?;
        let stored = history.heads().map(|(name, _)| name.clone());
        let living = scan.chats.iter().cloned().chain(stored).collect();
        let folders =
            scan.chats.iter().filter_map(|name| name.folder()).map(str::to_owned).collect();
        Ok(Self { index, history, vanished, living, folders, taken: Vec::new(), identities, path })
    }

    /// Returns the latest snapshots of the timelines that were renamed to new chats, by the
    /// position of the new chat in `newcomers`. A timeline may have been renamed if its file is
    /// missing, or if it is one of `replaced`, whose files now contain other chats.
    pub(crate) fn renamed<'s>(
        &mut self,
        newcomers: &[&NewTimeline],
        order: &[usize],
        replaced: impl Iterator<Item = &'s Snapshot>,
    ) -> Result<HashMap<usize, Snapshot>> {
        self.vanished.extend(replaced.map(|head| (head.timeline.clone(), head.id)));
        let mut found = HashMap::new();
        for position in order {
            if let Some(from) = self.renamed_from(newcomers[*position])? {
                self.vanished.remove(&from.timeline);
                found.insert(*position, from);
            }
        }
        Ok(found)
    }

    pub(crate) fn fork(&mut self, newcomer: &NewTimeline) -> Result<Origin> {
        let parent = newcomer.parent_name();
        // A name such as `Checkpoint #3` alone does not prove a fork. The name decides only between
        // chats that share equally many messages.
        let hinted = st::chat_of_checkpoint(&newcomer.name).filter(|_| parent.is_none());
        let names = |timeline: &TimelineName, former: bool, main_chat: Option<&str>| {
            if [&parent, &hinted].iter().any(|named| named.as_ref() == Some(timeline)) {
                Names::Parent
            } else if former {
                Names::FormerParent
            } else if main_chat.is_some() && main_chat == newcomer.main_chat.as_deref() {
                Names::Sibling
            } else {
                Names::Nothing
            }
        };
        // If the new chat names an existing parent, a candidate whose own parent is missing is
        // excluded, unless the candidate is the named parent: such a candidate is more likely a
        // fork of the new chat.
        let names_living = parent.as_ref().is_some_and(|parent| self.living.contains(parent));
        let is_possible = |timeline: &TimelineName, main_chat: Option<&str>| {
            let dead = main_chat.is_some_and(|main_chat| {
                new_timeline::named(timeline, main_chat)
                    .is_none_or(|name| !self.living.contains(&name))
            });
            !(names_living && dead) || parent.as_ref() == Some(timeline)
        };
        let mut best: Option<(Rank, SnapshotId, ObjectId)> = None;
        let mut offer = |rank: Rank, id, tree| {
            if rank.shared > 0 && best.as_ref().is_none_or(|(other, ..)| rank > *other) {
                best = Some((rank, id, tree));
            }
        };
        // Chats that descend from the new chat by name cannot be its parent, unless the names form
        // a cycle, which renames can cause.
        let descendants = self.descendants_of(&newcomer.name);
        let circle = parent.as_ref().is_some_and(|parent| descendants.contains(parent));
        let descendants = if circle { HashSet::new() } else { descendants };
        // A chat that names an existing chat is a fork of the named chat, even if another chat
        // shares more messages: the other chat is then a fork of the named chat or of the new chat.
        // Both must share more than a greeting, because another chat may have the name by now.
        let is_named =
            |timeline: &TimelineName, shared| Some(timeline) == parent.as_ref() && shared > 1;
        for (order, TakenChat { newcomer: taken, snapshot }) in self.taken.iter().enumerate() {
            let main_chat = taken.main_chat.as_deref();
            if !is_possible(&taken.name, main_chat) || descendants.contains(&taken.name) {
                continue;
            }
            let shared = newcomer.chain.shared_with(&taken.chain);
            let rank = Rank {
                is_named: is_named(&taken.name, shared),
                shared,
                names: names(&taken.name, false, main_chat),
                seconds: snapshot.time.seconds,
                order: Reverse(order),
            };
            offer(rank, snapshot.id, snapshot.tree);
        }
        let could_be = |stored: &Snapshot| {
            is_possible(&stored.timeline, stored.main_chat.as_deref())
                && !descendants.contains(&stored.timeline)
                // An earlier stored checkpoint of the new chat itself is not its origin.
                && stored.timeline != newcomer.name
        };
        let mut stored = self.closest_stored(&newcomer.chain, &could_be);
        let of_parent = |stored: &Snapshot| Some(&stored.timeline) == parent.as_ref();
        stored.extend(self.closest_stored(&newcomer.chain, &of_parent));
        for snapshot in stored {
            let shared = self.shared(&newcomer.chain, &snapshot)?;
            let former = parent.as_ref().is_some_and(|parent| self.was_called(&snapshot, parent));
            let rank = Rank {
                is_named: is_named(&snapshot.timeline, shared),
                shared,
                names: names(&snapshot.timeline, former, snapshot.main_chat.as_deref()),
                seconds: snapshot.time.seconds,
                order: Reverse(usize::MAX),
            };
            offer(rank, snapshot.id, snapshot.tree);
        }
        // A shared greeting does not prove a fork unless the chat names a parent, because all new
        // chats of one character begin with the same greeting.
        let least = if newcomer.main_chat.is_some() { 1 } else { 2 };
        Ok(match best {
            Some((rank, id, tree)) if rank.shared >= least => {
                Origin::Fork { id, tree, shared: rank.shared }
            }
            _ => Origin::None,
        })
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn own(&self, timeline: &TimelineName) -> Option<OwnSnapshots> {
        let (mut own, origin) = self.history.own(self.history.head(timeline)?);
        own.reverse();
        Some((own.into_iter().cloned().collect(), origin.cloned()))
    }

    /// Returns, for each timeline, the greatest number of first messages that `chain` shares with
    /// one of its snapshots. The number is exact only for the closest timelines; for the others it
    /// is rounded down to a sample.
    pub(crate) fn shared_with_timelines(
        &mut self,
        chain: &Chain,
        timelines: &[TimelineName],
    ) -> Result<Vec<usize>> {
        let wanted: HashMap<_, _> =
            timelines.iter().enumerate().map(|(n, name)| (name, n)).collect();
        let mut best = vec![ClosestSnapshots::default(); timelines.len()];
        for (snapshot, record) in self.index.iter(&self.history) {
            if let Some(n) = wanted.get(&snapshot.timeline) {
                best[*n].offer(samples_shared(chain, record), snapshot);
            }
        }
        let most = best.iter().map(|closest| closest.samples).max().unwrap_or(0);
        let mut shared = Vec::with_capacity(best.len());
        for ClosestSnapshots { samples, snapshots } in best {
            let mut longest = if samples == most { 0 } else { samples * SAMPLE };
            for snapshot in snapshots.iter().filter(|_| samples == most) {
                longest = longest.max(self.shared(chain, snapshot)?);
            }
            shared.push(longest);
        }
        Ok(shared)
    }

    /// Adds a stored chat to the possible origins of chats that are stored later.
    pub(crate) fn add(&mut self, newcomer: NewTimeline, snapshot: &Snapshot) {
        self.index.insert(snapshot.id, Record::of(&newcomer.chain));
        self.taken.push(TakenChat { newcomer, snapshot: snapshot.clone() });
    }

    /// Finds stored forks whose parents were stored only now. A chat may have been refused while
    /// its forks were stored, so that the forks have no parent, or another fork as their parent.
    /// `came` maps the chats that were stored now to their origins. Returns the new parent for the
    /// first snapshot of each fork.
    pub(crate) fn late_parents(
        &mut self,
        came: &HashMap<TimelineName, Option<SnapshotId>>,
    ) -> Result<HashMap<SnapshotId, NewParent>> {
        let mut wanted = Vec::new();
        let owners = self.history.owners();
        for (timeline, head) in self.history.heads() {
            let (own, origin) = self.history.own(head);
            let Some(first) = own.last() else { continue };
            let main_chat = first.main_chat.as_deref();
            let Some(parent) = main_chat.and_then(|chat| named(timeline, chat)) else { continue };
            let is_known = origin.is_some_and(|origin| *owners.of_snapshot(origin) == parent);
            let Some(from) = came.get(&parent).filter(|_| !is_known) else { continue };
            if from.is_none_or(|from| !self.history.reaches(from, first.id)) {
                wanted.push((parent, (*first).clone()));
            }
        }
        let mut found = HashMap::new();
        for (parent, first) in wanted {
            let taken = self.taken.iter().find(|taken| taken.newcomer.name == parent);
            let Some(TakenChat { newcomer, snapshot }) = taken else { continue };
            let (id, chain) = (snapshot.id, newcomer.chain.clone());
            let shared = self.shared(&chain, &first)?;
            // A shared greeting proves nothing, because another chat may have the name by now.
            if shared > 1 {
                found.insert(first.id, Some((id, shared as u64)));
            }
        }
        Ok(found)
    }

    pub(crate) fn save(self) {
        self.index.save(&self.path);
    }

    /// Finds the timeline that was renamed to the new chat. Its file must be missing, its latest
    /// snapshot must be the beginning of the new chat, and its folder must be the same or be
    /// missing, too. Both must name the same parent: a fork would name its origin, but a rename
    /// does not change the parent.
    fn renamed_from(&mut self, newcomer: &NewTimeline) -> Result<Option<Snapshot>> {
        let mut found: Option<Snapshot> = None;
        for id in self.vanished.values().copied().collect::<Vec<_>>() {
            let Some(head) = self.history.get(id).cloned() else { continue };
            let moved = head.timeline.folder().is_some_and(|folder| !self.folders.contains(folder));
            let nearby = head.timeline.folder() == newcomer.name.folder() || moved;
            let length = self.index.get(id).map_or(0, |record| record.messages);
            if head.timeline.is_group() != newcomer.name.is_group()
                || !nearby
                || head.main_chat != newcomer.main_chat
                || length == 0
                || length > newcomer.chain.len()
            {
                continue;
            }
            // Two new chats of one character may begin with the same greeting in the same minute,
            // so a greeting alone does not prove a rename.
            let alone = length == 1 && newcomer.chain.len() > 1;
            let longer = found.as_ref().is_none_or(|other| other.messages < head.messages);
            if !alone && longer && self.shared(&newcomer.chain, &head)? == length {
                found = Some(head);
            }
        }
        Ok(found)
    }

    fn was_called(&self, snapshot: &Snapshot, name: &TimelineName) -> bool {
        let former = |snapshot: &Snapshot| snapshot.renamed_from.as_ref() == Some(name);
        self.history.ancestry(snapshot).take_while(|other| other.fork_at.is_none()).any(former)
    }

    /// Returns the timelines that name `name` as their parent, directly or indirectly.
    fn descendants_of(&self, name: &TimelineName) -> HashSet<TimelineName> {
        let stored = self.history.heads().map(|(name, head)| (name, head.main_chat.as_deref()));
        let taken = self.taken.iter().map(|taken| &taken.newcomer);
        let taken = taken.map(|taken| (&taken.name, taken.main_chat.as_deref()));
        let named: Vec<_> = stored
            .chain(taken)
            .filter_map(|(timeline, main_chat)| {
                Some((timeline, new_timeline::named(timeline, main_chat?)?))
            })
            .collect();
        let mut found: HashSet<TimelineName> = HashSet::new();
        let mut parents = vec![name.clone()];
        while let Some(parent) = parents.pop() {
            for (timeline, _) in named.iter().filter(|(_, named)| *named == parent) {
                // Renames can make the names form a cycle.
                if *timeline != name && found.insert((*timeline).clone()) {
                    parents.push((*timeline).clone());
                }
            }
        }
        found
    }

    /// Returns the snapshots accepted by `fits` that share the most samples with `chain`.
    fn closest_stored(&self, chain: &Chain, fits: &dyn Fn(&Snapshot) -> bool) -> Vec<Snapshot> {
        let mut closest = ClosestSnapshots::default();
        for (snapshot, record) in self.index.iter(&self.history).filter(|(it, _)| fits(it)) {
            closest.offer(samples_shared(chain, record), snapshot);
        }
        closest.snapshots
    }

    /// Returns the exact number of first messages that `chain` shares with a stored snapshot.
    pub(crate) fn shared(&mut self, chain: &Chain, snapshot: &Snapshot) -> Result<usize> {
        let Some(record) = self.index.get(snapshot.id) else { return Ok(0) };
        let samples = samples_shared(chain, record);
        let tree = unless_lost(Tree::open(&self.identities.reader, snapshot.tree))?;
        let Some(tree) = tree else { return Ok(0) };
        let mut length = samples * SAMPLE;
        let Some(mut link) = chain.at(length) else { return Ok(0) };
        for message in tree.messages().iter().take(record.messages).skip(length) {
            let Some(identity) = self.identities.find(*message)? else { break };
            link = link.then(identity);
            if chain.at(length + 1) != Some(link) {
                break;
            }
            length += 1;
        }
        Ok(length)
    }
}
