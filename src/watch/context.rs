//! The parts of the watch that all users share, and the intervals, which grow with the number of
//! users: a scan costs about a millisecond even if nothing changed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::bell::{Bell, Reasons, TaskId, Waker};
use super::error::Error;
use super::file_events::{CompanionFolder, FileEvents};
use super::front_end::{Event, FrontEnd, Options, Summary, WatchedUser};
use super::metrics::{Metrics, UserGauges};
use super::scheduled_job::CopyThreads;
use crate::rules::Finding;
use crate::st;

/// The interval of scans if no file events arrive.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Its share of one user, if there are many users: one scan of 1 ms is then 0.2 % of a core.
const LOOK_SHARE: Duration = Duration::from_millis(500);
/// The interval of scans if the system does not support file events.
const POLL_EVERY: Duration = Duration::from_secs(5);
const POLL_SHARE: Duration = Duration::from_millis(20);
/// The interval at which `watch` looks for a library or store that became unreachable.
const SEEK_EVERY: Duration = Duration::from_secs(2);
const SEEK_SHARE: Duration = Duration::from_millis(20);
/// The interval at which new users are looked for.
const NEW_USERS_EVERY: Duration = Duration::from_secs(60);
const NEW_USERS_SHARE: Duration = Duration::from_millis(100);
const JOBS_EVERY: Duration = Duration::from_secs(60);
const JOBS_SHARE: Duration = Duration::from_millis(100);
/// The interval at which a companion looks for work, if it has no file events.
const MAIL_EVERY: Duration = Duration::from_millis(500);
const MAIL_SHARE: Duration = Duration::from_millis(10);

