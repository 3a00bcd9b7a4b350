//! What only `undo` needs: snapshots that were undone or lost their tag, and the former bytes of files that a command replaced. They may be the only copy that there
//! is, and nobody looks at them until they are wanted.

use std::collections::{HashMap, HashSet};

use super::{Hurt, is_lost, lost_objects};
use crate::archive::{self, Snapshot, Validator, Verdict, read_manifest};
use crate::engine::Result;
use crate::history::History;
use crate::rules::{Code, Finding};
use crate::store::verify::Health;
use crate::store::{Kept, Kind, LoggedOperation, Loss, ObjectId, Reader, RefName, Store};

/// What is kept, as it was before anything was looked at: what came since is in packs that were not seen.
pub(super) struct Listed {
    refs: Vec<(RefName, ObjectId)>,
    pub(super) operations: Vec<LoggedOperation>,
}

impl Listed {
    pub(super) fn of(store: &Store) -> Result<Self> {
        let refs = store.refs("refs/stvc/kept/")?.refs;
        Ok(Self { refs, operations: store.operations()?.0 })
    }
}

/// What is wrong with what is kept. Objects that are missing are noted in `hurt`.
pub(super) fn check(
    store: &Store,
    listed: &Listed,
    history: &History,
    health: &Health,
    validator: &mut Validator,
    hurt: &mut Hurt,
) -> Result<Vec<Finding>> {
    let reader = store.reader();
    let (findings, held) = (Vec::new(), HashMap::new());
    let mut look = Look { store, reader, health, validator, hurt, findings, held };
    look.at_refs(&listed.refs)?;
    if !listed.refs.is_empty() {
        look.at_snapshots(history)?;
    }
    look.at_files(&listed.operations)?;
    Ok(look.findings)
}

struct Look<'a> {
    store: &'a Store,
    reader: Reader,
    health: &'a Health,
    validator: &'a mut Validator,
    hurt: &'a mut Hurt,
    findings: Vec<Finding>,
    held: HashMap<ObjectId, Held>,
}

/// What is known of the files in a snapshot.
enum Held {
    /// Their paths.
    Files(Vec<String>),
    /// Why they cannot be had.
    Lost(String),
    /// Nothing: a newer program wrote it.
    Unknown,
}

impl Look<'_> {
    fn tell(&mut self, subject: &str, message: String) {
        let finding = Finding::new(Code::KeptDamaged, subject, message);
        self.findings.push(finding.remedy(
            "`undo` cannot bring it back; `stvc gc --keep-undo 0s` lets go of all that could be undone",
        ));
    }

    /// The commits that refs keep, and the files in those that are no snapshots.
    fn at_refs(&mut self, refs: &[(RefName, ObjectId)]) -> Result<()> {
        for (name, id) in refs {
            match self.reader.commit(*id) {
                Ok(commit) if Snapshot::read(&commit).is_err() => {
                    let lost = self.lost_below(commit.tree)?;
                    if let [first, ..] = lost.as_slice() {
                        self.tell(name.as_str(), lost_object(*first));
                    }
                }
                Ok(_) => {}
                Err(error) if error.is_loss() => {
                    self.note(*id);
                    self.tell(name.as_str(), error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The snapshots that only those refs hold.
    fn at_snapshots(&mut self, history: &History) -> Result<()> {
        let all = History::load_with_kept(self.store)?;
        let told: HashSet<_> = history.broken.iter().map(|broken| &broken.subject).collect();
        for broken in all.broken.iter().filter(|broken| !told.contains(&broken.subject)) {
            self.tell(&broken.subject, broken.why.clone());
        }
        let mut kept: Vec<_> =
            all.iter().filter(|snapshot| history.get(snapshot.id).is_none()).collect();
        kept.sort_by_key(|snapshot| (snapshot.timeline.clone(), snapshot.time.seconds));
        for snapshot in kept {
            match self.validator.judge(snapshot)? {
                Verdict::Unsound(problems) if problems.is_fatal() => {
                    self.lost_below(snapshot.tree)?;
                    let message =
                        format!("{}, on no branch any more: {problems}", snapshot.timeline);
                    self.tell(&snapshot.id.to_string(), message);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The bytes of files before and after operations, where the log says that they are.
    fn at_files(&mut self, operations: &[LoggedOperation]) -> Result<()> {
        let mut told = HashSet::new();
        for operation in operations {
            for file in &operation.effect.files {
                for kept in file.before.iter().chain(&file.after) {
                    let Some(why) = self.why_lost(kept, &file.path)? else { continue };
                    if told.insert((file.path.clone(), why.clone())) {
                        let number = operation.number;
                        let message =
                            format!("its bytes before or after operation {number}: {why}");
                        self.tell(&file.path, message);
                    }
                }
            }
        }
        Ok(())
    }

    /// Why the bytes of a file cannot be had; none: they can.
    fn why_lost(&mut self, kept: &Kept, path: &str) -> Result<Option<String>> {
        let (Kept::Blob(id) | Kept::Commit(id)) = *kept;
        let is_blob = matches!(kept, Kept::Blob(_));
        let kind = if is_blob { Kind::Blob } else { Kind::Commit };
        if is_lost(&self.reader, self.health, id, kind)? {
            self.note(id);
            return Ok(Some(lost_object(id)));
        }
        if is_blob {
            return Ok(None);
        }
        if !self.held.contains_key(&id) {
            let held = self.holds(id)?;
            self.held.insert(id, held);
        }
        Ok(match self.held.get(&id) {
            Some(Held::Lost(why)) => Some(why.clone()),
            Some(Held::Files(paths)) if !paths.iter().any(|held| held == path) => {
                Some(format!("snapshot {id} has no such file"))
            }
            _ => None,
        })
    }

    /// What is in a snapshot.
    fn holds(&mut self, id: ObjectId) -> Result<Held> {
        let snapshot = self.reader.commit(id).map_err(archive::Error::from);
        let read = snapshot.and_then(|commit| Snapshot::read(&commit)).and_then(|snapshot| {
            let manifest = read_manifest(&self.reader, snapshot.tree)?;
            Ok((snapshot, manifest))
        });
        match read {
            Ok((snapshot, manifest)) => match self.validator.judge(&snapshot)? {
                Verdict::Unsound(problems) if problems.is_fatal() => {
                    let lost = self.lost_below(snapshot.tree)?.first().copied();
                    Ok(Held::Lost(lost.map_or_else(|| problems.to_string(), lost_object)))
                }
                _ => Ok(Held::Files(manifest.files.into_iter().map(|file| file.path).collect())),
            },
            Err(archive::Error::NewerFormat { .. }) => Ok(Held::Unknown),
            Err(error) if error.is_loss() => Ok(Held::Lost(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The objects of a tree that are lost, each noted.
    fn lost_below(&mut self, tree: ObjectId) -> Result<Vec<ObjectId>> {
        let lost = lost_objects(&self.reader, self.health, tree)?;
        lost.iter().for_each(|id| self.note(*id));
        Ok(lost)
    }

    fn note(&mut self, id: ObjectId) {
        let hurt = self.hurt.entry(id).or_default();
        let words = "what could be undone";
        if !hurt.iter().any(|known| known == words) {
            hurt.push(words.to_owned());
        }
    }
}

fn lost_object(id: ObjectId) -> String {
    format!("object {id} is missing or damaged")
}
