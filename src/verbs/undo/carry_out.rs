//! Carrying an undo out, as an operation that can itself be undone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::choose::Chosen;
use super::put_back::PutBack;
use crate::archive::SnapshotId;
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::operation::marks::{self, Which};
use crate::engine::operation::{Ending, Held, Operation, bytes_of};
use crate::engine::sillytavern_runs::SillyTavernRuns;
use crate::engine::{self, Workspace};
use crate::history::{History, name_lookup};
use crate::st::{self, Library, LibraryPath, TimelineName};
use crate::store::{FileChange, ObjectId, RefChange, RefName, Store};
use crate::verbs::{Error, Result};

/// What an undoing works on. Files are planned one after the other, so that memory does not grow with their number.
pub(super) struct Undoing<'u> {
    pub workspace: &'u Workspace,
    pub store: &'u Store,
    pub library: Option<&'u Library>,
    pub root: &'u Path,
    pub closed: Closed,
    /// What chats get that would have the mark which is there.
    pub mark: String,
}

/// What was planned for the files.
pub(super) struct PlannedFiles {
    pub actions: Vec<FileAction>,
    /// SillyTavern asks before its page writes back what is replaced.
    pub asked: bool,
}

impl PlannedFiles {
    fn add(&mut self, file: &FilePlan<'_>) {
        // What was never written has nothing to be told of.
        if file.now.is_some() || file.new_bytes().is_some() {
            self.actions.push(file.action());
        }
        self.asked &= !file.replaces() || file.is_asked_about();
    }
}

impl<'u> Undoing<'u> {
    /// Looks at what would become of the files.
    pub(super) fn plan(&self, changes: &[FileChange]) -> Result<PlannedFiles> {
        let mut planned = PlannedFiles { actions: Vec::new(), asked: true };
        let mut running = None;
        for change in changes {
            let seen = || *running.get_or_insert_with(|| st::running_on(self.root));
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
        let now = files::read(self.root, &path)?;
        let reader = self.store.reader();
        let new = change.after.as_ref().map(|kept| bytes_of(&reader, kept, &path)).transpose()?;
        let known = Some(change.clone());
        let mut file = FilePlan { known, ..FilePlan::new(path, now, new.map(Cow::Owned)) };
        let plan = std::slice::from_mut(&mut file);
        marks::give(plan, self.closed, &self.mark, Which::Unmarked, running);
        Ok(file)
    }

    /// Does it; what became of the files, and the number of the undoing.
    pub(super) fn carry_out(
        &self,
        held: &Held,
        chosen: &Chosen,
        PutBack { refs, files: changes, .. }: &PutBack,
    ) -> Result<(PlannedFiles, Option<u64>)> {
        let number = chosen.operation.number;
        let mut undoing = Operation::new(self.workspace, self.store, None);
        undoing.undoes(number, &chosen.earlier);
        for lost in unreachable_after(self.store, refs)? {
            undoing.move_ref(RefName::kept(lost), SnapshotId(lost))?;
        }
        for change in refs {
            match change.after {
                Some(id) => undoing.move_ref(change.name.clone(), SnapshotId(id))?,
                None => undoing.drop_ref(change.name.clone())?,
            }
        }
        let words = format!("after operation {number} was undone");
        let ending = Ending { message: &words, ..Ending::default() };
        let mut open = touched(self.store, chosen)?;
        let mut planned = PlannedFiles { actions: Vec::new(), asked: true };
        let mut in_memory = InMemory::default();
        let chat_of = |change: &&FileChange| {
            let path = LibraryPath::parse(&change.path).ok()?;
            TimelineName::of_file(&path).filter(TimelineName::is_chat)
        };
        // A chat is looked at together with its lorebook and its group.
        for change in changes.iter().filter(|change| chat_of(change).is_none()) {
            in_memory.tell(self.add_file(change, &mut undoing, &mut planned))?;
        }
        for (change, timeline) in
            changes.iter().filter_map(|change| Some((change, chat_of(&change)?)))
        {
            let before = undoing.point();
            in_memory.tell(self.add_file(change, &mut undoing, &mut planned))?;
            if let Some(library) = self.library {
                undoing.end_with(library, &timeline, &ending)?;
            }
            undoing.release(&before)?;
            open.remove(&timeline);
        }
        in_memory.refuse()?;
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
        let file = self.plan_file(change, || undoing.running_on(self.root))?;
        planned.add(&file);
        // What is taken back stands as it was written, so nothing came of the queue since.
        let leave = Leave { closed: self.closed, active_queue: true };
        undoing.write_stored_files(self.root, vec![file], &[], leave, "")?;
        Ok(())
    }
}

/// The files that SillyTavern, which runs, would write back: all of them are named.
#[derive(Default)]
struct InMemory(Option<SillyTavernRuns>);

impl InMemory {
    fn tell(&mut self, planned: Result<()>) -> Result<()> {
        match planned {
            Err(Error::Engine(engine::Error::SillyTavernRuns(refusal))) => {
                match &mut self.0 {
                    Some(first) => first.paths.extend(refusal.paths),
                    None => self.0 = Some(refusal),
                }
                Ok(())
            }
            planned => planned,
        }
    }

    fn refuse(self) -> Result<()> {
        self.0.map_or(Ok(()), |refusal| Err(engine::Error::from(refusal).into()))
    }
}

/// Returns the timelines whose branch or chat a command changed; not those of which it only took a snapshot first.
fn touched(store: &Store, chosen: &Chosen) -> Result<BTreeSet<TimelineName>> {
    let operation = &chosen.operation;
    let is_meant =
        |change: &&RefChange| change.name.is_branch() && !chosen.optional.contains(&change.name);
    let mut timelines = BTreeSet::new();
    for change in operation.effect.refs.iter().filter(is_meant) {
        for id in [change.before, change.after].into_iter().flatten() {
            timelines.extend(name_lookup::find(store, SnapshotId(id))?.map(|found| found.timeline));
        }
    }
    for change in &operation.effect.files {
        timelines.extend(TimelineName::of_file(&LibraryPath::parse(&change.path)?));
    }
    Ok(timelines)
}

/// The commits that no branch and no tag would lead to any more.
fn unreachable_after(store: &Store, refs: &[RefChange]) -> Result<Vec<ObjectId>> {
    let history = History::load(store)?;
    let mut tips: HashMap<RefName, ObjectId> = HashMap::new();
    for prefix in ["refs/heads/", "refs/tags/"] {
        tips.extend(store.refs(prefix)?.refs);
    }
    for change in refs {
        match change.after {
            Some(id) => tips.insert(change.name.clone(), id),
            None => tips.remove(&change.name),
        };
    }
    let reachable = history.past(tips.into_values().map(SnapshotId));
    // A branch and a tag may have named the same one.
    let lost: BTreeSet<_> = refs.iter().filter_map(|change| change.before).collect();
    Ok(lost.into_iter().filter(|id| !reachable.contains(&SnapshotId(*id))).collect())
}
