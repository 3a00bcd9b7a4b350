//! Lists snapshots, newest first.

use std::collections::HashSet;

use serde::Serialize;

use crate::archive::{self, Role, Snapshot};
use crate::engine::{Workspace, changed_timelines};
use crate::history::pairs::{Pair, Pairs, StartBook};
use crate::history::{self, History, name_lookup};
use crate::store::{Reader, Store};
use crate::verbs::Result;

/// Snapshots to list.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// List only this timeline, including the part before its fork point, or all chats with this
    /// character. For a chat, changes of its lorebook alone are also listed. `None` lists all
    /// timelines.
    pub timeline: Option<String>,
    /// Start of the listed period, in seconds since 1970.
    pub since: Option<i64>,
    /// End of the listed period, in seconds since 1970.
    pub until: Option<i64>,
    /// Maximum number of entries. `None` lists all.
    pub limit: Option<usize>,
}

/// A snapshot in the log, with the names that refer to it.
#[derive(Serialize)]
pub struct LoggedSnapshot {
    /// The snapshot itself, or the lorebook's if only the lorebook changed.
    #[serde(skip)]
    pub snapshot: Snapshot,
    /// The chat's snapshot at that time, if only the lorebook changed. `snapshot` is then a
    /// snapshot of the lorebook.
    #[serde(serialize_with = "archive::id_if_any", skip_serializing_if = "Option::is_none")]
    pub chat: Option<Snapshot>,
    /// Permanent name of this moment; see docs/moments.md.
    pub moment: String,
    /// Number of later moments in the requested timeline: the `N` in `~N`. `None` if all timelines
    /// are listed, or if the snapshot is a checkpoint that `~N` does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// Names of the tags at this snapshot.
    #[serde(skip)]
    pub tags: Vec<String>,
    /// Whether this is the latest snapshot of its timeline.
    #[serde(skip)]
    pub is_head: bool,
    /// Whether `snapshot` is the latest snapshot of a timeline whose file no longer exists. Always
    /// false if the library cannot be opened.
    #[serde(skip)]
    pub is_deleted: bool,
    /// Whether `snapshot` differs from the previous snapshot only in the lorebook.
    pub lorebook_only: bool,
    /// Whether the last `stvc check` found `snapshot` damaged.
    #[serde(rename = "damaged")]
    pub is_damaged: bool,
}

/// The requested part of the log.
#[non_exhaustive]
pub struct Report {
    /// Newest first. Every snapshot comes before its parents.
    pub entries: Vec<LoggedSnapshot>,
    /// Number of entries before `Options::limit` is applied.
    pub total: usize,
    /// Descriptions of unreadable snapshots.
    pub broken: Vec<String>,
}

struct LogRow<'h> {
    snapshot: &'h Snapshot,
    chat: Option<&'h Snapshot>,
    moment: String,
    step: Option<usize>,
}

impl<'h> LogRow<'h> {
    fn alone(snapshot: &'h Snapshot) -> Self {
        Self { snapshot, chat: None, moment: snapshot.id.to_string(), step: None }
    }

    fn of_pair(step: usize, pair: &Pair<'h>) -> Self {
        let snapshot = pair.latest();
        let chat = Some(pair.own).filter(|own| own.id != snapshot.id);
        Self { snapshot, chat, moment: pair.id(), step: Some(step) }
    }
}

/// Lists the snapshots of one timeline, or of all timelines.
pub fn log(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let mut listed = match &options.timeline {
        Some(text) => match of_character(&history, text) {
            Some(listed) => listed,
            None => of_timeline(workspace, &store, &history, text)?,
        },
        None => history.newest_first().into_iter().map(LogRow::alone).collect(),
    };
    listed.retain(|listed| {
        let time = listed.snapshot.time.seconds;
        options.since.is_none_or(|since| since <= time)
            && options.until.is_none_or(|until| time <= until)
    });
    let total = listed.len();
    listed.truncate(options.limit.unwrap_or(usize::MAX));
    let tags = history.tags_by_snapshot();
    let deleted = changed_timelines::deleted(workspace.library().ok().as_ref(), &history);
    let (reader, damaged) = (store.reader(), store.known_damaged());
    let entry = |LogRow { snapshot, chat, moment, step }: LogRow<'_>| LoggedSnapshot {
        moment,
        lorebook_only: chat.is_some() || is_lorebook_only(snapshot, &history, &reader),
        is_damaged: damaged.contains(&snapshot.id.0),
        tags: tags.get(&snapshot.id).cloned().unwrap_or_default(),
        is_head: chat.is_none()
            && history.head(&snapshot.timeline).is_some_and(|head| head.id == snapshot.id),
        is_deleted: chat.is_none() && deleted.contains(&snapshot.id),
        snapshot: snapshot.clone(),
        chat: chat.cloned(),
        step,
    };
    let broken = history.broken.iter().map(ToString::to_string).collect();
    Ok(Report { entries: listed.into_iter().map(entry).collect(), total, broken })
}

/// Returns the snapshots of all chats with a character, newest first. `None` if the text is not the
/// name of a character, or if a chat has the same name.
fn of_character<'h>(history: &'h History, text: &str) -> Option<Vec<LogRow<'h>>> {
    let is_it =
        |name: Option<&str>| name.is_some_and(|name| name.to_lowercase() == text.to_lowercase());
    let chats = || history.heads().map(|(name, _)| name).filter(|name| name.is_chat());
    if chats().any(|name| is_it(Some(name.chat()))) || !chats().any(|name| is_it(name.folder())) {
        return None;
    }
    let owners = history.owners();
    let is_of = |snapshot: &&Snapshot| is_it(owners.of_snapshot(snapshot).folder());
    Some(history.newest_first().into_iter().filter(is_of).map(LogRow::alone).collect())
}

/// Returns the moments of a timeline in the order in which `~N` counts them. Checkpoints, which
/// `~N` does not count, are listed between these moments.
fn of_timeline<'h>(
    workspace: &Workspace,
    store: &Store,
    history: &'h History,
    text: &str,
) -> Result<Vec<LogRow<'h>>> {
    let library = workspace.library().ok();
    let name = name_lookup::ever(text, history, library.as_ref())?;
    let pairs = match history.head(&name) {
        Some(head) => Pairs::new(store, history).back_from(head, StartBook::Latest)?,
        None => Vec::new(),
    };
    let in_line: HashSet<_> = pairs.iter().map(|pair| pair.own.id).collect();
    let mut beside = history.newest_first();
    let owners = history.owners();
    let is_beside = |snapshot: &Snapshot| {
        snapshot.timeline == name
            && !in_line.contains(&snapshot.id)
            && *owners.by_descent(snapshot) == name
    };
    beside.retain(|snapshot| is_beside(snapshot));
    let mut beside = beside.into_iter().peekable();
    let mut listed = Vec::new();
    for (step, pair) in pairs.iter().enumerate() {
        let is_newer = |other: &&Snapshot| other.sequence > pair.latest().sequence;
        while let Some(newer) = beside.next_if(is_newer) {
            listed.push(LogRow::alone(newer));
        }
        listed.push(LogRow::of_pair(step, pair));
    }
    listed.extend(beside.map(LogRow::alone));
    if listed.is_empty() {
        return Err(history::Error::no_such_timeline(text).into());
    }
    Ok(listed)
}

/// Returns whether a snapshot differs from the previous snapshot only in the lorebook. The files
/// are compared only if the number of messages is unchanged.
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
