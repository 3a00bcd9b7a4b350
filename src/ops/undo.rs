//! Take an operation back: refs go where they were, files that it wrote get their former bytes.
//!
//! Nothing is guessed: a ref or file that changed since stops it before anything moves. What the operation made stays in the store,
//! kept by a ref, so that the undoing can itself be undone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::files::{self, FileAction, FilePlan};
use super::open_page::{Written, reload};
use super::operations::{self, Entry};
use super::{Error, Result, Workspace};
use crate::archive::{History, Snapshot, SnapshotId, Tree};
use crate::rules::Finding;
use crate::st::LibraryPath;
use crate::store::{Effect, FileChange, Kept, ObjectId, Operation, RefChange, RefName, Store};

/// What to take back.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The operation's number; none: the last one that stands and is no undoing itself.
    pub operation: Option<u64>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was taken back.
pub struct Report {
    /// The operation.
    pub operation: Operation,
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
    let store = workspace.open_store()?;
    let lock = if options.dry_run { None } else { Some(workspace.lock(&store)?) };
    let operation = choose(&store, options.operation)?;
    let number = operation.number;

    let mut refs: Vec<RefChange> = Vec::new();
    for change in &operation.refs {
        // The refs that keep things stay: that is what they are for.
        if change.name.is_kept() {
            continue;
        }
        if store.ref_target(&change.name)? != change.after {
            return Err(Error::ChangedSince { number, what: change.name.to_string() });
        }
        if let Some(id) = change.before.filter(|id| !store.reader().exists(*id)) {
            return Err(crate::store::Error::Missing { id }.into());
        }
        refs.push(RefChange {
            name: change.name.clone(),
            before: change.after,
            after: change.before,
        });
    }
    let library = if operation.files.is_empty() { None } else { Some(workspace.library()?) };
    let root = library.as_ref().map_or_else(Default::default, |library| library.root().to_owned());
    let plan = plan_files(&store, &root, &operation)?;

    if let Some(lock) = &lock {
        let mut effect =
            Effect { refs: refs.clone(), undoes: Some(number), files: reversed(&operation.files) };
        for lost in unreachable_after(&store, &refs)? {
            let name = RefName::kept(lost);
            let before = store.ref_target(&name)?;
            effect.refs.push(RefChange { name, before, after: Some(lost) });
        }
        store.transact(lock, workspace.timestamp(), effect)?;
        files::write(&root, &plan)?;
    }
    // What was never written has nothing to be told of.
    let there = plan.iter().filter(|file| file.now.is_some() || file.new.is_some());
    let files: Vec<FileAction> = there.map(FilePlan::action).collect();
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
    let mut reachable = HashSet::new();
    let mut open: Vec<_> = tips.into_values().collect();
    while let Some(id) = open.pop() {
        if reachable.insert(id) {
            let parents = history
                .get(SnapshotId(id))
                .map(|snapshot| snapshot.parents.iter().map(|parent| parent.0));
            open.extend(parents.into_iter().flatten());
        }
    }
    // A branch and a tag may have named the same one.
    let lost: BTreeSet<_> = refs.iter().filter_map(|change| change.before).collect();
    Ok(lost.into_iter().filter(|id| !reachable.contains(id)).collect())
}

fn choose(store: &Store, number: Option<u64>) -> Result<Operation> {
    let (entries, _) = operations::load(store)?;
    let stands = |entry: &Entry| entry.undone_by.is_none() && entry.operation.undoes.is_none();
    let entry = match number {
        None => entries.into_iter().find(stands).ok_or(Error::NothingToUndo)?,
        Some(number) => entries
            .into_iter()
            .find(|entry| entry.operation.number == number)
            .ok_or(Error::NoSuchOperation { number })?,
    };
    match entry.undone_by {
        Some(by) => Err(Error::UndoneAlready { number: entry.operation.number, by }),
        None => Ok(entry.operation),
    }
}

fn plan_files(store: &Store, root: &Path, operation: &Operation) -> Result<Vec<FilePlan<'static>>> {
    let mut plan = Vec::new();
    for change in &operation.files {
        let path = LibraryPath::parse(&change.path)?;
        let now = files::read(root, &path)?;
        let written = bytes_of(store, change.after.as_ref(), &path)?;
        let new = bytes_of(store, change.before.as_ref(), &path)?;
        // Interrupted between its log entry and its writing, an operation may have left the former bytes.
        if now != written && now != new {
            return Err(Error::ChangedSince {
                number: operation.number,
                what: change.path.clone(),
            });
        }
        plan.push(FilePlan { path, now, new: new.map(Cow::Owned), stored_in: None });
    }
    Ok(plan)
}

fn bytes_of(store: &Store, kept: Option<&Kept>, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
    let reader = store.reader();
    let parse = |id: &str| {
        ObjectId::from_hex(id.as_bytes()).map_err(|_| Error::NoSuchSnapshot { name: id.to_owned() })
    };
    match kept {
        None => Ok(None),
        Some(Kept::Blob(id)) => Ok(Some(reader.blob(parse(id)?)?)),
        Some(Kept::Snapshot(id)) => {
            let snapshot = Snapshot::read(&reader.commit(parse(id)?)?)?;
            let tree = Tree::open(&reader, snapshot.tree)?;
            let mut records = tree.manifest.files.iter();
            match records.find(|record| record.path == path.as_str()) {
                Some(record) => Ok(Some(tree.rebuild(&reader, record)?.bytes)),
                None => Err(Error::NoSuchPart { snapshot: id.clone(), part: "file of that name" }),
            }
        }
    }
}

fn reversed(files: &[FileChange]) -> Vec<FileChange> {
    let reverse = |change: &FileChange| FileChange {
        path: change.path.clone(),
        before: change.after.clone(),
        after: change.before.clone(),
    };
    files.iter().map(reverse).collect()
}
