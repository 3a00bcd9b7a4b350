//! The watch of one library, as a value: [`LibraryWatch::next_due`] returns when there is something
//! to do, and [`LibraryWatch::step`] does it. It has no thread of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::DateTime;

use super::bell::Reasons;
use super::context::{LibraryState, UserLink};
use super::error::{Error, Result};
use super::front_end::{Event, Options};
use super::pool::Lane;
use super::save_finished::{self, SaveTimer};
use super::scan_state::{Reported, Unready, WaitingTimelines};
use super::scheduled_job::ScheduledJob;
use super::single_watcher::WatchLock;
use crate::engine::configuration::{self, Configuration};
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::copies::{CopyPlace, last_sync};
use crate::engine::files::ChatOpenState;
use crate::engine::{self, LibraryPlace, Workspace, changed_timelines, join_packs};
use crate::progress::NoProgress;
use crate::rules::Finding;
use crate::store::{LoginPrompt, RefChange, Store};
use crate::verbs::{self, backup, forget, gc, sync};

/// The interval of `forget` and `gc`, if a retention policy is configured.
const TIDY_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after the start before which no snapshots are removed: first, saves are stored.
const TIDY_AFTER: Duration = Duration::from_secs(1);
/// The time after which a new folder is watched, so that many new folders are one subscription.
const LISTEN_AFTER: Duration = Duration::from_millis(200);
/// The time after which a failed backup is tried again.
const BACKUP_AGAIN: Duration = Duration::from_secs(15 * 60);
/// The shortest time after which a failed sync is tried again. The interval that the user set may
/// be longer.
const SYNC_AGAIN: Duration = Duration::from_secs(60);
/// The time without saves after which packs are joined, as a multiple of [`Options::settle`].
const IDLE: u32 = 10;
/// The number of parts of an interval over which the first scans of many users are spread.
const PARTS: u32 = 64;

pub(super) struct LibraryWatch<'a> {
    pub(super) link: Arc<UserLink<'a>>,
    pub(super) workspace: Workspace,
    root: PathBuf,
    /// The lock of this watch; `None` while the library is missing.
    guard: Option<WatchLock>,
    /// Whether file events arrive.
    has_events: bool,
    /// When to subscribe again, because a watched folder was created or deleted.
    listen_at: Option<Instant>,
    /// Whether a scan found a change of which there was no event.
    misses_events: bool,
    looked: Instant,
    /// The time by which the second scan is earlier than at the usual interval.
    first_earlier: Duration,
    pub(super) due: SaveTimer,
    pub(super) waiting: WaitingTimelines,
    pub(super) reported: Reported,
    pub(super) configuration: Configuration,
    tidy_at: Instant,
    jobs_at: Option<Instant>,
    /// When the packs of the latest snapshots are joined, unless there are further saves.
    join_at: Option<Instant>,
    /// Whether the last scan took longer than its limit.
    pub(super) is_slow: bool,
    backup: ScheduledJob<(LastBackup, Vec<Finding>)>,
    sync: ScheduledJob<sync::Report>,
    pub(super) taken: usize,
    pub(super) autosaves: usize,
}

