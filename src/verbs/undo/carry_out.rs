//! Carries out an undo, as an operation that can itself be undone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::Undo;
use super::put_back::PutBack;
use crate::archive::SnapshotId;
use crate::engine;
use crate::engine::files::{self, FileAction, FilePlan, WritePermissions};
use crate::engine::operation::integrity::{self, IntegrityScope};
use crate::engine::operation::{FinalSnapshot, HeldLock, Operation, bytes_of};
use crate::engine::sillytavern_runs::SillyTavernRuns;
use crate::history::{History, name_lookup};
use crate::st::{self, LibraryPath, TimelineName};
use crate::store::{FileChange, ObjectId, RefChange, RefName};
use crate::verbs::{Error, Result};

pub(super) struct PlannedFiles {
    pub actions: Vec<FileAction>,
    /// Whether SillyTavern asks the user before its page overwrites any of the replaced files.
    pub asked: bool,
}

impl PlannedFiles {
    fn add(&mut self, file: &FilePlan<'_>) {
        // A file that exists neither before nor after the undo is not reported.
        if file.now.is_some() || file.new_bytes().is_some() {
            self.actions.push(file.planned_action());
        }
        self.asked &= !file.replaces() || file.is_asked_about();
    }
}

impl<'u> Undo<'u> {
    /// Plans the files one at a time, so that memory use does not grow with the number of files.
    pub(super) fn plan_files(&self, changes: &[FileChange]) -> Result<PlannedFiles> {
        let mut planned = PlannedFiles { actions: Vec::new(), asked: true };
        let mut running = None;
        for change in changes {
            let seen = || *running.get_or_insert_with(|| st::running_on(&self.root));
            planned.add(&self.plan_file(change, seen)?);
        }
        Ok(planned)
    }

