//! What changed between two snapshots, or between one and the files now.

use super::{Result, Workspace, resolve};
use crate::archive::diff::{Change, Side, diff as compare};
use crate::archive::{Contents, Snapshot, Tree};
use crate::st::{self, Disk};
use crate::store::Store;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// The snapshot before.
    pub before: String,
    /// The snapshot after; none: the files now.
    pub after: Option<String>,
}

/// What changed.
pub struct Report {
    /// The snapshot before.
    pub before: Snapshot,
    /// The snapshot after; none: the files now.
    pub after: Option<Snapshot>,
    /// Every change.
    pub changes: Vec<Change>,
}

/// Compare.
pub fn diff(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let library = workspace.library().ok();
    let before = resolve::snapshot(&options.before, &store, library.as_ref())?;
    let old = contents(&store, &before)?;
    let after = match &options.after {
        Some(name) => Some(resolve::snapshot(name, &store, library.as_ref())?),
        None => None,
    };
    let changes = match &after {
        Some(after) => compare(&Side::stored(&old), &Side::stored(&contents(&store, after)?)),
        None => {
            let library = workspace.library()?;
            let captured = st::capture(&library, &library.scan()?.groups, &before.timeline, &Disk)?;
            compare(&Side::stored(&old), &Side::captured(&captured))
        }
    };
    Ok(Report { before, after, changes })
}

fn contents(store: &Store, snapshot: &Snapshot) -> Result<Contents> {
    Ok(Tree::open(&store.reader(), snapshot.tree)?.materialise(&store.reader())?)
}
