//! Watch over a library: a snapshot after every save, without the user.
//!
//! File events only say that it is time to look; what changed is found as `snapshot` finds it. So an event that is lost, or a file
//! system that tells none, costs time and never a state: the library is also looked at every now and then.

mod error;
mod save_finished;
mod single_watcher;
mod task_scheduler;
mod wake;
mod watcher;

pub mod install;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use error::{Error, Result};
pub use wake::{Listener, Waker, waker};

use crate::engine::configuration::{self, Configuration};
use crate::engine::gate::GatePolicy;
use crate::engine::{LibraryPlace, Workspace, has_changed};
use crate::progress::Silent;
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::store::Store;
use crate::verbs::snapshot::{self, Report, Subject, Taken};
use crate::verbs::{self, forget, gc};
use save_finished::Due;
use single_watcher::Guard;
use wake::Heard;
use watcher::Watcher;

/// How often a library is looked at though nothing was heard.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The same where the system tells of no changes.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// How often a folder that is gone is looked for.
const SEEK_EVERY: Duration = Duration::from_secs(2);
/// How often the store is tidied up, if its configuration says how.
const TIDY_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Nobody waits longer.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Looking more often than this is of no use.
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// Whether the library is being watched.
pub fn is_running(workspace: &Workspace) -> bool {
    let store = workspace.find_store().ok().flatten();
    store.is_some_and(|store| single_watcher::is_held(&store))
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long the files must be left alone before a snapshot.
    pub settle: Duration,
    /// How long ST-Auto-Recap's queue may be at work before its chat is taken all the same.
    pub patience: Duration,
    /// Look so often, and do not rely on file events.
    pub poll: Option<Duration>,
}

impl Options {
    /// Not so short that it never rests, not so long that no clock goes that far.
    fn within_reason(self) -> Self {
        let longest = |span: Duration| span.min(LONGEST);
        Self {
            settle: longest(self.settle),
            patience: longest(self.patience),
            poll: self.poll.map(|poll| longest(poll).max(SHORTEST_POLL)),
        }
    }
}

