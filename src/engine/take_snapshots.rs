//! Taking snapshots: of timelines as they are now, each following its own newest one, or what it comes from if it was never seen.
//!
//! A timeline that cannot be read or that the gate refuses does not stop the others; a store that cannot be written stops everything, and then nothing has changed.

use std::collections::{BTreeMap, HashMap};

use super::cache::Cache;
use super::changed_timelines::{self, Branches, Head, touched};
use super::operation::{self, Follows, Held, Operation};
use super::{Error, Include, Result, Workspace};
use crate::archive::{self, Folders, Kind, Snapshot, SnapshotId, State, Validator, branch};
use crate::auto_recap::{self, CheckpointState, Wish, queue_activity};
use crate::history::origin::{Lineage, Newcomer};
use crate::history::{self, History, latest_valid};
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Captured, Disk, Library, Presence, Scan, TimelineFiles, TimelineName};
use crate::store::Store;

/// What became of one timeline.
pub struct TakenTimeline {
    /// The timeline's name.
    pub timeline: TimelineName,
    /// What became of it.
    pub result: Taken,
}

/// What became of a timeline.
pub enum Taken {
    /// A new snapshot, and its tags.
    New(Box<Snapshot>, Vec<String>),
    /// A new snapshot that a dry run did not write: its message count, and how many the newest one has.
    WouldBeNew(u64, Option<u64>),
    /// The newest snapshot already is this state.
    Unchanged(Box<Snapshot>, Vec<String>),
    /// It could not be read.
    Failed(String),
    /// A rule forbids it.
    Refused(Vec<Finding>),
}

/// What the gate says of a state.
#[derive(Default)]
pub(crate) struct Judgement {
    /// Reasons not to take it.
    pub refused: Vec<Finding>,
    /// What is said when it is taken.
    pub warnings: Vec<Finding>,
}

/// How states are taken.
pub(crate) struct How<'a> {
    /// The user's words for them.
    pub message: Option<&'a str>,
    /// Why they are taken.
    pub kind: Kind,
    /// What those are marked as in whose lorebook work is pending.
    pub kind_if_busy: Kind,
    /// Read the files also where they look unchanged, and ask the gate.
    pub on_purpose: bool,
    /// Somebody named them: a chat is taken with its lorebook, also if only that changed.
    pub named: bool,
    /// Tell of every timeline, also of those that were not even looked at.
    pub tell_all: bool,
    /// Who may pass.
    pub gate: &'a dyn Fn(&Captured) -> Judgement,
}

impl How<'_> {
    /// Returns the kind of the snapshot of these files.
    pub(super) fn kind_of(&self, files: &TimelineFiles) -> &Kind {
        let is_busy = || files.book_bytes().is_some_and(|book| queue_activity(book).total() > 0);
        if self.kind != self.kind_if_busy && is_busy() { &self.kind_if_busy } else { &self.kind }
    }
}

impl How<'static> {
    /// Everything as it is, ready or not. What is taken in the middle of the extension's work is marked, and that is said.
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
            on_purpose: false,
            named: false,
            tell_all: false,
            gate,
        }
    }
}

/// How many of these are new snapshots.
pub(crate) fn count_new(outcomes: &[TakenTimeline]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome.result, Taken::New(..))).count()
}

/// A timeline whose file shares no message, or no entry, with its latest snapshot.
pub(super) struct Replaced {
    pub head: Snapshot,
    /// Reported if the file turns out to be overwritten, and not renamed or deleted.
    pub alarm: Option<Finding>,
}

