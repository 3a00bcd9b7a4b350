//! The snapshots, newest first.

use std::collections::{BTreeSet, HashSet};

use super::{Error, Result, Workspace, resolve};
use crate::archive::{History, Snapshot};

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One timeline only, with what it forked from.
    pub timeline: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// One line of the log.
pub struct Entry {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is the newest of its timeline.
    pub is_head: bool,
}

/// The log.
pub struct Report {
    /// Newest first; parents after children.
    pub entries: Vec<Entry>,
    /// How many there are without the limit.
    pub total: usize,
    /// What could not be read, in words.
    pub broken: Vec<String>,
}

/// Read the log.
pub fn log(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = History::load(&store)?;
    let mut snapshots = history.newest_first();
    if let Some(text) = &options.timeline {
        let names: BTreeSet<_> = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
        let name = resolve::timeline(text, workspace.library().ok().as_ref(), &names)?;
        let mut wanted: HashSet<_> = snapshots
            .iter()
            .filter(|snapshot| snapshot.timeline == name)
            .map(|snapshot| snapshot.id)
            .collect();
        if let Some(head) = history.head(&name) {
            wanted.extend(history.ancestry(head).map(|snapshot| snapshot.id));
        }
        snapshots.retain(|snapshot| wanted.contains(&snapshot.id));
        if snapshots.is_empty() {
            return Err(Error::NoSuchTimeline { name: text.clone() });
        }
    }
    let total = snapshots.len();
    snapshots.truncate(options.limit.unwrap_or(usize::MAX));
    let mut tags: std::collections::HashMap<_, Vec<String>> = std::collections::HashMap::new();
    for (name, id) in history.tags() {
        tags.entry(id).or_default().push(name.to_owned());
    }
    let entry = |snapshot: &Snapshot| Entry {
        tags: tags.get(&snapshot.id).cloned().unwrap_or_default(),
        is_head: history.head(&snapshot.timeline).is_some_and(|head| head.id == snapshot.id),
        snapshot: snapshot.clone(),
    };
    let broken =
        history.broken.iter().map(|broken| format!("{}: {}", broken.subject, broken.why)).collect();
    Ok(Report { entries: snapshots.into_iter().map(entry).collect(), total, broken })
}
