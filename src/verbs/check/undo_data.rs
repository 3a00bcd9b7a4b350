//! Checks the data for `undo`: snapshots that were undone or lost their tag, and former bytes of
//! files. They may be the only copy, and nobody looks at them until they are needed.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use super::Checking;
use crate::archive::{self, Snapshot, Verdict, read_manifest};
use crate::engine::{Result, lost_objects};
use crate::history::History;
use crate::rules::{Code, Finding};
use crate::store::{Kept, Kind, LoggedOperation, Loss, ObjectId, RefName, Store};

/// Listed before anything is checked: later objects are in packs that were not read.
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

/// The files of a snapshot; lost for a reason; or unknown, because a newer program wrote it.
enum Held {
    Files(Vec<String>),
    Lost(String),
    Unknown,
}

const NEEDED_BY: &str = "what could be undone";

impl Checking<'_> {
    pub(super) fn undo_data(&mut self, listed: &Listed, history: &History) -> Result<()> {
        self.check_refs(&listed.refs)?;
        if !listed.refs.is_empty() {
            self.check_kept(history)?;
        }
        self.check_files(&listed.operations)
    }

    fn tell(&mut self, subject: &str, message: String) {
        let finding = Finding::new(Code::KeptDamaged, subject, message);
        self.findings.push(finding.remedy(
            "`undo` cannot bring it back; `stvc gc --keep-undo 0s` lets go of all that could be undone",
        ));
    }

    /// Commits that refs keep, and the files in those that are not snapshots.
    fn check_refs(&mut self, refs: &[(RefName, ObjectId)]) -> Result<()> {
        for (name, id) in refs {
            match self.reader.commit(*id) {
                Ok(commit) if Snapshot::read(&commit).is_err() => {
                    let lost = self.note_lost_below(commit.tree)?;
                    if let [first, ..] = lost.as_slice() {
                        self.tell(name.as_str(), lost_object(*first));
                    }
                }
                Ok(_) => {}
                Err(error) if error.is_loss() => {
                    self.note(*id, NEEDED_BY);
                    self.tell(name.as_str(), error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Snapshots that only those refs hold.
    fn check_kept(&mut self, history: &History) -> Result<()> {
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
                    self.note_lost_below(snapshot.tree)?;
                    let message =
                        format!("{}, on no branch any more: {problems}", snapshot.timeline);
                    self.tell(&snapshot.id.to_string(), message);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes of files before and after operations, where the log says that they are.
    fn check_files(&mut self, operations: &[LoggedOperation]) -> Result<()> {
        let (mut told, mut held) = (HashSet::new(), HashMap::new());
        for operation in operations {
            for file in &operation.effect.files {
                for kept in file.before.iter().chain(&file.after) {
                    let Some(why) = self.why_lost(kept, &file.path, &mut held)? else { continue };
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

    /// Returns why the bytes of a file are lost; `None` if they are not.
    fn why_lost(
        &mut self,
        kept: &Kept,
        path: &str,
        held: &mut HashMap<ObjectId, Held>,
    ) -> Result<Option<String>> {
        let (id, kind) = match *kept {
            Kept::Blob(id) => (id, Kind::Blob),
            Kept::Commit(id) => (id, Kind::Commit),
        };
        // Objects that came since the store was read through, or that another store lends, are not
        // lost.
        if !self.health.is_sound(id) && lost_objects::is_lost(&self.reader, id, kind)? {
            self.note(id, NEEDED_BY);
            return Ok(Some(lost_object(id)));
        }
        if kind == Kind::Blob {
            return Ok(None);
        }
        let held = match held.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.holds(id)?),
        };
        Ok(match held {
            Held::Lost(why) => Some(why.clone()),
            Held::Files(paths) if !paths.iter().any(|held| held == path) => {
                Some(format!("snapshot {id} has no such file"))
            }
            _ => None,
        })
    }

    fn holds(&mut self, id: ObjectId) -> Result<Held> {
        let snapshot = self.reader.commit(id).map_err(archive::Error::from);
        let read = snapshot.and_then(|commit| Snapshot::read(&commit)).and_then(|snapshot| {
            let manifest = read_manifest(&self.reader, snapshot.tree)?;
            Ok((snapshot, manifest))
        });
        match read {
            Ok((snapshot, manifest)) => match self.validator.judge(&snapshot)? {
                Verdict::Unsound(problems) if problems.is_fatal() => {
                    let lost = self.note_lost_below(snapshot.tree)?.first().copied();
                    Ok(Held::Lost(lost.map_or_else(|| problems.to_string(), lost_object)))
                }
                _ => Ok(Held::Files(manifest.files.into_iter().map(|file| file.path).collect())),
            },
            Err(archive::Error::NewerFormat { .. }) => Ok(Held::Unknown),
            Err(error) if error.is_loss() => Ok(Held::Lost(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn note_lost_below(&mut self, tree: ObjectId) -> Result<Vec<ObjectId>> {
        let lost = self.lost_below(tree)?;
        lost.iter().for_each(|id| self.note(*id, NEEDED_BY));
        Ok(lost)
    }
}

fn lost_object(id: ObjectId) -> String {
    format!("object {id} is missing or damaged")
}
