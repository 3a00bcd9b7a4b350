//! Take an operation back: refs go where they were, files that it wrote get their former bytes.
//!
//! Nothing is guessed: a ref or file that changed since stops it before anything moves. What the operation made stays in the store,
//! kept by a ref, so that the undoing can itself be undone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::archive::SnapshotId;
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::operation::log::{self, Logged};
use crate::engine::operation::marks::{self, Which};
use crate::engine::operation::{self, Ending, Operation, bytes_of};
use crate::engine::reload_page::{Written, reload};
use crate::engine::{self, Workspace};
use crate::history::{History, name_lookup};
use crate::rules::{Code, Finding, Level};
use crate::st::{self, LibraryPath, TimelineName};
use crate::store::{Kept, LoggedOperation, ObjectId, RefChange, RefName, Store};
use crate::verbs::{Result, UndoError};

/// What to take back.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The operation's number; none: the last one that stands, is no undoing itself and was asked for by somebody.
    pub operation: Option<u64>,
    /// Whether SillyTavern has the chats closed.
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was taken back.
pub struct Report {
    /// The operation.
    pub operation: LoggedOperation,
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
        && let Some(number) = done.undoes
    {
        // It was interrupted, and is done by now: another one is not what was asked for.
        let operation = log::find(&store, number)?;
        let (refs, files) = (done.refs.clone(), operation::actions_of(&store, &done)?);
        let (passed_by, findings) = Default::default();
        return Ok(Report { operation, passed_by, refs, files, findings, dry_run: false });
    }
    let (operation, passed_by) = choose(&store, options.operation)?;
    let number = operation.number;
    let changed = |what: String| UndoError::ChangedSince { number, what, by: passed_by.clone() };

    let mut refs: Vec<RefChange> = Vec::new();
    for change in &operation.refs {
        // The refs that keep things stay: that is what they are for.
        if change.name.is_kept() {
            continue;
        }
        let now = store.ref_target(&change.name)?;
        if now == change.before {
            // Led back already, when it was found interrupted.
            continue;
        }
        if now != change.after {
            return Err(changed(change.name.to_string()).into());
        }
        if let Some(id) = change.before
            && !store.reader().has(id)?
        {
            return Err(crate::store::Error::Missing { id }.into());
        }
        refs.push(change.reversed());
    }
    let library = if operation.files.is_empty() { None } else { Some(workspace.library()?) };
    let root = library.as_ref().map_or_else(Default::default, |library| library.root().to_owned());
    let (mut plan, mut findings) = plan_files(&store, &root, &operation, &changed)?;
    // A page that has another mark in memory is asked anyhow, and what was there comes back to the byte.
    let mark = marks::fresh(&format!("undo {number}"), workspace);
    marks::give(&mut plan, options.closed, &root, &mark, Which::Unmarked);
    // What was never written has nothing to be told of.
    let there = plan.iter().filter(|file| file.now.is_some() || file.new.is_some());
    let files: Vec<FileAction> = there.map(FilePlan::action).collect();
    let asked = plan.iter().all(|file| !file.replaces() || file.is_asked_about());

    if let Some(held) = &held {
        let mut undoing = Operation::new(workspace, &store, None);
        undoing.undoes(number);
        // What is taken back stands as it was written, so nothing came of the queue since.
        let leave = Leave { closed: options.closed, active_queue: true };
        for lost in unreachable_after(&store, &refs)? {
            undoing.move_ref(RefName::kept(lost), SnapshotId(lost))?;
        }
        for change in &refs {
            match change.after {
                Some(id) => undoing.move_ref(change.name.clone(), SnapshotId(id))?,
                None => undoing.drop_ref(change.name.clone())?,
            }
        }
        undoing.write_files(&root, plan, &[], leave, "")?;
        let words = format!("after operation {number} was undone");
        let ending = Ending { message: &words, ..Ending::default() };
        for timeline in touched(&store, &operation)? {
            if let Some(library) = &library {
                undoing.end_with(library, &timeline, &ending)?;
            }
        }
        undoing.finish(held)?;
    }
    if !files.is_empty() && !options.dry_run && options.closed != Closed::Rereads {
        findings.push(reload(&root, "files", Written { asked, ..Written::REPLACED }));
    }
    Ok(Report { operation, passed_by, refs, files, findings, dry_run: options.dry_run })
}

