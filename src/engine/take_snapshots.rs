//! Creates snapshots of the present files of timelines. The parent of a new snapshot is the latest
//! snapshot of its timeline, or the snapshot that a new chat was forked from.
//!
//! A timeline that cannot be read, or that the readiness check refuses, does not prevent snapshots
//! of other timelines. An error of the store stops the command, and nothing is changed.

use std::collections::{BTreeMap, HashMap};

use super::cache::{Cache, CacheMatch};
use super::changed_timelines::{self, Branches, Head, touched};
use super::operation::{self, HeldLock, Operation, SnapshotParents};
use super::{Error, Result, Workspace, join_packs};
use crate::archive::{self, Kind, Snapshot, SnapshotId, State, Validator, branch};
use crate::auto_recap::{CheckpointState, queue_activity};
use crate::history::origin::{Lineage, NewTimeline};
use crate::history::{self, History, latest_valid};
use crate::progress::Monitor;
use crate::rules::{self, Finding};
use crate::st::{self, Captured, Disk, Library, Presence, Scan, TimelineFiles, TimelineName};
use crate::store::Store;

/// A timeline and the result of its snapshot.
pub struct TimelineResult {
    /// Current name of the timeline.
    pub timeline: TimelineName,
    /// The snapshot, or the reason why there is none.
    pub result: SnapshotResult,
}

/// The result of the snapshot of one timeline.
pub enum SnapshotResult {
    /// A new snapshot, and its tags.
    New(Box<Snapshot>, Vec<String>),
    /// A snapshot that a dry run would create: its number of messages, and the number of messages
    /// in the latest snapshot.
    WouldBeNew(u64, Option<u64>),
    /// The latest snapshot, which equals the files, and its tags.
    Unchanged(Box<Snapshot>, Vec<String>),
    /// The files could not be read or stored, for this reason.
    Failed(String),
    /// The findings for which the snapshot was refused.
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
    /// The kind of a snapshot that is created while work is pending in the queue of its lorebook.
    pub kind_if_busy: Kind,
    pub selection: Selection,
    pub unchanged: UnchangedPolicy,
    pub gate: &'a dyn Fn(&Captured) -> Judgement,
    /// The length of the longest file that is stored; `None` if there is no limit.
    pub longest_file: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Library,
    /// Timelines that the user named. A named chat is stored together with its lorebook, even if
    /// only the lorebook changed.
    Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnchangedPolicy {
    Skip,
    List,
    /// Run the readiness check on unchanged timelines, too, as for a checkpoint.
    Judge,
}

impl SnapshotPolicy<'_> {
    pub(super) fn kind_of(&self, files: &TimelineFiles) -> Kind {
        let is_busy = || files.book_bytes().is_some_and(|book| queue_activity(book).total() > 0);
        let is_marked = self.kind != self.kind_if_busy && is_busy();
        if is_marked { &self.kind_if_busy } else { &self.kind }.clone()
    }
}

pub(crate) fn count_new(outcomes: &[TimelineResult]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome.result, SnapshotResult::New(..))).count()
}

/// A timeline whose file no longer shares a message or an entry with the latest snapshot, `head`.
pub(super) struct Replaced {
    pub head: Snapshot,
    /// The finding about the loss. It is reported only if the file was overwritten, and not if the
    /// timeline was renamed or deleted.
    pub alarm: Option<Finding>,
}

pub(crate) struct SnapshotSession<'a> {
    pub store: &'a Store,
    pub library: &'a Library,
    pub scan: &'a Scan,
    pub(super) policy: SnapshotPolicy<'a>,
    pub(super) branches: Branches,
    /// Whether the last `check` found damage in the store. Unreadable objects are then stored
    /// again.
    must_repair: bool,
    pub operation: Operation<'a>,
    pub(super) cache: Cache,
    pub(super) origins: Origins,
    pub done: Finished,
}

#[derive(Default)]
pub(super) struct Origins {
    pub lineage: Option<Lineage>,
    /// New snapshots of known chats that this session created. New chats may be forks of them.
    /// `None` if there are no new chats.
    pub grown: Option<Vec<(NewTimeline, Snapshot)>>,
    pub replaced: BTreeMap<TimelineName, Replaced>,
    /// New chats that are not the result of a rename. The value is the snapshot that the chat was
    /// forked from, if any.
    pub came: HashMap<TimelineName, Option<SnapshotId>>,
    /// The latest snapshots of all files that are not chats; `None` until they are loaded.
    pub other_heads: Option<Vec<Snapshot>>,
}

