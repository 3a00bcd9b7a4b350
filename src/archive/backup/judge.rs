//! Judges every snapshot of a backup, because somebody else may have written it. Its objects were
//! hashed while they were read, so they are what their ids say. A bad snapshot does not affect the
//! others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{BackupError, LONGEST_OBJECT, Result};
use crate::archive::validate::{Wholes, hinders};
use crate::archive::{self, Problem, Reach, Snapshot, Validator, Verdict};
use crate::progress::Monitor;
use crate::store::{self, Kind, Loss, ObjectId, Reader, RefName, Store, unless_lost};

pub type Lengths = HashMap<ObjectId, (Kind, u64)>;

pub type KnownSnapshots = HashSet<ObjectId>;

pub enum Given<'l> {
    /// All that there are: each was hashed, and none may be there that no snapshot has.
    All(&'l Lengths),
    /// The store is asked for each. Known snapshots, and all before them, are skipped.
    Beyond,
}

pub struct Found {
    pub id: ObjectId,
    pub parents: Vec<ObjectId>,
    pub what: What,
}

pub enum What {
    Snapshot(Box<Snapshot>, Verdict),
    Known,
    Nothing(String),
}

impl Found {
    pub fn is_fit(&self) -> bool {
        match &self.what {
            What::Snapshot(_, verdict) => verdict.may_be_taken_in(),
            What::Known => true,
            What::Nothing(_) => false,
        }
    }

    pub fn can_be_shared(&self) -> bool {
        let is_read = match &self.what {
            What::Snapshot(_, verdict) => verdict.can_be_restored(),
            What::Known | What::Nothing(_) => true,
        };
        self.is_fit() && is_read
    }

    fn open_case(&mut self) -> Option<(&Snapshot, &mut Verdict)> {
        match &mut self.what {
            What::Snapshot(snapshot, verdict) => Some((snapshot, verdict)),
            What::Known | What::Nothing(_) => None,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Snapshot(snapshot, Verdict::Unsound(problems)) => {
                write!(f, "snapshot {}: {problems}", snapshot.id)
            }
            What::Nothing(why) => f.write_str(why),
            _ => Ok(()),
        }
    }
}

pub struct Judged {
    pub commits: Vec<Found>,
    pub objects: usize,
}

impl Judged {
    /// Returns the first of what is wrong, in words; none: all of it may be taken in.
    pub fn first_problem(&self) -> Option<String> {
        self.commits.iter().find(|found| !found.is_fit()).map(Found::to_string)
    }

    /// Returns the objects of attachments that are lost, so that nobody tries to copy them.
    pub fn lost_objects(&self) -> HashSet<ObjectId> {
        let losses = self.snapshots().flat_map(|(_, verdict)| verdict.lost_attachments());
        losses.filter_map(|loss| loss.object).map(|(id, _)| id).collect()
    }

    pub fn snapshots(&self) -> impl Iterator<Item = (&Snapshot, &Verdict)> {
        self.commits.iter().filter_map(|found| match &found.what {
            What::Snapshot(snapshot, verdict) => Some((&**snapshot, verdict)),
            What::Known | What::Nothing(_) => None,
        })
    }
}

pub fn judge(
    store: &Store,
    refs: &BTreeMap<RefName, ObjectId>,
    given: &Given<'_>,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Judged> {
    let mut walk = Walk { reader: store.reader(), given, known, seen: HashSet::new() };
    let mut commits = walk.commits(refs.values().copied().collect())?;
    let (mut wholes, reader) = (Wholes::default(), store.reader());
    let mut trees: HashMap<ObjectId, Option<Problem>> = HashMap::new();
    for found in &commits {
        if let What::Snapshot(snapshot, _) = &found.what
            && !trees.contains_key(&snapshot.tree)
        {
            // A lost object may be an attachment. Others are found when the snapshot is rebuilt.
            let mut look = |id, kind| Ok(walk.look(id, kind)?.err().filter(hinders));
            let problem = wholes.look(&reader, snapshot.tree, &mut look).map_err(unreadable)?;
            let problem = problem.filter(|problem| !matches!(problem, Problem::Lacks { .. }));
            trees.insert(snapshot.tree, problem);
        }
    }
    monitor.begin("rebuilding snapshots", Some(commits.len() as u64));
    let mut validator = Validator::new(store.reader());
    // Timeline by timeline: neighbours share most of their messages.
    let mut order: Vec<_> = commits.iter_mut().filter_map(Found::open_case).collect();
    order.sort_by(|(a, _), (b, _)| {
        (&a.timeline, a.time.seconds).cmp(&(&b.timeline, b.time.seconds))
    });
    for (snapshot, verdict) in order {
        monitor.advance(1);
        if known.contains(&snapshot.id.0) {
            continue;
        }
        let problem = trees.get(&snapshot.tree).cloned().flatten();
        // Not even to be read.
        if problem.as_ref().is_some_and(hinders) {
            *verdict = Verdict::Sound.and(problem);
            continue;
        }
        *verdict = validator.judge(snapshot).map_err(unreadable)?;
        if verdict.may_be_taken_in() {
            *verdict = verdict.clone().and(problem);
        }
    }
    let all_fit = commits.iter().all(Found::is_fit);
    if all_fit && matches!(given, Given::All(lengths) if walk.seen.len() != lengths.len()) {
        return Err(BackupError::hostile("objects that no snapshot has"));
    }
    Ok(Judged { commits, objects: walk.seen.len() })
}

