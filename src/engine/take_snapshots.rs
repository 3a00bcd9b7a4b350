//! Creates snapshots of timelines as they are now. Each follows the latest one of its timeline, or
//! the snapshot that a new chat was forked from.
//!
//! A timeline that cannot be read or that the gate refuses does not stop the others. An error of the
//! store stops everything, and then nothing has changed.

use std::collections::{BTreeMap, HashMap};

use super::cache::Cache;
use super::changed_timelines::{self, Branches, Head, touched};
use super::operation::{self, Follows, Held, Operation};
use super::{Error, Result, Workspace};
use crate::archive::{self, Folders, Kind, Snapshot, SnapshotId, State, Validator, branch};
use crate::auto_recap::{self, CheckpointState, Wish, queue_activity};
use crate::history::origin::{Lineage, Newcomer};
use crate::history::{self, History, latest_valid};
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Captured, Disk, Library, Presence, Scan, TimelineFiles, TimelineName};
use crate::store::Store;

/// A timeline and the result of its snapshot.
pub struct TakenTimeline {
    pub timeline: TimelineName,
    pub result: Taken,
}

/// The result of a snapshot.
pub enum Taken {
    /// A new snapshot, and its tags.
    New(Box<Snapshot>, Vec<String>),
    /// A new snapshot that a dry run did not write: its message count, and that of the latest one.
    WouldBeNew(u64, Option<u64>),
    /// The latest snapshot equals the files.
    Unchanged(Box<Snapshot>, Vec<String>),
    Failed(String),
    /// A rule forbids it.
    Refused(Vec<Finding>),
}

#[derive(Default)]
pub(crate) struct Judgement {
    pub refused: Vec<Finding>,
    pub warnings: Vec<Finding>,
}

pub(crate) struct SnapshotPolicy<'a> {
    pub message: Option<&'a str>,
    pub kind: Kind,
    /// The kind of snapshots in whose lorebook work is pending.
    pub kind_if_busy: Kind,
    pub selection: Selection,
    pub unchanged: Unchanged,
    pub gate: &'a dyn Fn(&Captured) -> Judgement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Library,
    /// A named chat is stored with its lorebook, also if only that changed.
    Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchanged {
    Skip,
    List,
    /// They are read and judged by the gate, as for a checkpoint.
    Judge,
}

impl SnapshotPolicy<'_> {
    pub(super) fn kind_of(&self, files: &TimelineFiles) -> Kind {
        let is_busy = || files.book_bytes().is_some_and(|book| queue_activity(book).total() > 0);
        let is_marked = self.kind != self.kind_if_busy && is_busy();
        if is_marked { &self.kind_if_busy } else { &self.kind }.clone()
    }
}

impl SnapshotPolicy<'static> {
    /// Stores everything, ready or not. Marks snapshots taken while ST-Auto-Recap works, and warns.
    pub(crate) fn as_it_is() -> Self {
        let gate = &|captured: &Captured| {
            let files = &captured.files;
            let (subject, book) = (files.timeline.as_str(), files.book_bytes());
            let active = auto_recap::queue_active(subject, book, Wish::TakeAnyway);
            Judgement { warnings: active.into_iter().collect(), ..Judgement::default() }
        };
        Self {
            message: None,
            kind: Kind::SNAPSHOT,
            kind_if_busy: Kind::AUTOSAVE,
            selection: Selection::Library,
            unchanged: Unchanged::Skip,
            gate,
        }
    }
}

pub(crate) fn count_new(outcomes: &[TakenTimeline]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome.result, Taken::New(..))).count()
}

/// The latest snapshot of a timeline whose file shares no message or entry with it any more.
pub(super) struct Replaced {
    pub head: Snapshot,
    /// Reported if the file turns out to be overwritten, and not renamed or deleted.
    pub alarm: Option<Finding>,
}

pub(crate) struct SnapshotSession<'a> {
    pub store: &'a Store,
    pub library: &'a Library,
    pub scan: &'a Scan,
    pub(super) policy: SnapshotPolicy<'a>,
    branches: Branches,
    /// The last check found damage: store again what cannot be read.
    mend: bool,
    pub operation: Operation<'a>,
    pub(super) cache: Cache,
    pub(super) origins: Origins,
    pub done: Finished,
}

#[derive(Default)]
pub(super) struct Origins {
    pub lineage: Option<Lineage>,
    /// Known chats stored by this command, from which new ones may be forked.
    pub grown: Option<Vec<(Newcomer, Snapshot)>>,
    pub replaced: BTreeMap<TimelineName, Replaced>,
    /// New timelines that were not renamed, and their origins.
    pub came: HashMap<TimelineName, Option<SnapshotId>>,
    /// The latest snapshots of all that is not a chat, once read.
    pub other_heads: Option<Vec<Snapshot>>,
}

#[derive(Default)]
pub(crate) struct Finished {
    pub outcomes: Vec<TakenTimeline>,
    /// The number of timelines that were not touched.
    pub untouched: usize,
    /// The state of ST-Auto-Recap in the new snapshots.
    pub states: HashMap<SnapshotId, CheckpointState>,
    pub findings: Vec<Finding>,
    /// The last states of timelines that were found deleted.
    pub deleted: Vec<Snapshot>,
    pub objects: usize,
    pub bytes: u64,
}