/// One command's snapshots in the making.
pub(crate) struct Taking<'a> {
    pub store: &'a Store,
    pub library: &'a Library,
    pub scan: &'a Scan,
    pub(super) how: How<'a>,
    pub(super) include: Include,
    pub operation: Operation<'a>,
    pub(super) cache: Option<Cache>,
    pub(super) lineage: Option<Lineage>,
    pub done: Finished,
    /// Where the branches led when it began, once somebody needs that.
    branches: Option<Branches>,
    /// Known chats that were taken, if there are new ones that may come from them.
    pub(super) grown: Option<Vec<(Newcomer, Snapshot)>>,
    /// Timelines whose file holds another chat or lorebook than the latest snapshot.
    pub(super) replaced: BTreeMap<TimelineName, Replaced>,
    /// New timelines that are no renamed ones, and what they come from.
    pub(super) came: HashMap<TimelineName, Option<SnapshotId>>,
    /// The last check found damage: write again what cannot be read.
    mend: bool,
    /// The newest snapshots of what is no chat, once somebody needs them.
    pub(super) other_heads: Option<Vec<Snapshot>>,
}

/// What was taken so far.
#[derive(Default)]
pub(crate) struct Finished {
    /// What became of the timelines.
    pub outcomes: Vec<TakenTimeline>,
    /// How many more there are, which nobody touched.
    pub untouched: usize,
    /// What the new snapshots say of the state of ST-Auto-Recap.
    pub states: HashMap<SnapshotId, CheckpointState>,
    /// What was noticed about them.
    pub findings: Vec<Finding>,
    /// The last states of timelines that were found deleted.
    pub deleted: Vec<Snapshot>,
    /// How many objects were written.
    pub objects: usize,
    /// How many bytes they take.
    pub bytes: u64,
}

impl<'a> Taking<'a> {
    pub(crate) fn new(
        workspace: &'a Workspace,
        store: &'a Store,
        library: &'a Library,
        scan: &'a Scan,
        how: How<'a>,
    ) -> Result<Self> {
        let include = Include::of(Some(store));
        Ok(Self {
            store,
            library,
            scan,
            operation: Operation::new(workspace, store, how.message),
            how,
            cache: Some(Cache::load(store)),
            include,
            lineage: None,
            done: Finished::default(),
            branches: None,
            grown: None,
            replaced: BTreeMap::new(),
            came: HashMap::new(),
            mend: store.is_marked_damaged(),
            other_heads: None,
        })
    }