pub(super) struct Context<'a> {
    pub(super) front: &'a dyn FrontEnd,
    pub(super) options: Options,
    pub(super) waker: Waker,
    /// The file events, or the reason why there are none.
    pub(super) events: Result<FileEvents, String>,
    pub(super) copies: CopyThreads,
    pub(super) metrics: &'a Metrics,
    /// Whether all users of an installation are watched, so that a user who cannot be watched does
    /// not end the watch.
    pub(super) is_host: bool,
    users: AtomicUsize,
    tasks: AtomicUsize,
    /// The error that ended the watch.
    pub(super) failure: Mutex<Option<Error>>,
    pub(super) summary: Mutex<Summary>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        front: &'a dyn FrontEnd,
        options: Options,
        waker: Waker,
        metrics: &'a Metrics,
        is_host: bool,
    ) -> Self {
        let events = match options.poll {
            Some(_) => Err("requested with --poll".to_owned()),
            None => FileEvents::new().map_err(|why| why.to_string()),
        };
        let (users, tasks, failure, summary) = Default::default();
        let copies = CopyThreads::start();
        Self {
            front,
            options,
            waker,
            events,
            copies,
            metrics,
            is_host,
            users,
            tasks,
            failure,
            summary,
        }
    }

    pub(super) fn new_bell(&self) -> Bell {
        let task: TaskId = self.tasks.fetch_add(1, Ordering::Relaxed);
        Bell::new(task, &self.waker)
    }

    /// Counts a user, and returns the number of users.
    pub(super) fn count_user(&self) -> usize {
        self.users.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns an interval at which the steps of all users cost little.
    fn spread(&self, least: Duration, share: Duration) -> Duration {
        let users = u32::try_from(self.users.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        least.max(share.saturating_mul(users))
    }

    /// Returns the interval of scans of a library whose changes are events.
    pub(super) fn look_interval(&self) -> Duration {
        self.spread(LOOK_EVERY, LOOK_SHARE)
    }

    /// Returns the interval of scans of a library whose file events arrive incompletely, as on a
    /// network drive.
    pub(super) fn look_interval_without_trust(&self) -> Duration {
        self.spread(LOOK_EVERY, POLL_SHARE)
    }

    /// Returns the interval of scans of a library without file events.
    pub(super) fn poll_interval(&self) -> Duration {
        let share = if self.is_host { POLL_SHARE } else { Duration::ZERO };
        self.spread(self.options.poll.unwrap_or(POLL_EVERY), share)
    }

    pub(super) fn seek_interval(&self) -> Duration {
        self.spread(SEEK_EVERY, SEEK_SHARE)
    }

    /// Returns the interval at which scheduled backups and syncs of a user are considered.
    pub(super) fn jobs_interval(&self) -> Duration {
        self.spread(JOBS_EVERY, JOBS_SHARE)
    }

    pub(super) fn new_users_interval(&self) -> Duration {
        self.spread(self.options.poll.unwrap_or(NEW_USERS_EVERY), NEW_USERS_SHARE)
    }

    pub(super) fn mail_interval(&self, has_events: bool) -> Duration {
        match has_events {
            true => self.look_interval(),
            false => self.spread(MAIL_EVERY, MAIL_SHARE),
        }
    }
}

/// The companion of a user, as the watch of the library sees it.
pub(super) struct CompanionLink {
    pub(super) bell: Bell,
    pub(super) folder: PathBuf,
    pub(super) is_mail: fn(&std::ffi::OsStr) -> bool,
    pub(super) news: Arc<CompanionNews>,
}

/// Messages from the watch of a library to the companion.
#[derive(Default)]
pub(super) struct CompanionNews {
    state: Mutex<(Vec<Finding>, LibraryState)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LibraryState {
    /// The watch has not begun, so another watch may serve the user.
    #[default]
    NotWatched,
    /// File events wake the companion.
    WithEvents,
    WithoutEvents,
}

impl CompanionNews {
    pub(super) fn add(&self, findings: &[Finding]) {
        self.lock().0.extend_from_slice(findings);
    }

    /// Sets the state. Returns whether it was another one before.
    pub(super) fn set(&self, state: LibraryState) -> bool {
        std::mem::replace(&mut self.lock().1, state) != state
    }

    pub(super) fn state(&self) -> LibraryState {
        self.lock().1
    }

    pub(super) fn take(&self) -> Vec<Finding> {
        std::mem::take(&mut self.lock().0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Vec<Finding>, LibraryState)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A user and the connections to the parts of the watch.
pub(super) struct UserLink<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) user: WatchedUser,
    pub(super) bell: Bell,
    pub(super) companion: Option<CompanionLink>,
    pub(super) gauges: Arc<UserGauges>,
}

impl UserLink<'_> {
    pub(super) fn tell(&self, event: Event<'_>) {
        let news: &[Finding] = match &event {
            Event::Looked(report) => &report.findings,
            Event::OverLimit(finding) => std::slice::from_ref(*finding),
            _ => &[],
        };
        if let Some(companion) = self.companion.as_ref().filter(|_| !news.is_empty()) {
            companion.news.add(news);
        }
        // New snapshots are news for the companion even without findings.
        if matches!(event, Event::Looked(_) | Event::OverLimit(_))
            && let Some(companion) = &self.companion
        {
            companion.bell.ring(Reasons::NEWS);
        }
        self.context.front.tell(&self.user.name, event);
    }

    /// Subscribes to the file events of the library. Returns the reason if that is not possible.
    pub(super) fn subscribe(&self, root: &std::path::Path) -> Result<(), String> {
        let events = self.context.events.as_ref().map_err(String::clone)?;
        let companion = self.companion.as_ref().map(|companion| CompanionFolder {
            path: companion.folder.clone(),
            is_mail: companion.is_mail,
            bell: companion.bell.clone(),
        });
        events.subscribe(root, &self.bell, companion).map_err(|why| match why.kind {
            notify::ErrorKind::MaxFilesWatch => {
                "the limit fs.inotify.max_user_watches is reached".to_owned()
            }
            _ => why.to_string(),
        })
    }

    pub(super) fn unsubscribe(&self, root: &std::path::Path) {
        if let Ok(events) = &self.context.events {
            events.unsubscribe(root);
        }
    }

    /// Returns the name of the user in metrics.
    pub(super) fn label(user: &WatchedUser) -> String {
        match user.name.as_str() {
            "" => {
                let library = user.workspace.library().ok();
                let name = library.as_ref().and_then(|library| library.root().file_name());
                name.map_or_else(|| st::STORE.to_owned(), |name| name.to_string_lossy().into())
            }
            name => name.to_owned(),
        }
    }
}
