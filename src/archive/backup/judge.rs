//! Validates every snapshot of a backup, because another program may have written the backup.
//! Objects need not be hashed again: they were hashed while they were read. An invalid snapshot
//! does not affect the others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{BackupError, LONGEST_OBJECT, Result};
use crate::archive::validate::{Wholes, hinders};
use crate::archive::{self, Problem, Reach, Snapshot, Validator, Verdict};
use crate::progress::Monitor;
use crate::store::{self, Kind, Loss, ObjectId, Reader, RefName, Store, unless_lost};

pub type Lengths = HashMap<ObjectId, (Kind, u64)>;

pub type KnownSnapshots = HashSet<ObjectId>;

pub enum ObjectScope<'l> {
    /// All objects of the backup, with their lengths. Each object must belong to a snapshot.
    All(&'l Lengths),
    /// Objects of the store. Known snapshots and their ancestors are skipped.
    Beyond,
}

pub struct JudgedCommit {
    pub id: ObjectId,
    pub parents: Vec<ObjectId>,
    pub what: CommitKind,
}

pub enum CommitKind {
    Snapshot(Box<Snapshot>, Verdict),
    Known,
    Nothing(String),
}

impl JudgedCommit {
    pub fn is_fit(&self) -> bool {
        match &self.what {
            CommitKind::Snapshot(_, verdict) => verdict.may_be_taken_in(),
            CommitKind::Known => true,
            CommitKind::Nothing(_) => false,
        }
    }

    pub fn can_be_shared(&self) -> bool {
        let is_read = match &self.what {
            CommitKind::Snapshot(_, verdict) => verdict.can_be_restored(),
            CommitKind::Known | CommitKind::Nothing(_) => true,
        };
        self.is_fit() && is_read
    }

    fn open_case(&mut self) -> Option<(&Snapshot, &mut Verdict)> {
        match &mut self.what {
            CommitKind::Snapshot(snapshot, verdict) => Some((snapshot, verdict)),
            CommitKind::Known | CommitKind::Nothing(_) => None,
        }
    }
}

impl fmt::Display for JudgedCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            CommitKind::Snapshot(snapshot, Verdict::Invalid(problems)) => {
                write!(f, "snapshot {}: {problems}", snapshot.id)
            }
            CommitKind::Nothing(why) => f.write_str(why),
            _ => Ok(()),
        }
    }
}

pub struct JudgedBackup {
    pub commits: Vec<JudgedCommit>,
    pub objects: usize,
}

impl JudgedBackup {
    /// Describes the first commit that cannot be imported, or returns `None` if all commits can be
    /// imported.
    pub fn first_problem(&self) -> Option<String> {
        self.commits.iter().find(|found| !found.is_fit()).map(JudgedCommit::to_string)
    }

    /// Returns the missing or damaged objects of attachments, which cannot be copied.
    pub fn lost_objects(&self) -> HashSet<ObjectId> {
        let losses = self.snapshots().flat_map(|(_, verdict)| verdict.lost_attachments());
        losses.filter_map(|loss| loss.object).map(|(id, _)| id).collect()
    }

    pub fn snapshots(&self) -> impl Iterator<Item = (&Snapshot, &Verdict)> {
        self.commits.iter().filter_map(|found| match &found.what {
            CommitKind::Snapshot(snapshot, verdict) => Some((&**snapshot, verdict)),
            CommitKind::Known | CommitKind::Nothing(_) => None,
        })
    }
}

