//! Take an operation back: refs go where they were, files that it wrote get their former bytes.
//!
//! Nothing is guessed: a ref or file that changed since stops it before anything moves. What the operation made stays in the store,
//! kept by a ref, so that the undoing can itself be undone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::archive::SnapshotId;
use crate::engine::files::{self, Closed, FileAction, FilePlan};
use crate::engine::operation::log::{self, Logged};
use crate::engine::operation::{self, Operation, bytes_of};
use crate::engine::reload_page::{Written, reload};
use crate::engine::{self, Workspace};
use crate::history::History;
use crate::rules::Finding;
use crate::st::LibraryPath;
use crate::store::{Kept, LoggedOperation, ObjectId, RefChange, RefName, Store};
use crate::verbs::{Result, UndoError};

/// What to take back.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The operation's number; none: the last one that stands and is no undoing itself.
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
        return Ok(Report { operation, refs, files, findings: Vec::new(), dry_run: false });
    }
    let operation = choose(&store, options.operation)?;
    let number = operation.number;

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
            return Err(UndoError::ChangedSince { number, what: change.name.to_string() }.into());
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
    let plan = plan_files(&store, &root, &operation)?;
    // What was never written has nothing to be told of.
    let there = plan.iter().filter(|file| file.now.is_some() || file.new.is_some());
    let files: Vec<FileAction> = there.map(FilePlan::action).collect();

    if let Some(held) = &held {
        let mut undoing = Operation::new(workspace, &store, None);
        undoing.undoes(number);
        for lost in unreachable_after(&store, &refs)? {
            undoing.move_ref(RefName::kept(lost), SnapshotId(lost))?;
        }
        for change in &refs {
            match change.after {
                Some(id) => undoing.move_ref(change.name.clone(), SnapshotId(id))?,
                None => undoing.drop_ref(change.name.clone())?,
            }
        }
        undoing.write_files(&root, plan, &[], options.closed, "")?;
        undoing.finish(held)?;
    }
    let mut findings = Vec::new();
    if !files.is_empty() && !options.dry_run {
        findings.push(reload(&root, "files", Written::REPLACED));
    }
    Ok(Report { operation, refs, files, findings, dry_run: options.dry_run })
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

fn choose(store: &Store, number: Option<u64>) -> Result<LoggedOperation> {
    let (entries, _) = log::load(store)?;
    let stands = |entry: &Logged| {
        let operation = &entry.operation;
        entry.undone_by.is_none() && operation.undoes.is_none() && operation.finishes.is_none()
    };
    let entry = match number {
        None => entries.into_iter().find(stands).ok_or(UndoError::Nothing)?,
        Some(number) => entries
            .into_iter()
            .find(|entry| entry.operation.number == number)
            .ok_or(engine::Error::NoSuchOperation { number })?,
    };
    match entry.undone_by {
        Some(by) => Err(UndoError::Already { number: entry.operation.number, by }.into()),
        None => Ok(entry.operation),
    }
}

fn plan_files(
    store: &Store,
    root: &Path,
    operation: &LoggedOperation,
) -> Result<Vec<FilePlan<'static>>> {
    let reader = store.reader();
    let mut plan = Vec::new();
    // What was written last is taken away first.
    for change in operation.files.iter().rev() {
        let path = LibraryPath::parse(&change.path)?;
        let now = files::read(root, &path)?;
        let bytes = |kept: &Option<Kept>| {
            kept.as_ref().map(|kept| bytes_of(&reader, kept, &path)).transpose()
        };
        let (written, new) = (bytes(&change.after)?, bytes(&change.before)?);
        // Interrupted between its log entry and its writing, an operation may have left the former bytes.
        if now != written && now != new {
            return Err(UndoError::ChangedSince {
                number: operation.number,
                what: change.path.clone(),
            }
            .into());
        }
        let known = Some(change.reversed());
        plan.push(FilePlan { known, ..FilePlan::new(path, now, new.map(Cow::Owned)) });
    }
    Ok(plan)
}
