//! Creates a new chat from the messages up to the fork point, with a copy of the lorebook at the
//! fork point. If that version of the lorebook is not known, the current lorebook is copied.

use std::collections::BTreeSet;

use super::new_timeline::new_name;
use super::options::{
    Options as RestoreOptions, QueueChange, Report as RestoreReport, RestoreRange, Target,
};
use super::restore_named;
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::free_names::free_branch;
use crate::engine::gate::{self, GatePolicy};
use crate::engine::safety_snapshots::take_as_it_is;
use crate::engine::{self, Workspace, changed_timelines};
use crate::history::at_message::earlier_book;
use crate::history::moment::{Book, NameKind, Names};
use crate::history::pairs::pair_id;
use crate::history::{self, name_lookup};
use crate::progress::Monitor;
use crate::rules::Code;
use crate::st::{self, Disk, Presence, TimelineName};
use crate::verbs::Result;

/// The chat to fork.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the chat to fork.
    pub timeline: String,
    /// Number of the last message of the fork. `None` selects the last message of the chat.
    pub at: Option<usize>,
    /// Name of the fork. `None` selects a free name in the form that SillyTavern uses for branches.
    pub name: Option<String>,
    /// The readiness check of the fork point.
    pub gate: GatePolicy,
    /// The change of the queue in the fork's own lorebook.
    pub queue: QueueChange,
    /// Only plan the fork.
    pub dry_run: bool,
}

/// The version of the lorebook that was copied for a fork.
#[derive(Clone, Debug)]
pub enum CopiedBook {
    /// The current lorebook.
    Now,
    /// The lorebook at the fork point.
    AtMessage,
    /// The lorebook of an earlier snapshot, because no later snapshot before the fork point has a
    /// valid lorebook.
    Earlier(Box<Snapshot>),
}

/// The result of a fork.
#[non_exhaustive]
pub struct Report {
    /// The parent.
    pub from: TimelineName,
    /// The fork.
    pub timeline: TimelineName,
    /// Number of messages that both share.
    pub messages: u64,
    /// Name of the fork's own lorebook. `None` if the parent has no lorebook.
    pub lorebook: Option<String>,
    /// Source of this lorebook.
    pub copied_book: CopiedBook,
    /// Files that were written, and the first snapshot.
    pub made: RestoreReport,
}