impl<'a> SnapshotSession<'a> {
    pub(crate) fn new(
        workspace: &'a Workspace,
        store: &'a Store,
        library: &'a Library,
        scan: &'a Scan,
        policy: SnapshotPolicy<'a>,
    ) -> Result<Self> {
        Ok(Self {
            store,
            library,
            scan,
            branches: Branches::read(store)?,
            mend: store.is_marked_damaged(),
            operation: Operation::new(workspace, store, policy.message),
            policy,
            cache: Cache::load(store),
            origins: Origins::default(),
            done: Finished::default(),
        })
    }

    fn is_named(&self) -> bool {
        self.policy.selection == Selection::Named
    }

    pub(crate) fn take(&mut self, names: &[TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("taking snapshots", Some(names.len() as u64));
        let (mut new, mut known, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let skips = self.policy.unchanged == Unchanged::Skip && !self.is_named() && !self.mend;
        let touched = if skips {
            let (groups, branches) = (&self.scan.groups, &self.branches);
            touched(self.store, self.library, groups, names, branches, &self.cache)?
        } else {
            names.iter().collect()
        };
        self.done.untouched += names.len() - touched.len();
        monitor.advance(self.done.untouched as u64);
        for name in touched {
            let head = self.branches.head(self.store, name)?;
            match head.0 {
                Some(_) => known.push((name, head)),
                None if name.is_chat() => new.push(name),
                None => others.push(name),
            }
        }
        // A new chat may be forked from what a known one has become just now.
        self.origins.grown = (!new.is_empty()).then(Vec::new);
        for (name, head) in known {
            if let Some(result) = self.take_known(name, head).transpose() {
                self.record(name, result)?;
                monitor.advance(1);
            }
        }
        self.take_new(&new, monitor)?;
        self.take_others(&others, monitor)?;
        if self.is_named() {
            self.take_books_of(names)?;
        }
        self.tell_refusals_once();
        self.done.outcomes.sort_by(|a, b| a.timeline.cmp(&b.timeline));
        Ok(())
    }

    /// Returns how many timelines have snapshots but no file. A renamed one has a file.
    pub(crate) fn without_files(&self) -> Result<usize> {
        let without = if self.scan.unreadable.is_empty() {
            self.branches.besides(self.scan.all())
        } else {
            // A branch does not say in which folder its file is.
            let history = History::load(self.store)?;
            let is_gone =
                |name: &TimelineName| self.library.presence(self.scan, name) == Presence::Gone;
            history.heads().filter(|(name, _)| is_gone(name)).count()
        };
        Ok(without.saturating_sub(self.operation.dropped_branches()))
    }

    /// Stores a timeline that has a branch. Returns `None` if its file holds another chat or
    /// lorebook: [`take_new`](Self::take_new) and [`take_others`](Self::take_others) find out which.
    pub(super) fn take_known(&mut self, name: &TimelineName, head: Head) -> Result<Option<Taken>> {
        let is_judged = self.policy.unchanged == Unchanged::Judge;
        let is_wanted = is_judged || self.is_named();
        let came_back = head.0.as_ref().is_some_and(|head| head.kind == Kind::DELETED);
        let must_read = is_wanted || self.mend || came_back;
        let cache = if must_read { None } else { Some(&mut self.cache) };
        let look = changed_timelines::look_from(
            Some(self.store),
            self.library,
            &self.scan.groups,
            name,
            head,
            cache,
        )?;
        let is_stored = look.is_unchanged() || !is_wanted && !look.is_new();
        let head = look.head.ok_or_else(|| history::Error::no_such_timeline(name.to_string()))?;
        let Some(captured) = look.captured else {
            return Ok(Some(Taken::Unchanged(Box::new(head), Vec::new())));
        };
        let state = State::of(&captured.files);
        if is_stored && !came_back {
            if is_judged && let Some(refused) = self.refused(&captured) {
                return Ok(Some(refused));
            }
            if look.astray {
                self.operation.move_ref(branch(name), head.id)?;
            }
            if self.mend && !self.mends(&state, &head)? {
                return self.store_state(&captured, &state, Follows::previous(head)).map(Some);
            }
            return Ok(Some(Taken::Unchanged(Box::new(head), Vec::new())));
        }
        if self.operation.is_foreign(&state, &head)? {
            let alarm = self.operation.foreign_alarm(&state, &head)?;
            self.origins.replaced.insert(name.clone(), Replaced { head, alarm });
            return Ok(None);
        }
        if let Some(refused) = self.refused(&captured) {
            return Ok(Some(refused));
        }
        self.done.findings.extend(self.operation.alarm(&state, &head)?);
        let taken = self.store_state(&captured, &state, Follows::previous(head))?;
        if let (Some(grown), Taken::New(snapshot, _)) = (&mut self.origins.grown, &taken)
            && name.is_chat()
        {
            grown.push((Newcomer::of_state(&state), (**snapshot).clone()));
        }
        Ok(Some(taken))
    }

    /// Stores the objects of a damaged snapshot again. Returns whether it is valid then.
    fn mends(&mut self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if !Validator::new(self.store.reader()).judge(head)?.can_be_mended() {
            return Ok(true);
        }
        let attached = self.operation.attachments_of(state, Some(head.tree), &reader)?;
        let pack = &mut self.operation.pack;
        let written = archive::write(state, pack, &reader, None, &Folders::default(), &attached)?;
        Ok(written.tree == head.tree)
    }

    pub(super) fn store_state(
        &mut self,
        captured: &Captured,
        state: &State<'_>,
        follows: Follows,
    ) -> Result<Taken> {
        let template = self.library.book_template();
        let look = |new: &[_]| rules::of_files(&captured.files, &state.chat, new, template);
        let kind = self.policy.kind_of(&captured.files);
        let (snapshot, findings) = self.operation.take_beside(state, kind, follows, look)?;
        self.note(captured, state.manifest.checkpoint.as_ref(), findings, &snapshot);
        Ok(Taken::New(Box::new(snapshot), Vec::new()))
    }

    pub(super) fn note(
        &mut self,
        captured: &Captured,
        noted: Option<&CheckpointState>,
        findings: Vec<Finding>,
        snapshot: &Snapshot,
    ) {
        self.tell_state(noted, snapshot);
        self.done.findings.extend(findings);
        self.cache.remember(captured, snapshot.id);
    }

    pub(crate) fn tell_state(&mut self, noted: Option<&CheckpointState>, snapshot: &Snapshot) {
        self.done.states.extend(noted.map(|noted| (snapshot.id, noted.clone())));
    }

    /// Asks the gate. Records its warnings.
    pub(super) fn refused(&mut self, captured: &Captured) -> Option<Taken> {
        let judgement = (self.policy.gate)(captured);
        if !judgement.refused.is_empty() {
            return Some(Taken::Refused(judgement.refused));
        }
        // The warnings about a lorebook come with its chats.
        if captured.files.timeline.is_chat() {
            self.done.findings.extend(judgement.warnings);
        }
        None
    }

    pub(crate) fn capture(&self, name: &TimelineName) -> Result<Captured> {
        Ok(st::capture(self.library, &self.scan.groups, name, &Disk)?)
    }

    /// Records the result for a timeline. An unreadable timeline is a failure; an error of the store
    /// ends the command.
    pub(crate) fn record(&mut self, name: &TimelineName, result: Result<Taken>) -> Result<()> {
        let result = match result {
            Ok(taken) => taken,
            Err(Error::St(error)) => Taken::Failed(error.to_string()),
            // It has a property that no commit can record. No ref leads to its objects.
            Err(Error::Archive(error @ archive::Error::NotASnapshot { .. })) => {
                Taken::Failed(error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.done.outcomes.push(TakenTimeline { timeline: name.clone(), result });
        Ok(())
    }

    pub(crate) fn finish(mut self, held: &Held) -> Result<Finished> {
        let anew: HashMap<_, _> = self.settle_families()?.into_iter().collect();
        self.done.findings.extend(self.operation.attachments_left_out());
        let operation::Done { objects, bytes, .. } = self.operation.finish(held)?;
        let outcomes =
            self.done.outcomes.iter_mut().filter_map(|outcome| match &mut outcome.result {
                Taken::New(snapshot, _) | Taken::Unchanged(snapshot, _) => Some(&mut **snapshot),
                _ => None,
            });
        for snapshot in outcomes.chain(&mut self.done.deleted) {
            if let Some(became) = anew.get(&snapshot.id.0) {
                *snapshot = history::name_lookup::read(self.store, SnapshotId(*became))?;
            }
        }
        want_again(self.store, &self.done.outcomes, held)?;
        if objects > 0
            && let Err(error) = self.store.tidy(&held.lock, &archive::new_versions)
        {
            let message = format!("small packs and refs could not be joined: {error}");
            let subject = self.store.path().display().to_string();
            self.done.findings.push(Finding::new(Code::PacksNotJoined, subject, message));
        }
        self.cache.save(self.store);
        if let Some(lineage) = self.origins.lineage {
            lineage.save();
        }
        let mut findings = self.done.findings;
        latest_valid::advise(&mut findings, Some(self.store))?;
        let findings = rules::without_repeats(findings);
        Ok(Finished { findings, objects, bytes, ..self.done })
    }
}

/// Withdraws the erasure of timelines that begin again with the name and first message of an erased
/// one.
fn want_again(store: &Store, outcomes: &[TakenTimeline], held: &Held) -> Result<()> {
    let mut erasures = store.erasures()?;
    if erasures.is_empty() {
        return Ok(());
    }
    let (reader, before) = (store.reader(), erasures.clone());
    for outcome in outcomes {
        let Taken::New(snapshot, _) = &outcome.result else { continue };
        if snapshot.parents.is_empty() || snapshot.fork_at.is_some() {
            for mark in archive::erasure_marks(&reader, snapshot)? {
                erasures.withdraw(&mark);
            }
        }
    }
    if erasures != before {
        store.set_erasures(&held.lock, &erasures)?;
    }
    Ok(())
}