#[derive(Default)]
pub(crate) struct Finished {
    pub outcomes: Vec<TimelineResult>,
    /// The number of timelines that are unchanged according to the cache and were not examined.
    pub untouched: usize,
    /// The state of ST-Auto-Recap in the new snapshots.
    pub states: HashMap<SnapshotId, CheckpointState>,
    pub findings: Vec<Finding>,
    /// The snapshots that record the deletion of timelines.
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
            must_repair: store.is_marked_damaged(),
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
        monitor.begin("creating snapshots", Some(names.len() as u64));
        let (mut new, mut known, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let skips =
            self.policy.unchanged == UnchangedPolicy::Skip && !self.is_named() && !self.must_repair;
        let touched = if skips {
            let (groups, branches) = (&self.scan.groups, &self.branches);
            touched(self.store, self.library, groups, names, branches, &self.cache)?
        } else {
            names.iter().collect()
        };
        self.done.untouched += names.len() - touched.len();
        monitor.advance(self.done.untouched as u64);
        for name in touched {
            let limit = self.policy.longest_file;
            if let Some(why) = changed_timelines::too_long(self.library, name, limit) {
                self.record(name, Ok(SnapshotResult::Failed(why)))?;
                continue;
            }
            let head = self.branches.head(self.store, name)?;
            match head.0 {
                Some(_) => known.push((name, head)),
                None if name.is_chat() => new.push(name),
                None => others.push(name),
            }
        }
        // A new chat may be a fork of the present content of a known chat.
        self.origins.grown = (!new.is_empty()).then(Vec::new);
        for (name, head) in known {
            if let Some(result) = self.reuse_known(name, head).transpose() {
                self.record(name, result)?;
                monitor.advance(1);
            }
        }
        self.take_new(&new, monitor)?;
        self.take_others(&others, monitor)?;
        if self.is_named() {
            self.take_books_of(names)?;
        }
        self.report_refusals_once();
        self.done.outcomes.sort_by(|a, b| a.timeline.cmp(&b.timeline));
        Ok(())
    }

    /// Returns the number of timelines that have snapshots but no file. Timelines that this session
    /// found renamed do not count.
    pub(crate) fn without_files(&self) -> Result<usize> {
        let without = if self.scan.unreadable.is_empty() {
            self.branches.count_other_branches(self.scan.all())
        } else {
            // Some folders could not be listed, so each timeline must be looked up by the name in
            // its latest snapshot.
            let history = History::load(self.store)?;
            let is_gone =
                |name: &TimelineName| self.library.presence(self.scan, name) == Presence::Gone;
            history.heads().filter(|(name, _)| is_gone(name)).count()
        };
        Ok(without.saturating_sub(self.operation.dropped_branches()))
    }

    /// Stores a timeline that has a branch, if it changed. Returns `None` if the file contains a
    /// different chat or lorebook than the latest snapshot; [`take_new`](Self::take_new) or
    /// [`take_others`](Self::take_others) then stores the file.
    pub(super) fn reuse_known(
        &mut self,
        name: &TimelineName,
        head: Head,
    ) -> Result<Option<SnapshotResult>> {
        let is_judged = self.policy.unchanged == UnchangedPolicy::Judge;
        let is_wanted = is_judged || self.is_named();
        let came_back = head.0.as_ref().is_some_and(|head| head.kind == Kind::DELETED);
        let must_read = is_wanted || self.must_repair || came_back;
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
            return Ok(Some(SnapshotResult::Unchanged(Box::new(head), Vec::new())));
        };
        let state = State::of(&captured.files);
        if is_stored && !came_back {
            if is_judged && let Some(refused) = self.refused(&captured) {
                return Ok(Some(refused));
            }
            if look.astray {
                self.operation.move_ref(branch(name), head.id)?;
            }
            if self.must_repair && !self.repair_head(&state, &head)? {
                return self
                    .store_state(&captured, &state, SnapshotParents::previous(head))
                    .map(Some);
            }
            return Ok(Some(SnapshotResult::Unchanged(Box::new(head), Vec::new())));
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
        let taken = self.store_state(&captured, &state, SnapshotParents::previous(head))?;
        if let (Some(grown), SnapshotResult::New(snapshot, _)) = (&mut self.origins.grown, &taken)
            && name.is_chat()
        {
            grown.push((NewTimeline::of_state(&state), (**snapshot).clone()));
        }
        Ok(Some(taken))
    }

    /// Stores the objects of the snapshot `head` again if it is damaged. Returns `false` if the
    /// files do not result in the tree of `head`, so that a new snapshot is needed.
    fn repair_head(&mut self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if !Validator::new(self.store.reader()).judge(head)?.is_repairable() {
            return Ok(true);
        }
        let attached = self.operation.attachments_of(state, Some(head.tree), &reader)?;
        let pack = &mut self.operation.pack;
        let written = archive::write(state, &attached, pack)?;
        Ok(written.tree == head.tree)
    }