/// Forks a chat. First creates a snapshot of the chat's current files.
pub fn fork(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let mut workspace = copy.as_ref().map_or(workspace, |(_, copy)| copy).clone();
    let library = workspace.library()?;
    let scan = library.scan()?;
    let here: BTreeSet<_> = scan.chats.iter().cloned().collect();
    let store = workspace.find_store()?;
    let stored = store.as_ref().map(history::heads).transpose()?.unwrap_or_default();
    let mut all = here.clone();
    all.extend(stored.into_iter().map(|head| head.timeline));
    let history = || workspace.history_if_any(store.as_ref());
    let from = name_lookup::timeline(&options.timeline, Some(&library), &all, history)?;
    let mut taken = false;
    let mut not_ready = Vec::new();
    let is_here = library.presence(&scan, &from) != Presence::Gone;
    if let Some(limit) = options.gate.wait.filter(|_| is_here && !options.dry_run) {
        gate::wait(&mut workspace, &library, &scan, &[&from], limit, monitor);
    }
    let workspace = &workspace;
    // If the chat's file does not exist, the chat is forked from the store. If the file exists but
    // cannot be read, it may differ from the stored chat, so the fork fails with the reason.
    if is_here {
        let files = st::capture(&library, &scan.groups, &from, &Disk)?.files;
        if let Some(at) = options.at {
            gate::must_have(&files, at)?;
        }
        // Pending work belongs to the chat in which it was queued. A copy of the queue would repeat
        // this work in the fork.
        let judgement = gate::judge(options.gate, &files, options.at);
        if !judgement.refused.is_empty() {
            return Err(engine::Error::Refused { findings: judgement.refused }.into());
        }
        not_ready.extend(judgement.warnings);
        not_ready.extend(
            options.at.into_iter().flat_map(|at| gate::findings_about_later_messages(&files, at)),
        );
        let first = take_as_it_is(workspace, Some(std::slice::from_ref(&from)), monitor)?;
        // Without a snapshot of the current files, the latest snapshot is not the chat that the
        // user wants to fork.
        if first.not_taken > 0 {
            return Err(engine::Error::Refused { findings: first.findings }.into());
        }
        taken = first.new > 0;
    }
    let name = options.name.clone().unwrap_or_else(|| free_branch(&from, &all));
    // The moment is named by ids, so that later snapshots do not change the fork.
    let store = workspace.open_store()?;
    let names = workspace.names(&store, Some(&library));
    let now = names.moment(from.as_str())?;
    let book = match options.at {
        Some(at) => book_at(names, now.snapshot.id, at)?,
        None => None,
    };
    let moment = match &book {
        Some((book, _)) => pair_id(now.snapshot.id, Some(book.id)),
        None => now.id(),
    };
    // If the chat is in the library, the readiness check was already made above.
    let gate = (!is_here).then_some(options.gate);
    let wanted = RestoreOptions {
        snapshot: moment,
        until: options.at.map_or(RestoreRange::End, RestoreRange::Cut),
        target: Target::NewTimeline { name: name.clone(), gate },
        queue: options.queue,
        dry_run: options.dry_run,
        ..RestoreOptions::default()
    };
    let named = if book.is_none() { NameKind::Timeline } else { NameKind::State };
    let made = restore_named(workspace, &wanted, Some(named), monitor);
    let mut made = made.map_err(|error| if taken { error.partway() } else { error })?;
    made.findings.splice(0..0, not_ready);
    // `copied_book` already reports the version of the lorebook.
    made.findings.retain(|found| found.code != Code::LorebookOfNow);
    if let (Some(at), Some((book, true))) = (options.at, &book) {
        made.findings.push(earlier_book(&from, at, book));
    }
    let copied_book = match (book, &made.source.older_book) {
        (Some((book, true)), _) => CopiedBook::Earlier(Box::new(book)),
        (Some((_, false)), _) => CopiedBook::AtMessage,
        (None, Some(book)) => CopiedBook::Earlier(Box::new(book.clone())),
        (None, None) => CopiedBook::Now,
    };
    // If an interrupted run of this command was completed, its fork may have another name, which
    // was free at that time.
    let there = || {
        let name = made.written.files.iter().find_map(|file| TimelineName::of_file(&file.path))?;
        let store = workspace.find_store().ok()??;
        changed_timelines::head(&store, &name).ok()?.0
    };
    let there = if made.written.fork.is_none() && !made.dry_run { there() } else { None };
    let fork = made.written.fork.as_ref().or(there.as_ref());
    let (timeline, messages, lorebook) = match fork {
        Some(fork) => (fork.timeline.clone(), fork.messages, fork.lorebook.clone()),
        None => {
            let source = &made.source.snapshot;
            let messages = options.at.map_or(source.messages, |at| at as u64 + 1);
            (new_name(&from, &name)?, messages, source.lorebook.clone())
        }
    };
    Ok(Report { from, timeline, messages, lorebook, copied_book, made })
}

/// Returns the snapshot with the lorebook that a chat had at message `at`. The second value is true
/// if the lorebook is older than the lorebook at this message. Returns `None` if no lorebook is
/// known.
fn book_at(names: Names<'_>, from: SnapshotId, at: usize) -> Result<Option<(Snapshot, bool)>> {
    let then = match names.moment_at(&from.to_string(), Some(at)) {
        Err(history::Error::Unknowable { .. }) => return Ok(None),
        then => then?,
    };
    let has_book = |found: &&Snapshot| !found.timeline.is_chat() || found.lorebook.is_some();
    let is_earlier = matches!(then.book, Book::Earlier(_));
    Ok(then.book_snapshot().filter(has_book).map(|found| (found.clone(), is_earlier)))
}