/// The timelines whose branch or chat an operation changed.
fn touched(store: &Store, operation: &LoggedOperation) -> Result<BTreeSet<TimelineName>> {
    let mut timelines = BTreeSet::new();
    for change in operation.refs.iter().filter(|change| change.name.is_branch()) {
        for id in [change.before, change.after].into_iter().flatten() {
            timelines.extend(name_lookup::find(store, SnapshotId(id))?.map(|found| found.timeline));
        }
    }
    for change in &operation.files {
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

/// Whether nobody asked for it. The first version did not note that, but who was at work.
fn is_automatic(operation: &LoggedOperation) -> bool {
    operation.automatic || operation.command.get(1).is_some_and(|word| word == "watch")
}

/// The operation, and later ones that nobody asked for.
fn choose(store: &Store, number: Option<u64>) -> Result<(LoggedOperation, Vec<u64>)> {
    let (entries, _) = log::load(store)?;
    let stands = |entry: &Logged| {
        let operation = &entry.operation;
        entry.undone_by.is_none() && operation.undoes.is_none() && operation.finishes.is_none()
    };
    let mut passed_by = Vec::new();
    let entry = match number {
        None => {
            let standing: Vec<_> = entries.into_iter().filter(stands).collect();
            let asked_for = standing.iter().position(|entry| !is_automatic(&entry.operation));
            let at = asked_for.ok_or(UndoError::Nothing)?;
            passed_by.extend(standing[..at].iter().map(|entry| entry.operation.number));
            standing.into_iter().nth(at).ok_or(UndoError::Nothing)?
        }
        Some(number) => entries
            .into_iter()
            .find(|entry| entry.operation.number == number)
            .ok_or(engine::Error::NoSuchOperation { number })?,
    };
    match entry.undone_by {
        Some(by) => Err(UndoError::Already { number: entry.operation.number, by }.into()),
        None => Ok((entry.operation, passed_by)),
    }
}

fn plan_files(
    store: &Store,
    root: &Path,
    operation: &LoggedOperation,
    changed: &dyn Fn(String) -> UndoError,
) -> Result<(Vec<FilePlan<'static>>, Vec<Finding>)> {
    let reader = store.reader();
    let (mut plan, mut findings) = (Vec::new(), Vec::new());
    // What was written last is taken away first.
    for change in operation.files.iter().rev() {
        let path = LibraryPath::parse(&change.path)?;
        let now = files::read(root, &path)?;
        let bytes = |kept: &Option<Kept>| {
            kept.as_ref().map(|kept| bytes_of(&reader, kept, &path)).transpose()
        };
        let kept = bytes(&change.after).and_then(|written| Ok((written, bytes(&change.before)?)));
        let (written, new) = match kept {
            Ok(kept) => kept,
            // Without its bytes it can neither be brought back nor removed: it would be gone.
            Err(error) if operation::is_lost(&error) && st::is_attachment(&path) => {
                findings.push(left_attachment(&path, &error.to_string()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // Interrupted between its log entry and its writing, an operation may have left the former bytes.
        if now != written && now != new {
            return Err(changed(change.path.clone()).into());
        }
        let known = Some(change.reversed());
        plan.push(FilePlan { known, ..FilePlan::new(path, now, new.map(Cow::Owned)) });
    }
    Ok((plan, findings))
}

fn left_attachment(path: &LibraryPath, why: &str) -> Finding {
    let message = format!("the store has lost this attachment, so it was left as it is: {why}");
    Finding::new(Code::AttachmentLost, Level::Error, path.as_str(), message)
        .remedy("everything else was undone; remove the file yourself if you do not want it")
}