    /// Take every one of these that changed.
    pub(crate) fn take(&mut self, names: &[TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("taking snapshots", Some(names.len() as u64));
        let mut new = Vec::new();
        let mut known = Vec::new();
        let mut others = Vec::new();
        let branches = Branches::read(self.store)?;
        let touched = self.touched(names, &branches)?;
        self.done.untouched += names.len() - touched.len();
        monitor.advance(self.done.untouched as u64);
        for name in touched {
            let head = branches.head(self.store, name)?;
            match head.0 {
                Some(_) => known.push((name, head)),
                None if name.is_chat() => new.push(name),
                None => others.push(name),
            }
        }
        // A new chat may come from what a known one is only now.
        self.grown = (!new.is_empty()).then(Vec::new);
        for (name, head) in known {
            if let Some(result) = self.take_known(name, head).transpose() {
                self.record(name, result)?;
                monitor.advance(1);
            }
        }
        self.take_new(&new, monitor)?;
        self.take_others(&others, monitor)?;
        self.branches = Some(branches);
        if self.how.named {
            self.take_books_of(names)?;
        }
        self.tell_refusals_once();
        self.done.outcomes.sort_by(|a, b| a.timeline.cmp(&b.timeline));
        Ok(())
    }

    /// How many timelines have snapshots and no file any more.
    pub(crate) fn without_files(&mut self) -> Result<usize> {
        let branches = match self.branches.take() {
            Some(branches) => branches,
            None => Branches::read(self.store)?,
        };
        if !self.scan.unreadable.is_empty() {
            // A branch does not say in which folder its file is.
            let history = History::load(self.store)?;
            let is_gone =
                |name: &TimelineName| self.library.presence(self.scan, name) == Presence::Gone;
            let gone = history.heads().filter(|(name, _)| is_gone(name)).count();
            return Ok(gone.saturating_sub(self.operation.dropped_branches()));
        }
        // Those that have another name now have a file, too.
        Ok(branches.besides(self.scan.all()).saturating_sub(self.operation.dropped_branches()))
    }

    /// Those that have to be looked at.
    fn touched<'n>(
        &self,
        names: &'n [TimelineName],
        branches: &Branches,
    ) -> Result<Vec<&'n TimelineName>> {
        let How { on_purpose, named, tell_all, .. } = self.how;
        match &self.cache {
            Some(cache) if !(on_purpose || named || tell_all || self.mend) => {
                touched(self.store, self.library, &self.scan.groups, names, branches, cache)
            }
            _ => Ok(names.iter().collect()),
        }
    }

    /// Takes a timeline that has a branch. Returns none for a file that holds another chat or lorebook: [`take_new`](Self::take_new) and [`take_others`](Self::take_others) find out
    /// which.
    pub(super) fn take_known(&mut self, name: &TimelineName, head: Head) -> Result<Option<Taken>> {
        // A store that has to be mended needs the files, changed or not.
        let on_purpose = self.how.on_purpose;
        let came_back = head.0.as_ref().is_some_and(|head| head.kind == Kind::DELETED);
        let named = on_purpose || self.how.named;
        let cache = if named || self.mend || came_back { &mut None } else { &mut self.cache };
        let groups = &self.scan.groups;
        let look = changed_timelines::look_from(
            Some(self.store),
            self.library,
            groups,
            name,
            head,
            cache,
        )?;
        let is_stored = look.unchanged || !named && !look.is_new();
        let Some(captured) = look.captured else {
            let head =
                look.head.ok_or_else(|| history::Error::no_such_timeline(name.to_string()))?;
            return Ok(Some(Taken::Unchanged(Box::new(head), Vec::new())));
        };
        match look.head {
            Some(head) if is_stored && !came_back => {
                if on_purpose && let Some(refused) = self.refused(&captured) {
                    return Ok(Some(refused));
                }
                if look.astray {
                    self.operation.move_ref(branch(name), head.id)?;
                }
                let state = State::of(&captured.files);
                if self.mend && !self.mends(&state, &head)? {
                    return self.store_state(&captured, &state, Follows::previous(head)).map(Some);
                }
                Ok(Some(Taken::Unchanged(Box::new(head), Vec::new())))
            }
            head => {
                let state = State::of(&captured.files);
                let is_foreign = match &head {
                    Some(head) => self.operation.is_foreign(&state, head)?,
                    None => false,
                };
                if let Some(head) = head.as_ref().filter(|_| is_foreign) {
                    let alarm = self.operation.alarm(&state, head, name.is_chat())?;
                    let replaced = Replaced { head: head.clone(), alarm };
                    self.replaced.insert(name.clone(), replaced);
                    return Ok(None);
                }
                if let Some(refused) = self.refused(&captured) {
                    return Ok(Some(refused));
                }
                if let Some(head) = &head {
                    self.done.findings.extend(self.operation.alarm(&state, head, is_foreign)?);
                }
                let follows = head.map(Follows::previous).unwrap_or_default();
                let taken = self.store_state(&captured, &state, follows)?;
                if let (Some(grown), Taken::New(snapshot, _)) = (&mut self.grown, &taken)
                    && name.is_chat()
                {
                    grown.push((Newcomer::of_state(&state), (**snapshot).clone()));
                }
                Ok(Some(taken))
            }
        }
    }

    /// Whether a snapshot that may be damaged is whole again once its objects are written anew. Only what cannot be read is
    /// written.
    fn mends(&mut self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if !Validator::new(self.store.reader()).judge(head)?.can_be_mended() {
            return Ok(true);
        }
        let attached = self.operation.attachments_of(state, Some(head.tree), &reader)?;
        let written = archive::write(
            state,
            &mut self.operation.pack,
            &reader,
            None,
            &Folders::default(),
            &attached,
        )?;
        Ok(written.tree == head.tree)
    }

    /// Take the snapshot, say what is odd about what is new in it, and know the files next time.
    pub(super) fn store_state(
        &mut self,
        captured: &Captured,
        state: &State<'_>,
        follows: Follows,
    ) -> Result<Taken> {
        let template = self.library.book_template();
        let look = |new: &[_]| rules::of_files(&captured.files, &state.chat, new, template);
        let (snapshot, findings) = self.operation.take_beside(
            state,
            self.how.kind_of(&captured.files).clone(),
            follows,
            look,
        )?;
        self.note(captured, state.manifest.checkpoint.as_ref(), findings, &snapshot);
        Ok(Taken::New(Box::new(snapshot), Vec::new()))
    }

    /// Note what is known of a new snapshot.
    pub(super) fn note(
        &mut self,
        captured: &Captured,
        noted: Option<&CheckpointState>,
        findings: Vec<Finding>,
        snapshot: &Snapshot,
    ) {
        self.tell_state(noted, snapshot);
        self.done.findings.extend(findings);
        if let Some(cache) = &mut self.cache {
            cache.remember(captured, snapshot.id, false);
        }
    }

    /// Note what a new snapshot says of the state of ST-Auto-Recap.
    pub(crate) fn tell_state(&mut self, noted: Option<&CheckpointState>, snapshot: &Snapshot) {
        if let Some(noted) = noted {
            self.done.states.insert(snapshot.id, noted.clone());
        }
    }

    /// Whether the gate forbids it. What it only warns of is said.
    pub(super) fn refused(&mut self, captured: &Captured) -> Option<Taken> {
        let judgement = (self.how.gate)(captured);
        if !judgement.refused.is_empty() {
            return Some(Taken::Refused(judgement.refused));
        }
        // Of a lorebook its chats are warned.
        if captured.files.timeline.is_chat() {
            self.done.findings.extend(judgement.warnings);
        }
        None
    }

    pub(crate) fn capture(&self, name: &TimelineName) -> Result<Captured> {
        Ok(st::capture(self.library, &self.scan.groups, name, &Disk)?)
    }

    /// Note what became of a timeline. A timeline that cannot be read is one that failed; a store that cannot be written and a rule
    /// that refuses stop the command.
    pub(crate) fn record(&mut self, name: &TimelineName, result: Result<Taken>) -> Result<()> {
        let result = match result {
            Ok(taken) => taken,
            Err(Error::St(error)) => Taken::Failed(error.to_string()),
            // It has something about it that cannot be told in a commit. No ref leads to what was made of it, and the others need not wait.
            Err(Error::Archive(error @ archive::Error::NotASnapshot { .. })) => {
                Taken::Failed(error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.done.outcomes.push(TakenTimeline { timeline: name.clone(), result });
        Ok(())
    }

    /// Make it durable, then tidy up.
    pub(crate) fn finish(mut self, held: &Held) -> Result<Finished> {
        let anew: HashMap<_, _> = self.settle_families()?.into_iter().collect();
        self.done.findings.extend(self.operation.attachments_left_out());
        let operation::Done { objects, bytes, .. } = self.operation.finish(held)?;
        for outcome in &mut self.done.outcomes {
            if let Taken::New(snapshot, _) | Taken::Unchanged(snapshot, _) = &mut outcome.result
                && let Some(became) = anew.get(&snapshot.id.0)
            {
                **snapshot = history::name_lookup::read(self.store, SnapshotId(*became))?;
            }
        }
        want_again(self.store, &self.done.outcomes, held)?;
        for deleted in &mut self.done.deleted {
            if let Some(became) = anew.get(&deleted.id.0) {
                *deleted = history::name_lookup::read(self.store, SnapshotId(*became))?;
            }
        }
        if objects > 0
            && let Err(error) = self.store.tidy(&held.lock, &archive::new_versions)
        {
            let message = format!("small packs and refs could not be joined: {error}");
            let subject = self.store.path().display().to_string();
            self.done.findings.push(Finding::new(Code::PacksNotJoined, subject, message));
        }
        if let Some(cache) = self.cache {
            cache.save(self.store);
        }
        if let Some(lineage) = self.lineage {
            lineage.save();
        }
        let mut findings = self.done.findings;
        latest_valid::advise(&mut findings, Some(self.store))?;
        let findings = rules::without_repeats(findings);
        Ok(Finished { findings, objects, bytes, ..self.done })
    }
}

/// Withdraws the erasure of timelines that begin now with the name and the first message of an erased one: whoever begins a chat wants it.
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
