//! Watches a library and creates a snapshot after every save.
//!
//! A file event only triggers a scan, which detects changes in the same way as `stvc snapshot`. The
//! library is also scanned at intervals, so that lost or unsupported events delay a snapshot but
//! never prevent it.

mod error;
mod save_finished;
mod scheduled_job;
mod service_manager;
mod single_watcher;
mod task_scheduler;
mod wake;
mod watcher;

pub mod install;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};

pub use error::{Error, Result};
pub use service_manager::{Host, ServiceManager};
pub use single_watcher::{is_running, started};
pub use wake::{Listener, Waker, waker};

use crate::engine::configuration::{self, Configuration};
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::copies::{CopyPlace, last_sync};
use crate::engine::files::ChatOpenState;
use crate::engine::gate::GatePolicy;
use crate::engine::{self, LibraryPlace, Workspace, changed_timelines, join_packs};
use crate::progress::NoProgress;
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::store::{LoginPrompt, Store};
use crate::verbs::snapshot::{self, Report, SnapshotResult, Subject, TimelineResult};
use crate::verbs::{self, backup, forget, gc, sync};
use save_finished::SaveTimer;
use scheduled_job::ScheduledJob;
use single_watcher::WatchLock;
use wake::Signal;
use watcher::Watcher;

/// The interval of scans if no file events arrive.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The interval of scans if the system does not support file events.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// The interval at which `watch` looks for a library or store that became unreachable.
const SEEK_EVERY: Duration = Duration::from_secs(2);
/// The interval of `forget` and `gc`, if a retention policy is configured.
const TIDY_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after which a failed backup is tried again.
const BACKUP_AGAIN: Duration = Duration::from_secs(15 * 60);
/// The shortest time after which a failed sync is tried again. The interval that the user set may
/// be longer.
const SYNC_AGAIN: Duration = Duration::from_secs(60);

/// The time without saves after which packs are joined, as a multiple of [`Options::settle`].
const IDLE: u32 = 10;

const MAX_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// The settings of the watch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time without changes after which a snapshot is created.
    pub settle: Duration,
    /// The longest wait for ST-Auto-Recap's queue. A timeline that waits longer is stored as an
    /// autosave.
    pub patience: Duration,
    /// The interval of scans, if scans are used instead of file events.
    pub poll: Option<Duration>,
}

impl Options {
    /// Limits the settings, to prevent a busy loop and an overflow of the clock.
    fn within_reason(self) -> Self {
        let longest = |span: Duration| span.min(MAX_WAIT);
        Self {
            settle: longest(self.settle),
            patience: longest(self.patience),
            poll: self.poll.map(|poll| longest(poll).max(SHORTEST_POLL)),
        }
    }
}

