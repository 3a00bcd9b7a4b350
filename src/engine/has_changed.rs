//! Whether the library has something that is not stored yet.

use super::cache::Cache;
use super::changed_timelines::{Branches, look_from, touched};
use super::deleted_timelines::deleted_since;
use super::{Include, Result, Workspace};
use crate::archive::Kind;

/// Whether a snapshot would have anything to take. Nothing is locked for it, and what is learnt of unchanged files is kept.
pub(crate) fn has_changed(workspace: &Workspace) -> Result<bool> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let store = workspace.open_store()?;
    if !store.unfinished()?.is_empty() {
        return Ok(true);
    }
    let include = Include::of(Some(&store));
    let mut cache = Some(Cache::load(&store));
    if cache.as_ref().is_some_and(|cache| !deleted_since(cache, &library, &scan).is_empty()) {
        return Ok(true);
    }
    let branches = Branches::read(&store)?;
    let (names, groups) = (include.timelines(&scan), &scan.groups);
    let touched = match &cache {
        Some(cache) => touched(&store, &library, groups, &names, &branches, cache)?,
        None => names.iter().collect(),
    };
    for name in touched {
        let head = branches.head(&store, name)?;
        let look = look_from(Some(&store), &library, groups, name, head, &mut cache)?;
        let is_back = look.head.as_ref().is_some_and(|head| head.kind == Kind::DELETED);
        if look.is_new() || look.astray || is_back {
            return Ok(true);
        }
    }
    if let Some(cache) = cache {
        cache.save(&store);
    }
    Ok(false)
}