impl<'a> LibraryWatch<'a> {
    /// Locks the library for this watch. The first snapshot is due at once, but is not created yet.
    pub(super) fn start(link: Arc<UserLink<'a>>, number: usize) -> Result<Self> {
        let asked = &link.user.workspace;
        let root = asked.library()?.root().to_owned();
        let path = asked.store_path()?;
        if asked.find_store()?.is_none() {
            Store::create(&path)?;
        }
        // Use fixed paths, so that the watch never switches to another library.
        let workspace = Workspace {
            automatic: true,
            // Nobody may be at the terminal when a scheduled backup or sync starts.
            login_prompt: LoginPrompt::Forbidden,
            library: LibraryPlace::At(root.clone()),
            user: None,
            // `None` means the library's own store, whose configuration names the backup
            // destination.
            store: asked.store.as_ref().map(|_| path),
            ..asked.clone()
        };
        let guard = Some(WatchLock::take(&workspace.open_store()?)?);
        let (now, settle) = (Instant::now(), link.context.options.settle);
        let parts = u32::try_from(number).unwrap_or_default() % PARTS;
        let first_earlier = link.context.look_interval() / PARTS * parts;
        let mut watch = Self {
            link,
            workspace,
            root,
            guard,
            has_events: false,
            listen_at: None,
            misses_events: false,
            looked: now,
            first_earlier,
            due: SaveTimer::due_now(settle),
            waiting: WaitingTimelines::default(),
            reported: Reported::default(),
            configuration: Configuration::default(),
            tidy_at: now + TIDY_AFTER,
            jobs_at: Some(now),
            join_at: Some(now),
            is_slow: false,
            backup: ScheduledJob::new(
                last_backups::due,
                |workspace, place| backup::to_place(workspace, place, &mut NoProgress),
                BACKUP_AGAIN,
            ),
            sync: ScheduledJob::new(last_sync::due, sync_unattended, SYNC_AGAIN),
            taken: 0,
            autosaves: 0,
        };
        let polling = watch.listen();
        watch.link.tell(Event::Started { root: &watch.root, polling });
        watch.measure_latest();
        Ok(watch)
    }

    pub(super) fn options(&self) -> &Options {
        &self.link.context.options
    }

    pub(super) fn hear(&mut self, why: Reasons, now: Instant) {
        if why.has(Reasons::CHANGE | Reasons::FOLDERS) {
            self.due.note(now);
            self.misses_events = false;
        }
        if why.has(Reasons::FOLDERS) {
            let soon = now + LISTEN_AFTER.min(self.options().settle);
            self.listen_at = self.listen_at.or(Some(soon));
        }
        if why.has(Reasons::NEWS) {
            self.jobs_at = Some(now);
        }
    }

    /// Returns the time of the next step, and its lane.
    pub(super) fn next_due(&self) -> (Instant, Lane) {
        let lane = if self.is_slow { Lane::Long } else { Lane::Save };
        let latest = self.looked + self.interval();
        // While the library is missing, ignore snapshots that are due. Otherwise the step would be
        // repeated without a pause.
        if self.guard.is_none() {
            return (latest, Lane::Save);
        }
        let sooner =
            [self.due.when(), self.out_of_patience(), self.listen_at, self.join_at, self.jobs_at];
        let next = sooner.into_iter().flatten().fold(latest, Instant::min);
        if self.tidy_at < next { (self.tidy_at, Lane::Long) } else { (next, lane) }
    }

    pub(super) fn step(&mut self) {
        let now = Instant::now();
        if self.guard.is_none() {
            self.looked = now;
            return self.seek();
        }
        let is_past = |when: Option<Instant>| when.is_some_and(|when| when <= now);
        let is_due = is_past(self.due.when()) || is_past(self.out_of_patience());
        let is_time = self.looked + self.interval() <= now;
        if is_past(self.listen_at) {
            self.listen();
        }
        if !is_due && is_past(self.join_at) {
            self.join_packs();
        }
        if is_due || is_time {
            let earlier = std::mem::take(&mut self.first_earlier);
            self.looked = now.checked_sub(earlier).unwrap_or(now);
            self.look_again(is_due);
        } else if is_past(self.jobs_at) {
            self.look_at_configuration();
            self.run_scheduled_jobs();
        }
        if !is_due && self.guard.is_some() && self.tidy_at <= now {
            self.look_at_configuration();
            self.tidy();
        }
    }

    /// Runs the last scan. Returns the numbers of snapshots and autosaves.
    pub(super) fn end(&mut self) -> (usize, usize) {
        let must_look = self.due.when().is_some() || self.waiting.is_any();
        if self.guard.is_some() && self.is_gone().is_none() {
            // The event of the last save may not have arrived.
            if must_look || changed_timelines::has_changed(&self.workspace).unwrap_or(true) {
                self.look(Unready::All);
            }
        }
        (self.taken, self.autosaves)
    }