    fn plan_file(
        &self,
        change: &FileChange,
        running: impl FnOnce() -> st::Running,
    ) -> Result<FilePlan<'static>> {
        let path = LibraryPath::parse(&change.path)?;
        let now = files::read(&self.root, &path)?;
        let reader = self.store.reader();
        let new = change.after.as_ref().map(|kept| bytes_of(&reader, kept, &path)).transpose()?;
        let known = Some(change.clone());
        let mut file = FilePlan { known, ..FilePlan::new(path, now, new.map(Cow::Owned)) };
        let plan = std::slice::from_mut(&mut file);
        integrity::give(plan, self.closed, &self.integrity, IntegrityScope::Unmarked, running);
        Ok(file)
    }

    /// Carries out the undo. Returns the written files, and the number of the new operation.
    pub(super) fn carry_out(
        &self,
        held: &HeldLock,
        PutBack { refs, files: changes, .. }: &PutBack,
    ) -> Result<(PlannedFiles, Option<u64>)> {
        let number = self.chosen.operation.number;
        let mut undoing = Operation::new(self.workspace, self.store, None);
        undoing.undoes(number, &self.chosen.earlier);
        for lost in self.unreachable_after(refs)? {
            undoing.move_ref(RefName::kept(lost), SnapshotId(lost))?;
        }
        for change in refs {
            match change.after {
                Some(id) => undoing.move_ref(change.name.clone(), SnapshotId(id))?,
                None => undoing.drop_ref(change.name.clone())?,
            }
        }
        let words = format!("after operation {number} was undone");
        let ending = FinalSnapshot { message: &words, ..FinalSnapshot::default() };
        let mut open = self.touched()?;
        let mut planned = PlannedFiles { actions: Vec::new(), asked: true };
        let mut in_memory = None;
        let chat_of = |change: &&FileChange| {
            let path = LibraryPath::parse(&change.path).ok()?;
            TimelineName::of_file(&path).filter(TimelineName::is_chat)
        };
        // Lorebooks and groups are planned before chats, because the snapshot of a chat includes
        // its lorebook and its group.
        for change in changes.iter().filter(|change| chat_of(change).is_none()) {
            collect_open(&mut in_memory, self.add_file(change, &mut undoing, &mut planned))?;
        }
        for (change, timeline) in
            changes.iter().filter_map(|change| Some((change, chat_of(&change)?)))
        {
            let before = undoing.point();
            collect_open(&mut in_memory, self.add_file(change, &mut undoing, &mut planned))?;
            if let Some(library) = self.library {
                undoing.end_with(library, &timeline, &ending)?;
            }
            undoing.release(&before)?;
            open.remove(&timeline);
        }
        if let Some(refusal) = in_memory {
            return Err(engine::Error::from(refusal).into());
        }
        if let Some(library) = self.library {
            for timeline in open {
                undoing.end_with(library, &timeline, &ending)?;
            }
        }
        let turns: HashMap<_, _> =
            changes.iter().enumerate().map(|(turn, change)| (change.path.as_str(), turn)).collect();
        undoing.order_files(|path| turns.get(path.as_str()).copied());
        planned.actions.sort_by_key(|action| turns.get(action.path.as_str()).copied());
        let done = undoing.finish(held)?;
        Ok((planned, done.number))
    }

    fn add_file(
        &self,
        change: &FileChange,
        undoing: &mut Operation<'u>,
        planned: &mut PlannedFiles,
    ) -> Result<()> {
        let file = self.plan_file(change, || undoing.running_on(&self.root))?;
        planned.add(&file);
        // An active queue is allowed: the files are unchanged since the operation wrote them, so
        // ST-Auto-Recap has not processed the queue.
        let permissions = WritePermissions { closed: self.closed, active_queue: true };
        undoing.write_stored_files(&self.root, vec![file], &[], permissions, "")?;
        Ok(())
    }

    /// Returns the timelines whose branch or files the command changed. Timelines of which the
    /// command only created a snapshot at its start are excluded.
    fn touched(&self) -> Result<BTreeSet<TimelineName>> {
        let effect = &self.chosen.operation.effect;
        let is_meant = |change: &&RefChange| {
            change.name.is_branch() && !self.chosen.optional.contains(&change.name)
        };
        let mut timelines = BTreeSet::new();
        for change in effect.refs.iter().filter(is_meant) {
            for id in [change.before, change.after].into_iter().flatten() {
                let found = name_lookup::find(self.store, SnapshotId(id))?;
                timelines.extend(found.map(|found| found.timeline));
            }
        }
        for change in &effect.files {
            timelines.extend(TimelineName::of_file(&LibraryPath::parse(&change.path)?));
        }
        Ok(timelines)
    }

    /// Returns the commits that no branch or tag reaches after the changes in `refs`.
    fn unreachable_after(&self, refs: &[RefChange]) -> Result<Vec<ObjectId>> {
        let mut tips: HashMap<RefName, ObjectId> = HashMap::new();
        for prefix in ["refs/heads/", "refs/tags/"] {
            tips.extend(self.store.refs(prefix)?.refs);
        }
        for change in refs {
            match change.after {
                Some(id) => tips.insert(change.name.clone(), id),
                None => tips.remove(&change.name),
            };
        }
        let reachable = History::load(self.store)?.past(tips.into_values().map(SnapshotId));
        // The set removes duplicates: a branch and a tag may have pointed to the same commit.
        let lost: BTreeSet<_> = refs.iter().filter_map(|change| change.before).collect();
        Ok(lost.into_iter().filter(|id| !reachable.contains(&SnapshotId(*id))).collect())
    }
}

/// If a file was refused because a running SillyTavern would overwrite it, adds the file to `open`,
/// so that one error lists all such files. Returns any other error immediately.
fn collect_open(open: &mut Option<SillyTavernRuns>, planned: Result<()>) -> Result<()> {
    match planned {
        Err(Error::Engine(engine::Error::SillyTavernRuns(refusal))) => {
            match open {
                Some(first) => first.paths.extend(refusal.paths),
                None => *open = Some(refusal),
            }
            Ok(())
        }
        planned => planned,
    }
}