/// What happened.
pub enum Event<'a> {
    /// It began.
    Started {
        /// The library.
        root: &'a Path,
        /// How often it is looked at, and why, if there are no file events.
        polling: Option<(Duration, String)>,
    },
    /// Something was taken, or could not be.
    Looked(&'a Report),
    /// The queue is at work in the lorebooks of these: they wait.
    Waiting(&'a [TimelineName]),
    /// The library or its store cannot be reached; it is looked for.
    Gone(String),
    /// It is there again.
    Back,
    /// Something went wrong; it is tried again.
    Failed(&'a verbs::Error),
    /// The configuration's policy let snapshots go.
    Tidied(&'a forget::Report),
    /// Something else was noticed: another command had been interrupted.
    Noticed(&'a [Finding]),
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Snapshots.
    pub taken: usize,
    /// Those of them that were taken in the middle of the queue's work.
    pub autosaves: usize,
}

/// Watch until the waker says stop; `clock` tells the moment of each snapshot.
pub fn watch(
    workspace: &Workspace,
    options: &Options,
    waker: &Waker,
    listener: &Listener,
    clock: &dyn Fn() -> chrono::DateTime<chrono::FixedOffset>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Summary> {
    let root = workspace.library()?.root().to_owned();
    let path = workspace.store_path()?;
    if workspace.find_store()?.is_none() {
        Store::create(&path)?;
    }
    // What was found is watched, and not what may be found later in its place.
    let workspace = Workspace {
        automatic: true,
        library: LibraryPlace::At(root.clone()),
        user: None,
        store: Some(path),
        ..workspace.clone()
    };
    let guard = Guard::take(&workspace.open_store()?)?;
    let mut watch = Watch {
        workspace,
        options: options.within_reason(),
        clock,
        root,
        guard: Some(guard),
        watcher: None,
        waiting: BTreeMap::new(),
        not_before: None,
        told: BTreeSet::new(),
        configuration: None,
        tidied: None,
        summary: Summary::default(),
    };
    let polling = watch.listen(waker);
    tell(Event::Started { root: &watch.root, polling });
    watch.run(waker, listener, tell)
}

struct Watch<'a> {
    workspace: Workspace,
    options: Options,
    clock: &'a dyn Fn() -> chrono::DateTime<chrono::FixedOffset>,
    root: PathBuf,
    /// None while the library is gone.
    guard: Option<Guard>,
    /// None if there are no file events.
    watcher: Option<Watcher>,
    /// Timelines whose queue is at work, and since when they wait.
    waiting: BTreeMap<TimelineName, Instant>,
    /// The store could not be written: those that waited long enough wait a little longer.
    not_before: Option<Instant>,
    /// What failed, and was said.
    told: BTreeSet<(String, String)>,
    /// The warning about the configuration that was last told.
    configuration: Option<Finding>,
    tidied: Option<Instant>,
    summary: Summary,
}

impl Watch<'_> {
    fn run(
        &mut self,
        waker: &Waker,
        listener: &Listener,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Summary> {
        // What changed while nobody watched comes first.
        let mut due = Due::at_once(self.options.settle);
        let mut looked = Instant::now();
        loop {
            let sooner = [due.when(), self.out_of_patience()];
            let next =
                save_finished::next_look(looked + self.interval(), sooner, self.guard.is_some());
            match listener.wait(next) {
                Heard::Stop => break,
                Heard::Change => due.note(Instant::now()),
                Heard::Nothing => {}
            }
            let now = Instant::now();
            if self.guard.is_none() {
                looked = now;
                if self.is_back()? {
                    self.listen(waker);
                    tell(Event::Back);
                    due = Due::at_once(self.options.settle);
                }
                continue;
            }
            let is_due = due.when().is_some_and(|when| when <= now);
            let is_time = looked + self.interval() <= now;
            let overdue = self.out_of_patience().is_some_and(|when| when <= now);
            if !(is_due || is_time || overdue) {
                continue;
            }
            if let Some(why) = self.is_gone() {
                (self.guard, self.watcher) = (None, None);
                due.clear();
                looked = now;
                tell(Event::Gone(why));
                continue;
            }
            if self.watcher.as_ref().is_some_and(Watcher::is_outdated) {
                self.listen(waker);
            }
            due.clear();
            looked = now;
            self.look_at_configuration(tell);
            // Nothing was heard: most likely nothing changed, and then the store need not be locked.
            if is_due || overdue || self.has_changed() {
                self.look(false, &mut due, tell);
            }
            self.tidy(tell);
        }
        if self.guard.is_some() && self.is_gone().is_none() {
            self.look(true, &mut due, tell);
        }
        Ok(self.summary)
    }

    /// Hear of changes; why not, if that is not possible.
    fn listen(&mut self, waker: &Waker) -> Option<(Duration, String)> {
        self.watcher = None;
        if let Some(poll) = self.options.poll {
            return Some((poll, "as you asked for".into()));
        }
        match Watcher::new(&self.root, waker.clone()) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                None
            }
            Err(why) => Some((POLL_EVERY, why.to_string())),
        }
    }

    fn interval(&self) -> Duration {
        match (&self.guard, &self.watcher) {
            (None, _) => SEEK_EVERY,
            (_, Some(_)) => LOOK_EVERY,
            _ => self.options.poll.unwrap_or(POLL_EVERY),
        }
    }

    /// When the first of those that wait has waited long enough.
    fn out_of_patience(&self) -> Option<Instant> {
        let since = self.waiting.values().min()?;
        Some(save_finished::patience_ends(*since, self.options.patience, self.not_before))
    }

    /// Why nothing can be taken now. A library on a drive that went away must not look like one without chats.
    fn is_gone(&self) -> Option<String> {
        if let Err(error) = self.workspace.library() {
            return Some(error.to_string());
        }
        self.workspace.open_store().err().map(|error| error.to_string())
    }

    fn is_back(&mut self) -> Result<bool> {
        if self.is_gone().is_some() {
            return Ok(false);
        }
        self.guard = Some(Guard::take(&self.workspace.open_store()?)?);
        Ok(true)
    }

    /// Each look is a command of its own.
    fn begin_command(&mut self) {
        self.workspace.now = (self.clock)();
        self.workspace.command = self.workspace.command.again();
    }

    fn has_changed(&self) -> bool {
        // If that cannot be told, the snapshot says why.
        has_changed::has_changed(&self.workspace).unwrap_or(true)
    }

    /// Tells once what is wrong with the configuration. Every look reads it again, so a corrected one holds from then on.
    fn look_at_configuration(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        let Ok(store) = self.workspace.open_store() else { return };
        let found = configuration::finding(&store);
        if let Some(finding) = found.as_ref().filter(|_| found != self.configuration) {
            tell(Event::Noticed(std::slice::from_ref(finding)));
        }
        self.configuration = found;
    }

    /// Take what changed; `last`: also what waits.
    fn look(&mut self, last: bool, due: &mut Due, tell: &mut dyn FnMut(Event<'_>)) {
        self.begin_command();
        let looked =
            snapshot::snapshot(&self.workspace, &snapshot::Options::default(), &mut Silent);
        let notices = self.workspace.take_notices();
        if !notices.is_empty() {
            tell(Event::Noticed(&notices));
        }
        match looked {
            Ok(report) => {
                self.not_before = None;
                self.note(&report, due, tell);
                let here: BTreeSet<_> =
                    report.timelines.iter().map(|found| &found.timeline).collect();
                self.waiting.retain(|timeline, _| here.contains(timeline));
            }
            Err(error) => return self.failed(&error, due, tell),
        }
        let now = Instant::now();
        let is_late = |since: &Instant| last || now >= *since + self.options.patience;
        let late = self.waiting.iter().filter(|(_, since)| is_late(since));
        let late: Vec<_> = late.map(|(timeline, _)| timeline.clone()).collect();
        if late.is_empty() {
            return;
        }
        let options = snapshot::Options {
            subject: Subject::Named(late.iter().map(ToString::to_string).collect()),
            gate: GatePolicy { allow_active_queue: true, ..GatePolicy::default() },
            autosave: true,
            ..snapshot::Options::default()
        };
        match snapshot::snapshot(&self.workspace, &options, &mut Silent) {
            Ok(report) => {
                self.summary.autosaves += taken(&report);
                self.note(&report, due, tell);
                // If it goes on, it waits from now on.
                self.waiting.retain(|timeline, _| !late.contains(timeline));
            }
            Err(error) => self.failed(&error, due, tell),
        }
    }

    fn note(&mut self, report: &Report, due: &mut Due, tell: &mut dyn FnMut(Event<'_>)) {
        self.summary.taken += taken(report);
        let mut begin_to_wait = Vec::new();
        let unreadable = report.unreadable.iter();
        let mut failed: BTreeSet<_> =
            unreadable.map(|found| (found.subject.clone(), found.message.clone())).collect();
        for outcome in &report.timelines {
            let timeline = &outcome.timeline;
            match &outcome.result {
                Taken::Refused(_) => {
                    if !self.waiting.contains_key(timeline) {
                        begin_to_wait.push(timeline.clone());
                        self.waiting.insert(timeline.clone(), Instant::now());
                    }
                }
                Taken::Failed(why) => {
                    failed.insert((timeline.to_string(), why.clone()));
                }
                _ => {
                    self.waiting.remove(timeline);
                }
            }
        }
        // What was being written is read again soon; what cannot be read at all is said once.
        let is_news = failed.iter().any(|failure| !self.told.contains(failure));
        if is_news {
            due.note(Instant::now());
        }
        self.told = failed;
        if taken(report) > 0 || is_news || !report.newly_deleted.is_empty() {
            tell(Event::Looked(report));
        }
        if !begin_to_wait.is_empty() {
            tell(Event::Waiting(&begin_to_wait));
        }
    }

    /// The store could not be written: the next look tries again.
    fn failed(&mut self, error: &verbs::Error, due: &mut Due, tell: &mut dyn FnMut(Event<'_>)) {
        self.not_before = Some(Instant::now() + POLL_EVERY);
        let failure = (String::new(), error.to_string());
        if self.told.insert(failure) {
            tell(Event::Failed(error));
            due.note(Instant::now());
        }
    }

    /// Once a day, as the store's configuration says.
    fn tidy(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        let is_done = self.tidied.is_some_and(|when| when.elapsed() < TIDY_EVERY);
        // How long snapshots stay is not known before the configuration is corrected.
        if is_done || self.configuration.is_some() {
            return;
        }
        self.tidied = Some(Instant::now());
        if let Err(error) = self.try_to_tidy(tell) {
            tell(Event::Failed(&error));
        }
    }

    fn try_to_tidy(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> verbs::Result<()> {
        if Configuration::of(&self.workspace.open_store()?)?.retention().is_none() {
            return Ok(());
        }
        self.begin_command();
        let report = forget::forget(&self.workspace, &forget::Options::default(), &mut Silent)?;
        if !report.timelines.is_empty() {
            tell(Event::Tidied(&report));
        }
        gc::gc(&self.workspace, &gc::Options::default(), &mut Silent)?;
        Ok(())
    }
}

fn taken(report: &Report) -> usize {
    report.timelines.iter().filter(|found| matches!(found.result, Taken::New(..))).count()
}
