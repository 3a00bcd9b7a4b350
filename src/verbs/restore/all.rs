//! `--all`: the newest snapshot of every timeline, each as `restore` would bring it back.
//!
//! Each is an operation of its own: one that is refused or fails leaves the others alone, and each can be undone. Characters and lorebooks come first: a chat that is there has what it needs. Of a lorebook
//! or group that several timelines have and that has no history of its own, the newest state is the one that is written.

use std::collections::{HashMap, HashSet};

use super::bring_back;
use super::options::{Options, Report};
use crate::archive::{Blake3, FileRecord, Kind, Role, Snapshot, read_manifest};
use crate::engine::Workspace;
use crate::history::History;
use crate::history::moment::{Moment, Named};
use crate::progress::Monitor;
use crate::rules::{Code, Finding, Level};
use crate::st::TimelineName;
use crate::store::{Store, unless_lost};
use crate::verbs::Result;

/// What became of one timeline.
pub struct RestoredTimeline {
    /// The timeline's name.
    pub timeline: TimelineName,
    /// What was done, or why it was not.
    pub result: Result<Report>,
}

/// What became of all.
pub struct Restored {
    /// By name.
    pub timelines: Vec<RestoredTimeline>,
    /// Those that their owner had deleted, and that stay so.
    pub left_out: Vec<TimelineName>,
}

/// Bring every timeline back; also those that were deleted, if they are wanted. With `overwrite` also where something else is, which is stored first. What else the options say is for one timeline.
pub fn restore_all(
    workspace: &Workspace,
    wanted: &Options,
    deleted: bool,
    monitor: &mut dyn Monitor,
) -> Result<Restored> {
    let store = workspace.open_store()?;
    workspace.library()?;
    let history = History::load(&store)?;
    let heads: Vec<_> = history.heads().map(|(_, head)| head.clone()).collect();
    let (gone, mut heads): (Vec<_>, Vec<_>) =
        heads.into_iter().partition(|head| !deleted && head.kind == Kind::DELETED);
    let order = |head: &Snapshot| (head.timeline.is_chat(), std::cmp::Reverse(head.time.seconds));
    heads.sort_by_key(|head| (order(head), head.timeline.clone()));
    let own: HashSet<_> = history.heads().map(|(name, _)| name.file().to_string()).collect();
    monitor.begin("restoring timelines", Some(heads.len() as u64));
    let reader = store.reader();
    // Which state of each lorebook was written, and with which timeline.
    let mut books: HashMap<String, (Blake3, TimelineName)> = HashMap::new();
    let mut outcomes = Vec::new();
    for head in heads {
        let timeline = head.timeline.clone();
        let mut options = Options {
            snapshot: head.id.to_string(),
            overwrite: wanted.overwrite,
            closed: wanted.closed,
            allow_active_queue: wanted.allow_active_queue,
            dry_run: wanted.dry_run,
            ..Options::default()
        };
        let manifest = unless_lost(read_manifest(&reader, head.tree))?;
        let book = manifest.as_ref().and_then(|manifest| manifest.file(Role::Lorebook)).cloned();
        let newer = book
            .as_ref()
            .and_then(|book| books.get(&book.path).filter(|(written, _)| *written != book.blake3));
        let mut note = newer.map(|(_, with)| newer_book(&head, with));
        if note.is_some() {
            options.only = Some(Role::Chat);
        }
        // A lorebook that has a history of its own comes with that.
        let is_own = |book: &FileRecord| own.contains(&book.path);
        if head.timeline.is_chat() && book.as_ref().is_some_and(is_own) {
            (note, options.only) = (None, Some(Role::Chat));
        }
        let result = restore_one(workspace, &store, &history, head, &options).map(|mut report| {
            report.findings.extend(note);
            report
        });
        if let (Ok(_), Some(book)) = (&result, book) {
            books.entry(book.path).or_insert((book.blake3, timeline.clone()));
        }
        outcomes.push(RestoredTimeline { timeline, result });
        monitor.advance(1);
    }
    outcomes.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    let left_out = gone.into_iter().map(|head| head.timeline).collect();
    Ok(Restored { timelines: outcomes, left_out })
}

/// Under a lock of its own, so that nobody waits for all of them.
fn restore_one(
    workspace: &Workspace,
    store: &Store,
    history: &History,
    head: Snapshot,
    options: &Options,
) -> Result<Report> {
    // Its lorebook comes with its own history, or as the newest of those that have it.
    let moment = &Moment { named: Named::Timeline, ..Moment::recorded(head) };
    if options.dry_run {
        return bring_back(workspace, store, None, history, moment, options);
    }
    let (store, held) = workspace.hold(store)?;
    bring_back(workspace, &store, Some(&held), history, moment, options)
}

fn newer_book(head: &Snapshot, with: &TimelineName) -> Finding {
    let message = format!("its lorebook was written as {with} has it, which is newer");
    Finding::new(Code::LorebookNewer, Level::Warning, head.timeline.as_str(), message)
        .remedy("`stvc restore NAME --as OTHER` brings this chat back with a lorebook of its own")
}
