//! Lists names for shell completion and for front ends. Names that cannot be read are omitted, and
//! errors are ignored.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::Snapshot;
use crate::engine::Workspace;
use crate::history::{self, History};
use crate::st::{Presence, Scan, TimelineName};

/// Returns the timelines of the store and the chats of the library.
pub fn timelines(workspace: &Workspace) -> BTreeSet<TimelineName> {
    let here = workspace.library().ok().and_then(|library| library.scan().ok());
    let stored = workspace.open_store().ok().and_then(|store| history::heads(&store).ok());
    let mut names: BTreeSet<_> = stored.into_iter().flatten().map(|head| head.timeline).collect();
    names.extend(here.into_iter().flat_map(|scan| scan.chats));
    names
}

/// Returns the timelines of the library that have a file.
pub fn existing(workspace: &Workspace) -> BTreeSet<TimelineName> {
    let here = workspace.library().ok().and_then(|library| library.scan().ok());
    here.iter().flat_map(Scan::all).cloned().collect()
}

/// Returns the timelines of the store whose files are deleted.
pub fn deleted(workspace: &Workspace) -> BTreeSet<TimelineName> {
    let Some(library) = workspace.library().ok() else { return BTreeSet::new() };
    let Some(scan) = library.scan().ok() else { return BTreeSet::new() };
    let mut stored = timelines(workspace);
    stored.retain(|name| library.presence(&scan, name) == Presence::Gone);
    stored
}

/// The names that the user gave to groups, by the groups and their chats.
pub struct GroupNames(pub BTreeMap<TimelineName, String>);

/// Returns the names of the groups in the library.
pub fn groups(workspace: &Workspace) -> GroupNames {
    let groups = workspace.library().map(|library| library.groups()).unwrap_or_default();
    let own = groups.names().map(|(group, name)| (group, name.to_owned()));
    let of_chat = |chat| {
        let name = groups.name_of(groups.group_of(chat)?)?;
        Some((TimelineName::group(chat).ok()?, name.to_owned()))
    };
    GroupNames(own.chain(groups.chats().filter_map(of_chat)).collect())
}

/// Returns all tags.
pub fn tags(workspace: &Workspace) -> Vec<String> {
    let store = workspace.open_store().ok();
    let refs = store.and_then(|store| store.refs("refs/tags/").ok());
    let tags = refs.into_iter().flat_map(|found| found.refs);
    tags.filter_map(|(name, _)| name.tag_name()).collect()
}

/// Returns the latest `count` snapshots of all timelines, newest first.
pub fn latest_snapshots(workspace: &Workspace, count: usize) -> Vec<Snapshot> {
    let history = workspace.open_store().ok().and_then(|store| History::load(&store).ok());
    history.iter().flat_map(History::newest_first).take(count).cloned().collect()
}