/// An event that the watch reports.
pub enum Event<'a> {
    /// The watch started.
    Started {
        /// The user's folder that is watched.
        root: &'a Path,
        /// The interval of scans and the reason, if there are no file events.
        polling: Option<(Duration, String)>,
    },
    /// A scan created snapshots, found deleted timelines, or could not read a timeline.
    Looked(&'a Report),
    /// These timelines wait for the queue of their lorebooks.
    Waiting(&'a [TimelineName]),
    /// The library or its store cannot be reached.
    Gone(String),
    /// The library and its store are reachable again.
    Back,
    /// A scan failed. The watch retries.
    Failed(&'a verbs::Error),
    /// The retention policy removed snapshots.
    Tidied(&'a forget::Report),
    /// The scheduled backup was created.
    BackedUp(&'a LastBackup),
    /// The scheduled backup failed. The watch retries.
    BackupFailed(&'a str),
    /// The scheduled sync succeeded.
    Synced(&'a sync::Report),
    /// The scheduled sync failed. The watch retries.
    SyncFailed(&'a str),
    /// Other findings, for example that an interrupted command was finished.
    Noticed(&'a [Finding]),
}

/// The numbers of snapshots that a watch created.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Number of snapshots.
    pub taken: usize,
    /// The number of snapshots that were created while work was pending in ST-Auto-Recap's queue.
    pub autosaves: usize,
}

/// Watches until [`Waker::stop`] is called. `clock` returns the time of each snapshot. `tell`
/// receives the events.
pub fn watch(
    workspace: &Workspace,
    options: &Options,
    waker: &Waker,
    listener: &Listener,
    clock: &dyn Fn() -> DateTime<FixedOffset>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Summary> {
    let root = workspace.library()?.root().to_owned();
    let path = workspace.store_path()?;
    if workspace.find_store()?.is_none() {
        Store::create(&path)?;
    }
    // Use fixed paths, so that the watch never switches to another library.
    let workspace = Workspace {
        automatic: true,
        // Nobody may be at the terminal when a scheduled backup or sync starts.
        login_prompt: LoginPrompt::Forbidden,
        library: LibraryPlace::At(root.clone()),
        user: None,
        // `None` means the library's own store, whose configuration names the backup destination.
        store: workspace.store.as_ref().map(|_| path),
        ..workspace.clone()
    };
    let mut watch = Watch {
        guard: Some(WatchLock::take(&workspace.open_store()?)?),
        workspace,
        context: Context { root: &root, options: options.within_reason(), clock, waker, listener },
        tell,
        watcher: None,
        due: SaveTimer::due_now(options.within_reason().settle),
        waiting: WaitingTimelines::default(),
        reported: Reported::default(),
        tidied: None,
        join_at: Some(Instant::now()),
        backup: ScheduledJob::new(
            last_backups::due,
            |workspace, place| backup::to_place(workspace, place, &mut NoProgress),
            BACKUP_AGAIN,
        ),
        sync: ScheduledJob::new(last_sync::due, sync_unattended, SYNC_AGAIN),
        summary: Summary::default(),
    };
    let polling = watch.listen();
    (watch.tell)(Event::Started { root: &root, polling });
    watch.run()
}

struct Context<'a> {
    root: &'a Path,
    options: Options,
    clock: &'a dyn Fn() -> DateTime<FixedOffset>,
    waker: &'a Waker,
    listener: &'a Listener,
}

struct Watch<'a> {
    context: Context<'a>,
    tell: &'a mut dyn FnMut(Event<'_>),
    workspace: Workspace,
    /// The lock of this watch; `None` while the library is missing.
    guard: Option<WatchLock>,
    /// The subscription to file events; `None` if there are no file events.
    watcher: Option<Watcher>,
    due: SaveTimer,
    waiting: WaitingTimelines,
    reported: Reported,
    tidied: Option<Instant>,
    /// When the packs of the latest snapshots are joined, unless there are further saves.
    join_at: Option<Instant>,
    backup: ScheduledJob<(LastBackup, Vec<Finding>)>,
    sync: ScheduledJob<sync::Report>,
    summary: Summary,
}

/// Timelines that wait for the queue of their lorebooks.
#[derive(Default)]
struct WaitingTimelines {
    since: BTreeMap<TimelineName, Instant>,
    /// The time before which no wait ends, set after the store could not be written.
    not_before: Option<Instant>,
}

#[derive(Default)]
struct Reported {
    failures: BTreeSet<(String, String)>,
    configuration: Option<Finding>,
}

/// The timelines that a scan stores although they are not ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unready {
    /// Timelines that have waited long enough.
    Late,
    /// All timelines, because the watch ends.
    All,
}

impl Watch<'_> {
    fn run(&mut self) -> Result<Summary> {
        let mut looked = Instant::now();
        loop {
            let latest = looked + self.interval();
            // While the library is missing, ignore snapshots that are due. Otherwise the loop would
            // not wait.
            let sooner = [self.due.when(), self.out_of_patience(), self.join_at];
            let sooner = sooner.into_iter().flatten();
            let next = sooner.filter(|_| self.guard.is_some()).fold(latest, Instant::min);
            match self.context.listener.wait(next) {
                Signal::Stop => break,
                Signal::Change => self.due.note(Instant::now()),
                Signal::Nothing => {}
            }
            let now = Instant::now();
            if self.guard.is_none() {
                looked = now;
                if self.is_gone().is_none() {
                    self.guard = Some(WatchLock::take(&self.workspace.open_store()?)?);
                    self.listen();
                    (self.tell)(Event::Back);
                    self.due = SaveTimer::due_now(self.context.options.settle);
                }
                continue;
            }
            let is_past = |when: Option<Instant>| when.is_some_and(|when| when <= now);
            let is_due = is_past(self.due.when()) || is_past(self.out_of_patience());
            if !is_due && is_past(self.join_at) {
                self.join_packs();
            }
            if !is_due && looked + self.interval() > now {
                continue;
            }
            self.due.clear();
            looked = now;
            if let Some(why) = self.is_gone() {
                (self.guard, self.watcher) = (None, None);
                (self.tell)(Event::Gone(why));
                continue;
            }
            if self.watcher.as_ref().is_some_and(Watcher::is_outdated) {
                self.listen();
            }
            self.look_at_configuration();
            // Without events, most likely nothing changed. Check this first, because the check does
            // not lock the store. If the check fails, the snapshot reports the error.
            if is_due || changed_timelines::has_changed(&self.workspace).unwrap_or(true) {
                self.look(Unready::Late);
            }
            self.tidy();
            self.run_scheduled_jobs();
        }
        if self.guard.is_some() && self.is_gone().is_none() {
            self.look(Unready::All);
        }
        Ok(self.summary)
    }

    /// Subscribes to file events. If that is not possible, returns the interval of scans and the
    /// reason.
    fn listen(&mut self) -> Option<(Duration, String)> {
        self.watcher = None;
        if let Some(poll) = self.context.options.poll {
            return Some((poll, "requested with --poll".into()));
        }
        match Watcher::new(self.context.root, self.context.waker.clone()) {
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
            _ => self.context.options.poll.unwrap_or(POLL_EVERY),
        }
    }

    fn out_of_patience(&self) -> Option<Instant> {
        let (since, patience) = (self.waiting.since.values().min()?, self.context.options.patience);
        Some(save_finished::patience_ends(*since, patience, self.waiting.not_before))
    }

    /// Returns the reason if the library or its store cannot be read. A missing drive must not look
    /// like a library without chats.
    fn is_gone(&self) -> Option<String> {
        let library = self.workspace.library().err();
        library.or_else(|| self.workspace.open_store().err()).map(|error| error.to_string())
    }

    /// Begins a new command for the operation log, because each scan is logged as a command of its
    /// own.
    fn begin_command(&mut self) {
        self.workspace.now = (self.context.clock)();
        self.workspace.command = self.workspace.command.again();
    }

    /// Reads the configuration again, and reports once if it is invalid.
    fn look_at_configuration(&mut self) {
        let Ok(store) = self.workspace.open_store() else { return };
        let found = configuration::finding(&store);
        if let Some(finding) = found.as_ref().filter(|_| found != self.reported.configuration) {
            (self.tell)(Event::Noticed(std::slice::from_ref(finding)));
        }
        self.reported.configuration = found;
    }

    fn look(&mut self, unready: Unready) {
        self.begin_command();
        let looked =
            snapshot::snapshot(&self.workspace, &snapshot::Options::default(), &mut NoProgress);
        let notices = self.workspace.take_notices();
        if !notices.is_empty() {
            (self.tell)(Event::Noticed(&notices));
        }
        match looked {
            Ok(report) => {
                self.waiting.not_before = None;
                self.note(&report);
                let here: BTreeSet<_> =
                    report.timelines.iter().map(|found| &found.timeline).collect();
                self.waiting.since.retain(|timeline, _| here.contains(timeline));
            }
            Err(error) => return self.failed(&error),
        }
        let (now, patience) = (Instant::now(), self.context.options.patience);
        let is_late = |since: &Instant| unready == Unready::All || now >= *since + patience;
        let late = self.waiting.since.iter().filter(|(_, since)| is_late(since));
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
        match snapshot::snapshot(&self.workspace, &options, &mut NoProgress) {
            Ok(report) => {
                self.summary.autosaves += taken(&report);
                self.note(&report);
                // These timelines no longer wait. If one is refused again, a new wait begins.
                self.waiting.since.retain(|timeline, _| !late.contains(timeline));
            }
            Err(error) => self.failed(&error),
        }
    }

    fn note(&mut self, report: &Report) {
        self.summary.taken += taken(report);
        if taken(report) > 0 {
            self.join_at = Some(Instant::now() + self.context.options.settle * IDLE);
        }
        let mut begin_to_wait = Vec::new();
        let unreadable = report.unreadable.iter();
        let mut failed: BTreeSet<_> =
            unreadable.map(|found| (found.subject.clone(), found.message.clone())).collect();
        for TimelineResult { timeline, result } in &report.timelines {
            match result {
                SnapshotResult::Refused(_) => {
                    self.waiting.since.entry(timeline.clone()).or_insert_with(|| {
                        begin_to_wait.push(timeline.clone());
                        Instant::now()
                    });
                }
                SnapshotResult::Failed(why) => {
                    failed.insert((timeline.to_string(), why.clone()));
                }
                _ => {
                    self.waiting.since.remove(timeline);
                }
            }
        }
        // After a new failure, scan again soon, because the file may have been incomplete during a
        // save. A file that stays unreadable is reported once.
        let is_news = failed.iter().any(|failure| !self.reported.failures.contains(failure));
        if is_news {
            self.due.note(Instant::now());
        }
        self.reported.failures = failed;
        if taken(report) > 0 || is_news || !report.newly_deleted.is_empty() {
            (self.tell)(Event::Looked(report));
        }
        if !begin_to_wait.is_empty() {
            (self.tell)(Event::Waiting(&begin_to_wait));
        }
    }

    /// Reports a failure once. The next scan retries.
    fn failed(&mut self, error: &verbs::Error) {
        self.waiting.not_before = Some(Instant::now() + POLL_EVERY);
        if self.reported.failures.insert((String::new(), error.to_string())) {
            (self.tell)(Event::Failed(error));
            self.due.note(Instant::now());
        }
    }

    /// Joins the packs of the latest snapshots. After a failure, the next save tries again.
    fn join_packs(&mut self) {
        self.join_at = None;
        if let Err(error) = join_packs::when_idle(&self.workspace) {
            self.failed(&error.into());
        }
    }

    fn tidy(&mut self) {
        let is_done = self.tidied.is_some_and(|when| when.elapsed() < TIDY_EVERY);
        // The retention policy is unknown while the configuration is invalid.
        if is_done || self.reported.configuration.is_some() {
            return;
        }
        self.tidied = Some(Instant::now());
        if let Err(error) = self.try_to_tidy() {
            (self.tell)(Event::Failed(&error));
        }
    }

    fn run_scheduled_jobs(&mut self) {
        if self.reported.configuration.is_some() {
            return;
        }
        self.begin_command();
        match self.backup.step(&self.workspace, self.context.waker) {
            None => {}
            Some(Ok((backup, findings))) => {
                (self.tell)(Event::BackedUp(&backup));
                if !findings.is_empty() {
                    (self.tell)(Event::Noticed(&findings));
                }
            }
            Some(Err(why)) => (self.tell)(Event::BackupFailed(&why)),
        }
        match self.sync.step(&self.workspace, self.context.waker) {
            None => {}
            Some(Ok(report)) => {
                (self.tell)(Event::Synced(&report));
                if !report.findings.is_empty() {
                    (self.tell)(Event::Noticed(&report.findings));
                }
            }
            Some(Err(why)) => (self.tell)(Event::SyncFailed(&why)),
        }
    }

    fn try_to_tidy(&mut self) -> verbs::Result<()> {
        if Configuration::of(&self.workspace.open_store()?)?.retention().is_none() {
            return Ok(());
        }
        self.begin_command();
        let report = forget::forget(&self.workspace, &forget::Options::default(), &mut NoProgress)?;
        if !report.timelines.is_empty() {
            (self.tell)(Event::Tidied(&report));
        }
        gc::gc(&self.workspace, &gc::Options::default(), &mut NoProgress)?;
        Ok(())
    }
}

fn taken(report: &Report) -> usize {
    report.timelines.iter().filter(|found| matches!(found.result, SnapshotResult::New(..))).count()
}

/// Syncs without a user. While SillyTavern is running, some files cannot be replaced; then the
/// local snapshots are sent nevertheless, and the sync fails.
fn sync_unattended(workspace: &Workspace, place: &CopyPlace) -> verbs::Result<sync::Report> {
    let (closed, place) = (ChatOpenState::Unknown, place.clone());
    let options = sync::Options { place, closed, dry_run: false, receive_only: false };
    let synced = sync::sync(workspace, &options, &mut NoProgress);
    if let Err(verbs::Error::Engine(engine::Error::SillyTavernRuns(_))) = &synced {
        backup::to_place(workspace, &options.place, &mut NoProgress)?;
    }
    synced
}
