//! The snapshots, newest first.

use std::collections::{HashMap, HashSet};

use crate::archive::{self, Role, Snapshot};
use crate::engine::{Workspace, changed_timelines};
use crate::history::{self, History, name_lookup};
use crate::store::Reader;
use crate::verbs::Result;

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One timeline only, with what it forked from.
    pub timeline: Option<String>,
    /// Only those taken from then on, in seconds of the epoch.
    pub since: Option<i64>,
    /// Only those taken until then.
    pub until: Option<i64>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// One line of the log.
pub struct LoggedSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is the newest of its timeline.
    pub is_head: bool,
    /// Whether it is the newest of a timeline whose file is gone. False where the library is not known.
    pub is_deleted: bool,
    /// Whether only the lorebook is another than in the one before.
    pub lorebook_only: bool,
    /// Whether the last check could not rebuild it.
    pub is_damaged: bool,
}

/// The log.
pub struct Report {
    /// Newest first; parents after children.
    pub entries: Vec<LoggedSnapshot>,
    /// How many there are without the limit.
    pub total: usize,
    /// What could not be read, in words.
    pub broken: Vec<String>,
}

/// Read the log.
pub fn log(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let mut snapshots = history.newest_first();
    if let Some(text) = &options.timeline {
        let library = workspace.library().ok();
        let (name, head) = match name_lookup::stored(text, &history, library.as_ref()) {
            Ok(head) => (head.timeline.clone(), Some(head)),
            // A checkpoint may be all there is of a timeline.
            Err(history::Error::NoSuchTimeline { .. }) => {
                let names = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
                (name_lookup::timeline(text, library.as_ref(), &names)?, None)
            }
            Err(error) => return Err(error.into()),
        };
        let own = snapshots.iter().filter(|snapshot| snapshot.timeline == name);
        let mut wanted: HashSet<_> = own.map(|snapshot| snapshot.id).collect();
        if let Some(head) = head {
            wanted.extend(history.ancestry(head).map(|snapshot| snapshot.id));
        }
        snapshots.retain(|snapshot| wanted.contains(&snapshot.id));
        if snapshots.is_empty() {
            return Err(history::Error::no_such_timeline(text.clone()).into());
        }
    }
    snapshots.retain(|snapshot| {
        let time = snapshot.time.seconds;
        options.since.is_none_or(|since| since <= time)
            && options.until.is_none_or(|until| time <= until)
    });
    let total = snapshots.len();
    snapshots.truncate(options.limit.unwrap_or(usize::MAX));
    let mut tags: HashMap<_, Vec<String>> = HashMap::new();
    for (name, id) in history.tags() {
        tags.entry(id).or_default().push(name.to_owned());
    }
    let deleted = changed_timelines::deleted(workspace.library().ok().as_ref(), &history);
    let (reader, damaged) = (store.reader(), store.known_damaged());
    let entry = |snapshot: &Snapshot| LoggedSnapshot {
        lorebook_only: is_lorebook_only(snapshot, &history, &reader),
        is_damaged: damaged.contains(&snapshot.id.0),
        tags: tags.get(&snapshot.id).cloned().unwrap_or_default(),
        is_head: history.head(&snapshot.timeline).is_some_and(|head| head.id == snapshot.id),
        is_deleted: deleted.contains(&snapshot.id),
        snapshot: snapshot.clone(),
    };
    let broken =
        history.broken.iter().map(|broken| format!("{}: {}", broken.subject, broken.why)).collect();
    Ok(Report { entries: snapshots.into_iter().map(entry).collect(), total, broken })
}

/// Whether nothing but the lorebook changed. Only where the number of messages is the same can that be, and need the files be compared.
fn is_lorebook_only(snapshot: &Snapshot, history: &History, reader: &Reader) -> bool {
    let before = snapshot.parents.first().and_then(|parent| history.get(*parent));
    let Some(before) = before.filter(|before| {
        snapshot.timeline.is_chat()
            && before.timeline == snapshot.timeline
            && before.messages == snapshot.messages
            && before.tree != snapshot.tree
    }) else {
        return false;
    };
    let manifest = |snapshot: &Snapshot| archive::read_manifest(reader, snapshot.tree).ok();
    let (Some(then), Some(now)) = (manifest(before), manifest(snapshot)) else { return false };
    let same = |role: Role| then.file(role) == now.file(role);
    same(Role::Chat) && !same(Role::Lorebook)
}