/// Returns all objects of some trees, each tree before its contents, without those that are lost.
pub fn objects_of(
    store: &Store,
    trees: impl IntoIterator<Item = ObjectId>,
    lost: HashSet<ObjectId>,
) -> Result<Vec<(ObjectId, Kind)>> {
    let (mut reach, mut objects) = (Reach::without(store.reader(), lost), Vec::new());
    for tree in trees {
        reach.visit(tree, &mut |id, kind| objects.push((id, kind))).map_err(unreadable)?;
    }
    Ok(objects)
}

struct Walk<'l> {
    reader: Reader,
    given: &'l Given<'l>,
    known: &'l KnownSnapshots,
    seen: HashSet<ObjectId>,
}

impl Walk<'_> {
    fn commits(&mut self, mut open: Vec<ObjectId>) -> Result<Vec<Found>> {
        let mut met = HashSet::new();
        let mut commits = Vec::new();
        while let Some(id) = open.pop() {
            if !met.insert(id) {
                continue;
            }
            if matches!(self.given, Given::Beyond) && self.known.contains(&id) {
                commits.push(Found { id, parents: Vec::new(), what: What::Known });
                continue;
            }
            let found = self.commit(id)?;
            open.extend(&found.parents);
            commits.push(found);
        }
        Ok(commits)
    }

    fn commit(&mut self, id: ObjectId) -> Result<Found> {
        let nothing = |why: String| Found { id, parents: Vec::new(), what: What::Nothing(why) };
        match self.look(id, Kind::Commit).map_err(unreadable)? {
            Ok(()) => {}
            Err(Problem::Lacks { why }) => return Ok(nothing(why)),
            Err(problem) => return Ok(nothing(problem.to_string())),
        }
        let commit = match self.reader.commit(id) {
            Ok(commit) => commit,
            Err(error) if error.is_loss() => return Ok(nothing(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let what = match Snapshot::read(&commit) {
            Ok(snapshot) => What::Snapshot(Box::new(snapshot), Verdict::Sound),
            Err(error) => What::Nothing(error.to_string()),
        };
        Ok(Found { id, parents: commit.parents, what })
    }

    fn look(
        &mut self,
        id: ObjectId,
        kind: Kind,
    ) -> archive::Result<std::result::Result<(), Problem>> {
        let lacks = |why: String| Err(Problem::Lacks { why });
        let header = match self.given {
            Given::All(lengths) => lengths.get(&id).copied(),
            Given::Beyond => match self.reader.header(id) {
                Err(error @ store::Error::Damaged { .. }) => return Ok(lacks(error.to_string())),
                header => unless_lost(header)?,
            },
        };
        Ok(match header {
            None => lacks(format!("object {id}, which others refer to, is not there")),
            Some((_, length)) if length > LONGEST_OBJECT => {
                Err(Problem::TooLong { what: format!("object {id}") })
            }
            Some((found, _)) if found != kind => lacks(format!("object {id} is no {kind}")),
            Some(_) => {
                self.seen.insert(id);
                Ok(())
            }
        })
    }
}

/// For `map_err`: the judge judges; that it could not is the disk's fault.
fn unreadable(error: archive::Error) -> BackupError {
    match error {
        archive::Error::Store(error) => BackupError::Store(error),
        error => BackupError::hostile(error.to_string()),
    }
}
