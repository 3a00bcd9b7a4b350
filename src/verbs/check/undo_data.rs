//! Checks the data for `undo`: snapshots that were undone or lost their tag, and former content of
//! files. This data may be the only copy, and no other command reads it before an undo needs it.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use super::StoreCheck;
use crate::archive::{self, Snapshot, Verdict, read_manifest};
use crate::engine::{Result, lost_objects};
use crate::history::History;
use crate::rules::{Code, Finding};
use crate::store::{Kind, LoggedOperation, Loss, ObjectId, RefName, Store, StoredAs};

/// The refs and operations to check. They are listed before the objects are verified, because
/// objects that are written later are in packs that the verification does not read.
pub(super) struct UndoRecords {
    refs: Vec<(RefName, ObjectId)>,
    pub(super) operations: Vec<LoggedOperation>,
}

impl UndoRecords {
    pub(super) fn of(store: &Store) -> Result<Self> {
        let refs = store.refs("refs/stvc/kept/")?.refs;
        Ok(Self { refs, operations: store.operations()?.0 })
    }
}

/// The paths of the files in a snapshot, or the reason why the snapshot is lost, or `Unknown` if a
/// newer version of stvc wrote the snapshot.
enum UndoFiles {
    Files(Vec<String>),
    Lost(String),
    Unknown,
}

const NEEDED_BY: &str = "undo data";

impl StoreCheck<'_> {
    pub(super) fn undo_data(&mut self, listed: &UndoRecords, history: &History) -> Result<()> {
        self.check_refs(&listed.refs)?;
        if !listed.refs.is_empty() {
            self.check_undo_snapshots(history)?;
        }
        self.check_files(&listed.operations)
    }

    fn report(&mut self, subject: &str, message: String) {
        let finding = Finding::new(Code::KeptDamaged, subject, message);
        self.findings.push(finding.remedy(
            "`stvc undo` cannot restore it; run `stvc gc --keep-undo 0s` to delete all undo data",
        ));
    }

    /// Checks the commits to which `refs/stvc/kept/` refs point. If a commit is not a snapshot, its
    /// files are also checked.
    fn check_refs(&mut self, refs: &[(RefName, ObjectId)]) -> Result<()> {
        for (name, id) in refs {
            match self.reader.commit(*id) {
                Ok(commit) if Snapshot::read(&commit).is_err() => {
                    let lost = self.note_lost_below(commit.tree)?;
                    if let [first, ..] = lost.as_slice() {
                        self.report(name.as_str(), lost_object(*first));
                    }
                }
                Ok(_) => {}
                Err(error) if error.is_loss() => {
                    self.note(*id, NEEDED_BY);
                    self.report(name.as_str(), error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Checks the snapshots that are reachable only from `refs/stvc/kept/` refs.
    fn check_undo_snapshots(&mut self, history: &History) -> Result<()> {
        let all = History::load_with_kept(self.store)?;
        let reported: HashSet<_> = history.broken.iter().map(|broken| &broken.subject).collect();
        for broken in all.broken.iter().filter(|broken| !reported.contains(&broken.subject)) {
            self.report(&broken.subject, broken.why.clone());
        }
        let mut kept: Vec<_> =
            all.iter().filter(|snapshot| history.get(snapshot.id).is_none()).collect();
        kept.sort_by_key(|snapshot| (snapshot.timeline.clone(), snapshot.time.seconds));
        for snapshot in kept {
            match self.validator.judge(snapshot)? {
                Verdict::Invalid(problems) if problems.is_fatal() => {
                    self.note_lost_below(snapshot.tree)?;
                    let message =
                        format!("{}, no longer on a branch: {problems}", snapshot.timeline);
                    self.report(&snapshot.id.to_string(), message);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the content that files had before and after each operation. The log records where
    /// this content is stored.
    fn check_files(&mut self, operations: &[LoggedOperation]) -> Result<()> {
        let (mut reported, mut held) = (HashSet::new(), HashMap::new());
        for operation in operations {
            for file in &operation.effect.files {
                for kept in file.before.iter().chain(&file.after) {
                    let Some(why) = self.why_lost(kept, &file.path, &mut held)? else { continue };
                    if reported.insert((file.path.clone(), why.clone())) {
                        let number = operation.number;
                        let message = format!(
                            "its content before or after operation {number} is lost: {why}"
                        );
                        self.report(&file.path, message);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the reason why the content of a file is lost, or `None` if the content is not lost.
    fn why_lost(
        &mut self,
        kept: &StoredAs,
        path: &str,
        held: &mut HashMap<ObjectId, UndoFiles>,
    ) -> Result<Option<String>> {
        let (id, kind) = match *kept {
            StoredAs::Blob(id) => (id, Kind::Blob),
            StoredAs::Commit(id) => (id, Kind::Commit),
        };
        // An object that was written after the verification, or that is borrowed from another
        // store, is not lost.
        if !self.health.is_valid(id) && lost_objects::is_lost(&self.reader, id, kind)? {
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
            UndoFiles::Lost(why) => Some(why.clone()),
            UndoFiles::Files(paths) if !paths.iter().any(|held| held == path) => {
                Some(format!("snapshot {id} does not contain it"))
            }
            _ => None,
        })
    }

    fn holds(&mut self, id: ObjectId) -> Result<UndoFiles> {
        let snapshot = self.reader.commit(id).map_err(archive::Error::from);
        let read = snapshot.and_then(|commit| Snapshot::read(&commit)).and_then(|snapshot| {
            let manifest = read_manifest(&self.reader, snapshot.tree)?;
            Ok((snapshot, manifest))
        });
        match read {
            Ok((snapshot, manifest)) => match self.validator.judge(&snapshot)? {
                Verdict::Invalid(problems) if problems.is_fatal() => {
                    let lost = self.note_lost_below(snapshot.tree)?.first().copied();
                    Ok(UndoFiles::Lost(lost.map_or_else(|| problems.to_string(), lost_object)))
                }
                _ => {
                    Ok(UndoFiles::Files(manifest.files.into_iter().map(|file| file.path).collect()))
                }
            },
            Err(archive::Error::NewerFormat { .. }) => Ok(UndoFiles::Unknown),
            Err(error) if error.is_loss() => Ok(UndoFiles::Lost(error.to_string())),
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
