//! Take an operation back: refs go where they were, files that it wrote get their former bytes.
//!
//! Nothing is guessed: a ref or file that changed since stops it before anything moves. What the operation made stays in the store,
//! kept by a ref, so that the undoing can itself be undone.

mod choose;
mod since;
mod used_lorebooks;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::archive::SnapshotId;
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::operation::log::{self, Logged};
use crate::engine::operation::marks::{self, Which};
use crate::engine::operation::{self, Ending, FileStep, Held, Operation, bytes_of};
use crate::engine::reload_page::{Written, reload};
use crate::engine::sillytavern_runs::SillyTavernRuns;
use crate::engine::{self, Workspace};
use crate::history::{History, name_lookup};
use crate::rules::{Code, Finding};
use crate::st::{self, Fingerprint, Library, LibraryPath, TimelineName};
use crate::store::{FileChange, LoggedOperation, ObjectId, RefChange, RefName, Store};
use crate::verbs::{Result, UndoError};
use choose::{Choice, Chosen, choose, moved_since, undone_below};

/// What to take back.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The operation's number; none: the last one that stands, is no undoing itself and was asked for by somebody.
    pub operation: Option<u64>,
    /// Whether SillyTavern has the chats closed.
    #[serde(flatten)]
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was taken back.
#[derive(Default)]
pub struct Report {
    /// The operation, with all parts of its command. `None`: nothing was left to undo.
    pub operation: Option<LoggedOperation>,
    /// The operation was undone before, so there was nothing to do.
    pub already: bool,
    /// The undoing: the number of the operation that has to be undone to do it again. `None` if it was only planned.
    pub redo: Option<u64>,
    /// Later ones that nobody asked for; they stay.
    pub passed_by: Vec<u64>,
    /// The refs that moved.
    pub refs: Vec<RefChange>,
    /// The files that were written or removed.
    pub files: Vec<FileAction>,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Take an operation back.
pub fn undo(workspace: &Workspace, options: &Options) -> Result<Report> {
    let (store, held) = workspace.open(options.dry_run)?;
    if let Some(held) = &held
        && let Some(done) = held.done_before(workspace, &store)?
        && let Some(number) = done.effect.undoes
    {
        // It was interrupted, and is done by now: another one is not what was asked for.
        let operation = Some(log::find(&store, number)?);
        let (refs, files) = (done.effect.refs.clone(), operation::actions_of(&store, &done)?);
        let redo = Some(done.number);
        return Ok(Report { operation, redo, refs, files, ..Report::default() });
    }
    let dry_run = options.dry_run;
    let (entries, _) = log::load(&store)?;
    let chosen = match choose(&entries, options.operation)? {
        Choice::Undo(chosen) => chosen,
        Choice::Nothing => return Ok(Report { dry_run, ..Report::default() }),
        Choice::Already { operation, by } => {
            let (operation, redo) = (Some(operation), Some(by));
            return Ok(Report { operation, already: true, redo, dry_run, ..Report::default() });
        }
    };
    if let Some((first, undone)) = undone_below(&entries, &chosen) {
        let number = chosen.operation.number;
        return Err(UndoError::UndoneBelow { number, first, undone }.into());
    }
    let library =
        if chosen.operation.effect.files.is_empty() { None } else { Some(workspace.library()?) };
    let root = library.as_ref().map_or_else(PathBuf::new, |library| library.root().to_owned());
    let (mut refs, moved) = plan_refs(&store, &entries, &chosen)?;
    let (mut changes, saved, mut findings) = look_at_files(&store, &root, &chosen.operation)?;
    if !moved.is_empty() || !saved.is_empty() {
        let since = since::Since { workspace, store: &store, entries: &entries, root: &root };
        return Err(since.refuse(&chosen, &moved, &saved)?.into());
    }
    if let Some(library) = &library {
        let number = chosen.operation.number;
        let kept =
            used_lorebooks::keep(&store, library, &entries, number, &mut changes, &mut refs)?;
        findings.extend(kept);
    }
    let undoing = Undoing {
        workspace,
        store: &store,
        library: library.as_ref(),
        root: &root,
        closed: options.closed,
        // A page that has another mark in memory is asked anyhow, and what was there comes back to the byte.
        mark: marks::fresh(&format!("undo {}", chosen.operation.number), workspace),
    };
    let (done, redo) = match &held {
        Some(held) => undoing.carry_out(held, &chosen, &refs, &changes)?,
        None => (undoing.plan(&changes)?, None),
    };
    if !done.actions.is_empty() && !options.dry_run && options.closed != Closed::Rereads {
        let written = Written { asked: done.asked, ..Written::REPLACED };
        findings.push(reload(&root, "files", written));
    }
    let Chosen { operation, passed_by, .. } = chosen;
    let (operation, files) = (Some(operation), done.actions);
    Ok(Report { operation, already: false, redo, passed_by, refs, files, findings, dry_run })
}

/// Returns the way back of every ref, and the refs that moved since.
fn plan_refs(
    store: &Store,
    entries: &[Logged],
    chosen: &Chosen,
) -> Result<(Vec<RefChange>, Vec<RefChange>)> {
    let (mut refs, mut moved) = (Vec::new(), Vec::new());
    for change in &chosen.operation.effect.refs {
        // The refs that keep things stay: that is what they are for.
        if change.name.is_kept() {
            continue;
        }
        let now = store.ref_target(&change.name)?;
        let since = moved_since(entries, chosen.operation.number, &change.name);
        if now == change.before && !since.by_standing {
            // Led back already, when it was found interrupted.
            continue;
        }
        let is_led_back = !since.by_standing && since.left_at == Some(now);
        if now != change.after && !is_led_back {
            if !chosen.optional.contains(&change.name) {
                moved.push(change.clone());
            }
            continue;
        }
        if let Some(id) = change.before
            && !store.reader().has(id)?
        {
            return Err(crate::store::Error::Missing { id }.into());
        }
        refs.push(RefChange { name: change.name.clone(), before: now, after: change.before });
    }
    Ok((refs, moved))
}

/// Returns the way back of every file, last written first; those that somebody saved since; and which the store has lost.
fn look_at_files(
    store: &Store,
    root: &Path,
    operation: &LoggedOperation,
) -> Result<(Vec<FileChange>, Vec<FileChange>, Vec<Finding>)> {
    let (mut changes, mut saved, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for change in operation.effect.files.iter().rev() {
        let path = LibraryPath::parse(&change.path)?;
        let step = match FileStep::of(store, change) {
            Ok(step) => step,
            // Without its bytes it can neither be brought back nor removed: it would be gone.
            Err(error) if operation::is_lost(&error) && st::is_attachment(&path) => {
                findings.push(left_attachment(&path, &error.to_string()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let now = Fingerprint::of_file(root, &path)?;
        // Interrupted between its log entry and its writing, an operation may have left the former bytes.
        if now == step.after || now == step.before {
            changes.push(change.reversed())
        } else {
            saved.push(change.clone())
        }
    }
    Ok((changes, saved, findings))
}

/// What an undoing works on. Files are planned one after the other, so that memory does not grow with their number.
struct Undoing<'u> {
    workspace: &'u Workspace,
    store: &'u Store,
    library: Option<&'u Library>,
    root: &'u Path,
    closed: Closed,
    mark: String,
}

/// What was planned for the files.
struct PlannedFiles {
    actions: Vec<FileAction>,
    /// SillyTavern asks before its page writes back what is replaced.
    asked: bool,
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
    fn plan(&self, changes: &[FileChange]) -> Result<PlannedFiles> {
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
    fn carry_out(
        &self,
        held: &Held,
        chosen: &Chosen,
        refs: &[RefChange],
        changes: &[FileChange],
    ) -> Result<(PlannedFiles, Option<u64>)> {
        let number = chosen.operation.number;
        let mut undoing = Operation::new(self.workspace, self.store, None);
        undoing.undoes(number, chosen.earlier.clone());
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
            Err(crate::verbs::Error::Engine(engine::Error::SillyTavernRuns(refusal))) => {
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

fn left_attachment(path: &LibraryPath, why: &str) -> Finding {
    let message = format!("the store has lost this attachment, so it was left as it is: {why}");
    Finding::new(Code::AttachmentLost, path.as_str(), message)
        .remedy("everything else was undone; remove the file yourself if you do not want it")
}