    fn look_again(&mut self, is_due: bool) {
        self.due.clear();
        if let Some(why) = self.is_gone() {
            return self.lose(why);
        }
        // Subscribe before the files are read, so that no change is missed. If it failed before,
        // for example because a folder was missing, try again.
        if self.listen_at.is_some() || !self.has_events {
            self.listen();
        }
        self.look_at_configuration();
        // Without events, most likely nothing changed. Check this first, because the check does not
        // lock the store. If the check fails, the snapshot reports the error.
        if is_due || changed_timelines::has_changed(&self.workspace).unwrap_or(true) {
            let before = self.taken;
            self.look(Unready::Late);
            if self.taken > before {
                self.misses_events |= !is_due && self.has_events;
                self.join_at = Some(Instant::now() + self.options().settle * IDLE);
            }
        }
        self.run_scheduled_jobs();
    }

    /// Looks for the missing library.
    fn seek(&mut self) {
        if self.is_gone().is_some() {
            return;
        }
        // Another watch may have begun meanwhile. Then this one waits until the other ends.
        let guard = self.workspace.open_store().map_err(Error::from);
        let Ok(guard) = guard.and_then(|store| WatchLock::take(&store)) else { return };
        self.guard = Some(guard);
        self.listen();
        self.link.tell(Event::Back);
        self.due = SaveTimer::due_now(self.options().settle);
    }

    fn lose(&mut self, why: String) {
        self.guard = None;
        self.has_events = false;
        self.link.unsubscribe(&self.root);
        self.set_state(LibraryState::NotWatched);
        self.link.gauges.count_failure();
        self.link.tell(Event::Gone(why));
    }

    /// Subscribes to file events. If that is not possible, returns the interval of scans and the
    /// reason.
    fn listen(&mut self) -> Option<(Duration, String)> {
        self.listen_at = None;
        let subscribed = self.link.subscribe(&self.root);
        self.has_events = subscribed.is_ok();
        let state = match self.has_events {
            true => LibraryState::WithEvents,
            false => LibraryState::WithoutEvents,
        };
        self.set_state(state);
        subscribed.err().map(|why| (self.interval(), why))
    }

    fn set_state(&self, state: LibraryState) {
        let is_watched = state != LibraryState::NotWatched;
        self.link.gauges.is_watched.store(is_watched, Ordering::Relaxed);
        if let Some(companion) = &self.link.companion {
            let is_new = companion.news.set(state);
            // A file may have been written before its folder was watched.
            if is_new || state == LibraryState::WithEvents {
                companion.bell.ring(Reasons::MAIL);
            }
        }
    }

    fn interval(&self) -> Duration {
        let context = self.link.context;
        match (&self.guard, self.has_events) {
            (None, _) => context.seek_interval(),
            (_, true) if self.misses_events => context.look_interval_without_trust(),
            (_, true) => context.look_interval(),
            _ => context.poll_interval(),
        }
    }

    fn out_of_patience(&self) -> Option<Instant> {
        let (since, not_before) = self.waiting.first()?;
        Some(save_finished::patience_ends(since, self.options().patience, not_before))
    }

    /// Returns the reason if the library or its store cannot be read. A missing drive must not look
    /// like a library without chats.
    fn is_gone(&self) -> Option<String> {
        let library = self.workspace.library().err();
        library.or_else(|| self.workspace.open_store().err()).map(|error| error.to_string())
    }

    /// Begins a new command for the operation log, because each scan is logged as a command of its
    /// own.
    pub(super) fn begin_command(&mut self) {
        self.workspace.now = self.link.context.front.now();
        self.workspace.command = self.workspace.command.again();
    }

    /// Reads the configuration again, and reports once if it is invalid.
    fn look_at_configuration(&mut self) {
        let Ok(store) = self.workspace.open_store() else { return };
        let found = configuration::finding(&store);
        if let Some(finding) = found.as_ref().filter(|_| found != self.reported.configuration) {
            self.link.tell(Event::Noticed(std::slice::from_ref(finding)));
        }
        self.configuration = Configuration::or_defaults(&store);
        self.reported.configuration = found;
    }

