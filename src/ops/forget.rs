//! Let snapshots go that nobody will ask for again: by a policy, timeline by timeline.
//!
//! Tagged snapshots, those that a fork leaves from, and the newest of each timeline always stay. The history between those that stay is joined up, so a snapshot
//! after one that goes is written anew with another parent; its former id still names it. Nothing is gone before `gc` drops it.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Datelike, FixedOffset, Timelike};

use super::lineage::Identities;
use super::operation::Operation;
use super::owners::Owners;
use super::retention::Policy;
use super::{Error, Result, Workspace, resolve, weave};
use crate::archive::{self, History, Snapshot, SnapshotId, Tree, moved};
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{Kind as ObjectKind, ObjectId, Store, commit};

/// What to let go.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name; none: all.
    pub timelines: Vec<String>,
    /// What stays; nothing said: what the store's configuration says.
    pub policy: Policy,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of one timeline.
pub struct Timeline {
    /// Which.
    pub name: TimelineName,
    /// How many snapshots stay.
    pub kept: usize,
    /// Those that go, newest first.
    pub forgotten: Vec<Snapshot>,
}

/// What was let go.
pub struct Report {
    /// The timelines from which something goes.
    pub timelines: Vec<Timeline>,
    /// How many snapshots stay, in all.
    pub kept: usize,
    /// How many stay under another id.
    pub rewritten: usize,
    /// What is freed once `gc` drops them.
    pub bytes: u64,
    /// The policy that was applied.
    pub policy: Policy,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Let snapshots go.
pub fn forget(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (store, held) = workspace.open(options.dry_run)?;
    let policy = match options.policy.is_empty() {
        true => Policy::of_store(&store)?.ok_or(Error::NoPolicy)?,
        false => options.policy.clone(),
    };
    policy.check()?;
    let history = History::load(&store)?;
    if let Some(broken) = history.broken.first() {
        return Err(Error::BrokenHistory {
            subject: broken.subject.clone(),
            why: broken.why.clone(),
        });
    }
    let wanted = wanted(&options.timelines, &history, workspace)?;
    let fixed = fixed(&history);
    let mut report = Report {
        timelines: Vec::new(),
        kept: 0,
        rewritten: 0,
        bytes: 0,
        policy: policy.clone(),
        dry_run: options.dry_run,
    };
    let mut gone = HashSet::new();
    for (name, head) in history.heads() {
        let (own, _) = history.own(head);
        let mut forgotten = Vec::new();
        if wanted.as_ref().is_none_or(|wanted| wanted.contains(name)) {
            let kept = policy.keeps(&own, workspace.now);
            let goes = own
                .iter()
                .filter(|snapshot| !kept.contains(&snapshot.id) && !fixed.contains(&snapshot.id));
            forgotten = goes.map(|snapshot| (*snapshot).clone()).collect();
        }
        report.kept += own.len() - forgotten.len();
        gone.extend(forgotten.iter().map(|snapshot| snapshot.id));
        if !forgotten.is_empty() {
            let kept = own.len() - forgotten.len();
            report.timelines.push(Timeline { name: name.clone(), kept, forgotten });
        }
    }
    report.bytes = freed(&store, &history, &gone)?;
    if gone.is_empty() {
        return Ok(report);
    }
    monitor.begin("joining up the history", None);
    let mut operation = Operation::new(workspace, &store, None);
    let map = join_up(&mut operation, &store, &history, &gone)?;
    let renamed: Vec<_> = map
        .iter()
        .filter_map(|(old, new)| Some((old.0, (*new)?)))
        .filter(|(old, new)| old != new && !gone.contains(&SnapshotId(*old)))
        .collect();
    report.rewritten = renamed.len();
    if let Some(held) = &held {
        let moves = map.into_iter().filter_map(|(old, new)| Some((old, new?))).collect();
        weave::move_refs(&mut operation, &store, &moves)?;
        operation.rename(&renamed);
        operation.finish(held)?;
    }
    Ok(report)
}

fn wanted(
    names: &[String],
    history: &History,
    workspace: &Workspace,
) -> Result<Option<HashSet<TimelineName>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let library = workspace.library().ok();
    let found = names.iter().map(|name| {
        resolve::stored(name, history, library.as_ref()).map(|head| head.timeline.clone())
    });
    found.collect::<Result<_>>().map(Some)
}

/// The snapshots that always stay: the newest of each timeline, tagged ones, and those that something of another timeline follows.
fn fixed(history: &History) -> HashSet<SnapshotId> {
    let owners = Owners::of(history);
    let mut fixed: HashSet<_> = history.heads().map(|(_, head)| head.id).collect();
    fixed.extend(history.tags().map(|(_, id)| id));
    for snapshot in history.iter() {
        for parent in snapshot.parents.iter().filter_map(|parent| history.get(*parent)) {
            if owners.of_snapshot(parent) != owners.of_snapshot(snapshot) {
                fixed.insert(parent.id);
            }
        }
    }
    fixed
}