    pub(super) fn store_state(
        &mut self,
        captured: &Captured,
        state: &State<'_>,
        follows: SnapshotParents,
    ) -> Result<SnapshotResult> {
        let template = self.library.book_template();
        let look = |new: &[_]| rules::of_files(&captured.files, &state.chat, new, template);
        let kind = self.policy.kind_of(&captured.files);
        let (snapshot, findings) = self.operation.add_separate(state, kind, follows, look)?;
        self.note(captured, state.manifest.checkpoint.as_ref(), findings, &snapshot);
        Ok(SnapshotResult::New(Box::new(snapshot), Vec::new()))
    }

    pub(super) fn note(
        &mut self,
        captured: &Captured,
        noted: Option<&CheckpointState>,
        findings: Vec<Finding>,
        snapshot: &Snapshot,
    ) {
        self.record_state(noted, snapshot);
        self.done.findings.extend(findings);
        self.cache.remember(captured, snapshot.id, CacheMatch::Unchanged);
    }

    pub(crate) fn record_state(&mut self, noted: Option<&CheckpointState>, snapshot: &Snapshot) {
        self.done.states.extend(noted.map(|noted| (snapshot.id, noted.clone())));
    }

    /// Runs the readiness check. Returns the refusal, if any; otherwise records the warnings.
    pub(super) fn refused(&mut self, captured: &Captured) -> Option<SnapshotResult> {
        let judgement = (self.policy.gate)(captured);
        if !judgement.refused.is_empty() {
            return Some(SnapshotResult::Refused(judgement.refused));
        }
        // Warnings about a lorebook are reported for the chats that use the lorebook.
        if captured.files.timeline.is_chat() {
            self.done.findings.extend(judgement.warnings);
        }
        None
    }

    /// Returns the latest snapshot of a timeline.
    pub(crate) fn head(&self, name: &TimelineName) -> Result<Option<Snapshot>> {
        Ok(self.branches.head(self.store, name)?.0)
    }

    pub(crate) fn capture(&self, name: &TimelineName) -> Result<Captured> {
        Ok(st::capture(self.library, &self.scan.groups, name, &Disk)?)
    }

    /// Records the result for a timeline. A timeline that cannot be read counts as failed. Any
    /// other error is returned and ends the command.
    pub(crate) fn record(
        &mut self,
        name: &TimelineName,
        result: Result<SnapshotResult>,
    ) -> Result<()> {
        let result = match result {
            Ok(taken) => taken,
            Err(Error::St(error)) => SnapshotResult::Failed(error.to_string()),
            // The timeline cannot be stored as a commit. Its objects stay in the pack, unreachable.
            Err(Error::Archive(error @ archive::Error::NotASnapshot { .. })) => {
                SnapshotResult::Failed(error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.done.outcomes.push(TimelineResult { timeline: name.clone(), result });
        Ok(())
    }

    pub(crate) fn finish(mut self, held: &HeldLock) -> Result<Finished> {
        let new_ids: HashMap<_, _> = self.settle_families()?.into_iter().collect();
        self.done.findings.extend(self.operation.attachments_left_out());
        let workspace = self.operation.workspace;
        let operation::OperationResult { objects, bytes, .. } = self.operation.finish(held)?;
        let outcomes =
            self.done.outcomes.iter_mut().filter_map(|outcome| match &mut outcome.result {
                SnapshotResult::New(snapshot, _) | SnapshotResult::Unchanged(snapshot, _) => {
                    Some(&mut **snapshot)
                }
                _ => None,
            });
        for snapshot in outcomes.chain(&mut self.done.deleted) {
            if let Some(became) = new_ids.get(&snapshot.id.0) {
                *snapshot = history::name_lookup::read(self.store, SnapshotId(*became))?;
            }
        }
        want_again(self.store, &self.done.outcomes, held)?;
        if objects > 0 {
            self.done.findings.extend(join_packs::after_save(workspace, self.store, held));
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

/// Withdraws the erasure of a timeline if a new timeline has the same name and the same first
/// message (for files that are not chats: the same content), because the user wants the timeline
/// again.
fn want_again(store: &Store, outcomes: &[TimelineResult], held: &HeldLock) -> Result<()> {
    let mut erasures = store.erasures()?;
    if erasures.is_empty() {
        return Ok(());
    }
    let (reader, before) = (store.reader(), erasures.clone());
    for outcome in outcomes {
        let SnapshotResult::New(snapshot, _) = &outcome.result else { continue };
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