pub fn judge(
    store: &Store,
    refs: &BTreeMap<RefName, ObjectId>,
    given: &ObjectScope<'_>,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<JudgedBackup> {
    let mut walk = BackupWalk { reader: store.reader(), given, known, seen: HashSet::new() };
    let mut commits = walk.commits(refs.values().copied().collect())?;
    let (mut wholes, reader) = (Wholes::default(), store.reader());
    let mut trees: HashMap<ObjectId, Option<Problem>> = HashMap::new();
    for found in &commits {
        if let CommitKind::Snapshot(snapshot, _) = &found.what
            && !trees.contains_key(&snapshot.tree)
        {
            // A lost object is ignored here, because it may belong to an attachment. Any other lost
            // object is found when the snapshot is rebuilt.
            let mut look = |id, kind| Ok(walk.look(id, kind)?.err().filter(hinders));
            let problem = wholes.look(&reader, snapshot.tree, &mut look).map_err(unreadable)?;
            let problem = problem.filter(|problem| !matches!(problem, Problem::Lacks { .. }));
            trees.insert(snapshot.tree, problem);
        }
    }
    monitor.begin("rebuilding snapshots", Some(commits.len() as u64));
    let mut validator = Validator::new(store.reader());
    // Snapshots are ordered by timeline, because the validator caches the messages of the last
    // snapshot and neighbours share most of them.
    let mut order: Vec<_> = commits.iter_mut().filter_map(JudgedCommit::open_case).collect();
    order.sort_by(|(a, _), (b, _)| {
        (&a.timeline, a.time.seconds).cmp(&(&b.timeline, b.time.seconds))
    });
    for (snapshot, verdict) in order {
        monitor.advance(1);
        if known.contains(&snapshot.id.0) {
            continue;
        }
        let problem = trees.get(&snapshot.tree).cloned().flatten();
        // The tree is too deep, or one of its objects too long, so the snapshot must not even be
        // read.
        if problem.as_ref().is_some_and(hinders) {
            *verdict = Verdict::Valid.and(problem);
            continue;
        }
        *verdict = validator.judge(snapshot).map_err(unreadable)?;
        if verdict.may_be_taken_in() {
            *verdict = verdict.clone().and(problem);
        }
    }
    let all_fit = commits.iter().all(JudgedCommit::is_fit);
    if all_fit && matches!(given, ObjectScope::All(lengths) if walk.seen.len() != lengths.len()) {
        return Err(BackupError::hostile("objects that do not belong to any snapshot"));
    }
    Ok(JudgedBackup { commits, objects: walk.seen.len() })
}

/// Returns all objects of these trees without `lost` objects, each tree before its contents.
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

struct BackupWalk<'l> {
    reader: Reader,
    given: &'l ObjectScope<'l>,
    known: &'l KnownSnapshots,
    seen: HashSet<ObjectId>,
}

impl BackupWalk<'_> {
    fn commits(&mut self, mut open: Vec<ObjectId>) -> Result<Vec<JudgedCommit>> {
        let mut met = HashSet::new();
        let mut commits = Vec::new();
        while let Some(id) = open.pop() {
            if !met.insert(id) {
                continue;
            }
            if matches!(self.given, ObjectScope::Beyond) && self.known.contains(&id) {
                commits.push(JudgedCommit { id, parents: Vec::new(), what: CommitKind::Known });
                continue;
            }
            let found = self.commit(id)?;
            open.extend(&found.parents);
            commits.push(found);
        }
        Ok(commits)
    }

    fn commit(&mut self, id: ObjectId) -> Result<JudgedCommit> {
        let nothing =
            |why: String| JudgedCommit { id, parents: Vec::new(), what: CommitKind::Nothing(why) };
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
            Ok(snapshot) => CommitKind::Snapshot(Box::new(snapshot), Verdict::Valid),
            Err(error) => CommitKind::Nothing(error.to_string()),
        };
        Ok(JudgedCommit { id, parents: commit.parents, what })
    }

    fn look(
        &mut self,
        id: ObjectId,
        kind: Kind,
    ) -> archive::Result<std::result::Result<(), Problem>> {
        let lacks = |why: String| Err(Problem::Lacks { why });
        let header = match self.given {
            ObjectScope::All(lengths) => lengths.get(&id).copied(),
            ObjectScope::Beyond => match self.reader.header(id) {
                Err(error @ store::Error::Damaged { .. }) => return Ok(lacks(error.to_string())),
                header => unless_lost(header)?,
            },
        };
        Ok(match header {
            None => lacks(format!("object {id} is missing, but other objects refer to it")),
            Some((_, length)) if length > LONGEST_OBJECT => {
                Err(Problem::TooLong { what: format!("object {id}") })
            }
            Some((found, _)) if found != kind => lacks(format!("object {id} is not a {kind}")),
            Some(_) => {
                self.seen.insert(id);
                Ok(())
            }
        })
    }
}

/// Converts an error, for `map_err`. An error of the store does not mean that the backup is
/// invalid.
fn unreadable(error: archive::Error) -> BackupError {
    match error {
        archive::Error::Store(error) => BackupError::Store(error),
        error => BackupError::hostile(error.to_string()),
    }
}