/// Write the history anew without those that go, parents first. For each snapshot the id that stands for it: of one that goes, its nearest ancestor that stays.
fn join_up(
    operation: &mut Operation<'_>,
    store: &Store,
    history: &History,
    gone: &HashSet<SnapshotId>,
) -> Result<HashMap<SnapshotId, Option<ObjectId>>> {
    let reader = store.reader();
    let mut map: HashMap<SnapshotId, Option<ObjectId>> = HashMap::new();
    // A fork whose first snapshot goes begins with the next.
    let mut forks: HashMap<SnapshotId, SnapshotId> = HashMap::new();
    for snapshot in history.newest_first().into_iter().rev() {
        let parent = snapshot.parents.first().copied();
        let origin = match (snapshot.fork_at, parent) {
            (Some(_), Some(parent)) => Some(parent),
            (_, parent) => parent.and_then(|parent| forks.get(&parent).copied()),
        };
        let new_parent = parent.and_then(|parent| map.get(&parent).copied().flatten());
        if gone.contains(&snapshot.id) {
            map.insert(snapshot.id, new_parent);
            forks.extend(origin.map(|origin| (snapshot.id, origin)));
            continue;
        }
        let fork_at = match (snapshot.fork_at, origin) {
            (Some(shared), _) => Some(shared),
            (None, Some(origin)) => Some(shared_messages(store, history, origin, snapshot)),
            (None, None) => None,
        };
        // What was joined stays joined: on both sides something may have been said.
        let joined = snapshot.parents.iter().skip(1);
        let joined: Vec<_> =
            joined.filter_map(|parent| map.get(parent).copied().flatten()).collect();
        let parents: Vec<_> = new_parent.into_iter().chain(joined).collect();
        let same = parents.iter().eq(snapshot.parents.iter().map(|parent| &parent.0))
            && fork_at == snapshot.fork_at;
        let id = if same {
            snapshot.id.0
        } else {
            let new = moved(reader.commit(snapshot.id.0)?, parents, fork_at);
            operation.pack.add(ObjectKind::Commit, &commit::encode(&new))?
        };
        map.insert(snapshot.id, Some(id));
    }
    Ok(map)
}

/// How many first messages two snapshots share.
fn shared_messages(store: &Store, history: &History, a: SnapshotId, b: &Snapshot) -> u64 {
    let reader = store.reader();
    let tree = |snapshot: &Snapshot| Tree::open(&reader, snapshot.tree).ok();
    let (Some(a), Some(b)) = (history.get(a).and_then(tree), tree(b)) else { return 0 };
    let mut identities = Identities::new(store.reader());
    let mut same = |(a, b): &(&ObjectId, &ObjectId)| {
        a == b || (identities.of(**a).is_some() && identities.of(**a) == identities.of(**b))
    };
    a.messages().iter().zip(b.messages()).take_while(|pair| same(pair)).count() as u64
}

/// What the objects take that only these snapshots have.
fn freed(store: &Store, history: &History, gone: &HashSet<SnapshotId>) -> Result<u64> {
    if gone.is_empty() {
        return Ok(0);
    }
    let sizes = store.packed_sizes()?;
    let mut walk = archive::Reach::new(store.reader());
    for snapshot in history.iter().filter(|snapshot| !gone.contains(&snapshot.id)) {
        walk.visit(snapshot.tree, &mut |_| {})?;
    }
    let mut bytes = 0;
    let size = |id: ObjectId| sizes.get(&id).copied().unwrap_or(0);
    for snapshot in history.iter().filter(|snapshot| gone.contains(&snapshot.id)) {
        bytes += size(snapshot.id.0);
        walk.visit(snapshot.tree, &mut |id| bytes += size(id))?;
    }
    Ok(bytes)
}

/// The hour, day, week or month of a moment, as a number that is the same for moments in the same one.
pub(super) fn period(moment: DateTime<FixedOffset>, unit: super::retention::Unit) -> i64 {
    use super::retention::Unit;
    let day = i64::from(moment.num_days_from_ce());
    match unit {
        Unit::Hour => day * 24 + i64::from(moment.hour()),
        Unit::Day => day,
        Unit::Week => {
            i64::from(moment.iso_week().year()) * 54 + i64::from(moment.iso_week().week())
        }
        Unit::Month => i64::from(moment.year()) * 12 + i64::from(moment.month0()),
    }
}
