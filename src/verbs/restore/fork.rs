//! `fork`: the messages of a chat up to one of them become a new chat, with a copy of the lorebook
//! as it was then, or as it is now where that is not known.

use std::collections::BTreeSet;

use super::new_timeline::new_name;
use super::options::{
    Options as RestoreOptions, QueueChange, Report as RestoreReport, Target, Until,
};
use super::restore_named;
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::free_names::free_branch;
use crate::engine::gate::{self, GatePolicy};
use crate::engine::take_first::take_as_it_is;
use crate::engine::{self, Workspace, changed_timelines};
use crate::history::at_message::earlier_book;
use crate::history::moment::{Book, Named, Names};
use crate::history::pairs::pair_id;
use crate::history::{self, name_lookup};
use crate::progress::Monitor;
use crate::rules::Code;
use crate::st::{self, Disk, Presence, TimelineName};
use crate::verbs::Result;

/// The chat to fork.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub timeline: String,
    /// The last common message; `None`: all of it.
    pub at: Option<usize>,
    /// `None`: as SillyTavern names branches.
    pub name: Option<String>,
    pub gate: GatePolicy,
    pub queue: QueueChange,
    pub dry_run: bool,
}

/// The version of a lorebook that a fork got.
#[derive(Clone, Debug)]
pub enum CopiedBook {
    /// The one of now.
    Now,
    /// The one at the last message of the fork.
    AtMessage,
    /// The one of an earlier snapshot: none later is valid, or from before the fork point.
    Earlier(Box<Snapshot>),
}

/// The new timeline.
pub struct Report {
    pub from: TimelineName,
    pub timeline: TimelineName,
    pub messages: u64,
    pub lorebook: Option<String>,
    pub copied_book: CopiedBook,
    pub made: RestoreReport,
}

/// Forks a chat.
pub fn fork(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let copy = if options.dry_run { Some(workspace.on_a_copy()?) } else { None };
    let mut workspace = copy.as_ref().map_or(workspace, |(_, copy)| copy).clone();
    let library = workspace.library()?;
    let scan = library.scan()?;
    let here: BTreeSet<_> = scan.chats.iter().cloned().collect();
    let stored = match workspace.find_store()? {
        Some(store) => history::heads(&store)?,
        None => Vec::new(),
    };
    let mut all = here.clone();
    all.extend(stored.into_iter().map(|head| head.timeline));
    let from = name_lookup::timeline(&options.timeline, Some(&library), &all)?;
    let mut taken = false;
    let mut not_ready = Vec::new();
    let is_here = library.presence(&scan, &from) != Presence::Gone;
    if let Some(limit) = options.gate.wait.filter(|_| is_here && !options.dry_run) {
        gate::wait(&mut workspace, &library, &scan, &[&from], limit, monitor);
    }
    let workspace = &workspace;
    // A chat that is only stored is forked from there. An unreadable one may differ from what is
    // stored; the capture tells why it cannot be read.
    if is_here {
        let files = st::capture(&library, &scan.groups, &from, &Disk)?.files;
        if let Some(at) = options.at {
            gate::must_have(&files, at)?;
        }
        // Pending work belongs to a chat that continues; a copy would do it for another.
        let judgement = gate::judge(options.gate, &files, options.at);
        if !judgement.refused.is_empty() {
            return Err(engine::Error::Refused { findings: judgement.refused }.into());
        }
        not_ready.extend(judgement.warnings);
        not_ready.extend(options.at.into_iter().flat_map(|at| gate::of_later(&files, at)));
        let first = take_as_it_is(workspace, Some(std::slice::from_ref(&from)), monitor)?;
        // The latest snapshot would not be the state that was asked for.
        if first.not_taken > 0 {
            return Err(engine::Error::Refused { findings: first.findings }.into());
        }
        taken = first.new > 0;
    }
    let name = options.name.clone().unwrap_or_else(|| free_branch(&from, &all));
    // By ids: later snapshots do not change what is forked.
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
    // Of a chat in the library the files themselves were judged.
    let gate = (!is_here).then_some(options.gate);
    let wanted = RestoreOptions {
        snapshot: moment,
        until: options.at.map_or(Until::End, Until::Cut),
        target: Target::NewTimeline { name: name.clone(), gate },
        queue: options.queue,
        dry_run: options.dry_run,
        ..RestoreOptions::default()
    };
    let named = if book.is_none() { Named::Timeline } else { Named::State };
    let made = restore_named(workspace, &wanted, Some(named), monitor);
    let mut made = made.map_err(|error| if taken { error.partway() } else { error })?;
    made.findings.splice(0..0, not_ready);
    // The report tells the version of the lorebook.
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
    // An interrupted fork is complete by now, perhaps under the name that was free then.
    let there = || {
        let name = made.written.files.iter().find_map(|file| TimelineName::of_file(&file.path))?;
        let store = workspace.find_store().ok()??;
        changed_timelines::head(&store, &name).ok()?.0
    };
    let there = if made.written.fork.is_none() && !made.dry_run { there() } else { None };
    let fork = made.written.fork.as_ref().or(there.as_ref());
    let timeline = match fork {
        Some(fork) => fork.timeline.clone(),
        None => new_name(&from, &name)?,
    };
    let messages = match (fork, options.at) {
        (Some(fork), _) => fork.messages,
        (None, Some(at)) => at as u64 + 1,
        (None, None) => made.source.snapshot.messages,
    };
    let lorebook = match fork {
        Some(fork) => fork.lorebook.clone(),
        None => made.source.snapshot.lorebook.clone(),
    };
    Ok(Report { from, timeline, messages, lorebook, copied_book, made })
}

/// Returns the snapshot with the lorebook of a chat at a message, and whether it precedes that
/// message; `None` if none is known.
fn book_at(names: Names<'_>, from: SnapshotId, at: usize) -> Result<Option<(Snapshot, bool)>> {
    let then = match names.moment_at(&from.to_string(), Some(at)) {
        Err(history::Error::Unknowable { .. }) => return Ok(None),
        then => then?,
    };
    let has_book = |found: &&Snapshot| !found.timeline.is_chat() || found.lorebook.is_some();
    let is_earlier = matches!(then.book, Book::Earlier(_));
    Ok(then.book_snapshot().filter(has_book).map(|found| (found.clone(), is_earlier)))
}