    /// Joins the packs of the latest snapshots. After a failure, the next save tries again.
    fn join_packs(&mut self) {
        self.join_at = None;
        if let Err(error) = join_packs::when_idle(&self.workspace) {
            self.failed(&error.into());
        }
        // Nobody has saved for a while. The histories of many users would fill the memory.
        self.workspace.loaded.forget();
    }

    fn tidy(&mut self) {
        // The retention policy is unknown while the configuration is invalid.
        if self.reported.configuration.is_some() {
            self.tidy_at = Instant::now() + self.interval();
            return;
        }
        self.tidy_at = Instant::now() + TIDY_EVERY;
        if self.configuration.clone().retention().is_none() {
            return;
        }
        if let Err(error) = self.try_to_tidy() {
            self.link.gauges.count_failure();
            self.link.tell(Event::Failed(error.to_string()));
        }
        self.workspace.loaded.forget();
        self.measure_store();
    }

    fn try_to_tidy(&mut self) -> verbs::Result<()> {
        self.begin_command();
        let report = forget::forget(&self.workspace, &forget::Options::default(), &mut NoProgress)?;
        if !report.timelines.is_empty() {
            self.link.tell(Event::Tidied(&report));
        }
        gc::gc(&self.workspace, &gc::Options::default(), &mut NoProgress)?;
        Ok(())
    }

    fn run_scheduled_jobs(&mut self) {
        let settings = &self.configuration;
        let is_any = settings.backup.schedule.is_some() || settings.sync.every.is_some();
        let link = Arc::clone(&self.link);
        self.jobs_at = is_any.then(|| Instant::now() + link.context.jobs_interval());
        if self.reported.configuration.is_some() {
            return;
        }
        self.begin_command();
        let copies = &link.context.copies;
        match self.backup.step(&self.workspace, copies, &link.bell) {
            None => {}
            Some(Ok((backup, findings))) => {
                self.measure_latest();
                link.tell(Event::BackedUp(&backup));
                if !findings.is_empty() {
                    link.tell(Event::Noticed(&findings));
                }
            }
            Some(Err(why)) => {
                link.gauges.count_failure();
                link.tell(Event::BackupFailed(&why));
            }
        }
        match self.sync.step(&self.workspace, copies, &link.bell) {
            None => {}
            Some(Ok(report)) => {
                link.tell(Event::Synced(&report));
                if !report.findings.is_empty() {
                    link.tell(Event::Noticed(&report.findings));
                }
            }
            Some(Err(why)) => {
                link.gauges.count_failure();
                link.tell(Event::SyncFailed(&why));
            }
        }
    }

    pub(super) fn measure_store(&self) {
        if let Ok(store) = self.workspace.open_store() {
            self.link.gauges.store_bytes.store(store.bytes_on_disk(), Ordering::Relaxed);
        }
    }

    /// Measures the store, and finds out when it was backed up.
    fn measure_latest(&self) {
        self.measure_store();
        let Ok(store) = self.workspace.open_store() else { return };
        if let Some(time) = last_backups::latest_time(&store) {
            self.link.gauges.last_backup.store(time, Ordering::Relaxed);
        }
        if self.link.gauges.last_snapshot.load(Ordering::Relaxed) == 0
            && let Some(time) = latest_snapshot(&store)
        {
            self.link.gauges.last_snapshot.store(time, Ordering::Relaxed);
        }
    }
}

/// Returns the time of the latest operation that created a snapshot.
fn latest_snapshot(store: &Store) -> Option<i64> {
    let is_branch = |change: &RefChange| {
        change.after.is_some() && change.name.as_str().starts_with("refs/heads/")
    };
    let operations = store.last_operations().ok()?;
    let latest = operations.iter().find(|it| it.effect.refs.iter().any(is_branch))?;
    DateTime::parse_from_rfc3339(&latest.time).ok().map(|time| time.timestamp())
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
